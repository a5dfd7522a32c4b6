//! HotSpot's JVMTI events beyond the specification (src/hotspot/share/prims/jvmtiExtensions.cpp, JDK 21 and
//! 25).
//!
//! As for other events, the VM sends an extension event once a callback is set and the event is enabled by
//! its index.

use std::ffi::CStr;
use std::ptr::null_mut;

use jni::sys::jint;

use super::jvmti::{Jvmti, check};
use super::jvmti_error::{JvmtiError, NOT_AVAILABLE};
use super::jvmti_events::{ExtensionCallback, RawExtensionEvent};

/// Sent on the carrier after a mount, when the virtual thread is the current thread and the transition has
/// ended.
pub const VIRTUAL_THREAD_MOUNT: &CStr = c"com.sun.hotspot.events.VirtualThreadMount";

/// Sent on the carrier before the transition of an unmount begins, while the virtual thread is still the
/// current thread. Also sent before a virtual thread ends.
pub const VIRTUAL_THREAD_UNMOUNT: &CStr = c"com.sun.hotspot.events.VirtualThreadUnmount";

impl Jvmti {
    /// The index of an extension event; an error if this VM has no event of that name.
    fn extension_event(self, id: &CStr) -> Result<jint, JvmtiError> {
        let (mut count, mut events) = (0, null_mut::<RawExtensionEvent>());
        // SAFETY: the out parameters are valid.
        let code = unsafe { self.table().get_extension_events()(self.as_raw(), &mut count, &mut events) };
        check("GetExtensionEvents", code)?;
        let mut index = None;
        for number in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: JVMTI allocated the array of `count` events, and everything its pointers refer to, for
            // this caller.
            unsafe {
                let event = &*events.add(number);
                if CStr::from_ptr(event.id) == id {
                    index = Some(event.index);
                }
                for parameter in 0..usize::try_from(event.parameter_count).unwrap_or(0) {
                    self.deallocate((*event.parameters.add(parameter)).name.cast());
                }
                self.deallocate(event.parameters.cast());
                self.deallocate(event.id.cast());
                self.deallocate(event.short_description.cast());
            }
        }
        // SAFETY: JVMTI allocated the array for this caller, which no longer uses it.
        unsafe { self.deallocate(events.cast()) };
        index.ok_or(JvmtiError { function: "GetExtensionEvents", code: NOT_AVAILABLE })
    }

    /// Makes the VM send an extension event to a callback.
    ///
    /// # Safety
    ///
    /// The VM may call `callback` for the rest of the process's life, with this event's arguments. It must
    /// not unwind.
    pub unsafe fn enable_extension_event(
        self,
        id: &CStr,
        callback: ExtensionCallback,
    ) -> Result<(), JvmtiError> {
        let index = self.extension_event(id)?;
        let table = self.live_table("SetExtensionEventCallback")?;
        // SAFETY: by the contract the callback may be called from now on with this event's arguments, and
        // does not unwind; a null thread means all threads.
        unsafe {
            let code = table.set_extension_event_callback()(self.as_raw(), index, callback);
            check("SetExtensionEventCallback", code)?;
            let code = table.set_event_notification_mode()(self.as_raw(), 1, index, null_mut());
            check("SetEventNotificationMode", code)
        }
    }

    /// Disables an event that [`Jvmti::enable_extension_event`] enabled.
    pub fn disable_extension_event(self, id: &CStr) -> Result<(), JvmtiError> {
        let index = self.extension_event(id)?;
        let table = self.live_table("SetEventNotificationMode")?;
        // SAFETY: a null thread means all threads.
        let code = unsafe { table.set_event_notification_mode()(self.as_raw(), 0, index, null_mut()) };
        check("SetEventNotificationMode", code)
    }
}

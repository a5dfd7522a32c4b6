//! The virtual thread, if any, whose frames are on this stack.
//!
//! The innermost ContinuationEntry is on the stack as long as a virtual thread's frames can be. It is made
//! before the first frame is thawed, and removed when the last has been frozen. Code that runs before and
//! after belongs to the carrier. So the thread's own state identifies a virtual thread's samples at each
//! instruction; the events of mounting are not needed.

use otlpprof_core::continuation::{
    ContinuationLayout, FrozenLayout, MountedThreadLayout, References, ThreadObjectLayout,
};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::stack_walk::Walk;

/// Whether the stack of a Java thread carries a virtual thread's frames. `None` if that is not known.
pub fn carries_virtual_thread(memory: &impl Memory, vm: &VmLayout, java_thread: u64) -> Option<bool> {
    if java_thread == 0 {
        return None;
    }
    let Some(layout) = &vm.continuation else {
        return (!vm.has_continuations).then_some(false);
    };
    match memory.load_u64(java_thread.wrapping_add(u64::from(layout.entry)))? {
        0 => Some(false),
        entry => Some(memory.load_u32(entry.wrapping_add(ContinuationLayout::ENTRY_FLAGS))? != 0),
    }
}

impl<M: Memory> Walk<'_, M> {
    /// The id of the virtual thread that the walk's thread, the current thread, carries. `None` if it cannot
    /// be read now.
    pub fn mounted_thread_id(&self) -> Option<i64> {
        // Borrowed: the layout of frozen frames is large, and each sample would copy it.
        let continuation = self.vm?.continuation.as_ref()?;
        let layout = match continuation.mounted.as_ref()? {
            MountedThreadLayout::Id(offset) => return self.thread_word(*offset).map(u64::cast_signed),
            MountedThreadLayout::Object(layout) => layout,
        };
        let frozen = continuation.frozen.as_ref()?;
        let seen = self.collections.so_far()?;
        self.forget_pages();
        let thread = match self.current_thread(frozen, layout) {
            Some(thread) => thread,
            // The current thread is the carrier, while the virtual thread runs a few steps in its name.
            None => self.thread_of_continuation(frozen, layout, self.thread_word(continuation.entry)?)?,
        };
        let id = self.memory.load_u64(thread.wrapping_add(u64::from(layout.tid)))?;
        (self.collections.are_still(seen) && self.are_pages_retained(frozen)).then_some(id.cast_signed())
    }

    fn thread_word(&self, offset: u32) -> Option<u64> {
        self.memory.load_u64(self.java_thread.wrapping_add(u64::from(offset)))
    }

    /// The current thread, if that is a virtual one.
    fn current_thread(&self, frozen: &FrozenLayout, layout: &ThreadObjectLayout) -> Option<u64> {
        let place = self.thread_word(layout.handle)?;
        let object = match frozen.references {
            // Handles hold full addresses, not narrow references.
            References::Narrow { .. } => self.memory.load_u64(place)?,
            _ => self.reference(frozen, place).ok()?,
        };
        self.object(frozen, object, &[layout.klass]).ok()
    }

    /// The virtual thread whose continuation the ContinuationEntry at `entry` has mounted.
    fn thread_of_continuation(
        &self,
        frozen: &FrozenLayout,
        layout: &ThreadObjectLayout,
        entry: u64,
    ) -> Option<u64> {
        let continuation =
            self.memory.load_u64(entry.wrapping_add(ContinuationLayout::ENTRY_CONTINUATION))?;
        let continuation = self.object(frozen, continuation, &[layout.continuation_klass]).ok()?;
        let field = |object: u64, offset: u32, klass| {
            let reference = self.reference(frozen, object.wrapping_add(u64::from(offset))).ok()?;
            self.object(frozen, reference, &[klass]).ok()
        };
        field(field(continuation, layout.target, layout.target_klass)?, layout.target_thread, layout.klass)
    }
}

//! A JVMTI environment: thin wrappers that convert error codes to [`JvmtiError`] and free memory that JVMTI
//! allocates.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{NonNull, null_mut};

use jni::sys::{JavaVM, jint, jmethodID, jobject};

use super::jvmti_env::{Interface, RawEnv};
use super::jvmti_error::{JvmtiError, NOT_AVAILABLE};
use super::jvmti_events::{EventCallbacks, JvmtiEvent};
use super::jvmti_table::{AgentThreadMain, Capabilities, LiveInterface, RawFrame, RawThreadInfo};
use super::live_phase;
use super::modified_utf8;

/// `JVMTI_VERSION_11`, the version to request; the oldest that every supported VM provides.
const JVMTI_VERSION_11: jint = 0x300b_0000;

/// `JVMTI_THREAD_NORM_PRIORITY`.
const NORMAL_PRIORITY: jint = 5;

/// `jvmtiPhase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// In `Agent_OnLoad`.
    OnLoad,
    /// Before VMStart.
    Primordial,
    /// Between VMStart and VMInit.
    Start,
    /// Between VMInit and VMDeath.
    Live,
    /// After VMDeath.
    Dead,
}

/// The JVMTI capabilities that the agent may request, by bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// `can_generate_exception_events`
    ExceptionEvents = 17,
    /// `can_generate_all_class_hook_events`
    AllClassHookEvents = 26,
    /// `can_generate_monitor_events`
    MonitorEvents = 28,
    /// `can_generate_native_method_bind_events`
    NativeMethodBindEvents = 30,
    /// `can_generate_garbage_collection_events`
    GarbageCollectionEvents = 31,
    /// `can_retransform_classes`
    RetransformClasses = 37,
    /// `can_generate_sampled_object_alloc_events`
    SampledObjectAllocEvents = 43,
    /// `can_support_virtual_threads` (21 on)
    SupportVirtualThreads = 44,
}

impl Capabilities {
    /// Whether `capability` is contained.
    pub fn has(self, capability: Capability) -> bool {
        let bit = capability as usize;
        self.0[bit / 32] >> (bit % 32) & 1 != 0
    }

    /// Adds `capability`.
    #[must_use]
    pub fn with(mut self, capability: Capability) -> Self {
        let bit = capability as usize;
        self.0[bit / 32] |= 1 << (bit % 32);
        self
    }
}

/// A thread's description from `GetThreadInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// The thread's name.
    pub name: String,
    /// Whether the thread is a daemon.
    pub daemon: bool,
    /// The thread group, a local reference that the caller deletes; null if the thread has ended.
    pub thread_group: jobject,
    /// The context class loader, a local reference that the caller deletes.
    pub context_class_loader: jobject,
}

/// A JVMTI environment. Any thread may use it, in every phase in which the specification allows the called
/// function.
#[derive(Clone, Copy, Debug)]
pub struct Jvmti {
    env: NonNull<RawEnv>,
}

// SAFETY: JVMTI environments belong to no thread ("Environments" in the specification).
unsafe impl Send for Jvmti {}
// SAFETY: JVMTI environments belong to no thread ("Environments" in the specification).
unsafe impl Sync for Jvmti {}

impl Jvmti {
    /// A new environment of `vm`.
    ///
    /// # Safety
    ///
    /// `vm` must be the JavaVM of this process, and not destroyed while the result is used.
    pub unsafe fn new(vm: *mut JavaVM) -> Result<Self, JvmtiError> {
        type GetEnv = unsafe extern "system" fn(*mut JavaVM, *mut *mut c_void, jint) -> jint;
        let mut env = null_mut();
        // GetEnv is the seventh word of the invocation interface (JNI specification, "Invocation API").
        // SAFETY: a JavaVM points to its function table, and GetEnv has that type.
        let code = unsafe {
            let get_env: GetEnv = std::mem::transmute(*(*vm).cast::<*const c_void>().add(6));
            get_env(vm, &mut env, JVMTI_VERSION_11)
        };
        match NonNull::new(env) {
            Some(env) if code == 0 => Ok(Self { env: env.cast() }),
            _ => Err(JvmtiError { function: "GetEnv", code }),
        }
    }

    /// Wraps the environment that was passed to a callback.
    ///
    /// # Safety
    ///
    /// `env` must be a live `jvmtiEnv*`.
    pub unsafe fn from_raw(env: NonNull<RawEnv>) -> Self {
        Self { env }
    }

    /// The `jvmtiEnv*`.
    pub fn as_raw(self) -> *mut RawEnv {
        self.env.as_ptr()
    }

    pub(super) fn table(&self) -> &Interface {
        // SAFETY: the environment is live, and its table lives as long as the environment.
        unsafe { &**self.env.as_ptr() }
    }

    /// The functions that may wait for a thread, stop the VM or run Java code. Refused once VMDeath has
    /// begun.
    pub(super) fn live_table(&self, function: &'static str) -> Result<LiveInterface<'_>, JvmtiError> {
        live_phase::check(function).map(|()| LiveInterface(self.table()))
    }

    /// The version of JVMTI: `0x30000000 | major << 16 | minor << 8 | micro`.
    pub fn version_number(self) -> Result<i32, JvmtiError> {
        let mut version = 0;
        // SAFETY: the out parameter is valid.
        let code = unsafe { self.table().get_version_number()(self.as_raw(), &mut version) };
        check("GetVersionNumber", code).map(|()| version)
    }

    /// The VM's phase; [`Phase::Dead`] from the beginning of VMDeath on, when [`live_phase`] ends.
    pub fn phase(self) -> Result<Phase, JvmtiError> {
        if live_phase::has_ended() {
            return Ok(Phase::Dead);
        }
        let mut phase = 0;
        // SAFETY: the out parameter is valid.
        let code = unsafe { self.table().get_phase()(self.as_raw(), &mut phase) };
        check("GetPhase", code)?;
        match phase {
            1 => Ok(Phase::OnLoad),
            2 => Ok(Phase::Primordial),
            6 => Ok(Phase::Start),
            4 => Ok(Phase::Live),
            8 => Ok(Phase::Dead),
            _ => Err(JvmtiError { function: "GetPhase", code: phase }),
        }
    }

    /// The capabilities that can be requested now.
    pub fn potential_capabilities(self) -> Result<Capabilities, JvmtiError> {
        let mut capabilities = Capabilities::default();
        // SAFETY: the out parameter is valid.
        let code = unsafe { self.table().get_potential_capabilities()(self.as_raw(), &mut capabilities) };
        check("GetPotentialCapabilities", code).map(|()| capabilities)
    }

    /// The capabilities that this environment possesses.
    pub fn capabilities(self) -> Result<Capabilities, JvmtiError> {
        let mut capabilities = Capabilities::default();
        // SAFETY: the out parameter is valid.
        let code = unsafe { self.table().get_capabilities()(self.as_raw(), &mut capabilities) };
        check("GetCapabilities", code).map(|()| capabilities)
    }

    /// Requests all of `capabilities`; adds none if one is refused.
    pub fn add_capabilities(self, capabilities: Capabilities) -> Result<(), JvmtiError> {
        // SAFETY: the parameter is valid for the call.
        let code = unsafe { self.table().add_capabilities()(self.as_raw(), &capabilities) };
        check("AddCapabilities", code)
    }

    /// Replaces all callbacks.
    ///
    /// # Safety
    ///
    /// JVMTI calls the callbacks until they are replaced or the environment is disposed of. They must not
    /// unwind.
    pub unsafe fn set_event_callbacks(self, callbacks: &EventCallbacks) -> Result<(), JvmtiError> {
        let size = size_of::<EventCallbacks>() as jint;
        let table = self.live_table("SetEventCallbacks")?;
        // SAFETY: JVMTI copies the structure; by the contract the callbacks may be called from now on, and do
        // not unwind.
        let code = unsafe { table.set_event_callbacks()(self.as_raw(), callbacks, size) };
        check("SetEventCallbacks", code)
    }

    /// Enables or disables an event for all threads.
    pub fn set_event_enabled(self, event: JvmtiEvent, enabled: bool) -> Result<(), JvmtiError> {
        let table = self.live_table("SetEventNotificationMode")?;
        // SAFETY: a null thread means all threads.
        let code = unsafe {
            table.set_event_notification_mode()(
                self.as_raw(),
                jint::from(enabled),
                event as jint,
                null_mut::<c_void>().cast(),
            )
        };
        check("SetEventNotificationMode", code)
    }

    /// Sends an event again for everything that exists; live phase only. All callbacks have returned when
    /// this returns.
    pub fn generate_events(self, event: JvmtiEvent) -> Result<(), JvmtiError> {
        let table = self.live_table("GenerateEvents")?;
        // SAFETY: the function takes an event number.
        let code = unsafe { table.generate_events()(self.as_raw(), event as jint) };
        check("GenerateEvents", code)
    }

    /// A system property; `None` if there is no property of that name.
    pub fn system_property(self, name: &CStr) -> Result<Option<String>, JvmtiError> {
        let mut value = null_mut();
        // SAFETY: the parameters are valid for the call.
        let code = unsafe { self.table().get_system_property()(self.as_raw(), name.as_ptr(), &mut value) };
        match check("GetSystemProperty", code) {
            // SAFETY: JVMTI allocated the string for this caller.
            Ok(()) => Ok(unsafe { self.take_string(value) }),
            Err(error) if error.code == NOT_AVAILABLE => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All live platform threads, as local references that the caller deletes.
    pub fn all_threads(self) -> Result<Vec<jobject>, JvmtiError> {
        let (mut count, mut threads) = (0, null_mut());
        // SAFETY: the out parameters are valid.
        let code = unsafe { self.table().get_all_threads()(self.as_raw(), &mut count, &mut threads) };
        check("GetAllThreads", code)?;
        // SAFETY: JVMTI allocated the array, of that many references, for this caller.
        Ok(unsafe { self.take_array(threads, count) })
    }

    /// All loaded classes, as local references that the caller deletes.
    pub fn loaded_classes(self) -> Result<Vec<jobject>, JvmtiError> {
        let (mut count, mut classes) = (0, null_mut());
        // SAFETY: the out parameters are valid.
        let code = unsafe { self.table().get_loaded_classes()(self.as_raw(), &mut count, &mut classes) };
        check("GetLoadedClasses", code)?;
        // SAFETY: JVMTI allocated the array, of that many references, for this caller.
        Ok(unsafe { self.take_array(classes, count) })
    }

    /// The methods of a prepared class. Makes the VM create the jmethodIDs that do not exist yet.
    ///
    /// # Safety
    ///
    /// `class` must be a live reference to a class.
    pub unsafe fn class_methods(self, class: jobject) -> Result<Vec<jmethodID>, JvmtiError> {
        let (mut count, mut methods) = (0, null_mut());
        // SAFETY: the contract gives a live reference to a class; the out parameters are valid.
        let code =
            unsafe { self.table().get_class_methods()(self.as_raw(), class, &mut count, &mut methods) };
        check("GetClassMethods", code)?;
        // SAFETY: JVMTI allocated the array, of that many ids, for this caller.
        Ok(unsafe { self.take_array(methods, count) })
    }

    /// A method's name and descriptor.
    ///
    /// # Safety
    ///
    /// The VM must have issued the id `method`. Its class may be unloaded.
    pub unsafe fn method_name(self, method: jmethodID) -> Result<(String, String), JvmtiError> {
        let (mut name, mut descriptor) = (null_mut(), null_mut());
        // SAFETY: the VM has issued the id, by the contract. The out parameters are valid, or null where no
        // result is wanted.
        let code = unsafe {
            self.table().get_method_name()(
                self.as_raw(),
                method,
                &mut name,
                &mut descriptor,
                null_mut::<*mut c_char>(),
            )
        };
        check("GetMethodName", code)?;
        // SAFETY: JVMTI allocated both strings for this caller.
        let (name, descriptor) = unsafe { (self.take_string(name), self.take_string(descriptor)) };
        Ok((name.unwrap_or_default(), descriptor.unwrap_or_default()))
    }

    /// A method's class, as a local reference that the caller deletes.
    ///
    /// # Safety
    ///
    /// As for [`Jvmti::method_name`].
    pub unsafe fn method_class(self, method: jmethodID) -> Result<jobject, JvmtiError> {
        let mut class = null_mut();
        // SAFETY: the VM has issued the id, by the contract; the out parameter is valid.
        let code = unsafe { self.table().get_method_declaring_class()(self.as_raw(), method, &mut class) };
        check("GetMethodDeclaringClass", code).map(|()| class)
    }

    /// A class's signature: `Ljava/lang/Object;`.
    ///
    /// # Safety
    ///
    /// `class` must be a live reference to a class.
    pub unsafe fn class_signature(self, class: jobject) -> Result<String, JvmtiError> {
        let mut signature = null_mut();
        // SAFETY: the contract gives a live reference to a class. The out parameters are valid; null skips
        // the generic signature.
        let code = unsafe {
            self.table().get_class_signature()(
                self.as_raw(),
                class,
                &mut signature,
                null_mut::<*mut c_char>(),
            )
        };
        check("GetClassSignature", code)?;
        // SAFETY: JVMTI allocated the string for this caller.
        Ok(unsafe { self.take_string(signature) }.unwrap_or_default())
    }

    /// The current thread, as a local reference: the virtual thread if one is mounted.
    ///
    /// # Safety
    ///
    /// The current thread must be attached to the VM.
    pub unsafe fn current_thread(self) -> Result<jobject, JvmtiError> {
        let mut thread = null_mut();
        // SAFETY: the current thread is attached, by the contract; the out parameter is valid.
        let code = unsafe { self.table().get_current_thread()(self.as_raw(), &mut thread) };
        check("GetCurrentThread", code).map(|()| thread)
    }

    /// The youngest Java frames of the current thread, `most` at most: each method, and the bytecode index,
    /// which is -1 in a native method.
    pub fn stack_trace(self, most: usize) -> Result<Vec<(jmethodID, i64)>, JvmtiError> {
        let mut frames = vec![RawFrame { method: null_mut(), location: 0 }; most];
        let mut count = 0;
        // SAFETY: null stands for the current thread. The array has room for the frames, and the out
        // parameter is valid.
        let code = unsafe {
            let room = jint::try_from(most).unwrap_or(jint::MAX);
            self.table().get_stack_trace()(
                self.as_raw(),
                null_mut(),
                0,
                room,
                frames.as_mut_ptr(),
                &mut count,
            )
        };
        check("GetStackTrace", code)?;
        frames.truncate(usize::try_from(count).unwrap_or(0));
        Ok(frames.into_iter().map(|frame| (frame.method, frame.location)).collect())
    }

    /// A thread's name and other properties.
    ///
    /// # Safety
    ///
    /// `thread` must be a reference to a thread that is valid on this thread, or null for the current thread.
    pub unsafe fn thread_info(self, thread: jobject) -> Result<ThreadInfo, JvmtiError> {
        let mut info = RawThreadInfo {
            name: null_mut(),
            priority: 0,
            is_daemon: false,
            thread_group: null_mut(),
            context_class_loader: null_mut(),
        };
        // SAFETY: the contract gives a reference to a thread that is valid here, or null; the out parameter
        // is valid.
        let code = unsafe { self.table().get_thread_info()(self.as_raw(), thread, &mut info) };
        check("GetThreadInfo", code)?;
        // SAFETY: JVMTI allocated the name for this caller.
        let name = unsafe { self.take_string(info.name) };
        Ok(ThreadInfo {
            name: name.unwrap_or_default(),
            daemon: info.is_daemon,
            thread_group: info.thread_group,
            context_class_loader: info.context_class_loader,
        })
    }

    /// Starts `main(…, argument)` on a new daemon thread that stays out of Java's view of running threads.
    ///
    /// # Safety
    ///
    /// `thread` must be a new, unstarted `java.lang.Thread`; `main` must take `argument` and not unwind.
    pub unsafe fn run_agent_thread(
        self,
        thread: jobject,
        main: AgentThreadMain,
        argument: *const c_void,
    ) -> Result<(), JvmtiError> {
        let table = self.live_table("RunAgentThread")?;
        // SAFETY: the contract gives a new, unstarted thread, and a function that takes `argument` and does
        // not unwind.
        let code =
            unsafe { table.run_agent_thread()(self.as_raw(), thread, main, argument, NORMAL_PRIORITY) };
        check("RunAgentThread", code)
    }

    /// Sets the mean number of bytes between two sampled allocations of a thread; 0 samples all allocations.
    pub fn set_heap_sampling_interval(self, bytes: jint) -> Result<(), JvmtiError> {
        // SAFETY: the function takes a number.
        let code = unsafe { self.table().set_heap_sampling_interval()(self.as_raw(), bytes) };
        check("SetHeapSamplingInterval", code)
    }

    /// Stores one pointer in the environment.
    pub fn set_local_storage(self, data: Option<NonNull<c_void>>) -> Result<(), JvmtiError> {
        let data = data.map_or(null_mut(), NonNull::as_ptr);
        // SAFETY: JVMTI only keeps the pointer.
        let code = unsafe { self.table().set_environment_local_storage()(self.as_raw(), data) };
        check("SetEnvironmentLocalStorage", code)
    }

    /// The pointer stored in the environment.
    pub fn local_storage(self) -> Result<Option<NonNull<c_void>>, JvmtiError> {
        let mut data = null_mut();
        // SAFETY: the out parameter is valid.
        let code = unsafe { self.table().get_environment_local_storage()(self.as_raw(), &mut data) };
        check("GetEnvironmentLocalStorage", code).map(|()| NonNull::new(data))
    }

    /// Disposes of the environment: its events stop and its capabilities are relinquished.
    ///
    /// # Safety
    ///
    /// Neither this environment nor a copy of it may be used afterwards.
    pub unsafe fn dispose(self) -> Result<(), JvmtiError> {
        // SAFETY: by the contract neither this environment nor a copy is used afterwards.
        let code = unsafe { self.table().dispose_environment()(self.as_raw()) };
        check("DisposeEnvironment", code)
    }

    /// Allocates memory that JVMTI frees or passes on.
    pub fn allocate(self, size: usize) -> Result<NonNull<u8>, JvmtiError> {
        let mut memory = null_mut();
        // SAFETY: the out parameter is valid.
        let code = unsafe { self.table().allocate()(self.as_raw(), size as i64, &mut memory) };
        check("Allocate", code)?;
        NonNull::new(memory).ok_or(JvmtiError { function: "Allocate", code: 0 })
    }

    /// Frees memory that JVMTI allocated.
    ///
    /// # Safety
    ///
    /// `memory` must be null or come from this environment, and must not be used afterwards.
    pub unsafe fn deallocate(self, memory: *mut u8) {
        // SAFETY: by the contract the memory is null or belongs to this environment, and is not used
        // afterwards. With such a pointer Deallocate cannot fail.
        unsafe { self.table().deallocate()(self.as_raw(), memory) };
    }

    /// Copies and frees an array.
    ///
    /// # Safety
    ///
    /// `array` must be null or an array of `count` elements that JVMTI allocated for this caller.
    unsafe fn take_array<T: Copy>(self, array: *mut T, count: jint) -> Vec<T> {
        if array.is_null() {
            return Vec::new();
        }
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the contract gives an array of `count` elements.
        let copy = unsafe { std::slice::from_raw_parts(array, count) }.to_vec();
        // SAFETY: JVMTI allocated the array for the caller, by the contract; only the copy is used from here
        // on.
        unsafe { self.deallocate(array.cast()) };
        copy
    }

    /// Copies and frees a modified UTF-8 string; `None` for null.
    ///
    /// # Safety
    ///
    /// `string` must be null or a C string that JVMTI allocated for this caller.
    unsafe fn take_string(self, string: *mut c_char) -> Option<String> {
        let start = NonNull::new(string)?;
        // SAFETY: the contract gives a C string.
        let copy: CString = unsafe { CStr::from_ptr(start.as_ptr()) }.to_owned();
        // SAFETY: JVMTI allocated the string for the caller, by the contract; only the copy is used from here
        // on.
        unsafe { self.deallocate(string.cast()) };
        Some(modified_utf8::decode(copy.as_bytes()).into_owned())
    }
}

pub(super) fn check(function: &'static str, code: jint) -> Result<(), JvmtiError> {
    if code == 0 { Ok(()) } else { Err(JvmtiError { function, code }) }
}

//! Rebinds a native method to another function, and back.
//!
//! The VM does not report the function that a native method is bound to. The function's address is the word
//! after the `Method` (`Method::native_function_addr`, oops/method.hpp, 11-25). JNI's RegisterNatives sets a
//! new one, so that compiled wrappers, which embed the old address, are regenerated. The VM warns if code of
//! another class loader rebinds a platform method (`jni_RegisterNatives`, prims/jni.cpp, 17-25). A class of
//! the agent in the boot loader therefore makes the call.

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::OnceLock;

use jni::sys::{JNIEnv, JNINativeMethod, jclass};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::MethodLayout;
use parking_lot::Mutex;
use thiserror::Error;

use super::boot_classes::{BootClassError, class_with_native};
use super::class_file::binding_class::{BIND, BIND_NATIVE, binding_class};
use super::{class_methods, live_phase};

/// The reason why a native method was not bound to another function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RebindError {
    /// This VM has no such method, or it is not native.
    #[error("this VM has no such native method")]
    NoSuchMethod,
    /// The method is bound to a function outside the VM.
    #[error("another agent of this process has replaced it")]
    Replaced,
    /// The agent's class in the boot loader cannot be prepared.
    #[error(transparent)]
    Class(BootClassError),
    /// VMDeath has begun.
    #[error("the VM is ending")]
    Ended,
    /// RegisterNatives had no effect.
    #[error("the VM refuses to bind it")]
    Refused,
}

/// A native instance method of a class in the boot loader.
#[derive(Clone, Copy, Debug)]
pub struct NativeMethod {
    /// The class, with slashes.
    pub class: &'static CStr,
    /// The method's name; the method is not static.
    pub name: &'static CStr,
    /// The method's descriptor.
    pub descriptor: &'static CStr,
}

/// A method and the function that the VM bound it to.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    method: NativeMethod,
    /// The address of the word after the `Method`.
    word: u64,
    /// The address of the VM's function.
    original: u64,
}

impl Binding {
    /// Looks up the function that the VM has bound the method to.
    ///
    /// # Safety
    ///
    /// `env` must belong to the current thread, which has no pending exception, and `layout` must describe
    /// that VM.
    pub unsafe fn find(
        env: *mut JNIEnv,
        memory: &dyn Memory,
        layout: &MethodLayout,
        method: NativeMethod,
    ) -> Result<Self, RebindError> {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception. Names are C
        // strings, and null references are not used.
        let found = unsafe {
            let class = ((**env).v1_2.FindClass)(env, method.class.as_ptr());
            let mut found = None;
            if !class.is_null() {
                let (name, descriptor) = (method.name, method.descriptor);
                let id = ((**env).v1_2.GetMethodID)(env, class, name.as_ptr(), descriptor.as_ptr());
                found = class_methods::of_id(memory, layout, id, class, name, descriptor);
            }
            ((**env).v1_2.ExceptionClear)(env);
            ((**env).v1_2.DeleteLocalRef)(env, class);
            found
        };
        let found = found.ok_or(RebindError::NoSuchMethod)?;
        let word = found + u64::from(layout.method_size);
        let original = memory.load_u64(word).ok_or(RebindError::NoSuchMethod)?;
        // SAFETY: `env` belongs to the current thread by this function's contract.
        let vms = unsafe { (**env).v1_2.GetVersion } as *const c_void;
        if object_base(original as *const c_void) != object_base(vms) {
            return Err(RebindError::Replaced);
        }
        Ok(Self { method, word, original })
    }

    /// The address of the VM's function.
    pub const fn original(&self) -> u64 {
        self.original
    }

    /// Binds the method to `function`.
    ///
    /// # Safety
    ///
    /// `env` as for [`Binding::find`]. `function` must have the method's signature and stay mapped.
    pub unsafe fn bind(
        &self,
        env: *mut JNIEnv,
        memory: &dyn Memory,
        function: *mut c_void,
    ) -> Result<(), RebindError> {
        // SAFETY: the contract gives the current thread's `env`, and a function that has the method's
        // signature and stays mapped.
        unsafe { register(env, self.method, function) }?;
        (memory.load_u64(self.word) == Some(function as u64)).then_some(()).ok_or(RebindError::Refused)
    }

    /// Binds the method to the VM's function again, if it is still bound to `function`.
    ///
    /// # Safety
    ///
    /// As for [`Binding::bind`].
    pub unsafe fn unbind(
        &self,
        env: *mut JNIEnv,
        memory: &dyn Memory,
        function: *mut c_void,
    ) -> Result<(), RebindError> {
        if memory.load_u64(self.word) != Some(function as u64) {
            return Err(RebindError::Replaced);
        }
        // SAFETY: the contract gives the current thread's `env`; the VM itself bound the method to
        // `original`.
        unsafe { self.bind(env, memory, self.original as *mut c_void) }
    }
}

/// The base address of the loaded object that contains `address`; null if there is none.
fn object_base(address: *const c_void) -> *mut c_void {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: null_mut(),
    };
    // SAFETY: dladdr takes any address and fills `info`.
    if unsafe { libc::dladdr(address, &mut info) } == 0 { null_mut() } else { info.dli_fbase }
}

/// The registration that the boot loader's class is about to perform.
static PENDING: Mutex<Option<(NativeMethod, FunctionAddress)>> = Mutex::new(None);

#[derive(Clone, Copy)]
struct FunctionAddress(usize);

/// Makes the boot loader's class call RegisterNatives.
///
/// # Safety
///
/// As for [`Binding::bind`].
unsafe fn register(env: *mut JNIEnv, method: NativeMethod, function: *mut c_void) -> Result<(), RebindError> {
    // RegisterNatives may stop the VM to discard compiled wrappers, and the class's method is Java code.
    if live_phase::has_ended() {
        return Err(RebindError::Ended);
    }
    // SAFETY: `env` belongs to the current thread, which has no pending exception, by this function's
    // contract.
    let class = unsafe { registering_class(env) }?;
    // One registration at a time: a concurrent caller would overwrite `PENDING` before the first one takes
    // it.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock();
    *PENDING.lock() = Some((method, FunctionAddress(function as usize)));
    // SAFETY: `class` is the agent's own, and its method takes nothing and returns nothing.
    unsafe {
        let entry = ((**env).v1_2.GetStaticMethodID)(env, class.0, BIND.as_ptr(), c"()V".as_ptr());
        if !entry.is_null() {
            ((**env).v1_2.CallStaticVoidMethodA)(env, class.0, entry, std::ptr::null());
        }
        if ((**env).v1_2.ExceptionCheck)(env) {
            ((**env).v1_2.ExceptionClear)(env);
        }
    }
    Ok(())
}

unsafe extern "system" fn bind0(env: *mut JNIEnv, _: jclass) {
    // After a panic the method is not bound, which `Binding::bind` detects.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let Some((method, function)) = PENDING.lock().take() else { return };
        // SAFETY: the VM passes the current thread's environment. By the contract of `register` the function
        // has the method's signature and stays mapped.
        unsafe { register_natives(env, method, function) };
    }));
}

/// # Safety
///
/// As for [`Binding::bind`].
unsafe fn register_natives(env: *mut JNIEnv, method: NativeMethod, function: FunctionAddress) {
    let native = JNINativeMethod {
        name: method.name.as_ptr().cast_mut(),
        signature: method.descriptor.as_ptr().cast_mut(),
        fnPtr: function.0 as *mut c_void,
    };
    // SAFETY: the contract gives the current thread's `env`, and a function that has the method's signature
    // and stays mapped; null references are not used.
    unsafe {
        let class = ((**env).v1_2.FindClass)(env, method.class.as_ptr());
        if !class.is_null() {
            ((**env).v1_2.RegisterNatives)(env, class, &raw const native, 1);
        }
    }
}

/// A global reference to the class, which lives until the process ends.
#[derive(Clone, Copy)]
struct RegisteringClass(jclass);

// SAFETY: global references may be used from any thread.
unsafe impl Send for RegisteringClass {}
// SAFETY: global references may be used from any thread.
unsafe impl Sync for RegisteringClass {}

/// # Safety
///
/// `env` must belong to the current thread, which has no pending exception.
unsafe fn registering_class(env: *mut JNIEnv) -> Result<RegisteringClass, RebindError> {
    static CLASS: OnceLock<Result<RegisteringClass, BootClassError>> = OnceLock::new();
    let made = CLASS.get_or_init(|| {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception. `bind0` has the
        // native method's signature, and the library is never unloaded.
        let class = unsafe { class_with_native(env, BIND_NATIVE, binding_class(), bind0 as *mut c_void) }?;
        // SAFETY: `env` belongs to the current thread, and the local reference, which this function owns, is
        // live.
        let global = unsafe {
            let global = ((**env).v1_2.NewGlobalRef)(env, class);
            ((**env).v1_2.DeleteLocalRef)(env, class);
            global
        };
        let class = (!global.is_null()).then_some(RegisteringClass(global));
        class.ok_or(BootClassError::Class(BIND_NATIVE.class))
    });
    made.map_err(RebindError::Class)
}

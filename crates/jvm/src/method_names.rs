//! Names of methods by jmethodID, from JVMTI, for a JVM of unknown layout. Provides no line numbers.

use std::collections::HashMap;
use std::sync::Arc;

use jni::sys::{JNIEnv, JavaVM, jint, jmethodID};

use super::jvmti::Jvmti;
use super::jvmti_error::JvmtiError;

/// The names of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName {
    /// The class's name with slashes.
    pub class: String,
    /// The method's name.
    pub method: String,
    /// The method's descriptor.
    pub descriptor: String,
}

/// A cache of the queried names. An id refers to the same method for as long as the VM runs.
pub struct MethodNames {
    jvmti: Jvmti,
    java_vm: *mut JavaVM,
    names: HashMap<u64, Option<Arc<MethodName>>>,
}

// SAFETY: a JavaVM and a JVMTI environment may be used from any thread.
unsafe impl Send for MethodNames {}

impl MethodNames {
    /// # Safety
    /// `java_vm` must be the JavaVM of this process.
    pub unsafe fn new(jvmti: Jvmti, java_vm: *mut JavaVM) -> Self {
        Self { jvmti, java_vm, names: HashMap::new() }
    }

    /// The method with this id; `None` if its class is unloaded, or the current thread is not attached to the
    /// VM. Queries the VM, which may wait for a safepoint.
    pub fn get(&mut self, id: u64) -> Option<Arc<MethodName>> {
        if let Some(known) = self.names.get(&id) {
            return known.clone();
        }
        let name = self.ask(id as jmethodID).ok().flatten().map(Arc::new);
        self.names.insert(id, name.clone());
        name
    }

    fn ask(&self, id: jmethodID) -> Result<Option<MethodName>, JvmtiError> {
        let Some(env) = self.current_env() else { return Ok(None) };
        // SAFETY: the VM checks an id before using it (Method::checked_resolve_jmethod_id). This thread owns
        // the reference to the class, and does not use it after its deletion.
        unsafe {
            let (method, descriptor) = self.jvmti.method_name(id)?;
            let class = self.jvmti.method_class(id)?;
            let signature = self.jvmti.class_signature(class);
            ((**env).v1_2.DeleteLocalRef)(env, class);
            let signature = signature?;
            let class = signature.strip_prefix('L').and_then(|name| name.strip_suffix(';'));
            Ok(Some(MethodName { class: class.unwrap_or(&signature).to_owned(), method, descriptor }))
        }
    }

    fn current_env(&self) -> Option<*mut JNIEnv> {
        let mut env = std::ptr::null_mut();
        // SAFETY: the VM outlives `self`; the out parameter is valid.
        let code: jint =
            unsafe { ((**self.java_vm).v1_2.GetEnv)(self.java_vm, &raw mut env, jni::sys::JNI_VERSION_1_8) };
        (code == jni::sys::JNI_OK).then_some(env.cast())
    }
}

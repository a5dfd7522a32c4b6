//! Calls Java methods by name, for everything that neither JNI nor JVMTI offers a function for.
//!
//! JNI checks no access: members of packages that a module does not export can be called too (JNI
//! specification, "Accessing Fields and Methods"). References are local references of the frame that
//! [`in_frame`] pushes.

use std::ffi::CStr;
use std::ptr;

use jni::sys::{JNI_TRUE, JNIEnv, jboolean, jclass, jlong, jobject, jvalue};
use thiserror::Error;

use super::modified_utf8;

/// The reason why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// The VM has no such class.
    #[error("there is no class {0}")]
    NoClass(String),
    /// The class has no such method.
    #[error("there is no method {0}")]
    NoMethod(String),
    /// The method threw; the exception's text.
    #[error("{0}")]
    Thrown(String),
}

/// The current thread's JNI environment, with functions that call methods. No exception is pending before or
/// after a call.
#[derive(Clone, Copy, Debug)]
pub struct Java(*mut JNIEnv);

/// Runs `body` in a local reference frame of its own. All local references end with the frame.
///
/// # Safety
///
/// `env` must belong to the current thread, which has no pending exception, in the VM's live phase. `body`
/// must use each reference according to its type, and let none escape.
pub unsafe fn in_frame<T>(env: *mut JNIEnv, body: impl FnOnce(Java) -> T) -> T {
    // SAFETY: the contract gives the current thread's `env`, without a pending exception. The frame is popped
    // only if it was pushed.
    unsafe {
        let is_made = ((**env).v1_2.PushLocalFrame)(env, 16) == 0;
        let result = body(Java(env));
        ((**env).v1_2.ExceptionClear)(env);
        if is_made {
            ((**env).v1_2.PopLocalFrame)(env, ptr::null_mut());
        }
        result
    }
}

/// Deletes a global reference that [`Java::keep`] returned.
///
/// # Safety
///
/// As for [`in_frame`]. The reference must not be used afterwards.
pub unsafe fn release_global(env: *mut JNIEnv, kept: jobject) {
    // SAFETY: the contract gives the current thread's `env`, and a global reference that is not used
    // afterwards.
    unsafe { ((**env).v1_2.DeleteGlobalRef)(env, kept) };
}

/// A static method that returns a `long`.
#[derive(Clone, Copy, Debug)]
pub struct LongMethod {
    class: jclass,
    method: jni::sys::jmethodID,
}

impl LongMethod {
    /// Calls the method; 0 if it throws.
    ///
    /// # Safety
    ///
    /// As for [`in_frame`]. The method's class must still be referenced.
    pub unsafe fn call(self, env: *mut JNIEnv) -> jlong {
        // SAFETY: the contract gives the current thread's `env`, and a class that is still referenced.
        // `method` belongs to the class and takes nothing.
        unsafe {
            let value = ((**env).v1_2.CallStaticLongMethodA)(env, self.class, self.method, ptr::null());
            // -Xcheck:jni requires a check for exceptions before the next call, even after a method that
            // never throws.
            if Java(env).clear() { 0 } else { value }
        }
    }
}

impl Java {
    /// Looks up a class by its name with slashes.
    pub fn class(self, name: &CStr) -> Result<jclass, CallError> {
        // SAFETY: the environment belongs to the current thread, by the contract of `in_frame`.
        let class = unsafe { ((**self.0).v1_2.FindClass)(self.0, name.as_ptr()) };
        self.clear();
        let missing = || CallError::NoClass(name.to_string_lossy().replace('/', "."));
        if class.is_null() { Err(missing()) } else { Ok(class) }
    }

    /// Creates a string.
    pub fn string(self, text: &str) -> Result<jobject, CallError> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let length = jni::sys::jint::try_from(units.len()).unwrap_or(jni::sys::jint::MAX);
        // SAFETY: the environment belongs to the current thread, by the contract of `in_frame`; `units` has
        // `length` elements.
        let string = unsafe { ((**self.0).v1_2.NewString)(self.0, units.as_ptr(), length) };
        self.checked(string)
    }

    /// Calls a static method that returns an object.
    ///
    /// # Safety
    ///
    /// The arguments must be of the signature's types, and all references live.
    pub unsafe fn call_static(
        self,
        class: jclass,
        (name, signature): (&CStr, &CStr),
        arguments: &[jvalue],
    ) -> Result<jobject, CallError> {
        // SAFETY: the contract gives live references, and arguments of the signature's types. The method is
        // of this class and signature.
        unsafe {
            let functions = &(**self.0).v1_2;
            let method = (functions.GetStaticMethodID)(self.0, class, name.as_ptr(), signature.as_ptr());
            self.found(method.is_null(), name)?;
            self.checked((functions.CallStaticObjectMethodA)(self.0, class, method, arguments.as_ptr()))
        }
    }

    /// Looks up a static method that takes nothing and returns a `long`, to be called later. Its class must
    /// stay referenced.
    ///
    /// # Safety
    ///
    /// `class` must be a live reference.
    pub unsafe fn long_method(self, class: jclass, name: &CStr) -> Result<LongMethod, CallError> {
        // SAFETY: the contract gives a live reference to the class; the names are C strings.
        let method =
            unsafe { ((**self.0).v1_2.GetStaticMethodID)(self.0, class, name.as_ptr(), c"()J".as_ptr()) };
        self.found(method.is_null(), name)?;
        Ok(LongMethod { class, method })
    }

    /// Creates an object without calling a constructor.
    ///
    /// # Safety
    ///
    /// `class` must be a live reference to a class that can have objects.
    pub unsafe fn allocate(self, class: jclass) -> Result<jobject, CallError> {
        // SAFETY: the contract gives a live reference to a class.
        let object = unsafe { ((**self.0).v1_2.AllocObject)(self.0, class) };
        self.checked(object)
    }

    /// Calls a constructor.
    ///
    /// # Safety
    ///
    /// As for [`Java::call_static`].
    pub unsafe fn construct(
        self,
        class: jclass,
        signature: &CStr,
        arguments: &[jvalue],
    ) -> Result<jobject, CallError> {
        // SAFETY: the contract gives live references, and arguments of the signature's types. The constructor
        // belongs to this class and has this signature.
        unsafe {
            let functions = &(**self.0).v1_2;
            let method = (functions.GetMethodID)(self.0, class, c"<init>".as_ptr(), signature.as_ptr());
            self.found(method.is_null(), c"<init>")?;
            self.checked((functions.NewObjectA)(self.0, class, method, arguments.as_ptr()))
        }
    }

    /// Calls a method that returns an object, which may be null.
    ///
    /// # Safety
    ///
    /// As for [`Java::call_static`]; `object` must be a live reference, not null.
    pub unsafe fn call(
        self,
        object: jobject,
        (name, signature): (&CStr, &CStr),
        arguments: &[jvalue],
    ) -> Result<jobject, CallError> {
        // SAFETY: the contract gives a live `object`, live references, and arguments of the signature's
        // types. The method belongs to the object's class and has this signature.
        unsafe {
            let method = self.method_of(object, name, signature)?;
            let call = (**self.0).v1_2.CallObjectMethodA;
            self.checked(call(self.0, object, method, arguments.as_ptr()))
        }
    }

    /// Calls a method that takes nothing and returns a `boolean`.
    ///
    /// # Safety
    ///
    /// As for [`Java::call`].
    pub unsafe fn call_boolean(self, object: jobject, name: &CStr) -> Result<bool, CallError> {
        // SAFETY: the contract gives a live `object`; the method belongs to the object's class and takes
        // nothing.
        unsafe {
            let method = self.method_of(object, name, c"()Z")?;
            let call = (**self.0).v1_2.CallBooleanMethodA;
            let answer: jboolean = self.checked(call(self.0, object, method, ptr::null()))?;
            Ok(answer == JNI_TRUE)
        }
    }

    /// Calls a method that returns nothing.
    ///
    /// # Safety
    ///
    /// As for [`Java::call`].
    pub unsafe fn call_void(
        self,
        object: jobject,
        (name, signature): (&CStr, &CStr),
        arguments: &[jvalue],
    ) -> Result<(), CallError> {
        // SAFETY: the contract gives a live `object`, live references, and arguments of the signature's
        // types. The method belongs to the object's class and has this signature.
        unsafe {
            let method = self.method_of(object, name, signature)?;
            ((**self.0).v1_2.CallVoidMethodA)(self.0, object, method, arguments.as_ptr());
        }
        self.checked(())
    }

    /// A string's text; `None` for null.
    ///
    /// # Safety
    ///
    /// `string` must be null or a live reference to a string.
    pub unsafe fn text(self, string: jobject) -> Option<String> {
        if string.is_null() {
            return None;
        }
        // SAFETY: the contract gives a live reference to a string; the characters are copied before they are
        // released.
        unsafe {
            let functions = &(**self.0).v1_2;
            let chars = (functions.GetStringUTFChars)(self.0, string, ptr::null_mut());
            if chars.is_null() {
                self.clear();
                return None;
            }
            let text = modified_utf8::decode(CStr::from_ptr(chars).to_bytes()).into_owned();
            (functions.ReleaseStringUTFChars)(self.0, string, chars);
            Some(text)
        }
    }

    /// `toString()` of an object.
    ///
    /// # Safety
    ///
    /// As for [`Java::call`].
    pub unsafe fn to_text(self, object: jobject) -> Option<String> {
        // SAFETY: the contract gives a live `object`; the method belongs to the object's class and takes
        // nothing.
        unsafe {
            let method = self.method_of(object, c"toString", c"()Ljava/lang/String;").ok()?;
            let string = ((**self.0).v1_2.CallObjectMethodA)(self.0, object, method, ptr::null());
            // If `toString()` throws, the object has no text; the new exception is cleared and not reported.
            if self.clear() { None } else { self.text(string) }
        }
    }

    /// Makes a global reference, which lasts until [`release_global`].
    ///
    /// # Safety
    ///
    /// `object` must be a live reference.
    pub unsafe fn keep(self, object: jobject) -> jobject {
        // SAFETY: the contract gives a live reference.
        unsafe { ((**self.0).v1_2.NewGlobalRef)(self.0, object) }
    }

    /// # Safety
    ///
    /// `object` must be a live reference, not null.
    unsafe fn method_of(
        self,
        object: jobject,
        name: &CStr,
        signature: &CStr,
    ) -> Result<jni::sys::jmethodID, CallError> {
        // SAFETY: the contract gives a live `object`. The class's reference is deleted, or ends with the
        // frame.
        unsafe {
            let functions = &(**self.0).v1_2;
            let class = (functions.GetObjectClass)(self.0, object);
            let method = (functions.GetMethodID)(self.0, class, name.as_ptr(), signature.as_ptr());
            self.found(method.is_null(), name)?;
            (functions.DeleteLocalRef)(self.0, class);
            Ok(method)
        }
    }

    fn found(self, is_missing: bool, name: &CStr) -> Result<(), CallError> {
        self.clear();
        if is_missing { Err(CallError::NoMethod(name.to_string_lossy().into_owned())) } else { Ok(()) }
    }

    /// The value; if an exception is pending, clears it and returns it as an error.
    fn checked<T>(self, value: T) -> Result<T, CallError> {
        // SAFETY: the environment belongs to the current thread, by the contract of `in_frame`; the VM
        // returned the reference `thrown`.
        unsafe {
            let thrown = ((**self.0).v1_2.ExceptionOccurred)(self.0);
            if thrown.is_null() {
                return Ok(value);
            }
            self.clear();
            let text = self.to_text(thrown);
            Err(CallError::Thrown(text.unwrap_or_else(|| "an exception without a message".into())))
        }
    }

    /// Clears a pending exception. Returns whether there was one.
    fn clear(self) -> bool {
        // SAFETY: the environment belongs to the current thread, by the contract of `in_frame`.
        unsafe {
            let functions = &(**self.0).v1_2;
            let is_pending = (functions.ExceptionCheck)(self.0);
            (functions.ExceptionClear)(self.0);
            is_pending
        }
    }
}

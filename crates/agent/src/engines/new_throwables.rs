//! Exceptions where they are created. While the engine runs, the constructors of `java.lang.Throwable` call
//! the agent (`jvm::class_file::instrumented_class`). The VM, too, creates the exceptions that it throws by a
//! constructor, with these exceptions: StackOverflowError; preallocated OutOfMemoryErrors; and the
//! preallocated exceptions without a stack trace that compiled code throws where one of the same class has
//! been thrown often (`OmitStackTraceInFastThrow`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jni::sys::{JNIEnv, jclass, jobject};
use otlpprof_core::engine::Engine;
use otlpprof_core::record::{FrameKind, FrameRecord, Subject};
use otlpprof_jvm::boot_classes::{BootClassError, class_of_native, let_module_read};
use otlpprof_jvm::class_file::instrumented_class::{CREATED, instrumented_class};
use otlpprof_jvm::jvmti::{Jvmti, Phase};
use otlpprof_jvm::jvmti_error::JvmtiError;
use parking_lot::Mutex;
use thiserror::Error;

use super::gate::Gate;
use super::{class_hook, exception_turns, own_sample};
use crate::guarded::guarded;
use crate::guards::Guard;
use crate::resolve::FrameResolver;
use crate::vm::Vm;

const THROWABLE: &str = "java/lang/Throwable";
const CONSTRUCTOR: &str = "<init>";

static GATE: Gate = Gate::new();
/// Whether Throwable's constructors call the agent, or the VM has at least been given such a class.
static CALLS_AGENT: AtomicBool = AtomicBool::new(false);
/// By the number of an exception's class: the names of the class and of its superclasses up to Throwable. The
/// constructors of these classes run where such an exception is created.
static CONSTRUCTED: Mutex<Option<HashMap<Subject, Arc<[String]>>>> = Mutex::new(None);

/// The reasons for which constructors do not call the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum NotInstrumented {
    #[error("the VM refuses to attach this thread")]
    NotAttached,
    #[error("the VM does not pass class files to the agent ({0})")]
    NoHook(JvmtiError),
    #[error(transparent)]
    NoClass(BootClassError),
    #[error("the VM does not retransform Throwable ({0})")]
    Refused(JvmtiError),
    /// A line in the log has given the reason.
    #[error("Throwable is not changed")]
    NotChanged,
}

/// Makes Throwable's constructors call the agent.
pub(super) fn start(vm: &'static Vm) -> Result<Guard, NotInstrumented> {
    let env = vm.attach_as_daemon(c"otlpprof").ok_or(NotInstrumented::NotAttached)?;
    class_hook::listen(vm.jvmti, Engine::Exceptions, changed).map_err(NotInstrumented::NoHook)?;
    CALLS_AGENT.store(false, Ordering::Relaxed);
    GATE.open();
    // SAFETY: `env` belongs to the current thread.
    let changed = unsafe { prepare(vm.jvmti, env).and_then(|()| retransform(vm.jvmti, env)) };
    let started = changed
        .and_then(|()| CALLS_AGENT.load(Ordering::Relaxed).then_some(()).ok_or(NotInstrumented::NotChanged));
    // Dropped here if the class has not been changed.
    let guard = Guard::new(move || stop(vm));
    started.map(|()| guard)
}

/// Restores the original class.
fn stop(vm: &Vm) {
    GATE.close();
    class_hook::unlisten(vm.jvmti, Engine::Exceptions);
    // The class need not be restored when the VM is ending.
    if !CALLS_AGENT.load(Ordering::Relaxed) || vm.jvmti.phase() != Ok(Phase::Live) {
        return;
    }
    let Some(env) = vm.attach_as_daemon(c"otlpprof") else { return };
    // SAFETY: `env` belongs to the current thread.
    if let Err(error) = unsafe { retransform(vm.jvmti, env) } {
        log::warn!("exceptions: constructors of Throwable still call the agent: {error}");
    }
}

/// Defines the class that the constructors call, and lets Throwable's module read its module.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception.
unsafe fn prepare(jvmti: Jvmti, env: *mut JNIEnv) -> Result<(), NotInstrumented> {
    // SAFETY: the contract gives the current thread's `env`. `created` has the signature of the native method
    // `CREATED`, and the references are live until they are deleted.
    unsafe {
        let called = class_of_native(env, CREATED, created as *mut _).map_err(NotInstrumented::NoClass)?;
        let throwable = throwable_class(env);
        let read = let_module_read(jvmti, env, throwable, called);
        ((**env).v1_2.DeleteLocalRef)(env, throwable);
        ((**env).v1_2.DeleteLocalRef)(env, called);
        read.map_err(NotInstrumented::NoClass)
    }
}

/// Retransforms Throwable.
///
/// # Safety
/// As for [`prepare`].
unsafe fn retransform(jvmti: Jvmti, env: *mut JNIEnv) -> Result<(), NotInstrumented> {
    // SAFETY: the contract gives the current thread's `env`; the reference is live until it is deleted.
    unsafe {
        let throwable = throwable_class(env);
        let changed = jvmti.retransform_classes(&[throwable]);
        ((**env).v1_2.DeleteLocalRef)(env, throwable);
        changed.map_err(NotInstrumented::Refused)
    }
}

/// Returns a local reference to Throwable, which every JVM has loaded.
///
/// # Safety
/// As for [`prepare`].
unsafe fn throwable_class(env: *mut JNIEnv) -> jclass {
    // SAFETY: the contract gives the current thread's `env`; the name is a C string.
    unsafe { ((**env).v1_2.FindClass)(env, c"java/lang/Throwable".as_ptr()) }
}

/// Returns Throwable with constructors that call the agent, when it is retransformed; `None` for another
/// class.
fn changed(name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    if name != THROWABLE || !GATE.is_open() {
        return None;
    }
    let instrumented = instrumented_class(bytes);
    CALLS_AGENT.fetch_or(instrumented.is_ok(), Ordering::Relaxed);
    instrumented.inspect_err(|error| log::warn!("exceptions: Throwable is not changed: {error}")).ok()
}

/// The native method that the constructors call: an exception has been created.
unsafe extern "system" fn created(env: *mut JNIEnv, _class: jclass, exception: jobject) {
    if !GATE.is_open() || !exception_turns::is_due() {
        return;
    }
    let Some(_inside) = GATE.enter() else { return };
    guarded("a new exception", |vm| {
        // SAFETY: the VM passes the current thread's environment and a live reference, and has set the anchor
        // before it calls a native method.
        unsafe { exception_turns::sample(vm, env, || class_of(vm, env, exception)) };
    });
}

/// Returns the class of an exception, and remembers which classes' constructors run when such an exception is
/// created.
///
/// # Safety
/// As for [`own_sample::class_of`].
unsafe fn class_of(vm: &Vm, env: *mut JNIEnv, exception: jobject) -> Subject {
    // SAFETY: the contract gives the current thread's `env` and a live reference or null, where the VM allows
    // JNI calls.
    let subject = unsafe { own_sample::class_of(vm, env, exception) };
    let is_known = CONSTRUCTED.lock().as_ref().is_some_and(|known| known.contains_key(&subject));
    if !is_known && subject != Subject::NONE {
        // SAFETY: the contract gives the current thread's `env` and a live reference. No lock is held while
        // the VM is called.
        let names = unsafe { constructed_classes(vm.jvmti, env, exception) };
        CONSTRUCTED.lock().get_or_insert_default().insert(subject, names.into());
    }
    subject
}

/// Returns the names of an exception's class and its superclasses up to Throwable, in the VM's form.
///
/// # Safety
/// As for [`class_of`].
unsafe fn constructed_classes(jvmti: Jvmti, env: *mut JNIEnv, exception: jobject) -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: the contract gives `env` and a live `exception`; each reference is live until it is deleted,
    // once.
    unsafe {
        let mut class = ((**env).v1_2.GetObjectClass)(env, exception);
        while !class.is_null() {
            // JVMTI separates a hidden class's suffix by a dot (`Klass::signature_name`, oops/klass.cpp,
            // 17-25).
            let name = class_hook::name_of(jvmti, class).replace('.', "+");
            let is_last = name == THROWABLE;
            names.push(name);
            let superclass =
                if is_last { std::ptr::null_mut() } else { ((**env).v1_2.GetSuperclass)(env, class) };
            ((**env).v1_2.DeleteLocalRef)(env, class);
            class = superclass;
        }
    }
    names
}

/// Returns the frames of the code that created the exception, and their callers. The callees are left out:
/// the native method and the constructors, as in the exception's own stack trace
/// (`java_lang_Throwable::fill_in_stack_trace`, classfile/javaClasses.cpp, 11-25). Where the VM created the
/// exception, two kinds of stubs are left out, too: those by which Java code called the VM, and those by
/// which the VM called the constructor.
pub(super) fn from_creation<'a>(
    frames: &'a [FrameRecord],
    subject: Subject,
    resolver: &mut FrameResolver,
) -> &'a [FrameRecord] {
    let mut java = frames.iter().enumerate().filter(|(_, frame)| frame.has_java_method());
    let is_created = |class: &str, method: &str| (class, method) == (CREATED.class, CREATED.name);
    let Some((mut last, _)) = java.next().filter(|(_, frame)| resolver.is_method(frame, is_created)) else {
        return frames;
    };
    let known = CONSTRUCTED.lock().as_ref().and_then(|known| known.get(&subject).cloned());
    let constructs = |class: &str, method: &str| {
        let is_constructed = |known: &Arc<[String]>| known.iter().any(|name| name == class);
        method == CONSTRUCTOR && known.as_ref().map_or(class == THROWABLE, is_constructed)
    };
    for (at, frame) in java {
        if !resolver.is_method(frame, constructs) {
            break;
        }
        last = at;
    }
    let mut from = frames.get(last + 1..).unwrap_or_default();
    while let [first, rest @ ..] = from
        && first.kind == FrameKind::Stub
        && !rest.is_empty()
    {
        from = rest;
    }
    from
}

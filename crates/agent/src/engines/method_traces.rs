//! Long calls of chosen methods. While the engine runs, the bytecode of these methods is changed so that it
//! measures each call (`jvm::class_file`), and has the thread take a sample where a call took at least as
//! long as requested.
//!
//! Classes are changed by RetransformClasses only, also those that are loaded later: they are changed when
//! they have been prepared, before any of their code has run. So a class that the VM does not accept stays as
//! it is, and the program never sees an error of ours. The VM verifies the classes that it verifies at
//! loading: not those of the boot loader, unless -Xverify:all or a similar option asks for it
//! (`should_verify_for` in classfile/verifier.cpp, 11-25).
//!
//! Each change stops the VM, even if the class comes out unchanged (`VM_RedefineClasses` in
//! prims/jvmtiRedefineClasses.cpp, 11-25). So only classes with a chosen method are changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jni::sys::{JNIEnv, jclass, jlong, jobject};
use otlpprof_core::engine::Engine;
use otlpprof_core::record::{FrameRecord, Subject};
use otlpprof_jvm::boot_classes::{BootClassError, boot_class, class_of_native, let_module_read};
use otlpprof_jvm::class_file::ClassFileError;
use otlpprof_jvm::class_file::exit_class::{EXIT_CLASS, RECORD, exit_class};
use otlpprof_jvm::class_file::timed_class::{Chosen, Skipped, timed_class};
use otlpprof_jvm::jvmti::{Jvmti, Phase};
use otlpprof_jvm::jvmti_error::JvmtiError;
use otlpprof_jvm::jvmti_events::JvmtiEvent;
use otlpprof_jvm::local_references;
use otlpprof_model::types;
use otlpprof_options::TracedMethods;
use otlpprof_signal::clock::monotonic_ns;
use parking_lot::Mutex;

use super::class_hook::name_of;
use super::description::{EngineDescription, EssentialParts, NeededCapabilities, both, started};
use super::gate::Gate;
use super::{class_hook, own_sample};
use crate::guarded::guarded;
use crate::guards::Guard;
use crate::vm::Vm;

/// The engine `trace`.
pub(super) static ENGINE: EngineDescription = EngineDescription {
    replaces: &["jdk.MethodTrace"],
    needs: |_| NeededCapabilities::of("trace", NeededCapabilities::CHANGE_CLASSES),
    // ClassPrepare, which the engine enables too, has a callback of the agent's (`class_prepared`).
    set_callbacks: class_hook::set_callback,
    frames: |_, frames, _| from_traced_method(frames),
    ..EngineDescription::of(EssentialParts {
        is_on: |options| !options.trace.is_empty(),
        turn_off: |options| options.trace.clear(),
        profiles: |_| both([&types::TRACE_COUNT, &types::TRACE_TIME], 1),
        start: |vm, options| started([start(vm, &options.trace)]),
    })
};

static GATE: Gate = Gate::new();
/// CLOCK_MONOTONIC, in ns, when the engine started.
static STARTED_NS: AtomicU64 = AtomicU64::new(0);
const EVENTS: &[JvmtiEvent] = &[JvmtiEvent::ClassPrepare];
static TRACING: Mutex<Option<Arc<Tracing>>> = Mutex::new(None);
/// The number of classes that are changed in one stop of the VM.
const BATCH: usize = 64;

/// The traced methods, and the state of their classes.
struct Tracing {
    methods: Vec<Traced>,
    /// The outcome for each class, by its name in the form of class files. Several loaders may have a class
    /// of that name.
    classes: Mutex<HashMap<String, Outcome>>,
}

/// The outcome of the attempt to change a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// None of the class's methods can be timed.
    Unchanged,
    /// The class has timed methods.
    Changed,
    /// The VM has not accepted the class with timed methods. It must not be offered to the VM again when
    /// another agent retransforms the class.
    Refused,
}

struct Traced {
    methods: TracedMethods,
    /// Whether a class with such a method was loaded.
    was_found: AtomicBool,
}

/// Starts to trace these methods, if there are any.
fn start(vm: &'static Vm, methods: &[TracedMethods]) -> Option<Guard> {
    if methods.is_empty() {
        return None;
    }
    let env = vm.attach_as_daemon(c"otlpprof")?;
    // SAFETY: `env` belongs to the current thread.
    if let Err(error) = unsafe { make_classes(vm.jvmti, env) } {
        log::warn!("trace is off: {error}");
        return None;
    }
    let methods = methods.iter().cloned();
    let methods = methods.map(|methods| Traced { methods, was_found: AtomicBool::new(false) }).collect();
    let tracing = Arc::new(Tracing { methods, classes: Mutex::default() });
    *TRACING.lock() = Some(tracing.clone());
    let started = class_hook::listen(vm.jvmti, Engine::Trace, changed).and_then(|()| {
        STARTED_NS.store(monotonic_ns(), Ordering::Relaxed);
        let started = GATE.open_to(vm.jvmti, EVENTS);
        started.inspect_err(|_| class_hook::unlisten(vm.jvmti, Engine::Trace))
    });
    if let Err(error) = started {
        *TRACING.lock() = None;
        log::warn!("trace is off: the VM does not pass class files to the agent ({error})");
        return None;
    }
    // SAFETY: `env` belongs to the current thread; the classes are live.
    unsafe {
        let is_chosen =
            |name: &str, class| tracing.is_about(name) && tracing.has_methods_of(vm.jvmti, name, class);
        retransform_loaded(vm.jvmti, env, is_chosen, &|name, error| tracing.note_refusal(name, error));
    };
    Some(Guard::new(move || stop(vm)))
}

/// Restores the original classes.
fn stop(vm: &Vm) {
    let Some(tracing) = TRACING.lock().take() else { return };
    GATE.close_to(vm.jvmti, EVENTS);
    class_hook::unlisten(vm.jvmti, Engine::Trace);
    for traced in tracing.methods.iter().filter(|traced| !traced.was_found.load(Ordering::Relaxed)) {
        log::warn!("trace: no class with a method {} was loaded", traced.methods);
    }
    // Classes need not be restored when the VM is ending.
    if vm.jvmti.phase() != Ok(Phase::Live) {
        return;
    }
    let Some(env) = vm.attach_as_daemon(c"otlpprof") else { return };
    // The lock is not held while the VM restores them, since that waits for other threads.
    let classes = std::mem::take(&mut *tracing.classes.lock());
    // A refused class is restored too: another loader's class of that name may have been changed.
    let is_chosen = |name: &str, _| classes.get(name).is_some_and(|outcome| *outcome != Outcome::Unchanged);
    let refused = |name: &str, error| {
        let written = name.replace('/', ".");
        log::warn!(
            "trace: {written} keeps its timed methods: the VM does not retransform the class ({error})"
        );
    };
    // SAFETY: `env` belongs to the current thread.
    unsafe { retransform_loaded(vm.jvmti, env, is_chosen, &refused) };
}

fn tracing() -> Option<Arc<Tracing>> {
    TRACING.lock().clone()
}

/// Defines the classes that timed methods call, once in a process.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception.
unsafe fn make_classes(jvmti: Jvmti, env: *mut JNIEnv) -> Result<(), BootClassError> {
    static ARE_DEFINED: AtomicBool = AtomicBool::new(false);
    if ARE_DEFINED.load(Ordering::Acquire) {
        return Ok(());
    }
    let file = exit_class().map_err(|error| BootClassError::File(EXIT_CLASS, error))?;
    // SAFETY: the contract gives the current thread's `env`. `record` has the signature of the native method
    // `RECORD`, and the references are live until they are deleted.
    unsafe {
        let recording = class_of_native(env, RECORD, record as *mut _)?;
        let called = boot_class(env, EXIT_CLASS, &file).ok_or(BootClassError::Class(EXIT_CLASS));
        let read = called.and_then(|called| {
            let read = let_module_read(jvmti, env, called, recording);
            ((**env).v1_2.DeleteLocalRef)(env, called);
            read
        });
        ((**env).v1_2.DeleteLocalRef)(env, recording);
        read?;
    }
    ARE_DEFINED.store(true, Ordering::Release);
    Ok(())
}

/// The native method that timed methods call at the end of a call that took at least as long as requested.
unsafe extern "system" fn record(env: *mut JNIEnv, _class: jclass, took_ns: jlong) {
    let Some(_inside) = GATE.enter() else { return };
    // `took_ns` is by Java's clock, which a preloaded library may have made jump. No measured call began
    // before the engine, so the time since then is an upper bound.
    let since_start_ns = monotonic_ns().saturating_sub(STARTED_NS.load(Ordering::Relaxed));
    let took_ns = took_ns.max(0).cast_unsigned().min(since_start_ns);
    guarded("a traced call", |vm| {
        // SAFETY: the VM passes the current thread's environment, and has set the anchor before it calls a
        // native method.
        unsafe { own_sample::take(vm, env, Engine::Trace, [1.0, took_ns as f64], || Subject::NONE) };
    });
}

/// Returns the frames from the traced method on. Above the traced method are the frames of the two classes
/// that it calls.
fn from_traced_method(frames: &[FrameRecord]) -> &[FrameRecord] {
    let mut java = frames.iter().enumerate().filter(|(_, frame)| frame.has_java_method());
    java.nth(1).and_then(|(at, _)| frames.get(at + 1..)).unwrap_or(frames)
}

/// Retransforms the loaded classes that `is_chosen` selects by name or class. Calls `refused` for each class
/// that the VM refuses.
///
/// # Safety
/// `env` belongs to the current thread.
unsafe fn retransform_loaded(
    jvmti: Jvmti,
    env: *mut JNIEnv,
    is_chosen: impl Fn(&str, jobject) -> bool,
    refused: &dyn Fn(&str, JvmtiError),
) {
    let classes = jvmti.loaded_classes().unwrap_or_else(|error| {
        log::warn!("trace: the VM does not list the loaded classes ({error})");
        Vec::new()
    });
    // SAFETY: the contract gives the current thread's `env`.
    unsafe { local_references::expect(env, classes.len()) };
    let mut chosen = Vec::new();
    for class in classes {
        // SAFETY: the reference is this thread's own, and not used after its deletion.
        unsafe {
            if is_chosen(&name_of(jvmti, class), class) && jvmti.can_be_changed(class) == Ok(true) {
                chosen.push(class);
            } else {
                ((**env).v1_2.DeleteLocalRef)(env, class);
            }
        }
    }
    for batch in chosen.chunks(BATCH) {
        // SAFETY: the references are this thread's own, and not used after their deletion.
        unsafe {
            retransform(jvmti, batch, refused);
            for &class in batch {
                ((**env).v1_2.DeleteLocalRef)(env, class);
            }
        }
    }
}

/// Retransforms the classes together. If the VM refuses, retransforms each alone, and calls `refused` for
/// each class that the VM refuses.
///
/// # Safety
/// `classes` are live references to classes.
unsafe fn retransform(jvmti: Jvmti, classes: &[jobject], refused: &dyn Fn(&str, JvmtiError)) {
    // SAFETY: the contract requires live references to classes.
    match (unsafe { jvmti.retransform_classes(classes) }, classes) {
        (Ok(()), _) => {}
        (Err(error), [class]) => {
            // SAFETY: the contract requires live references to classes.
            refused(&unsafe { name_of(jvmti, *class) }, error);
        }
        // SAFETY: the contract requires live references to classes.
        (Err(_), _) => classes.iter().for_each(|class| unsafe { retransform(jvmti, &[*class], refused) }),
    }
}

/// Adds timing to the traced methods of a class that has been prepared. None of its methods has run yet.
///
/// # Safety
/// `class` is a live reference to that class.
pub(super) unsafe fn class_prepared(jvmti: Jvmti, class: jobject) {
    let Some(_inside) = GATE.enter() else { return };
    let Some(tracing) = tracing() else { return };
    // SAFETY: the contract requires a live reference to a class.
    unsafe {
        let name = name_of(jvmti, class);
        let is_chosen = tracing.is_about(&name) && tracing.has_methods_of(jvmti, &name, class);
        if is_chosen && jvmti.can_be_changed(class) == Ok(true) {
            retransform(jvmti, &[class], &|name, error| tracing.note_refusal(name, error));
        }
    }
}

/// Returns the class with timed methods, when it is retransformed; `None` for a class without traced methods.
fn changed(name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let _inside = GATE.enter()?;
    tracing()?.timed(name, bytes)
}

impl Tracing {
    /// Whether classes of this name may have traced methods.
    fn is_about(&self, class: &str) -> bool {
        ![EXIT_CLASS, RECORD.class].contains(&class)
            && self.methods.iter().any(|traced| traced.methods.are_in(class))
            && self.classes.lock().get(class) != Some(&Outcome::Refused)
    }

    /// Returns the pattern that a method of a class matches, if there is one.
    fn find(&self, class: &str, method: &str) -> Option<&Traced> {
        let is_it = |traced: &&Traced| traced.methods.are_in(class) && traced.methods.are_called(method);
        self.methods.iter().find(is_it)
    }

    /// Whether the class `class` of this name has a traced method. `false` if it has not been prepared.
    ///
    /// # Safety
    /// `class` is a live reference to the class.
    unsafe fn has_methods_of(&self, jvmti: Jvmti, name: &str, class: jobject) -> bool {
        // SAFETY: the contract requires a live reference to a class, so that the ids denote its methods.
        unsafe {
            let methods = jvmti.class_methods(class).unwrap_or_default();
            let is_traced = |(method, _): (String, String)| self.find(name, &method).is_some();
            methods.into_iter().any(|method| jvmti.method_name(method).is_ok_and(is_traced))
        }
    }

    /// Records that the VM does not accept a class with timed methods, and logs it.
    fn note_refusal(&self, class: &str, error: JvmtiError) {
        self.classes.lock().insert(class.to_owned(), Outcome::Refused);
        let written = class.replace('/', ".");
        log::warn!("trace: {written} is not traced: the VM rejects the class with timed methods ({error})");
    }

    /// Returns the class with timed methods, if it has traced methods that can be timed.
    fn timed(&self, class: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        if !self.is_about(class) {
            return None;
        }
        let choose = |method: &str| {
            let traced = self.find(class, method)?;
            traced.was_found.store(true, Ordering::Relaxed);
            Some(i64::try_from(traced.methods.shortest.as_nanos()).unwrap_or(i64::MAX))
        };
        let result = timed_class(bytes, choose);
        // Another agent has retransformed a class without a traced method.
        if result.as_ref().is_ok_and(|(_, chosen)| chosen.is_empty()) {
            return None;
        }
        let is_changed = matches!(result, Ok((Some(_), _)));
        let before = {
            let mut classes = self.classes.lock();
            let before = classes.get(class).copied();
            if before.is_none() || is_changed {
                let outcome = if is_changed { Outcome::Changed } else { Outcome::Unchanged };
                classes.insert(class.to_owned(), outcome);
            }
            before
        };
        if before.is_none() {
            self.log_left_out(class, &result);
        }
        result.ok()?.0
    }

    /// Logs which of the chosen methods of a class are not traced, and why.
    fn log_left_out(&self, class: &str, result: &Result<(Option<Vec<u8>>, Vec<Chosen>), ClassFileError>) {
        let written = class.replace('/', ".");
        let chosen = match result {
            Ok((_, chosen)) => chosen,
            Err(error) => return log::warn!("trace: {written} is not traced: {error}"),
        };
        for Chosen { name, skipped } in chosen {
            match skipped {
                None => {}
                Some(Skipped::NoCode)
                    if self.find(class, name).is_some_and(|traced| !traced.methods.are_named()) => {}
                Some(Skipped::NoCode) => {
                    log::warn!("trace: {written}.{name} is not traced: it is native or abstract");
                }
                Some(Skipped::Code(error)) => log::warn!("trace: {written}.{name} is not traced: {error}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_the_vm_has_refused_and_those_without_such_a_method_stay_as_they_are() {
        let path = format!("{}/programs/UserLoop.class", otlpprof_testkit_products::TEST_CLASSES);
        let bytes = std::fs::read(path).unwrap();
        let methods = ["programs.User*.burn", "programs.*.nothing"];
        let methods = methods.map(|text| Traced {
            methods: TracedMethods::parse(text).unwrap(),
            was_found: AtomicBool::new(false),
        });
        let tracing = Tracing { methods: methods.into(), classes: Mutex::default() };
        let outcome = |class| tracing.classes.lock().get(class).copied();
        // The second pattern matches the class's name, but none of its methods.
        assert_eq!((tracing.timed("programs/Other", &bytes), outcome("programs/Other")), (None, None));
        let timed = tracing.timed("programs/UserLoop", &bytes).unwrap();
        assert!(timed.len() > bytes.len());
        assert_eq!(outcome("programs/UserLoop"), Some(Outcome::Changed));
        tracing.note_refusal("programs/UserLoop", JvmtiError { function: "RetransformClasses", code: 62 });
        assert_eq!(tracing.timed("programs/UserLoop", &bytes), None);
        assert_eq!(outcome("programs/UserLoop"), Some(Outcome::Refused));
    }
}

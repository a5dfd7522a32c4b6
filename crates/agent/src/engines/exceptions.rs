//! Exceptions, sampled where they are created (`new_throwables`) or, if requested, where they are thrown, by
//! JVMTI's Exception event, caught or not.
//!
//! The VM makes each throw slow as soon as any agent has the capability for that event, in compiled code
//! above all: at each frame that the exception leaves, execution continues in the interpreter
//! (`exception_handler_for_pc_helper` in c1/c1_Runtime1.cpp, `OptoRuntime::handle_exception_C_helper` in
//! opto/runtime.cpp; `JvmtiExport::can_post_on_exceptions`, 11-25). The capability has this effect by itself,
//! and is never given back. So it is acquired only where throws are requested.

use jni::sys::{JNIEnv, jlong, jmethodID, jobject};
use otlpprof_jvm::jvmti::Capability;
use otlpprof_jvm::jvmti_env::RawEnv;
use otlpprof_jvm::jvmti_events::JvmtiEvent;
use otlpprof_model::{attribute_keys, types};
use otlpprof_options::Options;

use super::description::{EngineDescription, EssentialParts, NeededCapabilities, first, started};
use super::gate::Gate;
use super::{class_hook, exception_turns, new_throwables, own_sample};
use crate::guarded::guarded;
use crate::guards::Guard;
use crate::resolve::SubjectForm;
use crate::vm::Vm;

/// The engine `exceptions`.
pub(super) static ENGINE: EngineDescription = EngineDescription {
    subject: SubjectForm::Class(attribute_keys::EXCEPTION_TYPE),
    replaces: &["jdk.JavaExceptionThrow"],
    needs: |options| match options.exceptions_thrown {
        true => NeededCapabilities::of("exceptions.thrown", &[Capability::ExceptionEvents]),
        false => NeededCapabilities::of("exceptions", NeededCapabilities::CHANGE_CLASSES),
    },
    set_callbacks: |callbacks| {
        callbacks.exception = Some(exception);
        class_hook::set_callback(callbacks);
    },
    frames: |header, frames, resolver| new_throwables::from_creation(frames, header.subject, resolver),
    ..EngineDescription::of(EssentialParts {
        is_on: |options| options.exceptions.is_some(),
        turn_off: |options| options.exceptions = None,
        profiles: |options| first(&types::EXCEPTIONS, options.exceptions.unwrap_or(1)),
        start: |vm, options| started([start(vm, options)]),
    })
};

static GATE: Gate = Gate::new();
const EVENTS: &[JvmtiEvent] = &[JvmtiEvent::Exception];

/// Starts sampling exceptions, one in each `options.exceptions`, if requested.
fn start(vm: &'static Vm, options: &Options) -> Option<Guard> {
    exception_turns::begin(options.exceptions?);
    if !options.exceptions_thrown {
        return new_throwables::start(vm).inspect_err(|error| log::warn!("exceptions is off: {error}")).ok();
    }
    if let Err(error) = GATE.open_to(vm.jvmti, EVENTS) {
        log::warn!("exceptions is off: the VM does not report exceptions ({error})");
        return None;
    }
    Some(Guard::new(move || GATE.close_to(vm.jvmti, EVENTS)))
}

unsafe extern "system" fn exception(
    _: *mut RawEnv,
    env: *mut JNIEnv,
    _thread: jobject,
    _method: jmethodID,
    _bci: jlong,
    exception: jobject,
    _catching_method: jmethodID,
    _catching_bci: jlong,
) {
    let Some(_inside) = GATE.enter() else { return };
    if !exception_turns::is_due() {
        return;
    }
    guarded("Exception", |vm| {
        // SAFETY: the VM passes the current thread's environment and a live reference.
        unsafe { exception_turns::sample(vm, env, || own_sample::class_of(vm, env, exception)) };
    });
}

//! Exceptions, by JVMTI's Exception: where they are thrown, caught or not.

use std::sync::atomic::{AtomicU64, Ordering};

use jni::sys::{JNIEnv, jlong, jmethodID, jobject};

use super::gate::Gate;
use super::own_sample;
use crate::agent::callbacks::guarded;
use crate::agent::vm::Vm;
use crate::core::record::Engine;
use crate::jvm::jvmti_events::Event;
use crate::jvm::jvmti_table::RawEnv;

static GATE: Gate = Gate::new();
const EVENTS: &[Event] = &[Event::Exception];
/// Of so many exceptions one is sampled.
static PERIOD: AtomicU64 = AtomicU64::new(1);
static THROWN: AtomicU64 = AtomicU64::new(0);

/// Samples one of `period` exceptions; none for `None`.
pub(super) fn start(vm: &Vm, period: Option<u64>) {
    let Some(period) = period else { return };
    PERIOD.store(period.max(1), Ordering::Relaxed);
    THROWN.store(0, Ordering::Relaxed);
    if let Err(error) = GATE.open_to(vm.jvmti, EVENTS) {
        log::warn!("exceptions: the VM does not tell of them ({error})");
    }
}

pub(super) fn stop(vm: &Vm) {
    GATE.close_to(vm.jvmti, EVENTS);
}

pub(super) unsafe extern "system" fn exception(
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
    let period = PERIOD.load(Ordering::Relaxed);
    if !THROWN.fetch_add(1, Ordering::Relaxed).is_multiple_of(period) {
        return;
    }
    guarded("Exception", |agent| {
        // SAFETY: the VM passes the current thread's environment and a live reference.
        unsafe {
            let subject = || own_sample::class_of(agent, env, exception);
            own_sample::take(agent, env, Engine::Exceptions, [period as f64, 0.0], subject);
        }
    });
}

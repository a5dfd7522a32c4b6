//! Time for which threads wait to enter monitors, and for notifications of monitors that they own.
//!
//! The VM sends one event where a thread begins to wait and one where the wait has ended. A thread waits for
//! one thing at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jni::sys::{JNIEnv, jlong, jobject};
use otlpprof_core::engine::Engine;
use otlpprof_core::record::Owner;
use otlpprof_jvm::jvmti_env::RawEnv;
use otlpprof_jvm::jvmti_events::{EventCallbacks, JvmtiEvent};
use otlpprof_signal::clock::monotonic_ns;

use super::gate::Gate;
use super::own_sample;
use super::owners;
use super::wait_start::{self, WaitKind};
use crate::event_cost::counted;
use crate::guarded::guarded;
use crate::guards::Guard;
use crate::vm::Vm;

/// One kind of waiting.
struct WaitingKind {
    engine: Engine,
    events: [JvmtiEvent; 2],
    gate: Gate,
    /// The shortest wait that is recorded.
    shortest_ns: AtomicU64,
}

static ENTERING: WaitingKind = WaitingKind {
    engine: Engine::Lock,
    events: [JvmtiEvent::MonitorContendedEntered, JvmtiEvent::MonitorContendedEnter],
    gate: Gate::new(),
    shortest_ns: AtomicU64::new(0),
};

static NOTIFICATIONS: WaitingKind = WaitingKind {
    engine: Engine::Wait,
    events: [JvmtiEvent::MonitorWaited, JvmtiEvent::MonitorWait],
    gate: Gate::new(),
    shortest_ns: AtomicU64::new(0),
};

/// Starts recording waits of at least this length to enter monitors; `None`: none.
pub(super) fn start_entering(vm: &'static Vm, shortest: Option<Duration>) -> Option<Guard> {
    ENTERING.start(vm, shortest?)
}

/// Starts recording waits of at least this length for notifications; `None`: none.
pub(super) fn start_notifications(vm: &'static Vm, shortest: Option<Duration>) -> Option<Guard> {
    NOTIFICATIONS.start(vm, shortest?)
}

/// Enters the callbacks of waits to enter monitors.
pub(super) fn set_callbacks_of_entering(callbacks: &mut EventCallbacks) {
    callbacks.monitor_contended_enter = Some(monitor_contended_enter);
    callbacks.monitor_contended_entered = Some(monitor_contended_entered);
}

/// Enters the callbacks of waits for notifications.
pub(super) fn set_callbacks_of_notifications(callbacks: &mut EventCallbacks) {
    callbacks.monitor_wait = Some(monitor_wait);
    callbacks.monitor_waited = Some(monitor_waited);
}

impl WaitingKind {
    fn start(&'static self, vm: &'static Vm, shortest: Duration) -> Option<Guard> {
        self.shortest_ns.store(u64::try_from(shortest.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        if let Err(error) = self.gate.open_to(vm.jvmti, &self.events) {
            log::warn!("{}: the VM does not send monitor events ({error})", self.engine.name());
            return None;
        }
        Some(Guard::new(move || self.gate.close_to(vm.jvmti, &self.events)))
    }

    /// Notes that the current thread begins to wait.
    ///
    /// # Safety
    /// Called in an event of the VM's, with its arguments.
    unsafe fn begins(&self, vm: &Vm, env: *mut JNIEnv, thread: jobject, owner: impl FnOnce() -> Owner) {
        let Some(_inside) = self.gate.enter() else { return };
        // SAFETY: the contract requires the arguments of the VM's event.
        counted(|| unsafe { wait_start::note(vm, env, thread, WaitKind::Monitor, owner()) });
    }

    /// Records the current thread's wait for the monitor of `object`, which has ended.
    ///
    /// # Safety
    /// As for [`WaitingKind::begins`].
    unsafe fn ends(&self, vm: &Vm, env: *mut JNIEnv, thread: jobject, object: jobject) {
        let Some(_inside) = self.gate.enter() else { return };
        // SAFETY: the contract requires the arguments of the VM's event.
        let Some(wait) = (unsafe { wait_start::take(vm, env, thread, WaitKind::Monitor) }) else { return };
        let waited_ns = monotonic_ns().saturating_sub(wait.since_ns);
        if waited_ns >= self.shortest_ns.load(Ordering::Relaxed) {
            // SAFETY: the contract requires the arguments of the VM's event.
            unsafe {
                let subject = || own_sample::class_of(vm, env, object);
                own_sample::take_of_wait(vm, env, self.engine, waited_ns, wait.owner, subject);
            }
        }
    }
}

unsafe extern "system" fn monitor_contended_enter(
    _: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _object: jobject,
) {
    // SAFETY: the VM passes the current thread's environment and a live reference.
    guarded("MonitorContendedEnter", |vm| unsafe {
        ENTERING.begins(vm, env, thread, || owners::of_pending_monitor(vm, env));
    });
}

unsafe extern "system" fn monitor_contended_entered(
    _: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
) {
    // SAFETY: the VM passes the current thread's environment and live references.
    guarded("MonitorContendedEntered", |vm| unsafe { ENTERING.ends(vm, env, thread, object) });
}

unsafe extern "system" fn monitor_wait(
    _: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    _object: jobject,
    _timeout_ms: jlong,
) {
    // SAFETY: the VM passes the current thread's environment and a live reference.
    guarded("MonitorWait", |vm| unsafe { NOTIFICATIONS.begins(vm, env, thread, || Owner::NONE) });
}

unsafe extern "system" fn monitor_waited(
    _: *mut RawEnv,
    env: *mut JNIEnv,
    thread: jobject,
    object: jobject,
    _timed_out: jni::sys::jboolean,
) {
    // SAFETY: the VM passes the current thread's environment and live references.
    guarded("MonitorWaited", |vm| unsafe { NOTIFICATIONS.ends(vm, env, thread, object) });
}

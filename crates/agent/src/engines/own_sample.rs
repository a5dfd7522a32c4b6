//! The sample that a thread takes of itself, in an event of the VM's or in a native method.

use std::sync::atomic::Ordering;

use jni::sys::{JNIEnv, jobject};
use otlpprof_core::engine::Engine;
use otlpprof_core::record::{Owner, Subject};
use otlpprof_core::thread::ThreadRecord;
use otlpprof_sampling::threads::{CurrentThread, current};
use otlpprof_signal::clock::monotonic_ns;
use otlpprof_signal::counters::COUNTERS;
use otlpprof_signal::sample::{Sample, take_of_caller};
use otlpprof_signal::stretch::thin;

use crate::subjects::SUBJECTS;
use crate::vm::Vm;

/// Takes a sample of the current thread, unless the budget skips it, and other samples stand for it.
/// `subject` returns the class that the sample is about.
///
/// # Safety
/// Called in an event of the VM's, with the current thread's `env`.
pub(super) unsafe fn take(
    vm: &Vm,
    env: *mut JNIEnv,
    engine: Engine,
    values: [f64; 2],
    subject: impl FnOnce() -> Subject,
) {
    // SAFETY: the contract requires an event of the VM's, with the current thread's `env`.
    unsafe { take_thinned(vm, env, Sample { values, ..Sample::of(engine) }, subject) };
}

/// Takes a sample of the current thread's wait for a lock that `owner` held.
///
/// # Safety
/// As for [`take`].
pub(super) unsafe fn take_of_wait(
    vm: &Vm,
    env: *mut JNIEnv,
    engine: Engine,
    waited_ns: u64,
    owner: Owner,
    subject: impl FnOnce() -> Subject,
) {
    let sample = Sample { values: [1.0, waited_ns as f64], owner, ..Sample::of(engine) };
    // SAFETY: the contract requires an event of the VM's, with the current thread's `env`.
    unsafe { take_thinned(vm, env, sample, subject) };
}

/// # Safety
/// As for [`take`].
unsafe fn take_thinned(vm: &Vm, env: *mut JNIEnv, sample: Sample, subject: impl FnOnce() -> Subject) {
    let Some(values) = thin(sample.engine, sample.values) else { return };
    let start_ns = monotonic_ns();
    let subject = subject();
    COUNTERS.engine_has_used(sample.engine, monotonic_ns().saturating_sub(start_ns));
    // SAFETY: the contract requires an event of the VM's, with the current thread's `env`.
    unsafe { take_unthinned(vm, env, &Sample { values, subject, ..sample }) };
}

/// Takes a sample that the budget has already let through, with the number of the sampled object. Returns
/// whether the sample was recorded.
///
/// # Safety
/// As for [`take`].
pub(super) unsafe fn take_numbered(
    vm: &Vm,
    env: *mut JNIEnv,
    engine: Engine,
    values: [f64; 2],
    subject: Subject,
    number: u32,
) -> bool {
    // SAFETY: the contract requires an event of the VM's, with the current thread's `env`.
    unsafe { take_unthinned(vm, env, &Sample { values, subject, number, ..Sample::of(engine) }) }
}

/// # Safety
/// As for [`take`].
unsafe fn take_unthinned(vm: &Vm, env: *mut JNIEnv, sample: &Sample) -> bool {
    let unknown = ThreadRecord::default();
    let thread = match current() {
        CurrentThread::Own => return false,
        CurrentThread::Known(record) if record.java_thread.load(Ordering::Relaxed) != 0 => record,
        // A thread's first events arrive before it has been registered as a Java thread.
        CurrentThread::Known(record) => {
            describe(&unknown, record.os_tid.load(Ordering::Relaxed), vm, env);
            &unknown
        }
        CurrentThread::Unknown { os_tid } => {
            describe(&unknown, os_tid, vm, env);
            &unknown
        }
    };
    // SAFETY: the contract requires an event of the VM's, and the VM sets the anchor before it sends one.
    unsafe { take_of_caller(sample, thread) }
}

fn describe(record: &ThreadRecord, os_tid: i32, vm: &Vm, env: *mut JNIEnv) {
    record.os_tid.store(os_tid, Ordering::Relaxed);
    record.java_thread.store(vm.java_thread(env).unwrap_or(0), Ordering::Relaxed);
}

/// Returns the class of `object`, which may be null.
///
/// # Safety
/// `env` belongs to the current thread. `object` is null or a live reference. The VM allows JNI calls here.
pub(super) unsafe fn class_of(vm: &Vm, env: *mut JNIEnv, object: jobject) -> Subject {
    if object.is_null() {
        return Subject::NONE;
    }
    // SAFETY: the contract gives the current thread's `env`, and a live reference where it is not null.
    let class = unsafe { ((**env).v1_1.GetObjectClass)(env, object) };
    // SAFETY: `class` is a local reference that was just made.
    let subject = unsafe { subject_of(vm, class) };
    // SAFETY: `class` is a local reference of this function's, deleted once.
    unsafe { ((**env).v1_1.DeleteLocalRef)(env, class) };
    subject
}

/// Returns the number of a class.
///
/// # Safety
/// `class` is a live reference to a class. The VM allows JVMTI calls here.
pub(super) unsafe fn subject_of(vm: &Vm, class: jobject) -> Subject {
    // SAFETY: the contract requires a live reference to a class.
    let signature = unsafe { vm.jvmti.class_signature(class) };
    signature.map_or(Subject::NONE, |signature| SUBJECTS.of_signature(&signature))
}

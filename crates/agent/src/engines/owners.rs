//! The owner of the lock that a thread begins to wait for.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use jni::sys::{JNIEnv, jobject};
use otlpprof_core::record::{Owner, OwnerThread};
use otlpprof_jvm::monitor_owner::{self, MonitorOwner};
use otlpprof_jvm::synchronizer_owner::SynchronizerOwner;
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_signal::thread_table::record_of_tid;
use otlpprof_signal::walk::mounted_thread::carries_virtual_thread;

use crate::vm::Vm;

/// Returns the owner of the monitor that the current thread is about to wait for. Usually takes a few loads.
/// If the owner had locked the object before the object had a monitor (until 23), all threads' stacks are
/// searched.
pub(super) fn of_pending_monitor(vm: &Vm, env: *mut JNIEnv) -> Owner {
    let found = vm.layout().zip(vm.java_thread(env)).and_then(|(layout, waiting)| {
        let (monitors, threads) = (layout.monitor.as_ref()?, &layout.thread);
        let is_known = |address, os_tid| incarnation(address, os_tid).is_some();
        let owner = monitor_owner::of_pending(&ProcessMemory, monitors, threads, waiting, is_known)?;
        Some(match owner {
            MonitorOwner::ThreadId(id) => OwnerThread::ThreadId(id),
            MonitorOwner::Thread { address, os_tid } => {
                let incarnation = incarnation(address, os_tid)?;
                // A virtual thread that owns a monitor does not leave its carrier there.
                match carries_virtual_thread(&ProcessMemory, layout, address) {
                    Some(true) => OwnerThread::Carrier(incarnation),
                    _ => OwnerThread::Incarnation(incarnation),
                }
            }
        })
    });
    found.map_or(Owner::NONE, Owner::new)
}

/// Returns the number of the thread's current life as a Java thread, if the thread of this id is known as
/// this `JavaThread`.
fn incarnation(java_thread: u64, os_tid: i32) -> Option<u32> {
    let record = record_of_tid(os_tid)?;
    let incarnation = record.java_incarnation.load(Ordering::Relaxed);
    let is_it = record.java_thread.load(Ordering::Relaxed) == java_thread;
    if is_it {
        // A sample will refer to this life of the thread by its current name.
        record.sampled_incarnation.store(incarnation, Ordering::Relaxed);
    }
    is_it.then_some(incarnation)
}

/// Returns the owner of a `java.util.concurrent` lock that a thread is parked for, if `blocker` is such a
/// lock.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception. `blocker` is a live reference.
pub(super) unsafe fn of_lock(vm: &Vm, env: *mut JNIEnv, blocker: jobject) -> Owner {
    static FIELD: OnceLock<Option<SynchronizerOwner>> = OnceLock::new();
    // SAFETY: the contract gives the current thread's `env`, without a pending exception.
    let field = FIELD.get_or_init(|| unsafe { SynchronizerOwner::new(env) });
    let (Some(field), Some(names)) = (field, vm.names()) else { return Owner::NONE };
    // SAFETY: the contract gives `env` and a live `blocker`; the reference that is made is deleted here.
    unsafe {
        let owner = field.of(env, blocker);
        if owner.is_null() {
            return Owner::NONE;
        }
        let id = names.thread_id(env, owner);
        ((**env).v1_2.DeleteLocalRef)(env, owner);
        Owner::new(OwnerThread::ThreadId(id))
    }
}

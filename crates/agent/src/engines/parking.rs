//! Time for which threads are parked for a lock or another object that they name.
//!
//! The VM has no event for parking. A platform thread, and a virtual thread that cannot leave its carrier, is
//! parked by `Unsafe.park`, a native method. A function of ours takes its place, calls the VM's function and
//! measures the time. A virtual thread that parks is unmounted, and mounted again when it continues
//! (`VirtualThread.park`): the VM's events of both give the time.
//!
//! The object that a thread is parked for is `Thread.parkBlocker` (`LockSupport.park(Object)`). Without one
//! nothing is recorded: threads sleep and poll that way, and do not wait for each other.

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

use jni::sys::{JNIEnv, jboolean, jfieldID, jlong, jobject};
use otlpprof_core::engine::Engine;
use otlpprof_core::record::Owner;
use otlpprof_jvm::jvmti::Capability;
use otlpprof_jvm::live_phase::LivePhaseMutex;
use otlpprof_jvm::native_binding::{Binding, NativeMethod};
use otlpprof_signal::clock::monotonic_ns;
use otlpprof_signal::safe_load::ProcessMemory;

use super::gate::Gate;
use super::own_sample;
use super::owners;
use super::wait_start::{self, WaitKind};
use crate::event_cost::counted;
use crate::guarded::guarded;
use crate::guards::Guard;
use crate::mounts;
use crate::vm::Vm;

/// `Unsafe_Park` (prims/unsafe.cpp, 11-25).
const PARK: NativeMethod =
    NativeMethod { class: c"jdk/internal/misc/Unsafe", name: c"park", descriptor: c"(ZJ)V" };

type Park = unsafe extern "system" fn(*mut JNIEnv, jobject, jboolean, jlong);

static GATE: Gate = Gate::new();
static SHORTEST_NS: AtomicU64 = AtomicU64::new(0);
/// The VM's function for `Unsafe.park`. Never null once ours has taken its place.
static ORIGINAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// The changes that a session has made in the VM.
static CHANGED: LivePhaseMutex<VmChanges> = LivePhaseMutex::new(VmChanges { binding: None, listens: false });

struct VmChanges {
    binding: Option<Binding>,
    listens: bool,
}

/// Starts recording parks of at least this length; `None`: none.
pub(super) fn start(vm: &'static Vm, shortest: Option<Duration>) -> Option<Guard> {
    let shortest = shortest?;
    let env = vm.attach_as_daemon(c"otlpprof")?;
    SHORTEST_NS.store(u64::try_from(shortest.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    // SAFETY: `env` belongs to the current thread.
    if unsafe { blocker_field(env) }.is_none() {
        log::warn!(
            "lock: this JVM does not show the object that a thread parks on: only monitors are recorded"
        );
        return None;
    }
    let mut changed = CHANGED.lock()?;
    // SAFETY: `env` belongs to the current thread.
    match unsafe { take_over(vm, env) } {
        Ok(binding) => changed.binding = Some(binding),
        Err(reason) => {
            log::warn!("lock: platform threads that park are not recorded: Unsafe.park: {reason}");
        }
    }
    if vm.jvmti.capabilities().is_ok_and(|had| had.has(Capability::SupportVirtualThreads)) {
        match mounts::listen(vm.jvmti) {
            Ok(()) => changed.listens = true,
            Err(error) => {
                log::warn!(
                    "lock: virtual threads that park are not recorded: the VM does not report where they \
                     park ({error})"
                );
            }
        }
    }
    GATE.open();
    Some(Guard::new(move || stop(vm)))
}

/// Stops recording: nothing is recorded after this function has returned. In a VM that is ending, [`park`]
/// stays in its place and only passes calls on.
fn stop(vm: &Vm) {
    GATE.close();
    let Some(mut changed) = CHANGED.lock() else { return };
    if std::mem::take(&mut changed.listens) {
        mounts::unlisten(vm.jvmti);
    }
    let (Some(binding), Some(env)) = (changed.binding.take(), vm.attach_as_daemon(c"otlpprof")) else {
        return;
    };
    // SAFETY: `env` belongs to the current thread; `park` stays loaded, since calls may still be in it.
    if let Err(error) = unsafe { binding.unbind(env, &ProcessMemory, park as *mut c_void) } {
        log::debug!("Unsafe.park still calls the agent, which passes each call on: {error}");
    }
}

/// Replaces the VM's function by [`park`].
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception.
unsafe fn take_over(vm: &Vm, env: *mut JNIEnv) -> Result<Binding, String> {
    let layout = vm.layout().ok_or("this JVM's layout is not known")?;
    // SAFETY: the contract gives the current thread's `env`, and the layout describes this VM.
    let binding = unsafe { Binding::find(env, &ProcessMemory, &layout.method, PARK) };
    let binding = binding.map_err(|error| error.to_string())?;
    ORIGINAL.store(binding.original() as *mut c_void, Ordering::Release);
    // SAFETY: the contract gives the current thread's `env`. `park` has this method's signature, and this
    // library stays loaded.
    unsafe { binding.bind(env, &ProcessMemory, park as *mut c_void) }.map_err(|error| error.to_string())?;
    Ok(binding)
}

/// Replaces `Unsafe.park`: calls the VM's function, and records the time.
unsafe extern "system" fn park(env: *mut JNIEnv, receiver: jobject, is_absolute: jboolean, time: jlong) {
    let mut begun = None;
    if GATE.is_open() {
        // SAFETY: the VM has called this function with the current thread's environment.
        guarded("Unsafe.park", |vm| {
            // SAFETY: the VM has called this function, a native method, with the current thread's
            // environment.
            let owner = counted(|| unsafe { owner_now(vm, env) });
            begun = Some((owner, monotonic_ns()));
        });
    }
    let original = ORIGINAL.load(Ordering::Acquire);
    // SAFETY: `ORIGINAL` was set before this function took its place, to the VM's function of this type.
    unsafe { transmute::<*mut c_void, Park>(original)(env, receiver, is_absolute, time) };
    if let Some((owner, since_ns)) = begun {
        // SAFETY: the VM has called this function with the current thread's environment; `thread` was just
        // made.
        guarded("Unsafe.park", |vm| unsafe {
            let Ok(thread) = vm.jvmti.current_thread() else { return };
            parked(vm, env, thread, since_ns, owner);
            ((**env).v1_2.DeleteLocalRef)(env, thread);
        });
    }
}

/// Returns the owner of the lock that the current thread is about to be parked for.
///
/// # Safety
/// `env` belongs to the current thread, which is in native code.
unsafe fn owner_now(vm: &Vm, env: *mut JNIEnv) -> Owner {
    // SAFETY: the contract gives the current thread's `env`; the references are this function's own.
    unsafe {
        let Ok(thread) = vm.jvmti.current_thread() else { return Owner::NONE };
        let blocker = blocker_of(env, thread);
        ((**env).v1_2.DeleteLocalRef)(env, thread);
        if blocker.is_null() {
            return Owner::NONE;
        }
        let owner = owners::of_lock(vm, env, blocker);
        ((**env).v1_2.DeleteLocalRef)(env, blocker);
        owner
    }
}

/// Records a park of the current thread that began at `since_ns` and has ended. `owner` had the lock when the
/// park began.
///
/// # Safety
/// `env` belongs to the current thread, which is in native code. `thread` is a live reference to it.
unsafe fn parked(vm: &Vm, env: *mut JNIEnv, thread: jobject, since_ns: u64, owner: Owner) {
    let Some(_inside) = GATE.enter() else { return };
    let parked_ns = monotonic_ns().saturating_sub(since_ns);
    if parked_ns < SHORTEST_NS.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: the contract gives the current thread's `env` and a live `thread`.
    unsafe {
        let blocker = blocker_of(env, thread);
        if !blocker.is_null() {
            let subject = || own_sample::class_of(vm, env, blocker).parked();
            own_sample::take_of_wait(vm, env, Engine::Lock, parked_ns, owner, subject);
            ((**env).v1_2.DeleteLocalRef)(env, blocker);
        }
    }
}

/// Notes the start of a park of a virtual thread, the current thread, that leaves its carrier.
///
/// # Safety
/// Called in the VM's event, with its arguments.
pub(super) unsafe fn unmounts(vm: &Vm, env: *mut JNIEnv, thread: jobject) {
    let Some(_inside) = GATE.enter() else { return };
    // SAFETY: the contract requires the arguments of the VM's event.
    unsafe {
        let blocker = blocker_of(env, thread);
        if blocker.is_null() {
            return;
        }
        // A virtual thread that leaves its carrier to wait for a monitor (24 on) is recorded as waiting for
        // the monitor.
        if !wait_start::is_noted(vm, env, thread, WaitKind::Monitor) {
            let owner = owners::of_lock(vm, env, blocker);
            wait_start::note(vm, env, thread, WaitKind::Parking, owner);
        }
        ((**env).v1_2.DeleteLocalRef)(env, blocker);
    }
}

/// Records the park of a virtual thread, the current thread, that has a carrier again.
///
/// # Safety
/// As for [`unmounts`].
pub(super) unsafe fn mounted(vm: &Vm, env: *mut JNIEnv, thread: jobject) {
    if !GATE.is_open() {
        return;
    }
    // SAFETY: the contract requires the arguments of the VM's event.
    unsafe {
        let wait = counted(|| wait_start::take(vm, env, thread, WaitKind::Parking));
        let Some(wait) = wait else { return };
        parked(vm, env, thread, wait.since_ns, wait.owner);
    }
}

#[derive(Clone, Copy)]
struct Field(jfieldID);

// SAFETY: field ids may be used from any thread.
unsafe impl Send for Field {}
// SAFETY: field ids may be used from any thread.
unsafe impl Sync for Field {}

/// Returns the field `Thread.parkBlocker`, if this JVM has it.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception.
unsafe fn blocker_field(env: *mut JNIEnv) -> Option<jfieldID> {
    static FIELD: OnceLock<Option<Field>> = OnceLock::new();
    let field = FIELD.get_or_init(|| {
        // SAFETY: the contract gives the current thread's `env`. Names are C strings, and a null class or
        // field is not used. java.lang.Thread stays loaded, and its field id valid.
        unsafe {
            let class = ((**env).v1_2.FindClass)(env, c"java/lang/Thread".as_ptr());
            let (name, descriptor) = (c"parkBlocker".as_ptr(), c"Ljava/lang/Object;".as_ptr());
            let field = if class.is_null() {
                null_mut()
            } else {
                ((**env).v1_2.GetFieldID)(env, class, name, descriptor)
            };
            ((**env).v1_2.ExceptionClear)(env);
            ((**env).v1_2.DeleteLocalRef)(env, class);
            (!field.is_null()).then_some(Field(field))
        }
    });
    field.map(|field| field.0)
}

/// Returns a local reference to the object that the thread is parked for; null if there is none.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception. `thread` is a live reference to a
/// thread.
unsafe fn blocker_of(env: *mut JNIEnv, thread: jobject) -> jobject {
    // SAFETY: the contract gives the current thread's `env`, without a pending exception.
    match unsafe { blocker_field(env) } {
        // SAFETY: the contract gives `env` and a live `thread`, and every thread has the field.
        Some(field) => unsafe { ((**env).v1_2.GetObjectField)(env, thread, field) },
        None => null_mut(),
    }
}

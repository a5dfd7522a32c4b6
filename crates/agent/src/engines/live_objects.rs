//! The live heap: sampled objects are referenced weakly, and checked after each collection.
//!
//! An object's age is the number of collections that it has survived. A collection is what the VM announces
//! as one (GarbageCollectionStart and Finish): for concurrent collectors that is each of their pauses. An
//! object that has survived none is not reported, since it is unknown whether it lives.
//!
//! The VM is never called with the table's lock held: such a call may wait for a safepoint, in which the
//! table is needed too.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use jni::sys::{JNIEnv, jobject, jweak};
use otlpprof_aggregate::{Alive, Remains};
use otlpprof_core::collections::COLLECTIONS;
use otlpprof_core::engine::Engine;
use otlpprof_core::memory::Memory;
use otlpprof_core::record::Subject;
use otlpprof_jvm::jvmti::Jvmti;
use otlpprof_jvm::layout::Release;
use otlpprof_signal::clock::monotonic_ns;
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_signal::stretch::thin;
use parking_lot::Mutex;

use super::live_table::{LiveTable, Tracked};
use super::own_sample;
use crate::vm::Vm;

/// The most objects that are referenced: each costs the collector some nanoseconds.
const MOST_OBJECTS: usize = 65_536;

/// The time between two checks of all objects, except where they are to be reported.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// The number of collections that have ended.
static COLLECTED: AtomicU32 = AtomicU32::new(0);

/// The number of the last sample.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A weak global reference.
#[derive(Clone, Copy, Debug)]
struct WeakReference(jweak);

impl WeakReference {
    /// Whether the referenced object has been freed. Asks the VM if `asks_vm` is set, and reads the handle
    /// otherwise.
    ///
    /// # Safety
    /// The reference has not been deleted, and `env` belongs to the current thread.
    unsafe fn is_cleared(self, env: *mut JNIEnv, asks_vm: bool) -> bool {
        if !asks_vm {
            // A collection clears the handle's word (JNIHandles::weak_oops_do, JDK 11). The lowest bit of the
            // reference marks it as weak (`weak_tag_mask`, runtime/jniHandles.hpp).
            return ProcessMemory.load_u64(self.0 as u64 & !1) == Some(0);
        }
        // SAFETY: the contract requires a reference that has not been deleted, and the current thread's
        // `env`.
        unsafe { ((**env).v1_1.IsSameObject)(env, self.0, std::ptr::null_mut()) }
    }
}

/// Whether the VM can be asked about a weakly referenced object without keeping it alive. Some VMs answer as
/// if the program had resolved the reference: a collector that is marking would then keep the object and
/// everything reachable from it. The builds of a release are treated alike. The VM's layout may be unknown,
/// so JVMTI states the release.
fn asks_without_keeping(jvmti: Jvmti) -> bool {
    let release = jvmti.version_number().map(Release::of_jvmti);
    !release.is_ok_and(Release::is_same_object_may_keep_objects)
}

// SAFETY: global references may be used by any thread.
unsafe impl Send for WeakReference {}

struct LiveObjects {
    table: LiveTable<WeakReference>,
    /// The number of collections that had ended when the objects were last checked.
    swept_collections: u32,
    swept_at: Option<Instant>,
}

static LIVE: LazyLock<Mutex<LiveObjects>> = LazyLock::new(|| {
    let table = LiveTable::new(MOST_OBJECTS, monotonic_ns());
    Mutex::new(LiveObjects { table, swept_collections: 0, swept_at: None })
});

/// Counts a collection that has ended, whether alone or within another. Runs in the VM's thread.
pub(crate) fn collection_ended() {
    if COLLECTIONS.so_far().is_some() {
        COLLECTED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes a sample of an object that has just been allocated, and references the object weakly.
///
/// # Safety
/// Called in an event of the VM's, with the current thread's `env` and a live reference.
pub(super) unsafe fn allocated(
    vm: &Vm,
    env: *mut JNIEnv,
    object: jobject,
    values: [f64; 2],
    subject: impl FnOnce() -> Subject,
) {
    let Some(values) = thin(Engine::Live, values) else { return };
    let Some(weight) = LIVE.lock().table.admit() else { return };
    let born = COLLECTED.load(Ordering::Relaxed);
    // SAFETY: the contract requires the current thread's `env` and a live reference.
    let reference = unsafe { ((**env).v1_2.NewWeakGlobalRef)(env, object) };
    if reference.is_null() {
        return;
    }
    // Number 0 means that a sample has no number.
    let number = NUMBER.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
    // The object is inserted before the sample is taken: a thread that finds the sample in the buffer finds
    // the object.
    let tracked = Tracked { reference: WeakReference(reference), born, weight };
    LIVE.lock().table.insert(number, tracked);
    // SAFETY: the contract requires an event of the VM's, with the current thread's `env`.
    let is_recorded = unsafe { own_sample::take_numbered(vm, env, Engine::Live, values, subject(), number) };
    if !is_recorded {
        LIVE.lock().table.discard(number);
    }
}

/// Finds the objects that have died, if there has been a collection since the last check, and deletes their
/// references. Checks at most once in [`SWEEP_PERIOD`], unless `at_once` is set.
///
/// # Safety
/// `env` belongs to the current thread. The thread holds no lock of the agent's that is needed in a
/// safepoint.
pub(super) unsafe fn sweep(vm: &Vm, env: *mut JNIEnv, at_once: bool) {
    // References are used and deleted by one thread at a time. The thread that holds this lock waits for no
    // safepoint.
    static SWEEPING: Mutex<()> = Mutex::new(());
    let _sweeping = SWEEPING.lock();
    let collected = COLLECTED.load(Ordering::Relaxed);
    let mut gone = LIVE.lock().table.take_discarded();
    if let Some(objects) = objects_to_look_at(collected, at_once) {
        let asks_vm = asks_without_keeping(vm.jvmti);
        // SAFETY: the contract gives the current thread's `env`; a reference is deleted below or by the next
        // sweep only.
        let dead = objects.into_iter().filter(|(_, of)| unsafe { of.is_cleared(env, asks_vm) });
        let dead: Vec<u32> = dead.map(|(number, _)| number).collect();
        let mut live = LIVE.lock();
        gone.extend(dead.iter().filter_map(|number| live.table.remove(*number)));
        live.table.swept();
        live.swept_collections = collected;
    }
    for WeakReference(reference) in gone {
        // SAFETY: the contract gives the current thread's `env`; the reference is in no table any more.
        unsafe { ((**env).v1_2.DeleteWeakGlobalRef)(env, reference) };
    }
}

/// Returns the objects with their numbers, if it is time to check them.
fn objects_to_look_at(collected: u32, at_once: bool) -> Option<Vec<(u32, WeakReference)>> {
    let mut live = LIVE.lock();
    let is_early = live.swept_at.is_some_and(|swept_at| swept_at.elapsed() < SWEEP_PERIOD);
    if live.swept_collections == collected || is_early && !at_once {
        return None;
    }
    live.swept_at = Some(Instant::now());
    Some(live.table.objects().map(|(number, object)| (number, object.reference)).collect())
}

/// Forgets all objects. Their references are deleted by the next [`sweep`].
pub(super) fn forget() {
    LIVE.lock().table.clear();
}

/// Adds the objects that are alive.
pub(super) fn add_alive(alive: &mut Alive) {
    let live = LIVE.lock();
    for (number, object) in live.table.objects() {
        let age = live.swept_collections.saturating_sub(object.born);
        let remains = Remains { share: 1.0, weight: object.weight, age: Some(age_class(age)) };
        alive.insert((Engine::Live, number), remains);
    }
}

/// Rounds an age down to a power of two, or to 0: a sample for each single age would be too many.
fn age_class(age: u32) -> u32 {
    age.checked_ilog2().map_or(0, |class| 1 << class)
}

/// The number of sampled objects that are not tracked, for want of room.
pub(crate) fn thinned() -> u64 {
    LIVE.lock().table.thinned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_rounded_down_to_a_power_of_two() {
        assert_eq!([0, 1, 2, 3, 4, 7, 8, 1000].map(age_class), [0, 1, 2, 2, 4, 4, 8, 512]);
    }
}

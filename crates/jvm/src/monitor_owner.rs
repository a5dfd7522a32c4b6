//! The owner of the monitor that a thread waits for, read from memory without calling the VM.
//!
//! Before it sends MonitorContendedEnter, the VM stores the awaited monitor in the waiting thread. The value
//! stays until the thread has entered the monitor or, on 25, until the virtual thread has been unmounted
//! (runtime/objectMonitor.cpp: `ObjectMonitor::enter` in 11-21, `notify_contended_enter` in 25). The VM does
//! not deflate a monitor that a thread waits for (`deflate_monitor`). The owner may change at any time. The
//! returned owner held the monitor both at the first load and at the last.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{MonitorLayout, MonitorOwnerWord, StackBounds, ThreadLayout};

use super::java_threads;

/// The smallest thread id. Smaller values mean no owner or a special state (`ThreadIdentifier::initial`,
/// runtime/threadIdentifier.cpp, 25).
const FIRST_THREAD_ID: i64 = 3;
/// No object is mapped below this address. Smaller values mean no owner or a special state.
const LOWEST_ADDRESS: u64 = 4096;

/// The owner of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorOwner {
    /// The owning thread, or the carrier of the owning virtual thread.
    Thread {
        /// The `JavaThread*`.
        address: u64,
        /// The kernel's thread id.
        os_tid: i32,
    },
    /// The thread with this `Thread.threadId()`.
    ThreadId(i64),
}

/// The owner of the monitor that the thread `waiting` waits for. `waiting` is the `JavaThread*` of a thread
/// in the MonitorContendedEnter callback. `None` if the monitor is free by now, or the owner cannot be
/// determined. `is_known` says whether a thread with this `JavaThread*` and this kernel thread id exists.
pub fn of_pending(
    memory: &dyn Memory,
    monitors: &MonitorLayout,
    threads: &ThreadLayout,
    waiting: u64,
    is_known: impl Fn(u64, i32) -> bool,
) -> Option<MonitorOwner> {
    let monitor = memory.load_u64(waiting.checked_add(u64::from(monitors.pending))?)?;
    if monitor == 0 {
        return None;
    }
    let place = monitor.checked_add(u64::from(monitors.owner))?;
    let word = memory.load_u64(place)?;
    match monitors.owner_is {
        MonitorOwnerWord::ThreadId => {
            let id = word.cast_signed();
            (id >= FIRST_THREAD_ID).then_some(MonitorOwner::ThreadId(id))
        }
        MonitorOwnerWord::ThreadOrStack(_) if word < LOWEST_ADDRESS => None,
        MonitorOwnerWord::ThreadOrStack(bounds) => {
            let as_thread =
                java_threads::os_tid(memory, threads, word).filter(|&os_tid| is_known(word, os_tid));
            let owner = match as_thread {
                Some(os_tid) => MonitorOwner::Thread { address: word, os_tid },
                None => with_stack(memory, threads, bounds, word)?,
            };
            // An unchanged owner word means that the thread owned the monitor throughout, so its JavaThread
            // was valid while it was read.
            (memory.load_u64(place)? == word).then_some(owner)
        }
    }
}

/// The one thread of the VM's list whose stack contains `address`; `None` if there are several.
fn with_stack(
    memory: &dyn Memory,
    layout: &ThreadLayout,
    bounds: StackBounds,
    address: u64,
) -> Option<MonitorOwner> {
    let is_its_stack = |thread: u64| {
        let base = memory.load_u64(thread.checked_add(u64::from(bounds.base))?)?;
        let size = memory.load_u64(thread.checked_add(u64::from(bounds.size))?)?;
        Some(address < base && address >= base.checked_sub(size)?)
    };
    let threads = java_threads::list(memory, layout);
    let mut found = threads.into_iter().filter(|thread| is_its_stack(thread.address) == Some(true));
    let owner = found.next().filter(|_| found.next().is_none())?;
    Some(MonitorOwner::Thread { address: owner.address, os_tid: owner.os_tid })
}

#[cfg(test)]
mod tests {
    use otlpprof_core::java_thread_state::JavaThreadStates;
    use otlpprof_core::memory::RecordedMemory;
    use otlpprof_core::vm_layout::{MonitorLayout, ThreadList};

    use super::*;

    const WAITING: u64 = 0x10_0000;
    const MONITOR: u64 = 0x20_0000;
    const LIST: u64 = 0x30_0000;
    /// Two more threads.
    const OTHERS: [(u64, i32); 2] = [(0x40_0000, 71), (0x50_0000, 72)];
    const STACK: u64 = 0x1_0000;

    /// Small threads with these words: osthread, pending monitor, stack base, stack size, state, next.
    const THREADS: ThreadLayout = ThreadLayout {
        last_java_sp: 0,
        last_java_pc: 0,
        last_java_fp: 0,
        thread_state: 32,
        states: JavaThreadStates::NONE,
        jni_environment: 0,
        osthread: 0,
        osthread_thread_id: 0,
        list: ThreadList::Linked { head: LIST, next: 40 },
        call_wrapper_last_java_sp: 0,
        call_wrapper_last_java_pc: 0,
        call_wrapper_last_java_fp: 0,
        entry_frame_call_wrapper: 0,
    };

    const THREAD_OR_STACK: MonitorOwnerWord =
        MonitorOwnerWord::ThreadOrStack(StackBounds { base: 16, size: 24 });

    /// The owner that `word` denotes, where the two other threads have these stack bases.
    fn owner(owner_is: MonitorOwnerWord, word: u64, stack_bases: [u64; 2]) -> Option<MonitorOwner> {
        let mut memory = RecordedMemory::default();
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        memory.put(WAITING, bytes(&[0, MONITOR]));
        memory.put(MONITOR, bytes(&[0, 0, word]));
        memory.put(LIST, bytes(&[OTHERS[0].0]));
        let nexts = [OTHERS[1].0, 0];
        for (((thread, os_tid), next), base) in OTHERS.into_iter().zip(nexts).zip(stack_bases) {
            memory.put(thread, bytes(&[thread + 0x1000, 0, base, STACK, 8, next]));
            memory.put(thread + 0x1000, bytes(&[os_tid as u64]));
        }
        let layout = MonitorLayout { pending: 8, owner: 16, owner_is };
        let is_known = |address, os_tid| (address, os_tid) == OTHERS[0];
        of_pending(&memory, &layout, &THREADS, WAITING, is_known)
    }

    #[test]
    fn a_thread_or_the_one_with_that_stack_is_the_owner() {
        let by = |word| owner(THREAD_OR_STACK, word, [0x60_0000, 0x70_0000]);
        let [first, second] = OTHERS.map(|(address, os_tid)| Some(MonitorOwner::Thread { address, os_tid }));
        assert_eq!(by(OTHERS[0].0), first);
        assert_eq!([by(0x60_0000 - STACK), by(0x60_0000 - 8)], [first, first]);
        assert_eq!([by(0x70_0000 - STACK), by(0x70_0000 - 8)], [second, second]);
    }

    #[test]
    fn an_ambiguous_owner_word_gives_no_owner() {
        let by = |word| owner(THREAD_OR_STACK, word, [0x60_0000, 0x70_0000]);
        // Free, a special state, an unknown thread, and an address on no stack.
        for word in [0, 1, u64::MAX, OTHERS[1].0, 0x60_0000, 0x60_0000 - STACK - 8, 0x80_0000] {
            assert_eq!(by(word), None, "{word:#x}");
        }
        let on_two_stacks = owner(THREAD_OR_STACK, 0x60_0000 - 8, [0x60_0000; 2]);
        assert_eq!(on_two_stacks, None);
    }

    #[test]
    fn an_id_is_one_unless_it_is_a_mark() {
        let by = |word| owner(MonitorOwnerWord::ThreadId, word, [0x60_0000, 0x70_0000]);
        assert_eq!([0, 1, 2, u64::MAX].map(by), [None; 4]);
        assert_eq!([3, 0x60_0000].map(by), [3, 0x60_0000].map(|id| Some(MonitorOwner::ThreadId(id))));
    }
}

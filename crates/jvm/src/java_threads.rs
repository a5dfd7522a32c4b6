//! The VM's list of Java threads, read from memory without calling the VM (`runtime/threads.hpp`, in 11 and
//! 17 `runtime/thread.hpp`; `runtime/threadSMR.hpp`).
//!
//! The list may change while it is read. A thread that starts or ends meanwhile may be missing or reported;
//! all others are reported.

use otlpprof_core::java_thread_state::JavaThreadState;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{ThreadLayout, ThreadList};

/// An upper bound of the number of threads, above the number of process ids on any machine. Ends the reading
/// of a list that is damaged.
const MAX_THREADS: u32 = 1 << 22;

/// One Java thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JavaThread {
    /// The `JavaThread*`.
    pub address: u64,
    /// The kernel's thread id.
    pub os_tid: i32,
    /// The thread's state.
    pub state: JavaThreadState,
}

/// All Java threads that have a kernel thread.
pub fn list(memory: &dyn Memory, layout: &ThreadLayout) -> Vec<JavaThread> {
    let addresses = match layout.list {
        ThreadList::Linked { head, next } => linked(memory, head, next),
        ThreadList::Array { list, length, threads } => {
            array(memory, list, length, threads).unwrap_or_default()
        }
    };
    addresses.into_iter().filter_map(|address| java_thread(memory, layout, address)).collect()
}

/// The kernel's id of the thread of a `JavaThread*`; `None` if that thread has no kernel thread.
pub fn os_tid(memory: &dyn Memory, layout: &ThreadLayout, java_thread: u64) -> Option<i32> {
    let os_thread = memory.load_u64(java_thread.checked_add(u64::from(layout.osthread))?)?;
    let tid = memory.load_u32(os_thread.checked_add(u64::from(layout.osthread_thread_id))?)? as i32;
    (os_thread != 0 && tid > 0).then_some(tid)
}

fn java_thread(memory: &dyn Memory, layout: &ThreadLayout, address: u64) -> Option<JavaThread> {
    let state = memory.load_u32(address.checked_add(u64::from(layout.thread_state))?)?;
    Some(JavaThread { address, os_tid: os_tid(memory, layout, address)?, state: layout.states.of(state) })
}

fn linked(memory: &dyn Memory, head: u64, next: u32) -> Vec<u64> {
    let first = memory.load_u64(head);
    let following = |&thread: &u64| memory.load_u64(thread.checked_add(u64::from(next))?);
    std::iter::successors(first, following)
        .take_while(|&thread| thread != 0)
        .take(MAX_THREADS as usize)
        .collect()
}

fn array(memory: &dyn Memory, list: u64, length: u32, threads: u32) -> Option<Vec<u64>> {
    let list = memory.load_u64(list)?;
    let length = memory.load_u32(list.checked_add(u64::from(length))?)?;
    let threads = memory.load_u64(list.checked_add(u64::from(threads))?)?;
    let indices = 0..u64::from(length.min(MAX_THREADS));
    Some(indices.map_while(|index| memory.load_u64(threads.checked_add(8 * index)?)).collect())
}

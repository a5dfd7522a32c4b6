//! Checks the current thread, found through the layout.

use otlpprof_core::java_thread_state::JavaThreadState;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::super::error::LayoutError;
use super::probe::Probe;
use crate::java_threads;

/// An upper bound of the size of a thread's stack, in bytes. Addresses are larger.
const MAX_STACK: u64 = 1 << 36;

pub(super) fn check(layout: &VmLayout, memory: &dyn Memory, probe: &Probe) -> Result<(), LayoutError> {
    let thread_layout = &layout.thread;
    let java_thread = probe.jni_environment.wrapping_sub(u64::from(thread_layout.jni_environment));
    let word = |offset: u32| memory.load_u64(java_thread.wrapping_add(u64::from(offset))).unwrap_or(0);
    let refuse = |field, reason: String| Err(LayoutError::implausible("JavaThread", field, reason));

    let os_tid = java_threads::os_tid(memory, thread_layout, java_thread);
    if os_tid != Some(probe.os_tid) {
        return refuse("_osthread", format!("thread {} reads as {os_tid:?}", probe.os_tid));
    }
    let base = word(thread_layout.stack_base);
    let size = word(thread_layout.stack_size);
    let low = base.wrapping_sub(size);
    if !(size < MAX_STACK && low < probe.stack_address && probe.stack_address < base) {
        let address = probe.stack_address;
        return refuse(
            "_stack_base",
            format!("{address:#x} is on a stack that reads as {low:#x} to {base:#x}"),
        );
    }
    let state = memory.load_u32(java_thread.wrapping_add(u64::from(thread_layout.thread_state)));
    // The thread runs an agent's code.
    if state.map(|number| thread_layout.states.of(number)) != Some(JavaThreadState::InNative) {
        return refuse("_thread_state", format!("a thread in native code reads as {state:?}"));
    }
    // The word is 0 if the stack has no Java frame below.
    let last_java_sp = word(thread_layout.last_java_sp);
    if last_java_sp != 0 && !(probe.stack_address < last_java_sp && last_java_sp < base) {
        return refuse("_anchor", format!("the last Java frame reads as {last_java_sp:#x}"));
    }
    let found = java_threads::list(memory, thread_layout);
    if !found.iter().any(|thread| thread.address == java_thread && thread.os_tid == probe.os_tid) {
        let reason = format!("the current thread is not among the {} found", found.len());
        return Err(LayoutError::implausible("Threads", "_thread_list", reason));
    }
    Ok(())
}

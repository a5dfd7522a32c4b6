//! Checks the current thread, found through the layout.

use otlpprof_core::java_thread_state::JavaThreadState;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{MonitorOwnerWord, VmLayout};

use super::super::error::LayoutError;
use super::super::monitor::STACK_BASE;
use super::super::own_stack::OwnStack;
use super::probe::Probe;
use crate::java_threads;

pub(super) fn check(layout: &VmLayout, memory: &dyn Memory, probe: &Probe) -> Result<(), LayoutError> {
    let thread_layout = &layout.thread;
    let java_thread = probe.jni_environment.wrapping_sub(u64::from(thread_layout.jni_environment));
    let word = |offset: u32| memory.load_u64(java_thread.wrapping_add(u64::from(offset))).unwrap_or(0);
    let refuse = |field, reason: String| Err(LayoutError::implausible("JavaThread", field, reason));

    let os_tid = java_threads::os_tid(memory, thread_layout, java_thread);
    if os_tid != Some(probe.os_tid) {
        return refuse("_osthread", format!("thread {} reads as {os_tid:?}", probe.os_tid));
    }
    check_stack_bounds(layout, word)?;
    let state = memory.load_u32(java_thread.wrapping_add(u64::from(thread_layout.thread_state)));
    // The thread runs an agent's code.
    if state.map(|number| thread_layout.states.of(number)) != Some(JavaThreadState::InNative) {
        return refuse("_thread_state", format!("a thread in native code reads as {state:?}"));
    }
    // The word is 0 if the stack has no Java frame below.
    let last_java_sp = word(thread_layout.last_java_sp);
    let is_below = |own: OwnStack| (probe.stack_address..own.stack.end).contains(&last_java_sp);
    if last_java_sp != 0 && !OwnStack::of_current_thread().is_none_or(is_below) {
        return refuse("_anchor", format!("the last Java frame reads as {last_java_sp:#x}"));
    }
    let found = java_threads::list(memory, thread_layout);
    if !found.iter().any(|thread| thread.address == java_thread && thread.os_tid == probe.os_tid) {
        let reason = format!("the current thread is not among the {} found", found.len());
        return Err(LayoutError::implausible("Threads", "_thread_list", reason));
    }
    Ok(())
}

/// Checks the bounds of the current thread's stack, if owners of monitors are known by them.
fn check_stack_bounds(layout: &VmLayout, word: impl Fn(u32) -> u64) -> Result<(), LayoutError> {
    let Some(MonitorOwnerWord::ThreadOrStack(bounds)) = layout.monitor.map(|monitor| monitor.owner_is) else {
        return Ok(());
    };
    let Some(own) = OwnStack::of_current_thread() else { return Ok(()) };
    let (base, size) = (word(bounds.base), word(bounds.size));
    if own.is(base, size) {
        return Ok(());
    }
    let (start, end) = (own.stack.start, own.stack.end);
    let reason = format!("the stack from {start:#x} to {end:#x} reads as {size:#x} bytes up to {base:#x}");
    Err(LayoutError::implausible("JavaThread", STACK_BASE, reason))
}

//! Chooses the context of a sample: the context of the thread whose frames are on the stack.

use std::sync::atomic::Ordering;

use otlpprof_core::context::{self, ContextBlock, ContextRecord};
use otlpprof_core::virtual_blocks::{virtual_block_of, virtual_entry_of};

use super::counters::{COUNTERS, add};
use super::safe_load::ProcessMemory;
use super::walk::Walk;

/// The interrupted thread.
pub struct InterruptedThread<'a> {
    /// The kernel's id of the thread.
    pub os_tid: i32,
    /// Whether a virtual thread's frames are on the stack; `None` if that cannot be determined.
    pub carries_virtual_thread: Option<bool>,
    /// The walk of the thread's stack.
    pub walk: &'a Walk<'a, ProcessMemory>,
}

impl InterruptedThread<'_> {
    /// Returns the profiling context that the thread works for.
    pub fn context(&self) -> ContextRecord {
        let Some(block) = self.block() else { return ContextRecord::NONE };
        block.read().unwrap_or_else(|| {
            add(&COUNTERS.contexts_in_transition, 1);
            ContextRecord::NONE
        })
    }

    /// Whether the thread has registered itself to be sampled. If a virtual thread is mounted, its own
    /// registration counts. If it cannot be determined whether one is mounted, the carrier's registration
    /// counts.
    pub fn is_registered(&self) -> bool {
        match self.carries_virtual_thread {
            Some(true) => self
                .walk
                .mounted_thread_id()
                .and_then(virtual_entry_of)
                .is_some_and(|entry| entry.is_registered.load(Ordering::Relaxed)),
            _ => context::entry_of(self.os_tid)
                .is_some_and(|entry| entry.is_registered.load(Ordering::Relaxed)),
        }
    }

    fn block(&self) -> Option<&'static ContextBlock> {
        let entry = || context::entry_of(self.os_tid);
        match self.carries_virtual_thread {
            Some(false) => entry()?.own_block(),
            Some(true) => match self.walk.mounted_thread_id() {
                Some(id) => virtual_block_of(id),
                // If the VM's events of mounting are enabled, they determine the block.
                None => entry()?.mounted_block(),
            },
            None => {
                let entry = entry()?;
                entry.mounted_block().or_else(|| entry.own_block())
            }
        }
    }
}

//! Which context a sample has: that of the thread whose frames are on the stack, and nobody else's.

use super::counters::{COUNTERS, add};
use super::safe_load::ProcessMemory;
use super::walk::Walk;
use crate::core::context::{self, ContextBlock, ContextRecord};
use crate::core::virtual_blocks::virtual_block_of;

/// The thread that is interrupted.
pub struct InterruptedThread<'a> {
    /// The kernel's id.
    pub os_tid: i32,
    /// Whether a virtual thread's frames are on the stack; `None` if that cannot be told.
    pub carries_virtual_thread: Option<bool>,
    /// The walk of its stack.
    pub walk: &'a Walk<'a, ProcessMemory>,
}

impl InterruptedThread<'_> {
    /// What it is working for.
    pub fn context(&self) -> ContextRecord {
        let Some(block) = self.block() else { return ContextRecord::NONE };
        block.read().unwrap_or_else(|| {
            add(&COUNTERS.contexts_in_transition, 1);
            ContextRecord::NONE
        })
    }

    fn block(&self) -> Option<&'static ContextBlock> {
        let entry = context::entry_of(self.os_tid);
        match self.carries_virtual_thread {
            Some(false) => entry?.own_block(),
            Some(true) => match self.walk.mounted_thread_id() {
                Some(id) => virtual_block_of(id),
                // The VM's events have the word, where there are any.
                None => entry?.mounted_block(),
            },
            None => {
                let entry = entry?;
                entry.mounted_block().or_else(|| entry.own_block())
            }
        }
    }
}

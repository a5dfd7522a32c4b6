//! Memory that counts its loads, which bound a walk over memory of any content.

use std::cell::Cell;

use otlpprof_core::memory::Memory;

use crate::walk::MAX_STEPS;

/// The most loads of one walk: 64 for each step on average.
pub(crate) const MOST_LOADS: usize = 64 * MAX_STEPS;

/// The most reads of one walk that may fail. In a process each of them costs a signal.
pub(crate) const MOST_FAILED: usize = 1024;

pub(crate) struct CountedMemory<'a, M> {
    memory: &'a M,
    loads: Cell<usize>,
    failed: Cell<usize>,
}

impl<'a, M> CountedMemory<'a, M> {
    pub(crate) fn new(memory: &'a M) -> Self {
        Self { memory, loads: Cell::new(0), failed: Cell::new(0) }
    }

    /// The number of loads.
    pub(crate) fn loads(&self) -> usize {
        self.loads.get()
    }

    /// The number of failed loads, each of which is a signal in a process.
    pub(crate) fn failed(&self) -> usize {
        self.failed.get()
    }
}

impl<M: Memory> Memory for CountedMemory<'_, M> {
    fn read_bytes(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.loads.set(self.loads.get() + 1);
        let is_read = self.memory.read_bytes(address, bytes);
        self.failed.set(self.failed.get() + usize::from(!is_read));
        is_read
    }
}

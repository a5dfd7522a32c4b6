//! The contract of jmethodIDs: how a jmethodID leads to the `Method*` that it stands for.
//!
//! `jvm::layout` decides by the id of a method that it knows (`Probe::method_ids`), and stores the answer in
//! [`MethodLayout`](super::vm_layout::MethodLayout). All code that resolves a jmethodID does so by
//! [`MethodIds::method`].

use super::memory::Memory;

/// The meaning of a VM's jmethodIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodIds {
    /// A jmethodID is the address of a cell that holds the `Method*` (until JDK 25, `oops/method.cpp`,
    /// JNIMethodBlock). The VM never frees the cell. The cell holds null once the method's class is unloaded.
    Cells,
    /// A jmethodID leads to no address: only the VM resolves it. From JDK 26 on a jmethodID is a number that
    /// a concurrent table of the VM maps (`oops/jmethodIDTable.cpp`). A VM of unknown layout counts as one of
    /// these.
    Opaque,
}

impl MethodIds {
    /// Returns the `Method*` that a jmethodID stands for. `None` if the id is null, opaque or no address that
    /// can be read, or if the method's class is unloaded. Signal-safe if `memory` is.
    pub fn method(self, memory: &(impl Memory + ?Sized), id: u64) -> Option<u64> {
        match self {
            Self::Cells if id != 0 => memory.load_u64(id).filter(|&method| method != 0),
            Self::Cells | Self::Opaque => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RecordedMemory;

    #[test]
    fn a_cell_leads_to_its_method() {
        let mut memory = RecordedMemory::default();
        memory.put_u64(0, 0x700).put_u64(0x40, 0x800).put_u64(0x48, 0);
        assert_eq!(MethodIds::Cells.method(&memory, 0x40), Some(0x800));
        assert_eq!(MethodIds::Cells.method(&memory, 0x48), None, "the class is unloaded");
        assert_eq!(MethodIds::Cells.method(&memory, 0x50), None, "no memory");
        assert_eq!(MethodIds::Cells.method(&memory, 0), None, "null");
        assert_eq!(MethodIds::Opaque.method(&memory, 0x40), None);
    }
}

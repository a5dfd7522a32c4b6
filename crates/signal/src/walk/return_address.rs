//! Addresses that can be the return address of a stub.

use otlpprof_core::address::RuntimeAddr;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::arch;
use super::blob::BlobKind;
use super::stack_walk::Walk;

impl<M: Memory> Walk<'_, M> {
    /// Whether `pc` can be a return address into code that calls stubs. That is an address in the interpreter
    /// (which passes addresses of its own entries as return addresses), the frozen frames' barrier, an
    /// address right after a call of Java or native code, or a deoptimisation handler, which makes its own
    /// address the return address (emit_deopt_handler in cpu/x86/x86.ad, cpu/aarch64/aarch64.ad and
    /// cpu/*/c1_LIRAssembler_*.cpp).
    pub(super) fn is_return_address(&self, vm: &VmLayout, pc: u64) -> bool {
        let is_barrier = pc == vm.stubs.cont_return_barrier.start && pc != 0;
        if is_barrier || vm.stubs.interpreter.contains(pc) {
            return true;
        }
        let is_java = self.is_java_code(vm, pc);
        if is_java && self.blob_at(vm, pc).is_ok_and(|blob| self.is_deopt_handler(vm, &blob, pc)) {
            return true;
        }
        if !is_java && self.objects.find(RuntimeAddr(pc)).is_none() {
            return false;
        }
        self.is_after_call(pc)
    }

    /// Whether the instruction before `pc` is a call.
    pub(super) fn is_after_call(&self, pc: u64) -> bool {
        arch::return_address::is_after_call(self.memory, pc)
    }

    /// Whether `pc` is in code that can call a stub: compiled code, interpreter code, the call stub, or the
    /// return barrier, which replaces the return address of a caller whose frame is frozen.
    pub(super) fn is_java_code(&self, vm: &VmLayout, pc: u64) -> bool {
        if !self.in_code_cache(pc) {
            return false;
        }
        vm.stubs.interpreter.contains(pc)
            || pc == vm.stubs.call_stub_return
            || pc == vm.stubs.cont_return_barrier.start
            || self.blob_at(vm, pc).is_ok_and(|blob| blob.kind == BlobKind::Nmethod && pc >= blob.code_begin)
    }
}

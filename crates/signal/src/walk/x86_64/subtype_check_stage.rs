//! The words that compiled code pushes for a search through the supertypes of a class, on x86_64.
//!
//! Around its calls of slow_subtype_check C1 pushes the two classes that the stub takes and overwrites,
//! `push; push; call; pop; pop` (c1_LIRAssembler_x86.cpp, emit_typecheck_helper and emit_opTypeCheck). In
//! emit_arraycopy it has pushed the two arrays before (JDK 11-25). C2 searches inline, and up to JDK 11 saves
//! RAX meanwhile: `push rax; … ; repne scasq; pop rax` (macroAssembler_x86.cpp,
//! check_klass_subtype_slow_path).

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::blob::{BlobKind, StubKind};
use crate::walk::stack_walk::Walk;

const CALL: u8 = 0xe8;
const CALL_BYTES: u64 = 5;
/// The prefix of a push or pop of r8 to r15.
const EXTENDED: u8 = 0x41;
/// The bits of a push or pop that hold the register.
const REGISTER: u8 = 7;
/// The bytes of the two classes.
const ARGUMENT_BYTES: u64 = 16;
/// The bytes of the two arrays.
const ARRAY_BYTES: u64 = 16;

impl<M: Memory> Walk<'_, M> {
    /// The number of bytes on top of the frame of a method that was interrupted at `pc`.
    pub(in crate::walk) fn bytes_pushed_for_subtype_check(&self, vm: &VmLayout, pc: u64) -> u64 {
        let mut bytes = [0_u8; 10];
        let from = pc.wrapping_sub(7);
        if !self.memory.read_bytes(from, &mut bytes) {
            return 0;
        }
        let [_, before @ .., _, _, _] = bytes;
        let [.., at, next, after] = bytes;
        let at = [at, next, after];
        let (call, pushed) = match (before, at) {
            (_, [CALL, ..]) => (pc, ARGUMENT_BYTES),
            ([.., push], [own, CALL, _]) if is_push(push) && is_push(own) => (pc.wrapping_add(1), 8),
            ([.., push], [EXTENDED, own, CALL]) if is_push(push) && is_push(own) => (pc.wrapping_add(2), 8),
            ([_, CALL, _, _, _, _], _) => (pc.wrapping_sub(CALL_BYTES), ARGUMENT_BYTES),
            ([CALL, _, _, _, _, pop], _) if is_pop(pop) => (pc.wrapping_sub(CALL_BYTES).wrapping_sub(1), 8),
            ([_, _, _, _, EXTENDED, pop], _) if is_pop(pop) && bytes.first() == Some(&CALL) => {
                (pc.wrapping_sub(CALL_BYTES).wrapping_sub(2), 8)
            }
            _ => return self.bytes_pushed_for_scan(pc),
        };
        let target = |call: u64| {
            let distance = self.memory.load_u32(call.wrapping_add(1))? as i32;
            Some(call.wrapping_add(CALL_BYTES).wrapping_add_signed(i64::from(distance)))
        };
        let is_check = target(call).is_some_and(|target| {
            self.in_code_cache(target)
                && self
                    .blob_at(vm, target)
                    .is_ok_and(|blob| blob.kind == BlobKind::Stub(StubKind::SlowSubtypeCheck))
        });
        if !is_check {
            return self.bytes_pushed_for_scan(pc);
        }
        pushed.wrapping_add(self.array_bytes(call.wrapping_add(CALL_BYTES)))
    }

    fn bytes_pushed_for_scan(&self, pc: u64) -> u64 {
        /// `repne scasq; pop rax`.
        const SCAN: [u8; 4] = [0xf2, 0x48, 0xaf, 0x58];
        /// `push rax`, and the load of the list's address after it.
        const PUSH: [u8; 3] = [0x50, 0x48, 0x8b];
        /// The most bytes from the push to the pop.
        const BYTES: usize = 24;
        let mut code = [0_u8; 2 * BYTES];
        if !self.memory.read_bytes(pc.wrapping_sub(BYTES as u64), &mut code) {
            return 0;
        }
        let has_scan = |code: Option<&[u8]>| {
            code.is_some_and(|code| code.windows(SCAN.len()).any(|window| window == SCAN))
        };
        // The last push whose first byte, at least, is before `pc`, so that it has been executed.
        let begun = code.get(..BYTES.wrapping_add(PUSH.len()).wrapping_sub(1)).unwrap_or_default();
        let push = begun.windows(PUSH.len()).rposition(|window| window == PUSH);
        let is_pushed = push.is_some_and(|push| !has_scan(code.get(push..BYTES)));
        // Either the scan lies ahead, or only its pop.
        let is_ahead = has_scan(code.get(BYTES.wrapping_sub(3)..));
        if is_ahead && is_pushed { 8 } else { 0 }
    }

    /// The number of bytes on top of the frame of a method that has called slow_subtype_check and is returned
    /// to at `return_pc`.
    pub(in crate::walk) fn bytes_below_subtype_check(&self, return_pc: u64) -> u64 {
        ARGUMENT_BYTES.wrapping_add(self.array_bytes(return_pc))
    }

    /// The number of bytes of the two arrays, or 0. Arrays are popped in the reverse order of their pushes.
    /// For classes, the first pop goes to the register of the first class: the popped word is the answer,
    /// which has replaced the second class.
    fn array_bytes(&self, return_pc: u64) -> u64 {
        /// The bytes that are read: two bytes of the second push, the call, and a pop of two bytes.
        const AROUND: usize = 2 + CALL_BYTES as usize + 2;
        let mut code = [0_u8; AROUND];
        let from = return_pc.wrapping_sub(CALL_BYTES).wrapping_sub(2);
        if !self.memory.read_bytes(from, &mut code) {
            return 0;
        }
        let [prefix, push, _, _, _, _, _, pop @ ..] = code;
        let (is_extended, pop) = match pop {
            [EXTENDED, pop] => (true, pop),
            [pop, _] => (false, pop),
        };
        let is_same = is_push(push)
            && is_pop(pop)
            && (prefix == EXTENDED) == is_extended
            && push & REGISTER == pop & REGISTER;
        if is_same { ARRAY_BYTES } else { 0 }
    }
}

const fn is_push(byte: u8) -> bool {
    matches!(byte, 0x50..=0x57)
}

const fn is_pop(byte: u8) -> bool {
    matches!(byte, 0x58..=0x5f)
}

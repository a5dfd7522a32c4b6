//! One native frame: by the object's call frame information, else by the frame pointer.

use otlpprof_core::address::RuntimeAddr;
use otlpprof_core::frame_rules::native::FRAME_GOES_ON_ABOVE_RECORD;
use otlpprof_core::memory::Memory;
use otlpprof_core::object::LoadedObject;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::unwind_rule::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};
use otlpprof_core::unwind_table::UnwindTable;

use super::cursor::{Cursor, MAX_STEPS, Step};
use super::registers::{self, Registers};
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::walk_error::WalkError;
use super::{arch, frame_info};
use crate::counters::{COUNTERS, add};

impl<'a, M: Memory> Walk<'a, M> {
    /// Appends the native frame at `cursor` to the sink and finds its caller.
    ///
    /// `registers` are the registers at `cursor`, if that is an interrupted frame. A signal frame replaces
    /// them.
    pub fn native_step(
        &self,
        cursor: &Cursor,
        registers: &mut Option<Registers>,
        sink: &mut FrameSink<'_>,
    ) -> Result<Step, WalkError> {
        let lookup = cursor.lookup_pc();
        let object = self.object_at(lookup);
        if let Some(vm) = self.vm.filter(|_| object.is_none() && self.in_code_cache(cursor.pc)) {
            sink.stub(lookup);
            let known = registers.take();
            let caller = self.native_leaf_stub_caller(vm, cursor, known.as_ref()).map(Step::Caller);
            return caller.or_else(|error| self.frame_pointer_step(cursor).map_err(|_| error));
        }
        sink.native(object, lookup);
        let known = registers.take();
        // The interrupted frame may not have set up its frame pointer yet, or has none because it calls
        // nothing.
        let is_by_frame_pointer = self.walker == StackWalker::Fp && !cursor.interrupted;
        if is_by_frame_pointer && object.is_none_or(keeps_frame_pointers) {
            let step = self.frame_pointer_step(cursor)?;
            return Ok(self.with_stack_pointer(step, cursor, object));
        }
        if let Some(rule) =
            self.rule_at(object, lookup).or_else(|| arch::undescribed_code::rule_at(self.memory, cursor.pc))
        {
            return self.apply(&rule, cursor, known, registers, |number| self.kept_register(number, cursor));
        }
        if let Some(caller) = self.undescribed_caller(cursor, known.as_ref()) {
            add(&COUNTERS.undescribed_callers, 1);
            return Ok(Step::Caller(caller));
        }
        if object.is_none() {
            // The PC is in no object: after a jump through a bad pointer, or in code that another agent has
            // generated. Only frame pointers can lead out of it.
            return self.frame_pointer_step(cursor).map_err(|_| WalkError::UnknownCode);
        }
        add(&COUNTERS.frame_pointer_fallbacks, 1);
        self.frame_pointer_step(cursor)
    }

    /// The caller of the native frame at `cursor`, found only by call frame information. `registers` are as
    /// in [`Walk::native_step`].
    pub(super) fn described_step(&self, cursor: &Cursor, registers: &mut Option<Registers>) -> Option<Step> {
        self.described_step_with(cursor, registers, |number| self.kept_register(number, cursor))
    }

    /// [`Walk::described_step`], where `kept` supplies registers' values if `registers` is empty.
    pub(super) fn described_step_with(
        &self,
        cursor: &Cursor,
        registers: &mut Option<Registers>,
        kept: impl Fn(u8) -> Option<u64>,
    ) -> Option<Step> {
        let pc = cursor.lookup_pc();
        let rule = self.rule_at(self.object_at(pc), pc)?;
        self.apply(&rule, cursor, registers.take(), registers, kept).ok()
    }

    /// Whether call frame information leads from the interrupted frame to code that it says has no caller: a
    /// thread's entry.
    pub(super) fn is_described_to_entry(&self) -> bool {
        let (mut cursor, mut registers) = (self.start(), Some(self.registers));
        for _ in 0..MAX_STEPS {
            let pc = cursor.lookup_pc();
            let Some(rule) = self.rule_at(self.object_at(pc), pc) else { return false };
            if rule.cfa == CfaRule::EndOfStack {
                return true;
            }
            match self.described_step(&cursor, &mut registers) {
                Some(Step::Caller(caller)) => cursor = caller,
                _ => return false,
            }
        }
        false
    }

    /// The rule at `pc`: from the object's table or, until that is compiled, from its call frame information
    /// in place. `object` is [`Walk::object_at`] that `pc`.
    pub(super) fn rule_at(&self, object: Option<&LoadedObject>, pc: u64) -> Option<UnwindRule> {
        if let Some(object) = object
            && let Some(table) = object.unwind.get()
        {
            return table.rule_at(object.load_bias.to_elf(RuntimeAddr(pc)));
        }
        let rule = frame_info::rule_at(self.memory, self.frame_header(object, pc)?, pc)?;
        add(&COUNTERS.frames_before_tables, 1);
        Some(rule)
    }

    /// The address of the call frame information of the object at `pc`. `object` is that object, if it is
    /// known; otherwise the dynamic linker may know it.
    pub(super) fn frame_header(&self, object: Option<&LoadedObject>, pc: u64) -> Option<u64> {
        match object {
            Some(object) => object.frame_header.map(|header| header.0),
            None if self.in_code_cache(pc) => None,
            None => (self.loader)(pc),
        }
    }

    /// Appends the native frame at `cursor` to the sink.
    pub(super) fn put_native(&self, cursor: &Cursor, sink: &mut FrameSink<'_>) {
        sink.native(self.object_at(cursor.lookup_pc()), cursor.lookup_pc());
    }

    /// The object whose code `pc` is in, if that object is still mapped there: its identity word is
    /// unchanged.
    pub(super) fn object_at(&self, pc: u64) -> Option<&'a LoadedObject> {
        let object = self.objects.find(RuntimeAddr(pc))?;
        let now = self.memory.load_u64(object.identity.address.0)?;
        (now == object.identity.value).then_some(object)
    }

    fn apply(
        &self,
        rule: &UnwindRule,
        cursor: &Cursor,
        known: Option<Registers>,
        registers: &mut Option<Registers>,
        kept: impl Fn(u8) -> Option<u64>,
    ) -> Result<Step, WalkError> {
        let register = |number: u8| {
            let value = known.map_or_else(|| kept(number), |known| known.by_dwarf_number(number));
            value.ok_or(WalkError::UnsupportedRule)
        };
        let plus = |base: u64, offset: i32| base.wrapping_add_signed(i64::from(offset));
        let cfa = match rule.cfa {
            CfaRule::SpPlus(offset) => plus(cursor.sp, offset),
            CfaRule::FpPlus(offset) => plus(cursor.fp, offset),
            CfaRule::RegisterPlus(number, offset) => plus(register(number)?, offset),
            CfaRule::IndexedSpDeref { register: number, scale, at, offset } => {
                let index = register(number)?.wrapping_mul(u64::from(scale));
                plus(self.load(plus(cursor.sp.wrapping_add(index), i32::from(at)))?, i32::from(offset))
            }
            CfaRule::FpDeref { at, offset } => {
                plus(self.load(plus(cursor.fp, i32::from(at)))?, i32::from(offset))
            }
            CfaRule::SpDeref { at, offset } => {
                plus(self.load(plus(cursor.sp, i32::from(at)))?, i32::from(offset))
            }
            CfaRule::PltX86_64 { threshold } => {
                let pushed = u64::from(cursor.pc & 15 >= u64::from(threshold));
                cursor.sp.wrapping_add(8).wrapping_add(pushed.wrapping_mul(8))
            }
            CfaRule::SignalFrame => {
                let interrupted = registers::read_signal_frame(self.memory, cursor.sp)?;
                *registers = Some(interrupted);
                let caller = Cursor {
                    pc: interrupted.pc,
                    sp: interrupted.sp(),
                    fp: interrupted.fp(),
                    interrupted: true,
                };
                // The interrupted stack may be anywhere in memory: the handler may run on an alternate stack.
                return Ok(Step::Caller(caller));
            }
            CfaRule::EndOfStack => return Ok(Step::Root),
            CfaRule::Unsupported => return Err(WalkError::UnsupportedRule),
        };
        let pc = match rule.return_address {
            ReturnAddressRule::AtCfaPlus(offset) => self.load_return_address(plus(cfa, offset))?,
            ReturnAddressRule::LinkRegister => {
                let saved = known.and_then(|known| known.return_address());
                saved.ok_or(WalkError::UnsupportedRule)?
            }
        };
        let fp = match rule.fp {
            FpRule::Same => cursor.fp,
            FpRule::AtCfaPlus(offset) => self.load(plus(cfa, offset))?,
            FpRule::AtFpPlus(offset) => self.load(plus(cursor.fp, offset))?,
            FpRule::Undefined => 0,
        };
        // Some thread entries mark the stack's end by a null return address instead of an undefined one.
        if pc == 0 {
            return Ok(Step::Root);
        }
        self.check_progress(cursor, Cursor { pc, sp: cfa, fp, interrupted: false }).map(Step::Caller)
    }

    fn frame_pointer_step(&self, cursor: &Cursor) -> Result<Step, WalkError> {
        if cursor.fp < cursor.sp || !cursor.fp.is_multiple_of(8) {
            return Err(WalkError::NoUnwindRule);
        }
        let fp = self.load(cursor.fp)?;
        let pc = self.load_return_address(cursor.fp.wrapping_add(8))?;
        if !self.is_code(pc) {
            return Err(WalkError::NoUnwindRule);
        }
        let caller = Cursor { pc, sp: cursor.fp.wrapping_add(16), fp, interrupted: false };
        self.check_progress(cursor, caller).map(Step::Caller)
    }

    /// The step from the frame at `cursor` by its frame record, with the caller's stack pointer if the next
    /// step may need it. `object` is the object of the frame at `cursor`.
    ///
    /// On aarch64 a frame record may be anywhere in its frame, and the frame goes on above the record
    /// (AAPCS64, "The Frame Pointer"). Call frame information says how far.
    fn with_stack_pointer(&self, step: Step, cursor: &Cursor, object: Option<&LoadedObject>) -> Step {
        let Step::Caller(caller) = step else { return step };
        let is_needed = || !self.object_at(caller.lookup_pc()).is_some_and(keeps_frame_pointers);
        if !FRAME_GOES_ON_ABOVE_RECORD || !is_needed() {
            return step;
        }
        match self.rule_at(object, cursor.lookup_pc()) {
            Some(UnwindRule { fp: FpRule::AtCfaPlus(record), .. }) => {
                let cfa = cursor.fp.wrapping_sub(i64::from(record).cast_unsigned());
                let caller = self.check_progress(cursor, Cursor { sp: cfa, ..caller });
                caller.map_or(step, Step::Caller)
            }
            _ => step,
        }
    }

    /// Whether code is known to be at `pc`.
    pub(super) fn is_code(&self, pc: u64) -> bool {
        self.objects.find(RuntimeAddr(pc)).is_some() || self.in_code_cache(pc) || (self.loader)(pc).is_some()
    }
}

/// Whether the object's functions keep frame pointers. False until its unwind table is compiled.
fn keeps_frame_pointers(object: &LoadedObject) -> bool {
    object.unwind.get().is_some_and(UnwindTable::keeps_frame_pointers)
}

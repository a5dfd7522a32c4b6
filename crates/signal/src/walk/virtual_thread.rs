//! The transitions of a walk from a virtual thread's frames on the stack to its frozen frames, and to its
//! carrier's frames.

use otlpprof_core::continuation::{ContinuationLayout, FrozenLayout, ThawStub};
use otlpprof_core::memory::Memory;
use otlpprof_core::record::FrameKind;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::vm_layout::VmLayout;

use super::arch;
use super::blob::{Blob, BlobKind};
use super::continuation::frozen_layout;
use super::cursor::{Cursor, Step};
use super::registers::Registers;
use super::repeated::Repeated;
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
    /// Appends the frozen frames, to which the frame at `cursor` returns. With `vm` the stack ends there;
    /// with `vmx` the walk goes on at the carrier's frame. If the frozen frames could not be read, a mark
    /// replaces them, and both walkers go on at the carrier's frame.
    pub(super) fn frozen_step(
        &self,
        cursor: &Cursor,
        repeated: &mut Repeated,
        sink: &mut FrameSink<'_>,
    ) -> Result<Step, WalkError> {
        let vm = self.vm.ok_or(WalkError::BadContinuationEntry)?;
        let stub = frozen_layout(vm).and_then(|layout| layout.thaw_stub_at(cursor.pc));
        match self.frozen_frames(vm, stub.map(|stub| (stub, cursor)), repeated, sink) {
            Ok(()) if self.walker == StackWalker::Vmx => {
                if let Some(layout) = frozen_layout(vm) {
                    sink.java(FrameKind::NativeMethod, 0, layout.enter_special, -1);
                }
                self.carrier_frame(vm).map(Step::Caller)
            }
            Ok(()) => Ok(Step::Root),
            Err(reason) => {
                if let Some(thawed) =
                    stub.and_then(|stub| self.youngest_thawed_of_unlinked_chunk(vm, stub, cursor))
                {
                    return Ok(Step::Caller(thawed));
                }
                sink.frozen(reason, cursor.pc);
                self.carrier_frame(vm).map(Step::Caller)
            }
        }
    }

    /// Whether the Java frame at `cursor` has been frozen by the native code that it has called. A thread
    /// that freezes sets its anchor to the continuation's entry before it writes the first frame
    /// (FreezeBase::unwind_frames).
    pub(super) fn is_frozen_by_callee(&self, vm: &VmLayout, cursor: &Cursor) -> bool {
        let Some((entry, _)) = self.continuation_entry(vm) else { return false };
        let top = self.frozen_top(vm);
        top.is_some_and(|top| {
            top == cursor.pc || entry == cursor.sp || self.is_same_native_method(vm, top, cursor.pc)
        })
    }

    /// Whether the virtual thread has been preempted at a monitor (JDK 24 on), so that the frames on the
    /// stack, from the youngest Java frame at `cursor` on, are frozen as well. In that case the youngest
    /// frozen frame calls no Java: it belongs to a native method or a runtime stub, or is an interpreter
    /// frame at a bytecode that is no call. That frame is taken off the chunk before any other code runs.
    /// `registers` has the registers if the frame was interrupted.
    pub(super) fn is_preempted(&self, vm: &VmLayout, cursor: &Cursor, registers: Option<&Registers>) -> bool {
        let Some(layout) = frozen_layout(vm).filter(|layout| layout.preempt_stub.start != 0) else {
            return false;
        };
        let stubs = &vm.stubs;
        // The PC in one of these stubs shows by itself how far the stub is.
        let self_describing_stubs = [
            layout.preempt_stub,
            stubs.cont_thaw,
            stubs.cont_return_barrier,
            stubs.cont_return_barrier_exception,
        ];
        !self_describing_stubs.iter().any(|range| range.contains(cursor.pc))
            && self.is_frozen_at_no_call(vm, layout)
            && !self.is_entry_unfilled(vm, layout, cursor, registers)
    }

    /// Whether the thread was interrupted in `Continuation.enterSpecial` before the method has stored its
    /// continuation, which is its first argument, in the ContinuationEntry. The method links the entry before
    /// it fills it. Until then the entry has the contents of the one that was at this address before, often
    /// another virtual thread's (cpu/*/sharedRuntime_*.cpp `gen_continuation_enter`,
    /// `continuation_enter_setup`, `fill_continuation_entry`, JDK 25).
    fn is_entry_unfilled(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        cursor: &Cursor,
        registers: Option<&Registers>,
    ) -> bool {
        let is_entering = cursor.interrupted
            && self.blob_at(vm, cursor.pc).is_ok_and(|blob| {
                blob.kind == BlobKind::Nmethod && self.is_enter_special(vm, layout, &blob) == Ok(true)
            });
        let stored = || {
            let (entry, _) = self.continuation_entry(vm)?;
            self.memory.load_u64(entry.wrapping_add(ContinuationLayout::ENTRY_CONTINUATION))
        };
        is_entering && registers.is_none_or(|registers| stored() != Some(registers.java_argument()))
    }

    /// Whether both program counters are in the wrapper of one native method, compiled or the interpreter's.
    /// The chunk keeps the anchor's PC, which differs from the PC to which the native code returns.
    fn is_same_native_method(&self, vm: &VmLayout, one: u64, other: u64) -> bool {
        if let (Some(one), Some(other)) = (vm.stubs.codelet_at(one), vm.stubs.codelet_at(other)) {
            return one == other && one.kind.is_native_entry();
        }
        let (Ok(one), Ok(other)) = (self.blob_at(vm, one), self.blob_at(vm, other)) else { return false };
        one.address == other.address && self.is_native_wrapper(vm, &one)
    }

    /// The step from a frame on the stack that returns to a return barrier at `cursor`.
    pub(super) fn return_barrier_step(&self, vm: &VmLayout, cursor: &Cursor) -> Result<Step, WalkError> {
        match self.is_oldest_on_stack(vm, cursor) {
            true => Ok(Step::Frozen),
            false => Err(WalkError::BadContinuationEntry),
        }
    }

    /// Appends the stub that thaws at `cursor`, and steps to the youngest thawed frame, or to the frozen
    /// frames. `interrupted` has the registers if the stub was interrupted.
    pub(super) fn thaw_stub_step(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        interrupted: Option<&Registers>,
        sink: &mut FrameSink<'_>,
    ) -> Result<Step, WalkError> {
        sink.stub(cursor.lookup_pc());
        match frozen_layout(vm).and_then(|layout| layout.thaw_stub_at(cursor.pc)) {
            Some(stub) => self.thaw_step(vm, stub, cursor, interrupted),
            None => Ok(Step::Frozen),
        }
    }

    /// Appends the cont_preempt at `cursor`, and steps to the carrier's frame if the stub has left the
    /// virtual thread's stack, else to the frozen frames.
    pub(super) fn preempt_stub_step(&self, vm: &VmLayout, cursor: &Cursor, sink: &mut FrameSink<'_>) -> Step {
        sink.stub(cursor.lookup_pc());
        self.step_after_exit(vm, cursor).unwrap_or(Step::Frozen)
    }

    /// Whether a frame that returns to `cursor` can be the oldest one on the stack: only its arguments may
    /// lie between the frame and the ContinuationEntry. A barrier further up is left over from an earlier
    /// frame.
    pub(super) fn is_oldest_on_stack(&self, vm: &VmLayout, cursor: &Cursor) -> bool {
        /// The most bytes of an interpreted method's locals, which the entry does not count as arguments.
        const MOST_LOCAL_BYTES: u64 = 16 * 8;
        let Some((entry, _)) = self.continuation_entry(vm) else { return false };
        let arguments = self.memory.load_u32(entry.wrapping_add(ContinuationLayout::ENTRY_ARGUMENT_WORDS));
        // The stack is aligned below the arguments.
        let argument_bytes =
            arguments.map_or(0, |words| u64::from(words).wrapping_mul(8).next_multiple_of(16));
        entry.wrapping_sub(cursor.sp) <= argument_bytes.wrapping_add(MOST_LOCAL_BYTES)
    }

    /// The caller of a stub that thaws: the youngest thawed frame, once that is on the stack. The stub itself
    /// has no frame.
    fn thaw_step(
        &self,
        vm: &VmLayout,
        stub: &ThawStub,
        cursor: &Cursor,
        interrupted: Option<&Registers>,
    ) -> Result<Step, WalkError> {
        let Some(sp) = arch::thaw_stage::thawed_sp(self.memory, stub, cursor, interrupted) else {
            return Ok(self.anchored_below(vm, cursor).map_or(Step::Frozen, Step::Caller));
        };
        let (pc, fp) = (self.load_return_address(sp.wrapping_sub(8))?, self.load(sp.wrapping_sub(16))?);
        if sp < cursor.sp || sp > self.stack_high || !sp.is_multiple_of(8) {
            return Err(WalkError::BadStackPointer);
        }
        Ok(Step::Caller(Cursor { pc, sp, fp, interrupted: false }))
    }

    /// The youngest thawed frame of a thread that is in `thaw`, called by the stub at `cursor`, if the
    /// thread's anchor is set to it. This is so for a preempted thread, which posts its mount event after its
    /// frames have been copied to the stack (`ThawBase::handle_preempted_continuation`,
    /// runtime/continuationFreezeThaw.cpp, JDK 24 on). The chunk may have been unlinked by then.
    fn anchored_below(&self, vm: &VmLayout, cursor: &Cursor) -> Option<Cursor> {
        let (entry, _) = self.continuation_entry(vm)?;
        let is_thawed = |anchor: &Cursor| cursor.sp < anchor.sp && anchor.sp < entry;
        self.anchor().filter(|anchor| !cursor.interrupted && is_thawed(anchor))
    }

    /// The step below `Continuation.doYield` and cont_preempt once they have left the virtual thread's stack.
    fn step_after_exit(&self, vm: &VmLayout, cursor: &Cursor) -> Option<Step> {
        let layout = vm.continuation.as_ref().filter(|_| cursor.interrupted)?;
        let carrier = arch::continuation_exit::carrier(self.memory, layout, cursor, &self.registers)?;
        // Until the thread's entry is reset, the frames that have just been frozen belong to the thread.
        let is_mounted = self.continuation_entry(vm).is_some_and(|(entry, _)| entry == cursor.sp);
        Some(if is_mounted { Step::Frozen } else { Step::Caller(carrier) })
    }

    /// The step below the last frame in the sink, if that is `Continuation.doYield`'s and has left the stack.
    pub(super) fn yielded(&self, vm: &VmLayout, cursor: &Cursor, sink: &FrameSink<'_>) -> Option<Step> {
        frozen_layout(vm).filter(|layout| cursor.interrupted && sink.ends_in(layout.do_yield))?;
        self.step_after_exit(vm, cursor)
    }

    /// Whether the last frame in the sink is `Continuation.doYield`'s, and has frozen its caller.
    pub(super) fn is_frozen_by_yield(&self, vm: &VmLayout, caller: &Cursor, sink: &FrameSink<'_>) -> bool {
        frozen_layout(vm).is_some_and(|layout| sink.ends_in(layout.do_yield))
            && self.frozen_top(vm) == Some(caller.pc)
    }

    /// Whether the compiled method at `cursor` is `Continuation.enterSpecial`, reached from the
    /// continuation's own frames. The frames below belong to the carrier.
    pub(super) fn is_continuation_entry(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        sink: &FrameSink<'_>,
    ) -> Result<bool, WalkError> {
        let ends = self.walker != StackWalker::Vmx && !cursor.interrupted;
        match frozen_layout(vm).filter(|layout| ends && sink.ends_in(layout.enter)) {
            Some(layout) => self.is_enter_special(vm, layout, blob),
            None => Ok(false),
        }
    }

    /// Whether the compiled method is `Continuation.enterSpecial`.
    pub(super) fn is_enter_special(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        blob: &Blob,
    ) -> Result<bool, WalkError> {
        let method = self.load(blob.address.wrapping_add(u64::from(vm.nmethod.method)))?;
        Ok(method == layout.enter_special)
    }
}

//! The `vm` walker: Java frames through HotSpot's own structures, native frames on top of them.
//!
//! A thread that runs Java is walked from its interrupted registers. Native frames are unwound by unwind
//! tables until the code cache is reached. Java frames follow, across entry frames from anchor to anchor,
//! until an entry frame without an earlier anchor: the root. A thread that runs no Java is walked natively to
//! its own entry.

use otlpprof_core::java_thread_state::JavaThreadState;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::cursor::{Cursor, MAX_STEPS, Step};
use super::registers::Registers;
use super::repeated::Repeated;
use super::sink::FrameSink;
use super::site::Site;
use super::stack_walk::Walk;
use super::walk_error::WalkError;
use crate::counters::{COUNTERS, add};

/// The frame at which a walk begins.
#[derive(Clone, Copy)]
pub(super) struct From {
    pub(super) cursor: Cursor,
    /// The registers at the cursor, if the thread was interrupted there.
    pub(super) registers: Option<Registers>,
    /// The Java frame at which the walk goes on if the native frames on top of it cannot be walked.
    pub(super) anchor: Option<Cursor>,
}

/// The reason why the walk's loop has ended.
pub(super) enum End {
    Root,
    Full,
    Broken(WalkError, u64),
}

impl End {
    /// Appends the frame that marks this kind of end to the sink; the root needs no mark. If the last step
    /// has passed the limit, the stack is truncated, whatever end that step has found.
    pub(super) fn note(self, sink: &mut FrameSink<'_>) {
        match self {
            _ if sink.is_full() => sink.truncate(),
            Self::Root | Self::Full => {}
            Self::Broken(error, pc) => sink.unwalkable(error, pc),
        }
    }
}

impl<M: Memory> Walk<'_, M> {
    /// Walks the whole stack into `sink`, which always receives at least one frame.
    pub(super) fn walk_vm(&self, sink: &mut FrameSink<'_>) {
        self.run(self.top(), sink).note(sink);
    }

    /// The topmost frame, as it was interrupted.
    pub(super) fn top(&self) -> From {
        From { cursor: self.start(), registers: Some(self.registers), anchor: self.anchor() }
    }

    /// Walks on from `from` to the root.
    pub(super) fn run(&self, mut from: From, sink: &mut FrameSink<'_>) -> End {
        // Borrowed in place: copies of the registers would take a good part of a handler's stack.
        let From { cursor, registers, anchor } = &mut from;
        let mut repeated = Repeated::default();
        // A walk that begins at an anchor begins below native code.
        let mut called_out = registers.is_none();
        let mut is_first_java = true;
        let mut has_java_frames = false;
        for _ in 0..MAX_STEPS {
            if sink.is_full() {
                return End::Full;
            }
            let step = match self.vm {
                Some(vm) if self.java_thread != 0 && self.in_code_cache(cursor.pc) => {
                    *anchor = None;
                    has_java_frames = true;
                    // The native callee may have frozen the Java frames below it. They stay on the stack
                    // until it has returned to a stub that leaves them.
                    let is_caller = std::mem::take(&mut called_out);
                    let is_youngest = std::mem::take(&mut is_first_java);
                    let is_frozen = is_caller && self.is_frozen_by_callee(vm, cursor)
                        || is_youngest && self.is_preempted(vm, cursor, registers.as_ref());
                    if is_frozen {
                        Ok(Step::Frozen)
                    } else {
                        let step =
                            self.java_step(vm, cursor, registers.as_ref(), &mut repeated, anchor, sink);
                        // The registers belong to the topmost frame only.
                        *registers = None;
                        match step {
                            // Only known code calls Java. An address outside of it is not a method's return
                            // address.
                            Ok(Step::Caller(caller))
                                if sink.last_method().is_some() && !self.is_code(caller.pc) =>
                            {
                                Err(WalkError::UnknownCode)
                            }
                            step => step,
                        }
                    }
                }
                _ => {
                    called_out = true;
                    let step = self.native_step(cursor, registers, sink);
                    match (step, *anchor) {
                        (Ok(Step::Caller(caller)), Some(below)) if caller.sp <= below.sp => {
                            Ok(Step::Caller(caller))
                        }
                        // The walk either went wrong, or passed the Java frames without meeting one.
                        (Err(_) | Ok(_), Some(below)) if !self.is_at_java(&step) => {
                            add(&COUNTERS.anchor_fallbacks, 1);
                            sink.unwalkable(WalkError::NativeFramesLost, cursor.pc);
                            *anchor = None;
                            *registers = None;
                            Ok(Step::Caller(below))
                        }
                        // A return address of 0 ends some threads' stacks. It also occurs on stacks where the
                        // walk went wrong.
                        (Ok(Step::Root), None) if !has_java_frames && self.has_passed_java_over() => {
                            Err(WalkError::NoUnwindRule)
                        }
                        (step, _) => step,
                    }
                }
            };
            match step {
                Ok(Step::Caller(caller)) => *cursor = caller,
                Ok(Step::Root) => return End::Root,
                Ok(Step::Frozen) => match self.frozen_step(cursor, &mut repeated, sink) {
                    Ok(Step::Caller(carrier)) => {
                        *registers = None;
                        *cursor = carrier;
                    }
                    Ok(_) if sink.is_full() => return End::Full,
                    Ok(_) => return End::Root,
                    Err(error) => return End::Broken(error, cursor.pc),
                },
                Err(error) => return End::Broken(error, cursor.pc),
            }
        }
        End::Broken(WalkError::TooManySteps, cursor.pc)
    }

    fn is_at_java(&self, step: &Result<Step, WalkError>) -> bool {
        matches!(step, Ok(Step::Caller(caller)) if self.in_code_cache(caller.pc))
    }

    /// Whether the stack has Java frames although no anchor leads to them: the thread is in Java state, and
    /// Java has called native code without notifying the VM.
    pub(super) fn must_have_java_frames(&self) -> bool {
        self.java_thread != 0 && self.vm.is_some_and(|vm| self.is_in_java(vm))
    }

    /// Whether a walk that has reached the root without a Java frame has skipped Java frames. A thread in
    /// Java state may have no Java frame yet: the VM sets the state before it calls Java
    /// (`JavaCalls::call_helper`, runtime/javaCalls.cpp). Call frame information, which skips no frame, then
    /// leads to the thread's entry.
    pub(super) fn has_passed_java_over(&self) -> bool {
        self.must_have_java_frames() && !self.is_described_to_entry()
    }

    /// Whether the thread is in Java state.
    pub(super) fn is_in_java(&self, vm: &VmLayout) -> bool {
        self.thread_state(vm) == JavaThreadState::InJava
    }

    /// The thread's state.
    pub(super) fn thread_state(&self, vm: &VmLayout) -> JavaThreadState {
        let number = self.memory.load_u32(self.java_thread.wrapping_add(u64::from(vm.thread.thread_state)));
        number.map_or(JavaThreadState::Unknown, |number| vm.thread.states.of(number))
    }

    /// The thread's last Java frame, if the thread left Java by a call that sets the anchor.
    pub(super) fn anchor(&self) -> Option<Cursor> {
        let vm = self.vm.filter(|_| self.java_thread != 0)?;
        let field = |field: u32| self.memory.load_u64(self.java_thread.wrapping_add(u64::from(field)));
        let layout = &vm.thread;
        self.anchored(field(layout.last_java_sp)?, field(layout.last_java_pc)?, field(layout.last_java_fp)?)
    }

    pub(super) fn anchored(&self, sp: u64, pc: u64, fp: u64) -> Option<Cursor> {
        if sp == 0 || !sp.is_multiple_of(8) {
            return None;
        }
        // On x86_64 the interpreter leaves the anchor's PC empty: it is the return address in the word below
        // the last SP.
        let pc = if pc != 0 { pc } else { self.load_return_address(sp.wrapping_sub(8)).ok()? };
        Some(Cursor { pc, sp, fp, interrupted: false })
    }

    /// The step from the Java frame at `cursor`: recognises the code that the frame is in, and takes the step
    /// for that code.
    #[inline(always)] // Runs for each Java frame.
    fn java_step(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        registers: Option<&Registers>,
        repeated: &mut Repeated,
        anchor: &mut Option<Cursor>,
        sink: &mut FrameSink<'_>,
    ) -> Result<Step, WalkError> {
        // Tried first, since most frames of a deep stack are repeated.
        if let Some(caller) = self.repeated_frames(cursor, repeated, sink) {
            return caller.map(Step::Caller);
        }
        // Without registers, an interrupted frame can only be one below a signal frame that has hidden it.
        let interrupted = registers.filter(|_| cursor.interrupted);
        match self.site(vm, cursor, interrupted)? {
            Site::Interpreter => self.interpreter_step(vm, cursor, interrupted, sink).map(Step::Caller),
            Site::EntryFrame => self.entry_step(vm, cursor, anchor, sink),
            Site::CallStub(registers) => self.call_stub_step(vm, cursor, registers, anchor, sink),
            Site::ReturnBarrier => self.return_barrier_step(vm, cursor),
            Site::ThawStub => self.thaw_stub_step(vm, cursor, interrupted, sink),
            Site::PreemptStub => Ok(self.preempt_stub_step(vm, cursor, sink)),
            Site::Compiled(blob) => self.compiled_step(vm, &blob, cursor, interrupted, repeated, sink),
            Site::Adapter(blob) => self.adapter_step(vm, &blob, cursor, interrupted, sink).map(Step::Caller),
            Site::Stub(kind, blob) => {
                self.stub_step(vm, kind, &blob, cursor, interrupted, sink).map(Step::Caller)
            }
        }
    }

    /// If the walk has met the compiled frame at `cursor` before, repeats its frames, and those of its
    /// callers as far as they have been met too. Returns the first caller that has not been met.
    fn repeated_frames(
        &self,
        cursor: &Cursor,
        repeated: &Repeated,
        sink: &mut FrameSink<'_>,
    ) -> Option<Result<Cursor, WalkError>> {
        let mut seen = repeated.get(cursor.pc).filter(|_| !cursor.interrupted)?;
        let mut cursor = *cursor;
        loop {
            let (frames, frame_bytes) = seen;
            sink.repeat(frames);
            cursor = match self.sized_caller(&self.without_call_words(cursor), frame_bytes) {
                Ok(caller) => caller,
                Err(error) => return Some(Err(error)),
            };
            seen = match repeated.get(cursor.pc) {
                Some(seen) if !sink.is_full() => seen,
                _ => return Some(Ok(cursor)),
            };
        }
    }
}

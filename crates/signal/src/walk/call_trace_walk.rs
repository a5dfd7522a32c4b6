//! The `fp` and `dwarf` walkers: native frames down to the first Java frame, and then the Java frames that
//! AsyncGetCallTrace reports. If AsyncGetCallTrace cannot be asked or fails, HotSpot's structures give the
//! Java frames.

use otlpprof_core::java_thread_state::JavaThreadState;
use otlpprof_core::memory::Memory;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::vm_layout::{CodeletKind, VmLayout};

use super::blob::BlobKind;
use super::cursor::{Cursor, MAX_STEPS, Step};
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::vm::{End, From};
use super::walk_error::WalkError;
use crate::call_trace::CallTraceEnd;
use crate::counters::{COUNTERS, add};

/// The end of the native frames on top of a stack.
#[allow(clippy::large_enum_variant, reason = "nothing is allocated here")]
enum NativeEnd {
    /// The native frames end at Java frames. `None`: the walk cannot reach the Java frames from here.
    Java(Option<From>),
    /// The native frames end where the stack ends.
    Stack(End),
}

impl<M: Memory> Walk<'_, M> {
    /// Walks the stack from `from` on into `sink`.
    pub(super) fn walk_with_call_trace(&self, from: From, sink: &mut FrameSink<'_>) {
        match self.native_frames_on_top(from, sink) {
            NativeEnd::Java(from) => self.call_trace_frames(from, sink),
            NativeEnd::Stack(end) => end.note(sink),
        }
    }

    fn native_frames_on_top(&self, from: From, sink: &mut FrameSink<'_>) -> NativeEnd {
        let From { mut cursor, mut registers, anchor } = from;
        for _ in 0..MAX_STEPS {
            if sink.is_full() {
                return NativeEnd::Stack(End::Full);
            }
            if self.java_thread != 0 && self.may_be_java(cursor.pc) {
                return NativeEnd::Java(Some(From { cursor, registers, anchor: None }));
            }
            let mut step = self.native_step(&cursor, &mut registers, sink);
            let mut is_by_rule = self.walker == StackWalker::Dwarf;
            // A chain of frame pointers that ends, or that passes over Java frames, has met a function
            // without one.
            if !is_by_rule && !matches!(step, Ok(Step::Caller(caller)) if is_above(&caller, anchor)) {
                let described = self.described_step(&cursor, &mut registers);
                is_by_rule = described.is_some();
                step = described.map_or(step, Ok);
            }
            match (step, anchor) {
                (Ok(Step::Caller(caller)), Some(_)) if is_above(&caller, anchor) => cursor = caller,
                // Unwind rules never pass over a frame, whatever lies between a Java frame and its anchor.
                (Ok(Step::Caller(caller)), Some(_)) if is_by_rule && self.in_code_cache(caller.pc) => {
                    cursor = caller;
                }
                (_, Some(below)) => {
                    add(&COUNTERS.anchor_fallbacks, 1);
                    sink.unwalkable(WalkError::NativeFramesLost, cursor.pc);
                    return NativeEnd::Java(Some(From { cursor: below, registers: None, anchor: None }));
                }
                (Ok(Step::Caller(caller)), None) => cursor = caller,
                // The root lies below Java frames that the walk has not met.
                (Ok(Step::Root), None) if self.has_passed_java_over() => {
                    sink.unwalkable(WalkError::NoUnwindRule, cursor.pc);
                    return NativeEnd::Java(None);
                }
                // A native frame's caller is never frozen.
                (Ok(Step::Root | Step::Frozen), None) => return NativeEnd::Stack(End::Root),
                (Err(error), None) => {
                    if !self.can_have_java_frames() {
                        return NativeEnd::Stack(End::Broken(error, cursor.pc));
                    }
                    sink.unwalkable(error, cursor.pc);
                    return NativeEnd::Java(None);
                }
            }
        }
        NativeEnd::Stack(End::Broken(WalkError::TooManySteps, cursor.pc))
    }

    /// Whether the program counter can be in Java code: in the code cache or, if the cache's bounds are not
    /// known, in no loaded object.
    fn may_be_java(&self, pc: u64) -> bool {
        match self.vm {
            Some(_) => self.in_code_cache(pc),
            None => self.objects.find(otlpprof_core::address::RuntimeAddr(pc)).is_none(),
        }
    }

    /// Whether a thread without an anchor can have Java frames nevertheless. It can if it is in Java state,
    /// from which it has called native code without notifying the VM, or if nothing is known about it.
    fn can_have_java_frames(&self) -> bool {
        self.java_thread != 0 && self.vm.is_none() || self.must_have_java_frames()
    }

    /// Marks code that was taken for Java code and is not.
    fn code_in_no_object(&self, cursor: &Cursor, sink: &mut FrameSink<'_>) {
        self.put_native(cursor, sink);
        End::Broken(WalkError::UnknownCode, cursor.pc).note(sink);
    }

    /// Appends the Java frames from `from` on.
    pub(super) fn call_trace_frames(&self, from: Option<From>, sink: &mut FrameSink<'_>) {
        let on_top = sink.len();
        match self.call_trace.filter(|_| self.is_sound_for_call_trace(from.as_ref())) {
            Some(call_trace) => match call_trace.put_frames(self.memory, sink) {
                CallTraceEnd::Complete if self.is_whole(sink) => return add(&COUNTERS.call_traces, 1),
                CallTraceEnd::Truncated => {
                    add(&COUNTERS.call_traces, 1);
                    return sink.truncate();
                }
                // If nothing else is known about the thread, an empty trace is an answer.
                CallTraceEnd::Empty if self.vm.is_none() => {
                    if let Some(from) = from {
                        self.code_in_no_object(&from.cursor, sink);
                    }
                    return;
                }
                CallTraceEnd::Complete | CallTraceEnd::Empty | CallTraceEnd::Failed => {
                    sink.cut(on_top);
                    add(&COUNTERS.call_traces_failed, 1);
                }
            },
            None => add(&COUNTERS.call_traces_avoided, 1),
        }
        match from.filter(|_| self.vm.is_some()) {
            Some(from) => {
                let end = self.run(from, sink);
                if let (End::Root, Some(call_trace), Some(root)) = (&end, self.call_trace, sink.last_method())
                {
                    call_trace.roots.learn(root);
                }
                end.note(sink);
            }
            None => End::Broken(WalkError::NoCallTrace, self.registers.pc).note(sink),
        }
    }

    /// Whether the trace ends at a method at which complete stacks end. Without a layout of the VM there is
    /// nothing to compare with, and the trace counts as complete.
    fn is_whole(&self, sink: &FrameSink<'_>) -> bool {
        let root = sink.last_method();
        self.vm.is_none()
            || self.call_trace.is_some_and(|source| root.is_some_and(|root| source.roots.knows(root)))
    }

    /// Whether AsyncGetCallTrace starts at an unambiguous frame and reaches the stack's end. In stubs,
    /// adapters, prologues and epilogues it guesses, and finds wrong frames or reads memory that is no frame.
    /// Threads that are starting or ending have no frames that it could find. It leaves out a virtual
    /// thread's frames that are frozen on the heap.
    fn is_sound_for_call_trace(&self, from: Option<&From>) -> bool {
        let Some(vm) = self.vm else { return true };
        let field = |field: u32| self.memory.load_u64(self.java_thread.wrapping_add(u64::from(field)));
        if vm.continuation.is_some_and(|continuation| field(continuation.entry) != Some(0)) {
            return false;
        }
        match self.thread_state(vm) {
            JavaThreadState::InNative | JavaThreadState::InVm | JavaThreadState::Blocked => {
                field(vm.thread.last_java_sp).is_some_and(|sp| sp != 0)
            }
            JavaThreadState::InJava => match from {
                None => true,
                Some(From { cursor, registers: Some(_), .. }) => self.is_complete_java_frame(vm, cursor),
                Some(_) => false,
            },
            JavaThreadState::New | JavaThreadState::Unknown => false,
        }
    }

    /// Whether the interrupted frame is in the middle of a method.
    fn is_complete_java_frame(&self, vm: &VmLayout, cursor: &Cursor) -> bool {
        if vm.stubs.interpreter.contains(cursor.pc) {
            let codelet = vm.stubs.codelet_at(cursor.pc);
            return codelet.is_some_and(|codelet| codelet.kind == CodeletKind::Other);
        }
        let Ok(blob) = self.blob_at(vm, cursor.pc) else { return false };
        blob.kind == BlobKind::Nmethod
            && self
                .interrupted_stage(vm, &blob, cursor.pc)
                .and_then(|(_, stage)| {
                    self.interrupted_compiled_caller(vm, &blob, cursor, &self.registers, stage)
                })
                .is_ok_and(|caller| self.sized_caller(cursor, blob.frame_bytes) == Ok(caller))
    }
}

/// Whether a native frame is above the last Java frame. True if the anchor is not known.
fn is_above(caller: &Cursor, anchor: Option<Cursor>) -> bool {
    anchor.is_none_or(|below| caller.sp <= below.sp)
}

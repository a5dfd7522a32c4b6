//! A compiled frame that is being replaced by interpreter frames (runtime/deoptimization.cpp,
//! cpu/x86/sharedRuntime_x86_64.cpp generate_deopt_blob, JDK 11-25; generate_uncommon_trap_blob, JDK 11-21 in
//! cpu/x86/sharedRuntime_x86_64.cpp, JDK 25 in cpu/x86/runtime_x86_64.cpp).
//!
//! The blob pops the compiled frame and pushes interpreter frames. Their methods and bytecodes are garbage
//! until `Deoptimization::unpack_frames` has filled them in. From before the pop until after the filling in,
//! the thread's vframeArray has the frames that the compiled frame stood for, and its caller.

use otlpprof_core::memory::Memory;
use otlpprof_core::record::FrameKind;
use otlpprof_core::vm_layout::VmLayout;

use super::blob::{Blob, BlobKind, StubKind};
use super::cursor::Cursor;
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::walk_error::WalkError;

/// The most elements of an array. More than any compiled frame's inlined methods are garbage.
const MAX_ELEMENTS: u32 = 512;

impl<M: Memory> Walk<'_, M> {
    /// If the blob at `cursor` is unpacking a compiled frame, appends that frame's Java frames and returns
    /// its caller. The blob's own frame must be in the sink already.
    pub(super) fn deoptimized_frames(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        sink: &mut FrameSink<'_>,
    ) -> Result<Option<Cursor>, WalkError> {
        if blob.kind != BlobKind::Stub(StubKind::Deoptimization) {
            return Ok(None);
        }
        let Some(layout) = &vm.vframe_array else { return Ok(None) };
        let array = self.load(self.java_thread.wrapping_add(u64::from(layout.head)))?;
        if array == 0 {
            return Ok(None);
        }
        let field = |field: u32| self.load(array.wrapping_add(u64::from(field)));
        let count = self.memory.load_u32(array.wrapping_add(u64::from(layout.frames)));
        let count = count.filter(|count| (1..=MAX_ELEMENTS).contains(count));
        let Some(count) = count.filter(|_| field(layout.owner_thread) == Ok(self.java_thread)) else {
            return Err(WalkError::BadInterpreterFrame);
        };
        let caller = Cursor {
            pc: field(layout.caller_pc)?,
            sp: field(layout.caller_unextended_sp)?,
            fp: field(layout.caller_fp)?,
            interrupted: false,
        };
        let caller = self.check_progress(cursor, caller)?;
        let first = array.wrapping_add(u64::from(layout.elements));
        for index in 0..u64::from(count) {
            let element = first.wrapping_add(index.wrapping_mul(u64::from(layout.element_size)));
            let method = self.load(element.wrapping_add(u64::from(layout.element_method)))?;
            self.bytecodes(vm, method)?;
            // -1 is the entry, as in a compiled method's scopes.
            let bci = self.load_i32(element.wrapping_add(u64::from(layout.element_bci)))?.max(0);
            sink.java(FrameKind::Interpreted, 0, method, bci);
        }
        if self.hides_frozen_frames(vm, &caller)? {
            return Ok(Some(Cursor { pc: vm.stubs.cont_return_barrier.start, ..caller }));
        }
        Ok(Some(caller))
    }

    /// Whether frames that are frozen on the heap lie between a deoptimised frame and its `caller`. The array
    /// leaves frozen frames out, and has the continuation's entry as the caller
    /// (frame::sender_for_compiled_frame, JDK 21 on). Only the return address, while it is on the stack,
    /// shows that no frames are frozen.
    fn hides_frozen_frames(&self, vm: &VmLayout, caller: &Cursor) -> Result<bool, WalkError> {
        let Some((entry, _)) = self.continuation_entry(vm) else { return Ok(false) };
        Ok(entry == caller.sp && self.load_return_address(caller.sp.wrapping_sub(8))? != caller.pc)
    }
}

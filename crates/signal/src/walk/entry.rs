//! Entry frames: where native code has called Java, through the call stub.

use otlpprof_core::memory::Memory;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::vm_layout::VmLayout;

use super::cursor::{Cursor, Step};
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
    /// The caller of the entry frame at `cursor`. Its JavaCallWrapper keeps the anchor of the earlier Java
    /// frames (runtime/javaCalls.hpp). `vm` goes on at that anchor, or ends if there is none. `vmx` goes on
    /// in the native code that called Java; `anchor` is where `vmx` finds Java again if that native code
    /// cannot be walked.
    pub(super) fn entry_step(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        anchor: &mut Option<Cursor>,
        sink: &mut FrameSink<'_>,
    ) -> Result<Step, WalkError> {
        if cursor.interrupted {
            // Java has returned, and the call stub itself is running.
            sink.stub(cursor.lookup_pc());
        }
        let slot = i64::from(vm.thread.entry_frame_call_wrapper);
        let wrapper = self.slot(cursor.fp, slot).map_err(|_| WalkError::BadEntryFrame)?;
        if self.walker == StackWalker::Vmx && !cursor.interrupted {
            sink.stub(cursor.lookup_pc());
        }
        self.called_from_native(vm, cursor, wrapper, self.call_stub_caller(cursor), anchor)
    }

    /// The step below an entry frame whose JavaCallWrapper is known: to the native code that called Java, or
    /// to the earlier Java frames.
    pub(super) fn called_from_native(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        wrapper: u64,
        native_caller: Result<Cursor, WalkError>,
        anchor: &mut Option<Cursor>,
    ) -> Result<Step, WalkError> {
        let before = self.java_frames_before(vm, cursor, wrapper)?;
        if self.walker == StackWalker::Vmx {
            *anchor = before;
            return native_caller.map(Step::Caller);
        }
        Ok(before.map_or(Step::Root, Step::Caller))
    }

    /// The last Java frame before the entry frame at `cursor`. `None` for the thread's first entry.
    fn java_frames_before(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        wrapper: u64,
    ) -> Result<Option<Cursor>, WalkError> {
        let layout = &vm.thread;
        let bad = WalkError::BadEntryFrame;
        let field = |field: u32| self.memory.load_u64(wrapper.wrapping_add(u64::from(field))).ok_or(bad);
        let sp = field(layout.call_wrapper_last_java_sp)?;
        if sp == 0 {
            return Ok(None);
        }
        let pc = field(layout.call_wrapper_last_java_pc)?;
        let fp = field(layout.call_wrapper_last_java_fp)?;
        let before = self.anchored(sp, pc, fp).ok_or(bad)?;
        if !self.in_code_cache(before.pc) || before.sp <= cursor.sp || before.sp > self.stack_high {
            return Err(bad);
        }
        Ok(Some(before))
    }

    /// The caller of the call stub, which begins as a C function does, with a frame pointer, and keeps it
    /// (cpu/*/stubGenerator_*.cpp, generate_call_stub, JDK 11-25).
    fn call_stub_caller(&self, cursor: &Cursor) -> Result<Cursor, WalkError> {
        let caller = Cursor {
            pc: self.load_return_address(cursor.fp.wrapping_add(8))?,
            sp: cursor.fp.wrapping_add(16),
            fp: self.slot(cursor.fp, 0)?,
            interrupted: false,
        };
        self.check_progress(cursor, caller)
    }
}

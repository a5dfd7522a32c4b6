//! The site of a Java frame: the code that its program counter is in. A walk recognises the site, and then
//! steps ([`super::vm`]).

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::blob::{Blob, BlobKind, StubKind};
use super::continuation::frozen_layout;
use super::cursor::Cursor;
use super::registers::Registers;
use super::stack_walk::Walk;
use super::walk_error::WalkError;

/// The code that a program counter in the code cache is in.
pub(super) enum Site<'r> {
    /// The interpreter.
    Interpreter,
    /// The address in the call stub to which Java returns: the frame is an entry frame.
    EntryFrame,
    /// The call stub, or catch_exception, which runs in the call stub's frame. Interrupted, with these
    /// registers.
    CallStub(&'r Registers),
    /// The beginning of a return barrier, as a return address: the caller is frozen.
    ReturnBarrier,
    /// A stub that puts frozen frames back onto the stack: cont_thaw, or a return barrier that is running.
    ThawStub,
    /// cont_preempt, which leaves a virtual thread's stack (JDK 24 on).
    PreemptStub,
    /// A compiled method, or a native method's wrapper.
    Compiled(Blob),
    /// An I2C or C2I adapter.
    Adapter(Blob),
    /// Any other stub. The entry barrier's stub has no kind of its own: the rules for the other kinds contain
    /// its guards, whose order differs between the architectures, and between interrupted and returned stubs.
    Stub(StubKind, Blob),
}

impl<M: Memory> Walk<'_, M> {
    /// Recognises the site of the Java frame at `cursor`. `interrupted` has the registers if the frame was
    /// interrupted and they are known.
    ///
    /// The addresses of the layout come first. They are compared without a load, and are certain. A blob's
    /// name is read from memory, and decides only where no address does. The order of the tests is part of
    /// the result.
    #[inline(always)] // A site is not copied: a handler's stack may be small.
    pub(super) fn site<'r>(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        interrupted: Option<&'r Registers>,
    ) -> Result<Site<'r>, WalkError> {
        let (stubs, pc) = (&vm.stubs, cursor.pc);
        if stubs.interpreter.contains(pc) {
            return Ok(Site::Interpreter);
        }
        // Guard before the call stub, which contains this address.
        if pc == stubs.call_stub_return {
            return Ok(Site::EntryFrame);
        }
        // Without registers, code of the call stub is walked as any other stub of its blob.
        if let Some(registers) = interrupted
            && (stubs.call_stub.contains(pc) || stubs.catch_exception.contains(pc))
        {
            return Ok(Site::CallStub(registers));
        }
        // Guard before the stubs that thaw, which begin at these addresses. As a return address, the
        // beginning stands for a frozen caller. An interrupted stub is a frame of its own.
        let barriers = [stubs.cont_return_barrier, stubs.cont_return_barrier_exception];
        if !cursor.interrupted && barriers.iter().any(|barrier| barrier.start == pc) {
            return Ok(Site::ReturnBarrier);
        }
        if barriers.iter().any(|barrier| barrier.contains(pc)) || stubs.cont_thaw.contains(pc) {
            return Ok(Site::ThawStub);
        }
        if frozen_layout(vm).is_some_and(|layout| layout.preempt_stub.contains(pc)) {
            return Ok(Site::PreemptStub);
        }
        let blob = self.blob_at(vm, pc)?;
        Ok(match blob.kind {
            BlobKind::Nmethod => Site::Compiled(blob),
            BlobKind::Adapter => Site::Adapter(blob),
            // Guard before the names of stubs: the layout has the address of forward_exception.
            BlobKind::Stub(_) if stubs.forward_exception.contains(pc) => {
                Site::Stub(StubKind::ForwardException, blob)
            }
            BlobKind::Stub(named) => Site::Stub(named, blob),
        })
    }
}

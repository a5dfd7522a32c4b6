//! Code blobs: every allocated block of HotSpot's code cache begins with a header of this kind.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{BlobPart, VmLayout};

use super::stack_walk::Walk;
use super::walk_error::WalkError;

/// The kinds of blobs that a walker distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlobKind {
    /// A compiled method or a native method's wrapper.
    Nmethod,
    /// "I2C/C2I adapters". Adapters from an AOT cache (25 on) are known by their kind: they are named by the
    /// types of their arguments, such as "LJ" (`AdapterHandlerLibrary::lookup_aot_cache`,
    /// runtime/sharedRuntime.cpp).
    Adapter,
    /// Any other blob.
    Stub(StubKind),
}

/// The kinds of stubs that a walker distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StubKind {
    /// "vtable chunks": vtable and itable stubs.
    Vtable,
    /// C1's slow_subtype_check, whose arguments are on the stack.
    SlowSubtypeCheck,
    /// C1's unwind_exception, which has no frame and leaves the frame pointer to its caller.
    UnwindException,
    /// "MethodHandles adapters": the interpreter's entries of method handle intrinsics.
    MethodHandleEntry,
    /// "DeoptimizationBlob" and "UncommonTrapBlob", which replace a compiled frame by interpreter frames.
    Deoptimization,
    /// "ExceptionBlob", to which compiled methods jump with an exception.
    Exception,
    /// The target of compiled code's safepoint polls: by its kind (23 on) or name, "SafepointBlob".
    Safepoint,
    /// "shenandoah_barrier_stubs" and "zgc_load_barrier_stubs": called to process a loaded reference (JDK
    /// 11).
    Collector,
    /// StubRoutines' forward_exception. The layout has its address; its blob's name does not tell it apart.
    ForwardException,
    /// Any other stub: runtime stubs, the rest of StubRoutines.
    Other,
}

/// One allocated blob.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blob {
    /// The CodeBlob's address.
    pub address: u64,
    pub kind: BlobKind,
    pub code_begin: u64,
    /// The frame size in bytes, return address included; 0 or less if the blob has none.
    pub frame_bytes: i64,
}

/// The stub section of a compiled method, after the method's own code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stubs {
    code_begin: u64,
    pub begin: u64,
    /// The blob's end. The blob's other sections lie between the stubs and this address.
    pub end: u64,
}

impl Stubs {
    /// Whether `target` is in the method's own code.
    pub(super) fn leads_back(&self, target: u64) -> bool {
        (self.code_begin..self.begin).contains(&target)
    }
}

/// The first eight bytes of a blob's name, in the form in which names are compared.
const fn name_word(name: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*name)
}

const NMETHOD: u64 = name_word(b"nmethod\0");
const NATIVE_NMETHOD: u64 = name_word(b"native n");
const ADAPTER: u64 = name_word(b"I2C/C2I ");
/// "slow_subtype_check Runtime1 stub" until 21, "C1 Runtime slow_subtype_check_blob" in 25 and 26,
/// "slow_subtype_check_blob (C1 runtime)" in 27.
const SLOW_SUBTYPE_CHECK: u64 = name_word(b"slow_sub");
/// "unwind_exception Runtime1 stub" until 21, "C1 Runtime unwind_exception_blob" in 25 and 26,
/// "unwind_exception_blob (C1 runtime)" in 27.
const UNWIND_EXCEPTION: u64 = name_word(b"unwind_e");
const C1_RUNTIME: u64 = name_word(b"C1 Runti");
const C1_RUNTIME_PREFIX_BYTES: u64 = 11;
const METHOD_HANDLE_ENTRY: u64 = name_word(b"MethodHa");
const DEOPTIMIZATION: u64 = name_word(b"Deoptimi");
const UNCOMMON_TRAP: u64 = name_word(b"Uncommon");
const EXCEPTION: u64 = name_word(b"Exceptio");
const SAFEPOINT: u64 = name_word(b"Safepoin");
const VTABLE: u64 = name_word(b"vtable c");
const ZGC_BARRIER: u64 = name_word(b"zgc_load");
/// "shenandoah_barrier_stubs", and not C1's "shenandoah_pre_barrier_slow".
const SHENANDOAH: u64 = name_word(b"shenando");
const COLLECTOR_STUB: u64 = name_word(b"ah_barri");

/// The longest chain of segment map hops: each hop is at most 254 segments, and blobs are below 16 MiB.
const MAX_SEGMENT_HOPS: usize = 1024;

impl<M: Memory> Walk<'_, M> {
    /// Whether `pc` is in the code cache.
    pub(super) fn in_code_cache(&self, pc: u64) -> bool {
        self.code_cache.bounds.contains(pc)
    }

    /// The CodeBlob in the allocated block around `pc`, found by code heap, segment map and block
    /// (`CodeHeap::find_block_for`, memory/heap.cpp).
    pub(super) fn blob_address(&self, vm: &VmLayout, pc: u64) -> Result<u64, WalkError> {
        let heap = self.code_cache.heaps.iter().find(|heap| heap.code.contains(pc));
        let heap = heap.ok_or(WalkError::NoCodeBlob)?;
        let (low, shift) = (heap.code.start, heap.segment_shift);
        let mut segment = pc.wrapping_sub(low).checked_shr(shift).ok_or(WalkError::Unreadable)?;
        for _ in 0..MAX_SEGMENT_HOPS {
            let hop = self.memory.load_u8(heap.segment_map.wrapping_add(segment));
            match hop.ok_or(WalkError::Unreadable)? {
                0 => {
                    let block = low.wrapping_add(segment.wrapping_shl(shift));
                    let used = block.wrapping_add(u64::from(vm.code_cache.block_used));
                    if self.memory.load_u8(used) != Some(1) {
                        return Err(WalkError::NoCodeBlob);
                    }
                    return Ok(block.wrapping_add(u64::from(vm.code_cache.block_size)));
                }
                u8::MAX => return Err(WalkError::NoCodeBlob),
                hop => segment = segment.checked_sub(u64::from(hop)).ok_or(WalkError::NoCodeBlob)?,
            }
        }
        Err(WalkError::NoCodeBlob)
    }

    /// The blob around `pc`.
    pub(super) fn blob_at(&self, vm: &VmLayout, pc: u64) -> Result<Blob, WalkError> {
        let address = self.blob_address(vm, pc)?;
        let layout = &vm.code_blob;
        let name = self.load(address.wrapping_add(u64::from(layout.name)))?;
        let kind = match self.load(name)? {
            NMETHOD | NATIVE_NMETHOD => BlobKind::Nmethod,
            ADAPTER => BlobKind::Adapter,
            word => match self.stated_kind(vm, address) {
                Some(kind) => kind,
                None => BlobKind::Stub(self.named_stub(name, word)),
            },
        };
        let code_begin = self.blob_part(address, layout.code_begin)?;
        let frame_words = self.load_i32(address.wrapping_add(u64::from(layout.frame_size)))?;
        let frame_bytes = i64::from(frame_words).wrapping_mul(8);
        Ok(Blob { address, kind, code_begin, frame_bytes })
    }

    /// The kind that the blob at `blob` states, if its name does not tell the kind in all releases.
    fn stated_kind(&self, vm: &VmLayout, blob: u64) -> Option<BlobKind> {
        let kinds = vm.code_blob.kinds?;
        let kind = self.memory.load_u8(blob.wrapping_add(u64::from(kinds.field)))?;
        match kind {
            _ if kind == kinds.adapter => Some(BlobKind::Adapter),
            _ if kind == kinds.safepoint => Some(BlobKind::Stub(StubKind::Safepoint)),
            _ => None,
        }
    }

    /// The kind of the stub with the name at `name`, which begins with `word`.
    fn named_stub(&self, name: u64, word: u64) -> StubKind {
        match word {
            VTABLE => StubKind::Vtable,
            SLOW_SUBTYPE_CHECK => StubKind::SlowSubtypeCheck,
            UNWIND_EXCEPTION => StubKind::UnwindException,
            C1_RUNTIME => match self.load(name.wrapping_add(C1_RUNTIME_PREFIX_BYTES)) {
                Ok(SLOW_SUBTYPE_CHECK) => StubKind::SlowSubtypeCheck,
                Ok(UNWIND_EXCEPTION) => StubKind::UnwindException,
                _ => StubKind::Other,
            },
            METHOD_HANDLE_ENTRY => StubKind::MethodHandleEntry,
            ZGC_BARRIER => StubKind::Collector,
            SHENANDOAH if self.load(name.wrapping_add(8)) == Ok(COLLECTOR_STUB) => StubKind::Collector,
            DEOPTIMIZATION | UNCOMMON_TRAP => StubKind::Deoptimization,
            EXCEPTION => StubKind::Exception,
            SAFEPOINT => StubKind::Safepoint,
            _ => StubKind::Other,
        }
    }

    /// The address of a part of the blob at `blob`.
    pub(super) fn blob_part(&self, blob: u64, part: BlobPart) -> Result<u64, WalkError> {
        let int = |field: u32| self.load_i32(blob.wrapping_add(u64::from(field))).map(i64::from);
        let pointer = |field: u32| self.load(blob.wrapping_add(u64::from(field)));
        Ok(match part {
            BlobPart::Pointer(field) => pointer(field)?,
            BlobPart::FromBlob(field) => blob.wrapping_add_signed(int(field)?),
            BlobPart::FromPointer { base, offset } => pointer(base)?.wrapping_add_signed(int(offset)?),
        })
    }

    /// The compiled method's stub section.
    pub(super) fn stubs(&self, vm: &VmLayout, blob: &Blob) -> Option<Stubs> {
        let begin = self.blob_part(blob.address, vm.nmethod.stub_begin).ok()?;
        Some(Stubs { code_begin: blob.code_begin, begin, end: self.blob_end(vm, blob).ok()? })
    }

    /// The end of the blob.
    pub(super) fn blob_end(&self, vm: &VmLayout, blob: &Blob) -> Result<u64, WalkError> {
        let size = self.load_i32(blob.address.wrapping_add(u64::from(vm.code_blob.size)))?;
        Ok(blob.address.wrapping_add_signed(i64::from(size)))
    }

    /// `_frame_complete_offset`: the offset from the code's start at which the VM says that the frame is
    /// complete.
    pub(super) fn frame_complete(&self, vm: &VmLayout, blob: &Blob) -> Result<i64, WalkError> {
        let address = blob.address.wrapping_add(u64::from(vm.code_blob.frame_complete));
        if vm.code_blob.frame_complete_width == 2 {
            let value = self.memory.load_u16(address).ok_or(WalkError::Unreadable)?;
            Ok(i64::from(value as i16))
        } else {
            self.load_i32(address).map(i64::from)
        }
    }
}

//! Room for a signal frame, on x86-64.

use std::ptr;

/// `X86_TRAP_GP` (arch/x86/include/asm/trapnr.h): an access to a non-canonical address raises a SIGSEGV with
/// the same code. Every signal frame holds the number of the thread's last trap.
const GENERAL_PROTECTION: i64 = 13;

/// The offset of `_fpx_sw_bytes` in the area of floating-point registers
/// (arch/x86/include/uapi/asm/sigcontext.h). The structure is the last 48 of the area's first 512 bytes and
/// begins with a mark, then the size of the whole area.
const MARK_OFFSET: usize = 464;
const MARK: u32 = 0x4650_5853;
/// The size, in bytes, of the area without the registers of later processors.
const LEGACY_BYTES: usize = 512;

/// The bytes that the alignment of area and frame may take.
const ALIGNMENT_BYTES: usize = 64 + 16;
/// The bytes below the stack pointer where the interrupted function may have data.
const RED_ZONE_BYTES: usize = 128;

/// The start of the kernel's `struct sigcontext_64` (arch/x86/include/uapi/asm/sigcontext.h). The type that
/// `libc` has for musl keeps the second field private.
#[repr(C)]
struct MachineContext {
    registers: [i64; 23],
    /// The floating-point registers, or null.
    area: *const u8,
}

/// Whether the thread has an alternate stack on which a frame as large as this one would not fit.
pub(super) fn has_no_room_for_frame(context: &libc::ucontext_t) -> bool {
    let stack = &context.uc_stack;
    if stack.ss_flags & libc::SS_DISABLE != 0 || stack.ss_size == 0 {
        return false;
    }
    let register = |number: i32| context.uc_mcontext.gregs.get(number as usize).copied().unwrap_or(0);
    if register(libc::REG_TRAPNO) == GENERAL_PROTECTION {
        return false;
    }
    let below = (register(libc::REG_RSP) as usize).wrapping_sub(stack.ss_sp.addr());
    let room = if below < stack.ss_size { below.saturating_sub(RED_ZONE_BYTES) } else { stack.ss_size };
    room < frame_bytes(context).wrapping_add(ALIGNMENT_BYTES)
}

/// Returns the size of the frame that contains `context`: from the return address below it to the end of the
/// registers' area.
fn frame_bytes(context: &libc::ucontext_t) -> usize {
    // SAFETY: the kernel's registers begin like `MachineContext`, in every C library's type.
    let area = unsafe { (&raw const context.uc_mcontext).cast::<MachineContext>().read() }.area;
    if area.is_null() {
        return size_of::<libc::ucontext_t>();
    }
    // SAFETY: the kernel has written the area, whose first 512 bytes always have this layout.
    let (mark, bytes) = unsafe {
        let mark = area.byte_add(MARK_OFFSET).cast::<u32>();
        (mark.read_unaligned(), mark.add(1).read_unaligned())
    };
    let area_bytes = if mark == MARK { bytes as usize } else { LEGACY_BYTES };
    let frame = ptr::from_ref(context).addr().wrapping_sub(size_of::<usize>());
    area.addr().wrapping_add(area_bytes).wrapping_sub(frame)
}

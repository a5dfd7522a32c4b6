//! Stacks of the handlers' own, for samples of threads whose stack may have no room for one.
//!
//! A sample takes some 6 KiB of stack, AsyncGetCallTrace up to 13 KiB more (JDK 21), and a load that faults another frame of
//! the kernel's. An alternate signal stack is often smaller (8 KiB in Rust's threads), a coroutine's stack too, and nobody
//! says where that one ends. So a sample is taken on the thread's stack where that is known to be ample, and else on one of
//! these: what the thread must have is the kernel's frame and [`ENTRY_BYTES`].
//!
//! The stacks are made at a session's start and never unmapped. A handler claims one, and waits for none.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::chain;
use crate::core::thread::ThreadRecord;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64/handler_stack.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64/handler_stack.rs"]
mod arch;

/// Twice the strips of the sample buffer, of which a sample needs one too.
const STACKS: usize = 32;
/// The most that was measured is 19 KiB, and a fault's frame is up to 12 KiB where the thread uses AMX.
const STACK_BYTES: usize = 128 << 10;
/// Below each stack; a multiple of any page's size.
const GUARD_BYTES: usize = 64 << 10;
const SLOT_BYTES: usize = GUARD_BYTES + STACK_BYTES;

/// Room in which all can be done that a handler does: on alternate stacks and on the handlers' own.
const AMPLE_BYTES: usize = 64 << 10;
/// The same on a thread's ordinary stack, at whose end HotSpot has zones that may not be touched (16 KiB with pages of
/// 4 KiB, more with larger ones and by option).
const AMPLE_ORDINARY_BYTES: usize = 256 << 10;

/// Bytes that a handler takes of the thread's own stack beside the kernel's frame, before it is on another: 360 were
/// measured.
pub const ENTRY_BYTES: usize = 512;

/// Bytes that a walk without AsyncGetCallTrace takes at most, on whatever stack.
const WALK_BYTES: usize = 7 << 10;

/// The lowest address; 0 until they are there.
static BASE: AtomicUsize = AtomicUsize::new(0);
static IS_CLAIMED: [AtomicBool; STACKS] = [const { AtomicBool::new(false) }; STACKS];

/// Makes the stacks, if they are not there. Ordinary zone. `false`: there is no memory for them.
pub fn prepare() -> bool {
    if BASE.load(Ordering::Acquire) != 0 {
        return true;
    }
    let bytes = STACKS.wrapping_mul(SLOT_BYTES);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    // SAFETY: fresh memory, nobody else's; each part that is opened lies in it.
    unsafe {
        let memory = libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return false;
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let is_open = (0..STACKS).all(|slot| {
            let stack = memory.byte_add(slot.wrapping_mul(SLOT_BYTES).wrapping_add(GUARD_BYTES));
            libc::mprotect(stack, STACK_BYTES, access) == 0
        });
        let published =
            is_open && BASE.compare_exchange(0, memory.addr(), Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !published {
            libc::munmap(memory, bytes);
        }
    }
    BASE.load(Ordering::Acquire) != 0
}

/// A stretch of addresses.
#[derive(Clone, Copy)]
struct Stretch {
    low: usize,
    bytes: usize,
}

impl Stretch {
    /// Bytes of the stack below `here`, if that is in it.
    fn room_below(self, here: usize) -> Option<usize> {
        let room = here.wrapping_sub(self.low);
        (room < self.bytes).then_some(room)
    }
}

/// How much room there is on the current stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// For all that a handler does.
    Ample,
    /// For a walk by the handler itself, as far as can be known.
    ForWalk,
    /// Too little.
    TooLittle,
}

/// The room on the current stack, of `thread`; `context` is the interrupted `ucontext_t`, or null.
#[inline(always)] // It is asked for before there is known to be any.
pub fn room(thread: &ThreadRecord, context: *mut c_void) -> Room {
    let here = here();
    let own = own_stack(here).and_then(|stack| stack.room_below(here));
    let alternate = alternate_stack(context).and_then(|stack| stack.room_below(here));
    let is_ample = match (own.or(alternate), ordinary_stack(thread).room_below(here)) {
        (Some(room), _) => room >= AMPLE_BYTES,
        (None, ordinary) => ordinary.is_some_and(|room| room >= AMPLE_ORDINARY_BYTES),
    };
    if is_ample {
        return Room::Ample;
    }
    let known = own.or(alternate).or(ordinary_stack(thread).room_below(here));
    // A load that faults has another frame of the kernel's put below.
    let needed = WALK_BYTES.wrapping_add(kernel_frame_bytes(here, context));
    if known.is_none_or(|room| room >= needed) { Room::ForWalk } else { Room::TooLittle }
}

/// Calls `take` where it has ample room: here, or on one of the handlers' own stacks. Where all are in use it is called
/// here if there is room for its beginning, as far as can be known; [`room`] says then what it may do. `None`: there is none.
///
/// `thread` is the current one, `context` the interrupted `ucontext_t`, or null.
#[inline(always)] // As above.
pub fn with_room<R>(thread: &ThreadRecord, context: *mut c_void, take: impl FnOnce() -> R) -> Option<R> {
    let mut call = Call { take: Some(take), result: None, hides_alternate_stack: false };
    if room(thread, context) == Room::Ample {
        run(&mut call);
        return call.result;
    }
    let Some(stack) = Claimed::any() else {
        if has_room_to_begin(thread, context) {
            run(&mut call);
        }
        return call.result;
    };
    call.hides_alternate_stack = must_hide_alternate_stack(context);
    call.run_on(&stack);
    drop(stack);
    call.result
}

/// A call, and what came of it.
struct Call<F, R> {
    take: Option<F>,
    result: Option<R>,
    hides_alternate_stack: bool,
}

impl<F: FnOnce() -> R, R> Call<F, R> {
    fn run_on(&mut self, stack: &Claimed) {
        extern "C" fn run_at<F: FnOnce() -> R, R>(call: *mut c_void) {
            // SAFETY: `run_on` passes such a call, and waits.
            let call = unsafe { &mut *call.cast::<Call<F, R>>() };
            let hidden = call.hides_alternate_stack.then(HiddenAlternateStack::hide);
            run(call);
            drop(hidden);
        }
        // SAFETY: the stack is this call's alone until it returns; the function takes the address of such a call.
        unsafe {
            arch::call_on_stack(stack.top(), run_at::<F, R> as *const c_void, ptr::from_mut(self).cast());
        }
    }
}

#[inline(never)] // What it needs is not taken of the stack before it is known to be there.
fn run<F: FnOnce() -> R, R>(call: &mut Call<F, R>) {
    call.result = call.take.take().map(|take| take());
}

/// Whether a handler's beginning has room here, as far as can be known.
fn has_room_to_begin(thread: &ThreadRecord, context: *mut c_void) -> bool {
    let here = here();
    let alternate = alternate_stack(context).and_then(|stack| stack.room_below(here));
    let known = alternate.or(ordinary_stack(thread).room_below(here));
    known.is_none_or(|room| room >= ENTRY_BYTES)
}

/// An address on the current stack, near its top.
#[inline(always)]
fn here() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

/// The one of the handlers' own that `here` is on.
fn own_stack(here: usize) -> Option<Stretch> {
    let base = BASE.load(Ordering::Acquire);
    let slot = here.wrapping_sub(base).checked_div(SLOT_BYTES).filter(|slot| *slot < STACKS && base != 0)?;
    let low = base.wrapping_add(slot.wrapping_mul(SLOT_BYTES)).wrapping_add(GUARD_BYTES);
    Some(Stretch { low, bytes: STACK_BYTES })
}

/// The thread's ordinary stack; nothing if it is not known where that is.
fn ordinary_stack(thread: &ThreadRecord) -> Stretch {
    let low = thread.stack_low.load(Ordering::Relaxed);
    let high = thread.stack_high.load(Ordering::Relaxed);
    Stretch { low: low as usize, bytes: high.saturating_sub(low) as usize }
}

/// The interrupted thread's alternate stack for signals, if it has one.
fn alternate_stack(context: *mut c_void) -> Option<Stretch> {
    // SAFETY: null, or what the kernel passed to the handler.
    let context = unsafe { context.cast::<libc::ucontext_t>().as_ref() }?;
    let stack = &context.uc_stack;
    let is_there = stack.ss_flags & libc::SS_DISABLE == 0 && stack.ss_size != 0;
    is_there.then(|| Stretch { low: stack.ss_sp.addr(), bytes: stack.ss_size })
}

/// Bytes of the current stack that the kernel's frame and the handler have taken.
fn kernel_frame_bytes(here: usize, context: *mut c_void) -> usize {
    // SAFETY: null, or what the kernel passed to the handler.
    let Some(ucontext) = (unsafe { context.cast::<libc::ucontext_t>().as_ref() }) else { return 0 };
    let interrupted = arch::stack_pointer(ucontext);
    match alternate_stack(context) {
        Some(stack) if stack.room_below(here).is_some() && stack.room_below(interrupted).is_none() => {
            stack.low.wrapping_add(stack.bytes).wrapping_sub(here)
        }
        _ => interrupted.wrapping_sub(here),
    }
}

/// Whether the handler has come on the alternate stack, and a fault's would come there too. The kernel would have that one begin
/// at the top, over ours.
fn must_hide_alternate_stack(context: *mut c_void) -> bool {
    let is_on_it = alternate_stack(context).is_some_and(|stack| stack.room_below(here()).is_some());
    is_on_it && [libc::SIGSEGV, libc::SIGBUS].into_iter().any(chain::is_on_alternate_stack)
}

/// While it lives the thread has no alternate stack for signals. It is made and dropped outside of that stack.
struct HiddenAlternateStack(libc::stack_t);

impl HiddenAlternateStack {
    fn hide() -> Self {
        let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        let mut before = none;
        // SAFETY: the kernel reads one stack_t and writes another.
        unsafe { libc::sigaltstack(&raw const none, &raw mut before) };
        Self(before)
    }
}

impl Drop for HiddenAlternateStack {
    fn drop(&mut self) {
        // SAFETY: the kernel reads one stack_t, which it has written.
        unsafe { libc::sigaltstack(&raw const self.0, ptr::null_mut()) };
    }
}

/// One of the handlers' own stacks, claimed.
struct Claimed {
    slot: usize,
    base: usize,
}

impl Claimed {
    /// Claims one; `None` if all are in use.
    fn any() -> Option<Self> {
        let base = BASE.load(Ordering::Acquire);
        if base == 0 {
            return None;
        }
        let claim = |is_claimed: &AtomicBool| {
            !is_claimed.load(Ordering::Relaxed) && !is_claimed.swap(true, Ordering::Acquire)
        };
        IS_CLAIMED.iter().position(claim).map(|slot| Self { slot, base })
    }

    /// One past its highest address.
    fn top(&self) -> usize {
        self.base.wrapping_add(self.slot.wrapping_add(1).wrapping_mul(SLOT_BYTES))
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if let Some(is_claimed) = IS_CLAIMED.get(self.slot) {
            is_claimed.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::mem;

    /// A context whose thread has an alternate stack that ends `below` bytes below this function's frame.
    fn on_alternate_stack(below: usize) -> libc::ucontext_t {
        // SAFETY: all zeroes is a valid ucontext_t.
        let mut context: libc::ucontext_t = unsafe { mem::zeroed() };
        let low = ptr::without_provenance_mut(here() - below);
        context.uc_stack = libc::stack_t { ss_sp: low, ss_flags: 0, ss_size: below + (1 << 20) };
        context
    }

    fn room_on_alternate_stack(below: usize) -> Room {
        let mut context = on_alternate_stack(below);
        room(&ThreadRecord::default(), (&raw mut context).cast())
    }

    #[test]
    fn room_is_what_the_stack_has_below() {
        assert_eq!(room_on_alternate_stack(4 << 10), Room::TooLittle);
        assert_eq!(room_on_alternate_stack(128 << 10), Room::Ample);
        let thread = ThreadRecord::default();
        assert_eq!(room(&thread, ptr::null_mut()), Room::ForWalk, "as far as can be known");
        let here = here() as u64;
        thread.stack_high.store(here + (1 << 20), Ordering::Relaxed);
        for (below, expected) in
            [(4 << 10, Room::TooLittle), (32 << 10, Room::ForWalk), (1 << 20, Room::Ample)]
        {
            thread.stack_low.store(here - below, Ordering::Relaxed);
            assert_eq!(room(&thread, ptr::null_mut()), expected, "{below}");
        }
    }

    #[test]
    fn calls_are_made_on_a_stack_of_their_own_where_there_is_little_room() {
        assert!(prepare() && prepare());
        let thread = ThreadRecord::default();
        let outside = here();
        let mut context = on_alternate_stack(4 << 10);
        let inside = with_room(&thread, (&raw mut context).cast(), || {
            (here(), room(&ThreadRecord::default(), ptr::null_mut()))
        });
        let (inside, room) = inside.unwrap();
        assert!(own_stack(inside).unwrap().room_below(inside).is_some());
        assert_eq!(room, Room::Ample);
        thread.stack_low.store(outside as u64 - (1 << 20), Ordering::Relaxed);
        thread.stack_high.store(outside as u64 + (1 << 20), Ordering::Relaxed);
        let inside = with_room(&thread, ptr::null_mut(), here).unwrap();
        assert!(own_stack(inside).is_none(), "where there is enough nothing is changed");
    }
}

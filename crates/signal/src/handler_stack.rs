//! Stacks of the handlers' own, for samples of threads whose stack may have no room for one.
//!
//! A sample takes some 6 KiB of stack, AsyncGetCallTrace up to 13 KiB more (JDK 21), and a load that faults
//! takes another frame of the kernel. An alternate signal stack is often smaller (8 KiB in Rust's threads).
//! So is a coroutine's stack, whose end is not known. So a sample is taken on the thread's stack if that is
//! known to be ample, and otherwise on one of the stacks of this module. The thread's own stack must have
//! room for the kernel's frame and [`ENTRY_BYTES`]. While all stacks of this module are in use, no sample is
//! taken on a stack whose end is not known.
//!
//! The stacks are made at a session's start and never unmapped. A handler claims one, and never waits for
//! one.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use otlpprof_core::thread::ThreadRecord;

use super::chain;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64/handler_stack.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64/handler_stack.rs"]
mod arch;

/// Twice the number of strips in the sample buffer, since a sample needs a strip too.
const STACKS: usize = 32;
/// The largest measured use is 19 KiB, and the frame of a fault is up to 12 KiB where the thread uses AMX.
const STACK_BYTES: usize = 128 << 10;
/// The guard below each stack; a multiple of any page's size.
const GUARD_BYTES: usize = 64 << 10;
const SLOT_BYTES: usize = GUARD_BYTES + STACK_BYTES;

/// The room, in bytes, that is enough for everything that a handler does, on alternate stacks and on the
/// handlers' own.
const AMPLE_BYTES: usize = 64 << 10;
/// The ample room, in bytes, on a thread's ordinary stack. At the end of that stack HotSpot has zones that
/// may not be touched (16 KiB with pages of 4 KiB, more with larger pages and by option).
const AMPLE_ORDINARY_BYTES: usize = 256 << 10;

/// The part of the thread's own stack, in bytes, that a handler uses besides the kernel's frame before it
/// switches stacks. 360 bytes were measured.
pub const ENTRY_BYTES: usize = 512;

/// The stack, in bytes, that a sample without AsyncGetCallTrace uses at most, on any stack, from
/// `sample::record` on.
const WALK_BYTES: usize = 7 << 10;

/// The lowest address of the stacks; 0 until they exist.
static BASE: AtomicUsize = AtomicUsize::new(0);
static IS_CLAIMED: [AtomicBool; STACKS] = [const { AtomicBool::new(false) }; STACKS];

/// Makes the stacks, if they do not exist yet. Ordinary zone. Returns `false` if there is no memory for them.
pub fn prepare() -> bool {
    if BASE.load(Ordering::Acquire) != 0 {
        return true;
    }
    let bytes = STACKS.wrapping_mul(SLOT_BYTES);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    // SAFETY: fresh memory that nothing else refers to; each part that is made accessible lies inside it.
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

/// A range of addresses.
#[derive(Clone, Copy)]
struct Stretch {
    low: usize,
    bytes: usize,
}

impl Stretch {
    /// Returns the number of bytes of the stack below `here`, if `here` lies in it.
    fn room_below(self, here: usize) -> Option<usize> {
        let room = here.wrapping_sub(self.low);
        (room < self.bytes).then_some(room)
    }
}

/// The room on the current stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackRoom {
    /// Enough for everything that a handler does.
    Ample,
    /// Enough for a walk by the handler itself.
    ForWalk,
    /// Too little, or not known.
    TooLittle,
}

/// Whether the current stack has ample room. `thread` is the current thread; `context` is the interrupted
/// `ucontext_t`, or null.
#[inline(always)] // Inlined, since a call needs room that is not known to exist yet.
fn has_ample_room(thread: &ThreadRecord, context: *mut c_void) -> bool {
    let here = here();
    let own = own_stack(here).and_then(|stack| stack.room_below(here));
    let alternate = alternate_stack(context).and_then(|stack| stack.room_below(here));
    match (own.or(alternate), ordinary_stack(thread).room_below(here)) {
        (Some(room), _) => room >= AMPLE_BYTES,
        (None, ordinary) => ordinary.is_some_and(|room| room >= AMPLE_ORDINARY_BYTES),
    }
}

/// Returns the room on the current stack where it is not ample. The arguments are those of
/// [`has_ample_room`].
fn scarce_room(thread: &ThreadRecord, context: *mut c_void) -> StackRoom {
    let here = here();
    let own = own_stack(here).and_then(|stack| stack.room_below(here));
    let alternate = alternate_stack(context).and_then(|stack| stack.room_below(here));
    let known = own.or(alternate).or(ordinary_stack(thread).room_below(here));
    // For a load that faults the kernel puts another frame below this one.
    let needed = ENTRY_BYTES.wrapping_add(WALK_BYTES).wrapping_add(kernel_frame_bytes(here, context));
    if known.is_some_and(|room| room >= needed) { StackRoom::ForWalk } else { StackRoom::TooLittle }
}

/// Calls `take` where it has ample room: here, or on one of the handlers' own stacks. If all of these are in
/// use, `take` is called here, provided that it is known to have room to begin. The argument of `take` says
/// how much it may do. `None`: there is no room.
///
/// `thread` is the current thread; `context` is the interrupted `ucontext_t`, or null.
#[inline(always)] // Inlined, since a call needs room that is not known to exist yet.
pub fn with_room<R>(
    thread: &ThreadRecord,
    context: *mut c_void,
    take: impl FnOnce(StackRoom) -> R,
) -> Option<R> {
    let mut call =
        Call { take: Some(take), room: StackRoom::Ample, result: None, hides_alternate_stack: false };
    if has_ample_room(thread, context) {
        run(&mut call);
        return call.result;
    }
    let Some(stack) = ClaimedStack::any() else {
        if has_room_to_begin(thread, context) {
            call.room = scarce_room(thread, context);
            run(&mut call);
        }
        return call.result;
    };
    call.hides_alternate_stack = must_hide_alternate_stack(context);
    call.run_on(&stack);
    drop(stack);
    call.result
}

/// A call, and its result.
struct Call<F, R> {
    take: Option<F>,
    /// The room where `take` is called.
    room: StackRoom,
    result: Option<R>,
    hides_alternate_stack: bool,
}

impl<F: FnOnce(StackRoom) -> R, R> Call<F, R> {
    fn run_on(&mut self, stack: &ClaimedStack) {
        extern "C" fn run_at<F: FnOnce(StackRoom) -> R, R>(call: *mut c_void) {
            // SAFETY: `run_on` passes a pointer to a call of this type, and waits.
            let call = unsafe { &mut *call.cast::<Call<F, R>>() };
            let hidden = call.hides_alternate_stack.then(HiddenAlternateStack::hide);
            run(call);
            drop(hidden);
        }
        // SAFETY: the stack belongs to this call until the call returns; `run_at` takes the address of a call
        // of this type.
        unsafe {
            arch::call_on_stack(stack.top(), run_at::<F, R> as *const c_void, ptr::from_mut(self).cast());
        }
    }
}

#[inline(never)] // Not inlined: its stack frame is allocated only once the room is known to exist.
fn run<F: FnOnce(StackRoom) -> R, R>(call: &mut Call<F, R>) {
    let room = call.room;
    call.result = call.take.take().map(|take| take(room));
}

/// Whether the beginning of a handler is known to have room here.
fn has_room_to_begin(thread: &ThreadRecord, context: *mut c_void) -> bool {
    let here = here();
    let alternate = alternate_stack(context).and_then(|stack| stack.room_below(here));
    let known = alternate.or(ordinary_stack(thread).room_below(here));
    known.is_some_and(|room| room >= ENTRY_BYTES)
}

/// Returns an address on the current stack, near its top.
#[inline(always)]
fn here() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

/// Returns the stack of the handlers' own that `here` lies on.
fn own_stack(here: usize) -> Option<Stretch> {
    let base = BASE.load(Ordering::Acquire);
    let slot = here.wrapping_sub(base).checked_div(SLOT_BYTES).filter(|slot| *slot < STACKS && base != 0)?;
    let low = base.wrapping_add(slot.wrapping_mul(SLOT_BYTES)).wrapping_add(GUARD_BYTES);
    Some(Stretch { low, bytes: STACK_BYTES })
}

/// Returns the thread's ordinary stack; an empty range if its place is not known.
fn ordinary_stack(thread: &ThreadRecord) -> Stretch {
    let low = thread.stack_low.load(Ordering::Relaxed);
    let high = thread.stack_high.load(Ordering::Relaxed);
    Stretch { low: low as usize, bytes: high.saturating_sub(low) as usize }
}

/// Returns the interrupted thread's alternate stack for signals, if it has one.
fn alternate_stack(context: *mut c_void) -> Option<Stretch> {
    // SAFETY: the pointer is null, or leads to the context that the kernel passed to the handler.
    let context = unsafe { context.cast::<libc::ucontext_t>().as_ref() }?;
    let stack = &context.uc_stack;
    let is_there = stack.ss_flags & libc::SS_DISABLE == 0 && stack.ss_size != 0;
    is_there.then(|| Stretch { low: stack.ss_sp.addr(), bytes: stack.ss_size })
}

/// Returns the number of bytes of the current stack that the kernel's frame and the handler have used.
fn kernel_frame_bytes(here: usize, context: *mut c_void) -> usize {
    // SAFETY: the pointer is null, or leads to the context that the kernel passed to the handler.
    let Some(ucontext) = (unsafe { context.cast::<libc::ucontext_t>().as_ref() }) else { return 0 };
    let interrupted = arch::stack_pointer(ucontext);
    match alternate_stack(context) {
        Some(stack) if stack.room_below(here).is_some() && stack.room_below(interrupted).is_none() => {
            stack.low.wrapping_add(stack.bytes).wrapping_sub(here)
        }
        _ => interrupted.wrapping_sub(here),
    }
}

/// Whether the handler runs on the alternate stack and the handler of a fault would run there too. The kernel
/// would begin the frame of the fault at the top of that stack, over ours.
fn must_hide_alternate_stack(context: *mut c_void) -> bool {
    let is_on_it = alternate_stack(context).is_some_and(|stack| stack.room_below(here()).is_some());
    is_on_it && [libc::SIGSEGV, libc::SIGBUS].into_iter().any(chain::is_on_alternate_stack)
}

/// Disables the thread's alternate stack for signals while the value lives. The value is made and dropped
/// outside of that stack.
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
        // SAFETY: the kernel reads one stack_t, which it wrote itself in `hide`.
        unsafe { libc::sigaltstack(&raw const self.0, ptr::null_mut()) };
    }
}

/// One of the handlers' own stacks, claimed.
struct ClaimedStack {
    slot: usize,
    base: usize,
}

impl ClaimedStack {
    /// Claims a stack; `None` if all are in use.
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

    /// The address one past the highest of the stack.
    fn top(&self) -> usize {
        self.base.wrapping_add(self.slot.wrapping_add(1).wrapping_mul(SLOT_BYTES))
    }
}

impl Drop for ClaimedStack {
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

    fn room(thread: &ThreadRecord, context: *mut c_void) -> StackRoom {
        if has_ample_room(thread, context) { StackRoom::Ample } else { scarce_room(thread, context) }
    }

    /// Tests that claim stacks run one after another.
    static SERIAL: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

    /// Returns a context whose thread has an alternate stack that ends `below` bytes below this function's
    /// frame.
    fn on_alternate_stack(below: usize) -> libc::ucontext_t {
        // SAFETY: all zeroes is a valid ucontext_t.
        let mut context: libc::ucontext_t = unsafe { mem::zeroed() };
        let low = ptr::without_provenance_mut(here() - below);
        context.uc_stack = libc::stack_t { ss_sp: low, ss_flags: 0, ss_size: below + (1 << 20) };
        context
    }

    fn room_on_alternate_stack(below: usize) -> StackRoom {
        let mut context = on_alternate_stack(below);
        room(&ThreadRecord::default(), (&raw mut context).cast())
    }

    #[test]
    fn the_room_is_the_stack_below_the_stack_pointer() {
        assert_eq!(room_on_alternate_stack(4 << 10), StackRoom::TooLittle);
        assert_eq!(room_on_alternate_stack(128 << 10), StackRoom::Ample);
        let thread = ThreadRecord::default();
        assert_eq!(room(&thread, ptr::null_mut()), StackRoom::TooLittle, "not known");
        let here = here() as u64;
        thread.stack_high.store(here + (1 << 20), Ordering::Relaxed);
        for (below, expected) in
            [(4 << 10, StackRoom::TooLittle), (32 << 10, StackRoom::ForWalk), (1 << 20, StackRoom::Ample)]
        {
            thread.stack_low.store(here - below, Ordering::Relaxed);
            assert_eq!(room(&thread, ptr::null_mut()), expected, "{below}");
        }
    }

    #[test]
    fn calls_are_made_on_a_stack_of_their_own_where_there_is_little_room() {
        let _serial = SERIAL.lock();
        assert!(prepare() && prepare());
        let thread = ThreadRecord::default();
        let outside = here();
        let mut context = on_alternate_stack(4 << 10);
        let inside = with_room(&thread, (&raw mut context).cast(), |room| (here(), room));
        let (inside, room) = inside.unwrap();
        assert!(own_stack(inside).unwrap().room_below(inside).is_some());
        assert_eq!(room, StackRoom::Ample);
        thread.stack_low.store(outside as u64 - (1 << 20), Ordering::Relaxed);
        thread.stack_high.store(outside as u64 + (1 << 20), Ordering::Relaxed);
        let inside = with_room(&thread, ptr::null_mut(), |_| here()).unwrap();
        assert!(own_stack(inside).is_none(), "where there is enough nothing is changed");
    }

    /// Regression: while all stacks were in use, a coroutine of 8 KiB was sampled on its own stack.
    #[test]
    fn no_sample_is_taken_on_a_stack_of_unknown_bounds() {
        let _serial = SERIAL.lock();
        assert!(prepare());
        let thread = ThreadRecord::default();
        let here = here() as u64;
        let claimed: Vec<_> = std::iter::from_fn(ClaimedStack::any).collect();
        assert_eq!(claimed.len(), STACKS);
        assert_eq!(with_room(&thread, ptr::null_mut(), |_| ()), None);
        thread.stack_low.store(here - (32 << 10), Ordering::Relaxed);
        thread.stack_high.store(here + (1 << 20), Ordering::Relaxed);
        let room = with_room(&thread, ptr::null_mut(), |room| room);
        assert_eq!(room, Some(StackRoom::ForWalk), "bounds that are known");
        drop(claimed);
        assert_eq!(with_room(&ThreadRecord::default(), ptr::null_mut(), |room| room), Some(StackRoom::Ample));
    }
}

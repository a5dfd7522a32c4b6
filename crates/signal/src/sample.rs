//! Takes one sample: holds a strip, walks the stack, writes the record.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use otlpprof_core::collections::COLLECTIONS;
use otlpprof_core::engine::Engine;
use otlpprof_core::event_ring::RingPlace;
use otlpprof_core::java_thread_state::JavaThreadState;
use otlpprof_core::memory::Memory;
use otlpprof_core::method_ids::MethodIds;
use otlpprof_core::object::ObjectMap;
use otlpprof_core::record::{Owner, SampleHeader, Subject};
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::thread::ThreadRecord;
use otlpprof_core::vm_layout::VmLayout;

use super::buffer::{self, NoStrip};
use super::call_trace::{AsyncGetCallTrace, CallTraceSource, RootMethods};
use super::clock::monotonic_ns;
use super::counters::{COUNTERS, add};
use super::doorbell::Doorbell;
use super::handler_stack::{self, Room};
use super::kernel_stack;
use super::loader::frame_header_at;
use super::safe_load::ProcessMemory;
use super::stretch::thin;
use super::thread_context::InterruptedThread;
use super::walk::mounted_thread::carries_virtual_thread;
use super::walk::registers::Registers;
use super::walk::{Cursor, FrameSink, Start, Walk};

/// The configuration that the agent sets for handlers. Each field may change at any time; a handler reads
/// each field once.
pub struct Setup {
    /// The VM's layout; null until it is known. The layout is never freed.
    pub vm: AtomicPtr<VmLayout>,
    /// The current object map. An object map is freed only after
    /// [`SampleBuffer::wait_for_handlers`](buffer::SampleBuffer::wait_for_handlers).
    pub objects: AtomicPtr<ObjectMap>,
    /// Rung when a walk has met code in no known object.
    pub unknown_code: Doorbell,
    /// The largest number of frames in a stack.
    pub depth: AtomicUsize,
    /// The walker, a [`StackWalker`] as a number.
    pub walker: AtomicU8,
    /// The address of AsyncGetCallTrace; null while no walker uses it.
    pub async_get_call_trace: AtomicPtr<c_void>,
    /// The offset from a `JavaThread*` to its JNIEnv.
    pub jni_environment: AtomicU64,
    /// Whether native frames are recorded as build-id and address.
    pub remote: AtomicBool,
    /// The wall-clock engine's interval, in ns.
    pub wall_interval_ns: AtomicU64,
    /// Whether only threads that have registered themselves are sampled.
    pub filter: AtomicBool,
}

/// The setup of this process.
pub static SETUP: Setup = Setup {
    vm: AtomicPtr::new(std::ptr::null_mut()),
    objects: AtomicPtr::new(std::ptr::null_mut()),
    unknown_code: Doorbell::new(),
    depth: AtomicUsize::new(2048),
    walker: AtomicU8::new(StackWalker::Vm as u8),
    async_get_call_trace: AtomicPtr::new(std::ptr::null_mut()),
    jni_environment: AtomicU64::new(0),
    remote: AtomicBool::new(false),
    wall_interval_ns: AtomicU64::new(0),
    filter: AtomicBool::new(false),
};

/// Takes a sample of the CPU engine, by [`take`].
///
/// # Safety
/// As for [`take`].
pub unsafe fn take_cpu(thread: &ThreadRecord, context: *mut c_void, weight: u64) {
    let ring = thread.clock.ring.place();
    let sample = Sample { weight, values: [weight as f64, 0.0], ring, ..Sample::of(Engine::Cpu) };
    // SAFETY: by this function's contract `context` is the `ucontext_t` of the handler that this thread is
    // in.
    unsafe { take(&sample, thread, context) };
}

/// Takes a sample of the wall-clock engine that stands for `ns` nanoseconds and can be repeated by its
/// `number`.
///
/// # Safety
/// As for [`take`].
pub unsafe fn take_wall(
    thread: &ThreadRecord,
    context: *mut c_void,
    ns: u64,
    number: u32,
) -> Result<(), NotRecorded> {
    let sample = Sample { number, values: wall_values(ns), ..Sample::of(Engine::Wall) };
    // SAFETY: by this function's contract `context` is the `ucontext_t` of the handler that this thread is
    // in.
    unsafe { take_at(&sample, thread, Origin::Interrupted(context)) }
}

/// Takes a sample of a perf event that stands for `periods` periods of that event, by [`take`].
///
/// # Safety
/// As for [`take`].
pub unsafe fn take_event(thread: &ThreadRecord, context: *mut c_void, periods: u64) {
    let Some(values) = thin(Engine::Event, [periods as f64, 0.0]) else { return };
    let sample = Sample { values, ring: thread.event.ring.place(), ..Sample::of(Engine::Event) };
    // SAFETY: by this function's contract `context` is the `ucontext_t` of the handler that this thread is
    // in.
    unsafe { take(&sample, thread, context) };
}

/// Returns the values that `ns` nanoseconds add to the wall-clock engine's profile: a number of periods, not
/// necessarily whole.
pub fn wall_values(ns: u64) -> [f64; 2] {
    let interval_ns = SETUP.wall_interval_ns.load(Ordering::Relaxed).max(1);
    [ns as f64 / interval_ns as f64, 0.0]
}

/// An engine's description of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The engine that takes the sample.
    pub engine: Engine,
    /// The number of periods of CPU time that the sample stands for; 0 for all engines but the CPU engine.
    pub weight: u64,
    /// The value that the sample adds to each of the engine's profiles.
    pub values: [f64; 2],
    /// The subject of the sample, such as the class of an allocated object.
    pub subject: Subject,
    /// The thread that owned the monitor or lock that the sampled thread waited for.
    pub owner: Owner,
    /// The number by which the sample is repeated, or by which the sampled allocation is identified. 0:
    /// neither.
    pub number: u32,
    /// The ring to which the kernel has written its own frames, which go on top of the stack.
    pub ring: Option<RingPlace>,
}

impl Sample {
    /// Returns a sample of the engine with no weight, no values and no subject.
    pub const fn of(engine: Engine) -> Self {
        Self {
            engine,
            weight: 0,
            values: [0.0; 2],
            subject: Subject::NONE,
            owner: Owner::NONE,
            number: 0,
            ring: None,
        }
    }
}

/// Takes a sample of the current thread, which has not been interrupted: the thread has called the VM, and
/// the VM has called us. Signals may arrive in the middle of it, and take samples of their own. Returns
/// whether the sample was recorded.
///
/// # Safety
/// `thread` is the current thread's. If the thread has a `JavaThread*`, that Java thread is in native code
/// with the anchor of its last Java frame set, as it is in JVMTI's events and in native methods.
pub unsafe fn take_of_caller(sample: &Sample, thread: &ThreadRecord) -> bool {
    // SAFETY: by this function's contract the thread is the current one, in a call by the VM.
    let take = || unsafe { take_at(sample, thread, Origin::CalledByVm) };
    take_where_is_room(sample.engine, thread, take)
}

/// Takes a sample of the current thread, which has called a replacement of an allocation function. The stack
/// begins at `caller`, after that call. Returns whether the sample was recorded.
///
/// # Safety
/// `thread` is the current thread's, and `caller` is a frame of this thread.
pub unsafe fn take_of_native_caller(sample: &Sample, thread: &ThreadRecord, caller: Cursor) -> bool {
    // SAFETY: by this function's contract thread and frame are the current thread's.
    let take = || unsafe { take_at(sample, thread, Origin::CalledByNative(caller)) };
    take_where_is_room(sample.engine, thread, take)
}

/// Takes a sample of a thread that was not interrupted, on a stack with enough room for it.
fn take_where_is_room(
    engine: Engine,
    thread: &ThreadRecord,
    take: impl FnOnce() -> Result<(), NotRecorded>,
) -> bool {
    let recorded = handler_stack::with_room(thread, ptr::null_mut(), take);
    if recorded.is_none() {
        COUNTERS.count_missing_stack(engine);
    }
    matches!(recorded, Some(Ok(())))
}

/// The point at which the current thread is sampled.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// Interrupted at this `ucontext_t`.
    Interrupted(*mut c_void),
    /// In a call by the VM.
    CalledByVm,
    /// In a call by native code, from this frame.
    CalledByNative(Cursor),
}

impl Origin {
    /// The interrupted `ucontext_t`; null if the thread was not interrupted.
    fn context(self) -> *mut c_void {
        match self {
            Self::Interrupted(context) => context,
            Self::CalledByVm | Self::CalledByNative(_) => ptr::null_mut(),
        }
    }
}

/// Takes a sample of the current thread, interrupted at `context`.
///
/// # Safety
/// Called in a signal handler, with the `ucontext_t` that the kernel passed to it.
pub unsafe fn take(sample: &Sample, thread: &ThreadRecord, context: *mut c_void) {
    // SAFETY: by this function's contract `context` is the `ucontext_t` of the handler that this thread is
    // in.
    let _ = unsafe { take_at(sample, thread, Origin::Interrupted(context)) };
}

/// # Safety
/// `origin` is the current thread's, with the contract of the public function that made it.
unsafe fn take_at(sample: &Sample, thread: &ThreadRecord, origin: Origin) -> Result<(), NotRecorded> {
    let start_ns = monotonic_ns();
    COUNTERS.samples_taken.add(sample.engine, 1);
    let room = handler_stack::room(thread, origin.context());
    let recorded = match room {
        Room::Ample | Room::ForWalk => record(sample, thread, origin, start_ns, room),
        Room::TooLittle => Err(NotRecorded::SmallStack),
    };
    if let Err(NotRecorded::Filtered) = recorded {
        COUNTERS.samples_filtered.add(sample.engine, 1);
        add(&COUNTERS.periods_filtered, sample.weight);
    } else if let Err(reason) = recorded {
        COUNTERS.samples_dropped.add(sample.engine, 1);
        add(&COUNTERS.periods_dropped, sample.weight);
        let counter = match reason {
            NotRecorded::NotReady | NotRecorded::Filtered => &COUNTERS.samples_dropped_not_ready,
            NotRecorded::NoStrip(NoStrip::Held) => &COUNTERS.samples_dropped_held,
            NotRecorded::NoStrip(NoStrip::Full) => &COUNTERS.samples_dropped_full,
            NotRecorded::SmallStack => &COUNTERS.samples_dropped_small_stack,
        };
        add(counter, 1);
    }
    let taken_ns = monotonic_ns().wrapping_sub(start_ns);
    add(&COUNTERS.handler_ns, taken_ns);
    COUNTERS.engine_has_used(sample.engine, taken_ns);
    recorded
}

/// The reason why a sample is not recorded.
#[derive(Clone, Copy, Debug)]
pub enum NotRecorded {
    /// Recording has not been set up yet, or has ended.
    NotReady,
    /// The thread has not registered itself, and only registered threads are wanted.
    Filtered,
    /// The sample buffer has no room.
    NoStrip(NoStrip),
    /// The thread's stack has no room.
    SmallStack,
}

#[inline(never)] // Not inlined: its stack frame is allocated only once the room is known to exist.
fn record(
    sample: &Sample,
    thread: &ThreadRecord,
    origin: Origin,
    monotonic_ns: u64,
    room_on_stack: Room,
) -> Result<(), NotRecorded> {
    let os_tid = thread.os_tid.load(Ordering::Relaxed);
    // One record more, for a truncation or error mark after the last frame.
    let room = SETUP.depth.load(Ordering::Relaxed).wrapping_add(2).min(buffer::MAX_FRAMES);
    let mut held = buffer::get()
        .ok_or(NotRecorded::NotReady)?
        .try_hold(os_tid as u32, room)
        .map_err(NotRecorded::NoStrip)?;
    // SAFETY: null, or published by the agent, which frees an object map only after it has waited for
    // handlers (for this strip).
    let objects = unsafe { SETUP.objects.load(Ordering::Acquire).as_ref() }.ok_or(NotRecorded::NotReady)?;
    // SAFETY: null, or never freed.
    let vm = unsafe { SETUP.vm.load(Ordering::Acquire).as_ref() };
    let java_thread = thread.java_thread.load(Ordering::Relaxed);
    let thread_state = match vm {
        Some(vm) if java_thread != 0 => ProcessMemory
            .load_u32(java_thread.wrapping_add(u64::from(vm.thread.thread_state)))
            .map_or(JavaThreadState::Unknown, |number| vm.thread.states.of(number)),
        _ => JavaThreadState::Unknown,
    };
    let (frames, pool) = held.frames_and_pool(room);
    let mut sink = FrameSink::new(frames, SETUP.remote.load(Ordering::Relaxed).then_some(pool));
    let stack_high = match thread.stack_high.load(Ordering::Relaxed) {
        0 => u64::MAX,
        high => high,
    };
    let registers = match origin {
        // SAFETY: by the contract of `take_at` the context is the one that the kernel passed to the handler.
        Origin::Interrupted(context) => unsafe { Registers::from_context(context) },
        Origin::CalledByVm | Origin::CalledByNative(_) => Registers::default(),
    };
    let walker = StackWalker::from_u8(SETUP.walker.load(Ordering::Relaxed));
    let ucontext = match origin {
        Origin::Interrupted(context) => context,
        Origin::CalledByVm | Origin::CalledByNative(_) => (&raw const NOT_INTERRUPTED).cast_mut().cast(),
    };
    let ids = vm.map_or(MethodIds::Opaque, |vm| vm.method.ids);
    let call_trace = call_trace(java_thread, ucontext, ids).filter(|_| room_on_stack == Room::Ample);
    let start = Start {
        vm,
        objects,
        java_thread,
        stack_high,
        registers,
        walker,
        call_trace,
        collections: &COLLECTIONS,
        loader: frame_header_at,
    };
    let walk = Walk::new(&ProcessMemory, start);
    let carries_virtual_thread = match vm {
        Some(vm) => carries_virtual_thread(&ProcessMemory, vm, java_thread),
        None => None,
    };
    let interrupted = InterruptedThread { os_tid, carries_virtual_thread, walk: &walk };
    if SETUP.filter.load(Ordering::Relaxed) && !interrupted.is_registered() {
        return Err(NotRecorded::Filtered);
    }
    if let Some(ring) = sample.ring
        && walker != StackWalker::No
    {
        kernel_stack::put(&ProcessMemory, ring, &registers, scattered(monotonic_ns), &mut sink);
    }
    match origin {
        Origin::Interrupted(_) => walk.walk(&mut sink),
        Origin::CalledByVm => walk.walk_from_call(&mut sink),
        Origin::CalledByNative(caller) => walk.walk_from_native_call(caller, &mut sink),
    }
    if sink.has_unknown_code() {
        SETUP.unknown_code.ring();
    }
    let frame_count = u16::try_from(sink.len()).unwrap_or(u16::MAX);
    // Only the wall-clock engine uses this flag.
    let is_waiting = sample.engine == Engine::Wall && registers.is_in_waiting_system_call(&ProcessMemory);
    let java_incarnation = thread.java_incarnation.load(Ordering::Relaxed);
    thread.sampled_incarnation.store(java_incarnation, Ordering::Relaxed);
    held.commit(SampleHeader {
        monotonic_ns,
        weight: sample.weight,
        values: sample.values,
        context: interrupted.context(),
        owner: sample.owner,
        os_tid,
        java_incarnation,
        subject: sample.subject,
        number: sample.number,
        frame_count,
        engine: sample.engine,
        thread_state,
        is_virtual: u8::from(carries_virtual_thread == Some(true)),
        is_waiting: u8::from(is_waiting),
        is_runnable: u8::from(
            sample.engine == Engine::Wall && thread.wall.is_runnable.load(Ordering::Relaxed),
        ),
        reserved: 0,
    });
    Ok(())
}

/// Returns a number in which the time's bits are spread over the upper bits (Knuth's multiplicative hash).
fn scattered(time_ns: u64) -> u64 {
    time_ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// Stands in for the `ucontext_t` of a thread that is not interrupted.
static NOT_INTERRUPTED: [u64; size_of::<libc::ucontext_t>() / 8] = [0; size_of::<libc::ucontext_t>() / 8];

/// The methods in which stacks of this process end.
static ROOTS: RootMethods = RootMethods::new();

/// Returns AsyncGetCallTrace for the current thread, a Java thread, with the `ucontext_t` at `context`.
/// AsyncGetCallTrace does not read the `ucontext_t` of a thread that has called the VM
/// (`pd_get_top_frame_for_signal_handler`, called in prims/forte.cpp, 11-25).
fn call_trace(java_thread: u64, context: *mut c_void, ids: MethodIds) -> Option<CallTraceSource> {
    let function = SETUP.async_get_call_trace.load(Ordering::Acquire);
    if function.is_null() || java_thread == 0 {
        return None;
    }
    let env = java_thread.wrapping_add(SETUP.jni_environment.load(Ordering::Relaxed));
    // SAFETY: the agent stores libjvm's AsyncGetCallTrace, which has this type. The thread has registered
    // itself as this Java thread, and unregisters before it ends. The context is the kernel's by the contract
    // of `take_at`.
    unsafe {
        let function = std::mem::transmute::<*mut c_void, AsyncGetCallTrace>(function);
        Some(CallTraceSource::new(function, env, context, ids, &ROOTS))
    }
}

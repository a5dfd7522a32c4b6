//! The way of one sample: an engine describes it, room on the stack is found, a strip of the buffer is held,
//! the stack is walked into it, and the record is completed.

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

use super::buffer::{self, HeldStrip, NoStrip};
use super::call_trace::{AsyncGetCallTrace, CallTraceSource, RootMethods};
use super::clock::monotonic_ns;
use super::counters::{COUNTERS, add};
use super::doorbell::Doorbell;
use super::handler_stack::{self, StackRoom};
use super::interruption::Interruption;
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

/// Takes a sample of the CPU engine that stands for `weight` periods.
pub fn take_cpu(interruption: &Interruption<'_>, weight: u64) {
    let ring = interruption.thread().clock.ring.place();
    let sample = Sample { weight, values: [weight as f64, 0.0], ring, ..Sample::of(Engine::Cpu) };
    let _ = take(&sample, &SampledThread::interrupted(interruption));
}

/// Takes a sample of the wall-clock engine that stands for `ns` nanoseconds and can be repeated by its
/// `number`.
pub(super) fn take_wall(interruption: &Interruption<'_>, ns: u64, number: u32) -> Result<(), NotRecorded> {
    let sample = Sample { number, values: wall_values(ns), ..Sample::of(Engine::Wall) };
    take(&sample, &SampledThread::interrupted(interruption))
}

/// Takes a sample of a perf event that stands for `periods` periods of that event.
pub(super) fn take_event(interruption: &Interruption<'_>, periods: u64) {
    let Some(values) = thin(Engine::Event, [periods as f64, 0.0]) else { return };
    let ring = interruption.thread().event.ring.place();
    let sample = Sample { values, ring, ..Sample::of(Engine::Event) };
    let _ = take(&sample, &SampledThread::interrupted(interruption));
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
/// `thread` is the record of the current thread. If the thread has a `JavaThread*`, that Java thread is in
/// native code with the anchor of its last Java frame set, as it is in JVMTI's events and in native methods.
pub unsafe fn take_of_caller(sample: &Sample, thread: &ThreadRecord) -> bool {
    take_where_is_room(sample, thread, Origin::CalledByVm)
}

/// Takes a sample of the current thread, which has called a replacement of an allocation function. The stack
/// begins at `caller`, after that call. Returns whether the sample was recorded.
///
/// # Safety
/// `thread` is the record of the current thread, and `caller` is a frame of this thread.
pub unsafe fn take_of_native_caller(sample: &Sample, thread: &ThreadRecord, caller: Cursor) -> bool {
    take_where_is_room(sample, thread, Origin::CalledByNative(caller))
}

/// Takes a sample of a thread that was not interrupted, on a stack with enough room for it.
fn take_where_is_room(sample: &Sample, record: &ThreadRecord, origin: Origin<'_>) -> bool {
    let take = |room| take(sample, &SampledThread { record, origin, room });
    let recorded = handler_stack::with_room(record, ptr::null_mut(), take);
    if recorded.is_none() {
        COUNTERS.count_missing_stack(sample.engine);
    }
    matches!(recorded, Some(Ok(())))
}

/// The current thread, which is sampled. The contracts of [`Interruption::new`], [`take_of_caller`] and
/// [`take_of_native_caller`] guarantee that the record and the origin belong to the current thread.
struct SampledThread<'a> {
    record: &'a ThreadRecord,
    origin: Origin<'a>,
    /// The room on the stack that the sample is taken on.
    room: StackRoom,
}

/// The point at which the current thread is sampled.
enum Origin<'a> {
    /// Interrupted.
    Interrupted(&'a Interruption<'a>),
    /// In a call by the VM.
    CalledByVm,
    /// In a call by native code, from this frame.
    CalledByNative(Cursor),
}

impl<'a> SampledThread<'a> {
    fn interrupted(interruption: &'a Interruption<'a>) -> Self {
        Self {
            record: interruption.thread(),
            origin: Origin::Interrupted(interruption),
            room: interruption.room(),
        }
    }

    /// One past the highest address of the stack; `u64::MAX` if not known.
    fn stack_high(&self) -> u64 {
        match self.record.stack_high.load(Ordering::Relaxed) {
            0 => u64::MAX,
            high => high,
        }
    }
}

impl Origin<'_> {
    /// The interrupted registers; zeroes if the thread was not interrupted.
    fn registers(&self) -> Registers {
        match self {
            Self::Interrupted(interruption) => interruption.registers(),
            Self::CalledByVm | Self::CalledByNative(_) => Registers::default(),
        }
    }

    /// The interrupted `ucontext_t`, or one that stands in for it.
    fn ucontext(&self) -> *mut c_void {
        match self {
            Self::Interrupted(interruption) => interruption.context(),
            Self::CalledByVm | Self::CalledByNative(_) => (&raw const NOT_INTERRUPTED).cast_mut().cast(),
        }
    }
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

/// Takes a sample: records it where there is room, and counts it and its time.
fn take(sample: &Sample, thread: &SampledThread<'_>) -> Result<(), NotRecorded> {
    let start_ns = monotonic_ns();
    COUNTERS.samples_taken.add(sample.engine, 1);
    let recorded = match thread.room {
        StackRoom::Ample | StackRoom::ForWalk => record(sample, thread, start_ns),
        StackRoom::TooLittle => Err(NotRecorded::SmallStack),
    };
    if let Err(reason) = recorded {
        count_unrecorded(sample, reason);
    }
    let taken_ns = monotonic_ns().wrapping_sub(start_ns);
    add(&COUNTERS.handler_ns, taken_ns);
    COUNTERS.engine_has_used(sample.engine, taken_ns);
    recorded
}

fn count_unrecorded(sample: &Sample, reason: NotRecorded) {
    let of_reason = match reason {
        NotRecorded::Filtered => {
            COUNTERS.samples_filtered.add(sample.engine, 1);
            return add(&COUNTERS.periods_filtered, sample.weight);
        }
        NotRecorded::NotReady => &COUNTERS.samples_dropped_not_ready,
        NotRecorded::NoStrip(NoStrip::Held) => &COUNTERS.samples_dropped_held,
        NotRecorded::NoStrip(NoStrip::Full) => &COUNTERS.samples_dropped_full,
        NotRecorded::SmallStack => &COUNTERS.samples_dropped_small_stack,
    };
    COUNTERS.samples_dropped.add(sample.engine, 1);
    add(&COUNTERS.periods_dropped, sample.weight);
    add(of_reason, 1);
}

/// Holds a strip, walks the thread's stack into it, and completes the record.
#[inline(never)] // Not inlined: its stack frame is allocated only once the room is known to exist.
fn record(sample: &Sample, thread: &SampledThread<'_>, monotonic_ns: u64) -> Result<(), NotRecorded> {
    let os_tid = thread.record.os_tid.load(Ordering::Relaxed);
    let most_frames = most_frames();
    let mut strip = hold_strip(os_tid, most_frames)?;
    let known = Known::load()?;
    let java_thread = thread.record.java_thread.load(Ordering::Relaxed);
    let thread_state = known.state_of(java_thread);
    let (frames, pool) = strip.frames_and_pool(most_frames);
    let mut sink = FrameSink::new(frames, SETUP.remote.load(Ordering::Relaxed).then_some(pool));
    let registers = thread.origin.registers();
    let walker = StackWalker::from_u8(SETUP.walker.load(Ordering::Relaxed));
    let walk = walk_of(thread, &known, java_thread, &registers, walker);
    let carries_virtual_thread = known.carries_virtual_thread(java_thread);
    let interrupted = InterruptedThread { os_tid, carries_virtual_thread, walk: &walk };
    if SETUP.filter.load(Ordering::Relaxed) && !interrupted.is_registered() {
        return Err(NotRecorded::Filtered);
    }
    if let Some(ring) = sample.ring
        && walker != StackWalker::No
    {
        kernel_stack::put(&ProcessMemory, ring, &registers, scattered(monotonic_ns), &mut sink);
    }
    put_frames(&walk, &thread.origin, &mut sink);
    let frame_count = u16::try_from(sink.len()).unwrap_or(u16::MAX);
    let is_of_wall = sample.engine == Engine::Wall;
    let java_incarnation = thread.record.java_incarnation.load(Ordering::Relaxed);
    thread.record.sampled_incarnation.store(java_incarnation, Ordering::Relaxed);
    strip.commit(SampleHeader {
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
        is_waiting: u8::from(is_of_wall && registers.is_in_waiting_system_call(&ProcessMemory)),
        is_runnable: u8::from(is_of_wall && thread.record.wall.is_runnable.load(Ordering::Relaxed)),
        reserved: 0,
    });
    Ok(())
}

/// The number of frame records that a sample needs at most.
fn most_frames() -> usize {
    // One record more, for a truncation or error mark after the last frame.
    SETUP.depth.load(Ordering::Relaxed).wrapping_add(2).min(buffer::MAX_FRAMES)
}

fn hold_strip(os_tid: i32, most_frames: usize) -> Result<HeldStrip<'static>, NotRecorded> {
    let buffer = buffer::get().ok_or(NotRecorded::NotReady)?;
    buffer.try_hold(os_tid as u32, most_frames).map_err(NotRecorded::NoStrip)
}

/// All that the agent has published about the process, for a handler that holds a strip.
struct Known<'a> {
    objects: &'a ObjectMap,
    vm: Option<&'a VmLayout>,
}

impl Known<'_> {
    fn load() -> Result<Self, NotRecorded> {
        // SAFETY: the pointer is null, or was published by the agent, which frees an object map only after it
        // has waited for handlers (for the strip that this one holds).
        let objects = unsafe { SETUP.objects.load(Ordering::Acquire).as_ref() };
        // SAFETY: the pointer is null, or leads to a layout that is never freed.
        let vm = unsafe { SETUP.vm.load(Ordering::Acquire).as_ref() };
        Ok(Self { objects: objects.ok_or(NotRecorded::NotReady)?, vm })
    }

    fn state_of(&self, java_thread: u64) -> JavaThreadState {
        match self.vm {
            Some(vm) if java_thread != 0 => ProcessMemory
                .load_u32(java_thread.wrapping_add(u64::from(vm.thread.thread_state)))
                .map_or(JavaThreadState::Unknown, |number| vm.thread.states.of(number)),
            _ => JavaThreadState::Unknown,
        }
    }

    /// Whether a virtual thread's frames are on the stack; `None` if that is not known.
    fn carries_virtual_thread(&self, java_thread: u64) -> Option<bool> {
        carries_virtual_thread(&ProcessMemory, self.vm?, java_thread)
    }
}

/// Prepares the walk of the thread's stack.
#[inline(always)] // Built in place: a handler's stack may be small.
fn walk_of<'a>(
    thread: &SampledThread<'_>,
    known: &Known<'a>,
    java_thread: u64,
    registers: &Registers,
    walker: StackWalker,
) -> Walk<'a, ProcessMemory> {
    let ids = known.vm.map_or(MethodIds::Opaque, |vm| vm.method.ids);
    let call_trace = call_trace(java_thread, thread.origin.ucontext(), ids);
    let start = Start {
        vm: known.vm,
        objects: known.objects,
        java_thread,
        stack_high: thread.stack_high(),
        registers: *registers,
        walker,
        call_trace: call_trace.filter(|_| thread.room == StackRoom::Ample),
        collections: &COLLECTIONS,
        loader: frame_header_at,
    };
    Walk::new(&ProcessMemory, start)
}

/// Walks the stack into the sink.
fn put_frames(walk: &Walk<'_, ProcessMemory>, origin: &Origin<'_>, sink: &mut FrameSink<'_>) {
    match *origin {
        Origin::Interrupted(_) => walk.walk(sink),
        Origin::CalledByVm => walk.walk_from_call(sink),
        Origin::CalledByNative(caller) => walk.walk_from_native_call(caller, sink),
    }
    if sink.has_unknown_code() {
        SETUP.unknown_code.ring();
    }
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
    // itself as this Java thread, and unregisters before it ends. The context is the one that the kernel
    // passed to the handler, or the stand-in.
    unsafe {
        let function = std::mem::transmute::<*mut c_void, AsyncGetCallTrace>(function);
        Some(CallTraceSource::new(function, env, context, ids, &ROOTS))
    }
}

//! Checks that the signal handler allocates nothing: for every call of this binary's allocator the test
//! checks whether the calling thread is inside the handler.
//!
//! The kernel calls a handler of this file, which marks its thread as inside a handler and calls the handler
//! that the engine installed. So the check covers the whole handler, including the decision whose signal it
//! is.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, CString, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use otlpprof_core::address::RuntimeAddr;
use otlpprof_core::memory::Memory;
use otlpprof_core::object::{ObjectIndex, ObjectMap};
use otlpprof_core::record::{FrameKind, NO_OBJECT};
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_elf::objects::ObjectRegistry;
use otlpprof_sampling::config::Config;
use otlpprof_sampling::{cpu, threads};
use otlpprof_signal::buffer::{self, SampleBuffer};
use otlpprof_signal::call_trace::{AsyncGetCallTrace, CallTrace};
use otlpprof_signal::chain;
use otlpprof_signal::counters::COUNTERS;
use otlpprof_signal::fault;
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_signal::sample::SETUP;
use parking_lot::Mutex;

/// The number of calls of any kind of the allocator by threads inside the handler.
static IN_HANDLER: AtomicUsize = AtomicUsize::new(0);
/// The number of calls of the handler.
static HANDLED: AtomicUsize = AtomicUsize::new(0);
/// `pthread_self()` of the threads inside the handler. This value is in a register, so reading it allocates
/// nothing.
static THREADS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn this_thread() -> u64 {
    // SAFETY: pthread_self has no preconditions and cannot fail.
    unsafe { libc::pthread_self() as u64 }
}

fn note_call() {
    let this = this_thread();
    if THREADS.iter().any(|thread| thread.load(Ordering::Relaxed) == this) {
        IN_HANDLER.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every method passes its arguments to the system's allocator unchanged. Counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note_call();
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::alloc`, which is also `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note_call();
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::dealloc`, and `memory` comes from
        // `System`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note_call();
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::alloc_zeroed`, which is also `System`'s.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note_call();
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::realloc`, and `memory` comes from
        // `System`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// The address of the engine's handler.
static ENGINE: AtomicUsize = AtomicUsize::new(0);

/// Calls the engine's handler, and marks this thread as inside it meanwhile.
extern "C" fn marked(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let this = this_thread();
    let place = THREADS
        .iter()
        .find(|thread| thread.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed).is_ok());
    // SAFETY: `Marking::begin` has stored the address of a handler with SA_SIGINFO, which has this signature.
    let engine: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
        unsafe { mem::transmute(ENGINE.load(Ordering::Acquire)) };
    HANDLED.fetch_add(1, Ordering::Relaxed);
    engine(signal, info, context);
    match place {
        Some(place) => place.store(0, Ordering::Relaxed),
        // There are more threads than places, so the count would be invalid. A panic could not be reported
        // from here.
        // SAFETY: abort may be called anywhere; it ends the process.
        None => unsafe { libc::abort() },
    }
}

/// While this value lives, the kernel calls [`marked`] instead of the engine's handler.
struct Marking(libc::sigaction, i32);

impl Marking {
    fn begin(signal: i32) -> Self {
        // SAFETY: an all-zero sigaction is valid, and all pointers refer to live values.
        unsafe {
            let mut engine: libc::sigaction = mem::zeroed();
            assert_eq!(libc::sigaction(signal, ptr::null(), &raw mut engine), 0);
            assert_ne!(engine.sa_flags & libc::SA_SIGINFO, 0, "the engine has installed its handler");
            ENGINE.store(engine.sa_sigaction, Ordering::Release);
            let mut action = engine;
            action.sa_sigaction = marked as *const () as usize;
            assert_eq!(libc::sigaction(signal, &raw const action, ptr::null_mut()), 0);
            Self(engine, signal)
        }
    }
}

impl Drop for Marking {
    fn drop(&mut self) {
        // SAFETY: the pointer refers to the action that sigaction returned in `begin`.
        unsafe { libc::sigaction(self.1, &raw const self.0, ptr::null_mut()) };
    }
}

/// The tests handle real signals and share one buffer and one count, so only one may run at a time.
static SERIAL: Mutex<()> = Mutex::new(());

const INTERVAL: Duration = Duration::from_micros(200);
/// A wait of this length is taken to last for ever.
const PATIENCE: Duration = Duration::from_secs(120);

/// A function of the sample library.
fn library_function(name: &CStr) -> *mut c_void {
    let path = CString::new(otlpprof_testkit::products::DDPROFTEST).unwrap();
    // SAFETY: both names are C strings. The library is never closed, so the address stays valid.
    let found = unsafe { libc::dlsym(libc::dlopen(path.as_ptr(), libc::RTLD_NOW), name.as_ptr()) };
    assert!(!found.is_null(), "{name:?} in {path:?}");
    found
}

/// Burns CPU time below `depth` frames of the sample library.
fn recurse(depth: u32) {
    // SAFETY: the type matches the C function.
    let recurse: extern "C" fn(u32, u64) -> u64 =
        unsafe { mem::transmute(library_function(c"ddprof_recurse")) };
    recurse(depth, 1_000_000);
}

/// The running engine, with the objects of this process published to it.
struct Sampling {
    session: Option<cpu::CpuSampling>,
    buffer: &'static SampleBuffer,
    _marking: Marking,
    /// Keeps the object map alive for the handlers.
    _objects: Arc<ObjectMap>,
    counters: Vec<(&'static str, u64)>,
}

impl Sampling {
    fn start(registry: &ObjectRegistry, remote: bool, depth: usize) -> Self {
        library_function(c"ddprof_recurse");
        fault::install().unwrap();
        let buffer = buffer::create().unwrap();
        // SAFETY: the buffer has no other drainer, since the tests of this binary run one at a time.
        unsafe { buffer.drain(|_| ()) };
        let objects = registry.refresh().map;
        SETUP.objects.store(Arc::as_ptr(&objects).cast_mut(), Ordering::Release);
        SETUP.remote.store(remote, Ordering::Relaxed);
        SETUP.depth.store(depth, Ordering::Relaxed);
        let counters = COUNTERS.named();
        let config = Config { interval: INTERVAL, ..Config::default() };
        let session = cpu::start(&config).unwrap();
        let marking = Marking::begin(config.signal);
        Self { session: Some(session), buffer, _marking: marking, _objects: objects, counters }
    }

    /// Makes the current thread call `function` in the middle of each of its samples from now on, as
    /// AsyncGetCallTrace.
    fn call_in_samples(&self, function: AsyncGetCallTrace) {
        // No sample reads the Java thread, since the layout of the VM is not known.
        const JAVA_THREAD: u64 = 8;
        // Code in no object is taken for Java code.
        static NO_OBJECTS: LazyLock<ObjectMap> = LazyLock::new(|| ObjectMap::new(Vec::new(), 0));
        SETUP.async_get_call_trace.store(function as *mut c_void, Ordering::Release);
        SETUP.walker.store(StackWalker::Fp as u8, Ordering::Relaxed);
        SETUP.objects.store((&raw const *NO_OBJECTS).cast_mut(), Ordering::Release);
        // SAFETY: gettid has no preconditions and cannot fail.
        assert!(threads::note_java_thread(unsafe { libc::gettid() }, JAVA_THREAD));
    }

    /// The growth of a counter since the start.
    fn count(&self, name: &str) -> u64 {
        let value = |counters: &[(&str, u64)]| counters.iter().find(|counter| counter.0 == name).unwrap().1;
        value(&COUNTERS.named()) - value(&self.counters)
    }

    /// Calls `work` until the counter has grown by `count`.
    fn until(&self, counter: &str, count: u64, mut work: impl FnMut()) {
        let deadline = Instant::now() + PATIENCE;
        while self.count(counter) < count {
            assert!(Instant::now() < deadline, "{counter} stays at {}", self.count(counter));
            work();
        }
    }

    /// The number of native frames in the buffer that have a raw address and an object. Checks that the two
    /// agree. Empties the buffer.
    fn raw_frames(&self, registry: &ObjectRegistry) -> usize {
        let mut frames = 0;
        // SAFETY: the buffer has no other drainer, since the tests of this binary run one at a time.
        unsafe {
            self.buffer.drain(|drained| {
                let all = drained.records().flat_map(|record| record.frames);
                for frame in all.filter(|frame| frame.kind == FrameKind::Native && frame.aux != NO_OBJECT) {
                    let details =
                        registry.details(ObjectIndex(frame.aux)).expect("an object of this process");
                    let address = details.load_bias().to_elf(RuntimeAddr(frame.value));
                    assert!(
                        details.code_segment_at(address).is_some(),
                        "{frame:?} in {}",
                        details.path.display()
                    );
                    frames += 1;
                }
            });
        }
        frames
    }

    /// The number of frames of the deepest stack in the buffer. Empties the buffer.
    fn deepest(&self) -> usize {
        let mut deepest = 0;
        // SAFETY: the buffer has no other drainer, since the tests of this binary run one at a time.
        unsafe {
            self.buffer.drain(|drained| {
                deepest = drained.records().map(|record| record.frames.len()).fold(deepest, usize::max);
            });
        }
        deepest
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.session.take().unwrap().stop();
        SETUP.objects.store(ptr::null_mut(), Ordering::Release);
        SETUP.walker.store(StackWalker::Vm as u8, Ordering::Relaxed);
        SETUP.async_get_call_trace.store(ptr::null_mut(), Ordering::Release);
        self.buffer.wait_for_handlers();
    }
}

/// Runs `scenario`, and fails if the allocator is called in the handler meanwhile.
fn without_allocation(scenario: impl FnOnce()) {
    let _guard = SERIAL.lock();
    let (allocated, handled) = (IN_HANDLER.load(Ordering::Relaxed), HANDLED.load(Ordering::Relaxed));
    on_alternate_stack(6 << 10, scenario);
    let handled = HANDLED.load(Ordering::Relaxed) - handled;
    assert!(handled >= 100, "the handler ran {handled} times");
    assert_eq!(
        IN_HANDLER.load(Ordering::Relaxed) - allocated,
        0,
        "calls of the allocator in {handled} handlers"
    );
}

fn with_tables() -> ObjectRegistry {
    library_function(c"ddprof_recurse");
    let registry = ObjectRegistry::new();
    registry.refresh();
    while registry.compile_next(u64::MAX) {}
    registry
}

#[test]
fn deep_stacks_with_remote_frames_to_the_end_of_pool_and_buffer() {
    without_allocation(|| {
        let registry = with_tables();
        let sampling = Sampling::start(&registry, true, 2048);
        sampling.until("samples_taken", 50, || recurse(400));
        assert!(sampling.deepest() > 400);
        // From here on the buffer is not drained.
        sampling.until("remote_pool_exhausted", 1000, || recurse(400));
        sampling.until("samples_dropped", 100, || recurse(400));
        assert!(sampling.raw_frames(&registry) >= 1000, "frames that the pool had no slot for are kept");
    });
}

#[test]
fn deep_stacks_without_remote_frames_to_the_end_of_the_buffer() {
    without_allocation(|| {
        let sampling = Sampling::start(&with_tables(), false, 2048);
        sampling.until("samples_taken", 50, || recurse(400));
        assert!(sampling.deepest() > 400);
        sampling.until("samples_dropped_full", 100, || recurse(1000));
        let reasons = ["held", "full", "not_ready", "small_stack"];
        // The handler continues to count during these reads.
        let before = sampling.count("samples_dropped");
        let [held, full, not_ready, small_stack] =
            reasons.map(|why| sampling.count(&format!("samples_dropped_{why}")));
        let after = sampling.count("samples_dropped");
        assert!(
            (before..=after).contains(&(held + full + not_ready + small_stack)),
            "{before} {held} {full} {not_ready}"
        );
        assert_eq!(sampling.count("remote_pool_exhausted"), 0);
    });
}

#[test]
fn stacks_that_are_cut() {
    without_allocation(|| {
        let sampling = Sampling::start(&with_tables(), true, 64);
        sampling.until("truncated", 200, || {
            recurse(400);
            sampling.deepest();
        });
    });
}

/// Also on a small alternate stack: reading call frame information in place once overran one.
#[test]
fn objects_whose_unwind_tables_are_not_there_yet() {
    without_allocation(|| {
        let registry = ObjectRegistry::new();
        let sampling = Sampling::start(&registry, true, 2048);
        sampling.until("frames_before_tables", 20_000, || {
            recurse(50);
            sampling.deepest();
        });
    });
}

/// A sample on this stack would extend beyond its end, onto an inaccessible page. So the sample is taken on
/// one of the handlers' own stacks. A fault during the sample does not overwrite the handler's frames,
/// although Rust's own handler of faults requests the alternate stack.
#[test]
fn a_stack_for_signals_that_is_too_small_is_left() {
    static FAULTED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn fault(_: *mut CallTrace, _: i32, _: *mut c_void) {
        let is_loaded = ProcessMemory.load_u64(0x1000).is_some();
        FAULTED.fetch_add(usize::from(!is_loaded), Ordering::Relaxed);
    }
    without_allocation(|| {
        on_alternate_stack(1 << 10, || {
            let registry = ObjectRegistry::new();
            let sampling = Sampling::start(&registry, true, 2048);
            let take = |count| {
                sampling.until("samples_taken", count, || {
                    recurse(50);
                    sampling.deepest();
                });
            };
            take(200);
            sampling.call_in_samples(fault);
            take(400);
            assert_eq!(sampling.count("samples_dropped_small_stack"), 0);
            assert!(chain::is_on_alternate_stack(libc::SIGSEGV) && FAULTED.load(Ordering::Relaxed) > 0);
        });
    });
}

/// Runs `body` with an alternate signal stack that has `bytes` bytes in addition to the kernel's own frame.
/// An inaccessible page lies below it.
fn on_alternate_stack(bytes: usize, body: impl FnOnce()) {
    on_stack_of((bytes + kernel_frame_bytes()).next_multiple_of(16), body);
}

/// The number of bytes of the kernel's signal frame: 1 to 3.4 KiB, depending on the processor's registers.
/// The value that the kernel reports (AT_MINSIGSTKSZ) includes room for registers that only threads have that
/// request them (8 KiB for AMX).
fn kernel_frame_bytes() -> usize {
    const SIGNAL: i32 = libc::SIGUSR2;
    static BELOW: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn note(_: i32) {
        let here = 0_u8;
        BELOW.store(&raw const here as usize, Ordering::Relaxed);
    }
    let mut top = 0;
    on_stack_of(64 << 10, || {
        // SAFETY: all pointers refer to live values. The handler only stores a number, and is removed
        // afterwards.
        unsafe {
            let mut stack: libc::stack_t = mem::zeroed();
            assert_eq!(libc::sigaltstack(ptr::null(), &raw mut stack), 0);
            top = stack.ss_sp as usize + stack.ss_size;
            let mut action: libc::sigaction = mem::zeroed();
            (action.sa_sigaction, action.sa_flags) = (note as *const () as usize, libc::SA_ONSTACK);
            let mut before = mem::zeroed();
            assert_eq!(libc::sigaction(SIGNAL, &raw const action, &raw mut before), 0);
            assert_eq!(libc::raise(SIGNAL), 0);
            assert_eq!(libc::sigaction(SIGNAL, &raw const before, ptr::null_mut()), 0);
        }
    });
    top - BELOW.load(Ordering::Relaxed)
}

/// Runs `body` with an alternate signal stack of this size.
fn on_stack_of(size: usize, body: impl FnOnce()) {
    let pages = 4096 + size.next_multiple_of(4096);
    // SAFETY: the pages are freshly mapped. The lowest page is made inaccessible; the stack is at the upper
    // end, and stays mapped until the previous stack is restored.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(ptr::null_mut(), pages, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        assert_eq!(libc::mprotect(memory, 4096, libc::PROT_NONE), 0);
        let stack = libc::stack_t { ss_sp: memory.add(pages - size), ss_flags: 0, ss_size: size };
        let mut before = mem::zeroed();
        assert_eq!(libc::sigaltstack(&raw const stack, &raw mut before), 0);
        body();
        assert_eq!(libc::sigaltstack(&raw const before, ptr::null_mut()), 0);
        libc::munmap(memory, pages);
    }
}

/// Code outside all objects makes the handler wake the thread that searches for new objects.
#[test]
#[cfg(target_arch = "x86_64")]
fn code_in_no_object() {
    // The instructions are: again: dec rdi; jnz again; ret.
    const LOOP: [u8; 6] = [0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3];
    without_allocation(|| {
        // SAFETY: the mapping is fresh and executable, and the code fits in it.
        let code: extern "C" fn(u64) = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let access = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            let memory = libc::mmap(ptr::null_mut(), 4096, access, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            memory.cast::<[u8; 6]>().write(LOOP);
            mem::transmute(memory)
        };
        let sampling = Sampling::start(&with_tables(), true, 2048);
        sampling.until("samples_taken", 200, || {
            SETUP.unknown_code.wait(Duration::ZERO);
            code(10_000_000);
        });
        let give_up = Instant::now() + PATIENCE;
        while !SETUP.unknown_code.is_rung() {
            assert!(Instant::now() < give_up, "no handler met the code");
            code(10_000_000);
        }
    });
}

/// Verifies that the count detects an allocation in a handler.
#[test]
fn an_allocation_in_a_handler_is_counted() {
    static BURNING: AtomicU64 = AtomicU64::new(0);

    unsafe extern "C" fn allocate(_: *mut CallTrace, _: i32, _: *mut c_void) {
        // Only the burning thread may allocate: any other thread may be inside malloc, and would deadlock.
        if BURNING.load(Ordering::Acquire) == this_thread() {
            std::hint::black_box(Box::new(1));
        }
    }

    let _guard = SERIAL.lock();
    let before = IN_HANDLER.load(Ordering::Relaxed);
    let recurse_of_library: extern "C" fn(u32, u64) -> u64 =
        // SAFETY: the type matches the C function.
        unsafe { mem::transmute(library_function(c"ddprof_recurse")) };
    let sampling = Sampling::start(&ObjectRegistry::new(), false, 2048);
    sampling.call_in_samples(allocate);
    let deadline = Instant::now() + PATIENCE;
    while IN_HANDLER.load(Ordering::Relaxed) - before < 20 && Instant::now() < deadline {
        BURNING.store(this_thread(), Ordering::Release);
        recurse_of_library(10, 1_000_000);
        BURNING.store(0, Ordering::Release);
        sampling.deepest();
    }
    drop(sampling);
    // Each box is allocated and freed, which counts twice.
    assert!(IN_HANDLER.load(Ordering::Relaxed) - before >= 20);
}

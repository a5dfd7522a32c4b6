//! Sessions of the CPU sampling engine in the test's own process, and work to sample. The tests handle real
//! signals and examine the whole process, so the tests of one binary run one at a time.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::skipped::not_tested;
use crate::stolen_time::{Measured, Verdict, measure};
use otlpprof_core::object::ObjectMap;
use otlpprof_core::record::SampleHeader;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::thread::ClockKind;
// Not musl's own `gettid`, which reads the thread's control block: a raw clone shares its creator's.
pub use otlpprof_core::thread::current_os_tid as gettid;
use otlpprof_sampling::config::{ClockChoice, Config};
use otlpprof_sampling::cpu::{self, CpuSampling};
use otlpprof_sampling::threads;
use otlpprof_signal::buffer;
use otlpprof_signal::call_trace::AsyncGetCallTrace;
use otlpprof_signal::cpu_counters::COUNTERS;
use otlpprof_signal::sample::SETUP;
use parking_lot::{Mutex, MutexGuard};

static SERIAL: Mutex<()> = Mutex::new(());

/// Waits until no other test of the binary runs, and excludes other tests until the guard is dropped.
pub fn serially() -> MutexGuard<'static, ()> {
    SERIAL.lock()
}

/// The interval of sessions by [`config`].
pub const INTERVAL: Duration = Duration::from_millis(10);
/// A wait of this length is taken to last for ever.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The most CPU time by which samples differ from a program that has settled ([`settle_program`]): less than
/// two intervals in the balance of ended threads, the open period and the first tick of the thread that has
/// waited, and less than an interval of time in no thread's account, from which on the engine looks for it.
pub const OPEN: Duration = Duration::from_millis(50);

/// The periods that drained samples stand for, by thread id modulo the array's length.
static BY_THREAD: [AtomicU64; 1 << 16] = [const { AtomicU64::new(0) }; 1 << 16];
/// The periods of all threads when the session began.
static BEFORE: AtomicU64 = AtomicU64::new(0);

/// Lets handlers record samples. The samples are small: no object is known, and only Java frames are wanted.
fn record_samples() {
    static NO_OBJECTS: LazyLock<ObjectMap> = LazyLock::new(|| ObjectMap::new(Vec::new(), 0));
    buffer::create().unwrap();
    SETUP.objects.store((&raw const *NO_OBJECTS).cast_mut(), Ordering::Release);
    SETUP.depth.store(1, Ordering::Relaxed);
    SETUP.walker.store(StackWalker::No as u8, Ordering::Relaxed);
}

/// Takes the samples that have been recorded.
pub fn drain(mut take: impl FnMut(&SampleHeader)) {
    static DRAINING: Mutex<()> = Mutex::new(());
    let _draining = DRAINING.lock();
    // SAFETY: no other code of the test binary drains, and the lock admits one drainer at a time.
    unsafe {
        buffer::create().unwrap().drain(|drained| drained.records().for_each(|record| take(&record.header)));
    }
}

/// Makes the current thread, which is sampled, call `function` in the middle of each of its samples from now
/// on, as AsyncGetCallTrace. Precondition: a session of [`start`].
pub fn call_in_samples(function: AsyncGetCallTrace) {
    // No sample reads the Java thread, since the layout of the VM is not known.
    const JAVA_THREAD: u64 = 8;
    SETUP.async_get_call_trace.store(function as *mut c_void, Ordering::Release);
    SETUP.walker.store(StackWalker::Fp as u8, Ordering::Relaxed);
    assert!(threads::note_java_thread(gettid(), JAVA_THREAD));
}

/// A configuration with the default engine parameters, [`INTERVAL`], and only this clock.
pub fn config(kind: ClockKind) -> Config {
    Config { interval: INTERVAL, clock: ClockChoice::Only(kind), ..Config::default() }
}

/// Starts a session, whose periods are counted from 0.
pub fn start(config: &Config) -> CpuSampling {
    record_samples();
    drain(|_| ());
    BY_THREAD.iter().for_each(|periods| periods.store(0, Ordering::Relaxed));
    BEFORE.store(COUNTERS.periods.load(Ordering::Relaxed), Ordering::Relaxed);
    *POLLER.lock() = None;
    cpu::start(config).unwrap()
}

/// The CPU time that all samples stand for.
pub fn sampled() -> Duration {
    let periods = COUNTERS.periods.load(Ordering::Relaxed) - BEFORE.load(Ordering::Relaxed);
    INTERVAL * u32::try_from(periods).unwrap()
}

/// The periods that the samples of one thread stand for.
pub fn periods_of(tid: i32) -> u32 {
    drain(|header| {
        let of_thread = &BY_THREAD[header.os_tid as usize % BY_THREAD.len()];
        of_thread.fetch_add(header.weight, Ordering::Relaxed);
    });
    u32::try_from(BY_THREAD[tid as usize % BY_THREAD.len()].load(Ordering::Relaxed)).unwrap()
}

/// The CPU time that the samples of one thread stand for, in a session of [`INTERVAL`].
pub fn sampled_of(tid: i32) -> Duration {
    INTERVAL * periods_of(tid)
}

/// The set that contains one signal.
pub fn set_of(signal: i32) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set before it is read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        set.assume_init()
    }
}

fn clock(id: libc::clockid_t) -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the kernel writes one timespec, and these clocks always exist.
    let time = unsafe {
        libc::clock_gettime(id, time.as_mut_ptr());
        time.assume_init()
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The current thread's CPU time.
pub fn thread_cpu() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The process's CPU time, by getrusage.
pub fn process_cpu() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel writes one rusage.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let duration = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

/// The process's CPU time without the CPU time of the session's poller, which no sample stands for.
pub fn program_cpu() -> Duration {
    let mut poller = POLLER.lock();
    let tid = *poller.get_or_insert_with(find_poller);
    // The id of another thread's CPU clock: CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED
    // (include/linux/posix-timers.h).
    process_cpu().saturating_sub(clock((!tid) << 3 | 6))
}

/// The id of the session's poller, once [`program_cpu`] has needed it. It is kept, since a test may have no
/// descriptor left to find it by.
static POLLER: Mutex<Option<i32>> = Mutex::new(None);

fn find_poller() -> i32 {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let is_poller = |task: &std::path::PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "otlpprof-cpu")
        };
        let tid = |task: std::path::PathBuf| task.file_name()?.to_str()?.parse().ok();
        if let Some(tid) = tasks.filter(is_poller).find_map(tid) {
            return tid;
        }
        // A thread sets its name when it first runs.
        assert!(Instant::now() < give_up, "no poller");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs `body` in a thread that is unknown to the C library: its stack is ours, and it has its creator's
/// thread pointer. Waits for the thread's end and returns its id.
pub fn in_raw_clone(body: extern "C" fn(*mut c_void) -> i32) -> i32 {
    let mut stack = vec![0_u128; 1 << 14];
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM;
    // SAFETY: `stack` outlives the thread, because the loop below waits for the thread's end.
    let tid = unsafe {
        let top = stack.as_mut_ptr().add(stack.len());
        libc::clone(body, top.cast(), flags, std::ptr::null_mut())
    };
    assert!(tid > 0);
    while std::fs::exists(format!("/proc/self/task/{tid}")).unwrap() {
        std::thread::sleep(Duration::from_millis(1));
    }
    tid
}

/// Computes until the thread has used `time` more CPU time.
pub fn burn(time: Duration) {
    let end = thread_cpu() + time;
    let mut x = 1_u64;
    while thread_cpu() < end {
        for _ in 0..20_000 {
            x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

/// Computes until samples account for all but less than two intervals of the CPU time that the current thread
/// has used since its CPU clock showed `since`. Returns the time used.
///
/// A thread that competes for its CPU may not be running at a tick for a long time, and then clocks that are
/// bound to the tick do not fire. The poller may be late as well.
pub fn burn_until_settled(since: Duration) -> Duration {
    burn_until_within(2 * INTERVAL, since, || sampled_of(gettid()))
}

/// Computes until `sampled` is all but less than `rest` of the CPU time that the current thread has used
/// since its CPU clock showed `since`. Returns the time used. Gives up after [`PATIENCE`].
pub fn burn_until_within(rest: Duration, since: Duration, sampled: impl Fn() -> Duration) -> Duration {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let used = thread_cpu() - since;
        if sampled() + rest > used || Instant::now() > give_up {
            return used;
        }
        burn(Duration::from_millis(1));
    }
}

/// Makes system calls until the thread has used `time` more CPU time.
pub fn burn_in_kernel(time: Duration) {
    let zeroes = std::fs::File::open("/dev/zero").unwrap();
    let mut buffer = vec![0; 16 << 10];
    let end = thread_cpu() + time;
    while thread_cpu() < end {
        for _ in 0..20 {
            std::os::unix::fs::FileExt::read_exact_at(&zeroes, &mut buffer, 0).unwrap();
        }
    }
}

/// Fails unless a run of `scenario` gives a sum within `percent` of the time used; see [`measure`].
#[track_caller]
pub fn assert_within(percent: f64, kind: ClockKind, what: &str, mut scenario: impl FnMut() -> Measured) {
    let what = format!("{} {what}", kind.name());
    let mut last = None;
    let run = || *last.insert(scenario());
    let verdict = measure(kind == ClockKind::Perf, percent / 100.0, &what, run);
    let last: Option<Measured> = last;
    let off = last.map_or(0.0, |measured| measured.error() * 100.0);
    assert_eq!(verdict, Verdict::Holds, "{what}: {last:?} ({off:+.2} %)");
}

/// Runs `body` in `count` threads, `at_once` of them concurrently.
pub fn in_threads(count: usize, at_once: usize, body: fn()) {
    for _ in 0..count / at_once {
        let threads: Vec<_> = (0..at_once).map(|_| thread::spawn(body)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Runs short threads, whose samples account for the time that ended threads left or correct a surplus, as in
/// a program that continues. Ends when little is left, since the time in the balance of ended threads is in
/// no profile.
pub fn run_heirs() {
    const MOST: usize = 500;
    for number in 0..MOST {
        if number >= 10 && Duration::from_nanos(cpu::ended_balance_ns().unsigned_abs()) < 2 * INTERVAL {
            break;
        }
        in_threads(1, 1, || burn(2 * INTERVAL));
    }
}

/// Runs heirs until samples account for the CPU time that the program has used since [`program_cpu`] was
/// `since`, except for less than [`OPEN`]. Returns the time used. Gives up after [`PATIENCE`].
///
/// The poller finds time that is in no thread's account a second later, or later still on a busy machine, and
/// only while no thread ends.
pub fn settle_program(since: Duration) -> Duration {
    let give_up = Instant::now() + PATIENCE;
    loop {
        run_heirs();
        let used = program_cpu() - since;
        if sampled().abs_diff(used) < OPEN || Instant::now() > give_up {
            return used;
        }
        thread::sleep(Duration::from_millis(300));
    }
}

/// The clocks for threads that this machine grants. Reports a missing one, and fails in CI.
pub fn thread_clocks() -> Vec<ClockKind> {
    let mut clocks = vec![ClockKind::Timer];
    let probe = cpu::start(&config(ClockKind::Perf));
    match probe {
        Ok(_) => clocks.push(ClockKind::Perf),
        Err(error) => {
            not_tested(&format!("perf events are not granted: {error}"));
        }
    }
    clocks
}

//! Every thread is sampled, however it is created and however it ends.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use std::{mem, ptr, thread};

use otlpprof_core::thread::ClockKind;
use otlpprof_sampling::{cpu, own_threads, thread_records, threads};
use otlpprof_testkit::sampling_session::*;
use otlpprof_testkit::stolen_time::Measured;

const LONG: Duration = Duration::from_secs(1);

/// Burns CPU time for long enough, and until little of it is missing in samples. Returns the time that a
/// thread has used since its start, for [`each_clock_samples`].
fn burn_long() -> Duration {
    burn(LONG);
    burn_until_settled(Duration::ZERO)
}

/// Checks that a thread is sampled except for less than two intervals at its end, which are less than 2 % of
/// [`LONG`].
fn each_clock_samples(what: &str, scenario: fn(ClockKind) -> (i32, Duration)) {
    each_clock(|kind| {
        assert_within(2.0, kind, what, || {
            let (tid, used) = scenario(kind);
            Measured { sampled: sampled_of(tid), used }
        });
    });
}

fn each_clock(scenario: impl FnMut(ClockKind)) {
    let _guard = serially();
    thread_clocks().into_iter().for_each(scenario);
}

#[test]
fn threads_that_existed_before_the_session() {
    each_clock_samples("a thread from before", |kind| {
        static GO: AtomicBool = AtomicBool::new(false);
        GO.store(false, Ordering::SeqCst);
        let thread = thread::spawn(|| {
            while !GO.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            let since = armed_at(gettid());
            burn(LONG);
            (gettid(), burn_until_settled(since))
        });
        let session = start(&config(kind));
        GO.store(true, Ordering::SeqCst);
        let sampled = thread.join().unwrap();
        session.stop();
        sampled
    });
}

/// A thread's CPU clock when the session armed the thread.
fn armed_at(tid: i32) -> Duration {
    let mut base_ns = 0;
    thread_records::for_each_thread(|record| {
        if record.os_tid.load(Ordering::Relaxed) == tid {
            base_ns = record.account.base_ns.load(Ordering::Relaxed);
        }
    });
    Duration::from_nanos(u64::try_from(base_ns).unwrap())
}

/// A thread whose creation is not reported to us.
#[test]
fn threads_of_a_pthread_create_found_by_dlsym() {
    type Create = unsafe extern "C" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        extern "C" fn(*mut c_void) -> *mut c_void,
        *mut c_void,
    ) -> i32;
    extern "C" fn body(_: *mut c_void) -> *mut c_void {
        Box::into_raw(Box::new((gettid(), burn_long()))).cast()
    }
    each_clock_samples("a thread without an announcement", |kind| {
        let session = start(&config(kind));
        let before = cpu::counts();
        let mut result = ptr::null_mut();
        // SAFETY: the symbol is pthread_create with this type, and the thread is joined.
        unsafe {
            let create: Create = mem::transmute(libc::dlsym(libc::RTLD_DEFAULT, c"pthread_create".as_ptr()));
            let mut thread: libc::pthread_t = mem::zeroed();
            assert_eq!(create(&raw mut thread, ptr::null(), body, ptr::null_mut()), 0);
            assert_eq!(libc::pthread_join(thread, &raw mut result), 0);
        }
        // SAFETY: the thread's body created the box and leaked it as its result.
        let sampled = *unsafe { Box::from_raw(result.cast::<(i32, Duration)>()) };
        assert_eq!(cpu::counts().since(&before).threads_found_by_poll, 1);
        session.stop();
        sampled
    });
}

/// A thread that is unknown to the C library: its stack is ours, and it has its creator's thread pointer.
#[test]
fn threads_of_a_raw_clone() {
    static USED_NS: AtomicU64 = AtomicU64::new(0);
    extern "C" fn body(_: *mut c_void) -> i32 {
        // The body must not use thread-local variables. CLOCK_THREAD_CPUTIME_ID is the kernel's own.
        USED_NS.store(burn_long().as_nanos() as u64, Ordering::SeqCst);
        0
    }
    each_clock_samples("a raw clone", |kind| {
        let session = start(&config(kind));
        let tid = in_raw_clone(body);
        session.stop();
        (tid, Duration::from_nanos(USED_NS.load(Ordering::SeqCst)))
    });
}

/// pthread_exit unwinds the stack up to the thread's entry. No frame of ours is on it.
#[test]
fn threads_that_leave_by_pthread_exit() {
    static CLEANED: AtomicU32 = AtomicU32::new(0);
    extern "C-unwind" fn body(_: *mut c_void) -> *mut c_void {
        unsafe extern "C-unwind" {
            fn pthread_exit(value: *mut c_void) -> !;
        }
        CLEANED.fetch_add(1, Ordering::SeqCst);
        burn(LONG / 100);
        // SAFETY: no frame with a destructor is left on the stack.
        unsafe { pthread_exit(gettid() as usize as *mut c_void) }
    }
    each_clock(|kind| {
        CLEANED.store(0, Ordering::SeqCst);
        let session = start(&config(kind));
        let mut ended = Vec::new();
        for _ in 0..20 {
            // SAFETY: the routine has the C ABI, and the thread is joined.
            unsafe {
                let mut thread: libc::pthread_t = mem::zeroed();
                let routine: extern "C" fn(*mut c_void) -> *mut c_void = mem::transmute(body as *const ());
                let made = libc::pthread_create(&raw mut thread, ptr::null(), routine, ptr::null_mut());
                assert_eq!(made, 0);
                let mut tid = ptr::null_mut();
                assert_eq!(libc::pthread_join(thread, &raw mut tid), 0);
                ended.push(tid as i32);
            }
        }
        thread_records::for_each_thread(|record| {
            let tid = record.os_tid.load(Ordering::Relaxed);
            assert!(!ended.contains(&tid), "an ended thread has a record left");
        });
        assert_eq!(CLEANED.load(Ordering::SeqCst), 20);
        session.stop();
    });
}

/// The caller of the start routine is the same with and without a session. musl has no backtrace(3).
#[cfg(target_env = "gnu")]
#[test]
fn start_routines_are_called_by_the_c_library() {
    extern "C" fn body(_: *mut c_void) -> *mut c_void {
        let mut addresses = [ptr::null_mut(); 32];
        // SAFETY: the array has room for 32 addresses, as passed.
        let count = unsafe { backtrace(addresses.as_mut_ptr(), 32) };
        let symbols: Vec<_> = addresses[..count as usize].iter().map(|pc| *pc as usize).collect();
        Box::into_raw(Box::new(symbols)).cast()
    }
    unsafe extern "C" {
        fn backtrace(buffer: *mut *mut c_void, size: i32) -> i32;
    }
    fn frames() -> Vec<usize> {
        // SAFETY: the thread is joined, and its result is a leaked box of a vector.
        unsafe {
            let mut thread: libc::pthread_t = mem::zeroed();
            let made = libc::pthread_create(&raw mut thread, ptr::null(), body, ptr::null_mut());
            assert_eq!(made, 0);
            let mut frames = ptr::null_mut();
            assert_eq!(libc::pthread_join(thread, &raw mut frames), 0);
            *Box::from_raw(frames.cast())
        }
    }
    let _guard = serially();
    let without = frames();
    let session = start(&config(ClockKind::Timer));
    let with = frames();
    session.stop();
    assert!(without.len() >= 2, "{without:x?}");
    assert_eq!(with, without);
}

#[test]
fn thousands_of_threads_at_once() {
    const COUNT: usize = 3000;
    each_clock(|kind| {
        assert_within(2.0, kind, "thousands of threads", || {
            let session = start(&config(kind));
            let cpu_before = program_cpu();
            let before = cpu::counts();
            let barrier = std::sync::Arc::new(std::sync::Barrier::new(COUNT + 1));
            let threads: Vec<_> = (0..COUNT)
                .map(|_| {
                    let barrier = std::sync::Arc::clone(&barrier);
                    thread::Builder::new()
                        .stack_size(64 << 10)
                        .spawn(move || {
                            // The first wait ends when all threads have armed themselves, the second lets
                            // them continue.
                            barrier.wait();
                            barrier.wait();
                            burn(Duration::from_millis(1));
                        })
                        .unwrap()
                })
                .collect();
            barrier.wait();
            assert!(thread_records::thread_count() >= COUNT);
            barrier.wait();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            let used = settle_program(cpu_before);
            let counts = cpu::counts().since(&before);
            assert!(counts.threads_armed >= COUNT as u64, "{counts:?}");
            assert_eq!(counts.threads_unsampled, 0, "{counts:?}");
            let measured = Measured { sampled: sampled(), used };
            println!("{}: {measured:?} balance {} us", kind.name(), cpu::ended_balance_ns() / 1000);
            session.stop();
            assert_eq!(thread_records::thread_count(), 0);
            measured
        });
    });
}

#[test]
fn threads_of_the_profiler_are_not_sampled_nor_are_their_children() {
    each_clock(|kind| {
        let session = start(&config(kind));
        let own = own_threads::spawn("own", || {
            let child = thread::spawn(|| {
                burn(LONG / 2);
                gettid()
            });
            burn(LONG / 2);
            (gettid(), child.join().unwrap())
        });
        let (own, child) = own.unwrap().join().unwrap();
        session.stop();
        assert_eq!((sampled_of(own), sampled_of(child)), (Duration::ZERO, Duration::ZERO));
    });
}

/// The data from JVMTI's callbacks, and the contents of a thread's record.
#[test]
fn records_describe_their_threads() {
    let _guard = serially();
    let session = start(&config(ClockKind::Timer));
    let on_stack = 0_u8;
    let address = &raw const on_stack as u64;
    let mine = || {
        let mut mine = Vec::new();
        thread_records::for_each_thread(|record| {
            if record.os_tid.load(Ordering::Relaxed) == gettid() {
                let field = |field: &std::sync::atomic::AtomicU64| field.load(Ordering::Relaxed);
                mine.push((field(&record.java_thread), field(&record.stack_low), field(&record.stack_high)));
            }
        });
        assert_eq!(mine.len(), 1);
        mine[0]
    };
    threads::java_thread_started(0x1234);
    let (java_thread, low, high) = mine();
    assert_eq!(java_thread, 0x1234);
    assert!(low < address && address < high, "{low:x} {address:x} {high:x}");
    threads::java_thread_ended();
    assert_eq!(mine().0, 0);
    assert!(threads::note_java_thread(gettid(), 0x5678));
    assert_eq!(mine().0, 0x5678);
    session.stop();
    assert!(!threads::note_java_thread(gettid(), 0x5678));
}

//! The native walker on this process's own stacks, compared with backtrace(3). The test has its own main
//! function: the test harness would run everything on threads that it starts, whereas the main thread's stack
//! ends elsewhere.

#[cfg_attr(target_arch = "aarch64", path = "elf_walk/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "elf_walk/x86_64.rs")]
mod arch;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Trial};
use otlpprof_core::collections::COLLECTIONS;
use otlpprof_core::record::{FrameKind, FrameRecord};
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_elf::loader_list::dl_find_object;
use otlpprof_elf::objects::ObjectRegistry;
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_signal::walk::registers::Registers;
use otlpprof_signal::walk::{FrameSink, Start, Walk};
use otlpprof_signal::{fault, loader};
use otlpprof_testkit::elf_objects::image_at;

fn main() {
    fault::install().unwrap();
    let mut arguments = Arguments::from_args();
    // With one thread for tests, libtest-mimic runs them on the main thread.
    arguments.test_threads = Some(1);
    let on_main_thread = Trial::test("walks_agree_with_backtrace_on_the_main_thread", || {
        walks_agree_with_backtrace();
        Ok(())
    });
    let on_another = Trial::test("walks_agree_with_backtrace_on_another_thread", || {
        std::thread::spawn(walks_agree_with_backtrace).join().unwrap();
        Ok(())
    });
    libtest_mimic::run(&arguments, vec![on_main_thread, on_another]).exit();
}

/// A position in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Position {
    pc: u64,
    sp: u64,
    fp: u64,
}

/// The way in which a walk finds the rules for its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    /// In unwind tables.
    Compiled,
    /// In the call frame information of known objects, in place.
    InPlace,
    /// In the call frame information of objects that only the dynamic linker knows.
    ByLoader,
}

impl Rules {
    /// The ways that this C library allows.
    fn all() -> impl Iterator<Item = Self> {
        // SAFETY: the function returns null or glibc's `_dl_find_object`.
        unsafe { loader::ask(dl_find_object()) };
        let is_known = loader::frame_header_at(walk as *const () as u64).is_some();
        [Self::Compiled, Self::InPlace].into_iter().chain(is_known.then_some(Self::ByLoader))
    }
}

/// Walks the stack from `at` on. Returns the address that is looked up for each frame. Except in interrupted
/// frames, this address lies within the call instruction.
fn walk(at: Position, rules: Rules) -> Vec<u64> {
    let registry = ObjectRegistry::new();
    let map = if rules == Rules::ByLoader { Arc::default() } else { registry.refresh().map };
    while rules == Rules::Compiled && registry.compile_next(u64::MAX) {}
    let mut registers = Registers { pc: at.pc, ..Registers::default() };
    (registers.general[arch::SP], registers.general[arch::FP]) = (at.sp, at.fp);
    let start = Start {
        vm: None,
        objects: &map,
        java_thread: 0,
        stack_high: u64::MAX,
        registers,
        walker: StackWalker::Vm,
        call_trace: None,
        collections: &COLLECTIONS,
        loader: loader::frame_header_at,
    };
    let none = FrameRecord { value: 0, aux: 0, kind: FrameKind::Native, level: 0, reserved: 0 };
    let mut frames = [none; 1000];
    let mut sink = FrameSink::new(&mut frames, None);
    Walk::new(&ProcessMemory, start).walk(&mut sink);
    let len = sink.len();
    let marked = frames[..len].iter().find(|frame| frame.kind != FrameKind::Native);
    assert!(marked.is_none(), "{marked:?} among {len} frames");
    frames[..len].iter().map(|frame| frame.value).collect()
}

/// Walks from here, and compares the result with backtrace(3). Both begin with this function, at two
/// different calls.
#[inline(never)]
fn walk_and_compare() {
    let mut position = Position { pc: 0, sp: 0, fp: 0 };
    arch::capture(&raw mut position);
    let mut expected = vec![std::ptr::null_mut(); 1000];
    // SAFETY: the buffer has room for 1,000 pointers.
    let len = unsafe { libc::backtrace(expected.as_mut_ptr(), 1000) };
    let expected: Vec<u64> = expected[..len as usize].iter().map(|&pc| pc as u64).collect();
    assert!(expected.len() > 6);
    for rules in Rules::all() {
        let walked = walk(position, rules);
        assert_eq!(walked.len(), expected.len(), "{rules:?}: {walked:#x?}, not {expected:#x?}");
        for (found, expected) in walked.iter().zip(&expected).skip(1) {
            assert!(found == expected || *found + 1 == *expected, "{found:#x}, not {expected:#x}");
        }
    }

    // SAFETY: gettid and getpid have no preconditions.
    let on_main_thread = unsafe { libc::gettid() == libc::getpid() };
    let root = image_at(*expected.last().unwrap());
    let this = image_at(walk as *const () as u64);
    // `_start` is in the program; the entry of other threads is in libc.
    assert_eq!(root.load_bias() == this.load_bias(), on_main_thread);
    WALKS.fetch_add(1, Ordering::Relaxed);
}

static WALKS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn walking_comparison(a: *const libc::c_void, b: *const libc::c_void) -> i32 {
    // SAFETY: qsort passes pointers to elements of the i32 array that `walks_agree_with_backtrace` sorts.
    let (a, b) = unsafe { (*a.cast::<i32>(), *b.cast::<i32>()) };
    // One of the first comparisons happens at the bottom of qsort's recursion.
    if (a, b) == (64, 63) || (a, b) == (63, 64) {
        walk_and_compare();
    }
    a.cmp(&b) as i32
}

extern "C" fn walking_handler(_: i32) {
    walk_and_compare();
}

extern "C" fn walking_callback() {
    walk_and_compare();
}

/// The number of comparisons with backtrace(3) that `work` makes.
fn walks_in(work: impl FnOnce()) -> usize {
    let before = WALKS.load(Ordering::Relaxed);
    work();
    WALKS.load(Ordering::Relaxed) - before
}

fn walks_agree_with_backtrace() {
    // From a callback that libc calls.
    let walks = walks_in(|| {
        let mut numbers: Vec<i32> = (1..=64).rev().collect();
        // SAFETY: the array has 64 elements of 4 bytes each, as passed.
        unsafe { libc::qsort(numbers.as_mut_ptr().cast(), 64, 4, Some(walking_comparison)) };
    });
    assert!(walks > 0);

    // From a signal handler, through the kernel's frame.
    let walks = walks_in(|| {
        // SAFETY: the handler may allocate, because the signal is raised synchronously outside of any lock.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = walking_handler as *const () as usize;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
            assert_eq!(libc::raise(libc::SIGUSR2), 0);
        }
    });
    assert_eq!(walks, 1);

    let walks = arch::walks_through_realigned_stack(walking_callback);
    assert!(walks.is_none_or(|walks| walks == 1));
}

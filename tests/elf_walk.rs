//! Walks of this process's own stacks, compared with backtrace(3). Without the test harness, which would run
//! everything on threads that it starts: the main thread's stack ends elsewhere.

#[cfg_attr(target_arch = "aarch64", path = "elf_walk/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "elf_walk/x86_64.rs")]
mod arch;
mod elf_support;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use elf_support::image_at;
use otlpprof::core::address::RuntimeAddr;
use otlpprof::core::unwind::{CfaRule, FpRule, ReturnAddressRule};
use otlpprof::elf::image::for_each_loaded_object;
use otlpprof::elf::unwind::FrameSections;

fn main() {
    walks_agree_with_backtrace();
    println!("on the main thread: ok");
    std::thread::spawn(walks_agree_with_backtrace).join().unwrap();
    println!("on another thread: ok");
}

/// A position in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Registers {
    pc: u64,
    sp: u64,
    fp: u64,
}

fn load(address: u64) -> u64 {
    // SAFETY: the walk follows rules that were compiled for the code that runs; a wrong one fails the test
    // one way or the other.
    unsafe { (address as *const u64).read() }
}

/// Unwinds to the end of the stack by the tables of all loaded objects; gives each frame's PC.
fn walk(mut at: Registers) -> Vec<u64> {
    let mut tables = vec![];
    for_each_loaded_object(|image| {
        tables.push((image.clone(), FrameSections::of_image(image).unwrap()));
        ControlFlow::<()>::Continue(())
    });
    let tables: Vec<_> = tables.iter().map(|(image, sections)| (image, sections.compile())).collect();
    let mut pcs = vec![at.pc];
    let mut is_return_address = false;
    loop {
        if arch::is_undescribed_signal_return(at.pc) {
            at = arch::interrupted(at.sp);
            pcs.push(at.pc);
            is_return_address = false;
            continue;
        }
        let lookup = RuntimeAddr(at.pc - u64::from(is_return_address));
        let (image, table) = tables.iter().find(|(image, _)| image.contains(lookup)).expect("an object");
        let rule = table.rule_at(image.load_bias().to_elf(lookup)).expect("a rule");
        let cfa = match rule.cfa {
            CfaRule::SpPlus(offset) => at.sp.wrapping_add_signed(offset.into()),
            CfaRule::FpPlus(offset) => at.fp.wrapping_add_signed(offset.into()),
            CfaRule::FpDeref { at: slot, offset } => {
                load(at.fp.wrapping_add_signed(slot.into())).wrapping_add_signed(offset.into())
            }
            CfaRule::SignalFrame => {
                at = arch::interrupted(at.sp);
                pcs.push(at.pc);
                is_return_address = false;
                continue;
            }
            CfaRule::EndOfStack => return pcs,
            other => panic!("{other:?} at {:#x} in {}", at.pc, image.name().display()),
        };
        let ReturnAddressRule::AtCfaPlus(return_address) = rule.return_address else { panic!("{rule:?}") };
        let fp = match rule.fp {
            FpRule::Same => at.fp,
            FpRule::AtCfaPlus(offset) => load(cfa.wrapping_add_signed(offset.into())),
            FpRule::AtFpPlus(offset) => load(at.fp.wrapping_add_signed(offset.into())),
            FpRule::Undefined => panic!("FP is lost at {:#x} in {}", at.pc, image.name().display()),
        };
        at = Registers { pc: arch::strip(load(cfa.wrapping_add_signed(return_address.into()))), sp: cfa, fp };
        is_return_address = true;
        pcs.push(at.pc);
        assert!(pcs.len() < 1000, "the walk does not end");
    }
}

/// Walks from here and compares with backtrace(3). The first frame is this function, at two different calls.
#[inline(never)]
fn walk_and_compare() {
    let mut registers = Registers { pc: 0, sp: 0, fp: 0 };
    arch::capture(&raw mut registers);
    let walked = walk(registers);
    let mut expected = vec![std::ptr::null_mut(); 1000];
    // SAFETY: room for as many pointers as announced.
    let len = unsafe { libc::backtrace(expected.as_mut_ptr(), 1000) };
    let expected: Vec<u64> = expected[..len as usize].iter().map(|&pc| pc as u64).collect();
    assert_eq!(walked[1..], expected[1..]);
    assert!(walked.len() > 6);

    // SAFETY: gettid and getpid have no preconditions.
    let on_main_thread = unsafe { libc::gettid() == libc::getpid() };
    let root = image_at(*walked.last().unwrap());
    let this = image_at(walk as *const () as u64);
    // `_start` is in the program; the other threads' entry in libc.
    assert_eq!(root.load_bias() == this.load_bias(), on_main_thread);
    WALKS.fetch_add(1, Ordering::Relaxed);
}

static WALKS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn walking_comparison(a: *const libc::c_void, b: *const libc::c_void) -> i32 {
    // SAFETY: qsort passes pointers to elements of the array of i32 below.
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

/// How many of its walks `work` made.
fn walks_in(work: impl FnOnce()) -> usize {
    let before = WALKS.load(Ordering::Relaxed);
    work();
    WALKS.load(Ordering::Relaxed) - before
}

fn walks_agree_with_backtrace() {
    // Out of a call-back from libc.
    let walks = walks_in(|| {
        let mut numbers: Vec<i32> = (1..=64).rev().collect();
        // SAFETY: an array of 64 elements of 4 bytes.
        unsafe { libc::qsort(numbers.as_mut_ptr().cast(), 64, 4, Some(walking_comparison)) };
    });
    assert!(walks > 0);

    // Out of a signal handler, through the kernel's frame.
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

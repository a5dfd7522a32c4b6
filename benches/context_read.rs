//! Nanoseconds that a handler takes to find and copy the block of the thread that it has interrupted: a platform thread's,
//! by the kernel's id, and a virtual thread's, by the id that the VM keeps beside the carrier's frames from JDK 24 on. Of
//! many virtual threads each block is read once in a turn, and so comes from memory.

mod measure;

use std::hint::black_box;

use otlpprof::context::threads;
use otlpprof::core::context::entry_of;
use otlpprof::core::virtual_blocks::virtual_block_of;

/// Reads of one turn.
const READS: u32 = 1_000_000;
const TURNS: usize = 41;
/// Virtual threads with a block each.
const VIRTUAL_THREADS: i64 = 100_000;

fn main() {
    // The block is the current thread's, made as Java's first call makes it.
    assert!(threads::platform_block(false).is_some(), "no block");
    // SAFETY: gettid has no preconditions.
    let os_tid = unsafe { libc::gettid() };
    for id in 1..=VIRTUAL_THREADS {
        assert!(threads::virtual_block(id).is_some(), "no block for {id}");
    }
    let platform = || {
        for _ in 0..READS {
            black_box(entry_of(black_box(os_tid)).and_then(|entry| entry.own_block()?.read()));
        }
    };
    let read_virtual = |id: i64| black_box(virtual_block_of(black_box(id)).and_then(|block| block.read()));
    let one = || {
        for _ in 0..READS {
            read_virtual(VIRTUAL_THREADS / 2);
        }
    };
    let many = || {
        for n in 0..i64::from(READS) {
            // Not in the order in which blocks lie.
            read_virtual(n * 7_919 % VIRTUAL_THREADS + 1);
        }
    };
    let names = ["platform thread", "virtual thread", "100,000 virtual threads"];
    let mut contenders = [
        measure::Contender::new(names[0], &[], platform),
        measure::Contender::new(names[1], &[], one),
        measure::Contender::new(names[2], &[], many),
    ];
    for (name, figure) in names.iter().zip(measure::alternate(&mut contenders, TURNS)) {
        let ns = |time: std::time::Duration| time.as_nanos() as f64 / f64::from(READS);
        println!(
            "context: read by a handler, {name:<24} {:8.2} ns [{:.2} {:.2}]",
            ns(figure.median),
            ns(figure.lower_quartile),
            ns(figure.upper_quartile)
        );
    }
}

//! Nanoseconds that a handler takes to find and copy the block of the thread that it has interrupted.

mod measure;

use std::hint::black_box;

use otlpprof::context::threads;
use otlpprof::core::context::entry_of;

/// Reads of one turn.
const READS: u32 = 1_000_000;
const TURNS: usize = 41;

fn main() {
    // The block is the current thread's, made as Java's first call makes it.
    assert!(threads::platform_block(false).is_some(), "no block");
    // SAFETY: gettid has no preconditions.
    let os_tid = unsafe { libc::gettid() };
    let read = || {
        for _ in 0..READS {
            black_box(entry_of(black_box(os_tid)).and_then(|entry| entry.own_block()?.read()));
        }
    };
    let mut contenders = [measure::Contender::new("platform thread", &[], read)];
    for figure in measure::alternate(&mut contenders, TURNS) {
        let ns = |time: std::time::Duration| time.as_nanos() as f64 / f64::from(READS);
        println!(
            "context: read by a handler     {:8.2} ns [{:.2} {:.2}]",
            ns(figure.median),
            ns(figure.lower_quartile),
            ns(figure.upper_quartile)
        );
    }
}

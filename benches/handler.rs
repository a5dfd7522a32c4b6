//! Measures the nanoseconds of one sample, from the handler's entry to its exit by CLOCK_MONOTONIC (without
//! the kernel's delivery of the signal), by the depth of the stack: first with native frames of this process,
//! by unwind tables; then with Java and native frames of a real JVM, whose agent counts its samples and their
//! time.
//!
//! For the JVM, OTLPPROF is the agent's library, CLASSES the compiled test programs, DDPROFTEST the sample
//! library and JAVAS the `java` programs, separated by colons (scripts/bench.sh sets them).

mod measure;

use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use measure::Spread;
use otlpprof_core::thread::ThreadRecord;
use otlpprof_elf::objects::ObjectRegistry;
use otlpprof_signal::buffer::{self, SampleBuffer};
use otlpprof_signal::counters::COUNTERS;
use otlpprof_signal::fault;
use otlpprof_signal::handler_stack::StackRoom;
use otlpprof_signal::interruption::Interruption;
use otlpprof_signal::sample::{self, SETUP};

const DEPTHS: [usize; 3] = [20, 100, 500];
const TURNS: usize = 41;
/// The number of samples in one turn; few enough for the buffer to hold them.
const SAMPLES: u64 = 64;
/// The number of runs of the JVM for each configuration.
const JVM_TURNS: usize = 5;

fn main() {
    in_this_process();
    in_jvms();
}

fn in_this_process() {
    fault::install().expect("a handler for bad loads");
    let buffer = buffer::create().expect("a sample buffer");
    let registry = ObjectRegistry::new();
    let objects = registry.refresh().map;
    while registry.compile_next(u64::MAX) {}
    SETUP.objects.store(Arc::as_ptr(&objects).cast_mut(), Ordering::Release);
    let thread = ThreadRecord::default();
    // SAFETY: gettid has no preconditions.
    thread.os_tid.store(unsafe { libc::gettid() }, Ordering::Relaxed);

    let mut times = vec![Vec::new(); DEPTHS.len()];
    for turn in 0..=TURNS {
        for place in 0..DEPTHS.len() {
            let index = (turn + place) % DEPTHS.len();
            let ns = descend(DEPTHS[index], &mut || take_samples(&thread, buffer));
            // The first turn warms up.
            if turn > 0 {
                times[index].push(ns);
            }
        }
    }
    println!("handler, native frames by unwind table ({TURNS} alternating turns of {SAMPLES} samples)");
    DEPTHS.iter().zip(times).for_each(|(depth, times)| print(&format!("{depth} frames"), times));
    SETUP.objects.store(std::ptr::null_mut(), Ordering::Release);
    buffer.wait_for_handlers();
}

/// Calls `work` below `depth` frames of this function.
#[inline(never)]
fn descend(depth: usize, work: &mut dyn FnMut() -> f64) -> f64 {
    // Prevents a tail call.
    black_box(if depth > 1 { descend(black_box(depth) - 1, work) } else { work() })
}

/// Takes samples of this function; returns the nanoseconds of each.
fn take_samples(thread: &ThreadRecord, buffer: &SampleBuffer) -> f64 {
    let mut context = std::mem::MaybeUninit::<libc::ucontext_t>::zeroed();
    let counts = || [COUNTERS.handler_ns.load(Ordering::Relaxed), COUNTERS.samples_dropped.sum()];
    let before = counts();
    for _ in 0..SAMPLES {
        // SAFETY: getcontext fills the context, whose frame is this function's while the sample is taken.
        unsafe {
            libc::getcontext(context.as_mut_ptr());
            let interruption = Interruption::new(thread, context.as_mut_ptr().cast(), StackRoom::Ample);
            sample::take_cpu(&interruption, 1);
        }
    }
    let after = counts();
    // SAFETY: no other code drains the buffer.
    unsafe { buffer.drain(|_| {}) };
    assert_eq!(after[1], before[1], "samples were dropped");
    (after[0] - before[0]) as f64 / SAMPLES as f64
}

fn in_jvms() {
    let variable = |name| std::env::var(name).ok();
    let (Some(agent), Some(classes), Some(library)) =
        (variable("OTLPPROF"), variable("CLASSES"), variable("DDPROFTEST"))
    else {
        println!(
            "handler, JVM: NOT MEASURED, OTLPPROF, CLASSES and DDPROFTEST are not set (scripts/bench.sh does)"
        );
        return;
    };
    let property = format!("-Dddproftest={library}");
    for java in variable("JAVAS").unwrap_or_else(|| "java".to_owned()).split(':') {
        let kinds: [(&str, &[&str], &str); 3] = [
            ("Java, interpreted", &["-Xint"], "java"),
            ("Java, compiled", &[], "java"),
            ("native below Java", &[&property], "native"),
        ];
        let runs: Vec<_> =
            kinds.iter().flat_map(|kind| DEPTHS.map(|depth| (kind, depth.to_string()))).collect();
        let mut times = vec![Vec::new(); runs.len()];
        for turn in 0..JVM_TURNS {
            for place in 0..runs.len() {
                let index = (turn + place) % runs.len();
                let ((_, flags, mode), depth) = &runs[index];
                let mut command = Command::new(java);
                command.arg(format!("-agentpath:{agent}=cpu=1ms,loglevel=debug,file=/dev/null")).args(*flags);
                command.args(["-Xss4m", "-cp", &classes, "programs.Deep", mode, depth, "1500"]);
                times[index].push(ns_per_sample(&mut command));
            }
        }
        println!(
            "handler, {java} ({JVM_TURNS} alternating runs; all samples of the process, the VM's threads \
             included)"
        );
        for (((name, ..), depth), times) in runs.iter().zip(times) {
            print(&format!("{name}, {depth} frames"), times);
        }
    }
}

/// Runs a program under the agent; returns the nanoseconds of each sample by the counters that the agent
/// prints at its end.
fn ns_per_sample(command: &mut Command) -> f64 {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    let count = |name: &str| -> f64 {
        let mut words = text.split_whitespace().filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let value = words.next().unwrap_or_else(|| panic!("{command:?}: no {name} in {text}"));
        value.parse().expect("a count")
    };
    count("handler.handler_ns") / count("handler.samples_taken")
}

fn print(name: &str, times: Vec<f64>) {
    let spread = Spread::of(times);
    println!(
        "  {name:<34} {:>8.0} ns [{:.0} {:.0}]",
        spread.median, spread.lower_quartile, spread.upper_quartile
    );
}

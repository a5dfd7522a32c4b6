//! Measures rows, bytes and milliseconds of compiling each JDK's libjvm, beside copying its sections.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use otlpprof_elf::loader_list::loaded_objects;
use otlpprof_elf::unwind::FrameSections;
use otlpprof_testkit::jdk::{java_builds, libjvm};

fn main() {
    let homes = java_builds();
    if homes.is_empty() {
        println!("unwind_compile: NOT MEASURED, no JDK");
    }
    for path in homes.iter().map(|home| libjvm(home)) {
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path without NUL");
        // SAFETY: loading libjvm starts no JVM.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null(), "dlopen {}", path.display());
        let copy = || {
            let image = loaded_objects().images.into_iter().find(|image| image.name() == path)?;
            Some(FrameSections::of_image(&image))
        };
        let sections = copy().expect("a loaded object").expect("call frame information");
        let copy_ms = best_of(10, || drop(copy()));
        let table = sections.compile();
        let compile_ms = best_of(10, || drop(sections.compile()));
        println!(
            "unwind_compile {}: {} rows, {:.2} MiB, {} rules, compiled in {compile_ms:.1} ms ({:.0} x its \
             copy's {copy_ms:.2} ms)",
            path.display(),
            table.len(),
            table.heap_bytes() as f64 / (1 << 20) as f64,
            table.rules().len(),
            compile_ms / copy_ms,
        );
    }
}

/// Returns the fewest milliseconds of some runs.
fn best_of(runs: usize, mut work: impl FnMut()) -> f64 {
    let times = (0..runs).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64() * 1000.0
    });
    times.fold(f64::INFINITY, f64::min)
}

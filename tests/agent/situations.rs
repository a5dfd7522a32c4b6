//! Programs whose call trees are known by construction, on every JDK: their stacks reach their roots, and no
//! method has a caller that cannot call it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::estimate::assert_share;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::{
    everything, java_homes, java_homes_from, java_version, newest_or_all, newest_that_start_with, starts_with,
};
use otlpprof_testkit::stacks::{Stack, cpu_stacks};

/// The least share of complete stacks, among some thousand samples that include the VM's start.
const LEAST_SHARE: f64 = 0.998;
/// The same for walkers that ask AsyncGetCallTrace, or walk native frames to the thread's entry.
const LEAST_SHARE_OF_OTHERS: f64 = 0.995;

/// A number of samples that gives a verdict on the rarest incomplete stacks.
const AMPLE: i64 = 3000;
/// The least number of samples of the longest runs for a verdict.
const LEAST: i64 = 1000;
/// The seconds of CPU time for which a program runs. The longer runs are for situations that the shorter ones
/// have not met, and for machines on which a sample stands for many periods.
const CPU_SECONDS: [f64; 4] = [0.6, 2.0, 6.0, 30.0];

/// A situation that test programs bring about, and the way to run it.
struct Situation {
    program: &'static str,
    grammar: &'static str,
    name: &'static str,
    flags: Vec<&'static str>,
    walker: StackWalker,
    least_share: f64,
    /// Parts of frame names that must occur, as evidence that the situation has occurred. Alternatives for
    /// different JDKs are separated by `|`.
    meets: Vec<&'static str>,
}

impl Situation {
    fn of(name: &'static str) -> Self {
        let grammar = concat!(env!("CARGO_MANIFEST_DIR"), "/java/testprograms/grammars/Situations.txt");
        Self {
            program: "Situations",
            grammar,
            name,
            flags: vec![],
            walker: StackWalker::Vm,
            least_share: LEAST_SHARE,
            meets: vec![],
        }
    }

    /// A situation that is rare in the VM.
    fn rare(name: &'static str) -> Self {
        let grammar = concat!(env!("CARGO_MANIFEST_DIR"), "/java/testprograms/grammars/RareSituations.txt");
        Self { program: "RareSituations", grammar, ..Self::of(name) }
    }

    fn flags(mut self, flags: &[&'static str]) -> Self {
        self.flags.extend(flags);
        self
    }

    fn meeting(mut self, names: &[&'static str]) -> Self {
        self.meets.extend(names);
        self
    }

    fn by(mut self, walker: StackWalker) -> Self {
        self.walker = walker;
        self.least_share = LEAST_SHARE_OF_OTHERS;
        self
    }

    fn assert_walked(&self) {
        newest_or_all().iter().for_each(|home| self.assert_walked_on(home));
    }

    fn assert_walked_on(&self, home: &Path) {
        let is_walked =
            |seconds| self.is_walked_on(home, seconds, if seconds < CPU_SECONDS[2] { AMPLE } else { LEAST });
        let Self { name, meets, .. } = self;
        let home = home.display();
        assert!(
            CPU_SECONDS.into_iter().any(is_walked),
            "{home} {name}: too few samples, or none with each of {meets:?}"
        );
    }

    /// Runs the program, and checks its samples against the grammar. Returns whether there were more than
    /// `enough` samples, and all required frames occurred. A sample that stands for several periods counts
    /// once.
    fn is_walked_on(&self, home: &Path, cpu_seconds: f64, enough: i64) -> bool {
        let run = JavaRun::new(home, self.program).argument(self.name).argument(format!("{cpu_seconds}cpu"));
        let run = self.flags.iter().fold(run, |run, flag| run.jvm_option(flag));
        let options = format!("cpu=100us,timestamps,file=FILE,cstack={}", self.walker.name());
        let run = run.agent(&options).run().expect_success();
        let checked = otlpprof()
            .args(["check-stacks", "--known-roots", "--distinct-times", "--grammar", self.grammar])
            .args(run.files())
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&checked.stdout);
        let label = format!("{} {} {:?} {options}: {report}", run.label, self.name, self.flags);
        println!("{label}");
        // "100 samples: 95 reach their root (95.000 %), 5 do not".
        let mut words = report.split([' ', ':']).filter(|word| !word.is_empty());
        let mut number = |at| words.nth(at).and_then(|word| word.parse::<i64>().ok());
        let (Some(all), Some(reached)) = (number(0), number(1)) else { panic!("{label}") };
        let impossible = || with_impossible_calls(&report, &cpu_stacks(&run.messages()));
        assert!(report.contains("\n0 samples with an impossible call"), "{label}{:#?}", impossible());
        assert!(checked.status.success(), "{label}");
        let is_enough = all > enough;
        if is_enough {
            assert_share(reached, all, self.least_share..=1.0, &label);
        }
        let stacks = if self.meets.is_empty() { vec![] } else { cpu_stacks(&run.messages()) };
        for frame in stacks.iter().flat_map(|stack| stack.frames.iter()) {
            let is_stub = STUBS.contains(&&*frame.name);
            let expected = if is_stub { ("native", "stub") } else { (&*frame.frame_type, &*frame.kind) };
            assert_eq!((&*frame.frame_type, &*frame.kind), expected, "{label}: {frame:?}");
            assert!(frame.frame_type != "jvm" || frame.kind.is_empty(), "{label}: {frame:?}");
        }
        let is_met = |part: &&str| {
            let is_it = |name: &str| part.split('|').any(|part| name.contains(part));
            stacks.iter().any(|stack| stack.frames.iter().any(|frame| is_it(&frame.name)))
        };
        is_enough && self.meets.iter().all(is_met)
    }
}

/// The stacks, as names, with one of the calls that a report calls impossible: "callee called by caller".
fn with_impossible_calls(report: &str, stacks: &[Stack]) -> Vec<String> {
    let calls: Vec<_> = report
        .lines()
        .filter_map(|line| line.split_once(" %  ")?.1.split_once(" called by "))
        .map(|(callee, caller)| format!("{callee} < {caller}"))
        .collect();
    let names = |stack: &Stack| {
        let names: Vec<_> = stack.frames.iter().map(|frame| &*frame.name).collect();
        names.join(" < ")
    };
    stacks.iter().map(names).filter(|names| calls.iter().any(|call| names.contains(call))).collect()
}

/// Names of code that every HotSpot generates for itself.
const STUBS: [&str; 5] = ["vtable stub", "itable stub", "ExceptionBlob", "call_stub", "Interpreter"];

/// Methods that the interpreter runs between compiled ones, so that each call passes an adapter.
const MIXED: [&str; 4] = [
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=exclude,programs.Situations$Calls::measure",
    "-XX:CompileCommand=exclude,programs.Situations$Cube::volume",
    "-XX:CompileCommand=exclude,programs.Situations$Tube::volume",
];

#[test]
fn exceptions_that_unwind_compiled_frames() {
    Situation::of("exceptions").meeting(&["ExceptionBlob"]).assert_walked();
    Situation::of("exceptions")
        .flags(&["-XX:TieredStopAtLevel=1"])
        .meeting(&["unwind_exception"])
        .assert_walked();
}

#[test]
fn exceptions_that_unwind_interpreted_frames() {
    Situation::of("exceptions").flags(&["-Xint"]).assert_walked();
}

#[test]
fn calls_by_vtables_and_itables() {
    Situation::of("calls").meeting(&["vtable stub", "itable stub"]).assert_walked();
    Situation::of("calls").flags(&["-Xint"]).assert_walked();
}

#[test]
fn calls_between_interpreted_and_compiled_methods() {
    Situation::of("calls").flags(&MIXED).meeting(&["I2C/C2I adapters"]).assert_walked();
}

#[test]
fn safepoints_every_millisecond() {
    // If there is nothing to do at a safepoint, the interval alone makes no safepoint.
    let flags = ["-XX:+UnlockDiagnosticVMOptions", "-XX:GuaranteedSafepointInterval=1", "-XX:+SafepointALot"];
    let situation = || Situation::of("calls").flags(&flags).meeting(&["SafepointBlob|polling_page"]);
    situation().assert_walked();
    situation().flags(&["-XX:TieredStopAtLevel=1"]).assert_walked();
}

/// Every collector, including those that arm the entry barriers of compiled methods, and those whose barriers
/// call stubs.
#[test]
fn allocation_and_collections() {
    let collectors: [&[&str]; 10] = [
        &["-XX:+UseSerialGC", "-XX:-UseCompressedOops"],
        &["-XX:+UseParallelGC"],
        &["-XX:+UseConcMarkSweepGC"],
        &["-XX:+UseG1GC"],
        &["-XX:+UseZGC"],
        &["-XX:+UseZGC", "-XX:+ZGenerational"],
        &["-XX:+UseShenandoahGC"],
        &["-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"],
        // Epsilon frees nothing: the heap must hold all allocations of the run.
        &["-XX:+UseEpsilonGC", "-Xmx4g"],
        &["-XX:+UseG1GC", "-XX:+UseCompactObjectHeaders"],
    ];
    for flags in collectors {
        let flags = [&["-XX:+UnlockExperimentalVMOptions", "-Xmx512m"], flags].concat();
        for home in newest_that_start_with(&flags) {
            Situation::of("allocation").flags(&flags).assert_walked_on(&home);
        }
    }
}

/// Regression: adapters from a cache, which are not named as other adapters, were taken for stubs: one in a
/// hundred stacks broke. A cache that an earlier run has written has classes and adapters, and from 26 on the
/// interpreter's and compilers' stubs (JEP 483, JEP 514; HotSpot: share/code/aotCodeCache.cpp).
#[test]
fn classes_adapters_and_stubs_of_an_aot_cache() {
    const FILE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/situations.aot");
    const USE: &str = concat!("-XX:AOTCache=", env!("CARGO_TARGET_TMPDIR"), "/situations.aot");
    for home in java_homes_from(25) {
        // Without a class path: a cache has no classes of folders.
        let written = Command::new(home.join("bin/java"))
            .args([&format!("-XX:AOTCacheOutput={FILE}"), "-version"])
            .output()
            .unwrap();
        assert!(written.status.success(), "{}: {written:?}", home.display());
        // In this mode a JVM that cannot use the cache does not start.
        let flags = [USE, "-XX:AOTMode=on"];
        let calls = || Situation::of("calls").flags(&flags);
        calls().meeting(&["itable stub"]).assert_walked_on(&home);
        calls().flags(&MIXED).meeting(&["I2C/C2I adapters"]).assert_walked_on(&home);
        Situation::of("strings").flags(&flags).flags(&["-Xint"]).assert_walked_on(&home);
        Situation::of("exceptions").flags(&flags).by(StackWalker::Vmx).assert_walked_on(&home);
    }
}

/// Compiled methods of which the VM makes a copy in a code heap of hot code, and enters the copy from then on
/// (JDK 27; HotSpot: share/runtime/hotCodeCollector.cpp).
#[test]
fn compiled_methods_that_move_to_the_heap_of_hot_code() {
    const FILE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/hot-code.log");
    let flags = [
        "-XX:+UnlockExperimentalVMOptions",
        "-XX:+HotCodeHeap",
        "-XX:HotCodeHeapSize=8m",
        "-XX:HotCodeStartupDelaySeconds=1",
        // With 0 the VM's thread keeps the JVM from ending.
        "-XX:HotCodeIntervalSeconds=1",
        "-XX:HotCodeSampleSeconds=1",
        concat!("-Xlog:hotcode=debug:file=", env!("CARGO_TARGET_TMPDIR"), "/hot-code.log"),
    ];
    for home in java_homes_from(27) {
        let situation = Situation::of("calls").flags(&flags);
        let have_moved = |seconds| {
            let is_walked = situation.is_walked_on(&home, seconds, LEAST);
            let log = fs::read_to_string(FILE).unwrap();
            is_walked && log.contains("Successful relocation")
        };
        let seconds = &CPU_SECONDS[2..];
        assert!(seconds.iter().copied().any(have_moved), "{}: no method has moved", home.display());
    }
}

#[test]
fn monitors_and_locks_that_are_fought_for() {
    Situation::of("locks").assert_walked();
}

/// Regression: compiled code has a word, or an older stack pointer, on top of its frame while it compares
/// strings or searches in them. One in a thousand samples of a database was marked there.
#[test]
fn strings_that_are_compared_and_searched() {
    Situation::of("text").assert_walked();
}

#[test]
fn concatenation_and_lambdas() {
    Situation::of("strings").assert_walked();
}

#[test]
fn java_and_native_code_six_times_over() {
    Situation::of("upcalls").assert_walked();
}

#[test]
fn native_code_that_holds_arrays_in_place() {
    Situation::rare("critical").meeting(&["Deflater.deflateBytesBytes"]).assert_walked();
}

#[test]
fn methods_that_are_replaced_while_they_run_and_deoptimised() {
    Situation::rare("deoptimisation").assert_walked();
}

/// Each frame of a recursion is deoptimised when the call above it returns.
#[test]
fn methods_that_become_invalid_below_their_callees() {
    let meets = ["DeoptimizationBlob", "Deoptimization::"];
    Situation::rare("invalidation").meeting(&meets).assert_walked();
    Situation::rare("invalidation").flags(&["-XX:TieredStopAtLevel=1"]).meeting(&meets).assert_walked();
}

/// Regression: at barriers in method handles' entries and wrappers, and in adapters, up to one stack in a
/// hundred ended. From JDK 17 on the entered methods have a barrier as well.
#[test]
fn methods_that_are_entered_by_method_handles_while_objects_are_marked() {
    for collector in ["-XX:+UseZGC", "-XX:+UseShenandoahGC"] {
        let flags = ["-XX:+UnlockExperimentalVMOptions", collector, "-Xmx512m"];
        for home in newest_that_start_with(&flags) {
            let situation = Situation::rare("entries").flags(&flags).meeting(&["MethodHandle.linkToStatic"]);
            let barrier: &[_] = if java_version(&home) >= 17 { &["nmethod_stub_entry_barrier"] } else { &[] };
            // Barriers are so rare that a lower limit would hide the stacks that are lost in them.
            let situation = Situation { least_share: 0.999, ..situation };
            situation.meeting(barrier).assert_walked_on(&home);
        }
    }
}

/// Handlers of the application, which the profiler's signal interrupts.
#[test]
fn handlers_of_signals() {
    let meets = ["burn_in_handler", "programs.Native.signalled"];
    Situation::rare("signals").meeting(&meets).assert_walked();
    for walker in [StackWalker::Vmx, StackWalker::Dwarf, StackWalker::Fp] {
        Situation::rare("signals").by(walker).meeting(&meets).assert_walked();
    }
}

#[test]
fn faults_in_mapped_memory() {
    Situation::rare("faults").assert_walked();
}

#[test]
fn stubs_in_place_of_library_methods() {
    let meets = ["checkcast_arraycopy", "byte_", "aes", "updateBytesCRC32"];
    Situation::rare("intrinsics").meeting(&meets).assert_walked();
    Situation::rare("intrinsics").flags(&["-Xint"]).assert_walked();
}

/// Makes compiled code call the interpreter's entries for functions of `java.lang.Math`. The functions are
/// neither inlined nor replaced by the compiler's own code, and never compiled.
const BY_ENTRIES: [&str; 4] = [
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=dontinline,java.lang.Math::*",
    "-XX:CompileCommand=option,programs.RareSituations$Functions::*,ccstrlist,DisableIntrinsic,\
     _dsin _dcos _dtan _dlog _dlog10 _dexp _dpow",
];

/// Regression: the compiled caller of an interpreter's entry without a frame was not found when the entry had
/// called a stub. In a program that computes sines five of six stacks ended there.
#[test]
fn stubs_that_the_interpreters_entries_call_for_compiled_code() {
    Situation::rare("functions")
        .flags(&BY_ENTRIES)
        .meeting(&["java.lang.Math.", "I2C/C2I adapters", "libmSin|dsin"])
        .assert_walked();
}

/// Regression: the caller was not found either when the entry had called a C function, on aarch64 and on
/// x86_64: three stacks of four.
#[test]
fn c_functions_that_the_interpreters_entries_call_for_compiled_code() {
    // On aarch64 only some functions have stubs.
    let flags = if cfg!(target_arch = "x86_64") { &["-XX:-UseLibmIntrinsic"][..] } else { &[] };
    let situation = || Situation::rare("functions").flags(&BY_ENTRIES).flags(flags);
    let meets = ["java.lang.Math.", "I2C/C2I adapters", "SharedRuntime::dpow"];
    situation().meeting(&meets).assert_walked();
    situation().by(StackWalker::Dwarf).assert_walked();
}

/// Makes compiled code call the interpreter's entry for `Reference.get`, or, from JDK 26 on, for
/// `Reference.get0`, which `get` calls.
const REFERENCES_BY_ENTRIES: [[&str; 5]; 2] = [
    [
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:CompileCommand=quiet",
        "-XX:CompileCommand=dontinline,java.lang.ref.Reference::get",
        "-XX:CompileCommand=exclude,java.lang.ref.Reference::get",
        "-XX:CompileCommand=option,programs.RareSituations$References::*,ccstrlist,\
         DisableIntrinsic,_Reference_get",
    ],
    [
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:CompileCommand=quiet",
        "-XX:CompileCommand=dontinline,java.lang.ref.Reference::get0",
        "-XX:CompileCommand=exclude,java.lang.ref.Reference::get0",
        "-XX:CompileCommand=option,java.lang.ref.Reference::*,ccstrlist,DisableIntrinsic,_Reference_get0",
    ],
];

/// Regression: a barrier in an interpreter's entry without a frame calls the collector, and the caller was
/// not found: one stack of six.
#[test]
fn barriers_that_the_interpreters_entries_have_for_compiled_code() {
    let mut walked = 0;
    for home in newest_or_all() {
        let by_entries = REFERENCES_BY_ENTRIES[usize::from(java_version(&home) >= 26)];
        let more = ["-XX:+UnlockExperimentalVMOptions", "-XX:+ExplicitGCInvokesConcurrent"];
        let situation = || Situation::rare("references").flags(&by_entries).flags(&more);
        // Each reference that is read during marking exceeds the queue's room.
        let by_g1 = situation().flags(&["-XX:+UseG1GC", "-XX:G1SATBBufferSize=1"]);
        by_g1.meeting(&["I2C/C2I adapters", "::enqueue_known_active"]).assert_walked_on(&home);
        if starts_with(&home, &["-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC"]) {
            let by_shenandoah = situation().flags(&["-XX:+UseShenandoahGC"]);
            by_shenandoah.meeting(&["I2C/C2I adapters", "ShenandoahRuntime::"]).assert_walked_on(&home);
            walked += 1;
        }
    }
    assert!(walked > 0);
}

#[test]
fn null_pointers_that_the_hardware_finds() {
    let situation = Situation::rare("nulls").flags(&["-XX:TieredStopAtLevel=1"]);
    situation.meeting(&["throw_null_pointer_exception"]).assert_walked();
}

#[test]
fn compiled_stacks_that_overflow() {
    let meets = ["StackOverflowError throw_exception|throw_StackOverflowError_blob"];
    Situation::rare("overflow").flags(&["-Xss228k"]).meeting(&meets).assert_walked();
}

#[test]
fn interpreted_stacks_that_overflow() {
    Situation::rare("overflow")
        .flags(&["-Xss228k", "-Xint"])
        .meeting(&["throw_StackOverflowError"])
        .assert_walked();
}

#[test]
fn recursion_two_thousand_frames_deep() {
    Situation::rare("recursion").assert_walked();
}

#[test]
fn searches_for_a_type_among_all_interfaces() {
    let by_c1 = Situation::rare("subtypes").flags(&["-XX:TieredStopAtLevel=1"]);
    by_c1.meeting(&["slow_subtype_check"]).assert_walked();
    Situation::rare("subtypes").assert_walked();
}

/// Walks the situations in which a walker of native frames meets code without rules, and AsyncGetCallTrace
/// has its gaps. Each is walked on one of the versions, in turn; on all of them where everything is tested.
fn walk_every_situation(walker: StackWalker) {
    let homes = java_homes();
    let situations = || {
        [
            Situation::of("exceptions"),
            Situation::of("calls"),
            Situation::of("calls").flags(&["-Xint"]),
            Situation::of("upcalls"),
            Situation::of("locks"),
            Situation::rare("critical"),
            Situation::rare("deoptimisation"),
            Situation::rare("faults"),
            Situation::rare("intrinsics"),
            Situation::rare("nulls"),
            Situation::rare("overflow").flags(&["-Xss228k"]),
            Situation::rare("subtypes"),
        ]
    };
    for (version, home) in homes.iter().enumerate() {
        for (number, situation) in situations().into_iter().enumerate() {
            if everything() || (version + walker as usize + number).is_multiple_of(homes.len()) {
                situation.by(walker).assert_walked_on(home);
            }
        }
    }
}

#[test]
fn vmx_walks_every_situation() {
    walk_every_situation(StackWalker::Vmx);
}

#[test]
fn dwarf_walks_every_situation() {
    walk_every_situation(StackWalker::Dwarf);
}

#[test]
fn fp_walks_every_situation() {
    walk_every_situation(StackWalker::Fp);
}

#[test]
fn no_walks_every_situation() {
    walk_every_situation(StackWalker::No);
}

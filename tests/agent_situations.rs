//! Programs whose call trees are known by construction, on every JDK: their stacks reach their roots, and no method is
//! called by one that cannot call it.

mod agent_support;

use std::process::Command;

use agent_support::{JavaRun, java_homes, java_version};

/// A run takes some thousand samples, those of the VM's start included.
const LEAST_PERCENT: &str = "99.5";

/// What a program of test programs does, and how it is run.
struct Situation {
    program: &'static str,
    grammar: &'static str,
    name: &'static str,
    flags: Vec<&'static str>,
    /// Of these versions on.
    java: u32,
}

impl Situation {
    fn of(name: &'static str) -> Self {
        let grammar = concat!(env!("CARGO_MANIFEST_DIR"), "/java/testprograms/grammars/Situations.txt");
        Self { program: "Situations", grammar, name, flags: vec![], java: 11 }
    }

    /// What the VM does seldom.
    fn rare(name: &'static str) -> Self {
        let grammar = concat!(env!("CARGO_MANIFEST_DIR"), "/java/testprograms/grammars/RareSituations.txt");
        Self { program: "RareSituations", grammar, ..Self::of(name) }
    }

    fn flags(mut self, flags: &[&'static str]) -> Self {
        self.flags.extend(flags);
        self
    }

    fn since(mut self, java: u32) -> Self {
        self.java = java;
        self
    }

    fn assert_walked(&self) {
        for home in java_homes().into_iter().filter(|home| java_version(home) >= self.java) {
            let run = JavaRun::new(&home, self.program).argument(self.name).argument(1);
            let run = self.flags.iter().fold(run, |run, flag| run.jvm_option(flag));
            let run = run.agent("cpu=200us,file=FILE").run().expect_success();
            let checked = Command::new(env!("CARGO_BIN_EXE_otlpprof"))
                .args([
                    "check-stacks",
                    "--known-roots",
                    "--at-least",
                    LEAST_PERCENT,
                    "--grammar",
                    self.grammar,
                ])
                .args(run.files())
                .output()
                .unwrap();
            let report = String::from_utf8_lossy(&checked.stdout);
            let label = format!("{} {} {:?}: {report}", run.label, self.name, self.flags);
            assert!(checked.status.success(), "{label}");
            let samples = report.split_whitespace().next().and_then(|count| count.parse::<u64>().ok());
            assert!(samples.is_some_and(|samples| samples > 1000), "{label}");
        }
    }
}

/// Methods that the interpreter runs between compiled ones, so that each call passes an adapter.
const MIXED: [&str; 4] = [
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=exclude,programs.Situations$Calls::measure",
    "-XX:CompileCommand=exclude,programs.Situations$Cube::volume",
    "-XX:CompileCommand=exclude,programs.Situations$Tube::volume",
];

#[test]
fn exceptions_that_unwind_compiled_frames() {
    Situation::of("exceptions").assert_walked();
    Situation::of("exceptions").flags(&["-XX:TieredStopAtLevel=1"]).assert_walked();
}

#[test]
fn exceptions_that_unwind_interpreted_frames() {
    Situation::of("exceptions").flags(&["-Xint"]).assert_walked();
}

#[test]
fn calls_by_vtables_and_itables() {
    Situation::of("calls").assert_walked();
    Situation::of("calls").flags(&["-Xint"]).assert_walked();
}

#[test]
fn calls_between_interpreted_and_compiled_methods() {
    Situation::of("calls").flags(&MIXED).assert_walked();
}

#[test]
fn safepoints_every_millisecond() {
    let flags = ["-XX:+UnlockDiagnosticVMOptions", "-XX:GuaranteedSafepointInterval=1"];
    Situation::of("calls").flags(&flags).assert_walked();
    Situation::of("calls").flags(&flags).flags(&["-XX:TieredStopAtLevel=1"]).assert_walked();
}

#[test]
fn allocation_and_collections() {
    Situation::of("allocation").assert_walked();
    Situation::of("allocation").flags(&["-XX:+UseSerialGC", "-XX:-UseCompressedOops"]).assert_walked();
    Situation::of("allocation").flags(&["-XX:+UseParallelGC"]).assert_walked();
}

/// Collectors that arm the entry barriers of compiled methods.
#[test]
fn allocation_and_concurrent_collections() {
    Situation::of("allocation").flags(&["-XX:+UseZGC", "-Xmx512m"]).since(17).assert_walked();
    let compact = ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"];
    Situation::of("allocation").flags(&compact).since(25).assert_walked();
}

#[test]
fn monitors_and_locks_that_are_fought_for() {
    Situation::of("locks").assert_walked();
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
    Situation::rare("critical").assert_walked();
}

#[test]
fn methods_that_are_replaced_while_they_run_and_deoptimised() {
    Situation::rare("deoptimisation").assert_walked();
}

#[test]
fn faults_in_mapped_memory() {
    Situation::rare("faults").assert_walked();
}

#[test]
fn stubs_in_place_of_library_methods() {
    Situation::rare("intrinsics").assert_walked();
    Situation::rare("intrinsics").flags(&["-Xint"]).assert_walked();
}

#[test]
fn null_pointers_that_the_hardware_finds() {
    Situation::rare("nulls").flags(&["-XX:TieredStopAtLevel=1"]).assert_walked();
}

#[test]
fn stacks_that_overflow() {
    Situation::rare("overflow").flags(&["-Xss228k"]).assert_walked();
}

#[test]
fn recursion_two_thousand_frames_deep() {
    Situation::rare("recursion").assert_walked();
}

#[test]
fn searches_for_a_type_among_all_interfaces() {
    Situation::rare("subtypes").flags(&["-XX:TieredStopAtLevel=1"]).assert_walked();
    Situation::rare("subtypes").assert_walked();
}

//! Java frames in the profiles of a real JVM: names, lines, inlining, and methods of unloaded classes.

use std::collections::BTreeSet;
use std::path::Path;

use crate::agent_support::running::Finished;
use crate::agent_support::stacks::cpu_stacks;
use crate::agent_support::{
    JavaRun, java_homes, java_version, line_marked, missing_versions, profiles, starts_with,
};
use otlpprof::core::stack_walker::StackWalker;
use otlpprof::otlp::lookup::Lookup;
use otlpprof::otlp::read::Message;

const CALLEES: [&str; 2] = ["seventy", "thirty"];

/// The samples of each of the two callees: on the line that burns, and on other lines.
#[derive(Debug)]
struct Split {
    burned: [i64; 2],
    /// On the line before the burning one, which counts and compares.
    counted: [i64; 2],
    elsewhere: [i64; 2],
}

impl Split {
    fn samples_of(&self, callee: usize) -> i64 {
        self.burned[callee] + self.counted[callee] + self.elsewhere[callee]
    }
}

fn split_of(messages: &[Message]) -> Split {
    let mut split = Split { burned: [0; 2], counted: [0; 2], elsewhere: [0; 2] };
    let lines = CALLEES.map(|name| line_marked("InlineSplit", &format!("burns: {name}")));
    for stack in cpu_stacks(messages).iter().filter(|stack| stack.thread == "main") {
        let Some(leaf) = stack.frames.first() else { continue };
        for (index, name) in CALLEES.iter().enumerate() {
            if leaf.name == format!("programs.InlineSplit.{name}") {
                assert_eq!(leaf.file, "InlineSplit.java");
                let place = match leaf.line - lines[index] {
                    0 => &mut split.burned,
                    -1 => &mut split.counted,
                    _ => &mut split.elsewhere,
                };
                place[index] += stack.value;
            }
        }
    }
    split
}

/// The program with its callees inlined into their caller, and with the compilers' messages about it.
fn inline_split(home: &Path, seconds: u32) -> JavaRun {
    let run =
        JavaRun::new(home, "InlineSplit").argument(seconds).jvm_option("-XX:+UnlockDiagnosticVMOptions");
    let run = run.jvm_option("-XX:+PrintInlining");
    CALLEES.iter().fold(run, |run, name| {
        run.jvm_option(&format!("-XX:CompileCommand=inline,programs/InlineSplit.{name}"))
    })
}

fn assert_inlined(run: &Finished) {
    for name in CALLEES {
        let inlined = run.stdout.lines().any(|line| {
            line.contains(&format!("InlineSplit::{name} (")) && line.contains("force inline by Compile")
        });
        assert!(inlined, "{}: {name} is not inlined\n{}", run.label, run.stdout);
    }
}

#[test]
fn two_inlined_callees_split_as_they_burn() {
    for home in java_homes() {
        let run = inline_split(&home, 4).agent("cpu=500us,file=FILE").run().expect_success();
        assert_inlined(&run);
        let split = split_of(&run.messages());
        let [seventy, thirty] = [0, 1].map(|index| split.samples_of(index));
        let share = seventy as f64 / (seventy + thirty) as f64;
        let label = format!("{}: {split:?}", home.display());
        assert!(seventy + thirty > 1000, "{label}");
        assert!((0.67..=0.73).contains(&share), "{label}: {share:.3} in place of 0.7");
        // The line before runs at most once for each unrolled copy of the body. No other line burns.
        for index in 0..2 {
            assert!(split.burned[index] > 2 * split.counted[index], "{label}");
            assert!(split.elsewhere[index] * 100 <= split.samples_of(index), "{label}");
        }
    }
}

/// Without the flag, which comes too late when an agent is attached to compiled code, the lines of the
/// preceding test are those of the loops' safepoints. So the flag has its effect, and the preceding test
/// detects it.
#[test]
fn code_compiled_before_an_attach_has_lines_at_safepoints_only() {
    for home in java_homes() {
        let mut jvm = inline_split(&home, 100).start();
        // The methods have their final compiled code after a second or two.
        jvm.wait_until("warm", |jvm| jvm.cpu_ticks() > 500);
        assert_eq!(jvm.flag("DebugNonSafepoints"), "false", "{}", jvm.label);
        jvm.load_agent_by_jcmd("cpu=500us,interval=1h,file=FILE");
        assert_eq!(jvm.flag("DebugNonSafepoints"), "true", "{}", jvm.label);
        let used = jvm.cpu_ticks();
        jvm.wait_until("at work", |jvm| jvm.cpu_ticks() > used + 150);
        jvm.load_agent_by_jcmd("stop");
        let split = split_of(&profiles::messages(&jvm.profiles().join("profile.otlp")));
        let label = format!("{}: {split:?}", home.display());
        assert!(split.samples_of(0) + split.samples_of(1) > 1000, "{label}");
        for index in 0..2 {
            assert!(split.counted[index] + split.elsewhere[index] > split.burned[index], "{label}");
        }
        jvm.terminate();
        jvm.finish();
    }
}

#[test]
fn lines_between_safepoints_are_switched_on_at_the_start() {
    for home in java_homes() {
        let options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:-DebugNonSafepoints"];
        let run = options
            .iter()
            .fold(JavaRun::new(&home, "UserLoop").argument(100), |run, option| run.jvm_option(option));
        let mut jvm = run.agent("file=FILE").start();
        jvm.wait_until("profiling", |jvm| jvm.stderr().contains("CPU sampling every"));
        assert_eq!(jvm.flag("DebugNonSafepoints"), "true", "{}", jvm.label);
        jvm.terminate();
        let finished = jvm.finish();
        assert!(!finished.stderr.contains("at safepoints only"), "{}: {}", finished.label, finished.stderr);
    }
}

/// The name, system name and type of each frame in a message's stacks.
fn functions_of(message: &Message) -> BTreeSet<[String; 3]> {
    let lookup = Lookup::new(&message.data);
    let dictionary = message.data.dictionary.as_ref().unwrap();
    let mut functions = BTreeSet::new();
    for location in &dictionary.location_table {
        let frame_type = lookup.attribute_text(&location.attribute_indices, "profile.frame.type");
        for line in &location.lines {
            let function = lookup.function(line.function_index).unwrap();
            let names = [function.name_strindex, function.system_name_strindex].map(|name| lookup.text(name));
            functions.insert([names[0], names[1], frame_type.unwrap()].map(str::to_owned));
        }
    }
    functions
}

/// A method has its descriptor only if that distinguishes it, and two methods of one name stay two.
#[test]
fn overloaded_methods_alone_have_their_descriptors() {
    for home in java_homes() {
        for format in ["proto", "json"] {
            let run = JavaRun::new(&home, "Overloads").argument(1.5).jvm_option("-XX:CompileCommand=quiet");
            let run = run.jvm_option("-XX:CompileCommand=dontinline,programs.Overloads::*");
            let options = format!("cpu=500us,interval=1h,format={format},file=FILE");
            let run = run.agent(&options).run().expect_success();
            let functions: BTreeSet<_> = run.messages().iter().flat_map(functions_of).collect();
            let of = |name: &str| -> Vec<&str> {
                let of_name = functions.iter().filter(|function| function[0] == name);
                of_name.map(|[_, system_name, _]| system_name.as_str()).collect()
            };
            let both = ["programs/Overloads.burn(I)J", "programs/Overloads.burn(J)J"];
            assert_eq!(of("programs.Overloads.burn"), both, "{}", run.label);
            assert_eq!(of("programs.Overloads.alone"), [""], "{}", run.label);
            assert_eq!(of("programs.Overloads.main"), [""], "{}", run.label);
            let methods = functions.iter().filter(|[.., frame_type]| frame_type == "jvm");
            for [name, system_name, _] in methods.filter(|[_, system_name, _]| !system_name.is_empty()) {
                assert!(of(name).len() > 1, "{}: {system_name}", run.label);
            }
        }
    }
}

/// The class, method, file and line of a class of the storm agree by construction.
#[test]
fn methods_of_classes_that_are_gone_keep_their_names() {
    for home in java_homes() {
        assert_storm_keeps_its_names(&home, StackWalker::Vm, &[]);
    }
}

/// Collectors that unload classes while the program runs, and whose collections begin in other ways than
/// those of the default collector.
#[test]
fn methods_of_classes_that_are_gone_keep_their_names_under_every_collector() {
    let collectors: [&[&str]; 6] = [
        &["-XX:+UseSerialGC"],
        &["-XX:+UseParallelGC"],
        &["-XX:+UseConcMarkSweepGC"],
        &["-XX:+UseZGC"],
        &["-XX:+UseShenandoahGC"],
        &["-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"],
    ];
    let mut tested = [0; 6];
    for home in java_homes() {
        for (collector, tested) in collectors.iter().zip(&mut tested) {
            let options = [&["-XX:+UnlockExperimentalVMOptions", "-Xmx256m"], *collector].concat();
            if starts_with(&home, &options) {
                assert_storm_keeps_its_names(&home, StackWalker::Vm, &options);
                *tested += 1;
            } else {
                println!("{} has no {collector:?}", home.display());
            }
        }
    }
    let is_tested = tested.iter().all(|tested| *tested > 0);
    assert!(is_tested || !missing_versions(&java_homes()).is_empty(), "{tested:?} of {collectors:?}");
}

/// AsyncGetCallTrace gives a method's id, and the method may be unloaded when the handler resolves the id.
#[test]
fn methods_of_classes_that_are_gone_keep_their_names_where_the_vm_is_asked() {
    for home in java_homes() {
        assert_storm_keeps_its_names(&home, StackWalker::Dwarf, &[]);
    }
}

/// The seconds for which a storm lasts. The second run is for the case that other programs have used the CPU.
const STORM_SECONDS: [u32; 2] = [3, 20];
/// The least number of frames of a storm, and of classes that were unloaded in it, for a verdict.
const LEAST_OF_STORM: usize = 200;
const LEAST_UNLOADED: usize = 100;

fn assert_storm_keeps_its_names(home: &Path, walker: StackWalker, jvm_options: &[&str]) {
    let mut storms = STORM_SECONDS.into_iter().map(|seconds| storm(home, seconds, walker, jvm_options));
    // ZGC unloads classes from JDK 12 on.
    let never_unloads = java_version(home) == 11 && jvm_options.contains(&"-XX:+UseZGC");
    let is_enough = storms.any(|(frames, unloaded)| {
        frames > LEAST_OF_STORM && (unloaded > LEAST_UNLOADED || never_unloads && unloaded == 0)
    });
    assert!(is_enough, "{} {walker:?} {jvm_options:?}: too few frames, or classes that went", home.display());
}

/// Runs a storm, and checks the names in each frame of its classes. Returns the number of these frames, and
/// the number of classes that were unloaded.
fn storm(home: &Path, seconds: u32, walker: StackWalker, jvm_options: &[&str]) -> (usize, usize) {
    let options = format!("cpu=500us,file=FILE,cstack={}", walker.name());
    let run = JavaRun::new(home, "HiddenClassStorm").argument(seconds).agent(&options);
    let run = jvm_options.iter().fold(run, |run, option| run.jvm_option(option));
    let run = run.run().expect_success();
    let label = format!("{} {options} {}", home.display(), jvm_options.join(" "));
    let (mut right, mut without_line, mut wrong) = (0, 0, Vec::new());
    for stack in cpu_stacks(&run.messages()) {
        for frame in &stack.frames {
            let Some((class, method)) =
                frame.name.strip_prefix("programs.").and_then(|name| name.split_once('.'))
            else {
                continue;
            };
            // StormClass, which makes the storm's classes, is not one of them.
            let Some(number) = class.strip_prefix("Storm").filter(|digits| digits.parse::<i64>().is_ok())
            else {
                continue;
            };
            let agrees = method == format!("burn{number}") && frame.file == format!("Storm{number}.java");
            // In a few instructions of the interpreter the bytecode is not known, and so no line is given.
            if agrees && frame.line == 0 {
                without_line += 1;
            } else if agrees && number.parse() == Ok(frame.line) {
                right += 1;
            } else {
                wrong.push(frame.clone());
            }
        }
    }
    assert!(wrong.is_empty(), "{label}: {} of {} wrong: {wrong:?}", wrong.len(), wrong.len() + right);
    assert!(without_line * 100 <= right, "{label}: {without_line} of {right} without line");
    println!("{label}: {right} frames of the storm ({})", run.stdout.trim());
    let unloaded = run.stdout.trim().split_once("unloaded=").expect("the count").1;
    (right, unloaded.parse().expect("a number"))
}

/// Regression: samples in the intrinsic that compresses UTF-16, which pushes a word in JDK 11 to 21, were
/// marked.
#[test]
fn strings_that_are_compressed_have_their_callers() {
    for home in java_homes() {
        // With -Xbatch the program waits until its methods are compiled, however busy the machine is.
        let run = JavaRun::new(&home, "CompressedStrings").argument(40_000).jvm_option("-Xbatch");
        let run = run.agent("cpu=200us,file=FILE").run().expect_success();
        let mut all = 0;
        for stack in cpu_stacks(&run.messages()) {
            let names: Vec<&str> = stack.frames.iter().map(|frame| &*frame.name).collect();
            if names.first() != Some(&"java.lang.StringUTF16.compress") {
                continue;
            }
            all += stack.value;
            assert!(names.contains(&"programs.CompressedStrings.main"), "{}: {names:#?}", run.label);
            assert!(!names.iter().any(|name| name.starts_with("[unwalkable")), "{}: {names:#?}", run.label);
        }
        assert!(all > 20, "{}: {all} samples in the intrinsic", run.label);
    }
}

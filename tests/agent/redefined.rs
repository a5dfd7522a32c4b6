//! A class that is redefined again and again: frames of its former methods, whose memory the VM uses for
//! other methods, get no other method's name.

use std::path::Path;
use std::process::Command;

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::stacks::{Stack, cpu_stacks};

/// Packs the manifest of the Java agent, whose class is on the class path.
fn java_agent(jar: &Path) {
    const PACK: &str = "import sys, zipfile\n\
        manifest = 'Premain-Class: programs.Redefined\\nCan-Redefine-Classes: true\\n'\n\
        zipfile.ZipFile(sys.argv[1], 'w').writestr('META-INF/MANIFEST.MF', manifest)";
    let packed = Command::new("python3").args(["-c", PACK]).arg(jar).status().unwrap();
    assert!(packed.success());
}

/// Regression: methods kept their names until the next collection, so that half of the samples were in a
/// constructor that the program never calls.
#[test]
fn frames_of_a_redefined_class_get_no_other_methods_name() {
    let folder = tempfile::tempdir().unwrap();
    let jar = folder.path().join("redefined.jar");
    java_agent(&jar);
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "Redefined").jvm_option("-Xint").java_agent(&jar, "");
        let run = run.agent("cpu=1ms,file=FILE").run().expect_success();
        let stacks: Vec<Stack> = cpu_stacks(&run.messages());
        let of_thread = || stacks.iter().filter(|stack| stack.thread == "spinning");
        let count =
            |name: &str| of_thread().filter(|stack| stack.has(name)).map(|stack| stack.value).sum::<i64>();
        let all: i64 = of_thread().map(|stack| stack.value).sum();
        let label = format!("{}: {} samples", run.label, all);
        assert!(all >= 500, "{label}");
        assert_eq!(count("programs.Redefined$Victim.<init>"), 0, "{label}");
        // A former method may be freed between its sample and the next drain.
        let unknown = count("[unwalkable: unknown_method]");
        assert!(unknown <= all / 100, "{label}: {unknown} of unknown methods");
    }
}

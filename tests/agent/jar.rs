//! The jar that scripts/package-jars.sh makes: it contains the agent, for use on the class path and as a Java
//! agent.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::artifacts::{self, ARTIFACTS, other_platforms, package};
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::stacks::cpu_stacks;
use otlpprof_testkit::this_build::agent;
use tempfile::TempDir;

fn jar() -> PathBuf {
    artifact(".jar")
}

/// One of the published files of the Java API, by the end of its name.
fn artifact(end: &str) -> PathBuf {
    ARTIFACTS.join(format!("otlpprof-{}{end}", env!("CARGO_PKG_VERSION")))
}

/// A run with only the jar, which unpacks to `folder`.
fn run_with_jar(home: &Path, program: &'static str, folder: &TempDir) -> JavaRun {
    JavaRun::new(home, program)
        .api(&jar())
        .jvm_option(&format!("-Djava.io.tmpdir={}", folder.path().display()))
}

fn assert_no_files_left(run: &Finished, folder: &TempDir) {
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{}: {left:?}", run.label);
}

/// Regression: `otlpprof list` and `status` did not recognise the unpacked library, whose file is deleted.
#[test]
fn the_command_reaches_the_agent_of_a_jar() {
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let mut jvm = run_with_jar(&home, "UserLoop", &folder)
            .argument(600)
            .java_agent(&jar(), "interval=1h,file=FILE")
            .start();
        let command = |name: &str, pid: u32| {
            let mut command = otlpprof();
            String::from_utf8(command.args([name, &pid.to_string()]).output().unwrap().stdout).unwrap()
        };
        jvm.wait_until("reached", |jvm| command("status", jvm.pid()).starts_with("profiling"));
        assert!(command("stop", jvm.pid()).starts_with("stopped"), "{}", jvm.label);
        jvm.terminate();
        jvm.finish();
    }
}

#[test]
fn the_package_has_the_files_that_maven_requires() {
    let mut names: Vec<_> = fs::read_dir(&*ARTIFACTS)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut expected = vec![format!("otlpprof-opentelemetry-extension-{}.jar", env!("CARGO_PKG_VERSION"))];
    for artifact in ["otlpprof", "otlpprof-opentelemetry"] {
        for end in ["-javadoc.jar", "-sources.jar", ".jar", ".pom"] {
            expected.push(format!("{artifact}-{}{end}", env!("CARGO_PKG_VERSION")));
        }
    }
    expected.sort();
    assert_eq!(names, expected);
}

/// The names of a jar's entries, without folders.
fn entries(end: &str) -> Vec<String> {
    let output = Command::new("jar").arg("--list").arg("--file").arg(artifact(end)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).unwrap();
    names.lines().filter(|name| !name.ends_with('/')).map(str::to_owned).collect()
}

/// The content of one entry of a jar.
fn entry(end: &str, name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let mut jar = Command::new("jar");
    jar.arg("--extract").arg("--file").arg(artifact(end)).arg(name).current_dir(folder.path());
    let output = jar.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(folder.path().join(name)).unwrap_or_else(|_| panic!("{end} has no {name}"))
}

#[test]
fn the_sources_are_all_and_the_documentation_has_examples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/api/io/otlpprof");
    let sources = entries("-sources.jar");
    let mut classes = Vec::new();
    for source in fs::read_dir(folder).unwrap() {
        let source = source.unwrap();
        let name = source.file_name().into_string().unwrap();
        let packed = entry("-sources.jar", &format!("io/otlpprof/{name}"));
        assert!(packed == fs::read(source.path()).unwrap(), "{name} is another one");
        classes.push(name);
    }
    let packed: Vec<_> = sources.iter().filter(|name| name.ends_with(".java")).collect();
    assert!(classes.len() > 10 && packed.len() == classes.len(), "{packed:?}, of {classes:?}");
    for class in ["ContextSetter", "ContextScope", "Otlpprof", "DurationEvent"] {
        let page = entry("-javadoc.jar", &format!("io/otlpprof/{class}.html"));
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains("<pre>"), "no example of {class}");
    }
}

#[test]
fn the_jar_is_an_agent_with_the_libraries_of_all_platforms() {
    let names = entries(".jar");
    let found = names.iter().filter(|name| name.ends_with(".so")).count();
    let own = (format!("linux-{}", std::env::consts::ARCH), fs::read(agent()).unwrap());
    let libraries: Vec<_> = other_platforms().into_iter().chain([own]).collect();
    assert_eq!(found, libraries.len(), "{names:?}");
    for (platform, library) in libraries {
        let packed = entry(".jar", &format!("io/otlpprof/{platform}/libotlpprof.so"));
        assert!(packed == library, "another library for {platform}");
    }
    let manifest = String::from_utf8(entry(".jar", "META-INF/MANIFEST.MF")).unwrap();
    for line in ["Premain-Class: io.otlpprof.JavaAgent", "Agent-Class: io.otlpprof.JavaAgent"] {
        assert!(manifest.lines().any(|found| found == line), "{manifest}");
    }
    assert!(names.iter().any(|name| name == "io/otlpprof/JavaAgent.class"), "{names:?}");
}

/// A user's project that uses the jars.
const USER: &str = "public final class User {
    public static void main(String[] args) {
        io.otlpprof.Otlpprof profiler = io.otlpprof.Otlpprof.getInstance();
        var setter = new io.otlpprof.ContextSetter(profiler, java.util.List.of(\"tenant\"));
        System.out.println(profiler.version() + \" \" + setter.setAttribute(\"tenant\", \"one\"));
    }
}
";

/// Maven finds the artifacts by their coordinates, resolves the companion's dependencies, and builds a
/// project that uses the artifacts and then has the profiler.
#[test]
#[ignore = "long: Maven fetches its plugins, and builds a project"]
fn maven_resolves_the_companion_with_what_it_depends_on_and_builds_what_uses_it() {
    let version = env!("CARGO_PKG_VERSION");
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("repository");
    for name in ["otlpprof", "otlpprof-opentelemetry"] {
        let artifact = repository.join(format!("io/otlpprof/{name}/{version}"));
        fs::create_dir_all(&artifact).unwrap();
        for end in ["jar", "pom"] {
            let file = format!("{name}-{version}.{end}");
            fs::copy(ARTIFACTS.join(&file), artifact.join(file)).unwrap();
        }
    }
    let project = format!(
        "<project xmlns='http://maven.apache.org/POM/4.0.0'><modelVersion>4.0.0</modelVersion>
        <groupId>user</groupId><artifactId>user</artifactId><version>1</version>
        <properties>
        <maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>
        <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
        <repositories><repository><id>published</id><url>file://{}</url></repository></repositories>
        <dependencies><dependency>
        <groupId>io.otlpprof</groupId><artifactId>otlpprof-opentelemetry</artifactId>
        <version>{version}</version></dependency></dependencies></project>",
        repository.display()
    );
    fs::write(folder.path().join("pom.xml"), project).unwrap();
    let sources = folder.path().join("src/main/java");
    fs::create_dir_all(&sources).unwrap();
    fs::write(sources.join("User.java"), USER).unwrap();
    // Maven caches resolved artifacts, and would not look for them again.
    let local = Path::new(env!("CARGO_TARGET_TMPDIR")).join("maven");
    let _ = fs::remove_dir_all(local.join("io/otlpprof"));
    let found = folder.path().join("class-path");
    let output = Command::new("mvn")
        .args(["--quiet", "--batch-mode", "compile", "dependency:build-classpath"])
        .arg(format!("-Dmdep.outputFile={}", found.display()))
        .arg(format!("-Dmaven.repo.local={}", local.display()))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let class_path = fs::read_to_string(found).unwrap();
    let mut names: Vec<&str> =
        class_path.trim().split(':').filter_map(|jar| jar.rsplit('/').next()).collect();
    names.sort_unstable();
    let expected = ["otlpprof", "otlpprof-opentelemetry"].map(|name| format!("{name}-{version}.jar"));
    let mut expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    for home in newest_or_all() {
        let classes = folder.path().join("target/classes");
        let output = Command::new(home.join("bin/java"))
            .args(["-cp", &format!("{}:{}", classes.display(), class_path.trim()), "User"])
            // Set by Cargo, and leads to agents of other builds.
            .env_remove("LD_LIBRARY_PATH")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed, format!("{version} true\n"), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output =
        package(&[Path::new("--library"), Path::new("Cargo.toml"), Path::new("--out"), folder.path()]);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && printed.ends_with("Cargo.toml is not a 64-bit little-endian ELF file\n"),
        "{printed}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_second_library_for_a_platform_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let library = Path::new(otlpprof_testkit::products::DDPROFTEST);
    let twice = [Path::new("--library"), library, Path::new("--library"), library];
    let output = package(&[&twice[..], &[Path::new("--out"), folder.path()]].concat());
    let printed = String::from_utf8_lossy(&output.stderr);
    let expected = format!("two libraries for linux-{}\n", std::env::consts::ARCH);
    assert!(!output.status.success() && printed.ends_with(&expected), "{printed}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let again = tempfile::tempdir().unwrap();
    artifacts::make(again.path());
    let mut compared = 0;
    for file in fs::read_dir(&*ARTIFACTS).unwrap() {
        let file = file.unwrap();
        let again = again.path().join(file.file_name());
        assert!(fs::read(file.path()).unwrap() == fs::read(again).unwrap(), "{:?} differs", file.file_name());
        compared += 1;
    }
    assert!(compared >= 9, "{compared}");
}

/// The library is chosen by the C library that is mapped into the process: here a file with one of musl's
/// names. The library for musl then needs `libc.so`, which glibc has not.
#[test]
fn a_process_with_musl_gets_the_library_for_musl() {
    for home in newest_or_all() {
        for name in ["ld-musl-NAME.so.1", "libc.musl-NAME.so.1", "libc.so"] {
            let folder = tempfile::tempdir().unwrap();
            let mapped = folder.path().join(name.replace("NAME", std::env::consts::ARCH));
            fs::copy(otlpprof_testkit::products::PLUGIN_A, &mapped).unwrap();
            let temporary = tempfile::tempdir().unwrap();
            let run = run_with_jar(&home, "ContextCalls", &temporary)
                .variable("LD_PRELOAD", mapped.to_str().unwrap())
                .argument(false)
                .run()
                .expect_success();
            assert_eq!(run.stdout, "done\n");
            let printed = "the profiling agent is not in this process (";
            let line = run.stderr.lines().find(|line| line.contains(printed)).unwrap_or_default();
            assert!(line.contains("libc.so"), "{}, {name}: {}", run.label, run.stderr);
            assert_no_files_left(&run, &temporary);
        }
    }
}

#[test]
fn the_jar_alone_profiles_and_leaves_no_file() {
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let run = run_with_jar(&home, "ContextLoaded", &folder)
            .variable("AGENT_OPTIONS", "cpu=1ms,file=FILE")
            .run()
            .expect_success();
        assert_eq!(run.stdout, "done\n", "{}", run.stderr);
        assert_no_files_left(&run, &folder);
        let mut endpoints = Vec::new();
        for stack in cpu_stacks(&run.messages()) {
            if stack.has("programs.ContextLoaded.burn") {
                endpoints.push(stack.labels.get("rest_endpoint").cloned());
            }
        }
        endpoints.sort();
        endpoints.dedup();
        let expected = ["/before", "/first", "/second"].map(|endpoint| Some(endpoint.to_owned()));
        assert_eq!(endpoints, expected, "{}", run.label);
    }
}

/// Checks that every sample of a worker in a burning method has that method's endpoint and span.
fn hold_to_witness(run: &Finished) -> i64 {
    let mut right = 0;
    for stack in cpu_stacks(&run.messages()) {
        let burning = (0..4u8).find(|which| stack.has(&format!("programs.ContextStress.burn{which}")));
        let Some(which) = burning else { continue };
        assert_eq!(
            stack.labels.get("rest_endpoint"),
            Some(&format!("/e{which}")),
            "{}: {stack:?}",
            run.label
        );
        let ids = (vec![which + 1; 16], vec![which + 1; 8]);
        assert_eq!(stack.link.as_ref(), Some(&ids), "{}: {stack:?}", run.label);
        right += stack.value;
    }
    right
}

fn stress(home: &Path, folder: &TempDir) -> JavaRun {
    let run = run_with_jar(home, "ContextStress", folder)
        .jvm_option("-XX:CompileCommand=quiet")
        .jvm_option("-XX:CompileCommand=dontinline,programs.ContextStress::burn*");
    ["4", "2", "200000"].iter().fold(run, JavaRun::argument)
}

const STRESS_OPTIONS: &str = "cpu=1ms,context=witness+traceid,file=FILE";

#[test]
fn as_a_java_agent_it_profiles_from_the_start() {
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let run = stress(&home, &folder).java_agent(&jar(), STRESS_OPTIONS).run().expect_success();
        assert_no_files_left(&run, &folder);
        let right = hold_to_witness(&run);
        eprintln!("{}: {right} samples", run.label);
        assert!(right > 100, "{}: {right}\n{}", run.label, run.stderr);
    }
}

#[test]
fn a_java_agent_finds_the_agent_that_is_there() {
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let run = stress(&home, &folder)
            .agent(STRESS_OPTIONS)
            // A command for the agent that -agentpath has loaded.
            .java_agent(&jar(), "status")
            .run()
            .expect_success();
        assert!(run.stderr.contains("[otlpprof] profiling for"), "{}: {}", run.label, run.stderr);
        assert!(hold_to_witness(&run) > 500, "{}", run.label);
    }
}

#[test]
fn the_jar_attaches_to_a_running_jvm() {
    for home in newest_or_all() {
        let mut running = JavaRun::new(&home, "ContextShortThreads").api(&jar()).argument(2000).start();
        running.wait_until("ready", |run| run.stdout().contains("ready"));
        running.load_java_agent_by_jcmd(&jar(), "cpu=1ms,file=FILE");
        let run = running.finish().expect_success();
        let mut labelled = 0;
        for stack in cpu_stacks(&run.messages()) {
            if let Some(number) = stack.thread.strip_prefix("with-")
                && stack.has("programs.ContextShortThreads.burn")
            {
                let endpoint = stack.labels.get("rest_endpoint");
                assert_eq!(endpoint, Some(&format!("/e{number}")), "{}: {stack:?}", run.label);
                labelled += stack.value;
            }
        }
        assert!(labelled > 50, "{}: {labelled}\n{}", run.label, run.stderr);
    }
}

#[test]
fn a_java_agents_mistakes_are_one_line() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "Hello").java_agent(&jar(), "cpu=never").run().expect_success();
        assert_eq!(run.stderr.matches("cpu=never").count(), 1, "{}: {}", run.label, run.stderr);
        assert!(
            run.stderr.contains("the agent does not start") && !run.stderr.contains("\tat "),
            "{}",
            run.stderr
        );
        let run = JavaRun::new(&home, "Hello").java_agent(&jar(), "cpu=never,strict").run();
        assert!(run.status != 0 && run.stdout.is_empty(), "{}: {}", run.label, run.stdout);
        assert_eq!(run.stderr.matches("cpu=never").count(), 1, "{}: {}", run.label, run.stderr);
        assert!(!run.stderr.contains("\tat "), "{}: {}", run.label, run.stderr);
    }
}

#[test]
fn without_a_library_for_the_machine_calls_do_nothing_and_say_so_once() {
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let run = run_with_jar(&home, "ContextCalls", &folder)
            .jvm_option("-Dos.arch=riscv64")
            .argument(false)
            .run()
            .expect_success();
        assert_eq!(run.stdout, "done\n");
        let printed = "the profiling agent is not in this process (no libotlpprof.so in java.library.path, \
                       and none for linux-riscv64 beside these classes)";
        assert_eq!(run.stderr.matches(printed).count(), 1, "{}: {}", run.label, run.stderr);
        assert_no_files_left(&run, &folder);
    }
}

/// The JVM may do so from JDK 24 on. Regression: a program ended where it asked for the profiler, and a JVM
/// with the jar as its agent did not start.
#[test]
fn where_the_jvm_denies_native_access_calls_do_nothing_and_say_so_once() {
    let denying: Vec<_> = newest_or_all().into_iter().filter(|home| java_version(home) >= 24).collect();
    assert!(!denying.is_empty(), "no JDK here denies native access");
    for home in denying {
        let folder = tempfile::tempdir().unwrap();
        let denied =
            |program| run_with_jar(&home, program, &folder).jvm_option("--illegal-native-access=deny");
        let calls = denied("ContextCalls").argument(false);
        let hello = denied("Hello").java_agent(&jar(), "cpu=1ms,file=FILE");
        for (run, stdout) in [(calls, "done\n"), (hello, "Hello\n")] {
            let run = run.run().expect_success();
            assert_eq!(run.stdout, stdout, "{}: {}", run.label, run.stderr);
            let printed =
                "the profiling agent is not in this process (Illegal native access from an unnamed module";
            assert_eq!(run.stderr.matches(printed).count(), 1, "{}: {}", run.label, run.stderr);
            let remedy = "the option --enable-native-access=ALL-UNNAMED of the JVM allows it";
            assert!(run.stderr.contains(remedy) && !run.stderr.contains("\tat "), "{}", run.stderr);
        }
        let allowed = denied("ContextLoaded").jvm_option("--enable-native-access=ALL-UNNAMED");
        let allowed = allowed.variable("AGENT_OPTIONS", "cpu=1ms,file=FILE").run().expect_success();
        assert_eq!(allowed.stdout, "done\n", "{}: {}", allowed.label, allowed.stderr);
        assert!(!allowed.stderr.contains("restricted method"), "{}: {}", allowed.label, allowed.stderr);
        assert_no_files_left(&allowed, &folder);
    }
}

/// Classes and library of two versions: in this library `abi0` has another name, so that it is like an older
/// library without `abi0`.
#[test]
fn a_library_of_another_version_is_refused_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut library = fs::read(agent()).unwrap();
    let (name, other) = (b"Java_io_otlpprof_Natives_abi0\0", b"Java_io_otlpprof_Natives_abiX\0");
    let places: Vec<_> =
        library.windows(name.len()).enumerate().filter(|(_, at)| at == name).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        library[at..at + other.len()].copy_from_slice(other);
    }
    fs::write(folder.path().join("libotlpprof.so"), library).unwrap();
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "ContextCalls")
            .api(&jar())
            .jvm_option(&format!("-Djava.library.path={}", folder.path().display()))
            .argument(false)
            .run()
            .expect_success();
        assert_eq!(run.stdout, "done\n");
        let printed = concat!(
            "(the library, ",
            env!("CARGO_PKG_VERSION"),
            ", has interface 0, but these classes have "
        );
        assert_eq!(run.stderr.matches(printed).count(), 1, "{}: {}", run.label, run.stderr);
    }
}

#[test]
fn the_library_is_loaded_for_one_class_loader_or_by_the_jvm_for_all() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "JarLoaders").api(&jar()).argument(jar().display());
        let alone = run.run().expect_success();
        assert_eq!(alone.stdout, "true\nfalse\nfalse\n", "{}: {}", alone.label, alone.stderr);
        for printed in
            ["for the classes of another class loader", "a library that -agentpath loads serves all"]
        {
            assert!(alone.stderr.contains(printed), "{}: {}", alone.label, alone.stderr);
        }
        let run = JavaRun::new(&home, "JarLoaders").api(&jar()).argument(jar().display());
        let by_jvm = run.agent("cpu=1ms,file=FILE").run().expect_success();
        assert_eq!(by_jvm.stdout, "true\ntrue\ntrue\n", "{}: {}", by_jvm.label, by_jvm.stderr);
    }
}

//! What a JVM does with the agent's options: right ones, wrong ones, strict ones.

mod agent_support;

use agent_support::{JavaRun, java_homes};

#[test]
fn a_mistake_is_one_line_and_the_program_runs() {
    for home in java_homes() {
        for (options, says) in [
            ("remotsym=true", "unknown option 'remotsym'; did you mean 'remotesym'?"),
            ("remotesym=invalid", "remotesym=invalid: must be true or false"),
            ("cstack=fp", "cstack=fp: must be vm"),
        ] {
            let run = JavaRun::new(&home, "Hello").agent(options).run().expect_success();
            assert_eq!(run.stdout, "Hello\n", "{}", run.label);
            let lines: Vec<_> = run.stderr.lines().filter(|line| line.contains("otlpprof")).collect();
            assert_eq!(lines.len(), 1, "{}: {}", run.label, run.stderr);
            assert!(lines[0].contains(says), "{}: {}", run.label, run.stderr);
        }
    }
}

#[test]
fn strict_fails_the_start() {
    for home in java_homes() {
        let run = JavaRun::new(&home, "Hello").agent("strict,remotsym").run();
        assert!(!run.succeeded(), "{}", run.label);
        assert!(run.stderr.contains("did you mean 'remotesym'?"), "{}: {}", run.label, run.stderr);
        assert_eq!(run.stdout.matches("Hello").count(), 0, "{}", run.label);
    }
}

#[test]
fn help_prints_every_option() {
    for home in java_homes().into_iter().take(1) {
        let run = JavaRun::new(&home, "Hello").agent("help").run();
        let said = format!("{}{}", run.stdout, run.stderr);
        for option in ["cpu=", "remotesym=", "endpoint=", "OTLPPROF_FILE"] {
            assert!(said.contains(option), "{option}: {said}");
        }
    }
}

#[test]
fn grpc_is_refused_in_one_line() {
    for home in java_homes().into_iter().take(1) {
        let run =
            JavaRun::new(&home, "Hello").agent("").variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").run();
        let run = run.expect_success();
        assert!(run.stderr.contains("OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=http/protobuf"), "{}", run.stderr);
    }
}

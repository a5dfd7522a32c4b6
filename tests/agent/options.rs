//! The agent's options in a JVM: correct, wrong, and with `strict`.

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;

/// With default options the user reads one line at the start and one at the end. Counters are printed at
/// `debug` only.
#[test]
fn one_line_is_printed_at_the_start_and_one_at_the_end() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "UserLoop").argument(0.5);
        let run = run.agent("loglevel=info,wall=20ms,lock,file=FILE").run().expect_success();
        let printed: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("[otlpprof] ")).collect();
        let [start, end] = printed[..] else { panic!("{}: {}", run.label, run.stderr) };
        let file = run.files()[0].display().to_string();
        let version = env!("CARGO_PKG_VERSION");
        for part in [version, "cpu every 10ms", "wall every 20ms", "lock", " clock", "stack walker vm", &file]
        {
            assert!(start.contains(part), "{}: no {part} in {start}", run.label);
        }
        for part in ["profiling has ended after ", " taken", &format!(" written to {file}")] {
            assert!(end.contains(part), "{}: no {part} in {end}", run.label);
        }
        assert!(!run.stderr.contains("handler."), "{}: counters: {}", run.label, run.stderr);
    }
}

#[test]
fn a_mistake_is_one_line_and_the_program_runs() {
    for home in newest_or_all() {
        for (options, says) in [
            ("remotsym=true", "unknown option 'remotsym'; did you mean 'remotesym'?"),
            ("remotesym=invalid", "remotesym=invalid: must be true or false"),
            ("cstack=lbr", "cstack=lbr: must be one of vm, vmx, fp, dwarf, no"),
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
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "Hello").agent("strict,remotsym").run();
        assert!(!run.succeeded(), "{}", run.label);
        assert!(run.stderr.contains("did you mean 'remotesym'?"), "{}: {}", run.label, run.stderr);
        assert_eq!(run.stdout.matches("Hello").count(), 0, "{}", run.label);
    }
}

/// Regression: options that their parsers accept and the sampling engine rejects were found when the VM was
/// live, and the program ran in spite of `strict`.
#[test]
fn strict_fails_the_start_if_an_engine_is_refused() {
    for home in newest_or_all() {
        for (options, says) in [
            ("strict,cpu=20us", "cpu=20us: must be from 50us to 1h"),
            ("strict,signal=SIGWINCH", "signal=SIGWINCH: must be a signal"),
            ("strict,cpu.clock=perf", "cpu.clock=perf is not available (Operation not permitted"),
        ] {
            let run = JavaRun::new(&home, "Hello").agent(options).without_perf_events().run();
            assert!(!run.succeeded(), "{options}: {}: {}", run.label, run.stderr);
            assert!(!run.stdout.contains("Hello\n"), "{options}: {}", run.label);
            let lines: Vec<_> = run.stderr.lines().filter(|line| line.contains("otlpprof")).collect();
            assert!(lines[0].contains(says), "{options}: {}: {}", run.label, run.stderr);
            let without = options.trim_start_matches("strict,");
            let run =
                JavaRun::new(&home, "Hello").agent(&format!("{without},file=FILE")).without_perf_events();
            let run = run.run().expect_success();
            assert_eq!(run.stdout, "Hello\n", "{}", run.label);
            assert!(run.stderr.contains(says), "{without}: {}: {}", run.label, run.stderr);
        }
        let run =
            JavaRun::new(&home, "Hello").agent("strict,cpu.clock=timer,signal=SIGUSR1,cpu=50us,file=FILE");
        let run = run.without_perf_events().run().expect_success();
        assert!(run.stderr.contains("CPU sampling every 50µs of CPU time by timer"), "{}", run.stderr);
    }
}

#[test]
fn help_prints_every_option() {
    for home in newest_or_all().into_iter().take(1) {
        let run = JavaRun::new(&home, "Hello").agent("help").run();
        let printed = format!("{}{}", run.stdout, run.stderr);
        for option in ["cpu=", "remotesym=", "endpoint=", "OTLPPROF_FILE"] {
            assert!(printed.contains(option), "{option}: {printed}");
        }
    }
}

#[test]
fn grpc_is_refused_in_one_line() {
    for home in newest_or_all().into_iter().take(1) {
        let run =
            JavaRun::new(&home, "Hello").agent("").variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").run();
        let run = run.expect_success();
        assert!(run.stderr.contains("OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=http/protobuf"), "{}", run.stderr);
        assert_eq!(run.stderr.lines().filter(|line| line.contains("otlpprof")).count(), 1, "{}", run.stderr);
        let with_a_file =
            JavaRun::new(&home, "Hello").agent("file=FILE").variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
        let run = with_a_file.run().expect_success();
        assert!(
            run.stderr.contains("nothing is uploaded: OTEL_EXPORTER_OTLP_PROTOCOL=grpc"),
            "{}",
            run.stderr
        );
    }
}

/// The option disables all of OpenTelemetry in the process.
#[test]
fn opentelemetry_that_is_off_profiles_nothing_in_one_line() {
    for home in newest_or_all().into_iter().take(1) {
        let off = |name: &str, run: JavaRun| {
            let run = run.agent("strict,file=FILE").run().expect_success();
            assert_eq!(run.stdout, "Hello\n", "{}", run.label);
            let lines: Vec<_> = run.stderr.lines().filter(|line| line.contains("otlpprof")).collect();
            assert_eq!(lines, [format!("[otlpprof] {name}=true: nothing is profiled")], "{}", run.label);
            assert!(run.files().is_empty(), "{}", run.label);
        };
        off("OTEL_SDK_DISABLED", JavaRun::new(&home, "Hello").variable("OTEL_SDK_DISABLED", "true"));
        off("-Dotel.sdk.disabled", JavaRun::new(&home, "Hello").jvm_option("-Dotel.sdk.disabled=true"));
    }
}

/// Regression: commands before the VM is live ended the process, since no thread can be attached so early.
#[test]
fn commands_at_the_jvms_start_end_nothing() {
    for home in newest_or_all() {
        for (command, says) in [
            ("stop", "stopped"),
            ("status", "profiling begins when the VM has started"),
            ("flush", "profiling begins when the VM has started"),
        ] {
            let run = JavaRun::new(&home, "Hello").agent("file=FILE").agent(command).run().expect_success();
            assert_eq!(run.stdout, "Hello\n", "{}", run.label);
            assert!(run.stderr.contains(says), "{}: {}", run.label, run.stderr);
            assert_eq!(run.stderr.contains("CPU sampling every"), command != "stop", "{}", run.label);
        }
    }
}

#[test]
fn a_second_start_at_the_jvms_start_is_refused() {
    for home in newest_or_all().into_iter().take(1) {
        let twice = JavaRun::new(&home, "Demo")
            .argument(1)
            .agent("file=DIR/first.otlp")
            .agent("file=DIR/second.otlp");
        let run = twice.run().expect_success();
        assert!(run.stderr.contains("the agent is profiling already"), "{}", run.stderr);
        let names: Vec<_> = run.files().iter().map(|file| file.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["first.otlp"]);
    }
}

#[test]
fn strict_fails_the_start_if_an_output_is_unusable() {
    for home in newest_or_all().into_iter().take(1) {
        let foreign = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(foreign.path(), "a letter to a friend").unwrap();
        for (options, says) in [
            (
                format!("file={}", foreign.path().display()),
                "is not a whole number of length-prefixed messages",
            ),
            ("endpoint=https://localhost:1,certificate=/nowhere.pem".into(), "certificate /nowhere.pem: "),
            ("endpoint=http://localhost:1,headers=a b=c".into(), "not allowed in HTTP"),
            // Regression: profiles were posted to port 80.
            ("endpoint=http://127.0.0.1:99999".into(), "port \"99999\": must be a number from 0 to 65535"),
        ] {
            let run = JavaRun::new(&home, "Hello").agent(&format!("strict,{options}")).run();
            assert!(!run.succeeded(), "{options}: {}", run.stderr);
            assert!(run.stderr.contains(says), "{options}: {}", run.stderr);
        }
    }
}

/// For a proxy with an invalid port the HTTP library would use the scheme's own port.
#[test]
fn a_proxy_whose_port_is_none_is_refused() {
    for home in newest_or_all().into_iter().take(1) {
        let run = JavaRun::new(&home, "Hello").agent("strict,endpoint=http://collector.example:4318");
        let run = run.variable("HTTP_PROXY", "http://user:hunter2@proxy.example:99999").run();
        assert!(!run.succeeded(), "{}", run.stderr);
        let says = "HTTP_PROXY): port \"99999\": must be a number from 0 to 65535";
        assert!(run.stderr.contains(says) && !run.stderr.contains("hunter2"), "{}", run.stderr);
    }
}

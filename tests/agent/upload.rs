//! Uploads from a real JVM: to a real OpenTelemetry collector, to `otlpprof collect`, and to an endpoint that
//! does not answer.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use otlpprof_otlp::read::{Message, decode_json, decode_protobuf};
use otlpprof_otlp::validate::rules::RuleId;
use otlpprof_otlp::validate::validate;
use otlpprof_testkit::collector::{Collector, samples_of};
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::fault_server::{FaultServer, Step};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::profiles;
use otlpprof_testkit::small_profile::{FlatSample, flatten};

/// Every sample of some messages with its indices resolved, sorted.
fn flat(messages: &[Message]) -> Vec<FlatSample> {
    let mut samples: Vec<_> = messages.iter().flat_map(|message| flatten(&message.data)).collect();
    samples.sort();
    samples
}

/// The number of runs, in one of which at least all pending messages leave in time. At its exit the agent
/// waits for three seconds, which may be too short on a busy machine.
const MOST_RUNS: usize = 5;

/// Whether the program's exit left pending messages the time to arrive.
fn has_time_to_send(run: &Finished) -> bool {
    let lost = ["shut_down", "queue_full"].map(|loss| run.counter(&format!("upload.{loss}.messages")));
    eprintln!("{}: {lost:?} messages were not sent in time", run.label);
    lost == [0, 0]
}

/// Runs the sample program, which also writes its uploads to a file. `None` if messages were not sent in
/// time.
fn run(home: &Path, endpoint: &str, options: &str) -> Option<Finished> {
    let options = format!("cpu=2ms,interval=500ms,file=FILE,endpoint={endpoint},service=upload,{options}");
    // On a busy machine intervals are longer, and so is the run.
    let mut runs = [2.0, 10.0, 50.0]
        .into_iter()
        .map(|seconds| JavaRun::new(home, "Demo").argument(seconds).agent(&options).run().expect_success());
    let has_intervals = |run: &Finished| run.messages().len() >= 3;
    let run = runs.find(has_intervals).unwrap_or_else(|| panic!("{}: no three messages", home.display()));
    let messages = run.messages().len() as u64;
    assert_eq!(run.counter("upload.submitted.messages"), messages, "{}: {}", run.label, run.stderr);
    let counted = |name: &str| -> i64 {
        run.messages().iter().map(|message| profiles::profile_counter(message, name)).sum()
    };
    // Each profile counts the results of the uploads before it.
    assert_eq!(counted("upload.submitted.messages"), messages as i64 - 1, "{}", run.label);
    if !has_time_to_send(&run) {
        return None;
    }
    assert_eq!(run.counter("upload.sent.messages"), messages, "{}: {}", run.label, run.stderr);
    let sent = counted("upload.sent.messages");
    assert!((1..messages as i64).contains(&sent), "{}: {sent} of {messages}", run.label);
    assert!(counted("upload.wire_bytes") > 0, "{}", run.label);
    Some(run)
}

#[test]
fn a_real_collector_decodes_the_files_messages() {
    for options in [
        "format=proto,remotesym",
        "format=json,remotesym,timestamps",
        "format=json,compression=none,remotesym,native_frames=name",
    ] {
        let mut collected = (0..MOST_RUNS).map_while(|_| Collector::start()).filter_map(|collector| {
            let mut sent = Vec::new();
            for home in newest_or_all() {
                sent.extend(flat(&run(&home, &collector.endpoint(), options)?.messages()));
            }
            sent.sort();
            Some((collector, sent))
        });
        let Some((collector, sent)) = collected.next() else {
            assert!(Collector::start().is_none(), "{options}: never enough time to send");
            return;
        };
        let remote = sent.iter().flat_map(|sample| &sample.stack).any(|location| {
            let key = otlpprof_model::attribute_keys::FRAME_REMOTE;
            location.mapping.is_some()
                && location.lines.is_empty()
                && location.attributes.iter().any(|(found, _)| found == key)
        });
        assert_eq!(remote, !options.contains("native_frames=name"), "{options}");
        let folder = tempfile::tempdir().unwrap();
        for file in collector.files() {
            assert_valid_but_for_the_collector(options, &file);
            let path = folder.path().join("collected");
            std::fs::write(&path, &file).unwrap();
            otlpprof_testkit::python::assert_read_alike(options, &[path]);
            let received = samples_of(&file);
            // Compared for equality: a failed comparison of the lists would print thousands of samples.
            assert_eq!(received.len(), sent.len(), "{options}");
            assert!(received == sent, "{options}: {:?}", received.iter().zip(&sent).find(|(a, b)| a != b));
        }
    }
}

/// The rules that the collector's file exporter breaks, and the reason.
const BROKEN_BY_THE_COLLECTOR: [(RuleId, &str); 3] = [
    (RuleId::TableZeroValue, "it writes an empty value into attribute_table[0]"),
    (RuleId::AttributeNotInline, "it rewrites a resource's attributes as references to the string table"),
    (RuleId::HtlhashMissing, "ours: an object that has no file any more"),
];

fn assert_valid_but_for_the_collector(label: &str, file: &[u8]) {
    let report = validate(file, 3);
    let its_own = |rule: RuleId| BROKEN_BY_THE_COLLECTOR.iter().any(|(broken, _)| *broken == rule);
    let broken: Vec<_> = report.breaches().filter(|(rule, _)| !its_own(*rule)).collect();
    assert!(broken.is_empty(), "{label}: {broken:#?}");
}

#[test]
fn the_embedded_receiver_stores_the_files_messages() {
    for home in newest_or_all() {
        let is_stored = (0..MOST_RUNS).any(|_| stores_the_files_messages(&home));
        assert!(is_stored, "{}: never enough time to send", home.display());
    }
}

/// Runs the sample program with a receiver, and compares the receiver's files with the program's. Returns
/// `false` if messages were not sent in time.
fn stores_the_files_messages(home: &Path) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mut receiver = otlpprof()
        .args(["collect", "--listen", "127.0.0.1:0", "--out"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(receiver.stdout.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let run = run(home, line.strip_prefix("listening on ").unwrap(), "timestamps,remotesym");
    // SAFETY: kill has no memory effects; the process is this test's own child and not waited for yet.
    unsafe { libc::kill(receiver.id().cast_signed(), libc::SIGTERM) };
    assert!(receiver.wait().unwrap().success());
    let Some(run) = run else { return false };
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.collect();
    files.iter().for_each(|file| profiles::assert_valid(&run.label, file));
    otlpprof_testkit::python::assert_read_alike(&run.label, &files);
    let stored: Vec<_> = files.iter().flat_map(|file| profiles::messages(file)).collect();
    assert!(flat(&stored) == flat(&run.messages()), "{}", run.label);
    true
}

#[test]
fn a_message_refused_as_too_large_arrives_in_halves() {
    for home in newest_or_all() {
        for format in ["proto", "json"] {
            let arrives = (0..MOST_RUNS).any(|_| arrives_in_halves(&home, format));
            assert!(arrives, "{} {format}: never enough time to send", home.display());
        }
    }
}

/// Runs the sample program with a server that refuses its first messages. Returns `false` if the halves were
/// not sent in time.
fn arrives_in_halves(home: &Path, format: &str) -> bool {
    let refusals = vec![Step::status(413); 3];
    let server = FaultServer::start(refusals.clone());
    let options = format!(
        "cpu=2ms,interval=1h,file=FILE,compression=none,format={format},endpoint=http://{}",
        server.address
    );
    let run = JavaRun::new(home, "Demo").argument(1.2).agent(&options).run().expect_success();
    if !has_time_to_send(&run) {
        return false;
    }
    let label = format!("{} {format}: {}", run.label, run.stderr);
    // Each half is a profile of its own, and the counts are in the first half.
    let halved = |messages: &[Message]| {
        let mut samples = flat(messages);
        for sample in &mut samples {
            sample.profile_id.clear();
            sample.profile_attributes.retain(|(_, value)| value.starts_with("text "));
        }
        samples.sort();
        samples
    };
    let written = halved(&run.messages());
    assert_eq!(run.counter("upload.split.messages"), refusals.len() as u64, "{label}");
    assert_eq!(run.counter("upload.too_large.samples"), 0, "{label}");
    assert_eq!(run.counter("upload.sent.samples"), written.len() as u64, "{label}");
    let requests = run.counter("upload.submitted.messages");
    let accepted = (0..requests).map(|_| server.request().body).skip(refusals.len());
    let decode = if format == "json" { decode_json } else { decode_protobuf };
    let received: Vec<_> = accepted.map(|body| decode(&body).unwrap()).collect();
    assert!(halved(&received) == written, "{label}");
    true
}

#[test]
fn a_profile_of_more_than_the_queue_holds_arrives_whole_at_a_collector_that_is_well() {
    for home in newest_or_all() {
        let mut runs = (0..MOST_RUNS).map(|_| {
            let server = FaultServer::start([]);
            let options = format!(
                "cpu=50us,cpu.clock=timer,timestamps,interval=1h,file=FILE,upload.limit=64k,\
                 upload.queue=64k,endpoint=http://{}",
                server.address
            );
            JavaRun::new(&home, "Demo").argument(1.5).agent(&options).run().expect_success()
        });
        let run = runs.find(has_time_to_send);
        let run = run.unwrap_or_else(|| panic!("{}: never enough time to send", home.display()));
        let label = format!("{}: {}", run.label, run.stderr);
        let messages = run.messages().len() as u64;
        assert!(messages >= 3, "{label}: {messages}");
        assert_eq!(run.counter("upload.submitted.messages"), messages, "{label}");
        assert_eq!(run.counter("upload.sent.messages"), messages, "{label}");
    }
}

/// If the end of the program waited for a request, it would take the hour that a request may last.
#[test]
fn a_dead_endpoint_costs_the_profiles_and_nothing_else() {
    let silent = FaultServer::start(vec![Step::Hang; 1000]);
    let refusing = "http://127.0.0.1:1".to_owned();
    let silent = format!("http://{}", silent.address);
    for home in newest_or_all() {
        for endpoint in [&refusing, &silent] {
            let options = format!("interval=300ms,timeout=1h,endpoint={endpoint}");
            let run = JavaRun::new(&home, "Demo").argument(1.5).agent(&options).run().expect_success();
            let label = format!("{} {endpoint}: {}", run.label, run.stderr);
            assert!(run.stdout.contains("Demo done"), "{label}");
            assert_eq!(run.counter("upload.sent.messages"), 0, "{label}");
            let submitted = run.counter("upload.submitted.samples");
            let given_up =
                run.counter("upload.shut_down.samples") + run.counter("upload.retries_exhausted.samples");
            assert!(submitted > 0, "{label}");
            assert_eq!(given_up, submitted, "{label}");
            let about_uploads = run.stderr.lines().filter(|line| line.contains("[otlpprof] warning")).count();
            assert!(about_uploads <= 2, "said more than once: {label}");
        }
    }
}

#[test]
fn the_environment_configures_a_real_jvm() {
    for home in newest_or_all() {
        let server = FaultServer::start([]);
        let run = JavaRun::new(&home, "Demo")
            .argument(1)
            .agent("cpu=2ms")
            .variable("OTLPPROF_FILE", "FILE")
            .variable("OTLPPROF_CPU", "50ms")
            .variable("OTLPPROF_REMOTESYM", "yes")
            .variable("OTEL_SERVICE_NAME", "from-environment")
            .variable("OTEL_RESOURCE_ATTRIBUTES", "team=a%2Cb,service.name=hidden")
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{}/base", server.address))
            .variable("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret")
            .variable("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
            .run()
            .expect_success();
        let label = format!("{}: {}", run.label, run.stderr);
        let request = server.request();
        assert_eq!(request.line, "POST /base/v1development/profiles HTTP/1.1", "{label}");
        assert_eq!(request.header("api-key"), ["secret"], "{label}");
        assert!(request.header("content-encoding").is_empty(), "{label}");
        assert!(!run.stderr.contains("secret"), "{label}");
        let messages = run.messages();
        // The agent's option string takes precedence.
        let stacks = otlpprof_testkit::stacks::cpu_stacks(&messages);
        assert!(stacks.iter().all(|stack| stack.period_ns == 2_000_000), "{label}");
        assert!(
            stacks.iter().flat_map(|stack| stack.frames.iter()).any(|frame| frame.remote.is_some()),
            "{label}"
        );
        let text = format!("{:?}", messages[0].data.resource_profiles[0].resource);
        assert!(text.contains("from-environment") && text.contains("\"a,b\""), "{label} {text}");
        assert!(!text.contains("hidden"), "{label} {text}");
    }
}

/// Regression: OpenTelemetry's Java agent reads these properties, and the profiler beside it ignored them
/// silently.
#[test]
fn opentelemetrys_system_properties_configure_a_real_jvm() {
    for home in newest_or_all() {
        let server = FaultServer::start([]);
        let run = JavaRun::new(&home, "Demo")
            .argument(1)
            .agent("cpu=2ms,file=FILE")
            .variable("OTEL_SERVICE_NAME", "variable")
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
            .jvm_option("-Dotel.service.name=property")
            .jvm_option(&format!("-Dotel.exporter.otlp.endpoint=http://{}/base", server.address))
            .jvm_option("-Dotel.exporter.otlp.headers=api-key=secret")
            .jvm_option("-Dotel.exporter.otlp.compression=zip")
            .run()
            .expect_success();
        let label = format!("{}: {}", run.label, run.stderr);
        let request = server.request();
        assert_eq!(request.line, "POST /base/v1development/profiles HTTP/1.1", "{label}");
        assert_eq!(request.header("api-key"), ["secret"], "{label}");
        assert!(run.stderr.contains("-Dotel.exporter.otlp.compression=zip is ignored: "), "{label}");
        let text = format!("{:?}", run.messages()[0].data.resource_profiles[0].resource);
        assert!(text.contains("\"property\"") && !text.contains("\"variable\""), "{label} {text}");
    }
}

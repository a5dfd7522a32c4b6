//! Tests of destinations: files, endpoints, and the transport to them.

use std::path::Path;
use std::time::Duration;

use otlpprof_export::upload::Compression;
use otlpprof_otlp::Format;

use super::tests::{error, error_in, start, start_in, upload};
use super::*;

fn url(options: &Options) -> Option<String> {
    options.upload.as_ref().map(|upload| upload.endpoint.url().to_string())
}

#[test]
fn file_and_endpoint_together_or_alone() {
    assert_eq!(url(&start("file=/f")), None, "a file alone: no upload");
    assert_eq!(
        url(&start("file=/f,endpoint=http://h:1")).as_deref(),
        Some("http://h:1/v1development/profiles")
    );
    assert_eq!(url(&start_in("file=/f,endpoint=off", [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h")])), None);
    assert!(error("endpoint=off").contains("file=PATH"));
}

#[test]
fn endpoints_get_the_path_once() {
    let full = Some("http://h:4318/v1development/profiles");
    for text in ["http://h:4318", "http://h:4318/", "http://h:4318/v1development/profiles"] {
        assert_eq!(url(&start(&format!("endpoint={text}"))).as_deref(), full, "{text}");
    }
    assert_eq!(
        url(&start("endpoint=http://h/otlp/")).as_deref(),
        Some("http://h/otlp/v1development/profiles")
    );
}

#[test]
fn otel_endpoints_general_and_own() {
    let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://general:4318/");
    let own = ("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://own/as/it/is");
    let ours = ("OTLPPROF_ENDPOINT", "http://ours");
    assert_eq!(url(&start_in("", [general])).as_deref(), Some("http://general:4318/v1development/profiles"));
    assert_eq!(url(&start_in("", [general, own])).as_deref(), Some("http://own/as/it/is"));
    assert_eq!(
        url(&start_in("", [general, own, ours])).as_deref(),
        Some("http://ours/v1development/profiles")
    );
    let all = start_in("endpoint=http://string", [general, own, ours]);
    assert_eq!(url(&all).as_deref(), Some("http://string/v1development/profiles"));
}

#[test]
fn an_unusable_endpoint_of_the_environment_is_an_error_unless_another_is_named() {
    let bad = ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317");
    assert!(error_in("", [bad]).message.starts_with("OTEL_EXPORTER_OTLP_ENDPOINT: collector:4317: "));
    assert_eq!(
        url(&start_in("endpoint=http://h", [bad])).as_deref(),
        Some("http://h/v1development/profiles")
    );
    assert_eq!(
        url(&start_in("", [bad, ("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://h/p")])).as_deref(),
        Some("http://h/p")
    );
}

#[test]
fn grpc_is_refused_with_a_remedy() {
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let message = error_in("", [grpc]).message;
    assert!(message.starts_with("OTEL_EXPORTER_OTLP_PROTOCOL=grpc: "), "{message}");
    assert!(message.contains("OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=http/protobuf"), "{message}");
    assert_eq!(error_in("", [grpc, ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")]).message, message);

    assert_eq!(
        start_in("", [grpc, ("OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL", "http/json")]).encode.format,
        Format::Json
    );
    assert_eq!(start_in("format=proto", [grpc]).encode.format, Format::Proto);
    let named = start_in("endpoint=http://h:4318", [grpc]);
    assert_eq!(url(&named).as_deref(), Some("http://h:4318/v1development/profiles"));
    assert_eq!(error_in("", [grpc, ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318")]).message, message);
    assert_eq!(url(&start_in("file=/f", [grpc])), None, "nothing is uploaded");
    assert_eq!(start_in("file=/f,endpoint=off", [grpc]).warnings, [] as [&str; 0]);
    assert_eq!(start("endpoint=http://h:4317").warnings.len(), 1, "the gRPC port draws a warning");
}

/// Regression: such variables kept the agent from starting even if it had a file to write to.
#[test]
fn unusable_upload_variables_do_not_prevent_writing_a_file() {
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    for endpoint in ["http://collector:4317", "collector:4317", "http://collector:99999"] {
        let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        for variables in
            [vec![grpc, general], vec![("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), general]]
        {
            let options = start_in("file=/f", variables.clone());
            assert_eq!(options.file.as_deref(), Some("/f"));
            if endpoint == "http://collector:4317" && variables[0] != grpc {
                assert_eq!(options.upload.unwrap().endpoint.url().port_u16(), Some(4317));
                continue;
            }
            assert_eq!((options.upload, options.warnings.len()), (None, 1), "{:?}", options.warnings);
            let names = if variables[0] == grpc { "PROTOCOL=grpc: " } else { "ENDPOINT: " };
            let says = format!("nothing is uploaded: OTEL_EXPORTER_OTLP_{names}");
            assert!(options.warnings[0].starts_with(&says), "{:?}", options.warnings);
        }
    }
}

/// Regression: the parser accepted a header that HTTP does not allow, which then kept the agent from
/// starting.
#[test]
fn malformed_headers_of_the_environment_warn_and_are_ignored() {
    for text in [
        "authorization:secret",
        "Authorization: Basic c2VjcmV0=",
        "no token=secret",
        "x=secret%0Ay: secret",
        "content-type=secret",
        "good=1,host=secret",
    ] {
        let options = start_in("", [("OTEL_EXPORTER_OTLP_HEADERS", text)]);
        assert_eq!(options.warnings.len(), 1, "{text}: {:?}", options.warnings);
        let warning = &options.warnings[0];
        assert!(warning.starts_with("OTEL_EXPORTER_OTLP_HEADERS is ignored: "), "{warning}");
        assert!(!warning.contains("ecret") && !warning.contains("c2Vj"), "{warning}");
        assert_eq!(upload(options).headers, []);
    }
}

#[test]
fn system_properties_stand_for_variables_and_come_first() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://variable:4318"),
        ("OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL", "http/json"),
        ("OTEL_SERVICE_NAME", "variable"),
    ];
    let properties = [
        ("otel.exporter.otlp.endpoint", "http://property:4318"),
        ("otel.exporter.otlp.client.key", "/property.key"),
        ("otel.exporter.otlp.timeout", "never"),
        ("otel.exporter.otlp.headers", ""),
        ("otel.service.name", "property"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let environment = Environment::from_iter(variables).with_properties(properties);
    let Ok(Request::Start(options)) = parse("", &environment) else { panic!() };
    assert_eq!(url(&options).as_deref(), Some("http://property:4318/v1development/profiles"));
    assert_eq!(options.encode.format, Format::Json);
    assert_eq!(options.resource, [("service.name".to_owned(), "property".to_owned())]);
    let says = "-Dotel.exporter.otlp.timeout=never is ignored: ";
    assert!(options.warnings.len() == 1 && options.warnings[0].starts_with(says), "{:?}", options.warnings);
    assert_eq!(upload(*options).client_key.as_deref(), Some(Path::new("/property.key")));
    let read: Vec<_> = otel::property_names().collect();
    assert_eq!(read.len(), 19);
    for (name, _) in
        [("otel.exporter.otlp.profiles.client.certificate", ""), ("otel.resource.attributes", "")]
    {
        assert!(read.iter().any(|known| known == name), "{name}");
    }
}

#[test]
fn opentelemetry_that_is_off_is_off_for_profiles() {
    let parsed = |text, value: &str| parse(text, &Environment::from_iter([("OTEL_SDK_DISABLED", value)]));
    for value in ["true", "TRUE", " True "] {
        for text in ["", "file=/f", "strict"] {
            let says = Request::Disabled("OTEL_SDK_DISABLED".into());
            assert_eq!(parsed(text, value), Ok(says), "{text} {value}");
        }
        assert_eq!(parsed("stop", value), Ok(Request::Stop));
    }
    for (value, warnings) in [("false", 0), ("False", 0), ("1", 1), ("yes", 1)] {
        let Ok(Request::Start(options)) = parsed("", value) else { panic!("{value}") };
        assert_eq!(options.warnings.len(), warnings, "{value}: {:?}", options.warnings);
    }
    let property = [("otel.sdk.disabled".to_owned(), "true".to_owned())];
    let both = Environment::from_iter([("OTEL_SDK_DISABLED", "false")]).with_properties(property);
    assert_eq!(parse("", &both), Ok(Request::Disabled("-Dotel.sdk.disabled".into())));
}

#[test]
fn a_queue_that_cannot_hold_a_request_is_refused() {
    let message = error("upload.queue=8m");
    assert!(message.contains("upload.queue (8192k) is less than upload.limit (20480k)"), "{message}");
    start("upload.queue=8m,upload.limit=8m");
    start("upload.queue=8m,file=/f");
}

#[test]
fn protocol_names_the_format() {
    let protocol = |text| start_in("", [("OTEL_EXPORTER_OTLP_PROTOCOL", text)]);
    assert_eq!(protocol("http/protobuf").encode.format, Format::Proto);
    assert_eq!(protocol("http/json").encode.format, Format::Json);
    assert_eq!(protocol("carrier-pigeon").warnings.len(), 1);
    assert_eq!(
        start_in("format=proto", [("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]).encode.format,
        Format::Proto
    );
}

#[test]
fn otel_transport_variables() {
    let options = start_in(
        "",
        [
            ("OTEL_EXPORTER_OTLP_HEADERS", "hidden=1"),
            ("OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "Api-Key=a%2Cb, x=y"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            ("OTEL_EXPORTER_OTLP_PROFILES_CLIENT_CERTIFICATE", "/me.pem"),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/me.key"),
        ],
    );
    assert_eq!(options.warnings, [] as [&str; 0]);
    let upload = upload(options);
    assert_eq!(upload.headers, [("Api-Key".into(), "a,b".into()), ("x".into(), "y".into())]);
    assert_eq!(upload.compression, Compression::None);
    assert_eq!(upload.timeout, Duration::from_millis(2500));
    assert_eq!(upload.ca_certificate.as_deref(), Some(Path::new("/ca.pem")));
    assert_eq!(upload.client_certificate.as_deref(), Some(Path::new("/me.pem")));
    assert_eq!(upload.client_key.as_deref(), Some(Path::new("/me.key")));
}

#[test]
fn mistakes_in_shared_variables_warn_and_are_ignored() {
    let options = start_in(
        "",
        [
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization:secret"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
            ("OTEL_RESOURCE_ATTRIBUTES", "good=1,bad"),
        ],
    );
    assert_eq!(options.warnings.len(), 4, "{:?}", options.warnings);
    assert!(options.warnings.iter().all(|line| line.contains(" is ignored: ") && !line.contains("secret")));
    assert_eq!(options.resource, [], "one bad item discards the whole variable");
    assert_eq!(upload(options), upload(start("")));
}

#[test]
fn secrets_are_not_repeated() {
    let message = error("headers=authorization");
    assert_eq!(message, "headers: each item must be KEY=VALUE");
    assert!(!error("headers=authorization=hunter2%0").contains("hunter2"));
    assert!(!error_in("", [("OTLPPROF_HEADERS", "hunter2")]).message.contains("hunter2"));
    assert!(!error("endpoint=http://me:hunter2@h").contains("hunter2"));
    assert!(
        !error_in("", [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:hunter2@h")]).message.contains("hunter2")
    );
}

#[test]
fn loop_needs_a_file_whose_name_has_the_time() {
    assert!(error("loop=1h").contains("%t") && error("file=/tmp/p.otlp,loop=1h").contains("%t"));
    assert_eq!(start("file=/tmp/%t,loop=1h").file_period, Some(Duration::from_secs(3600)));
    assert_eq!(start("file=/tmp/p.otlp,loop=off").file_period, None);
    assert!(error("loop=soon").ends_with("; or off"));
}

/// Regression: a recording, whose file has no time in its name, could not be made in a JVM with
/// OTLPPROF_LOOP.
#[test]
fn options_of_the_agent_string_win_over_variables() {
    let variables = [
        ("OTLPPROF_LOOP", "1h"),
        ("OTLPPROF_FILE", "/var/%t.html"),
        ("OTLPPROF_ENDPOINT", "collector"),
        ("OTLPPROF_FORMAT", "xml"),
        ("OTLPPROF_DELAY", "later"),
        ("OTLPPROF_DURATION", "1"),
        ("OTLPPROF_RESOURCE", "a=1"),
    ];
    let own = "file=/tmp/r.otlp,endpoint=off,format=proto,loop=off,delay=0s,duration=90s,resource=b=2";
    let options = start_in(own, variables);
    assert_eq!((options.file.as_deref(), options.file_period), (Some("/tmp/r.otlp"), None));
    assert_eq!(options.resource.len(), 2, "resource attributes add up");
    assert_eq!(options.warnings, [] as [&str; 0]);
}

/// Regression: the message named an option that the user had not given.
#[test]
fn a_conflict_names_the_variable() {
    let named = |agent_string, variable, value| {
        let message = error_in(agent_string, [(variable, value)]).message;
        assert!(message.contains(variable), "{message}");
    };
    named("file=/tmp/r.otlp", "OTLPPROF_LOOP", "1h");
    named("signal=USR1,event=cycles", "OTLPPROF_EVENT_SIGNAL", "USR1");
    named("event=cycles:u", "OTLPPROF_EVENT_KERNEL", "true");
    named("", "OTLPPROF_ENDPOINT", "off");
    named("", "OTLPPROF_UPLOAD_QUEUE", "8m");
    named("upload.queue=8m", "OTLPPROF_UPLOAD_LIMIT", "16m");
    let leaks = start_in("", [("OTLPPROF_NATIVEMEM_LEAKS", "true")]);
    assert_eq!(leaks.warnings, ["OTLPPROF_NATIVEMEM_LEAKS is ignored: nativemem is off"]);
}

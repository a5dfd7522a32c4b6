//! The standard OTEL_* variables for transport and resource (OpenTelemetry specification: "OTLP Exporter
//! Configuration", "Environment Variable Specification", "Resource SDK").

use std::time::Duration;

use super::environment::Environment;
use super::request::{Destination, Draft};
use super::table::COMPRESSIONS;
use super::value;
use crate::export::Endpoint;
use crate::otlp::Format;

/// Reads what is set into the draft; the profiles' own form of a variable hides the general one.
pub(super) fn apply(environment: &Environment, draft: &mut Draft) {
    resource(environment, draft);
    endpoint(environment, draft);
    protocol(environment, draft);
    if let Some((name, text)) = exporter_variable(environment, "HEADERS") {
        // Headers carry credentials: the warning does not repeat them.
        use_or_warn(draft, &name, None, value::pairs(text, ','), |draft, headers| {
            draft.upload.headers = headers
        });
    }
    if let Some((name, text)) = exporter_variable(environment, "COMPRESSION") {
        let compression = value::choice(text, &COMPRESSIONS);
        use_or_warn(draft, &name, Some(text), compression, |draft, chosen| draft.upload.compression = chosen);
    }
    if let Some((name, text)) = exporter_variable(environment, "TIMEOUT") {
        let milliseconds =
            value::integer(text, 1, 3_600_000).map_err(|message| format!("{message} (milliseconds)"));
        use_or_warn(draft, &name, Some(text), milliseconds, |draft, milliseconds| {
            draft.upload.timeout = Duration::from_millis(milliseconds as u64);
        });
    }
    for (suffix, path) in [
        ("CERTIFICATE", &mut draft.upload.ca_certificate),
        ("CLIENT_CERTIFICATE", &mut draft.upload.client_certificate),
        ("CLIENT_KEY", &mut draft.upload.client_key),
    ] {
        if let Some((_, text)) = exporter_variable(environment, suffix) {
            *path = Some(text.into());
        }
    }
}

/// `OTEL_EXPORTER_OTLP_PROFILES_<suffix>`, else `OTEL_EXPORTER_OTLP_<suffix>`: name and value.
fn exporter_variable<'a>(environment: &'a Environment, suffix: &str) -> Option<(String, &'a str)> {
    ["OTEL_EXPORTER_OTLP_PROFILES_", "OTEL_EXPORTER_OTLP_"].iter().find_map(|prefix| {
        let name = format!("{prefix}{suffix}");
        environment.get(&name).map(|value| (name, value.trim()))
    })
}

fn use_or_warn<T>(
    draft: &mut Draft,
    name: &str,
    shown: Option<&str>,
    value: Result<T, String>,
    apply: impl FnOnce(&mut Draft, T),
) {
    match value {
        Ok(value) => apply(draft, value),
        Err(message) => {
            let shown = shown.map(|text| format!("={text}")).unwrap_or_default();
            draft.options.warnings.push(format!("{name}{shown} is ignored: {message}"));
        }
    }
}

/// A mistake in one item discards the whole variable, as the specification asks.
fn resource(environment: &Environment, draft: &mut Draft) {
    const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
    if let Some(text) = environment.get(ATTRIBUTES) {
        use_or_warn(draft, ATTRIBUTES, Some(text), value::pairs(text, ','), |draft, pairs| {
            draft.add_resource(pairs)
        });
    }
    if let Some(name) = environment.get("OTEL_SERVICE_NAME") {
        draft.add_resource([("service.name".to_owned(), name.to_owned())]);
    }
}

/// The profiles' own endpoint is used as it is; to the general one the signal's path is appended. One that cannot
/// be used is an error unless a better source names another.
fn endpoint(environment: &Environment, draft: &mut Draft) {
    const OWN: &str = "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT";
    const GENERAL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let (name, endpoint) = if let Some(text) = environment.get(OWN) {
        (OWN, Endpoint::signal(text))
    } else if let Some(text) = environment.get(GENERAL) {
        (GENERAL, Endpoint::base(text))
    } else {
        return;
    };
    draft.destination = match endpoint {
        Ok(endpoint) => Destination::Collector(endpoint),
        Err(error) => Destination::Unusable(format!("{name}: {error}")),
    };
}

/// gRPC is not spoken here. Sending HTTP to a gRPC port would fail for ever, so that it is an error unless the
/// user also names a format.
fn protocol(environment: &Environment, draft: &mut Draft) {
    let Some((name, text)) = exporter_variable(environment, "PROTOCOL") else { return };
    match text {
        "http/protobuf" => draft.options.encode.format = Format::Proto,
        "http/json" => draft.options.encode.format = Format::Json,
        "grpc" => {
            draft.unusable_protocol = Some(format!(
                "{name}=grpc: profiles are uploaded over HTTP; set OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=http/protobuf \
                 and OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://HOST:4318/v1development/profiles, or of the agent's own \
                 options format=proto and endpoint=http://HOST:4318"
            ));
        }
        _ => {
            let known = "must be http/protobuf or http/json";
            draft.options.warnings.push(format!("{name}={text} is ignored: {known}"));
        }
    }
}

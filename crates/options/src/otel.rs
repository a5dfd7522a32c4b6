//! The standard OTEL_* variables for transport and resource (OpenTelemetry specification: "OTLP Exporter
//! Configuration", "Environment Variable Specification", "Resource SDK"), and the system properties that
//! OpenTelemetry's Java agent and SDK read in their place.

use std::time::Duration;

use otlpprof_export::Endpoint;
use otlpprof_export::upload::check_headers;
use otlpprof_model::attribute_keys;
use otlpprof_otlp::Format;

use super::draft::{Destination, Draft};
use super::environment::Environment;
use super::option_spec::COMPRESSIONS;
use super::value;

const SDK_DISABLED: &str = "OTEL_SDK_DISABLED";
const RESOURCE_ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const OWN: &str = "OTEL_EXPORTER_OTLP_PROFILES_";
const GENERAL: &str = "OTEL_EXPORTER_OTLP_";
/// The suffixes of the variables' names, after either prefix.
const SUFFIXES: [&str; 8] = [
    "ENDPOINT",
    "HEADERS",
    "COMPRESSION",
    "TIMEOUT",
    "PROTOCOL",
    "CERTIFICATE",
    "CLIENT_CERTIFICATE",
    "CLIENT_KEY",
];

/// The names of the system properties that replace the variables read here.
pub fn property_names() -> impl Iterator<Item = String> {
    let exporter =
        SUFFIXES.iter().flat_map(|suffix| [OWN, GENERAL].map(|prefix| format!("{prefix}{suffix}")));
    let other = [SDK_DISABLED, RESOURCE_ATTRIBUTES, SERVICE_NAME].map(str::to_owned);
    other.into_iter().chain(exporter).map(|variable| variable.to_lowercase().replace('_', "."))
}

/// Returns the name of the variable or property that disables all of OpenTelemetry in this process, profiles
/// included. Only the value `true` does so, in any case ("Environment Variable Specification", "Boolean
/// value").
pub(super) fn disabled_by(environment: &Environment) -> Option<&str> {
    let value = environment.get(SDK_DISABLED)?.trim();
    value.eq_ignore_ascii_case("true").then(|| environment.shown(SDK_DISABLED))
}

/// Reads the variables that are set into the draft. The profiles' own form of a variable hides the general
/// one.
pub(super) fn apply(environment: &Environment, draft: &mut Draft) {
    if let Some(value) = environment.get(SDK_DISABLED).map(str::trim)
        && !["true", "false"].iter().any(|known| value.eq_ignore_ascii_case(known))
    {
        let name = environment.shown(SDK_DISABLED);
        draft.options.warnings.push(format!("{name}={value} is ignored: must be true or false"));
    }
    resource(environment, draft);
    endpoint(environment, draft);
    protocol(environment, draft);
    if let Some((name, text)) = exporter_variable(environment, "HEADERS") {
        // Headers carry credentials: the warning does not repeat them.
        let headers = value::pairs(text, ',').and_then(|headers| {
            check_headers(&headers).map_err(|error| error.to_string())?;
            Ok(headers)
        });
        use_or_warn(draft, &name, None, headers, |draft, headers| draft.upload.headers = headers);
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

/// Looks for `OTEL_EXPORTER_OTLP_PROFILES_<suffix>`, then for `OTEL_EXPORTER_OTLP_<suffix>`. Returns the name
/// by which the user knows it, and its value.
fn exporter_variable<'a>(environment: &'a Environment, suffix: &str) -> Option<(String, &'a str)> {
    debug_assert!(SUFFIXES.contains(&suffix));
    [OWN, GENERAL].iter().find_map(|prefix| {
        let name = format!("{prefix}{suffix}");
        environment.get(&name).map(|value| (environment.shown(&name).to_owned(), value.trim()))
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

/// Reads the resource attributes. A mistake in one item discards the whole variable, as the specification
/// demands.
fn resource(environment: &Environment, draft: &mut Draft) {
    if let Some(text) = environment.get(RESOURCE_ATTRIBUTES) {
        let name = environment.shown(RESOURCE_ATTRIBUTES);
        use_or_warn(draft, name, Some(text), value::pairs(text, ','), |draft, pairs| {
            draft.add_resource(pairs)
        });
    }
    if let Some(name) = environment.get(SERVICE_NAME) {
        draft.add_resource([(attribute_keys::SERVICE_NAME.to_owned(), name.to_owned())]);
    }
}

/// Reads the endpoint. The profiles' own endpoint is used as it is; the signal's path is appended to the
/// general one. An unusable endpoint is an error unless a source of higher precedence names another.
fn endpoint(environment: &Environment, draft: &mut Draft) {
    let Some((name, text)) = exporter_variable(environment, "ENDPOINT") else { return };
    let is_own = environment.get(&format!("{OWN}ENDPOINT")).is_some();
    let endpoint = if is_own { Endpoint::signal(text) } else { Endpoint::base(text) };
    draft.destination = match endpoint {
        Ok(endpoint) => Destination::Collector(endpoint),
        Err(error) => Destination::Unusable(format!("{name}: {error}")),
    };
}

/// Reads the protocol. gRPC is not supported. Sending HTTP to a gRPC port would fail for ever, so `grpc` is
/// an error unless the user also names a format.
fn protocol(environment: &Environment, draft: &mut Draft) {
    let Some((name, text)) = exporter_variable(environment, "PROTOCOL") else { return };
    match text {
        "http/protobuf" => draft.options.encode.format = Format::Proto,
        "http/json" => draft.options.encode.format = Format::Json,
        "grpc" => {
            draft.unusable_protocol = Some(format!(
                "{name}=grpc: profiles are uploaded over HTTP; set \
                 OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=http/protobuf and \
                 OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://HOST:4318/v1development/profiles, or set the \
                 agent's options format=proto and endpoint=http://HOST:4318"
            ));
        }
        _ => {
            let known = "must be http/protobuf or http/json";
            draft.options.warnings.push(format!("{name}={text} is ignored: {known}"));
        }
    }
}

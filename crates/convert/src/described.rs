//! The recorded process, as resource attributes with the names of the semantic conventions.

use std::collections::HashMap;

use otlpprof_jfr::values::{Struct, Value};
use otlpprof_model::{Resource, ResourceValue, attribute_keys, label, percent_decoded, program_of};

/// The description of the process that the recordings contain.
#[derive(Debug, Default)]
pub(super) struct Described {
    /// The attributes from the current recording.
    current: HashMap<&'static str, ResourceValue>,
    /// The value of `OTEL_RESOURCE_ATTRIBUTES`, which lists further attributes.
    listed: Option<String>,
    /// The JVM's command, with the program's arguments.
    java_command: Option<String>,
    /// The property `java.class.path`.
    class_path: Option<String>,
    /// The attributes on which all earlier recordings agree; `None` before the first one has ended.
    agreed: Option<Vec<(String, ResourceValue)>>,
}

/// The most attributes that are taken from `OTEL_RESOURCE_ATTRIBUTES`. OpenTelemetry's SDKs take at most 128
/// for a span.
const MOST_LISTED: usize = 128;

/// The events that describe the process.
pub(super) const EVENTS: [&str; 4] = [
    "jdk.JVMInformation",
    "jdk.OSInformation",
    "jdk.InitialSystemProperty",
    "jdk.InitialEnvironmentVariable",
];

impl Described {
    /// Takes one of [`EVENTS`]. Arguments of the program and of the JVM are left out, as in the agent,
    /// because they often contain passwords.
    pub(super) fn note(&mut self, event: &str, values: &Struct<'_>) {
        let chunk = values.chunk();
        let text = |name| {
            let text = values.get(name).and_then(|value| chunk.text(value)).map(|text| text.into_owned());
            text.filter(|text| !text.is_empty())
        };
        match event {
            "jdk.JVMInformation" => {
                if let Some(pid) = values.get("pid").as_ref().and_then(Value::as_i64).filter(|&pid| pid > 0) {
                    self.current.insert(attribute_keys::PROCESS_PID, pid.into());
                }
                let described = [text("jvmName"), text("jvmVersion")];
                let described: Vec<_> = described.into_iter().flatten().collect();
                self.set(attribute_keys::PROCESS_RUNTIME_DESCRIPTION, Some(described.join(" ")));
                self.java_command = text("javaArguments").or(self.java_command.take());
            }
            "jdk.OSInformation" => {
                let lines = text("osVersion").unwrap_or_default();
                let lines: Vec<_> = lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
                self.set(attribute_keys::OS_DESCRIPTION, Some(lines.join("; ")));
            }
            "jdk.InitialSystemProperty" => match text("key").as_deref() {
                Some("java.runtime.name") => self.set(attribute_keys::PROCESS_RUNTIME_NAME, text("value")),
                Some("java.runtime.version" | "java.vm.version") => {
                    self.set(attribute_keys::PROCESS_RUNTIME_VERSION, text("value"));
                }
                Some("sun.java.command") => self.java_command = text("value").or(self.java_command.take()),
                Some("java.class.path") => self.class_path = text("value"),
                _ => {}
            },
            "jdk.InitialEnvironmentVariable" => match text("key").as_deref() {
                Some("OTEL_SERVICE_NAME") => self.set(attribute_keys::SERVICE_NAME, text("value")),
                Some("OTEL_RESOURCE_ATTRIBUTES") => self.listed = text("value"),
                Some("HOSTNAME") => self.set(attribute_keys::HOST_NAME, text("value")),
                _ => {}
            },
            _ => {}
        }
    }

    fn set(&mut self, key: &'static str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.current.insert(key, label(&value).into());
        }
    }

    /// Ends a recording. Only attributes on which all recordings agree remain.
    pub(super) fn end_recording(&mut self) {
        *self = Self { agreed: Some(self.common()), ..Self::default() };
    }

    /// The program's main class or jar.
    fn program(&self) -> Option<&str> {
        program_of(self.java_command.as_ref()?, self.class_path.as_deref()).map(label)
    }

    /// The attributes on which this recording and all earlier ones agree.
    fn common(&self) -> Vec<(String, ResourceValue)> {
        let mut resource = Resource::default();
        // The list `key1=value1,key2=value2`. The attributes set below, such as the service name, override
        // it.
        for (key, value) in
            self.listed.iter().flat_map(|list| list.split(',')).filter_map(split).take(MOST_LISTED)
        {
            resource.set(label(&decoded(key)), label(&decoded(value)));
        }
        let mut current: Vec<_> = self.current.iter().collect();
        current.sort_by_key(|(key, _)| **key);
        for (key, value) in current {
            resource.set(*key, value.clone());
        }
        if let Some(program) = self.program() {
            resource.set(attribute_keys::PROCESS_COMMAND, program);
        }
        let mut attributes = resource.attributes().to_vec();
        if let Some(agreed) = &self.agreed {
            attributes.retain(|attribute| agreed.contains(attribute));
        }
        attributes
    }

    /// The resource that all recordings describe.
    pub(super) fn resource(&self) -> Resource {
        let mut resource = Resource::default();
        resource.set(attribute_keys::SERVICE_NAME, "unknown_service:java");
        let is_between = self.current.is_empty() && self.listed.is_none() && self.java_command.is_none();
        let attributes = match &self.agreed {
            Some(agreed) if is_between => agreed.clone(),
            _ => self.common(),
        };
        for (key, value) in attributes {
            resource.set(key, value);
        }
        resource
    }
}

/// Percent-decodes a text of the list. Invalid text is returned unchanged.
fn decoded(text: &str) -> String {
    percent_decoded(text).unwrap_or_else(|_| text.to_owned())
}

fn split(pair: &str) -> Option<(&str, &str)> {
    let (key, value) = pair.split_once('=')?;
    Some((key.trim(), value.trim())).filter(|(key, value)| !key.is_empty() && !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: listed attributes were taken without decoding, unlike in the agent.
    #[test]
    fn listed_attributes_are_percent_decoded() {
        let listed = "a=x%2Cy%3dz,h%3Di= j%20k ,b=%E2%82%AC%25,c=plain,d=100%,e=%zz,f=%ff,g=%+1";
        let described = Described { listed: Some(listed.to_owned()), ..Described::default() };
        let expected = [
            ("a", "x,y=z"),
            ("h=i", "j k"),
            ("b", "\u{20ac}%"),
            ("c", "plain"),
            // Invalid escapes stay unchanged.
            ("d", "100%"),
            ("e", "%zz"),
            ("f", "%ff"),
            ("g", "%+1"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), ResourceValue::from(value)));
        assert_eq!(described.common(), expected);
    }
}

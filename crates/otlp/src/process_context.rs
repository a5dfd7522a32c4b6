//! The message of the process context (OTEP 4719, "Payload Format"), with the additions of OTEP 4947
//! ("Process Context: Thread-Local Reference Data").

use otlpprof_model::ResourceValue;
use otlpprof_model::attribute_keys::{THREADLOCAL_ATTRIBUTE_KEY_MAP, THREADLOCAL_SCHEMA_VERSION};
use prost::Message;

use super::wire::{AnyValue, ArrayValue, KeyValue, Resource, Value};

/// `opentelemetry.proto.processcontext.v1development.ProcessContext`.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessContext {
    /// The attributes of the process.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    /// Attributes of the context that are not attributes of the process.
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<KeyValue>,
}

/// The only schema version so far. OTEP 4947 says that its name will change.
pub const SCHEMA: &str = "tlsdesc_v1_dev";

/// Encodes the context of a process. `names` are the attribute names of threads' contexts; `None` means that
/// no contexts of threads are published.
pub fn encode_process_context(resource: &otlpprof_model::Resource, names: Option<&[String]>) -> Vec<u8> {
    let attributes = resource.attributes().iter().map(|(key, value)| {
        let value = match value {
            ResourceValue::Str(text) => Value::StringValue(text.clone()),
            ResourceValue::Int(number) => Value::IntValue(*number),
            ResourceValue::Bool(flag) => Value::BoolValue(*flag),
            ResourceValue::Double(number) => Value::DoubleValue(*number),
        };
        key_value(key, value)
    });
    let resource = Resource { attributes: attributes.collect(), ..Resource::default() };
    let mut attributes = Vec::new();
    if let Some(names) = names {
        let values = names.iter().map(|name| any(Value::StringValue(name.clone()))).collect();
        attributes.push(key_value(THREADLOCAL_SCHEMA_VERSION, Value::StringValue(SCHEMA.to_owned())));
        attributes.push(key_value(THREADLOCAL_ATTRIBUTE_KEY_MAP, Value::ArrayValue(ArrayValue { values })));
    }
    ProcessContext { resource: Some(resource), attributes }.encode_to_vec()
}

fn any(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn key_value(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(any(value)), ..KeyValue::default() }
}

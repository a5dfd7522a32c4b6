//! Support for the tests of the OTLP writer: random batches, and three independent views of a message.

#[path = "batches.rs"]
pub(crate) mod batches;
#[path = "json_view.rs"]
pub(crate) mod json_view;
#[path = "resolved.rs"]
pub(crate) mod resolved;
#[path = "rules.rs"]
pub(crate) mod rules;

use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use prost::Message;

/// The message as the independent implementation decodes it.
pub(crate) fn decode(bytes: &[u8]) -> ProfilesData {
    ProfilesData::decode(bytes).expect("the message is valid protobuf")
}

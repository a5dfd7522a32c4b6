//! Support for the tests of the OTLP writer: random batches, and three independent views of a message.

pub(crate) mod batches;
pub(crate) mod json_view;
pub(crate) mod resolved;
pub(crate) mod rules;

use opentelemetry_proto::tonic::profiles::v1development::ProfilesData;
use prost::Message;

/// The message as the independent implementation decodes it.
pub(crate) fn decode(bytes: &[u8]) -> ProfilesData {
    ProfilesData::decode(bytes).expect("the message is valid protobuf")
}

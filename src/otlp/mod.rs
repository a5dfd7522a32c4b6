//! OTLP profiles: writing, reading, validating.

mod dictionary;
mod encode;
mod field_writer;
mod fields;
pub mod frames;
mod framing;
mod functions;
mod halve;
pub mod json_indent;
mod json_payload;
mod json_text;
mod json_transcode;
mod json_tree;
mod json_write;
mod locations;
pub mod lookup;
mod message_write;
pub mod payload;
pub mod process_context;
mod profile_id;
mod proto_write;
pub mod read;
pub mod read_error;
mod read_json;
mod read_protobuf;
pub mod roots;
mod samples;
mod schema;
mod split;
pub mod validate;
pub mod wire;

pub use encode::{EncodeOptions, Format, NativeFrames, Parts, Payload, encode, encode_around};
pub use framing::{Form, is_gzip};
pub use halve::halve;
pub use split::{Message, Split, encode_split};

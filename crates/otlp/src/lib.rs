//! OTLP profiles: writing, reading, validating.
//!
//! Input: a [`Batch`](otlpprof_model::Batch) to write, or the bytes of files and request bodies. Output:
//! encoded messages; or the messages that were read, with the oddities of their encoding. Called by `agent`
//! and `cli`.
//!
//! | Messages | Duty |
//! |---|---|
//! | [`wire`] | the messages as Rust types, field by field as in the `.proto` files |
//! | `schema` | the table of all fields: numbers, types and names, for writers and readers |
//! | [`process_context`] | the message by which a process describes itself to readers outside |
//!
//! | Writing | Duty |
//! |---|---|
//! | `encode` | encodes a batch as one message |
//! | `encode_options` | the choices that a caller has |
//! | `split` | encodes a batch as messages of bounded size |
//! | `halve` | divides an encoded message that a collector finds too large |
//! | `message_write` | traverses one message, and decides the content of each field |
//! | `samples` | the shape, times and indices of a profile's samples |
//! | `dictionary` | the tables of one message, with the values that its samples refer to |
//! | `wire_index` | indices into these tables |
//! | `locations` | the location table while it grows |
//! | `functions` | the function table, and the decision which system names are written |
//! | `profile_id` | random profile ids |
//! | `field_writer` | the operations that an output format provides |
//! | `proto_write` | the format protobuf |
//! | `json_write` | the format OTLP/JSON |
//! | `json_transcode` | protobuf to OTLP/JSON |
//! | [`json_indent`] | white space in JSON, for people |
//!
//! | Reading | Duty |
//! |---|---|
//! | [`reader`] | streams the messages of a file, with one in memory at a time |
//! | [`read`] | reads and decodes all messages of bytes in memory |
//! | [`read_error`] | reasons why bytes cannot be read, and oddities of bytes that can |
//! | [`bounds`] | bounds on the bytes and parts of one message |
//! | `framing` | the form of a file, and where each message begins and ends |
//! | `json_document` | the end of a JSON document in text that arrives in parts |
//! | `read_protobuf` | checks the bytes of one message |
//! | `old_layout` | detects messages of OTLP v1.9 and older |
//! | `read_json` | OTLP/JSON to protobuf |
//! | `json_scalar` | JSON values that are neither lists nor objects, and base64 |
//! | [`encoded`] | a checked message that stays encoded: tables and resources |
//! | [`encoded_profiles`] | the scopes, profiles and samples of such a message |
//! | [`payload`] | finds and copies the original payloads of a file |
//! | [`found_payloads`] | the places of the payloads, and the reasons why none can be found |
//! | `json_payload` | finds original payloads in OTLP/JSON |
//! | `json_text` | scans JSON of any size as a stream |
//!
//! | Judging | Duty |
//! |---|---|
//! | [`lookup`] | lookups in the dictionary of a message |
//! | [`frames`] | the frames of a stack as text |
//! | [`roots`] | whether a stack reaches its root |
//! | [`validate`] | checks a file against every rule |

pub mod bounds;
mod dictionary;
mod encode;
mod encode_options;
pub mod encoded;
pub mod encoded_profiles;
mod field_writer;
pub mod found_payloads;
pub mod frames;
mod framing;
mod functions;
mod halve;
mod json_document;
pub mod json_indent;
mod json_payload;
mod json_scalar;
mod json_text;
mod json_transcode;
mod json_write;
mod locations;
pub mod lookup;
mod message_write;
mod old_layout;
pub mod payload;
pub mod process_context;
mod profile_id;
mod proto_write;
pub mod read;
pub mod read_error;
mod read_json;
mod read_protobuf;
pub mod reader;
pub mod roots;
mod samples;
mod schema;
mod split;
pub mod validate;
pub mod wire;
mod wire_index;

pub use encode::{Parts, encode, encode_around};
pub use encode_options::{EncodeOptions, Format, NativeFrames};
pub use framing::{Form, is_gzip};
pub use halve::halve;
pub use json_transcode::to_json;
pub use message_write::Payload;
pub use profile_id::new_profile_id;
pub use split::{Split, SplitMessage, encode_split};

/// The code of the README, which is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! The encoder, the readers and the validator of OTLP profiles, beside independent readers.

mod batches;
mod encode;
mod json_view;
mod python;
mod read;
mod resolved;
mod rules;
mod validate;
mod wire;

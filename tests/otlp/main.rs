//! The encoder, the readers and the validator of OTLP profiles, beside independent readers.

#[path = "../loud_support/mod.rs"]
mod loud_support;
#[path = "../otlp_fixture/mod.rs"]
mod otlp_fixture;
#[path = "../otlp_support/mod.rs"]
mod otlp_support;
#[path = "../profcheck_support/mod.rs"]
mod profcheck_support;
#[path = "../python_support/mod.rs"]
mod python_support;

mod encode;
mod python;
mod read;
mod validate;
mod wire;

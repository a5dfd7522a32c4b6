//! The encoder, the readers and the validator of OTLP profiles, beside independent readers.

#[path = "../../testkit/src/skipped.rs"]
mod loud_support;
#[path = "../../testkit/src/otlp_fixture.rs"]
mod otlp_fixture;
#[path = "independent.rs"]
mod otlp_support;
#[path = "../../testkit/src/profcheck.rs"]
mod profcheck_support;
#[path = "../../testkit/src/python.rs"]
mod python_support;

mod encode;
mod python;
mod read;
mod validate;
mod wire;

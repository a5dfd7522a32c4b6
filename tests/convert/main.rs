//! Recordings become samples of the model, stacks and contexts included.

#[path = "../../testkit/src/recordings/mod.rs"]
mod jfr_support;
#[path = "../../testkit/src/skipped.rs"]
mod loud_support;
#[path = "../../testkit/src/profcheck.rs"]
mod profcheck_support;

mod events;
mod frames;
mod readers;
mod settings;

//! Recordings become samples of the model, stacks and contexts included.

#[path = "../jfr_support/mod.rs"]
mod jfr_support;
#[path = "../loud_support/mod.rs"]
mod loud_support;
#[path = "../profcheck_support/mod.rs"]
mod profcheck_support;

mod events;
mod frames;
mod readers;
mod settings;

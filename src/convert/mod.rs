//! Recordings to profiles.
//!
//! In: recordings ([`crate::jfr`]). Out: a [`crate::model::Batch`], which `otlp` writes. Imports `core`, `jfr` and `model`;
//! `agent` and `cli` call it, and so may a program that uses this crate.
//!
//! | Module | Duty |
//! |---|---|
//! | [`feed`], [`packed`] | how recordings come in, compressed or not |
//! | [`converter`] | what becomes of each event |
//! | [`events`] | which event becomes which profile, and what its value is |
//! | [`requested`] | the events that a user asks for besides |
//! | [`reader`] | how the events of one type are read |
//! | [`identity`], [`alike`] | what makes events one sample, and what those have become that are alike |
//! | [`stacks`], [`labels`], [`constants`] | a chunk's stacks, threads, states and contexts to the model's |
//! | [`subjects`] | the classes that events are about |
//! | [`links`] | the trace that a sample's link names |
//! | [`libraries`] | the objects of remote frames |
//! | [`settings`], [`profiles`] | what samples stand for, and the profiles that they add to |
//! | [`described`] | resource attributes |
//! | [`growing`] | the files of a recording that a JVM is writing |
//! | [`witness`] | what is known of events from elsewhere |

mod alike;
mod constants;
mod converter;
mod described;
pub mod events;
mod feed;
mod growing;
mod identity;
mod labels;
mod libraries;
mod links;
mod packed;
mod profiles;
mod reader;
mod requested;
mod settings;
mod stacks;
mod subjects;
mod witness;

pub use converter::{ConvertOptions, EventCount, JfrToOtlp, Window};
pub use feed::AddError;
pub use growing::{Growing, Grown};
pub use links::Links;
pub use packed::{PackedError, Unpacked};
pub use requested::{InvalidEvent, RequestedEvent};
pub use witness::{EventThread, KnownContext, Labels, Occurrence, Witness};

//! Recordings to profiles.
//!
//! In: chunks of recordings ([`crate::jfr`]). Out: a [`crate::model::Batch`], which `otlp` writes. Imports `core`, `jfr`
//! and `model`; `cli` calls it.
//!
//! | Module | Duty |
//! |---|---|
//! | [`events`] | which event becomes which profile, and what its value is |
//! | [`stacks`] | a chunk's stacks and threads to the model's |
//! | [`converter`] | puts both together |

pub mod converter;
pub mod events;
mod stacks;

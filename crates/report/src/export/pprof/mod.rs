//! pprof's `profile.proto`, gzipped.
//!
//! In: selected samples, with the tables of their messages. Out: one pprof profile. Locations are translated
//! from OTLP's tables, so that inlined calls, addresses, mappings and build-ids are kept. Memory grows with
//! the number of different stacks and sets of labels. The messages of `profile.proto` are
//! [`otlpprof_pprof::messages`].
//!
//! | Module | Duty |
//! |---|---|
//! | [`tables`] | strings, functions, mappings, locations and stacks |
//! | [`labels`] | sets of labels |
//! | [`samples`] | the samples, summed by stack, labels and process |
//! | [`mod@write`] | the encoded profile |

pub mod labels;
pub mod samples;
pub mod tables;
pub mod write;

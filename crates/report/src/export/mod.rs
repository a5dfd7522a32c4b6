//! Selected samples in the formats of other tools. No format knows another.
//!
//! | Module | Duty |
//! |---|---|
//! | [`collapsed`] | collapsed stacks, as flame graph scripts read them |
//! | [`pprof`] | pprof's `profile.proto`, gzipped |
//! | [`speedscope`] | the file format of speedscope |
//! | [`firefox`] | the processed profile format of the Firefox Profiler |
//! | [`processes`] | the profiled processes, by number |
//! | [`thread_samples`] | samples by thread and time |

pub mod collapsed;
pub mod firefox;
pub mod pprof;
pub mod processes;
pub mod speedscope;
pub mod thread_samples;

//! Code that the test programs, benchmarks and examples share.
//!
//! No other package depends on this one, except as a dev-dependency.

pub use otlpprof_testkit_products::*;

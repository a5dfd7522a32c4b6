//! The JVMTI agent `libotlpprof.so`. Its entry points, and the native methods of its Java API, are those of
//! [`otlpprof_agent`].

pub use otlpprof_agent;

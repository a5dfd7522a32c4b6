//! The JVMTI agent `libotlpprof.so`. Its entry points, and the native methods of its Java API, come from
//! [`otlpprof_agent`].

pub use otlpprof_agent;

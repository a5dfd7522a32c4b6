//! The products of `native/` and `java/` that tests load. `build.rs` builds them. Each constant is a path.
//!
//! Only tests, benchmarks and examples depend on this package, so that a build of the agent and the command
//! compiles neither C nor Java. It depends on no other crate of the project. So the unit tests of any crate
//! may use it: with `otlpprof-testkit` they would link the crate under test twice.

/// The sample library `libddproftest.so`, compiled without frame pointers.
pub const DDPROFTEST: &str = env!("OTLPPROF_DDPROFTEST");

/// The sample library, compiled with frame pointers.
pub const DDPROFTEST_FP: &str = env!("OTLPPROF_DDPROFTEST_FP");

/// A library that ends a process whose signal handler allocates or blocks.
#[cfg(target_env = "gnu")]
pub const HANDLER_GUARD: &str = env!("OTLPPROF_HANDLER_GUARD");

/// An agent that moves a field in a VM's view of itself.
pub const VM_DAMAGE: &str = env!("OTLPPROF_VM_DAMAGE");

/// An allocator that unwinds, and detects misuse of the linker's lock.
pub const UNWINDING_MALLOC: &str = env!("OTLPPROF_UNWINDING_MALLOC");

/// A library that allocates native memory in known places.
pub const ALLOCATING: &str = env!("OTLPPROF_ALLOCATING");

/// A `clock_gettime` that jumps where the profiler calls it.
pub const JUMPING_CLOCK: &str = env!("OTLPPROF_JUMPING_CLOCK");

/// A library to be loaded and unloaded in turn with [`PLUGIN_B`], which is similar.
pub const PLUGIN_A: &str = env!("OTLPPROF_PLUGIN_A");

/// See [`PLUGIN_A`].
pub const PLUGIN_B: &str = env!("OTLPPROF_PLUGIN_B");

/// The folder of the compiled Java API; empty where the build found no JDK.
pub const API_CLASSES: &str = env!("OTLPPROF_API_CLASSES");

/// The folder of the compiled Java test programs; empty where the build found no JDK.
pub const TEST_CLASSES: &str = env!("OTLPPROF_TEST_CLASSES");

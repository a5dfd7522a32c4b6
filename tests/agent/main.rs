//! The agent in real JVMs. Each file runs Java programs of its own under the agent.

#[path = "../../testkit/src/java_run/mod.rs"]
mod agent_support;
#[path = "../../testkit/src/attach.rs"]
mod attach_support;
#[path = "endpoints.rs"]
mod engine_contexts_support;
#[path = "estimate.rs"]
mod estimate_support;
#[path = "../../testkit/src/fault_server.rs"]
mod export_support;
#[path = "../../testkit/src/jdk.rs"]
mod jdk_support;
#[path = "../../testkit/src/skipped.rs"]
mod loud_support;
#[path = "../../testkit/src/otlp_fixture.rs"]
mod otlp_fixture;
#[path = "outside_reader.rs"]
mod outside_reader;
#[path = "../../testkit/src/profcheck.rs"]
mod profcheck_support;
#[path = "../../testkit/src/python.rs"]
mod python_support;
#[path = "../../testkit/src/separate_symbols.rs"]
mod separate_symbols_support;
#[path = "../../testkit/src/stolen_time.rs"]
mod steal_support;
#[path = "../../testkit/src/unnamed_frames.rs"]
mod symbolize_support;

mod accounting;
mod all_engines;
mod artifacts;
mod attribution;
mod broken_stacks;
mod budget;
mod by_timers;
mod clocks;
mod containers;
mod contexts;
mod damaged_descriptions;
mod engine_contexts;
mod engine_selection;
mod engines;
mod events;
mod hand_written;
mod interposer;
mod interpreted_leaves;
mod jar;
mod java_frames;
mod javac;
mod kernel_frames;
mod lifecycle;
mod live_objects;
mod loader_lock;
mod lock_owners;
mod native_frames;
mod native_memory;
mod objects;
mod opentelemetry;
mod options;
mod output;
mod perf_events;
mod published_contexts;
mod rate_limits;
mod recording;
mod redefined;
mod rivals;
mod sandboxed;
mod selection;
mod situations;
mod small_stacks;
mod stream;
mod symbolized;
mod symbols_beside;
mod thread_names;
mod threads;
mod traced_methods;
mod upload;
mod virtual_contexts;
mod virtual_monitors;
mod virtual_threads;
mod vm_end;
mod walkers;
mod wall_sums;

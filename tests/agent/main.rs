//! The agent in real JVMs. Each file runs Java programs of its own under the agent.

#[path = "../agent_support/mod.rs"]
mod agent_support;
#[path = "../attach_support/mod.rs"]
mod attach_support;
#[path = "../engine_contexts_support/mod.rs"]
mod engine_contexts_support;
#[path = "../estimate_support/mod.rs"]
mod estimate_support;
#[path = "../export_support/mod.rs"]
mod export_support;
#[path = "../jdk_support/mod.rs"]
mod jdk_support;
#[path = "../loud_support/mod.rs"]
mod loud_support;
#[path = "../otlp_fixture/mod.rs"]
mod otlp_fixture;
#[path = "../outside_reader/mod.rs"]
mod outside_reader;
#[path = "../profcheck_support/mod.rs"]
mod profcheck_support;
#[path = "../python_support/mod.rs"]
mod python_support;
#[path = "../separate_symbols_support/mod.rs"]
mod separate_symbols_support;
#[path = "../steal_support/mod.rs"]
mod steal_support;
#[path = "../symbolize_support/mod.rs"]
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

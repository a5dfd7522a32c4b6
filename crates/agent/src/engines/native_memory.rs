//! Native memory: drives `sampling::native_memory` for a session, and reports allocations that were not
//! freed.

use otlpprof_aggregate::{Alive, Remains};
use otlpprof_core::engine::Engine;
use otlpprof_model::types;
use otlpprof_options::Options;
use otlpprof_sampling::native_memory::{self, NativeMemoryConfig};
use otlpprof_signal::native_memory::{BLOCKS, MAPPINGS};

use super::description::{EngineDescription, EssentialParts, both, started};
use crate::guards::Guard;

/// The engine `nativemem`.
pub(super) static ENGINE: EngineDescription = EngineDescription {
    profiles_of_survivors: |options| {
        both([&types::NATIVELEAK_SPACE, &types::NATIVELEAK_OBJECTS], options.nativemem.unwrap_or(1))
    },
    add_alive,
    ..EngineDescription::of(EssentialParts {
        is_on: |options| options.nativemem.is_some(),
        turn_off: |options| options.nativemem = None,
        profiles: |options| {
            both([&types::NATIVEMEM_SPACE, &types::NATIVEMEM_OBJECTS], options.nativemem.unwrap_or(1))
        },
        start: |_, options| started([start(options)]),
    })
};

/// Starts sampling native allocations, if requested.
fn start(options: &Options) -> Option<Guard> {
    let interval_bytes = options.nativemem?;
    let config = NativeMemoryConfig { interval_bytes, remembers: options.nativemem_leaks };
    if !native_memory::start(config) {
        log::warn!("nativemem is off: the dynamic linker does not find the C library's functions");
        return None;
    }
    Some(Guard::new(native_memory::stop))
}

/// Adds the sampled memory that has not been freed.
fn add_alive(options: &Options, alive: &mut Alive) {
    if !options.nativemem_leaks {
        return;
    }
    BLOCKS.for_each(|number| {
        alive.insert((Engine::NativeMemory, number), Remains::ALL);
    });
    MAPPINGS.for_each(|number, share| {
        alive.insert((Engine::NativeMemory, number), Remains { share, ..Remains::ALL });
    });
}

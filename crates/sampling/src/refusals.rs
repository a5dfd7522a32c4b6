//! The system's refusals that cost an engine samples, for the line at a session's end.

use parking_lot::Mutex;

use otlpprof_core::engine::Engine;

/// The first refusal of each engine since the session began.
static FIRST: Mutex<[Option<String>; Engine::COUNT]> = Mutex::new([const { None }; Engine::COUNT]);

/// Forgets the refusals of earlier sessions.
pub fn forget() {
    *FIRST.lock() = [const { None }; Engine::COUNT];
}

/// Notes that the system has refused something without which the engine takes no sample of a thread.
pub(super) fn note(engine: Engine, reason: impl FnOnce() -> String) {
    FIRST.lock()[engine as usize].get_or_insert_with(reason);
}

/// The engine's first refusal since the session began, in words.
pub fn first(engine: Engine) -> Option<String> {
    FIRST.lock()[engine as usize].clone()
}

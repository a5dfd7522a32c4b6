//! Guards: values that stop, when they are dropped, whatever has been started for a session.

/// Stops something when it is dropped. The stop attaches the current thread to the VM where it needs a JNI
/// environment. Once the VM is ending, it calls no function of the VM that may wait for a thread
/// (`jvm::live_phase`).
pub(super) struct Guard(Option<Box<dyn FnOnce() + Send>>);

impl Guard {
    /// A guard that calls `stop`.
    pub(super) fn new(stop: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(stop)))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(stop) = self.0.take() {
            stop();
        }
    }
}

/// Guards in the order in which they were made. They are dropped in reverse order: a later one may rely on
/// the earlier ones.
#[derive(Default)]
pub(super) struct Guards(Vec<Guard>);

impl Guards {
    pub(super) fn push(&mut self, guard: Guard) {
        self.0.push(guard);
    }

    /// Drops all guards.
    pub(super) fn stop(&mut self) {
        while let Some(guard) = self.0.pop() {
            drop(guard);
        }
    }
}

impl Extend<Guard> for Guards {
    fn extend<T: IntoIterator<Item = Guard>>(&mut self, guards: T) {
        self.0.extend(guards);
    }
}

impl Drop for Guards {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn guards_are_dropped_in_reverse_order() {
        let stopped = Arc::new(Mutex::new(Vec::new()));
        let mut guards = Guards::default();
        for number in 0..3 {
            let stopped = stopped.clone();
            guards.push(Guard::new(move || stopped.lock().push(number)));
        }
        guards.stop();
        assert_eq!(*stopped.lock(), [2, 1, 0]);
        // Each has been dropped once.
        drop(guards);
        assert_eq!(*stopped.lock(), [2, 1, 0]);
    }
}

//! Threads that work on items for a caller that takes the results in an order of its own.
//!
//! In: items, and the work. Out: for each item a channel that gets the result. The caller keeps the channels
//! in the order of the items, so that nothing depends on the number of threads.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use parking_lot::Mutex;

/// Threads that turn items into results. They end when this value is dropped.
#[derive(Debug)]
pub struct Workers<I, R> {
    give: Sender<(I, Sender<R>)>,
}

impl<I, R> Workers<I, R> {
    /// Starts this number of threads, or as many of them as the system allows.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start<'scope, F>(
        scope: &'scope Scope<'scope, '_>,
        threads: usize,
        work: &'scope F,
    ) -> io::Result<Self>
    where
        F: Fn(I) -> R + Sync,
        I: Send + 'scope,
        R: Send + 'scope,
    {
        let (give, items) = channel::<(I, Sender<R>)>();
        let items = Arc::new(Mutex::new(items));
        for thread in 0..threads {
            let items = items.clone();
            let spawned = thread::Builder::new().spawn_scoped(scope, move || {
                loop {
                    let next = items.lock().recv();
                    let Ok((item, done)) = next else { break };
                    // The caller may no longer want the result.
                    let _ = done.send(work(item));
                }
            });
            // One thread suffices.
            if thread == 0 {
                spawned?;
            }
        }
        Ok(Self { give })
    }

    /// Gives an item to the threads. The channel gets the result, or is closed if the work has panicked.
    pub fn give(&self, item: I) -> Receiver<R> {
        let (done, result) = channel();
        // If all threads have panicked, the channel is closed.
        let _ = self.give.send((item, done));
        result
    }
}

/// The number of processors, at most `most`.
pub fn processors(most: usize) -> usize {
    thread::available_parallelism().map_or(1, |processors| processors.get().min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_has_its_own_result() {
        for threads in [1, 3] {
            let results: Vec<_> = thread::scope(|scope| {
                let workers = Workers::start(scope, threads, &|item: u64| item * item).unwrap();
                let given: Vec<_> = (0..100).map(|item| workers.give(item)).collect();
                given.into_iter().map(|result| result.recv().unwrap()).collect()
            });
            assert_eq!(results, (0..100).map(|item| item * item).collect::<Vec<_>>());
        }
    }
}

//! Threads that work on items for a caller that takes the results in an order of its own.
//!
//! In: items, and the work. Out: for each item a channel that gets the result. The caller keeps the channels
//! in the order of the items, so that nothing depends on the number of threads.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use parking_lot::Mutex;

/// Threads that turn items into results. They end when this value is dropped.
#[derive(Debug)]
pub struct Workers<I, R> {
    give: Sender<(I, Sender<R>)>,
    /// The number of threads.
    threads: usize,
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
        let mut started = 0;
        for _ in 0..threads {
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
            match spawned {
                Err(error) if started == 0 => return Err(error),
                Err(_) => break,
                Ok(_) => started += 1,
            }
        }
        Ok(Self { give, threads: started })
    }

    /// Gives an item to the threads. The channel gets the result, or is closed if the work has panicked.
    pub fn give(&self, item: I) -> Receiver<R> {
        let (done, result) = channel();
        // If all threads have panicked, the channel is closed.
        let _ = self.give.send((item, done));
        result
    }

    /// Takes the results in the order of the items. One item more than threads may be worked on, so that no
    /// thread waits while the caller takes a result.
    pub fn in_order(self) -> InOrder<I, R> {
        InOrder { most: self.threads + 1, workers: self, results: VecDeque::new() }
    }
}

/// Items that are being worked on, with their results in the order of the items. A caller that takes a result
/// once there are too many items bounds their memory.
#[derive(Debug)]
pub struct InOrder<I, R> {
    workers: Workers<I, R>,
    results: VecDeque<Receiver<R>>,
    /// The most items whose results are not taken.
    most: usize,
}

impl<I, R> InOrder<I, R> {
    /// Whether a result should be taken before another item is given.
    pub fn is_full(&self) -> bool {
        self.results.len() >= self.most
    }

    /// Gives an item to the threads.
    pub fn give(&mut self, item: I) {
        self.results.push_back(self.workers.give(item));
    }

    /// Waits for the result of the first item whose result has not been taken; `None` if there is no such
    /// item.
    ///
    /// # Errors
    /// If the work has panicked.
    pub fn take(&mut self) -> io::Result<Option<R>> {
        let Some(result) = self.results.pop_front() else { return Ok(None) };
        result.recv().map(Some).map_err(|_| io::Error::other("a thread has panicked"))
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

    #[test]
    fn results_are_in_the_order_of_the_items_and_bounded_in_number() {
        let square = |item: u64| item * item;
        for threads in [1, 3] {
            let mut results = Vec::new();
            thread::scope(|scope| {
                let mut items = Workers::start(scope, threads, &square).unwrap().in_order();
                for item in 0..100 {
                    while items.is_full() {
                        results.extend(items.take().unwrap());
                    }
                    items.give(item);
                }
                assert_eq!(results.len(), 100 - (threads + 1));
                while let Some(result) = items.take().unwrap() {
                    results.push(result);
                }
            });
            assert_eq!(results, (0..100).map(|item| item * item).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_is_an_error_of_its_item_alone() {
        let work = |item: u64| assert_ne!(item, 1);
        // The panic ends the scope too, once all threads have ended.
        let ended = std::panic::catch_unwind(|| {
            thread::scope(|scope| {
                let mut items = Workers::start(scope, 2, &work).unwrap().in_order();
                (0..3).for_each(|item| items.give(item));
                let taken: Vec<_> = (0..3).map(|_| items.take().is_ok()).collect();
                assert_eq!(taken, [true, false, true]);
            });
        });
        assert!(ended.is_err());
    }
}

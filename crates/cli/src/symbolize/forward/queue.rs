//! The bounded queue of received messages whose frames are to be resolved.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::collect::message::Encoding;

/// The most messages that wait.
const MESSAGES: usize = 256;
/// The most bytes of the messages that wait.
const BYTES: usize = 64 << 20;

/// A received message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) body: Vec<u8>,
    pub(super) encoding: Encoding,
    /// The number of its samples.
    pub(super) samples: u64,
}

/// Messages in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Pending>>,
    /// Bytes of the waiting messages, and of the taken one.
    bytes: usize,
    /// The message in progress.
    taken: Option<Arc<Pending>>,
    is_closed: bool,
}

impl Queue {
    /// Appends a message. Returns false if there is no room, or the queue is closed.
    pub(super) fn push(&self, message: Pending) -> bool {
        let mut state = self.state.lock();
        let bytes = state.bytes + message.body.len();
        if state.is_closed || state.waiting.len() >= MESSAGES || bytes > BYTES {
            return false;
        }
        state.bytes = bytes;
        state.waiting.push_back(Arc::new(message));
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Waits for a message and takes it. `None` once the queue is closed and empty.
    pub(super) fn take(&self) -> Option<Arc<Pending>> {
        let mut state = self.state.lock();
        loop {
            if let Some(message) = state.waiting.pop_front() {
                state.taken = Some(Arc::clone(&message));
                return Some(message);
            }
            if state.is_closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Ends the work on the message that was taken. Returns false if the message was seized meanwhile.
    pub(super) fn settle(&self) -> bool {
        let mut state = self.state.lock();
        let taken = state.taken.take();
        state.bytes -= taken.as_ref().map_or(0, |message| message.body.len());
        drop(state);
        self.changed.notify_all();
        taken.is_some()
    }

    /// Accepts no message from now on.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until all messages are settled. Returns false if some are left at `until`.
    pub(super) fn wait_until_settled(&self, until: Instant) -> bool {
        let mut state = self.state.lock();
        while !state.waiting.is_empty() || state.taken.is_some() {
            if self.changed.wait_until(&mut state, until).timed_out() {
                return state.waiting.is_empty() && state.taken.is_none();
            }
        }
        true
    }

    /// Whether the message in progress was seized.
    pub(super) fn is_seized(&self) -> bool {
        self.state.lock().taken.is_none()
    }

    /// Takes all messages, the one in progress included.
    pub(super) fn seize(&self) -> Vec<Arc<Pending>> {
        let mut state = self.state.lock();
        state.bytes = 0;
        let taken = state.taken.take();
        taken.into_iter().chain(state.waiting.drain(..)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Pending {
        Pending { body: vec![0; bytes], encoding: Encoding::Protobuf, samples: 1 }
    }

    #[test]
    fn messages_beyond_the_bounds_are_not_taken() {
        let queue = Queue::default();
        assert!(queue.push(message(BYTES - 1)) && queue.push(message(1)));
        assert!(!queue.push(message(1)));
        assert_eq!(queue.take().map(|message| message.body.len()), Some(BYTES - 1));
        assert!(!queue.push(message(1)), "the message in progress counts");
        assert!(queue.settle() && queue.push(message(1)));
        let queue = Queue::default();
        assert!((0..MESSAGES).all(|_| queue.push(message(1))));
        assert!(!queue.push(message(1)));
    }

    #[test]
    fn every_message_is_settled_or_seized_once() {
        let queue = Queue::default();
        for bytes in 1..=3 {
            assert!(queue.push(message(bytes)));
        }
        let taken = queue.take().unwrap();
        queue.close();
        assert!(!queue.push(message(4)));
        assert!(!queue.wait_until_settled(Instant::now()));
        let seized: Vec<_> = queue.seize().iter().map(|message| message.body.len()).collect();
        assert_eq!((taken.body.len(), seized), (1, vec![1, 2, 3]));
        assert!(!queue.settle(), "seized");
        assert_eq!(queue.take(), None);
        assert!(queue.wait_until_settled(Instant::now()));
    }
}

//! The bounded queue between the submitters and the thread that sends.

use std::collections::VecDeque;

use super::message::OutgoingMessage;
use super::stats::Tally;

/// The most that may wait in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Messages.
    pub(super) messages: usize,
    /// Bytes of memory that the messages' bodies occupy.
    pub(super) bytes: usize,
}

/// Messages in the order of their submission. The message being sent counts against the limits too.
#[derive(Debug)]
pub(super) struct Queue {
    limits: Limits,
    waiting: VecDeque<OutgoingMessage>,
    waiting_bytes: usize,
    /// Memory in bytes of the message that was taken and is not yet settled.
    taken_bytes: Option<usize>,
}

impl Queue {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, waiting: VecDeque::new(), waiting_bytes: 0, taken_bytes: None }
    }

    /// Appends a message. Returns the messages that no longer fit: the oldest, or the new message itself if
    /// not even an empty queue has room for it.
    pub(super) fn push(&mut self, message: OutgoingMessage) -> Vec<OutgoingMessage> {
        let bytes = message.body.capacity();
        if !self.fits(1, bytes, 0, 0) {
            return vec![message];
        }
        let mut dropped = Vec::new();
        while !self.fits(1, bytes, self.waiting.len(), self.waiting_bytes) {
            dropped.extend(self.pop());
        }
        self.waiting_bytes += bytes;
        self.waiting.push_back(message);
        dropped
    }

    /// Whether a message of `bytes` bytes could be appended without dropping another.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.fits(1, bytes, self.waiting.len(), self.waiting_bytes)
    }

    /// Whether a message of `bytes` bytes would fit into an empty queue.
    pub(super) fn has_ever_room(&self, bytes: usize) -> bool {
        1 <= self.limits.messages && bytes <= self.limits.bytes
    }

    /// Puts the pieces of the message that was settled last at the front, in their order. Returns the pieces
    /// that do not fit, which are the first ones of the message.
    pub(super) fn push_front(&mut self, pieces: Vec<OutgoingMessage>) -> Vec<OutgoingMessage> {
        let mut dropped = Vec::new();
        for piece in pieces.into_iter().rev() {
            let bytes = piece.body.capacity();
            if self.fits(1, bytes, self.waiting.len(), self.waiting_bytes) {
                self.waiting_bytes += bytes;
                self.waiting.push_front(piece);
            } else {
                dropped.push(piece);
            }
        }
        dropped
    }

    /// Takes the oldest message to send it. It counts against the limits until [`settle`](Self::settle).
    pub(super) fn take(&mut self) -> Option<OutgoingMessage> {
        let message = self.pop()?;
        self.taken_bytes = Some(message.body.capacity());
        Some(message)
    }

    /// Ends the accounting of the taken message, which was sent or lost.
    pub(super) fn settle(&mut self) {
        self.taken_bytes = None;
    }

    /// The sum of the waiting messages.
    pub(super) fn tally(&self) -> Tally {
        self.waiting.iter().map(Tally::of).sum()
    }

    /// Takes all waiting messages.
    pub(super) fn drain(&mut self) -> Vec<OutgoingMessage> {
        self.waiting_bytes = 0;
        self.waiting.drain(..).collect()
    }

    fn pop(&mut self) -> Option<OutgoingMessage> {
        let message = self.waiting.pop_front()?;
        self.waiting_bytes -= message.body.capacity();
        Some(message)
    }

    /// Whether `messages` messages of `bytes` bytes fit beside the given waiting ones and the taken one.
    fn fits(&self, messages: usize, bytes: usize, waiting: usize, waiting_bytes: usize) -> bool {
        let taken = usize::from(self.taken_bytes.is_some());
        waiting + taken + messages <= self.limits.messages
            && waiting_bytes + self.taken_bytes.unwrap_or(0) + bytes <= self.limits.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::ContentType;
    use super::*;

    fn message(bytes: usize) -> OutgoingMessage {
        OutgoingMessage { body: vec![0; bytes], content_type: ContentType::Protobuf, samples: bytes as u64 }
    }

    fn sizes(messages: Vec<OutgoingMessage>) -> Vec<usize> {
        messages.iter().map(|message| message.body.len()).collect()
    }

    #[test]
    fn the_oldest_goes_when_messages_or_bytes_run_out() {
        let mut queue = Queue::new(Limits { messages: 3, bytes: 100 });
        assert!(queue.push(message(10)).is_empty());
        assert!(queue.push(message(20)).is_empty());
        assert!(queue.push(message(30)).is_empty());
        assert_eq!(sizes(queue.push(message(5))), [10]);
        assert_eq!(sizes(queue.push(message(70))), [20, 30]);
        assert_eq!(sizes(queue.drain()), [5, 70]);
    }

    #[test]
    fn a_message_that_never_fits_displaces_no_other() {
        let mut queue = Queue::new(Limits { messages: 3, bytes: 100 });
        queue.push(message(10));
        assert_eq!(sizes(queue.push(message(101))), [101]);
        assert_eq!(sizes(queue.drain()), [10]);
    }

    #[test]
    fn the_message_being_sent_counts() {
        let mut queue = Queue::new(Limits { messages: 3, bytes: 100 });
        queue.push(message(60));
        assert_eq!(queue.take().map(|message| message.body.len()), Some(60));
        assert_eq!(sizes(queue.push(message(41))), [41]);
        assert!(queue.push(message(40)).is_empty());
        queue.settle();
        assert!(queue.push(message(60)).is_empty());
    }

    #[test]
    fn pieces_come_first_and_in_order() {
        let mut queue = Queue::new(Limits { messages: 4, bytes: 100 });
        queue.push(message(50));
        queue.push(message(40));
        queue.take();
        queue.settle();
        assert!(queue.push_front(vec![message(26), message(27)]).is_empty());
        assert_eq!(sizes(queue.drain()), [26, 27, 40]);

        queue.push(message(50));
        queue.push(message(40));
        queue.take();
        queue.settle();
        assert_eq!(sizes(queue.push_front(vec![message(31), message(32)])), [31]);
        assert_eq!(sizes(queue.drain()), [32, 40]);
    }
}

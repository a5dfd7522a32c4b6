//! State shared by the submitters and the exporter's thread: the queue, the counters, the phase of the
//! shutdown.
//!
//! One lock guards all of the state. It is held for moments only, and never during a request.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::super::message::OutgoingMessage;
use super::super::notice::Notices;
use super::super::queue::{Limits, Queue};
use super::super::stats::{Loss, PartialSuccess, Tally, UploadStats};

/// The longest time for a shutdown. Longer ones are cut to it.
const LONGEST_SHUTDOWN: Duration = Duration::from_secs(24 * 3600);

/// The kinds of log lines. The first line of each kind is logged as a warning.
#[derive(Clone, Copy)]
pub(super) enum Notice {
    /// The first message lost for that reason.
    Lost(Loss),
    Busy,
    Unreachable,
    Broken,
    Partial,
}

impl Notice {
    const fn kind(self) -> u32 {
        match self {
            Self::Lost(loss) => loss as u32,
            Self::Busy => 32,
            Self::Unreachable => 33,
            Self::Broken => 34,
            Self::Partial => 35,
        }
    }
}

/// Whether a message has room in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is room.
    Free,
    /// There is no room yet, but messages leave the queue, so there may be room later.
    NotYet,
    /// Waiting does not help: the collector does not accept messages, the message is larger than the queue,
    /// or the shutdown has begun.
    Hopeless,
}

/// The outcome of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// The wait is over, and the work may go on.
    Done,
    /// The shutdown's deadline has passed, or comes before the end of the wait.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Pending messages are sent until this time.
    Closing(Instant),
    /// Nothing is pending. Results that the thread still reports are not counted.
    Closed,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    queue: Queue,
    stats: UploadStats,
    /// The message that the thread is working on.
    taken: Option<Tally>,
    /// A collector asked to receive no request before this time.
    not_before: Option<Instant>,
    thread_ended: bool,
    /// Whether the latest attempt failed.
    failing: bool,
}

/// The shared state; see the module's comment.
#[derive(Debug)]
pub(super) struct Ledger {
    state: Mutex<State>,
    /// Notifies the thread: there is a message to send, or the phase changed.
    work: Condvar,
    /// Notifies the shutdown that nothing is pending or the thread has ended. Notifies submitters that the
    /// queue has room, or that no room is to be expected.
    progress: Condvar,
    /// The endpoint, for log lines.
    endpoint: String,
    notices: Notices,
}

impl Ledger {
    pub(super) fn new(messages: usize, bytes: usize, endpoint: String) -> Self {
        let state = State {
            phase: Phase::Running,
            queue: Queue::new(Limits { messages, bytes }),
            stats: UploadStats::default(),
            taken: None,
            not_before: None,
            thread_ended: false,
            failing: false,
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            progress: Condvar::new(),
            endpoint,
            notices: Notices::default(),
        }
    }

    // Called by submitters.

    pub(super) fn submit(&self, mut message: OutgoingMessage) {
        // The queue counts the memory that a body occupies. A body that grew while it was encoded occupies up
        // to twice its length.
        message.body.shrink_to_fit();
        let mut state = self.state.lock();
        state.stats.submitted += Tally::of(&message);
        if state.phase != Phase::Running {
            state.lost(Tally::of(&message), Loss::Closed);
            return;
        }
        let dropped = state.queue.push(message);
        state.dropped(&dropped);
        drop(state);
        self.work.notify_one();
        if !dropped.is_empty() {
            self.notice(Notice::Lost(Loss::QueueFull), "the queue is full, the oldest message is dropped");
        }
    }

    /// Waits until the queue has room for a message of `bytes` bytes; see [`Room`].
    pub(super) fn wait_for_room(&self, bytes: usize, until: Instant) -> Room {
        let mut state = self.state.lock();
        loop {
            if state.queue.has_room(bytes) {
                return Room::Free;
            }
            if state.phase != Phase::Running || state.failing || !state.queue.has_ever_room(bytes) {
                return Room::Hopeless;
            }
            if self.progress.wait_until(&mut state, until).timed_out() {
                return Room::NotYet;
            }
        }
    }

    pub(super) fn stats(&self) -> UploadStats {
        let state = self.state.lock();
        let mut stats = state.stats.clone();
        stats.pending = state.queue.tally() + state.taken.unwrap_or_default();
        stats
    }

    /// Starts the shutdown and waits for its end. Returns true if all messages are settled and the thread is
    /// ending, and false if the remaining messages were given up.
    pub(super) fn close(&self, within: Duration) -> bool {
        let mut state = self.state.lock();
        if state.phase == Phase::Running {
            state.phase = Phase::Closing(Instant::now() + within.min(LONGEST_SHUTDOWN));
            self.work.notify_one();
        }
        while let Phase::Closing(deadline) = state.phase {
            if state.thread_ended {
                break;
            }
            if self.progress.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.phase = Phase::Closed;
        let mut rest: Tally = state.queue.drain().iter().map(Tally::of).sum();
        rest += state.taken.take().unwrap_or_default();
        state.lost(rest, Loss::ShutDown);
        let thread_ended = state.thread_ended;
        drop(state);
        self.work.notify_one();
        if rest.messages > 0 {
            let line = format!("{} messages are dropped at the shutdown's deadline", rest.messages);
            self.notice(Notice::Lost(Loss::ShutDown), &line);
        }
        thread_ended
    }

    pub(super) fn wait_for_end(&self, within: Duration) {
        let deadline = Instant::now() + within;
        let mut state = self.state.lock();
        while !state.thread_ended && !self.progress.wait_until(&mut state, deadline).timed_out() {}
    }

    // Called by the thread.

    /// Waits for the next message. Returns `None` when the thread is to end.
    pub(super) fn take(&self) -> Option<OutgoingMessage> {
        let mut state = self.state.lock();
        loop {
            match state.phase {
                Phase::Closed => return None,
                Phase::Closing(deadline) if Instant::now() >= deadline => return None,
                _ => {}
            }
            if let Some(message) = state.queue.take() {
                state.taken = Some(Tally::of(&message));
                return Some(message);
            }
            if state.phase != Phase::Running {
                return None;
            }
            self.work.wait(&mut state);
        }
    }

    pub(super) fn sent(&self, tally: Tally) {
        let mut state = self.state.lock();
        state.failing = false;
        if state.settle() {
            state.stats.sent += tally;
        }
        drop(state);
        self.progress.notify_all();
    }

    /// Notes that an attempt failed and will be repeated. Submitters stop waiting for room.
    pub(super) fn failed(&self) {
        self.state.lock().failing = true;
        self.progress.notify_all();
    }

    /// Counts the taken message as lost. The caller logs the reason.
    pub(super) fn lose(&self, tally: Tally, loss: Loss) {
        let mut state = self.state.lock();
        if state.settle() {
            state.lost(tally, loss);
        }
        drop(state);
        self.progress.notify_all();
    }

    /// Replaces the taken message by its pieces.
    pub(super) fn split(&self, tally: Tally, mut pieces: Vec<OutgoingMessage>) {
        pieces.iter_mut().for_each(|piece| piece.body.shrink_to_fit());
        let mut state = self.state.lock();
        if !state.settle() {
            return;
        }
        state.stats.split += tally;
        state.stats.submitted += pieces.iter().map(Tally::of).sum();
        let dropped = state.queue.push_front(pieces);
        state.dropped(&dropped);
        drop(state);
        self.progress.notify_all();
        if !dropped.is_empty() {
            self.notice(Notice::Lost(Loss::QueueFull), "the queue is full, pieces of a message are dropped");
        }
    }

    pub(super) fn partial(&self, partial: PartialSuccess) {
        let rejected = u64::try_from(partial.rejected_profiles).unwrap_or(0);
        let line = match rejected {
            0 => format!("accepted a message, with a warning: {}", partial.error_message),
            _ => format!(
                "accepted a message but rejected {rejected} of its profiles: {}",
                partial.error_message
            ),
        };
        let mut state = self.state.lock();
        state.stats.partial_answers += 1;
        state.stats.partial_rejected_profiles =
            state.stats.partial_rejected_profiles.saturating_add(rejected);
        state.stats.last_partial = Some(partial);
        drop(state);
        self.notice(Notice::Partial, &line);
    }

    pub(super) fn attempt(&self, again: bool, wire_bytes: usize) {
        let mut state = self.state.lock();
        state.stats.retries += u64::from(again);
        state.stats.wire_bytes += wire_bytes as u64;
    }

    /// Logs a line about the endpoint, as a warning once per kind. The lock is not held, since a logger may
    /// be slow.
    pub(super) fn notice(&self, notice: Notice, line: &str) {
        self.notices.warn(notice.kind(), &format!("{}: {line}", self.endpoint));
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state.lock().phase != Phase::Running
    }

    /// `limit`, or the time left until the shutdown's deadline if that is shorter. `None` if no time is left.
    pub(super) fn time_left(&self, limit: Duration) -> Option<Duration> {
        let left = match self.state.lock().phase {
            Phase::Running => limit,
            Phase::Closing(deadline) => limit.min(deadline.saturating_duration_since(Instant::now())),
            Phase::Closed => Duration::ZERO,
        };
        (!left.is_zero()).then_some(left)
    }

    /// Lets no request of any message start before `wait` is over.
    pub(super) fn throttle(&self, wait: Duration) {
        self.state.lock().not_before = Some(Instant::now() + wait);
    }

    /// Waits until requests may start.
    pub(super) fn wait_for_throttle(&self) -> Pause {
        let mut state = self.state.lock();
        match state.not_before {
            Some(until) => self.pause(&mut state, until),
            None => Pause::Done,
        }
    }

    /// Waits until the time for the next attempt.
    pub(super) fn wait_for_retry(&self, until: Instant) -> Pause {
        self.pause(&mut self.state.lock(), until)
    }

    pub(super) fn ended(&self) {
        self.state.lock().thread_ended = true;
        self.progress.notify_all();
    }

    fn pause(&self, state: &mut MutexGuard<'_, State>, until: Instant) -> Pause {
        loop {
            match state.phase {
                Phase::Closed => return Pause::Over,
                Phase::Closing(deadline) if until >= deadline => return Pause::Over,
                _ if Instant::now() >= until => return Pause::Done,
                _ => self.work.wait_until(state, until),
            };
        }
    }
}

impl State {
    fn lost(&mut self, tally: Tally, loss: Loss) {
        self.stats.lost[loss as usize] += tally;
    }

    fn dropped(&mut self, messages: &[OutgoingMessage]) {
        self.lost(messages.iter().map(Tally::of).sum(), Loss::QueueFull);
    }

    /// Ends the accounting of the taken message. Returns false if the shutdown has already accounted for the
    /// message.
    fn settle(&mut self) -> bool {
        self.queue.settle();
        self.taken.take().is_some()
    }
}

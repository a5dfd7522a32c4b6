//! What submitters and the exporter's thread share: the queue, the counters, the state of the shutdown.
//!
//! One lock guards all of it, held for moments only and never while anything is sent.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::super::Message;
use super::super::notice::Notices;
use super::super::queue::{Limits, Queue};
use super::super::stats::{Loss, PartialSuccess, Tally, UploadStats};

/// A longer time for a shutdown is taken as this.
const LONGEST_SHUTDOWN: Duration = Duration::from_secs(24 * 3600);

/// What is logged once.
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
    /// It has.
    Free,
    /// It has not, and messages leave: later it may have.
    NotYet,
    /// Waiting is no use: the collector does not take messages, it is larger than the queue, or the end has come.
    Hopeless,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Go on.
    Done,
    /// The shutdown's deadline comes first, or is over.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// What is pending is being sent, until then.
    Closing(Instant),
    /// Nothing is pending; whatever the thread may still be doing no longer counts.
    Closed,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    queue: Queue,
    stats: UploadStats,
    /// The message that the thread is working on.
    taken: Option<Tally>,
    /// A collector asked for no request before this.
    not_before: Option<Instant>,
    thread_ended: bool,
    /// The latest attempt failed.
    failing: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Ledger {
    state: Mutex<State>,
    /// Something to send, or the phase changed: for the thread.
    work: Condvar,
    /// Nothing is pending, or the thread ended: for the shutdown. Room in the queue, or none to be hoped for: for
    /// submitters.
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

    // For submitters.

    pub(super) fn submit(&self, mut message: Message) {
        // What it occupies is what counts, and a body that grew while it was encoded occupies up to twice its length.
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

    /// Waits until a message of so many bytes has room in the queue; see [`Room`].
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

    /// Starts the shutdown and waits for its end: true if all was settled and the thread is leaving, false if
    /// the rest had to be given up.
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
            let line = format!("{} messages are given up at the shutdown's deadline", rest.messages);
            self.notice(Notice::Lost(Loss::ShutDown), &line);
        }
        thread_ended
    }

    pub(super) fn wait_for_end(&self, within: Duration) {
        let deadline = Instant::now() + within;
        let mut state = self.state.lock();
        while !state.thread_ended && !self.progress.wait_until(&mut state, deadline).timed_out() {}
    }

    // For the thread.

    /// Waits for the next message; none when the thread is to end.
    pub(super) fn take(&self) -> Option<Message> {
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

    /// An attempt failed and is to be repeated: nobody waits for room meanwhile.
    pub(super) fn failed(&self) {
        self.state.lock().failing = true;
        self.progress.notify_all();
    }

    /// Counts the taken message as lost. Who knows why logs it.
    pub(super) fn lose(&self, tally: Tally, loss: Loss) {
        let mut state = self.state.lock();
        if state.settle() {
            state.lost(tally, loss);
        }
        drop(state);
        self.progress.notify_all();
    }

    /// Replaces the taken message by its pieces.
    pub(super) fn split(&self, tally: Tally, mut pieces: Vec<Message>) {
        pieces.iter_mut().for_each(|piece| piece.body.shrink_to_fit());
        let mut state = self.state.lock();
        if !state.settle() {
            return;
        }
        state.stats.split += tally;
        state.stats.submitted += pieces.iter().map(Tally::of).sum();
        let dropped = state.queue.put_in_front(pieces);
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
            0 => format!("took a message, with a warning: {}", partial.error_message),
            _ => format!("took a message but {rejected} profiles of it: {}", partial.error_message),
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

    /// Logs a line about the endpoint, once per kind. The lock is not held: a logger may be slow.
    pub(super) fn notice(&self, notice: Notice, line: &str) {
        self.notices.warn(notice.kind(), &format!("{}: {line}", self.endpoint));
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state.lock().phase != Phase::Running
    }

    /// `limit`, or what is left until the shutdown's deadline if that is less; none if nothing is left.
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

    /// Waits before an attempt is repeated.
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

    fn dropped(&mut self, messages: &[Message]) {
        self.lost(messages.iter().map(Tally::of).sum(), Loss::QueueFull);
    }

    /// The taken message leaves; false if the shutdown has already accounted for it.
    fn settle(&mut self) -> bool {
        self.queue.settle();
        self.taken.take().is_some()
    }
}

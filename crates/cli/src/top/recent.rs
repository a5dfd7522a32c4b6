//! The profiles of the last seconds, summed.
//!
//! Messages of a stream are cumulative: each has the sums since its interval's start, and replaces the one
//! before with an equal start. The difference between two of them is what has happened in between. Messages
//! of a file have the sums of an interval of their own. The window consists of such slices of time. Older
//! slices leave it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_report::measure::Measure;
use otlpprof_report::sample_reader::{SampleForm, SampleReader};
use otlpprof_report::selection::Selection;

use super::message_sums::{MeasureValues, MessageSums, StackValues, add, values_of};

/// The bytes that frames and stacks may occupy. Beyond them the window begins again.
const MOST_BYTES: usize = 256 << 20;

/// How messages follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Succession {
    /// A message has the sums since its interval's start, and replaces the one before of the same interval.
    Cumulative,
    /// Each message has an interval of its own.
    Separate,
}

/// The sums in the window.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// By measure. Of states, such as the live heap, the last ones.
    pub(super) values: MeasureValues,
    /// The time that the sums cover, in nanoseconds.
    pub(super) covered_ns: u64,
    /// The service's name.
    pub(super) service: Option<String>,
}

impl Totals {
    /// The measures, by name.
    pub(super) fn measures(&self) -> Vec<&Measure> {
        let mut measures: Vec<_> = self.values.iter().map(|(measure, ..)| measure).collect();
        measures.sort_unstable();
        measures.dedup();
        measures
    }

    /// The values of a measure, over all processes.
    pub(super) fn of(&self, measure: &Measure) -> StackValues {
        let mut sums = StackValues::default();
        for (_, _, values) in self.values.iter().filter(|(known, ..)| known == measure) {
            add(&mut sums, values, 1);
        }
        sums
    }
}

/// A part of the window.
#[derive(Debug)]
struct Slice {
    from_ns: u64,
    to_ns: u64,
    values: MeasureValues,
}

/// The last seconds.
pub(super) struct Recent<'s> {
    selection: &'s Selection,
    /// The frames and stacks that sums refer to.
    pub(super) reader: SampleReader<'s>,
    window_ns: u64,
    succession: Succession,
    /// The last message of the running interval.
    running: Option<MessageSums>,
    slices: VecDeque<Slice>,
    /// The end of the last message's time, and the moment at which the message has arrived.
    last: Option<(u64, Instant)>,
    pub(super) totals: Totals,
}

impl<'s> Recent<'s> {
    pub(super) fn new(selection: &'s Selection, window: Duration, succession: Succession) -> Self {
        Self {
            selection,
            reader: new_reader(selection),
            window_ns: u64::try_from(window.as_nanos()).unwrap_or(u64::MAX),
            succession,
            running: None,
            slices: VecDeque::new(),
            last: None,
            totals: Totals::default(),
        }
    }

    /// Lets time pass since the last message of a stream: a program without samples gives no messages.
    pub(super) fn pass_time(&mut self) {
        if let (Succession::Cumulative, Some((end_ns, arrived))) = (self.succession, self.last) {
            let elapsed_ns = u64::try_from(arrived.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.remove_old(end_ns.saturating_add(elapsed_ns), 0);
        }
    }

    /// Adds a message. Returns whether the window has begun again, since there were too many different
    /// stacks: nodes and frames then have other numbers than before.
    pub(super) fn add(&mut self, message: &EncodedMessage) -> bool {
        let mut sums = MessageSums::read(&mut self.reader, message);
        let begins_again = self.reader.is_full();
        if begins_again {
            *self = Self::new(self.selection, Duration::from_nanos(self.window_ns), self.succession);
            sums = MessageSums::read(&mut self.reader, message);
        }
        let is_first = self.last.is_none();
        self.last = Some((sums.end_ns, Instant::now()));
        self.totals.service = sums.service.take().or(self.totals.service.take());
        self.keep_states(&mut sums.values);
        let slice = match self.succession {
            Succession::Separate => {
                Some(Slice { from_ns: sums.start_ns, to_ns: sums.end_ns, values: sums.values })
            }
            Succession::Cumulative => self.since_last(sums, is_first),
        };
        if let Some(slice) = slice {
            self.add_slice(slice);
        }
        begins_again
    }

    /// Takes the states out of a message's values: they replace earlier ones.
    fn keep_states(&mut self, values: &mut MeasureValues) {
        let states = values.extract_if(.., |(measure, ..)| measure.is_snapshot());
        for (measure, process, values) in states {
            *values_of(&mut self.totals.values, &measure, process) = values;
        }
    }

    /// The difference between a message and the one before. `None` if the first message tells nothing about
    /// the window.
    fn since_last(&mut self, sums: MessageSums, is_first: bool) -> Option<Slice> {
        let MessageSums { start_ns: from_ns, end_ns: to_ns, .. } = sums;
        let last = self.running.take().filter(|last| last.start_ns == from_ns);
        let Some(mut last) = last else {
            // An interval that began long before this command.
            let is_old = is_first && to_ns.saturating_sub(from_ns) > self.window_ns;
            let values = if is_old { MeasureValues::new() } else { sums.values.clone() };
            self.running = Some(sums);
            return (!is_old).then_some(Slice { from_ns, to_ns, values });
        };
        if last.end_ns == to_ns {
            // A further part of a message that was too large.
            for (measure, process, values) in &sums.values {
                add(values_of(&mut last.values, measure, *process), values, 1);
            }
            self.running = Some(last);
            return Some(Slice { from_ns: to_ns, to_ns, values: sums.values });
        }
        let mut values = sums.values.clone();
        for (measure, process, before) in &last.values {
            add(values_of(&mut values, measure, *process), before, -1);
        }
        self.running = Some(sums);
        Some(Slice { from_ns: last.end_ns, to_ns, values })
    }

    fn add_slice(&mut self, slice: Slice) {
        for (measure, process, values) in &slice.values {
            add(values_of(&mut self.totals.values, measure, *process), values, 1);
        }
        self.slices.push_back(slice);
        let end_ns = self.slices.iter().map(|slice| slice.to_ns).max().unwrap_or(0);
        // The new slice stays, however long it is.
        self.remove_old(end_ns, 1);
    }

    /// Removes what has left the window at `now_ns`, but for the last `kept` slices.
    fn remove_old(&mut self, now_ns: u64, kept: usize) {
        let since_ns = now_ns.saturating_sub(self.window_ns);
        while self.slices.len() > kept && self.slices[0].to_ns <= since_ns {
            let Some(old) = self.slices.pop_front() else { break };
            for (measure, process, values) in &old.values {
                add(values_of(&mut self.totals.values, measure, *process), values, -1);
            }
        }
        let begin_ns = self.slices.iter().map(|slice| slice.from_ns).min().unwrap_or(now_ns);
        let end_ns = self.slices.iter().map(|slice| slice.to_ns).max().unwrap_or(now_ns);
        self.totals.covered_ns = end_ns.saturating_sub(begin_ns);
    }
}

fn new_reader(selection: &Selection) -> SampleReader<'_> {
    let form = SampleForm { threads: true, ..SampleForm::default() };
    SampleReader::new(selection, form).with_bound(MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use otlpprof_model::{AttributeSetId, Frame, FrameType, LinkId};
    use otlpprof_model::{Batch, Profile, Resource, SampleIdentity, Scope, Tables, types};
    use otlpprof_otlp::{EncodeOptions, encode_split};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A message about the time from `start` to `end`, in seconds, with counts of samples by function.
    fn message(start: u64, end: u64, counts: &[(&str, i64)]) -> EncodedMessage {
        message_of_ns(start * SECOND, end * SECOND, counts)
    }

    fn message_of_ns(start_ns: u64, end_ns: u64, counts: &[(&str, i64)]) -> EncodedMessage {
        let mut tables = Tables::new();
        let mut profile = Profile::new(&types::CPU, 1_000);
        (profile.start_unix_nano, profile.duration_nano) = (start_ns, end_ns - start_ns);
        for (name, count) in counts {
            let function = tables.named_function(name);
            let frame = tables.frames.intern(Frame::Marker { function, frame_type: FrameType::Jvm });
            let stack = tables.stacks.intern(&[frame]);
            let identity = SampleIdentity { stack, attributes: AttributeSetId::EMPTY, link: LinkId::NONE };
            profile.add(identity, *count, None);
        }
        let batch =
            Batch { resource: Resource::default(), scope: Scope::default(), tables, profiles: vec![profile] };
        let split = encode_split(&batch, &EncodeOptions::default(), 1 << 20);
        EncodedMessage::of_protobuf(split.messages[0].bytes.clone()).unwrap()
    }

    /// The counts in the window, by function, and the seconds that they cover.
    fn counts(recent: &Recent<'_>) -> (Vec<(String, i64)>, u64) {
        let totals = &recent.totals;
        let mut counts = Vec::new();
        for measure in totals.measures() {
            for (node, value) in totals.of(measure) {
                let frame = recent.reader.frames.get(recent.reader.tree.frame(node));
                counts.push((frame.name.to_string(), value / 1_000));
            }
        }
        counts.sort_unstable();
        (counts, totals.covered_ns / SECOND)
    }

    fn expected(counts: &[(&str, i64)], seconds: u64) -> (Vec<(String, i64)>, u64) {
        (counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(), seconds)
    }

    fn after(succession: Succession, messages: &[EncodedMessage]) -> (Vec<(String, i64)>, u64) {
        let selection = Selection::default();
        let mut recent = Recent::new(&selection, Duration::from_secs(10), succession);
        for message in messages {
            assert!(!recent.add(message));
        }
        counts(&recent)
    }

    #[test]
    fn a_cumulative_message_replaces_the_one_before() {
        let first = [message(100, 101, &[("a", 1)]), message(100, 102, &[("a", 3), ("b", 4)])];
        assert_eq!(after(Succession::Cumulative, &first), expected(&[("a", 3), ("b", 4)], 2));
        let [one, two] = first;
        // The interval's end, and the next interval.
        let all = [one, two, message(100, 105, &[("a", 5), ("b", 4)]), message(105, 106, &[("b", 2)])];
        assert_eq!(after(Succession::Cumulative, &all), expected(&[("a", 5), ("b", 6)], 6));
    }

    /// Regression: messages were matched by the nearness of their starts. Once the time of day had been set
    /// back by about an interval, the next interval replaced the one before.
    #[test]
    fn an_interval_that_starts_near_another_is_another() {
        let messages = [
            message(100, 102, &[("a", 2)]),
            message_of_ns(100 * SECOND + 1_000, 101 * SECOND, &[("a", 1)]),
            message_of_ns(100 * SECOND + 1_000, 103 * SECOND, &[("a", 3)]),
        ];
        assert_eq!(after(Succession::Cumulative, &messages), expected(&[("a", 5)], 3));
    }

    #[test]
    fn messages_in_parts_are_added() {
        let parts = [
            message(100, 101, &[("a", 1), ("b", 1)]),
            message(100, 102, &[("a", 3)]),
            message(100, 102, &[("b", 2), ("c", 1)]),
            message(102, 103, &[("c", 1)]),
        ];
        assert_eq!(after(Succession::Cumulative, &parts), expected(&[("a", 3), ("b", 2), ("c", 2)], 3));
    }

    #[test]
    fn old_slices_leave_the_window() {
        let messages = [(100, 101), (100, 108), (100, 112), (112, 119)]
            .map(|(start, end)| message(start, end, &[("a", i64::try_from(end - start).unwrap())]));
        assert_eq!(after(Succession::Cumulative, &messages[..3]), expected(&[("a", 11)], 11));
        assert_eq!(after(Succession::Cumulative, &messages), expected(&[("a", 11)], 11));
        let separate = [message(100, 109, &[("a", 9)]), message(109, 118, &[("b", 9)])];
        assert_eq!(after(Succession::Separate, &separate), expected(&[("a", 9), ("b", 9)], 18));
    }

    #[test]
    fn a_program_that_has_become_idle_leaves_the_window() {
        let selection = Selection::default();
        let mut recent = Recent::new(&selection, Duration::from_secs(10), Succession::Cumulative);
        recent.add(&message(100, 105, &[("a", 5)]));
        recent.remove_old(114 * SECOND, 0);
        assert_eq!(counts(&recent), expected(&[("a", 5)], 5));
        recent.remove_old(115 * SECOND, 0);
        assert_eq!(counts(&recent), expected(&[], 0));
    }

    #[test]
    fn an_interval_that_began_long_before_counts_from_now_on() {
        let messages = [message(100, 150, &[("a", 50)]), message(100, 151, &[("a", 51), ("b", 1)])];
        assert_eq!(after(Succession::Cumulative, &messages[..1]), expected(&[], 0));
        assert_eq!(after(Succession::Cumulative, &messages), expected(&[("a", 1), ("b", 1)], 1));
    }
}

//! Events that the program reports, besides samples: requests that have ended, tasks that have waited in a
//! queue, and durations of the program's own.
//!
//! Equal events of an interval are summed, as samples are. Two events are equal if everything known of them
//! is, including the context of the thread that reported them. At the interval's end they become profiles of
//! their own types, next to those of the samples. Each event has a single frame, under which viewers of flame
//! graphs show it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use otlpprof_context::dictionary::DICTIONARY;
use otlpprof_context::slot_names::SLOT_NAMES;
use otlpprof_core::context::ContextRecord;
use otlpprof_model::{AttributeId, Frame, Link, Profile, ProfileType, SampleIdentity, Tables, types};

/// The most different events of an interval.
const MOST_EVENTS: usize = 65_536;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EventKind {
    /// A request has ended.
    TraceRoot,
    /// A task has waited in a queue.
    Queue,
    /// A duration that the program has named.
    Duration,
}

impl EventKind {
    const ALL: [Self; 3] = [Self::TraceRoot, Self::Queue, Self::Duration];

    fn count_type(self) -> &'static ProfileType {
        match self {
            Self::TraceRoot => &types::TRACE_ROOTS,
            Self::Queue => &types::QUEUE_COUNT,
            Self::Duration => &types::EVENT_COUNT,
        }
    }

    fn time_type(self) -> Option<&'static ProfileType> {
        match self {
            Self::TraceRoot => None,
            Self::Queue => Some(&types::QUEUE_TIME),
            Self::Duration => Some(&types::EVENT_TIME),
        }
    }
}

/// An event without its summed values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProgramEvent {
    pub(super) kind: EventKind,
    /// The name of the event's frame.
    pub(super) frame: String,
    /// Text attributes as key and value. Later ones override earlier ones.
    pub(super) texts: Vec<(String, String)>,
    /// Attributes with numeric values, as key and value.
    pub(super) numbers: Vec<(&'static str, i64)>,
    pub(super) link: Link,
}

impl ProgramEvent {
    /// Adds the context of the thread that reports the event: its labels, and its span if the event has none.
    pub(super) fn take_context(&mut self, context: &ContextRecord) {
        if self.link == Link::default() && context.has_span() {
            self.link = Link { trace_id: context.trace_id, span_id: context.span_id };
        }
        let names = SLOT_NAMES.list();
        let values = DICTIONARY.values();
        let labels = names.iter().zip(context.slots);
        let labels = labels.filter_map(|(name, slot)| Some((name.clone(), values.get(slot)?.to_owned())));
        self.texts.splice(..0, labels);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: i64,
    time_ns: i64,
}

/// The events of an interval.
#[derive(Default)]
pub(super) struct Events {
    sums: Mutex<HashMap<ProgramEvent, Sums>>,
    recorded: AtomicU64,
    dropped: AtomicU64,
}

impl Events {
    /// Records an event and its time. Returns `false` if the event is new and there are already as many
    /// different events as allowed.
    pub(super) fn record(&self, event: ProgramEvent, time_ns: i64) -> bool {
        let mut sums = self.sums.lock();
        if sums.len() >= MOST_EVENTS && !sums.contains_key(&event) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.recorded.fetch_add(1, Ordering::Relaxed);
        let sums = sums.entry(event).or_default();
        sums.count += 1;
        sums.time_ns = sums.time_ns.saturating_add(time_ns.max(0));
        true
    }

    /// Whether no event is recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.sums.lock().is_empty()
    }

    /// The number of events recorded since the session began, and of those dropped for want of room.
    pub(super) fn counts(&self) -> [(&'static str, u64); 2] {
        [
            ("otlpprof.events.recorded", self.recorded.load(Ordering::Relaxed)),
            ("otlpprof.events.dropped", self.dropped.load(Ordering::Relaxed)),
        ]
    }

    /// Takes the events as profiles, without empty ones.
    pub(super) fn take(&self, tables: &mut Tables) -> Vec<Profile> {
        let taken = std::mem::take(&mut *self.sums.lock());
        let mut profiles: Vec<(EventKind, Profile, Option<Profile>)> = EventKind::ALL
            .into_iter()
            .map(|kind| {
                let time = kind.time_type().map(|time| Profile::new(time, 1));
                (kind, Profile::new(kind.count_type(), 1), time)
            })
            .collect();
        for (event, sums) in taken {
            let identity = identity(tables, &event);
            for (_, count, time) in profiles.iter_mut().filter(|(kind, ..)| *kind == event.kind) {
                count.add(identity, sums.count, None);
                if let Some(time) = time {
                    time.add(identity, sums.time_ns, None);
                }
            }
        }
        let all = profiles.into_iter().flat_map(|(_, count, time)| [Some(count), time]);
        all.flatten().filter(|profile| !profile.is_empty()).collect()
    }
}

fn identity(tables: &mut Tables, event: &ProgramEvent) -> SampleIdentity {
    let function = tables.named_function(otlpprof_model::label(&event.frame));
    let frame = tables.frames.intern(Frame::java(function, 0));
    let texts = event.texts.iter().map(|(key, value)| (key, otlpprof_model::label(value)));
    let mut attributes: Vec<AttributeId> =
        texts.map(|(key, value)| tables.string_attribute(key, value)).collect();
    attributes.extend(event.numbers.iter().map(|(key, value)| tables.int_attribute(key, *value, "")));
    SampleIdentity {
        stack: tables.stacks.intern(&[frame]),
        attributes: tables.attribute_set(&attributes),
        link: tables.links.intern(event.link),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, frame: &str) -> ProgramEvent {
        let texts = vec![("event.name".to_owned(), frame.to_owned())];
        ProgramEvent {
            kind,
            frame: frame.to_owned(),
            texts,
            numbers: vec![("thread.id", 1)],
            link: Link::default(),
        }
    }

    #[test]
    fn equal_events_are_summed_and_each_kind_has_its_profiles() {
        let events = Events::default();
        assert!(events.is_empty());
        for (kind, name, time_ns) in [
            (EventKind::Duration, "a", 5),
            (EventKind::Duration, "a", 7),
            (EventKind::Duration, "b", -3),
            (EventKind::TraceRoot, "/", 0),
        ] {
            assert!(events.record(event(kind, name), time_ns));
        }
        let profiles = events.take(&mut Tables::new());
        let found: Vec<_> = profiles
            .iter()
            .map(|profile| {
                let mut values: Vec<_> = profile.samples().iter().map(|sample| sample.value).collect();
                values.sort_unstable();
                (profile.profile_type.name, values)
            })
            .collect();
        assert_eq!(
            found,
            [("trace-roots", vec![1]), ("event-count", vec![1, 2]), ("event-time", vec![0, 12])]
        );
        assert!(events.is_empty() && events.take(&mut Tables::new()).is_empty());
    }

    #[test]
    fn events_without_room_are_counted_and_known_events_are_still_summed() {
        let events = Events::default();
        for number in 0..MOST_EVENTS {
            assert!(events.record(event(EventKind::Duration, &number.to_string()), 1));
        }
        assert!(!events.record(event(EventKind::Duration, "one more"), 1));
        assert!(events.record(event(EventKind::Duration, "7"), 1));
        let expected = MOST_EVENTS as u64 + 1;
        assert_eq!(events.counts(), [("otlpprof.events.recorded", expected), ("otlpprof.events.dropped", 1)]);
    }
}

//! Recordings to one batch of profiles.

use std::collections::HashMap;

use super::events::{CONVERSIONS, Conversion};
use super::stacks::ChunkConstants;
use crate::jfr::chunk::Chunk;
use crate::jfr::error::JfrError;
use crate::jfr::projection::Projection;
use crate::jfr::recording::Chunks;
use crate::jfr::types::{Field, TypeIndex, Unit};
use crate::jfr::values::{Struct, Value};
use crate::model::{AttributeSetId, Batch, LinkId, Profile, ProfileType, SampleIdentity, StackId};

/// Collects recordings, and makes one batch of them in which each sample is the sum over all.
#[derive(Debug, Default)]
pub struct JfrToOtlp {
    batch: Batch,
    /// The position of the profile of each type in the batch.
    profiles: HashMap<(&'static str, &'static str), usize>,
    with_times: bool,
    /// From the first chunk's start to the last one's end, in nanoseconds since 1970-01-01 UTC.
    window: Option<(i64, i64)>,
    /// Events of each type: converted, and not.
    counts: HashMap<String, EventCount>,
}

/// What became of the events of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCount {
    /// Those that became samples.
    pub converted: u64,
    /// Those that could have but have no stack.
    pub without_stack: u64,
    /// Those that no profile is made of.
    pub other: u64,
}

/// How the events of a chunk's type are read.
struct Reader {
    fields: Projection<6>,
    /// With the unit of the value's field.
    conversions: Vec<(&'static Conversion, Option<Unit>)>,
}

impl JfrToOtlp {
    /// Nothing yet. `with_times`: each event's time is kept, for outputs that have them.
    pub fn new(with_times: bool) -> Self {
        Self { with_times, ..Self::default() }
    }

    /// Adds a recording, or several that follow one another.
    ///
    /// # Errors
    /// The first thing that is wrong in it; what could be read besides has been added.
    pub fn add(&mut self, recording: &[u8]) -> Result<(), JfrError> {
        let mut first_problem = Ok(());
        for chunk in Chunks::new(recording) {
            let added = chunk.and_then(|chunk| {
                let problem = chunk.problem();
                let added = self.add_chunk(chunk.contents());
                problem.map_or(added, Err)
            });
            first_problem = first_problem.and(added);
        }
        first_problem
    }

    fn add_chunk(&mut self, chunk: Chunk<'_>) -> Result<(), JfrError> {
        let header = chunk.header();
        let start = header.clock.start_unix_nano;
        let mut latest = start.saturating_add(header.duration_ns.max(0));
        let period = sampling_periods(chunk);
        let mut readers: HashMap<TypeIndex, Option<Reader>> = HashMap::new();
        let mut constants = ChunkConstants::default();
        for event in chunk.events() {
            let event = event?;
            let of = event.type_index();
            let reader = readers.entry(of).or_insert_with(|| Reader::new(chunk, of));
            let name = &*event.type_of().name;
            let Some(reader) = reader else {
                self.count_of(name).other += 1;
                continue;
            };
            let values = event.values();
            let fields = reader.fields.read(&values)?;
            let at =
                fields[0].and_then(|value| value.as_i64()).map_or(start, |at| header.clock.unix_nano(at));
            latest = latest.max(at);
            let tables = &mut self.batch.tables;
            let stack = fields[1].and_then(|stack| constants.stack(chunk, stack, tables));
            let Some(stack) = stack.filter(|&stack| stack != StackId::EMPTY) else {
                self.count_of(name).without_stack += 1;
                continue;
            };
            self.count_of(name).converted += 1;
            let thread = fields[2..5].iter().flatten().next();
            let attributes = match thread {
                Some(&thread) => constants.thread(chunk, thread, &mut self.batch.tables),
                None => AttributeSetId::EMPTY,
            };
            let identity = SampleIdentity { stack, attributes, link: LinkId::NONE };
            for &(conversion, unit) in &reader.conversions {
                let value = conversion.value.map_or(Some(1), |field| value_of(&values, field, unit));
                let Some(value) = value.filter(|&value| value > 0) else { continue };
                let period = period.get(conversion.event).copied().unwrap_or(conversion.period);
                let time = self.with_times.then(|| u64::try_from(at).unwrap_or(0));
                self.profile(conversion, period).add(identity, value, time);
            }
        }
        let (first, last) = self.window.unwrap_or((start, latest));
        self.window = Some((first.min(start), last.max(latest)));
        Ok(())
    }

    fn count_of(&mut self, event: &str) -> &mut EventCount {
        if !self.counts.contains_key(event) {
            self.counts.insert(event.to_owned(), EventCount::default());
        }
        // SANITY: it has just been looked for, and put there.
        self.counts.get_mut(event).expect("a count")
    }

    fn profile(&mut self, conversion: &Conversion, period: i64) -> &mut Profile {
        // Samples of different clocks do not add up, nor do two estimates of the same allocations; all else of one type
        // does.
        let stands_alone = conversion.period != 1 || conversion.event == "jdk.ObjectAllocationSample";
        let source = if stands_alone { conversion.event } else { "" };
        let of: &'static ProfileType = conversion.profile_type;
        let Batch { profiles, tables, .. } = &mut self.batch;
        let position = *self.profiles.entry((of.name, source)).or_insert_with(|| {
            let mut profile = Profile::new(of, if conversion.period == 1 { 1 } else { period });
            if stands_alone {
                let event = tables.string_attribute("otlpprof.jfr.event", source);
                profile.attributes = tables.attribute_set(&[event]);
            }
            profiles.push(profile);
            profiles.len() - 1
        });
        &mut profiles[position]
    }

    /// What became of the events so far, by type.
    pub fn counts(&self) -> &HashMap<String, EventCount> {
        &self.counts
    }

    /// The profiles of all that was added.
    pub fn finish(mut self) -> Batch {
        let (start, end) = self.window.unwrap_or_default();
        for profile in &mut self.batch.profiles {
            profile.start_unix_nano = u64::try_from(start).unwrap_or(0);
            // The last event's time lies inside.
            profile.duration_nano = u64::try_from(end.saturating_sub(start)).unwrap_or(0).saturating_add(1);
        }
        self.batch
    }
}

impl Reader {
    /// How to read this type, if something becomes of it.
    fn new(chunk: Chunk<'_>, of: TypeIndex) -> Option<Self> {
        let event_type = chunk.metadata().get(of);
        let matching = CONVERSIONS.iter().filter(|conversion| conversion.event == &*event_type.name);
        let conversions: Vec<_> = matching
            .filter(|conversion| conversion.value.is_none_or(|field| event_type.field(field).is_some()))
            .map(|conversion| {
                let field = conversion.value.and_then(|name| event_type.field(name));
                (conversion, field.and_then(Field::unit))
            })
            .collect();
        let names = ["startTime", "stackTrace", "sampledThread", "eventThread", "thread", ""];
        (!conversions.is_empty()).then(|| Self { fields: Projection::new(chunk, of, names), conversions })
    }
}

/// The value of an event's field, in the unit of the profile.
fn value_of(values: &Struct<'_>, field: &str, unit: Option<Unit>) -> Option<i64> {
    let number = values.get(field)?.as_i64()?;
    Some(match unit {
        Some(Unit::TimespanTicks) => values.chunk().header().clock.duration_ns(number),
        Some(Unit::TimespanNanos(nanos)) => number.saturating_mul(nanos),
        _ => number,
    })
}

/// The periods of sampled events in nanoseconds, by the settings that the recording itself notes.
fn sampling_periods(chunk: Chunk<'_>) -> HashMap<&'static str, i64> {
    let mut periods = HashMap::new();
    for event in chunk.events().map_while(Result::ok) {
        if &*event.type_of().name != "jdk.ActiveSetting" {
            continue;
        }
        let values = event.values();
        let text = |name| values.get(name).and_then(|value| chunk.text(value));
        if text("name").as_deref() != Some("period") {
            continue;
        }
        let id = values.get("id").as_ref().and_then(Value::as_i64).and_then(|id| chunk.metadata().find(id));
        let Some(of) = id.map(|id| &*chunk.metadata().get(id).name) else { continue };
        let conversion = CONVERSIONS.iter().find(|conversion| conversion.event == of);
        if let Some((conversion, period)) = conversion.zip(text("value").and_then(|text| parse_period(&text)))
        {
            periods.insert(conversion.event, period);
        }
    }
    periods
}

/// `20 ms`, `1 s` and the like in nanoseconds.
fn parse_period(text: &str) -> Option<i64> {
    let (number, unit) = text.split_once(' ')?;
    let nanos = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(nanos).filter(|&period| period > 0)
}

//! Converts recordings to one batch of profiles, event by event.

use std::collections::HashMap;

use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::error::JfrError;
use otlpprof_jfr::events::{Event, SkippedTypes};
use otlpprof_jfr::push::PushParser;
use otlpprof_jfr::types::TypeIndex;
use otlpprof_jfr::values::Value;
use otlpprof_model::{Batch, Scope, Tables, label};

use super::described::{self, Described};
use super::event_cache::EventCache;
use super::event_plan::{EventPlan, Slot};
use super::events::{Subset, known_name};
use super::identity::{Identities, Links, NoSample};
use super::libraries::Libraries;
use super::profiles::Profiles;
use super::requested::RequestedEvent;
use super::settings::{self, Clocks, KeptSettings, Settings};
use super::witness::Witness;

/// Options of the conversion.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Whether to keep the time of each event, for outputs that have times.
    pub times: bool,
    /// Events to convert in addition to the table's.
    pub events: Vec<RequestedEvent>,
    /// The names of the only events to convert; `None` for all that can be converted.
    pub only: Option<Vec<String>>,
    /// How to link samples to spans.
    pub links: Links,
}

/// Converts recordings of JDK Flight Recorder to one batch, in which each sample is the sum over all
/// recordings.
///
/// Recordings are added as files ([`JfrToOtlp::add_file`]), as readers ([`JfrToOtlp::add_reader`]), or as
/// bytes: whole ([`JfrToOtlp::add`]) or in parts ([`JfrToOtlp::push`]). [`JfrToOtlp::convert`] returns the
/// batch, which `encode` of the crate `otlpprof-otlp` encodes, and starts an empty one.
///
/// ```no_run
/// use otlpprof_convert::{ConvertOptions, JfrToOtlp};
/// use otlpprof_otlp::{EncodeOptions, encode};
///
/// let events = vec!["jdk.ThreadStart".parse()?, "app.Sent:bytes".parse()?];
/// let mut converter = JfrToOtlp::new(ConvertOptions { events, ..ConvertOptions::default() });
/// converter.add_file("monday.jfr")?;
/// converter.add_reader(std::io::stdin().lock())?;
/// for (event, count) in converter.counts() {
///     eprintln!("{event}: {} converted, {} of them without a stack", count.converted, count.without_stack);
/// }
/// std::fs::write("both.otlp", encode(&converter.convert(), &EncodeOptions::default()))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// An error in a recording is returned; everything that could be read is in the batch all the same. A
/// recording that is still being written can be converted at any time:
///
/// ```
/// use otlpprof_convert::JfrToOtlp;
///
/// let mut converter = JfrToOtlp::default();
/// for part in [&b"FL"[..], b"R\0", b"and no chunk, which is seen when there is as much as a header"] {
///     if let Err(error) = converter.push(part) {
///         eprintln!("{error}");
///     }
///     let batch = converter.convert();
///     assert!(batch.profiles.is_empty());
/// }
/// assert!(converter.finish().is_err());
/// assert!(converter.add(b"no recording").is_err(), "it can be used again");
/// ```
#[derive(Debug, Default)]
pub struct JfrToOtlp {
    options: ConvertOptions,
    tables: Tables,
    profiles: Profiles,
    libraries: Libraries,
    /// The settings of the current recording's earlier chunks.
    settings: KeptSettings,
    described: Described,
    counts: Vec<(String, EventCount)>,
    counts_by_name: HashMap<String, usize>,
    lost_samples: u64,
    problems: Vec<String>,
    /// The window of the current recording that the caller wants.
    wanted: RequestedTime,
    /// The time from the first chunk's start to the last chunk's end, within the wanted window.
    window: Option<(i64, i64)>,
    /// The time from the first chunk's start to the last chunk's end, without regard to the wanted window.
    recorded: Option<(i64, i64)>,
    chunk: Option<Box<ChunkState>>,
    witness: Option<Box<dyn Witness>>,
    pub(super) parser: PushParser,
}

/// The span of time whose events are wanted, in nanoseconds since 1970-01-01 UTC. A missing bound is the
/// bound of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestedTime {
    /// The first nanosecond.
    pub start_unix_nano: Option<i64>,
    /// One past the last nanosecond.
    pub end_unix_nano: Option<i64>,
}

/// The numbers of events of one type, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCount {
    /// Events that became samples.
    pub converted: u64,
    /// Converted events whose stack the JVM could not walk; a marker frame says so.
    pub failed: u64,
    /// Converted events without a stack; the frame `[no_stack]` says so.
    pub without_stack: u64,
    /// Events that were not converted because their value is 0 or less, which adds nothing.
    pub without_value: u64,
    /// Events outside the wanted window.
    pub outside: u64,
    /// Events that the witness reports as unwanted.
    pub unwanted: u64,
    /// Events that belong to no profile.
    pub other: u64,
}

/// The state for the current chunk.
#[derive(Debug)]
struct ChunkState {
    offset: u64,
    metadata: u64,
    settings: Settings,
    clocks: Option<Clocks>,
    identities: Identities,
    /// The handling of each type, by the type's position; with the position in `JfrToOtlp::counts`.
    types: Vec<Option<(usize, Handling)>>,
}

/// The handling of the events of a type.
#[derive(Debug)]
enum Handling {
    Convert(Box<Converted>),
    Setting,
    Library,
    Description,
    LostSamples,
    Nothing,
}

/// The conversion of the events of one type.
#[derive(Debug)]
struct Converted {
    plan: EventPlan,
    /// The numbers read from the last event.
    read: Vec<i64>,
    cache: EventCache,
}

/// A metadata offset that no chunk has.
const NO_METADATA: u64 = u64::MAX;

impl ChunkState {
    fn new(offset: u64, metadata: u64, settings: Settings) -> Self {
        Self {
            offset,
            metadata,
            settings,
            clocks: None,
            identities: Identities::default(),
            types: Vec::new(),
        }
    }
}

impl Converted {
    fn new(plan: EventPlan) -> Self {
        let (read, outcomes) = (vec![0; plan.slots()], plan.results.len());
        let cache = EventCache::new(plan.identity().collect(), outcomes);
        Self { plan, read, cache }
    }
}

impl EventCount {
    /// The count of events that did not become samples for this reason.
    fn of(&mut self, why: NoSample) -> &mut u64 {
        match why {
            NoSample::LeftOut | NoSample::Unfinished => &mut self.other,
            NoSample::Unwanted => &mut self.unwanted,
        }
    }
}

impl RequestedTime {
    fn contains(&self, unix_nano: i64) -> bool {
        let lasts = self.start_unix_nano.is_none_or(|start| start <= unix_nano);
        lasts && self.end_unix_nano.is_none_or(|end| unix_nano < end)
    }

    /// This window, with `start` and `end` for the bounds that it lacks.
    fn or(&self, start: i64, end: i64) -> (i64, i64) {
        (self.start_unix_nano.unwrap_or(start), self.end_unix_nano.unwrap_or(end))
    }

    /// The part of another span that is in this window. Later time belongs to later batches.
    fn clip(&self, start: i64, end: i64) -> (i64, i64) {
        let start = self.start_unix_nano.map_or(start, |first| start.max(first));
        (start, self.end_unix_nano.map_or(end, |last| end.min(last)))
    }
}

impl JfrToOtlp {
    /// A converter without recordings. An event that is requested twice is counted once.
    pub fn new(options: ConvertOptions) -> Self {
        let mut events: Vec<RequestedEvent> = Vec::new();
        for event in options.events {
            if !events.contains(&event) {
                events.push(event);
            }
        }
        Self { options: ConvertOptions { events, ..options }, ..Self::default() }
    }

    /// Sets the witness, which knows facts about events that the events themselves do not contain.
    pub fn set_witness(&mut self, witness: Box<dyn Witness>) {
        self.witness = Some(witness);
    }

    /// Sets the window of the recordings that are added from now on: events outside are skipped. The profiles
    /// have the window's bounds. If a recording arrives while it is written ([`JfrToOtlp::push`]), each batch
    /// covers the part of the window that has arrived.
    pub fn set_window(&mut self, window: RequestedTime) {
        self.wanted = window;
    }

    /// The numbers of events so far by type, in no particular order.
    pub fn counts(&self) -> impl Iterator<Item = (&str, EventCount)> {
        self.counts.iter().map(|(name, count)| (&**name, *count))
    }

    /// The number of samples that the JVM reports as lost (`jdk.CPUTimeSamplesLost`).
    pub fn lost_samples(&self) -> u64 {
        self.lost_samples
    }

    /// The first and last time of the recordings so far, in nanoseconds since 1970-01-01 UTC, by their chunk
    /// headers.
    pub fn recorded(&self) -> Option<(i64, i64)> {
        self.recorded
    }

    /// The reasons why requested events cannot be converted, one line each.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The profiles of everything that was added since the last call. Profiles without samples are omitted.
    /// The counts restart at zero. A recording that is still arriving continues.
    pub fn convert(&mut self) -> Batch {
        let chunk = self.chunk.take();
        if let Some(chunk) = &chunk {
            self.profiles.end_chunk(&chunk.settings);
        }
        let mut tables = std::mem::take(&mut self.tables);
        let profiles = std::mem::take(&mut self.profiles);
        let (start, end) = self.window.take().unwrap_or_default();
        self.libraries.forget_mappings();
        self.counts.clear();
        self.counts_by_name.clear();
        self.lost_samples = 0;
        if let Some(chunk) = chunk {
            self.chunk = Some(Box::new(ChunkState::new(chunk.offset, NO_METADATA, chunk.settings)));
            self.window = Some((end, end));
        }
        // The window's end is exclusive: a duration of at least 1 ns includes the last event's time.
        let duration = u64::try_from(end.saturating_sub(start)).unwrap_or(0).max(1);
        let profiles = profiles.finish((u64::try_from(start).unwrap_or(0), duration), &mut tables);
        let resource = self.described.resource();
        if self.chunk.is_none() {
            // Recordings that are added next may be of other processes.
            self.described = Described::default();
            self.problems.clear();
        }
        Batch { resource, scope: Scope::default(), tables, profiles }
    }

    /// Ends a recording. Settings and descriptions in later events belong to the next recording.
    pub(super) fn end_recording(&mut self) {
        self.end_chunk();
        self.settings = KeptSettings::default();
        self.described.end_recording();
    }

    fn end_chunk(&mut self) {
        if let Some(chunk) = self.chunk.take() {
            self.profiles.end_chunk(&chunk.settings);
            self.settings.put(chunk.settings);
        }
    }

    /// Adds all events of a chunk.
    pub(super) fn add_chunk(&mut self, chunk: Chunk<'_>) -> Result<(), JfrError> {
        self.end_chunk();
        self.begin(chunk, RequestedTime::or);
        self.note_libraries(chunk)?;
        let mut skipped = SkippedTypes::default();
        let added = self.add_events(chunk, &mut skipped);
        for (position, events) in skipped.counts() {
            if let Some((count, _)) = self.chunk.as_ref().and_then(|state| state.types[position].as_ref()) {
                self.counts[*count].1.other += events;
            }
        }
        added
    }

    /// Adds the events of a chunk. Once a type is known to have no effect, its further events are skipped.
    fn add_events(&mut self, chunk: Chunk<'_>, skipped: &mut SkippedTypes) -> Result<(), JfrError> {
        let mut events = chunk.events();
        while let Some(event) = events.next_except(skipped) {
            let event = event?;
            self.add_event(&event)?;
            let of = event.type_index();
            let known = self.chunk.as_ref().and_then(|state| state.types.get(of.position()));
            if let Some(Some((_, Handling::Nothing))) = known {
                skipped.add(chunk.metadata(), of);
            }
        }
        Ok(())
    }

    /// Finds the objects of remote frames in a chunk. Their events may stand anywhere in it.
    fn note_libraries(&mut self, chunk: Chunk<'_>) -> Result<(), JfrError> {
        let of = chunk.metadata().find_by_name(Libraries::EVENT);
        let of = of.filter(|&of| chunk.metadata().get(of).field("buildId").is_some());
        let Some(of) = of else { return Ok(()) };
        let mut others = SkippedTypes::all_except(chunk.metadata(), of);
        let mut events = chunk.events();
        while let Some(event) = events.next_except(&mut others) {
            self.libraries.note(&event?.values());
        }
        Ok(())
    }

    /// Begins a chunk, or continues one with new metadata. `bounds` returns the wanted part of the chunk's
    /// time.
    fn begin(&mut self, chunk: Chunk<'_>, bounds: impl FnOnce(&RequestedTime, i64, i64) -> (i64, i64)) {
        let (offset, metadata) = (chunk.offset(), chunk.metadata_offset());
        let settings = match self.chunk.take() {
            Some(before) if before.offset == offset => before.settings,
            _ => {
                let header = chunk.header();
                let start = header.clock.start_unix_nano;
                let end = start.saturating_add(header.duration_ns.max(0));
                self.recorded = Some(joined(self.recorded, (start, end)));
                let (start, end) = bounds(&self.wanted, start, end);
                self.extend_window(start, end.max(start));
                self.settings.take(chunk)
            }
        };
        self.chunk = Some(Box::new(ChunkState::new(offset, metadata, settings)));
    }

    fn extend_window(&mut self, start: i64, end: i64) {
        self.window = Some(joined(self.window, (start, end)));
    }

    /// The handling of the events of a type, determined once for each chunk.
    #[cold]
    fn handling(&mut self, chunk: Chunk<'_>, of: TypeIndex) -> (usize, Handling) {
        let event = chunk.metadata().get(of);
        // Any number of types may share one long name, so the name is shortened.
        let name = label(known_name(&event.name));
        let count = match self.counts_by_name.get(name) {
            Some(&count) => count,
            None => {
                self.counts.push((name.to_owned(), EventCount::default()));
                self.counts_by_name.insert(name.to_owned(), self.counts.len() - 1);
                self.counts.len() - 1
            }
        };
        for request in self.options.events.iter().filter(|request| request.is_for(event)) {
            if let Some(problem) = request.problem(event).filter(|problem| !self.problems.contains(problem)) {
                self.problems.push(problem);
            }
        }
        let Self { profiles, tables, options, chunk: state, .. } = self;
        let none = Settings::default();
        let settings = state.as_ref().map_or(&none, |state| &state.settings);
        let is_wanted = options.only.as_ref().is_none_or(|only| only.iter().any(|wanted| wanted == name));
        let plan = is_wanted
            .then(|| EventPlan::new(chunk, of, (&options.events, settings), profiles, tables))
            .flatten();
        let handling = match plan {
            Some(plan) => Handling::Convert(Box::new(Converted::new(plan))),
            None if name == settings::SETTING => Handling::Setting,
            None if name == Libraries::EVENT => Handling::Library,
            None if name == "jdk.CPUTimeSamplesLost" => Handling::LostSamples,
            None if described::EVENTS.contains(&name) => Handling::Description,
            None => Handling::Nothing,
        };
        (count, handling)
    }

    /// Adds an event. If the event belongs to another chunk than the previous one, that chunk begins.
    ///
    /// # Errors
    /// If the event's fields extend beyond the end of the event.
    pub(super) fn add_event(&mut self, event: &Event<'_>) -> Result<(), JfrError> {
        let values = event.values();
        let (chunk, of) = (values.chunk(), event.type_index());
        let place = (chunk.offset(), chunk.metadata_offset());
        let is_known = |state: &ChunkState| (state.offset, state.metadata) == place;
        if !self.chunk.as_deref().is_some_and(is_known) {
            if self.chunk.as_ref().is_some_and(|state| state.offset != place.0) {
                self.end_chunk();
            }
            self.begin(chunk, RequestedTime::clip);
        }
        let position = of.position();
        let known = self.chunk.as_ref().and_then(|state| state.types.get(position));
        if let Some(Some((count, Handling::Nothing))) = known {
            // The fast path: most events of most recordings.
            self.counts[*count].1.other += 1;
            return Ok(());
        }
        if !matches!(known, Some(Some(_))) {
            let handling = self.handling(chunk, of);
            if let Some(state) = &mut self.chunk {
                if state.types.len() <= position {
                    state.types.resize_with(position + 1, || None);
                }
                state.types[position] = Some(handling);
            }
        }
        let Some(mut state) = self.chunk.take() else { return Ok(()) };
        let added = self.add_in(&mut state, event, position);
        self.chunk = Some(state);
        added
    }

    #[inline]
    fn add_in(&mut self, state: &mut ChunkState, event: &Event<'_>, position: usize) -> Result<(), JfrError> {
        let ChunkState { settings, clocks, identities, types, .. } = state;
        let Some(Some((count, handling))) = types.get_mut(position) else { return Ok(()) };
        let count = &mut self.counts[*count].1;
        let values = event.values();
        let chunk = values.chunk();
        let Converted { plan, read, cache } = match handling {
            Handling::Convert(converted) => &mut **converted,
            Handling::Nothing => {
                count.other += 1;
                return Ok(());
            }
            noted => {
                count.other += 1;
                match noted {
                    Handling::Setting => settings.note(&values),
                    Handling::Library => self.libraries.note(&values),
                    Handling::Description => self.described.note(known_name(&event.type_of().name), &values),
                    Handling::LostSamples => {
                        let lost = values.get("lostSamples").as_ref().and_then(Value::as_i64);
                        self.lost_samples += lost.and_then(|lost| u64::try_from(lost).ok()).unwrap_or(0);
                    }
                    Handling::Convert(_) | Handling::Nothing => {}
                }
                return Ok(());
            }
        };
        let weight = plan.read(&values, read)?;
        let clock = chunk.header().clock;
        let at = clock.unix_nano(Slot::Start.of(read));
        if !self.wanted.contains(at) {
            count.outside += 1;
            return Ok(());
        }
        if self.window.is_some_and(|(start, end)| at < start || end <= at) {
            let (start, end) = self.window.unwrap_or((at, at));
            self.window = Some((start.min(at), end.max(at.saturating_add(1))));
        }
        let Self { tables, libraries, profiles, witness, options, .. } = self;
        // The witness may know different facts about equal events, so with a witness the cache is not used.
        let (index, known) = cache.find(read);
        let known = match known.filter(|_| witness.is_none()) {
            Some(known) => known,
            None => {
                let witness = witness.as_deref_mut();
                let plan = (&*plan, options.links);
                let known = match identities.identify(chunk, plan, read, witness, (libraries, tables)) {
                    Ok(known) => known,
                    Err(why) => {
                        *count.of(why) += 1;
                        return Ok(());
                    }
                };
                cache.put(index, read, known);
                known
            }
        };
        let time = options.times.then(|| u64::try_from(at).unwrap_or(0));
        let own_period = plan.period_ns(read, clock);
        let mut adds = false;
        for (outcome, sample) in plan.results.iter().zip(cache.samples(index)) {
            if outcome.only != Subset::All {
                let clocks = *clocks.get_or_insert_with(|| settings.execution_clocks());
                if !clocks.are(outcome.only, known.has_state) {
                    continue;
                }
            }
            if let Some(nanos) = own_period.filter(|_| outcome.has_period) {
                profiles.add_measured(outcome.profile, known.identity, nanos, time);
                adds = true;
                continue;
            }
            let value = outcome.value(read, weight, clock);
            if value > 0 {
                let sample = *sample.get_or_insert_with(|| profiles.sample(outcome.profile, known.identity));
                profiles.add_to(outcome.profile, sample, value, time);
                adds = true;
            }
        }
        if adds {
            count.converted += 1;
            count.failed += u64::from(known.is_failed);
            count.without_stack += u64::from(known.is_without_stack);
        } else {
            count.without_value += 1;
        }
        Ok(())
    }
}

/// The smallest span that contains both spans.
fn joined(one: Option<(i64, i64)>, (start, end): (i64, i64)) -> (i64, i64) {
    one.map_or((start, end), |(first, last)| (first.min(start), last.max(end)))
}

//! The compiled plan of one type's events in one chunk: the fields that are read, and the profiles that they
//! add to.

use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::clock::Clock;
use otlpprof_jfr::error::JfrError;
use otlpprof_jfr::numbers::Numbers;
use otlpprof_jfr::projection::Projection;
use otlpprof_jfr::types::{Constant, Field, Type, TypeIndex, Unit};
use otlpprof_jfr::values::Struct;
use otlpprof_model::attribute_keys::LOCK_KIND;
use otlpprof_model::{AttributeId, ProfileType, Tables, label};

use super::events::{CONVERSIONS, FAILED, Measure, Period, Subset, known_name, lock_kind, period_of_counted};
use super::profiles::{ProfileIndex, Profiles};
use super::requested::RequestedEvent;
use super::settings::Settings;
use super::subjects::Subject;

/// Declares [`Slot`], with the list of all slots in their order.
macro_rules! slots {
    ($($(#[$doc:meta])* $slot:ident,)+) => {
        /// The slots of the fields that are read from every event. The slots of its values and of its context
        /// follow.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(super) enum Slot {
            $($(#[$doc])* $slot,)+
        }

        impl Slot {
            /// All slots, each at the index of its number.
            const ALL: [Self; [$(Self::$slot),+].len()] = [$(Self::$slot),+];
        }
    };
}

slots! {
    Start,
    Stack,
    Thread,
    State,
    Span,
    LocalRoot,
    IsFailed,
    Period,
    Duration,
    /// The class that the event refers to.
    Subject,
    /// The monitor's previous owner (`jdk.JavaMonitorEnter`).
    Owner,
}

impl Slot {
    /// The slots that determine, with the context's slots, which sample an event belongs to.
    const IDENTITY: [Self; 8] = [
        Self::Stack,
        Self::Thread,
        Self::State,
        Self::Span,
        Self::LocalRoot,
        Self::IsFailed,
        Self::Subject,
        Self::Owner,
    ];

    /// The name of the field that is read into this slot. The fields of the thread and of the class have
    /// different names, by type.
    fn field(self, event: &Type) -> Option<&'static str> {
        match self {
            Self::Start => Some("startTime"),
            Self::Stack => Some("stackTrace"),
            Self::Thread => THREAD_FIELDS.into_iter().find(|field| event.field(field).is_some()),
            Self::State => Some("state"),
            Self::Span => Some("spanId"),
            Self::LocalRoot => Some("localRootSpanId"),
            Self::IsFailed => Some(FAILED),
            Self::Period => Some("samplingPeriod"),
            Self::Duration => Some("duration"),
            Self::Subject => Subject::of_type(event).map(|(field, _)| field),
            Self::Owner => Some("previousOwner"),
        }
    }

    /// The number in this slot.
    #[inline]
    pub(super) fn of(self, read: &[i64]) -> i64 {
        read[self as usize]
    }
}

/// The thread that an event is about is in the first of these fields that its type has.
const THREAD_FIELDS: [&str; 3] = ["sampledThread", "eventThread", "thread"];

/// The most context fields of a type that are used. Each field has a table of the chunk's values, and each
/// event is compared in all of them. Datadog's profiler has ten.
const MOST_CONTEXTS: usize = 32;

/// The compiled plan of a type's events.
#[derive(Debug)]
pub(super) struct EventPlan {
    pub(super) numbers: Numbers,
    /// Reads the weight, which some events have as a floating-point number.
    weight: Option<Projection<1>>,
    pub(super) results: Vec<Outcome>,
    /// The attribute keys of the context's fields.
    pub(super) contexts: Vec<String>,
    /// The slot of the first context field. The other context fields follow it.
    pub(super) first_context: usize,
    /// The position of the field with the trace id among the context fields.
    pub(super) trace: Option<usize>,
    pub(super) lock_kind: Option<AttributeId>,
    /// The role of the class that the event refers to, if any.
    pub(super) subject: Option<Subject>,
    /// Whether the event has a duration in ticks.
    pub(super) has_duration: bool,
    /// Whether another thread wrote the event than the one that it is about.
    pub(super) is_seen_by_another: bool,
    period: Option<Unit>,
    slots: usize,
}

/// The contribution of an event to one profile.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) profile: ProfileIndex,
    pub(super) only: Subset,
    pub(super) has_period: bool,
    value: Option<(usize, Option<Unit>)>,
    is_weighted: bool,
}

/// A conversion from the table or from the user's requests.
struct WantedConversion<'a> {
    profile_type: &'static ProfileType,
    measure: Measure,
    field: &'a str,
    source: &'a str,
    rank: usize,
    period: Option<Period>,
    only: Subset,
}

impl EventPlan {
    /// Compiles the plan of this type; `None` if none of its events are converted.
    pub(super) fn new(
        chunk: Chunk<'_>,
        of: TypeIndex,
        (requested, settings): (&[RequestedEvent], &Settings),
        profiles: &mut Profiles,
        tables: &mut Tables,
    ) -> Option<Self> {
        let event = chunk.metadata().get(of);
        let mut wanted: Vec<WantedConversion<'_>> = Vec::new();
        for (rank, conversion) in CONVERSIONS.iter().enumerate() {
            if conversion.event == known_name(&event.name) {
                let field = match conversion.value {
                    Measure::Field(field) | Measure::Weighted(field, _) => field,
                    Measure::One | Measure::Weight(_) => "",
                };
                let (measure, source) = (conversion.value, conversion.source);
                let (mut period, only) = (conversion.period, conversion.only);
                let mut profile_type = conversion.profile_type;
                if only == Subset::CpuClock
                    && let Some(event) = settings.counted_event().map(label)
                {
                    profile_type = ProfileType::perf_event(event);
                    period = Some(period_of_counted(event));
                }
                wanted.push(WantedConversion { profile_type, measure, field, source, rank, period, only });
            }
        }
        let can_be = |request: &RequestedEvent| request.is_for(event) && request.problem(event).is_none();
        for (position, request) in requested.iter().enumerate().filter(|(_, request)| can_be(request)) {
            let field = request.field().unwrap_or_default();
            let measure = if field.is_empty() { Measure::One } else { Measure::Field("") };
            let rank = CONVERSIONS.len() + position;
            let profile_type = request.profile_type(event);
            let (source, period, only) = (&*event.name, None, Subset::All);
            wanted.push(WantedConversion { profile_type, measure, field, source, rank, period, only });
        }
        // The fields of an event differ between JDKs.
        wanted.retain(|wanted| wanted.field.is_empty() || event.field(wanted.field).is_some());
        if wanted.is_empty() {
            return None;
        }
        // No field has an empty name.
        let field_of = |slot: Slot| slot.field(event).unwrap_or_default();
        let mut names: Vec<&str> = Slot::ALL.into_iter().map(field_of).collect();
        let first_value = names.len();
        names.extend(wanted.iter().map(|wanted| wanted.field));
        let first_context = names.len();
        let is_context = |field: &&Field| &*field.type_name == "profiler.types.AttributeValue";
        names.extend(event.fields.iter().filter(is_context).take(MOST_CONTEXTS).map(|field| &*field.name));
        let trace = names[first_context..].iter().position(|field| super::labels::names_trace(field));
        let contexts: Vec<String> = names[first_context..].iter().map(|name| context_key(name)).collect();
        let unit = |name: &str| event.field(name).and_then(Field::unit);
        let mut numbers_of = names.clone();
        // A field is read into one slot only. If it occurs again, the first slot is used.
        for at in 0..numbers_of.len() {
            if names[..at].contains(&names[at]) {
                numbers_of[at] = "";
            }
        }
        let slot_of = |name: &str| names.iter().position(|other| *other == name);
        let mut is_weighted = false;
        let results = wanted
            .iter()
            .map(|wanted| {
                let has_weight = matches!(wanted.measure, Measure::Weight(_) | Measure::Weighted(..));
                is_weighted |= has_weight;
                let value = (!wanted.field.is_empty())
                    .then(|| (slot_of(wanted.field).unwrap_or(first_value), unit(wanted.field)));
                Outcome {
                    profile: profiles.find(wanted.profile_type, wanted.source, wanted.rank, wanted.period),
                    only: wanted.only,
                    has_period: wanted.period.is_some(),
                    value,
                    is_weighted: has_weight && event.field("weight").is_some(),
                }
            })
            .collect();
        let period = wanted.iter().find_map(|wanted| wanted.period.and_then(|period| period.field));
        Some(Self {
            numbers: Numbers::new(chunk, of, &numbers_of),
            weight: is_weighted.then(|| Projection::new(chunk, of, ["weight"])),
            results,
            trace,
            contexts,
            first_context,
            lock_kind: lock_kind(known_name(&event.name))
                .map(|kind| tables.string_attribute(LOCK_KIND, kind)),
            subject: Subject::of_type(event).map(|(_, subject)| subject),
            has_duration: unit(field_of(Slot::Duration)) == Some(Unit::TimespanTicks),
            is_seen_by_another: field_of(Slot::Thread) == THREAD_FIELDS[0],
            period: period.and_then(unit),
            slots: names.len(),
        })
    }

    /// The number of slots that [`EventPlan::read`] needs. Slots without a field in this type are never
    /// written.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// The slots that determine which sample an event belongs to.
    pub(super) fn identity(&self) -> impl Iterator<Item = usize> {
        let own = Slot::IDENTITY.into_iter().map(|slot| slot as usize);
        let all = own.chain(self.first_context..self.slots);
        all.filter(|&slot| self.numbers.has(slot))
    }

    /// The key of the constant in a slot, if the field exists and refers to one.
    #[inline]
    pub(super) fn constant(&self, slot: Slot, read: &[i64]) -> Option<Constant> {
        self.numbers.constant(slot as usize, read)
    }

    /// Reads an event's numbers into `into`. Returns its weight, or 1 if it has none.
    ///
    /// # Errors
    /// If the fields extend beyond the end of the event.
    #[inline]
    pub(super) fn read(&self, values: &Struct<'_>, into: &mut [i64]) -> Result<f64, JfrError> {
        self.numbers.read(values, into)?;
        let Some(weight) = &self.weight else { return Ok(1.0) };
        let [weight] = weight.read(values)?;
        Ok(weight.and_then(|weight| weight.as_f64()).unwrap_or(1.0))
    }

    /// The period in the event itself, in nanoseconds.
    #[inline]
    pub(super) fn period_ns(&self, read: &[i64], clock: Clock) -> Option<i64> {
        let unit = self.period?;
        Some(in_nanos(Slot::Period.of(read), Some(unit), clock)).filter(|&period| period > 0)
    }
}

impl Outcome {
    /// The value that an event adds.
    #[inline]
    pub(super) fn value(&self, read: &[i64], weight: f64, clock: Clock) -> i64 {
        let value = self.value.map_or(1, |(slot, unit)| in_nanos(read[slot], unit, clock));
        // Integer weights are exact up to 2⁵³; all others are estimates.
        if self.is_weighted { (value as f64 * weight).round() as i64 } else { value }
    }
}

/// The attribute key of a context field. Keys that the semantic conventions define for samples have another
/// meaning, so such fields get a prefix.
fn context_key(field: &str) -> String {
    let is_taken = ["thread.", "cpu.", "code."].iter().any(|taken| field.starts_with(taken));
    if is_taken { format!("context.{field}") } else { field.to_owned() }
}

fn in_nanos(number: i64, unit: Option<Unit>, clock: Clock) -> i64 {
    match unit {
        Some(Unit::TimespanTicks) => clock.duration_ns(number),
        Some(Unit::TimespanNanos(nanos)) => number.saturating_mul(nanos),
        _ => number,
    }
}

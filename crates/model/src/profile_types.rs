//! The table of profile types: the names and units of all profiles, live or converted.
//!
//! There is no registry of sample types. Backends know the names from pprof (`alloc_space`, `inuse_space`,
//! `contentions`, `delay`): Pyroscope, for example, takes a profile's name from the period type.

use std::sync::Mutex;

/// The unit of values that are read from numbers with fractions: 1 is 1,000,000,000 billionths.
pub const BILLIONTHS: &str = "billionths";

/// The meaning of a profile's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProfileType {
    /// The type's unique name in this program.
    pub name: &'static str,
    /// The value of the profile's `profile.type` attribute: the kind of event observed. Profiles that measure
    /// the same events in different ways (number, duration) share it.
    pub profile_type: &'static str,
    /// The quantity of a value.
    pub sample_type: &'static str,
    /// The UCUM-like unit of a value.
    pub sample_unit: &'static str,
    /// The quantity that the period measures.
    pub period_type: &'static str,
    /// The period's unit.
    pub period_unit: &'static str,
}

impl ProfileType {
    /// Whether values are counts, so that a list of times can replace them.
    pub fn is_count(&self) -> bool {
        self.sample_unit == "count"
    }

    /// Returns the type of that name, from the table or created by [`ProfileType::custom`].
    pub fn by_name(name: &str) -> Option<&'static Self> {
        let in_table = types::ALL.iter().copied().find(|known| known.name == name);
        in_table.or_else(|| custom_types().iter().copied().find(|known| known.name == name))
    }

    /// Returns a type that the user names, for a perf event or an event of a recording. `name` serves as
    /// `profile.type` too.
    ///
    /// Equal arguments give the same type. Each distinct type is kept for the life of the process; their
    /// number is bounded by the number of events that a user requests. If a type of that name exists with
    /// other quantities or units, the new type is added beside it, and [`ProfileType::by_name`] returns the
    /// earlier one.
    pub fn custom(name: &str, sample: (&str, &str), period: (&str, &str)) -> &'static Self {
        let texts = [name, name, sample.0, sample.1, period.0, period.1];
        let mut custom = custom_types();
        let known = types::ALL.iter().chain(custom.iter()).copied().find(|known| known.texts() == texts);
        known.unwrap_or_else(|| {
            let [name, profile_type, sample_type, sample_unit, period_type, period_unit] =
                texts.map(|text| -> &'static str { Box::leak(text.into()) });
            let made: &'static Self = Box::leak(Box::new(Self {
                name,
                profile_type,
                sample_type,
                sample_unit,
                period_type,
                period_unit,
            }));
            custom.push(made);
            made
        })
    }

    fn texts(&self) -> [&'static str; 6] {
        [self.name, self.profile_type, self.sample_type, self.sample_unit, self.period_type, self.period_unit]
    }

    /// The type of a perf event's samples: their number, one for each period of the event.
    pub fn perf_event(event: &str) -> &'static Self {
        Self::custom(event, ("samples", "count"), (event, "count"))
    }
}

static CUSTOM: Mutex<Vec<&'static ProfileType>> = Mutex::new(Vec::new());

fn custom_types() -> std::sync::MutexGuard<'static, Vec<&'static ProfileType>> {
    // The only change to the list is a push, so a panic elsewhere leaves it intact.
    CUSTOM.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

macro_rules! profile_types {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $profile_type:literal,
        $sample:literal / $sample_unit:literal, $period:literal / $period_unit:literal;)*) => {
        /// The types.
        pub mod types {
            use super::ProfileType;

            $($(#[$doc])*
            pub static $constant: ProfileType = ProfileType {
                name: $name,
                profile_type: $profile_type,
                sample_type: $sample,
                sample_unit: $sample_unit,
                period_type: $period,
                period_unit: $period_unit,
            };)*

            /// All types of the table.
            pub static ALL: &[&ProfileType] = &[$(&$constant),*];
        }
    };
}

profile_types! {
    //               name, profile.type, sample type / unit, period type / unit
    /// CPU time, in periods.
    CPU = "cpu", "cpu", "samples" / "count", "cpu" / "nanoseconds";
    /// Wall-clock time, in periods.
    WALL = "wall", "wall", "samples" / "count", "wall" / "nanoseconds";
    /// Allocations seen by the sampler.
    ALLOC_SAMPLES = "alloc-samples", "alloc-samples", "samples" / "count", "space" / "bytes";
    /// Allocated bytes, estimated.
    ALLOC_SPACE = "alloc-space", "alloc-space", "alloc_space" / "bytes", "space" / "bytes";
    /// Allocated objects, estimated.
    ALLOC_OBJECTS = "alloc-objects", "alloc-objects", "alloc_objects" / "count", "space" / "bytes";
    /// Bytes that survived a collection, estimated.
    LIVE_SPACE = "live-space", "live-heap", "inuse_space" / "bytes", "space" / "bytes";
    /// Objects that survived a collection, estimated.
    LIVE_OBJECTS = "live-objects", "live-heap", "inuse_objects" / "count", "space" / "bytes";
    /// The number of times that a thread waited to enter a monitor or was parked for a lock.
    LOCK_COUNT = "lock-count", "lock-contention", "contentions" / "count", "contentions" / "count";
    /// The duration of these waits.
    LOCK_TIME = "lock-time", "lock-contention", "delay" / "nanoseconds", "contentions" / "count";
    /// Calls of Object.wait.
    WAIT_COUNT = "wait-count", "wait", "waits" / "count", "waits" / "count";
    /// The duration of these calls.
    WAIT_TIME = "wait-time", "wait", "delay" / "nanoseconds", "waits" / "count";
    /// Natively allocated bytes.
    NATIVEMEM_SPACE = "nativemem-space", "nativemem", "alloc_space" / "bytes", "malloc" / "bytes";
    /// Native allocations.
    NATIVEMEM_OBJECTS = "nativemem-objects", "nativemem", "alloc_objects" / "count", "malloc" / "bytes";
    /// Natively allocated bytes that were not freed.
    NATIVELEAK_SPACE = "nativeleak-space", "nativemem-leak", "inuse_space" / "bytes", "malloc" / "bytes";
    /// Native allocations that were not freed.
    NATIVELEAK_OBJECTS = "nativeleak-objects", "nativemem-leak", "inuse_objects" / "count",
        "malloc" / "bytes";
    /// Exceptions created or thrown.
    EXCEPTIONS = "exceptions", "exceptions", "exceptions" / "count", "exceptions" / "count";
    /// Calls of traced methods that took at least as long as their threshold.
    TRACE_COUNT = "trace-count", "trace", "calls" / "count", "calls" / "count";
    /// The duration of these calls.
    TRACE_TIME = "trace-time", "trace", "latency" / "nanoseconds", "calls" / "count";
    /// Time in a sleep.
    SLEEP_TIME = "sleep-time", "sleep", "delay" / "nanoseconds", "sleeps" / "count";
    /// Time for which a virtual thread kept its carrier while it was parked.
    PINNED_TIME = "pinned-time", "virtual-thread-pinned", "delay" / "nanoseconds", "pinned" / "count";
    /// Time in socket reads and writes.
    SOCKET_TIME = "socket-time", "socket-io", "delay" / "nanoseconds", "socket_operations" / "count";
    /// Bytes read from and written to sockets.
    SOCKET_BYTES = "socket-bytes", "socket-io", "io_space" / "bytes", "socket_operations" / "count";
    /// Time in file reads and writes.
    FILE_TIME = "file-time", "file-io", "delay" / "nanoseconds", "file_operations" / "count";
    /// Bytes read from and written to files.
    FILE_BYTES = "file-bytes", "file-io", "io_space" / "bytes", "file_operations" / "count";
    /// Requests that have ended, as reported by the program.
    TRACE_ROOTS = "trace-roots", "trace-root", "trace_roots" / "count", "trace_roots" / "count";
    /// Tasks that have waited in a queue, as reported by the program.
    QUEUE_COUNT = "queue-count", "queue", "tasks" / "count", "tasks" / "count";
    /// The duration of these waits.
    QUEUE_TIME = "queue-time", "queue", "delay" / "nanoseconds", "tasks" / "count";
    /// Events of the program's own.
    EVENT_COUNT = "event-count", "event", "events" / "count", "events" / "count";
    /// The duration of these events.
    EVENT_TIME = "event-time", "event", "duration" / "nanoseconds", "events" / "count";
    /// Time in class loading.
    CLASS_LOAD_TIME = "class-load-time", "class-load", "delay" / "nanoseconds", "loads" / "count";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_meanings_are_unique_and_nothing_is_empty() {
        let names: HashSet<_> = types::ALL.iter().map(|known| known.name).collect();
        assert_eq!(names.len(), types::ALL.len());
        let meanings: HashSet<_> =
            types::ALL.iter().map(|known| (known.profile_type, known.sample_type)).collect();
        assert_eq!(meanings.len(), types::ALL.len());
        for known in types::ALL {
            for text in [known.name, known.profile_type, known.sample_type, known.period_type] {
                assert!(!text.is_empty(), "{known:?}");
            }
            for unit in [known.sample_unit, known.period_unit] {
                assert!(["count", "bytes", "nanoseconds"].contains(&unit), "{known:?}");
            }
        }
    }

    #[test]
    fn the_cpu_type_is_the_process_cpu_of_backends() {
        let cpu = ProfileType::by_name("cpu").unwrap();
        assert_eq!((cpu.sample_type, cpu.sample_unit), ("samples", "count"));
        assert_eq!((cpu.period_type, cpu.period_unit), ("cpu", "nanoseconds"));
        assert!(cpu.is_count());
    }

    #[test]
    fn custom_types_are_made_once() {
        let made = ProfileType::perf_event("cache-misses");
        assert!(std::ptr::eq(made, ProfileType::perf_event("cache-misses")));
        assert!(std::ptr::eq(made, ProfileType::by_name("cache-misses").unwrap()));
        assert_eq!((made.period_type, made.period_unit), ("cache-misses", "count"));
        let same_as_cpu = ProfileType::custom("cpu", ("samples", "count"), ("cpu", "nanoseconds"));
        assert!(std::ptr::eq(same_as_cpu, &types::CPU));
        assert_eq!(ProfileType::by_name("no such type"), None);
    }
}

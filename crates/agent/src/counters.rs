//! The agent's own counters, as attributes of each profile.
//!
//! Every count covers the time since the previous profile.
//!
//! - `otlpprof.handler.periods_recorded` is the sum of the profile's values; together with `.periods_dropped`
//!   it is the sum of all periods that were due.
//! - Samples that no message can hold are missing from that sum. They are known only when the profile is
//!   written, so the next profile counts them (`otlpprof.encode.over_limit.*`), as it counts the fate of this
//!   one's messages.
//! - Recorded samples and periods are counted when they are drained. Counts made by handlers, such as
//!   `.samples_taken`, may be ahead by the contents of the buffer.
//! - The fate of samples is counted by engine, as `otlpprof.ENGINE.samples_taken` and so on, in a profile of
//!   that engine if there is one. Taken samples are recorded, dropped or filtered. `.samples_thinned` were
//!   skipped before they were taken, and other samples stand for them. `.samples_ns` is the time spent on
//!   taking samples. `otlpprof.handler.samples_*` are the sums over all engines.
//! - `samples_left_out` are samples of threads and stacks that the user excluded: they are recorded, and in
//!   no value.
//! - `samples` of files and uploads are samples of a profile; each stands for all records of one stack and
//!   thread.
//! - `agent.threads_ns` is the CPU time of the profiler's threads, except the one that reads the JVM's
//!   recording, which has `agent.recording_ns`. `agent.signals_ns` is the kernel's time to deliver the
//!   profiler's signals, estimated from the cost of one.
//! - `upload.rejected_in_part` are messages of which a collector accepted some profiles and rejected others,
//!   with all of their samples. A collector does not say which profiles it rejected, only how many
//!   (`upload.partial_rejected_profiles`).
//! - `pending` is the current number of messages or samples that wait for their upload, or for another
//!   attempt to write them. `context.blocks` is the number of context blocks for which memory has been
//!   mapped.
//!
//! A profile that is split into messages has its counts in the first.

use std::sync::atomic::Ordering;

use otlpprof_context::blocks::BLOCKS;
use otlpprof_context::counts as context_counts;
use otlpprof_core::engine::Engine;
use otlpprof_export::stats::{FileStats, Loss, StreamStats, Tally, UploadStats};
use otlpprof_model::{AttributeId, Tables};
use otlpprof_sampling::{cpu, wall};
use otlpprof_signal::counters::COUNTERS;
use otlpprof_signal::event;
use otlpprof_signal::kernel_stack;
use otlpprof_signal::native_memory;
use otlpprof_signal::walk::{FrozenReason, WalkError};

use super::budget::Used;
use super::engines;
use super::output::EncodeStats;

/// Counts of drained samples since the session began. The handlers' own counts are ahead of a profile's
/// contents.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recorded {
    /// The samples of each engine.
    pub(super) samples: [u64; Engine::COUNT],
    pub(super) periods: u64,
    pub(super) used: Used,
    /// Samples of threads or stacks that the user excluded.
    pub(super) left_out: u64,
    /// Frames in methods, and in objects, that were no longer known.
    pub(super) unknown_methods: u64,
    pub(super) unknown_objects: u64,
}

/// All counters at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    counts: Vec<(String, u64)>,
    /// The fate of each engine's samples.
    of_engines: Vec<(Engine, String, u64)>,
    /// Current levels, as opposed to counts of events.
    levels: Vec<(String, u64)>,
}

impl Snapshot {
    /// Reads the counters now. `recorded` and the statistics of the outputs cover the time since the session
    /// began.
    pub(super) fn now(
        recorded: Recorded,
        reported: impl IntoIterator<Item = (&'static str, u64)>,
        encoded: EncodeStats,
        upload: Option<&UploadStats>,
        file: Option<&FileStats>,
        stream: StreamStats,
    ) -> Self {
        let mut counts = vec![
            ("otlpprof.handler.samples_recorded".to_owned(), recorded.samples.iter().sum()),
            ("otlpprof.handler.periods_recorded".to_owned(), recorded.periods),
            ("otlpprof.agent.threads_ns".to_owned(), recorded.used.threads_ns),
            ("otlpprof.agent.recording_ns".to_owned(), recorded.used.recording_ns),
            ("otlpprof.agent.signals_ns".to_owned(), recorded.used.signals_ns),
            ("otlpprof.samples_left_out".to_owned(), recorded.left_out),
            ("otlpprof.resolve.unknown_methods".to_owned(), recorded.unknown_methods),
            ("otlpprof.resolve.unknown_objects".to_owned(), recorded.unknown_objects),
            ("otlpprof.encode.over_limit.samples".to_owned(), encoded.over_limit_samples),
            ("otlpprof.encode.over_limit.periods".to_owned(), encoded.over_limit_periods),
            ("otlpprof.encode.untimed.samples".to_owned(), encoded.untimed_samples),
        ];
        let mut levels = vec![("otlpprof.context.blocks".to_owned(), BLOCKS.made() as u64)];
        push_group(&mut counts, "handler", COUNTERS.named());
        for error in WalkError::ALL {
            let count = COUNTERS.walk_errors[error as usize].load(Ordering::Relaxed);
            counts.push((format!("otlpprof.walk_error.{}", error.name()), count));
        }
        for reason in FrozenReason::ALL {
            let count = COUNTERS.frozen[reason as usize].load(Ordering::Relaxed);
            counts.push((format!("otlpprof.frozen.{}", reason.name()), count));
        }
        push_group(&mut counts, "context", context_counts::COUNTS.named());
        counts.extend(reported.into_iter().map(|(name, count)| (name.to_owned(), count)));
        push_group(&mut counts, "cpu", cpu::counts().entries());
        push_group(&mut counts, "event", event::COUNTS.named());
        push_group(&mut counts, "kernel", kernel_stack::COUNTS.named());
        push_group(&mut counts, "wall", wall::COUNTS.named());
        counts.push(("otlpprof.live.thinned".to_owned(), engines::thinned()));
        push_group(&mut counts, "nativemem", native_memory::COUNTS.named());
        if let Some(upload) = upload {
            let mut tally = |name: &str, tally: Tally| {
                counts.push((format!("otlpprof.upload.{name}.messages"), tally.messages));
                counts.push((format!("otlpprof.upload.{name}.samples"), tally.samples));
            };
            tally("submitted", upload.submitted);
            tally("sent", upload.sent);
            tally("split", upload.split);
            for loss in Loss::ALL {
                tally(loss.name(), upload.lost(loss));
            }
            levels.push(("otlpprof.upload.pending.messages".into(), upload.pending.messages));
            levels.push(("otlpprof.upload.pending.samples".into(), upload.pending.samples));
            counts.push(("otlpprof.upload.retries".into(), upload.retries));
            counts.push(("otlpprof.upload.partial_answers".into(), upload.partial_answers));
            counts
                .push(("otlpprof.upload.partial_rejected_profiles".into(), upload.partial_rejected_profiles));
            counts.push(("otlpprof.upload.wire_bytes".into(), upload.wire_bytes));
        }
        if let Some(file) = file {
            for (name, tally) in [("written", file.written), ("failed", file.failed)] {
                counts.push((format!("otlpprof.file.{name}.messages"), tally.messages));
                counts.push((format!("otlpprof.file.{name}.samples"), tally.samples));
            }
            levels.push(("otlpprof.file.pending.messages".into(), file.pending.messages));
            levels.push(("otlpprof.file.pending.samples".into(), file.pending.samples));
        }
        counts.push(("otlpprof.stream.sent.messages".to_owned(), stream.sent));
        counts.push(("otlpprof.stream.lost.messages".to_owned(), stream.lost));
        levels.push(("otlpprof.stream.readers".to_owned(), stream.readers));
        Self { counts, of_engines: of_engines(&recorded), levels }
    }

    /// Returns the counts since `earlier`, and the current levels. Zeros are left out.
    pub(super) fn since(&self, earlier: &Self) -> Vec<(&str, u64)> {
        let of_engines = Engine::ALL.into_iter().flat_map(|engine| self.of_engine_since(engine, earlier));
        self.of_all_since(earlier).into_iter().chain(of_engines).collect()
    }

    /// The same as [`Snapshot::since`] as attributes, without the counts of single engines.
    pub(super) fn attributes_since(&self, earlier: &Self, tables: &mut Tables) -> Vec<AttributeId> {
        as_attributes(self.of_all_since(earlier), tables)
    }

    /// The counts of one engine since `earlier`, as attributes.
    pub(super) fn engine_attributes_since(
        &self,
        engine: Engine,
        earlier: &Self,
        tables: &mut Tables,
    ) -> Vec<AttributeId> {
        as_attributes(self.of_engine_since(engine, earlier), tables)
    }

    fn of_all_since(&self, earlier: &Self) -> Vec<(&str, u64)> {
        let counted = self.counts.iter().map(|(name, count)| {
            let before = earlier.counts.iter().find(|(other, _)| other == name);
            (name.as_str(), count.saturating_sub(before.map_or(0, |(_, count)| *count)))
        });
        counted
            .chain(self.levels.iter().map(|(name, level)| (name.as_str(), *level)))
            .filter(|&(_, count)| count > 0)
            .collect()
    }

    fn of_engine_since(&self, engine: Engine, earlier: &Self) -> Vec<(&str, u64)> {
        // Both snapshots have the same counts in the same order.
        let counted = self.of_engines.iter().zip(&earlier.of_engines);
        counted
            .filter(|((of, ..), _)| *of == engine)
            .map(|((_, name, count), (.., before))| (name.as_str(), count.saturating_sub(*before)))
            .filter(|&(_, count)| count > 0)
            .collect()
    }
}

fn of_engines(recorded: &Recorded) -> Vec<(Engine, String, u64)> {
    let counts = |engine: Engine| {
        [
            ("samples_taken", COUNTERS.samples_taken.of(engine)),
            ("samples_recorded", recorded.samples[engine as usize]),
            ("samples_dropped", COUNTERS.samples_dropped.of(engine)),
            ("samples_filtered", COUNTERS.samples_filtered.of(engine)),
            ("samples_thinned", COUNTERS.samples_thinned.of(engine)),
            ("samples_ns", COUNTERS.engine_ns.of(engine)),
        ]
        .map(|(name, count)| (engine, format!("otlpprof.{}.{name}", engine.name()), count))
    };
    Engine::ALL.into_iter().flat_map(counts).collect()
}

fn as_attributes(counts: Vec<(&str, u64)>, tables: &mut Tables) -> Vec<AttributeId> {
    counts
        .into_iter()
        .map(|(name, count)| tables.int_attribute(name, i64::try_from(count).unwrap_or(i64::MAX), ""))
        .collect()
}

/// Appends the counts of a group, named `otlpprof.GROUP.NAME`.
fn push_group(
    counts: &mut Vec<(String, u64)>,
    group: &str,
    named: impl IntoIterator<Item = (&'static str, u64)>,
) {
    counts.extend(named.into_iter().map(|(name, count)| (format!("otlpprof.{group}.{name}"), count)));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use otlpprof_model::attribute_keys;

    use super::*;
    use crate::events::Events;
    use crate::recording::Recording;

    /// The counters in the first cells of the document's tables. A name that begins with a dot replaces the
    /// last part of the name before.
    fn documented() -> BTreeSet<String> {
        let rows =
            include_str!("../../../docs/counters.md").lines().filter(|line| line.starts_with("| `otlpprof."));
        let mut names = BTreeSet::new();
        for row in rows {
            let cell = row.trim_start_matches("| ").split(" | ").next().expect("a first cell");
            let mut stem = String::new();
            for name in cell.split('`').skip(1).step_by(2) {
                let name = if name.starts_with('.') { format!("{stem}{name}") } else { name.to_owned() };
                stem = name.rsplit_once('.').expect("a dot").0.to_owned();
                let of_engines = Engine::ALL.map(|engine| name.replace("ENGINE", engine.name()));
                for name in BTreeSet::from(of_engines) {
                    assert!(names.insert(name.clone()), "{name} is there twice");
                }
            }
        }
        names
    }

    #[test]
    fn the_document_of_counters_has_every_counter_and_no_other() {
        let reported = Events::default().counts().into_iter().chain(Recording::default().counts());
        let (upload, file) = (UploadStats::default(), FileStats::default());
        let Snapshot { counts, of_engines, levels } = Snapshot::now(
            Recorded::default(),
            reported,
            EncodeStats::default(),
            Some(&upload),
            Some(&file),
            StreamStats::default(),
        );
        let of_engines = of_engines.into_iter().map(|(_, name, _)| name);
        // The interval's end adds these, where they are above 1.
        assert!(include_str!("session/interval_end/mod.rs").contains("attribute_keys::LIMIT_OF_ENGINE"));
        let limits =
            Engine::ALL.map(|engine| format!("{}{}", attribute_keys::LIMIT_OF_ENGINE, engine.name()));
        let printed: BTreeSet<_> =
            counts.into_iter().chain(levels).map(|(name, _)| name).chain(of_engines).chain(limits).collect();
        let documented = documented();
        let missing: Vec<_> = printed.difference(&documented).collect();
        let unknown: Vec<_> = documented.difference(&printed).collect();
        assert!(missing.is_empty(), "not in docs/counters.md: {missing:?}");
        assert!(unknown.is_empty(), "in docs/counters.md, and no counter: {unknown:?}");
    }
}

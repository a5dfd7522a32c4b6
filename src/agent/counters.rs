//! The agent's own counters, as attributes of each profile.
//!
//! Every count is of the time since the profile before. `otlpprof.handler.periods_recorded` is the sum of the
//! profile's values, and with `.periods_dropped` all that was due. Samples that no message can hold are missing from
//! that sum; since they are known when the profile is written, the next one counts them (`otlpprof.encode.over_limit.*`),
//! as it counts what became of this one's messages. Recorded samples and periods are counted when they are drained; what
//! handlers count, `.samples_taken` for one, may be ahead by what is in the buffer.
//! What becomes of samples is counted by engine, `otlpprof.ENGINE.samples_taken` and so on, in a profile of that engine, if there
//! is one: taken are recorded, dropped or filtered ones, `.samples_thinned` are left to others to stand for before they are
//! taken, and `.samples_ns` is what taking them took. The counts of `otlpprof.handler.samples_*` are those of all engines together.
//! `samples_left_out` are those of threads and stacks that the user does not want: recorded, and in no value.
//! `samples` of files and uploads are a profile's, each of which stands for all records of one stack and thread;
//! `agent.threads_ns` is what the profiler's threads have used but the one that reads the JVM's recording, whose is
//! `agent.recording_ns`; `agent.signals_ns` what the kernel needed to deliver its signals, by what one costs.
//! `upload.rejected_in_part` are messages of which a collector took some profiles and not others, with all of their
//! samples: which were not taken it does not say, but how many (`upload.partial_rejected_profiles`).
//! `pending` is what waits to be uploaded, or to be written once more, now, `context.blocks` for how many threads at once there has been memory. A profile that is divided into messages has its counts in the first.

use std::sync::atomic::Ordering;

use super::engines;
use super::output::EncodeStats;
use super::session::Recorded;
use crate::context::blocks::BLOCKS;
use crate::context::counts as context_counts;
use crate::core::record::Engine;
use crate::export::stats::{FileStats, Loss, Tally, UploadStats};
use crate::model::{AttributeId, Tables};
use crate::sampling::{cpu, wall};
use crate::signal::counters::COUNTERS;
use crate::signal::event;
use crate::signal::kernel_stack;
use crate::signal::native_memory;
use crate::signal::walk::{FrozenReason, WalkError};

/// All counters at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    counts: Vec<(String, u64)>,
    /// What has become of each engine's samples.
    of_engines: Vec<(Engine, String, u64)>,
    /// What there is, rather than what has happened.
    levels: Vec<(String, u64)>,
}

impl Snapshot {
    /// The counters now, `recorded` and those of outputs since the session began.
    pub(super) fn now(
        recorded: Recorded,
        told: impl IntoIterator<Item = (&'static str, u64)>,
        encoded: EncodeStats,
        upload: Option<&UploadStats>,
        file: Option<&FileStats>,
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
        counts.extend(told.into_iter().map(|(name, count)| (name.to_owned(), count)));
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
        Self { counts, of_engines: of_engines(&recorded), levels }
    }

    /// What was counted since `earlier`, and what there is; what is 0 is left out.
    pub(super) fn since(&self, earlier: &Self) -> Vec<(&str, u64)> {
        let of_engines = Engine::ALL.into_iter().flat_map(|engine| self.of_engine_since(engine, earlier));
        self.of_all_since(earlier).into_iter().chain(of_engines).collect()
    }

    /// The same as attributes, without what is of one engine.
    pub(super) fn attributes_since(&self, earlier: &Self, tables: &mut Tables) -> Vec<AttributeId> {
        as_attributes(self.of_all_since(earlier), tables)
    }

    /// What is of one engine, as attributes.
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
        // Both have the same counts, in the same order.
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

/// Adds a group's counts, each by the group's name and its own.
fn push_group(
    counts: &mut Vec<(String, u64)>,
    group: &str,
    named: impl IntoIterator<Item = (&'static str, u64)>,
) {
    counts.extend(named.into_iter().map(|(name, count)| (format!("otlpprof.{group}.{name}"), count)));
}

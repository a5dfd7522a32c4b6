//! The agent's own counters, as attributes of each profile.
//!
//! Every count is the interval's. `otlpprof.samples.recorded` + `.dropped` are all signals that were for a
//! sample; recorded ones are in the profile, weighted.

use std::sync::atomic::Ordering;

use crate::export::stats::{FileStats, Loss, Tally, UploadStats};
use crate::model::{AttributeId, Tables};
use crate::sampling::cpu;
use crate::signal::counters::COUNTERS;
use crate::signal::walk::WalkError;

/// All counters at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    counts: Vec<(String, u64)>,
}

impl Snapshot {
    /// The counters now.
    pub(super) fn now(upload: Option<&UploadStats>, file: Option<&FileStats>) -> Self {
        let mut counts = Vec::new();
        for (name, count) in COUNTERS.named() {
            counts.push((format!("otlpprof.handler.{name}"), count));
        }
        for error in WalkError::ALL {
            let count = COUNTERS.walk_errors[error as usize].load(Ordering::Relaxed);
            counts.push((format!("otlpprof.walk_error.{}", error.name()), count));
        }
        for (name, count) in cpu::counts().entries() {
            counts.push((format!("otlpprof.cpu.{name}"), count));
        }
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
            counts.push(("otlpprof.upload.retries".into(), upload.retries));
            counts.push(("otlpprof.upload.wire_bytes".into(), upload.wire_bytes));
        }
        if let Some(file) = file {
            counts.push(("otlpprof.file.written.messages".into(), file.written.messages));
            counts.push(("otlpprof.file.failed.messages".into(), file.failed.messages));
        }
        Self { counts }
    }

    /// What was counted since `earlier`; what stayed at 0 is left out.
    pub(super) fn since(&self, earlier: &Self) -> Vec<(&str, u64)> {
        self.counts
            .iter()
            .map(|(name, count)| {
                let before = earlier.counts.iter().find(|(other, _)| other == name);
                (name.as_str(), count.saturating_sub(before.map_or(0, |(_, count)| *count)))
            })
            .filter(|&(_, count)| count > 0)
            .collect()
    }

    /// The same as attributes.
    pub(super) fn attributes_since(&self, earlier: &Self, tables: &mut Tables) -> Vec<AttributeId> {
        self.since(earlier)
            .into_iter()
            .map(|(name, count)| tables.int_attribute(name, i64::try_from(count).unwrap_or(i64::MAX), ""))
            .collect()
    }
}

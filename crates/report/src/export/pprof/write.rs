//! The encoded pprof profile.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use otlpprof_model::attribute_keys;
use otlpprof_pprof::messages::{Label, Profile, Sample};
use prost::Message as _;

use super::labels::text_label;
use super::samples::{PprofSamples, SampleKey};

/// Writes the profile, gzipped. Parts of it are encoded one after another: protobuf merges them.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(samples: PprofSamples, out: &mut dyn Write) -> io::Result<()> {
    let PprofSamples { mut tables, labels, processes, kinds, times, .. } = samples;
    let mut out = GzEncoder::new(out, Compression::default());
    let mut bytes = Vec::new();
    let mut put = |part: &Profile| {
        bytes.clear();
        part.encode(&mut bytes).map_err(io::Error::other)?;
        out.write_all(&bytes)
    };
    let (start_ns, end_ns) = times.unwrap_or_default();
    let nanos = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    let shared: Vec<_> = processes.shared().map(|(key, value)| format!("{key}={value}")).collect();
    let of_program = |key| processes.shared().find(|&(known, _)| known == key);
    let program = of_program(attribute_keys::PROCESS_EXECUTABLE_PATH)
        .or_else(|| of_program(attribute_keys::PROCESS_EXECUTABLE_NAME));
    let program = program.map_or(0, |(_, file)| tables.text(file));
    let shown = kinds.last();
    put(&Profile {
        sample_type: kinds.iter().map(|kind| kind.sample_type).collect(),
        time_nanos: nanos(start_ns),
        duration_nanos: nanos(end_ns.saturating_sub(start_ns)),
        period_type: shown.and_then(|kind| kind.period_type),
        period: shown.and_then(|kind| kind.period).unwrap_or(0),
        comment: shared.iter().map(|comment| tables.text(comment)).collect(),
        default_sample_type: shown.map_or(0, |kind| kind.sample_type.quantity),
        ..Profile::default()
    })?;
    let of_processes: Vec<Vec<Label>> = processes
        .differing()
        .map(|pairs| pairs.iter().filter_map(|(key, text)| text_label(&mut tables, key, text)).collect())
        .collect();
    // In the order of keys, so that equal input gives equal output.
    let mut rows: BTreeMap<SampleKey, Vec<i64>> = BTreeMap::new();
    let types = kinds.len();
    for (at, kind) in kinds.into_iter().enumerate() {
        for (key, value) in kind.sums.into_sums() {
            rows.entry(key).or_insert_with(|| vec![0; types])[at] = value;
        }
    }
    for (key, values) in rows {
        let mut labels_of_row = labels.get(key.labels).to_vec();
        // SANITY: `Processes::of` has given out the number.
        labels_of_row.extend(&of_processes[key.process as usize]);
        let sample =
            vec![Sample { location_ids: tables.location_ids(key.stack), values, labels: labels_of_row }];
        put(&Profile { sample, ..Profile::default() })?;
    }
    tables.parts(program, put)?;
    out.finish()?;
    Ok(())
}

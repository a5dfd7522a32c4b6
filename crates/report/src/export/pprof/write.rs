//! The encoded pprof profile.

use std::io::{self, Write};

use flate2::Compression;
use otlpprof_model::attribute_keys;
use otlpprof_pprof::messages::{Label, Profile, Sample};
use prost::Message as _;

use super::labels::text_label;
use super::samples::{Kind, PprofSamples, SampleKey};
use crate::parallel_deflate::{self, Container};

/// Writes the profile, gzipped. Parts of it are encoded one after another: protobuf merges them.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(samples: PprofSamples, out: &mut dyn Write) -> io::Result<()> {
    parallel_deflate::write(Container::Gzip, Compression::default(), out, |out| write_parts(samples, out))
}

fn write_parts(samples: PprofSamples, out: &mut dyn Write) -> io::Result<()> {
    let PprofSamples { mut tables, labels, processes, kinds, times, .. } = samples;
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
    let types = kinds.len();
    let of_kind = |(at, kind): (usize, Kind)| {
        kind.sums.into_sums().into_iter().map(move |(key, value)| (key, at, value))
    };
    let mut values: Vec<(SampleKey, usize, i64)> = kinds.into_iter().enumerate().flat_map(of_kind).collect();
    // In the order of keys, so that equal input gives equal output.
    values.sort_unstable();
    let mut part = Profile { sample: vec![Sample::default()], ..Profile::default() };
    for values in values.chunk_by(|(one, ..), (other, ..)| one == other) {
        let (sample, (key, ..)) = (&mut part.sample[0], values[0]);
        tables.location_ids_to(key.stack, &mut sample.location_ids);
        sample.values.clear();
        sample.values.resize(types, 0);
        values.iter().for_each(|&(_, at, value)| sample.values[at] = value);
        sample.labels.clear();
        sample.labels.extend(labels.get(key.labels));
        // SANITY: `Processes::of` has given out the number.
        sample.labels.extend(&of_processes[key.process as usize]);
        put(&part)?;
    }
    tables.parts(program, put)
}

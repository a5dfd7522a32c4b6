//! Payloads of files of any content: found and copied without the file in memory, and the same as the reader
//! of whole messages finds them, however few bytes are read at a time.
//!
//! `cargo fuzz run otlp_payload`; good first corpora are small results of
//! `otlpprof convert --include-payload`, as protobuf and as JSON.

#![no_main]

use std::io::{BufReader, Cursor};

use libfuzzer_sys::fuzz_target;
use otlpprof_otlp::found_payloads::PayloadError;
use otlpprof_otlp::payload::{copy_payload, find_payloads};
use otlpprof_otlp::read::read;
use otlpprof_otlp::wire::Profile;

/// The longest format that is reported.
const LONGEST_FORMAT: usize = 64;

/// Format and bytes of each payload; no bytes if the payload's text is not base64.
type Payloads = Vec<(String, Option<Vec<u8>>)>;

fn found(bytes: &[u8], at_a_time: usize) -> Result<Payloads, PayloadError> {
    let mut file = BufReader::with_capacity(at_a_time.max(1), Cursor::new(bytes));
    let places = find_payloads(&mut file)?;
    let payload = |place| {
        let mut bytes = Vec::new();
        copy_payload(&mut file, place, &mut bytes).ok().map(|()| bytes)
    };
    let payloads: Vec<_> = places.iter().map(payload).collect();
    Ok(places.into_iter().map(|place| place.format).zip(payloads).collect())
}

fn payload(profile: Profile) -> Option<(String, Option<Vec<u8>>)> {
    let format = Some(profile.original_payload_format).filter(|format| format.len() <= LONGEST_FORMAT);
    (!profile.original_payload.is_empty())
        .then_some((format.unwrap_or_default(), Some(profile.original_payload)))
}

fuzz_target!(|bytes: &[u8]| {
    let found_at_once = |at_a_time| found(bytes, at_a_time).map_err(|error| error.to_string());
    let whole = found_at_once(bytes.len());
    assert_eq!(found_at_once(1 + bytes.len() % 13), whole);
    // Compressed files are decompressed by the caller.
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return;
    }
    let Ok(messages) = read(bytes).collect::<Result<Vec<_>, _>>() else { return };
    let resources = messages.into_iter().flat_map(|message| message.data.resource_profiles);
    let scopes = resources.flat_map(|resource| resource.scope_profiles);
    let payloads = scopes.flat_map(|scope| scope.profiles).filter_map(payload);
    assert_eq!(whole, Ok(payloads.collect()));
});

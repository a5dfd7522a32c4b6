//! OTLP/JSON of any content: each text that can be read is a message, and its halves are messages too.
//!
//! `cargo fuzz run otlp_json`; a profile that the agent wrote with `format=json` makes a good first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_otlp::read::{decode_json, decode_protobuf};
use otlpprof_otlp::wire::ProfilesData;
use otlpprof_otlp::{Format, halve};
use prost::Message as _;

fn samples(data: &ProfilesData) -> usize {
    let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
    scopes.flat_map(|scope| &scope.profiles).map(|profile| profile.samples.len()).sum()
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = decode_json(bytes) else { return };
    let protobuf = message.data.encode_to_vec();
    if let Ok(again) = decode_protobuf(&protobuf) {
        // Compares bytes rather than messages, since a NaN is unequal to itself.
        assert_eq!(again.data.encode_to_vec(), protobuf);
    }
    let decode = |format, half: &[u8]| match format {
        Format::Proto => decode_protobuf(half),
        Format::Json => decode_json(half),
    };
    for (format, whole) in [(Format::Json, bytes), (Format::Proto, &protobuf)] {
        let Some(halves) = halve(whole, format) else { continue };
        let counts = halves.map(|(half, count)| {
            let half = decode(format, &half).expect("a half is a message");
            assert_eq!(samples(&half.data) as u64, count);
            count
        });
        assert_eq!(counts.iter().sum::<u64>(), samples(&message.data) as u64);
    }
});

//! Messages that are damaged anywhere: their frames get names or the message stays as it is, and the result
//! can be read again.

use std::path::Path;

use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::to_json;
use otlpprof_symbolize::with_names;
use otlpprof_testkit::otlp_fixture::{Dictionary, valid};
use otlpprof_testkit::unnamed_frames::{FRAME_FORMS, LIBRARY, ProfiledObject, message_of};
use prost::Message as _;

/// Names the frames of a message. Returns whether there were any.
fn name(bytes: Vec<u8>) -> bool {
    let Ok(message) = EncodedMessage::of_protobuf(bytes) else { return false };
    let Some(named) = with_names(&message, &["inner", "outer"]) else { return false };
    let Ok(named) = named else { return true };
    let named = EncodedMessage::of_protobuf(named.into_bytes()).expect("the result can be read");
    assert!(with_names(&named, &["inner", "outer"]).is_none(), "all frames have names");
    let _ = to_json(named.bytes());
    true
}

#[test]
fn damaged_messages_become_messages() {
    let object = ProfiledObject::of(Path::new(LIBRARY), "/opt/libddproftest.so");
    let mut tables = Dictionary::new();
    let locations: Vec<_> =
        FRAME_FORMS.iter().map(|&form| object.location(&mut tables, form, 0x2345)).collect();
    for message in [message_of(tables, &locations), valid()] {
        let whole = message.encode_to_vec();
        assert!(name(whole.clone()));
        let mut named = 0;
        for at in 0..whole.len() {
            for flipped in [0x01, 0x10, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= flipped;
                named += u32::from(name(damaged));
            }
            name(whole[..at].to_vec());
        }
        assert!(named > 100, "{named}");
    }
}

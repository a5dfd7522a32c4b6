//! The libraries of a profile, which the Firefox Profiler identifies as Breakpad does.
//!
//! Source: Breakpad, `FileID::ConvertIdentifierToUUIDString`: the first 16 bytes of the build-id are a GUID
//! with little-endian numbers, written in capitals, followed by the age 0.

use otlpprof_core::build_id::BuildId;
use serde_json::{Value, json};

use crate::objects::Object;

/// The bytes of a GUID.
const GUID_BYTES: usize = 16;

/// The list of libraries, in the order of the objects.
pub(super) fn libraries(objects: &[Object]) -> Value {
    let library = |object: &Object| {
        let code_id = object.build_id.map(|build_id| build_id.to_string());
        json!({
            "arch": "",
            "name": object.name(),
            "path": object.path,
            "debugName": object.name(),
            "debugPath": object.path,
            "breakpadId": object.build_id.as_ref().map(breakpad_id).unwrap_or_default(),
            "codeId": code_id,
        })
    };
    objects.iter().map(library).collect()
}

fn breakpad_id(build_id: &BuildId) -> String {
    let mut guid = [0; GUID_BYTES];
    guid.iter_mut().zip(build_id.as_bytes()).for_each(|(to, from)| *to = *from);
    for number in [0..4, 4..6, 6..8] {
        guid[number].reverse();
    }
    let digits: String = guid.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("{digits}0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakpad_swaps_the_numbers_of_the_guid() {
        let of = |hex: &str| breakpad_id(&BuildId::from_hex(hex).unwrap());
        assert_eq!(of("0123456789abcdef0123456789abcdef01234567"), "67452301AB89EFCD0123456789ABCDEF0");
        assert_eq!(of("0102"), "000002010000000000000000000000000");
    }
}

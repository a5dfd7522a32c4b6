//! Finds original payloads in OTLP/JSON. The text is scanned as a stream, because a payload may be far larger
//! than memory.

use std::io::{self, BufRead, Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::found_payloads::{FoundPayloads, PayloadError};
use super::json_scalar::base64_digit;
use super::json_text::{Escapes, JsonText, Unescaped};

/// The keys on the path to a profile. This and the following constants list each key as the specification
/// spells it, and in the snake_case form that readers accept too.
const PATH: [[&str; 2]; 3] =
    [["resourceProfiles", "resource_profiles"], ["scopeProfiles", "scope_profiles"], ["profiles"; 2]];
const PAYLOAD: [&str; 2] = ["originalPayload", "original_payload"];
const FORMAT: [&str; 2] = ["originalPayloadFormat", "original_payload_format"];
const COPY_LEN: usize = 1 << 16;

/// Finds the payloads of all profiles of all documents.
pub(super) fn find(from: impl BufRead) -> Result<FoundPayloads, PayloadError> {
    let mut text = JsonText::new(from);
    let mut found = FoundPayloads::default();
    while text.next_document()?.is_some() {
        message(&mut text, 0, &mut found)?;
    }
    Ok(found)
}

/// Scans a message at this level of [`PATH`].
fn message(
    text: &mut JsonText<impl BufRead>,
    level: usize,
    found: &mut FoundPayloads,
) -> Result<(), PayloadError> {
    // If a key is repeated, its last value counts.
    let (mut format, mut payload) = (String::new(), None);
    text.object(|text| {
        let key_bytes = text.last_string();
        let is = |keys: [&str; 2]| keys.iter().any(|key| key.as_bytes() == key_bytes);
        match PATH.get(level) {
            Some(&step) if is(step) => match text.next()? {
                Some(b'[') => text.array(|text| message(text, level + 1, found)),
                Some(b'n') => text.value(),
                _ => text.expected("an array"),
            },
            None if is(PAYLOAD) => match text.next()? {
                Some(b'n') => text.value(),
                _ => text.string().map(|place| payload = Some(place)),
            },
            None if is(FORMAT) => match text.next()? {
                Some(b'n') => text.value(),
                _ => text.string().map(|_| format = String::from_utf8_lossy(text.last_string()).into_owned()),
            },
            _ => text.value(),
        }
    })?;
    payload.map_or(Ok(()), |place| found.add(format, place, true))
}

/// Decodes the rest of `from`: the contents of a JSON string, in either base64 alphabet.
///
/// # Errors
/// If the text is not base64, or if reading or writing fails.
pub(super) fn copy_decoded(from: &mut impl Read, to: &mut dyn Write) -> io::Result<()> {
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "a payload is not base64");
    let (mut bits, mut digits, mut padding, mut escapes) = (0_u32, 0, 0, Escapes::default());
    let mut text = vec![0; COPY_LEN];
    let mut out = Vec::with_capacity(COPY_LEN);
    let mut groups = vec![0; COPY_LEN / 4 * 3];
    loop {
        let count = match from.read(&mut text) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut rest = &text[..count];
        let mut is_usual = true;
        loop {
            // The fast path for nearly all of the text: many groups of the standard alphabet.
            if is_usual && digits == 0 && padding == 0 && !escapes.are_open() {
                let (whole, others) = rest.split_at(rest.len() / 4 * 4);
                match STANDARD_NO_PAD.decode_slice(whole, &mut groups) {
                    Ok(decoded) => {
                        out.extend_from_slice(&groups[..decoded]);
                        rest = others;
                    }
                    Err(_) => is_usual = false,
                }
            }
            while digits == 0
                && padding == 0
                && !escapes.are_open()
                && let Some((four, others)) = rest.split_first_chunk()
                && let Some(bits) = four_digits(*four)
            {
                out.extend_from_slice(&bits.to_be_bytes()[1..]);
                rest = others;
            }
            let Some((&byte, others)) = rest.split_first() else { break };
            rest = others;
            let byte = match escapes.take(byte).map_err(|_| bad())? {
                None => continue,
                Some(Unescaped::Byte(byte)) => byte,
                Some(Unescaped::Char(_)) => return Err(bad()),
            };
            match byte {
                b'=' if padding < 2 => padding += 1,
                _ if padding > 0 => return Err(bad()),
                _ => {
                    bits = bits << 6 | base64_digit(byte).ok_or_else(bad)?;
                    digits += 1;
                    if digits == 4 {
                        out.extend_from_slice(&bits.to_be_bytes()[1..]);
                        (bits, digits) = (0, 0);
                    }
                }
            }
        }
        to.write_all(&out)?;
        out.clear();
    }
    if escapes.are_open() || digits == 1 || (padding > 0 && digits + padding != 4) {
        return Err(bad());
    }
    bits <<= 6 * (4 - digits);
    to.write_all(&bits.to_be_bytes()[1..digits.max(1)])
}

/// The 24 bits of four digits; `None` if one of the bytes is not a digit.
fn four_digits(four: [u8; 4]) -> Option<u32> {
    let mut bits = 0;
    for digit in four {
        bits = bits << 6 | base64_digit(digit)?;
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use proptest::prelude::*;

    use super::super::payload::{copy_payload, find_payloads};
    use super::super::read::read;
    use super::*;

    /// The format and bytes of each payload. The file is read in pieces of `at_a_time` bytes.
    fn found_in(text: &[u8], at_a_time: usize) -> Result<Vec<(String, Vec<u8>)>, PayloadError> {
        let mut file = BufReader::with_capacity(at_a_time, Cursor::new(text));
        let bytes = |place| {
            let mut bytes = Vec::new();
            copy_payload(&mut file, place, &mut bytes).map(|()| bytes)
        };
        let places = find_payloads(&mut BufReader::with_capacity(at_a_time, Cursor::new(text)))?;
        let bytes = places.iter().map(bytes).collect::<Result<Vec<_>, _>>()?;
        Ok(places.into_iter().map(|place| place.format).zip(bytes).collect())
    }

    /// The format and bytes of each payload, by the reader that holds whole documents in memory; `None` if it
    /// rejects one.
    fn found_by_reader(text: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
        let messages = read(text).collect::<Result<Vec<_>, _>>().ok()?;
        let resources = messages.into_iter().flat_map(|message| message.data.resource_profiles);
        let scopes = resources.flat_map(|resource| resource.scope_profiles);
        let profiles = scopes.flat_map(|scope| scope.profiles);
        let payloads = profiles.map(|profile| (profile.original_payload_format, profile.original_payload));
        Some(payloads.filter(|(_, payload)| !payload.is_empty()).collect())
    }

    fn with_profiles(profiles: &str) -> String {
        let resources = format!(r#"[{{"scopeProfiles":[{{}},{{"profiles":[{profiles}]}}]}}]"#);
        format!(r#"{{"dictionary":{{}},"resourceProfiles":{resources}}}"#)
    }

    fn jfr(bytes: &[u8]) -> (String, Vec<u8>) {
        ("jfr".to_owned(), bytes.to_vec())
    }

    #[test]
    fn payloads_of_profiles_are_found_and_no_others() {
        let profiles = r#"{"originalPayloadFormat":"jfr" , "originalPayload" :
            "Rkx\/SQ==", "x":["originalPayload",{"originalPayload":"AA=="}]},
            {"originalPayload":null}, {"originalPayload":""}, {"timeUnixNano":"7", "a\"b":"\\"},
            {"original_payload":"AA==","original_payload_format":"jfr","attributeIndices":[]},
            {"originalPayload":"AA==","originalPayload":"AQ==",
            "originalPayload":null,"originalPayloadFormat":"jfr"},
            {"\u006friginalPaylo\u0061d":"A\u0067\u003d\u003d","originalPayloadFormat":"\u006afr"}"#;
        let text = with_profiles(profiles);
        let expected = [jfr(&[0x46, 0x4c, 0x7f, 0x49]), jfr(&[0]), jfr(&[1]), jfr(&[2])];
        assert_eq!(found_in(text.as_bytes(), 1).unwrap(), expected);
        assert_eq!(found_by_reader(text.as_bytes()).unwrap(), expected);
        let other = r#"{"originalPayload":"AA==","scopeProfiles":[{"originalPayload":"AA=="}]}"#;
        let documents = format!("{text} \n{other}\n\u{c}{text}\r\n");
        assert_eq!(found_in(documents.as_bytes(), 64).unwrap(), [expected.clone(), expected].concat());
        assert!(found_in(b"", 1).unwrap().is_empty() && found_in(b" \n", 1).unwrap().is_empty());
        let long = with_profiles(&format!(
            r#"{{"originalPayload":"AA==","originalPayloadFormat":"{}"}}"#,
            "j".repeat(1_000)
        ));
        assert_eq!(found_in(long.as_bytes(), 64).unwrap(), [(String::new(), vec![0])]);
    }

    #[test]
    fn malformed_or_truncated_json_is_an_error() {
        let text = with_profiles(r#"{"originalPayload":"AAAA","originalPayloadFormat":"jfr"}"#);
        for cut in 1..text.len() {
            let error = found_in(&text.as_bytes()[..cut], 64).unwrap_err();
            assert!(matches!(error, PayloadError::Json { at, .. } if at == cut as u64), "{cut}: {error}");
        }
        for (bad, expected) in [
            (with_profiles(r#"{"originalPayload":7}"#), "a string"),
            (with_profiles(r#"{"originalPayloadFormat":{}}"#), "a string"),
            (with_profiles("7"), "an object"),
            (r#"{"resourceProfiles":"x"}"#.to_owned(), "an array"),
            (r#"{"resourceProfiles":[]} []"#.to_owned(), "an object"),
        ] {
            let error = found_in(bad.as_bytes(), 64).unwrap_err().to_string();
            assert!(error.ends_with(&format!("bad JSON, expected {expected}")), "{bad}: {error}");
        }
        let bad = with_profiles(r#"{"originalPayload":"AA=A"}"#);
        let error = found_in(bad.as_bytes(), 64).unwrap_err().to_string();
        assert_eq!(error, "a payload is not base64");
    }

    #[test]
    fn base64_is_decoded_in_all_its_forms() {
        let decoded = |text: &str, at_a_time: usize| {
            let mut out = Vec::new();
            let mut from = BufReader::with_capacity(at_a_time, text.as_bytes());
            // This reader fills one buffer at a time.
            let mut from = io::BufReader::with_capacity(at_a_time, &mut from);
            copy_decoded(&mut from, &mut out).map(|()| out)
        };
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zg", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9vYmFy", b"foobar"),
            ("+/-_", &[0xfb, 0xff, 0xbf]),
            (r"+\/-_", &[0xfb, 0xff, 0xbf]),
            (r"Z\u0067\u003d\u003D", b"f"),
        ] {
            for at_a_time in 1..9 {
                assert_eq!(decoded(text, at_a_time).unwrap(), bytes, "{text}");
            }
        }
        for bad in [
            "Z",
            "Zg=",
            "Zg===",
            "Zm8==",
            "Z=g=",
            "Zg==Zg==",
            "Zm9v=",
            "====",
            "?",
            r"Zg\",
            r"Z\g",
            r"Zg\u003",
            r"Zg\n",
            r"Zm9vYm\u20acy",
            "Zm9v\n",
            "Z g=",
        ] {
            assert!(decoded(bad, 3).is_err(), "{bad}");
        }
    }

    /// Keys and values of a profile, both as writers emit them and in unusual forms.
    fn profile() -> impl Strategy<Value = String> {
        let payload = prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| {
            let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            let mut text = String::new();
            for group in bytes.chunks(3) {
                let mut bits = [0; 4];
                bits[1..=group.len()].copy_from_slice(group);
                let bits = u32::from_be_bytes(bits);
                for digit in 0..=group.len() {
                    match digits[(bits >> (18 - 6 * digit) & 63) as usize] {
                        b'/' if bits & 1 == 0 => text.push_str("\\/"),
                        b'A' => text.push_str("\\u0041"),
                        digit => text.push(digit.into()),
                    }
                }
                text.push_str(&"=".repeat(3 - group.len()));
            }
            format!("\"{text}\"")
        });
        let key = prop::sample::select(vec![
            "originalPayload",
            "original_payload",
            "original\\u0050ayload",
            "originalPayloadFormat",
            "original_payload_format",
            "timeUnixNano",
            "x\\\"",
            "profiles",
        ]);
        let other = prop::sample::select(vec![
            "null",
            "\"7\"",
            "7",
            "[]",
            "{}",
            "\"jfr\"",
            "\"pprof\"",
            "[{\"originalPayload\":\"AA==\"}]",
        ]);
        let value = prop_oneof![payload, other.prop_map(str::to_owned)];
        let entry = (key, value).prop_map(|(key, value)| format!("\"{key}\" : {value}"));
        prop::collection::vec(entry, 0..5).prop_map(|entries| format!("{{{}}}", entries.join(", ")))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn any_split_gives_the_result_of_reading_whole_documents(
            profiles in prop::collection::vec(profile(), 0..4),
            documents in 1usize..3,
            at_a_time in 1usize..40,
            damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut text = vec![with_profiles(&profiles.join(",")); documents].join("\n").into_bytes();
            if let Some((place, byte)) = damage {
                let place = place.index(text.len());
                text[place] = byte;
            }
            let found_at_once = |at_a_time| found_in(&text, at_a_time).map_err(|error| error.to_string());
            let whole = found_at_once(text.len());
            prop_assert_eq!(&found_at_once(at_a_time), &whole);
            if let Some(expected) = found_by_reader(&text) {
                prop_assert_eq!(whole, Ok(expected), "{}", String::from_utf8_lossy(&text));
            }
        }
    }
}

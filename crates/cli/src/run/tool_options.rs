//! The text of the variable JAVA_TOOL_OPTIONS, in HotSpot's syntax.
//!
//! Options are separated by white space. Within quotes, single or double, each other character stands for
//! itself; nothing is escaped (HotSpot, `Arguments::parse_options_buffer` in runtime/arguments.cpp, JDK 11 to
//! 25).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Adds an option at the end of the variable's value, which may be empty.
pub(super) fn with_option(before: &OsStr, option: &OsStr) -> OsString {
    let mut text = before.as_bytes().to_vec();
    if !text.is_empty() {
        text.push(b' ');
    }
    text.extend(quoted(option.as_bytes()));
    OsString::from_vec(text)
}

/// The option as one token.
fn quoted(option: &[u8]) -> Vec<u8> {
    let needs_no_quote = |byte: &u8| byte.is_ascii_graphic() && !b"'\"".contains(byte);
    if option.iter().all(needs_no_quote) {
        return option.to_vec();
    }
    let mut text = vec![b'"'];
    for &byte in option {
        match byte {
            // Ends the quoted part, and quotes the quote by the other one.
            b'"' => text.extend(b"\"'\"'\""),
            _ => text.push(byte),
        }
    }
    text.push(b'"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options that HotSpot reads from the variable.
    fn as_hotspot_reads(text: &[u8]) -> Vec<Vec<u8>> {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r');
        let mut options = Vec::new();
        let mut rest = text.iter().peekable();
        loop {
            while rest.next_if(|byte| is_space(byte)).is_some() {}
            if rest.peek().is_none() {
                return options;
            }
            let mut option = Vec::new();
            while let Some(&byte) = rest.next_if(|byte| !is_space(byte)) {
                if !b"'\"".contains(&byte) {
                    option.push(byte);
                    continue;
                }
                loop {
                    match *rest.next().expect("a closing quote") {
                        quote if quote == byte => break,
                        inside => option.push(inside),
                    }
                }
            }
            options.push(option);
        }
    }

    #[test]
    fn hotspot_reads_the_option_after_those_that_were_there() {
        for option in [
            "-agentpath:/a/libotlpprof.so=cpu=5ms,file=/tmp/x",
            "-agentpath:/with space/lib.so=",
            "-a:/it's/a \"b\"/c",
            "\"",
            "'\"'",
            "tab\tand\nline",
            "größe",
        ] {
            for (before, kept) in [
                ("", &[][..]),
                ("-Xmx1g  -Da=b", &["-Xmx1g", "-Da=b"]),
                ("-Da='b c' ", &["-Da=b c"]),
                ("\t-Da=\"'\"", &["-Da='"]),
            ] {
                let text = with_option(before.as_ref(), option.as_ref());
                let read: Vec<_> = as_hotspot_reads(text.as_bytes());
                let expected: Vec<_> = kept.iter().chain([&option]).map(|text| text.as_bytes()).collect();
                assert_eq!(read, expected, "{text:?}");
            }
        }
        assert_eq!(with_option("-Xint".as_ref(), "-a:/b=c".as_ref()), "-Xint -a:/b=c", "no needless quotes");
    }
}

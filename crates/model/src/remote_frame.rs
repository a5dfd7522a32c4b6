//! The text form of an unsymbolized native frame: `<build-id>.<remote>(0x<address>)`.
//!
//! A viewer builds this form from the three strings that such a frame has in a JFR recording: the class is
//! the build-id in hexadecimal, the method `<remote>`, the descriptor the address. All code that writes or
//! parses either form is here.

use std::fmt;

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};
use otlpprof_core::build_id::BuildId;

/// The method name of a remote frame in a recording.
pub const REMOTE_METHOD: &str = "<remote>";

/// A native frame, identified by its object's build-id and its address in the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteFrame {
    /// The build-id of the object.
    pub build_id: BuildId,
    /// The lookup address in the object.
    pub address: ElfVaddr,
}

impl fmt::Display for RemoteFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{REMOTE_METHOD}({:#x})", self.build_id, self.address.0)
    }
}

impl RemoteFrame {
    /// Parses the text form.
    pub fn parse(text: &str) -> Option<Self> {
        let (class, rest) = text.split_once('.')?;
        let descriptor = rest.strip_prefix(REMOTE_METHOD)?;
        if !descriptor.starts_with('(') {
            return None;
        }
        Self::from_parts(class, REMOTE_METHOD, descriptor)
    }

    /// Parses the three strings of a recording. The descriptor is `0x…`, with or without parentheses. Without
    /// `0x` it would be ambiguous, and is rejected.
    pub fn from_parts(class: &str, method: &str, descriptor: &str) -> Option<Self> {
        if method != REMOTE_METHOD {
            return None;
        }
        let bare = match descriptor.strip_prefix('(') {
            Some(opened) => opened.strip_suffix(')')?,
            None => descriptor,
        };
        let digits = bare.strip_prefix("0x")?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None; // from_str_radix accepts a sign
        }
        let address = ElfVaddr(u64::from_str_radix(digits, 16).ok()?);
        Some(Self { build_id: BuildId::from_hex(class)?, address })
    }
}

/// Returns the name of a native frame without a symbol: `[name+0xaddress]`. The name is the last component of
/// the object's path, without brackets as in `[vdso]`.
pub fn unnamed_native_frame(object_path: &str, address: ElfVaddr) -> String {
    let file = object_path.rsplit('/').next().unwrap_or_default();
    let name = match file.trim_matches(['[', ']']) {
        "" => "unknown",
        name => name,
    };
    format!("[{name}+{:#x}]", address.0)
}

/// Returns the name of a native frame in no known object: its run-time address.
pub fn native_frame_nowhere(address: RuntimeAddr) -> String {
    format!("[{:#x}]", address.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn is_printed_and_parsed_in_the_usual_form() {
        let frame = RemoteFrame { build_id: BuildId::from_hex("00ab12").unwrap(), address: ElfVaddr(0x1f2e) };
        assert_eq!(frame.to_string(), "00ab12.<remote>(0x1f2e)");
        assert_eq!(RemoteFrame::parse("00AB12.<remote>(0x1F2E)"), Some(frame));
        assert_eq!(RemoteFrame::from_parts("00ab12", "<remote>", "0x1f2e"), Some(frame));
        assert_eq!(RemoteFrame::from_parts("00ab12", "<remote>", "(0x1f2e)"), Some(frame));
    }

    #[test]
    fn refuses_text_that_only_resembles_a_remote_frame() {
        for text in [
            "",
            "00ab12",
            "00ab12.<remote>",
            "00ab12.<remote>0x1",
            "00ab12.<remote>()",
            "00ab12.<remote>(0x)",
            "00ab12.<remote>(0x1",
            "00ab12.<remote>(12)",
            "00ab12.<remote>(0x+1)",
            "00ab12.<remote>(0x10000000000000000)",
            "00ab12.remote(0x1)",
            "00ab1.<remote>(0x1)",
            ".<remote>(0x1)",
            "java.lang.Object.<remote>(0x1)",
        ] {
            assert_eq!(RemoteFrame::parse(text), None, "{text:?}");
        }
        assert_eq!(RemoteFrame::from_parts("00ab12", "main", "0x1"), None);
        assert_eq!(RemoteFrame::from_parts("00ab12", "<remote>", "0x1)"), None);
    }

    #[test]
    fn frames_without_a_name_are_named_after_their_object() {
        assert_eq!(unnamed_native_frame("/usr/lib/libfoo.so.1", ElfVaddr(0x10)), "[libfoo.so.1+0x10]");
        assert_eq!(unnamed_native_frame("[vdso]", ElfVaddr(0x10)), "[vdso+0x10]");
        assert_eq!(unnamed_native_frame("", ElfVaddr(0)), "[unknown+0x0]");
        assert_eq!(native_frame_nowhere(RuntimeAddr(0x7f00_1234)), "[0x7f001234]");
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(id in prop::collection::vec(any::<u8>(), 1..64), address in any::<u64>()) {
            let frame = RemoteFrame { build_id: BuildId::new(&id).unwrap(), address: ElfVaddr(address) };
            prop_assert_eq!(RemoteFrame::parse(&frame.to_string()), Some(frame));
        }

        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = RemoteFrame::parse(&text);
        }
    }
}

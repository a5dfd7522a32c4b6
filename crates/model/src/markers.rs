//! Markers: frames in brackets that stand for something that a stack lacks.
//!
//! A marker is `[kind]` or `[kind: reason]`, in lower case, with underscores between words. All code that
//! writes or recognises one of our markers takes its text from here. docs/frames-and-walkers.md explains each
//! to users. Names of native frames without a symbol, such as `[libc.so.6+0x16db75]`, are not markers;
//! `remote_frame` has them.

/// The frames below the recorded depth.
pub const TRUNCATED: &str = "[truncated]";
/// The whole stack of a thread without Java frames, if native frames are left out.
pub const NO_JAVA_FRAME: &str = "[no_java_frame]";
/// A native frame in an object that is no longer known.
pub const UNKNOWN_OBJECT: &str = "[unknown_object]";
/// A Java frame in a method that is no longer known.
pub const UNKNOWN_METHOD: &str = "[unwalkable: unknown_method]";
/// The whole stack of a recorded event, if the JVM could not walk the stack.
pub const WALK_FAILED: &str = "[unwalkable: failed]";
/// The whole stack of a recorded event without a stack.
pub const NO_STACK: &str = "[no_stack]";
/// The root of the stacks of samples without a thread, where stacks are divided by thread.
pub const NO_THREAD: &str = "[no_thread]";
/// A frame whose method or function has no name.
pub const UNKNOWN: &str = "[unknown]";
/// A frame in code that the VM has generated under no known name.
pub const STUB: &str = "[stub]";
/// A frame in the kernel without a symbol, outside of the kernel's known text.
pub const KERNEL: &str = "[kernel]";
/// A frame of a message that has neither a function nor an address.
pub const NO_NAME: &str = "[no_name]";

/// The frames that are missing where a walk could not go on.
pub fn unwalkable(reason: &str) -> String {
    format!("[unwalkable: {reason}]")
}

/// All frames of a virtual thread that were frozen on the heap and could not be read.
pub fn frozen(reason: &str) -> String {
    format!("[frozen: {reason}]")
}

/// The stack at an index for which a message's table has none.
pub fn no_stack_at(index: i32) -> String {
    format!("[no_stack: {index}]")
}

/// The frames of a location at an index for which a message's table has none.
pub fn no_location_at(index: i32) -> String {
    format!("[no_location: {index}]")
}

/// Whether the text is a marker, in this or an earlier spelling, of frames that a stack lacks or that could
/// not be named. The kind decides, whatever follows: `[unknown` also begins several markers of
/// async-profiler.
pub fn is_of_broken_stack(text: &str) -> bool {
    const KINDS: [&str; 6] =
        ["[unwalkable", "[frozen", "[truncated", "[unknown", "[no_stack", EARLIER_NO_STACK];
    KINDS.iter().any(|kind| text.starts_with(kind))
}

/// Whether the text is [`NO_JAVA_FRAME`], or its earlier spelling.
pub fn is_no_java_frame(text: &str) -> bool {
    [NO_JAVA_FRAME, EARLIER_NO_JAVA_FRAME].contains(&text)
}

/// The earlier spelling of [`NO_JAVA_FRAME`], which async-profiler also uses.
const EARLIER_NO_JAVA_FRAME: &str = "[no_Java_frame]";
/// The beginning of the earlier spelling of [`NO_STACK`] and [`no_stack_at`].
const EARLIER_NO_STACK: &str = "[no stack";

#[cfg(test)]
mod tests {
    use super::*;

    /// The markers that agent and converter write, with the reasons as in the documents.
    fn written() -> Vec<String> {
        let fixed = [
            TRUNCATED,
            NO_JAVA_FRAME,
            UNKNOWN_OBJECT,
            UNKNOWN_METHOD,
            WALK_FAILED,
            NO_STACK,
            UNKNOWN,
            STUB,
            KERNEL,
        ];
        fixed.map(str::to_owned).into_iter().chain([unwalkable("REASON"), frozen("REASON")]).collect()
    }

    #[test]
    fn every_marker_has_the_one_form() {
        let in_files = [NO_NAME.to_owned(), no_stack_at(7), no_location_at(-1)];
        for marker in written().into_iter().chain(in_files) {
            let inner = marker.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).expect("brackets");
            let (kind, reason) = inner.split_once(": ").unwrap_or((inner, "none"));
            let is_word = |text: &str| {
                !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            };
            assert!(is_word(kind), "{marker}");
            assert!(is_word(reason) || reason == "REASON" || reason.parse::<i32>().is_ok(), "{marker}");
        }
    }

    #[test]
    fn the_document_explains_every_marker() {
        let document = include_str!("../../../docs/frames-and-walkers.md");
        for marker in written() {
            let row = format!("| `{marker}` |");
            assert!(document.contains(&row), "docs/frames-and-walkers.md has no row {row}");
        }
    }

    #[test]
    fn markers_of_earlier_versions_are_recognised() {
        assert!(is_no_java_frame("[no_Java_frame]") && is_no_java_frame(NO_JAVA_FRAME));
        for earlier in ["[unknown object]", "[no stack]", "[no stack 7]"] {
            assert!(is_of_broken_stack(earlier), "{earlier}");
        }
        for complete in [NO_JAVA_FRAME, STUB, KERNEL, "[libc.so.6+0x16db75]", "[0x7f12a4001c20]", "f"] {
            assert!(!is_of_broken_stack(complete), "{complete}");
        }
    }
}

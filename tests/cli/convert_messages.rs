//! The messages of `otlpprof convert`: progress, numbers of events by result, and breaches of rules.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::ptr::null_mut;

use otlpprof_testkit::commands::{otlpprof, printed_by_otlpprof, text};
use otlpprof_testkit::recordings::synthetic::{
    CONSTANT_POOLS, FieldOf, LONG, STACK_TRACE, STRING, Shape, TypeOf, VALUE_TYPES, Writer, crafted,
    pools_of_constants,
};

const SHAPE: Shape =
    Shape { events: 1, depth: 4, repeated_percent: 0, contexts: 3, remote_frames: 0, compressed: true };

const START: FieldOf = ("startTime", LONG, false, false);
const STACK: FieldOf = ("stackTrace", STACK_TRACE, true, false);
const THROWN: i64 = 200;
const STARTED: i64 = 201;
const VARIABLE: i64 = 202;
const OF_NO_KNOWN_TYPE: i64 = 203;
const TYPES: [TypeOf; 3] = [
    (THROWN, "jdk.JavaExceptionThrow", "jdk.jfr.Event", &[START, STACK]),
    (STARTED, "jdk.ThreadStart", "jdk.jfr.Event", &[START, STACK]),
    (
        VARIABLE,
        "jdk.InitialEnvironmentVariable",
        "jdk.jfr.Event",
        &[START, ("key", STRING, false, false), ("value", STRING, false, false)],
    ),
];

/// A file with a recording of these events.
fn recorded(events: impl FnOnce(&mut Writer)) -> tempfile::NamedTempFile {
    let constants = |out: &mut Writer| pools_of_constants(out, SHAPE, 3);
    let bytes = crafted(&[VALUE_TYPES, &TYPES].concat(), events, CONSTANT_POOLS, constants);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

/// Writes an event with the stack of this id. The recording has the stacks 1 to 3.
fn event(out: &mut Writer, of: i64, stack: i64) {
    out.event(of, |out| [1, stack].into_iter().for_each(|field| out.long(field)));
}

#[test]
fn events_without_a_stack_are_counted_and_reported() {
    let input = recorded(|out| {
        for (of, stack) in [(THROWN, 1), (THROWN, 0), (THROWN, 2), (STARTED, 0), (STARTED, 3), (THROWN, 77)] {
            event(out, of, stack);
        }
        out.event(VARIABLE, |out| {
            out.long(1);
            ["HOME", "/root"].into_iter().for_each(|text| out.text(text));
        });
    });
    let arguments = ["convert", text(input.path()), "-o", "/dev/null"];
    let (code, printed) = printed_by_otlpprof(&arguments);
    let thrown = "jdk.JavaExceptionThrow: 4 converted, 2 of those without a stack\n";
    let others = "not converted: jdk.InitialEnvironmentVariable 1, jdk.ThreadStart 2\n";
    assert_eq!((code, printed), (0, format!("{thrown}{others}")));
    // A stack that the chunk lacks counts as no stack.
    let (code, printed) = printed_by_otlpprof(&[&arguments[..], &["--event", "jdk.ThreadStart"]].concat());
    let started = "jdk.ThreadStart: 2 converted, 1 of those without a stack\n";
    let others = "not converted: jdk.InitialEnvironmentVariable 1\n";
    assert_eq!((code, printed), (0, format!("{thrown}{started}{others}")));
}

/// Regression: standard input that was named twice was converted once, and other mistakes were reported
/// without advice.
#[test]
fn mistakes_in_the_inputs_are_one_line_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let (file, output) = (directory.path().join("in"), directory.path().join("out"));
    let refused = |arguments: &[&str]| {
        let (code, printed) = printed_by_otlpprof(&[&["convert", "-o", text(&output)], arguments].concat());
        assert!(code == 2 && printed.lines().count() == 1 && !output.exists(), "{code} {printed}");
        printed
    };
    assert_eq!(refused(&["-", "-"]), "otlpprof: - is given twice: standard input can be read once\n");
    let path = text(directory.path());
    let expected = format!("otlpprof: {path}: a directory; use --follow to convert a JVM's repository\n");
    assert_eq!(refused(&[path]), expected);
    std::fs::write(&file, b"").unwrap();
    assert_eq!(refused(&[text(&file)]), format!("otlpprof: no event in {}\n", file.display()));
    assert_eq!(refused(&[text(&file), text(&file)]), "otlpprof: no event in the recordings\n");
    let packed: [(&[u8], &str); 3] = [
        (b"\x04\x22\x4d\x18", "; it is compressed with lz4: decompress it first\n"),
        (b"PK\x03\x04", "; it is a ZIP archive: unpack it first\n"),
        (b"hello", "'FLR\\0'\n"),
    ];
    for (bytes, ending) in packed {
        std::fs::write(&file, [bytes, &[0; 100]].concat()).unwrap();
        let printed = refused(&[text(&file)]);
        assert!(printed.ends_with(ending), "{printed}");
    }
}

/// The result is written all the same, so that a user can examine what is wrong with it.
#[test]
fn a_broken_rule_sets_the_exit_code() {
    // Attributes for code must not be used on profiles, but can come from the environment of the recorded
    // program.
    let input = recorded(|out| {
        event(out, THROWN, 1);
        out.event(VARIABLE, |out| {
            out.long(1);
            ["OTEL_RESOURCE_ATTRIBUTES", "code.function.name=x"].into_iter().for_each(|text| out.text(text));
        });
    });
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("out");
    let mut convert = vec!["convert", text(input.path()), "-o", text(&output)];
    let (code, printed) = printed_by_otlpprof(&convert);
    assert!(code == 0 && !printed.contains("code-attribute"), "nobody asked: {printed}");
    std::fs::remove_file(&output).unwrap();
    convert.push("--validate");
    let (code, printed) = printed_by_otlpprof(&convert);
    let breach = format!("{}: error: code-attribute: ", output.display());
    assert!(
        code == 1 && printed.contains(&breach) && printed.contains("1 error, 0 warnings"),
        "{code} {printed}"
    );
    assert!(printed.contains("jdk.JavaExceptionThrow: 1 converted"), "{printed}");
    let (code, of_file) = printed_by_otlpprof(&["validate", text(&output)]);
    assert!(code == 1 && of_file.contains(&breach), "{code} {of_file}");
    // The same holds for each interval.
    let mut follow = otlpprof();
    follow.args(["convert", "-", "--follow", "--validate", "-o", text(&output)]);
    let followed = follow.stdin(File::open(input.path()).unwrap()).output().unwrap();
    let printed = String::from_utf8(followed.stderr).unwrap();
    assert!(followed.status.code() == Some(1) && printed.contains(&breach), "{} {printed}", followed.status);
}

/// The output of a command whose standard error is a terminal.
fn on_a_terminal(arguments: &[&str]) -> String {
    let (mut ours, mut its) = (0, 0);
    let size = libc::winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the pointers to `ours`, `its` and `size` are valid. Null is allowed for the name and the
    // settings.
    let opened = unsafe { libc::openpty(&mut ours, &mut its, null_mut(), null_mut(), &size) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: openpty has just opened both descriptors, and nothing else owns them.
    let [ours, its] = [ours, its].map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) });
    let mut command = otlpprof();
    command.args(arguments).stdin(Stdio::null()).stderr(its).env("TERM", "xterm");
    let mut child = command.spawn().unwrap();
    // Only the child holds the terminal's other side now.
    drop(command);
    let mut written = Vec::new();
    // At the terminal's end, a read fails.
    let _ = File::from(ours).read_to_end(&mut written);
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&written));
    String::from_utf8(written).unwrap()
}

#[test]
fn long_work_shows_how_far_it_is_on_a_terminal_alone() {
    let with = |length: usize| {
        recorded(|out| {
            event(out, THROWN, 1);
            out.event(OF_NO_KNOWN_TYPE, |out| out.bytes.resize(out.bytes.len() + length, 0));
        })
    };
    let convert = |input: &Path| ["convert", text(input), "-o", "/dev/null"].map(str::to_owned);
    let (short, long) = (with(1 << 20), with(64 << 20));
    let arguments = convert(long.path());
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let shown = on_a_terminal(&arguments);
    assert!(shown.contains(" of 64.0") && shown.contains(" left"), "{shown:?}");
    let (code, printed) = printed_by_otlpprof(&arguments);
    assert_eq!((code, &*printed), (0, "jdk.JavaExceptionThrow: 1 converted, 0 without a stack\n"));
    // The progress bar is gone before the summary is printed.
    assert!(shown.ends_with("jdk.JavaExceptionThrow: 1 converted, 0 without a stack\r\n"), "{shown:?}");
    let arguments = convert(short.path());
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let shown = on_a_terminal(&arguments);
    assert_eq!(shown, "jdk.JavaExceptionThrow: 1 converted, 0 without a stack\r\n");
}

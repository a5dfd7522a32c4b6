//! Text on a terminal: colours where the output is one, and nothing of a profile that controls it.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::process::Stdio;

use otlpprof_otlp::wire::ProfilesData;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::otlp_fixture::{TIME, inline};
use otlpprof_testkit::profile_files::{CPU, Files, LIVE_SPACE, Spec, message};

/// Sequences of a terminal, line ends, and marks that change the direction of text.
const HOSTILE: &str =
    "\u{1b}]0;owned\u{7}\u{9b}2J\r\nfake: line\u{1b}[35m\u{202e}\u{2066}\u{200b}\u{2028}\u{7f}";

/// Opens a pseudo-terminal with this many columns, 0 for an unknown number: the end of the terminal, and that
/// of the program.
fn open_terminal(columns: u16) -> (File, OwnedFd) {
    let (mut terminal, mut program) = (0, 0);
    let null = std::ptr::null_mut();
    let size = libc::winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the pointers to the descriptors and the size are valid. Null stands for no name and default
    // settings.
    let opened =
        unsafe { libc::openpty(&mut terminal, &mut program, null, std::ptr::null(), &raw const size) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: openpty has just opened both descriptors, and nothing else owns them.
    unsafe { (File::from_raw_fd(terminal), OwnedFd::from_raw_fd(program)) }
}

/// Runs the command on a terminal. Returns the text on the terminal, which is standard output and error.
fn on_terminal(arguments: &[&str], no_color: Option<&str>) -> String {
    on_terminal_of(0, arguments, no_color)
}

/// As [`on_terminal`], of this many columns.
fn on_terminal_of(columns: u16, arguments: &[&str], no_color: Option<&str>) -> String {
    let (mut terminal, program) = open_terminal(columns);
    let mut command = otlpprof();
    command.args(arguments).env_remove("NO_COLOR").envs(no_color.map(|value| ("NO_COLOR", value)));
    // A pager would wait for its reader.
    command.env("PAGER", "false").env("TERM", "xterm-256color").stdin(Stdio::null());
    command.stdout(program.try_clone().unwrap()).stderr(program);
    let mut child = command.spawn().unwrap();
    // The command would keep the program's end open.
    drop(command);
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        match terminal.read(&mut part) {
            Ok(0) => break,
            Ok(length) => bytes.extend_from_slice(&part[..length]),
            // The program's end is closed.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => break,
            Err(error) => panic!("terminal {}: {error}", terminal.as_raw_fd()),
        }
    }
    child.wait().unwrap();
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

/// Runs the command with pipes. Returns standard output and error.
fn in_pipes(arguments: &[&str]) -> String {
    let output = otlpprof().args(arguments).env_remove("NO_COLOR").stdin(Stdio::null()).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// The text without the colours of the command.
fn without_colours(text: &str) -> String {
    let colours = ["\u{1b}[0m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[34m", "\u{1b}[36m", "\u{1b}[90m"];
    colours.iter().fold(text.to_owned(), |text, colour| text.replace(colour, ""))
}

#[test]
fn there_are_colours_on_a_terminal_and_none_in_a_pipe() {
    let files = Files::new();
    let samples = [(&["A.leaf", "A.main"][..], "main", 5)];
    let spec = [Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples }];
    let file = files.add("app.otlp", &[message("1", &spec)]);
    for arguments in [&["report", &file][..], &["report", &file, "--tree"], &["print", &file]] {
        let plain = in_pipes(arguments);
        assert!(!plain.contains('\u{1b}'), "{arguments:?}: {plain:?}");
        let coloured = on_terminal(arguments, None);
        assert!(coloured.contains("\u{1b}["), "{arguments:?}: {coloured:?}");
        assert_eq!(without_colours(&coloured), plain, "{arguments:?}");
        assert_eq!(on_terminal(arguments, Some("1")), plain, "{arguments:?}: NO_COLOR");
        // An empty variable is no wish (no-color.org).
        assert_eq!(on_terminal(arguments, Some("")), coloured, "{arguments:?}: an empty NO_COLOR");
    }
    let json = ["report", &file, "--format", "json"];
    assert!(!on_terminal(&json, None).contains('\u{1b}'));
}

/// A set in which every text is hostile.
fn hostile(label: &str, types: [&str; 4]) -> ProfilesData {
    let name = format!("A.leaf{HOSTILE}");
    let samples = [(&[&*name, "A.main"][..], HOSTILE, 5)];
    let spec = [Spec { types, period: 1_000_000, start: TIME, samples: &samples }];
    let mut data = message("1", &spec);
    for text in &mut data.dictionary.as_mut().unwrap().string_table {
        if text == "thread.name" {
            text.push_str(label);
        }
        if text.ends_with(".java") {
            text.push_str(HOSTILE);
        }
    }
    let resource = data.resource_profiles[0].resource.as_mut().unwrap();
    resource.attributes.push(inline(&format!("key{HOSTILE}"), HOSTILE));
    resource.attributes[0] = inline("service.name", HOSTILE);
    data
}

#[test]
fn no_text_of_a_profile_controls_the_terminal() {
    let files = Files::new();
    let own_type = format!("quantity{HOSTILE}");
    let own_types = ["samples", "count", &*own_type, HOSTILE];
    let new = [hostile("", CPU), hostile(HOSTILE, own_types), hostile("", LIVE_SPACE)];
    let new = files.add(&format!("new{HOSTILE}"), &new);
    let base = files.add("base.otlp", &[hostile("", CPU)]);
    let page = files.path(&format!("page{HOSTILE}"));
    let missing = files.path(&format!("missing{HOSTILE}"));
    let key = format!("thread.name{HOSTILE}");
    for arguments in [
        &["report", &new][..],
        &["report", &new, "--lines", "--threads", "--count"],
        &["report", &new, "--type", &own_type],
        &["report", &new, "--type", &own_type, "--by", &key],
        &["report", &new, "--by", "thread"],
        &["report", &new, "--tree"],
        &["report", &new, "--tree", "--threads"],
        &["report", &new, "--peek", "leaf"],
        &["report", &new, "--peek", "no\u{1b}\\[35mthing"],
        &["report", &new, "--diff", &base],
        &["report", &new, "--diff", &base, "--type", &own_type, "--raw"],
        &["report", &base, "--diff", &new, "--per-second"],
        &["report", &new, "--format", "json"],
        &["report", &new, "--format", "json", "--tree"],
        &["report", &new, "--format", "json", "--peek", "leaf"],
        &["report", &new, "--format", "json", "--by", "thread"],
        &["report", &new, "--format", "json", "--diff", &base],
        &["report", &new, "--type", "no\u{1b}[35mtype"],
        &["report", &missing],
        &["print", &new],
        &["print", &new, "--resource", "--counters", "--stacks", "9"],
        &["print", &new, "--all", "--raw"],
        &["print", &new, "--format", "json", "--top-frames", "9"],
        &["print", &missing],
        &["flamegraph", &new, "-o", &page],
        &["flamegraph", &missing, "-o", &page],
        &["diff", &base, &new, "-o", &page],
    ] {
        for text in [without_colours(&on_terminal(arguments, None)), in_pipes(arguments)] {
            assert!(!text.is_empty(), "{arguments:?}");
            let is_hostile = |char: char| {
                char.is_control() && char != '\n'
                    || ['\u{202e}', '\u{2066}', '\u{200b}', '\u{2028}'].contains(&char)
            };
            assert!(!text.contains(is_hostile), "{arguments:?}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with("fake: line")), "{arguments:?}: {text}");
        }
    }
    // A colour of a name is text, too.
    let text = on_terminal(&["report", &new, "--type", "cpu"], None);
    assert!(
        text.contains("A.leaf\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{d}\\u{a}fake: line\\u{1b}[35m"),
        "{text:?}"
    );
}

#[test]
fn a_recording_counts_down_on_a_terminal_alone() {
    let home = otlpprof_testkit::jdk::newest_or_all().pop().unwrap();
    let jvm = otlpprof_testkit::attach::jvm(&home);
    let (pid, agent) = (jvm.pid().to_string(), otlpprof_testkit::this_build::agent());
    let library = ["--library", agent.to_str().unwrap()];
    let arguments = [&["record", &pid, "cpu=1ms", "-d", "0.5", "--no-page"][..], &library].concat();
    assert!(on_terminal(&arguments, None).contains("1s left"));
    assert!(!in_pipes(&arguments).contains(" left"));
    jvm.terminate();
    jvm.finish();
}

/// Regression: long names wrapped, so that the columns of a table or a tree could not be read.
#[test]
fn reports_fit_the_columns_of_a_terminal_and_are_whole_elsewhere() {
    let files = Files::new();
    let (long, leaf) = (format!("com.example.{}.Handler.handle", "inner.".repeat(20)), "Db.query");
    let stacks = [
        (&[leaf, "Shop.cart", &long, "Server.run"][..], "main", 30),
        (&["Json.write", "Shop.cart", &long, "Server.run"], "main", 20),
    ];
    let spec = || Spec { types: CPU, period: 1_000_000, start: TIME, samples: &stacks };
    let file = files.add("app.otlp", &[message("1", &[spec()])]);
    let base = files.add("base.otlp", &[message("1", &[Spec { samples: &stacks[..1], ..spec() }])]);
    for options in [
        &[][..],
        &["--tree"],
        &["--tree", "--inverted"],
        &["--peek", "inner|Db"],
        &["--diff", &base],
        &["--diff", &base, "--per-second"],
    ] {
        let arguments = [&["report", &*file], options].concat();
        // The sentence above the table of a comparison is no line of the table.
        let is_of_table = |line: &&str| !line.starts_with("the change from base to new");
        let text = on_terminal_of(90, &arguments, Some("1"));
        let text: String = text.lines().filter(is_of_table).map(|line| format!("{line}\n")).collect();
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= 90 && text.contains('…'), "{widest} columns: {text}");
        let whole = in_pipes(&arguments);
        assert!(whole.contains(&long) && !whole.contains('…') && !whole.contains('→'), "{whole}");
        // A terminal of an unknown width.
        assert_eq!(on_terminal(&arguments, Some("1")), whole);
    }
    let tree = on_terminal_of(90, &["report", &file, "--tree"], Some("1"));
    let calls: Vec<_> = tree.lines().skip_while(|line| !line.ends_with("CALLS")).skip(1).collect();
    assert_eq!(calls.len(), 3, "the calls that all stacks share are one line: {tree}");
    assert!(
        calls[0].contains("Server.run") && calls[0].ends_with(" → (1 call) → Shop.cart (Shop.java)"),
        "{tree}"
    );
    assert!(calls[1].ends_with("│ Db.query (Db.java)"), "{tree}");
}

//! The messages that docs/troubleshooting.md explains are messages of the agent and the command.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Shorter parts of a message, such as `event=`, identify nothing.
const SHORTEST_PART: usize = 6;

/// The messages in code spans of the first column. Messages of the JVM are named as such.
fn documented_messages(document: &str) -> Vec<&str> {
    let rows = document.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    let ours = rows.filter(|cell| !cell.contains("(the JVM)"));
    ours.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

/// The literal parts of a message, between the parts that change and on both sides of a colon.
fn parts(message: &str) -> impl Iterator<Item = &str> {
    let parts = message.split('…').flat_map(|part| part.split(": "));
    parts.map(str::trim).filter(|part| part.len() >= SHORTEST_PART)
}

/// All code of the agent, the command and the Java classes. String literals that are continued on another
/// line are joined.
fn code() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["src", "crates", "java/api"];
    let listed =
        Command::new("git").args(["ls-files", "-z"]).args(folders).current_dir(root).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let files = listed.split('\0').filter(|path| path.ends_with(".rs") || path.ends_with(".java"));
    let texts = files.filter_map(|path| fs::read_to_string(root.join(path)).ok());
    texts.map(|text| join_continued(&text)).collect::<Vec<_>>().join("\n")
}

/// Removes each backslash at the end of a line, with the blanks that begin the next line.
fn join_continued(text: &str) -> String {
    let mut pieces = text.split("\\\n");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |joined, piece| joined + piece.trim_start())
}

#[test]
fn documented_messages_are_in_the_code() {
    let document =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/troubleshooting.md")).unwrap();
    let (messages, code) = (documented_messages(&document), code());
    assert!(messages.len() > 80, "{} messages", messages.len());
    let is_missing = |message: &&str| parts(message).any(|part| !code.contains(part));
    let missing: Vec<_> = messages.into_iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "not in the code:\n{}", missing.join("\n"));
}

#[test]
fn messages_are_split_at_what_changes() {
    let document = "| Message | Remedy |\n| `port …: not a port`, `a b` | `c` |\n| `x` (the JVM) | y |\n";
    assert_eq!(documented_messages(document), ["port …: not a port", "a b"]);
    assert_eq!(parts("endpoint …: not a port").collect::<Vec<_>>(), ["endpoint", "not a port"]);
    assert_eq!(join_continued("a = \"b \\\n     c\";"), "a = \"b c\";");
}

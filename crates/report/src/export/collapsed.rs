//! Collapsed stacks: a line for each stack, `caller;callee VALUE`, as flame graph scripts read them.

use std::io::{self, Write};
use std::thread;

use otlpprof_collapsed::Quantity;
use otlpprof_model::markers;
use otlpprof_workers::{Workers, processors};

use crate::call_tree::{CallTree, NodeId};
use crate::collect::SelfValues;
use crate::frame_table::{FrameEntry, FrameTable};

/// Writes a comment with the quantity and its unit, unless values are numbers of samples, and a line for each
/// stack with a value. `own` has the self values of the tree.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(
    tree: &CallTree,
    frames: &FrameTable,
    own: SelfValues,
    quantity: Quantity<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if quantity != Quantity::SAMPLES {
        writeln!(out, "{quantity}")?;
    }
    let names: Vec<String> = frames.all().iter().map(frame_text).collect();
    // Nodes in the order of their numbers, so that equal input gives equal output.
    let mut nodes: Vec<_> = own.into_iter().filter(|&(_, value)| value != 0).collect();
    nodes.sort_unstable();
    let lines = |nodes| lines(tree, &names, nodes);
    let mut write = |mut block: Lines<'_>| -> io::Result<()> {
        loop {
            out.write_all(&block.text)?;
            if block.rest.is_empty() {
                return Ok(());
            }
            block = self::lines(tree, &names, block.rest);
        }
    };
    if nodes.len() <= BLOCK_STACKS {
        return write(lines(&nodes));
    }
    thread::scope(|scope| {
        let threads = processors(MOST_THREADS);
        let mut blocks = Workers::start(scope, threads, &lines)?.in_order();
        for nodes in nodes.chunks(BLOCK_STACKS) {
            if blocks.is_full() {
                blocks.take()?.map_or(Ok(()), &mut write)?;
            }
            blocks.give(nodes);
        }
        while let Some(block) = blocks.take()? {
            write(block)?;
        }
        Ok(())
    })
}

/// The most stacks of a block of lines, and the bytes after which it ends.
const BLOCK_STACKS: usize = 1 << 10;
const BLOCK_BYTES: usize = 1 << 20;
/// The most threads that make lines: a file takes them about as fast as a few threads make them.
const MOST_THREADS: usize = 4;

/// Lines of stacks.
struct Lines<'n> {
    text: Vec<u8>,
    /// The stacks that are not among the lines.
    rest: &'n [(NodeId, i64)],
}

/// The lines of the first of these stacks, each with its value. `names` has the texts of all frames.
fn lines<'n>(tree: &CallTree, names: &[String], nodes: &'n [(NodeId, i64)]) -> Lines<'n> {
    let (mut stack, mut text, mut rest) = (Vec::new(), Vec::new(), nodes);
    while let [(node, value), others @ ..] = rest
        && text.len() < BLOCK_BYTES
    {
        stack.clear();
        stack.extend(tree.stack(*node).map(|frame| &*names[frame as usize]));
        if stack.is_empty() {
            stack.push(markers::NO_STACK);
        }
        for (at, frame) in stack.iter().rev().enumerate() {
            text.extend_from_slice(if at > 0 { b";" } else { b"" });
            text.extend_from_slice(frame.as_bytes());
        }
        // SANITY: a Vec can be written to.
        let _ = writeln!(text, " {value}");
        rest = others;
    }
    Lines { text, rest }
}

/// A frame: its name and, if lines are told apart, its line.
fn frame_text(entry: &FrameEntry) -> String {
    match entry.line {
        0 => text(&entry.name),
        line => format!("{}:{line}", text(&entry.name)),
    }
}

/// A name without characters that have a meaning in the format: `;` becomes `:`, and characters that end a
/// line or control a terminal become spaces.
fn text(name: &str) -> String {
    let replaced = |character: char| match character {
        ';' => ':',
        '\u{2028}' | '\u{2029}' => ' ',
        control if control.is_control() => ' ',
        other => other,
    };
    name.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_tree::ROOT;

    #[test]
    fn names_cannot_end_a_frame_or_a_line() {
        assert_eq!(text("a;b\nc\rd\u{85}e\u{2028}f\tg"), "a:b c d e f g");
        assert_eq!(text("<script>é日本"), "<script>é日本");
    }

    #[test]
    fn every_value_has_a_line() {
        let (mut tree, mut frames) = (CallTree::default(), FrameTable::default());
        let (caller, callee) = (frames.intern_group("main"), frames.intern_group("f;g"));
        let node = tree.child(ROOT, caller);
        let leaf = tree.child(node, callee);
        let own = [(leaf, 5), (node, 3), (ROOT, 2)].into_iter().collect();
        let mut out = Vec::new();
        let quantity = Quantity { name: "cpu", unit: "nanoseconds" };
        write(&tree, &frames, own, quantity, &mut out).unwrap();
        let comment = "#otlpprof:type=cpu,unit=nanoseconds\n";
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.strip_prefix(comment).unwrap(), "[no_stack] 2\nmain 3\nmain;f:g 5\n");
    }

    #[test]
    fn lines_do_not_depend_on_the_blocks_that_threads_make() {
        let (mut tree, mut frames) = (CallTree::default(), FrameTable::default());
        // The first blocks end by their bytes, the others by their stacks.
        let long = "x".repeat(BLOCK_BYTES / 300);
        let roots = [&*long, "main"].map(|name| tree.child(ROOT, frames.intern_group(name)));
        let mut own = SelfValues::default();
        let mut expected = String::new();
        for value in 1..=5 * BLOCK_STACKS {
            let is_long = value <= 900;
            let frame = frames.intern_group(&format!("f{value}"));
            own.insert(tree.child(roots[usize::from(!is_long)], frame), value as i64);
            let root = if is_long { &long } else { "main" };
            expected.push_str(&format!("{root};f{value} {value}\n"));
        }
        let mut out = Vec::new();
        write(&tree, &frames, own, Quantity::SAMPLES, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap() == expected);
    }
}

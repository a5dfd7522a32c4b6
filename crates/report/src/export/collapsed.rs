//! Collapsed stacks: a line for each stack, `caller;callee VALUE`, as flame graph scripts read them.

use std::fmt::Write as _;
use std::io::{self, Write};

use otlpprof_collapsed::Quantity;
use otlpprof_model::markers;

use crate::call_tree::CallTree;
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
    let (mut stack, mut line) = (Vec::new(), String::new());
    for (node, value) in nodes {
        stack.clear();
        stack.extend(tree.stack(node).map(|frame| &*names[frame as usize]));
        if stack.is_empty() {
            stack.push(markers::NO_STACK);
        }
        line.clear();
        for frame in stack.iter().rev() {
            line.push_str(frame);
            line.push(';');
        }
        line.pop();
        // SANITY: a String can be written to.
        let _ = writeln!(line, " {value}");
        out.write_all(line.as_bytes())?;
    }
    Ok(())
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
}

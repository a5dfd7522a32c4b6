//! The lines of a file in blocks, which several threads parse while the caller takes them in order.

use std::io::{self, BufRead, Read as _};
use std::thread;

use otlpprof_workers::{Workers, processors};

use super::block::{Block, Expected, LONGEST_LINE};

/// The bytes of a block of a file, which may have a longer last line.
pub(super) const BLOCK_BYTES: u64 = 1 << 20;
/// The most threads that parse blocks: the caller takes about as long as a few of them.
const MOST_THREADS: usize = 4;

/// Calls `take` with the blocks of a text, each of about `block_bytes`, in order, until it fails.
///
/// # Errors
/// One of the text's reader, after the blocks before, or one of `take`.
pub(super) fn each_block<E: From<io::Error>>(
    mut text: impl BufRead,
    block_bytes: u64,
    expected: Expected<'_>,
    mut take: impl FnMut(Block) -> Result<(), E>,
) -> Result<(), E> {
    let first = next_block(&mut text, block_bytes)?;
    if (first.len() as u64) < block_bytes {
        return if first.is_empty() { Ok(()) } else { take(Block::of(first, expected)) };
    }
    let threads = processors(MOST_THREADS);
    let parse = |bytes: Vec<u8>| Block::of(bytes, expected);
    thread::scope(|scope| {
        let mut parsing = Workers::start(scope, threads, &parse)?.in_order();
        let mut next = Ok(first);
        loop {
            if !parsing.is_full()
                && let Ok(bytes) = &mut next
                && !bytes.is_empty()
            {
                // A line that is cut off is an error: the rest of the text is not needed.
                let is_cut = bytes.len() > LONGEST_LINE && !bytes.ends_with(b"\n");
                parsing.give(std::mem::take(bytes));
                next = if is_cut { Ok(Vec::new()) } else { next_block(&mut text, block_bytes) };
                continue;
            }
            let Some(block) = parsing.take()? else { return Ok(next.map(drop)?) };
            take(block)?;
        }
    })
}

/// The next whole lines; empty at the end of the text. Only the last line can be longer than
/// [`LONGEST_LINE`], and is then cut off.
fn next_block(text: &mut impl BufRead, block_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    text.by_ref().take(block_bytes).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == block_bytes && !bytes.ends_with(b"\n") {
        text.by_ref().take(LONGEST_LINE as u64 + 1).read_until(b'\n', &mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{LineProblem, Scale};

    /// The lines of a text in blocks of this size: the number of each line that is a stack, with its frames,
    /// its thread and its value; and the first line that cannot be read.
    fn lines(text: &[u8], block_bytes: u64) -> (Vec<String>, u64, Option<(u64, LineProblem)>) {
        let (mut rows, mut before, mut problem) = (Vec::new(), 0, None);
        let expected = Expected { scale: Scale::Whole, quantity: None };
        let taken = each_block(text, block_bytes, expected, |block| {
            rows.extend(block.rows.iter().map(|row| {
                let frames: Vec<_> = block.frames(row).iter().map(|&number| block.text(number)).collect();
                format!("{} {frames:?} {:?} {}", before + row.line, block.thread(row), row.value)
            }));
            problem = block.problem.as_ref().map(|(line, problem)| (before + line, problem.clone()));
            before += block.lines;
            if problem.is_some() { Err(io::Error::other("a bad line")) } else { Ok(()) }
        });
        assert_eq!(taken.is_err(), problem.is_some());
        (rows, before, problem)
    }

    #[test]
    fn the_lines_do_not_depend_on_the_blocks() {
        let mut text: Vec<u8> = (0..300)
            .flat_map(|at| {
                format!("[w tid={at}];main;f{};g{} {at}\n# {at}\n\n", at % 7, at % 11).into_bytes()
            })
            .collect();
        text.extend(b"caf\xe9;a\xe2\x82 2\nlast 1");
        let alone = lines(&text, 1 << 20);
        assert_eq!((alone.0.len(), alone.1, &alone.2), (302, 902, &None));
        for block_bytes in [1, 2, 37, 256, 4_000] {
            assert_eq!(lines(&text, block_bytes), alone, "{block_bytes}");
        }
        text.extend(b"\nno value\nmain 1\n");
        let broken = lines(&text, 1 << 20);
        assert_eq!(broken.2.as_ref().map(|&(line, _)| line), Some(902));
        for block_bytes in [1, 37, 4_000] {
            assert_eq!(lines(&text, block_bytes).2, broken.2, "{block_bytes}");
        }
    }
}

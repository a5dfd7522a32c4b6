//! Reads every event, and every frame of its stack, by the crate jfrs, once for each line of standard input:
//! `otlpprof-bench-jfrs FILE`. Answers with `EVENTS STACKS FRAMES CHECK`, as `Passes.java` does.

use std::io::{BufRead as _, Write as _};

use jfrs::reader::JfrReader;
use jfrs::reader::value_descriptor::{Primitive, ValueDescriptor};

fn main() {
    let path = std::env::args().nth(1).expect("a recording");
    for line in std::io::stdin().lock().lines() {
        line.expect("a line");
        let mut out = std::io::stdout().lock();
        let [events, stacks, frames, check] = read(&path);
        writeln!(out, "{events} {stacks} {frames} {check}").and_then(|()| out.flush()).expect("a reader");
    }
}

fn read(path: &str) -> [i64; 4] {
    let [mut events, mut stacks, mut frames, mut check] = [0; 4];
    let bytes = std::fs::read(path).expect("the recording");
    let mut reader = JfrReader::new(std::io::Cursor::new(bytes));
    for chunk in reader.chunks() {
        let (mut reader, chunk) = chunk.expect("a chunk");
        // Events that the crate cannot read are not counted.
        for event in reader.events(&chunk).flatten() {
            events += 1;
            let Some(stack) = event.value().get_field("stackTrace") else { continue };
            let Some(of_stack) = stack.get_field("frames").and_then(|frames| frames.as_iter()) else {
                continue;
            };
            stacks += 1;
            for frame in of_stack {
                frames += 1;
                let line = frame.get_field("lineNumber");
                if let Some(ValueDescriptor::Primitive(Primitive::Integer(line))) =
                    line.map(|line| line.value)
                {
                    check += i64::from(*line);
                }
            }
        }
    }
    [events, stacks, frames, check]
}

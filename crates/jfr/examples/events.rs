//! Counts the events of a recording by type: `events RECORDING`

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;

use otlpprof_jfr::reading::ChunkReader;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("the path of a recording is missing")?;
    let mut chunks = ChunkReader::new(File::open(path)?);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    while let Some(chunk) = chunks.next_chunk()? {
        for event in chunk?.contents().events() {
            *counts.entry(event?.type_of().name.to_string()).or_default() += 1;
        }
    }
    for (name, count) in counts {
        println!("{count:10} {name}");
    }
    Ok(())
}

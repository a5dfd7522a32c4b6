//! Prints the breaches of a file of OTLP profiles by rule: `validate FILE`

use std::error::Error;
use std::fs::File;

use otlpprof_otlp::validate::validate_stream;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("the path of a file is missing")?;
    let report = validate_stream(File::open(path)?, 3)?;
    println!("{} messages, {} profiles, {} samples", report.messages, report.profiles, report.samples);
    for (rule, breaches) in report.breaches() {
        println!("{}: {}", rule.rule().name, breaches.count);
        for finding in &breaches.first {
            println!("    {} {}", finding.place, finding.detail);
        }
    }
    Ok(())
}

//! Prints events like `PrintByJmc.java`, which reads with JDK Mission Control's core (flightrecorder 9.1.2).

use std::path::{Path, PathBuf};
use std::process::Command;

use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::events::Event;
use otlpprof_jfr::types::{Field, Unit};
use otlpprof_jfr::values::{Struct, Value as Jfr};
use serde_json::{Map, Value, json};

/// JMC and its dependencies.
const JARS: [&str; 4] = [
    "org.openjdk.jmc:flightrecorder:9.1.2",
    "org.openjdk.jmc:common:9.1.2",
    "at.yawk.lz4:lz4-java:1.10.2",
    "org.owasp.encoder:encoder:1.2.3",
];

/// Each event as JMC reads it, in one line, with its fields in order; or the reason why JMC cannot run.
///
/// # Panics
/// If JMC cannot read the recording.
pub(crate) fn printed_by_jmc(java: &Path, recording: &Path) -> Result<Vec<String>, String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let fetched = Command::new(root.join("scripts/fetch-maven.sh")).args(JARS).output().expect("bash");
    if !fetched.status.success() {
        return Err(format!("no JMC: {}", String::from_utf8_lossy(&fetched.stderr).trim()));
    }
    let jars = String::from_utf8(fetched.stdout).unwrap();
    let printed = Command::new(java)
        .args(["-cp", jars.trim()])
        .arg(root.join("tests/jfr/PrintByJmc.java"))
        .arg(recording)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&printed.stderr);
    assert!(printed.status.success(), "{}: {errors}", recording.display());
    let printed = String::from_utf8(printed.stdout).unwrap();
    let events = printed.lines().map(|line| serde_json::from_str::<Value>(line).expect(line).to_string());
    let mut events: Vec<_> = events.collect();
    events.sort_unstable();
    Ok(events)
}

/// An event in one line.
pub(crate) fn event(event: &Event<'_>) -> String {
    let chunk = event.values().chunk();
    let mut values = fields(event.values(), chunk);
    let map = values.as_object_mut().unwrap();
    match &*event.type_of().name {
        // JMC replaces the type's id by the type's name.
        "jdk.ActiveSetting" => {
            let of = map.remove("id").and_then(|id| chunk.metadata().find(id.as_i64()?));
            let name = of.map(|of| json!(&*chunk.metadata().get(of).name));
            map.extend(name.map(|name| ("settingFor".to_owned(), name)));
        }
        // JMC treats a number that is only an identifier as text.
        "jdk.JVMInformation" => {
            map.extend(map.get("pid").map(|pid| ("pid".to_owned(), json!(pid.to_string()))))
        }
        _ => {}
    }
    let printed = json!({ "type": &*event.type_of().name, "values": values }).to_string();
    // The text is parsed and printed again, because the reference has been parsed by the same parser, which
    // does not preserve every double.
    serde_json::from_str::<Value>(&printed).unwrap().to_string()
}

fn fields(of: Struct<'_>, chunk: Chunk<'_>) -> Value {
    let mut printed = Map::new();
    for item in of.fields() {
        let (field, value) = item.unwrap();
        // JMC's classes cannot have a field whose name is a Java keyword.
        let name = if &*field.name == "package" { "_package" } else { &field.name };
        let value = with_unit(field, value, chunk);
        if !value.is_null() {
            printed.insert(name.to_owned(), value);
        }
    }
    Value::Object(printed)
}

fn with_unit(field: &Field, value: Jfr<'_>, chunk: Chunk<'_>) -> Value {
    let clock = chunk.header().clock;
    let Some(number) = value.as_i64() else { return plain(value, chunk) };
    match field.unit() {
        Some(Unit::TimespanTicks) => json!(rounded_ns(number, clock.ticks_per_second)),
        Some(Unit::EpochTicks) => json!(clock.unix_nano(number)),
        Some(Unit::TimespanNanos(nanos) | Unit::EpochNanos(nanos)) => json!(number.saturating_mul(nanos)),
        Some(Unit::Bytes | Unit::Bits) | None => plain(value, chunk),
    }
}

/// A span of time as JMC has it: rounded to the nearest nanosecond, whereas the JDK cuts the fraction off.
fn rounded_ns(ticks: i64, ticks_per_second: i64) -> i64 {
    let ticks_per_second = i128::from(ticks_per_second);
    let nanos = (2_000_000_000 * i128::from(ticks) + ticks_per_second).div_euclid(2 * ticks_per_second);
    nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn plain(value: Jfr<'_>, chunk: Chunk<'_>) -> Value {
    match value {
        Jfr::Boolean(value) => json!(value),
        Jfr::Char(value) => json!(char::from_u32(value.into()).map(String::from)),
        Jfr::Float(value) => json!(f64::from(value)),
        Jfr::Double(value) => json!(value),
        Jfr::Byte(_) | Jfr::Short(_) | Jfr::Int(_) | Jfr::Long(_) => json!(value.as_i64()),
        Jfr::String(_) => json!(chunk.text(value)),
        Jfr::Constant(constant) => chunk.resolve(constant).map_or(Value::Null, |value| plain(value, chunk)),
        Jfr::Struct(of) if of.type_of().is_simple => {
            let (_, only) = of.fields().next().unwrap().unwrap();
            plain(only, chunk)
        }
        Jfr::Struct(of) => fields(of, chunk),
        Jfr::Array(array) => array.values().map(|value| plain(value.unwrap(), chunk)).collect(),
    }
}

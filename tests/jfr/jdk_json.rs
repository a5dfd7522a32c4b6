//! Prints events like `jfr print --json` (JDK 25 `jdk.jfr.internal.tool.JSONWriter`).

use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::clock::Clock;
use otlpprof_jfr::events::Event;
use otlpprof_jfr::types::{Field, Unit};
use otlpprof_jfr::values::{Struct, Value as Jfr};
use serde_json::{Map, Value, json};

const NANOS: i64 = 1_000_000_000;

/// An event in one line, with times by the clock of its chunk.
pub(crate) fn event(event: &Event<'_>) -> String {
    let chunk = event.values().chunk();
    let values = fields(event.values(), chunk, chunk.header().clock);
    json!({ "type": &*event.type_of().name, "values": values }).to_string()
}

fn fields(of: Struct<'_>, chunk: Chunk<'_>, clock: Clock) -> Value {
    let mut printed = Map::new();
    for item in of.fields() {
        let (field, value) = item.unwrap();
        printed.insert(field.name.to_string(), with_unit(field, value, chunk, clock));
    }
    Value::Object(printed)
}

fn with_unit(field: &Field, value: Jfr<'_>, chunk: Chunk<'_>, clock: Clock) -> Value {
    let Some((unit, number)) = field.unit().zip(value.as_i64()) else {
        return number_of(field, value, chunk, clock);
    };
    match unit {
        // A value without an end: the longest `Duration`.
        Unit::TimespanTicks | Unit::TimespanNanos(_) if number == i64::MAX => {
            json!("PT2562047788015215H30M7.999999999S")
        }
        Unit::TimespanTicks | Unit::TimespanNanos(_) if number == i64::MIN => {
            json!("PT-2562047788015215H-30M-8S")
        }
        Unit::TimespanTicks => duration(clock.duration_ns(number)),
        Unit::TimespanNanos(nanos) => duration(number.saturating_mul(nanos)),
        Unit::EpochTicks => time(clock.unix_nano(number)),
        Unit::EpochNanos(_) if number == i64::MIN => json!("-999999999-01-01T00:00+18:00"),
        Unit::EpochNanos(nanos) => time(number.saturating_mul(nanos)),
        Unit::Bytes | Unit::Bits => number_of(field, value, chunk, clock),
    }
}

fn number_of(field: &Field, value: Jfr<'_>, chunk: Chunk<'_>, clock: Clock) -> Value {
    if field.is_unsigned() {
        match value {
            Jfr::Byte(value) => return json!(value as u8),
            Jfr::Short(value) => return json!(value as u16),
            Jfr::Int(value) => return json!(value as u32),
            Jfr::Long(value) => return json!(value as u64),
            _ => {}
        }
    }
    plain(value, chunk, clock)
}

fn plain(value: Jfr<'_>, chunk: Chunk<'_>, clock: Clock) -> Value {
    match value {
        Jfr::Boolean(value) => json!(value),
        Jfr::Char(value) => json!(char::from_u32(value.into()).map(String::from)),
        // The shortest text that parses to the same float.
        Jfr::Float(value) => floating(value.to_string().parse().unwrap()),
        Jfr::Double(value) => floating(value),
        Jfr::Byte(_) | Jfr::Short(_) | Jfr::Int(_) | Jfr::Long(_) => json!(value.as_i64()),
        Jfr::String(_) => json!(chunk.text(value)),
        Jfr::Constant(constant) => match chunk.resolve(constant) {
            Some(value) => plain(value, chunk, clock),
            None => Value::Null,
        },
        Jfr::Struct(of) if of.type_of().is_simple => {
            let (_, only) = of.fields().next().unwrap().unwrap();
            plain(only, chunk, clock)
        }
        Jfr::Struct(of) => fields(of, chunk, clock),
        Jfr::Array(array) => array.values().map(|value| plain(value.unwrap(), chunk, clock)).collect(),
    }
}

/// Prints and parses the number, as the reference has been parsed: the parser does not preserve every double.
fn floating(value: f64) -> Value {
    serde_json::from_str(&json!(value).to_string()).unwrap()
}

/// The format of `java.time.Duration.toString`.
fn duration(nanos: i64) -> Value {
    let (seconds, fraction) = (nanos / NANOS, nanos % NANOS);
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = String::from("PT");
    for (number, unit) in [(hours, 'H'), (minutes, 'M')] {
        if number != 0 {
            text.push_str(&format!("{number}{unit}"));
        }
    }
    if rest != 0 || fraction != 0 || text == "PT" {
        let sign = if rest == 0 && fraction < 0 { "-" } else { "" };
        text.push_str(&format!("{sign}{rest}"));
        if fraction != 0 {
            text.push_str(format!(".{:09}", fraction.abs()).trim_end_matches('0'));
        }
        text.push('S');
    }
    json!(text)
}

/// The format of `java.time.OffsetDateTime.toString` in UTC. Tests run the JDK in this zone.
fn time(unix_nano: i64) -> Value {
    let (seconds, nanos) = (unix_nano.div_euclid(NANOS), unix_nano.rem_euclid(NANOS));
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds.max(0) as u64);
    let text = humantime::format_rfc3339_seconds(time).to_string();
    let text = text.trim_end_matches('Z');
    let text = if nanos == 0 { text.trim_end_matches(":00") } else { text };
    let fraction = match nanos {
        0 => String::new(),
        _ if nanos % 1_000_000 == 0 => format!(".{:03}", nanos / 1_000_000),
        _ if nanos % 1_000 == 0 => format!(".{:06}", nanos / 1_000),
        _ => format!(".{nanos:09}"),
    };
    json!(format!("{text}{fraction}Z"))
}

//! Amounts in units that people read.

use otlpprof_model::BILLIONTHS;

/// An amount of a unit as text: nanoseconds as a duration, bytes as a size, anything else as a number.
pub(crate) fn amount(value: i64, unit: &str) -> String {
    match unit {
        "nanoseconds" => scaled(value as f64, &DURATIONS),
        "bytes" => scaled(value as f64, &SIZES),
        "count" | "" => grouped(value),
        BILLIONTHS => decimal(value),
        other => format!("{} {other}", grouped(value)),
    }
}

/// Units of time, in ns.
const DURATIONS: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
/// Units of sizes, in bytes.
const SIZES: [(&str, f64); 5] = [
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

/// An amount beyond 64 bits as text. No profile of a program has one.
pub(crate) fn large_amount(value: i128, unit: &str) -> String {
    let nearest = if value < 0 { i64::MIN } else { i64::MAX };
    amount(i64::try_from(value).unwrap_or(nearest), unit)
}

/// An amount per second.
pub(crate) fn rate(value: f64, unit: &str) -> String {
    match unit {
        "nanoseconds" => format!("{}/s", scaled(value, &DURATIONS)),
        "bytes" => format!("{}/s", scaled(value, &SIZES)),
        _ => {
            // Few events a second are a part of one.
            let number = if value.abs() < 100.0 { format!("{value:.2}") } else { grouped(value as i64) };
            let unit = if matches!(unit, "count" | "") { String::new() } else { format!(" {unit}") };
            format!("{number}{unit}/s")
        }
    }
}

/// A change of an amount per second, with its sign.
pub(crate) fn rate_change(value: f64, unit: &str) -> String {
    if value > 0.0 { format!("+{}", rate(value, unit)) } else { rate(value, unit) }
}

/// A change of an amount, with its sign.
pub(crate) fn change(value: i64, unit: &str) -> String {
    if value > 0 { format!("+{}", amount(value, unit)) } else { amount(value, unit) }
}

/// A share as a percentage.
pub(crate) fn percent(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// The value in the largest unit in which it is at least 1.
fn scaled(value: f64, units: &[(&str, f64)]) -> String {
    let fitting = units.iter().rev().find(|(_, size)| value.abs() >= *size);
    let (unit, size) = *fitting.or(units.first()).unwrap_or(&("", 1.0));
    let scaled = value / size;
    match size {
        1.0 => format!("{value:.0} {unit}"),
        _ if scaled.abs() >= 100.0 => format!("{scaled:.0} {unit}"),
        _ if scaled.abs() >= 10.0 => format!("{scaled:.1} {unit}"),
        _ => format!("{scaled:.2} {unit}"),
    }
}

/// Billionths as a decimal number, without zeros at its end.
fn decimal(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let (whole, part) = (value.unsigned_abs() / 1_000_000_000, value.unsigned_abs() % 1_000_000_000);
    let text = format!("{sign}{whole}.{part:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The number with a comma before each three digits.
fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = if value < 0 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_unit_that_fits() {
        for (value, unit, text) in [
            (0, "nanoseconds", "0 ns"),
            (999, "nanoseconds", "999 ns"),
            (1_500, "nanoseconds", "1.50 µs"),
            (12_340_000, "nanoseconds", "12.3 ms"),
            (-3_210_000_000, "nanoseconds", "-3.21 s"),
            (432_000_000_000, "nanoseconds", "432 s"),
            (1_023, "bytes", "1023 B"),
            (1_536, "bytes", "1.50 KiB"),
            (5 << 30, "bytes", "5.00 GiB"),
            (0, "count", "0"),
            (999, "count", "999"),
            (-1_234_567, "count", "-1,234,567"),
            (1_000, "pages", "1,000 pages"),
            (i64::MIN, "count", "-9,223,372,036,854,775,808"),
            (750_000_000, BILLIONTHS, "0.75"),
            (-3_000_000_000, BILLIONTHS, "-3"),
            (1, BILLIONTHS, "0.000000001"),
        ] {
            assert_eq!(amount(value, unit), text);
        }
        assert_eq!(change(1_500, "nanoseconds"), "+1.50 µs");
        assert_eq!(change(-7, "count"), "-7");
        assert_eq!(large_amount(i128::MAX, "count"), amount(i64::MAX, "count"));
        assert_eq!(large_amount(-7, "count"), "-7");
    }

    #[test]
    fn rates_keep_parts_of_an_event() {
        assert_eq!(rate(12_340_000.0, "nanoseconds"), "12.3 ms/s");
        assert_eq!(rate(1_536.0, "bytes"), "1.50 KiB/s");
        assert_eq!(rate(0.05, "count"), "0.05/s");
        assert_eq!(rate(12_345.6, "count"), "12,345/s");
        assert_eq!(rate_change(0.5, "count"), "+0.50/s");
        assert_eq!(rate_change(-0.5, "count"), "-0.50/s");
    }
}

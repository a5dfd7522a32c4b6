//! Amounts in units that people read.

/// An amount of a unit as text: nanoseconds as a duration, bytes as a size, anything else as a number.
pub(in crate::cli) fn amount(value: i64, unit: &str) -> String {
    match unit {
        "nanoseconds" => scaled(value, &[("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)]),
        "bytes" => scaled(
            value,
            &[
                ("B", 1.0),
                ("KiB", 1024.0),
                ("MiB", 1_048_576.0),
                ("GiB", 1_073_741_824.0),
                ("TiB", 1.0995e12),
            ],
        ),
        "count" | "" => grouped(value),
        other => format!("{} {other}", grouped(value)),
    }
}

/// A change of an amount, with its sign.
pub(in crate::cli) fn change(value: i64, unit: &str) -> String {
    if value > 0 { format!("+{}", amount(value, unit)) } else { amount(value, unit) }
}

/// A share as a percentage.
pub(in crate::cli) fn percent(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// The value in the largest unit in which it is at least 1.
fn scaled(value: i64, units: &[(&str, f64)]) -> String {
    let magnitude = value.unsigned_abs() as f64;
    let fitting = units.iter().rev().find(|(_, size)| magnitude >= *size);
    let (unit, size) = *fitting.or(units.first()).unwrap_or(&("", 1.0));
    let scaled = value as f64 / size;
    match size {
        1.0 => format!("{value} {unit}"),
        _ if scaled.abs() >= 100.0 => format!("{scaled:.0} {unit}"),
        _ if scaled.abs() >= 10.0 => format!("{scaled:.1} {unit}"),
        _ => format!("{scaled:.2} {unit}"),
    }
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
        ] {
            assert_eq!(amount(value, unit), text);
        }
        assert_eq!(change(1_500, "nanoseconds"), "+1.50 µs");
        assert_eq!(change(-7, "count"), "-7");
    }
}

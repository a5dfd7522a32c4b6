//! The attributes of a merged profile.

use std::collections::BTreeMap;

use otlpprof_model::attribute_keys;
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::{AnyValue, Value};

use super::dictionary::{MergedDictionary, written_out};

/// The beginning of the keys of this profiler's counters, which are attributes of profiles.
pub const COUNTERS: &str = "otlpprof.";

/// Attributes by key. Counters are added up, factors have their largest value. Of other attributes those
/// remain whose value is the same in all profiles that have them.
#[derive(Debug, Default)]
pub struct ProfileAttributes(BTreeMap<String, Merged>);

/// An attribute of one or more profiles.
#[derive(Debug)]
struct Merged {
    /// `None` if the profiles differ.
    value: Option<AnyValue>,
    unit: String,
}

impl ProfileAttributes {
    /// Adds the attributes of a profile.
    pub fn add(&mut self, tables: EncodedTables<'_>, indices: &[i32]) {
        for attribute in indices.iter().filter_map(|&index| tables.attribute(index)) {
            let Some(value) = attribute.value.map(|value| written_out(tables, value)) else { continue };
            let key = tables.text(attribute.key_strindex);
            match self.0.get_mut(key) {
                Some(known) => known.value = known.value.take().and_then(|known| both(key, known, value)),
                None => {
                    let unit = tables.text(attribute.unit_strindex).to_owned();
                    self.0.insert(key.to_owned(), Merged { value: Some(value), unit });
                }
            }
        }
    }

    /// Adds the attributes of another merged profile.
    pub fn unite(&mut self, other: Self) {
        for (key, merged) in other.0 {
            match self.0.get_mut(&key) {
                Some(known) => {
                    let values = known.value.take().zip(merged.value);
                    known.value = values.and_then(|(one, other)| both(&key, one, other));
                }
                None => {
                    self.0.insert(key, merged);
                }
            }
        }
    }

    /// The number of attributes that differ from profile to profile.
    pub fn differing(&self) -> usize {
        self.0.values().filter(|merged| merged.value.is_none()).count()
    }

    /// The indices of the attributes in a dictionary.
    pub fn into_indices(self, dictionary: &mut MergedDictionary) -> Vec<i32> {
        let kept = self.0.into_iter().filter(|(_, merged)| merged.value.is_some());
        kept.map(|(key, merged)| dictionary.attribute_of(&key, merged.value, &merged.unit)).collect()
    }
}

/// The value of an attribute for two profiles with these values; `None` if there is none.
fn both(key: &str, one: AnyValue, other: AnyValue) -> Option<AnyValue> {
    let value = match (&one.value, &other.value) {
        (Some(Value::IntValue(one)), Some(Value::IntValue(other))) if key.starts_with(COUNTERS) => {
            let is_factor = key.starts_with(attribute_keys::LIMIT_OF_ENGINE);
            Value::IntValue(if is_factor { *one.max(other) } else { one.saturating_add(*other) })
        }
        _ => return (one == other).then_some(one),
    };
    Some(AnyValue { value: Some(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_added_factors_compared_and_others_kept_if_equal() {
        let int = |value| AnyValue { value: Some(Value::IntValue(value)) };
        let text = |text: &str| AnyValue { value: Some(Value::StringValue(text.into())) };
        assert_eq!(both("otlpprof.samples.dropped", int(3), int(4)), Some(int(7)));
        assert_eq!(both("otlpprof.limit.cpu", int(3), int(4)), Some(int(4)));
        assert_eq!(both("some.number", int(3), int(4)), None);
        assert_eq!(both("some.number", int(3), int(3)), Some(int(3)));
        assert_eq!(both("profile.type", text("cpu"), text("cpu")), Some(text("cpu")));
        assert_eq!(both("profile.type", text("cpu"), text("wall")), None);
    }
}

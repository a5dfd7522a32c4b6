//! Two sets of profiles side by side: the way in which their values are compared, and the contents that one
//! side lacks.

use std::collections::{BTreeMap, BTreeSet};

use super::survey::Survey;

/// The way in which the values of a base and a new side are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Comparison {
    /// Shares of each side's total.
    #[default]
    Share,
    /// Values per second of profiled time.
    PerSecond,
    /// Values as they are.
    Raw,
}

impl Comparison {
    /// The name in a page's header and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::PerSecond => "seconds",
            Self::Raw => "raw",
        }
    }
}

/// The names of the sides in texts: base, new.
const SIDES: [&str; 2] = ["base", "new"];

/// Lines that name the types, units and labels that one side lacks. The arguments are of the base and the new
/// side: the outlines, and the keys of the labels of their samples.
pub fn differences(surveys: [&Survey; 2], labels: [&BTreeSet<String>; 2]) -> Vec<String> {
    let units = surveys.map(units_by_type);
    let mut lines = Vec::new();
    for (side, other) in [(0, 1), (1, 0)] {
        let missing: Vec<_> =
            units[other].keys().filter(|name| !units[side].contains_key(*name)).copied().collect();
        if !missing.is_empty() {
            lines.push(format!("the {} side has no {}", SIDES[side], missing.join(", ")));
        }
    }
    for (name, of_base) in &units[0] {
        if let Some(of_new) = units[1].get(name)
            && of_base != of_new
        {
            let [base, new] = [of_base, of_new].map(|units| units.iter().copied().collect::<Vec<_>>());
            let (base, new) = (base.join(" and "), new.join(" and "));
            lines.push(format!("{name} is in {base} on the base side, and in {new} on the new side"));
        }
    }
    for (side, other) in [(0, 1), (1, 0)] {
        let missing: Vec<_> = labels[other].difference(labels[side]).map(String::as_str).collect();
        if !missing.is_empty() {
            lines.push(format!("the {} side has no label {}", SIDES[side], missing.join(", ")));
        }
    }
    lines
}

/// The units of each type.
fn units_by_type(survey: &Survey) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut units: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for measure in survey.measures.keys() {
        units.entry(&measure.name).or_default().insert(&measure.unit);
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measure;

    fn survey(types: &[(&str, &str)]) -> Survey {
        let measure = |&(name, unit): &(&str, &str)| (Measure { name: name.into(), unit: unit.into() }, 1);
        let mut survey = Survey::default();
        survey.measures.extend(types.iter().map(measure));
        survey
    }

    #[test]
    fn types_units_and_labels_of_one_side_are_named_in_one_line_each() {
        let base = survey(&[("cpu", "nanoseconds"), ("lock-time", "nanoseconds"), ("wall", "nanoseconds")]);
        let new = survey(&[("alloc-space", "bytes"), ("cpu", "count")]);
        let labels = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect::<BTreeSet<_>>();
        let (of_base, of_new) = (labels(&["tenant", "thread.name"]), labels(&["thread.name"]));
        assert_eq!(
            differences([&base, &new], [&of_base, &of_new]),
            [
                "the base side has no alloc-space",
                "the new side has no lock-time, wall",
                "cpu is in nanoseconds on the base side, and in count on the new side",
                "the new side has no label tenant",
            ]
        );
        assert!(differences([&base, &base], [&of_base, &of_base]).is_empty());
    }
}

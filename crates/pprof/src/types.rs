//! The sample types of a profile as types of the model.

use otlpprof_model::{ProfileType, label, types};

use super::error::PprofError;
use super::parts::Parts;

/// A sample type with its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleType {
    pub(super) profile_type: &'static ProfileType,
    pub(super) period: i64,
}

/// The sample types in the order of a sample's values.
///
/// A reader multiplies a count of samples by the period. Where another sample type of the profile already has
/// the result, as in Go's CPU profile (samples/count and cpu/nanoseconds), the count is a quantity of its
/// own, so that nothing is counted twice.
pub(super) fn sample_types(parts: &Parts<'_>) -> Result<Vec<SampleType>, PprofError> {
    if parts.sample_types.is_empty() {
        return Err(PprofError::new("sample types", "none: not a pprof profile"));
    }
    let text = |index| parts.text(index).map(|text| label(&text).to_owned());
    let mut quantities: Vec<(String, String)> = Vec::new();
    for sample_type in &parts.sample_types {
        let quantity = (text(sample_type.quantity)?, text(sample_type.unit)?);
        if quantities.contains(&quantity) {
            return Err(PprofError::new("sample types", format!("{}/{} twice", quantity.0, quantity.1)));
        }
        quantities.push(quantity);
    }
    let period_type = parts.period_type.unwrap_or_default();
    let of_period = (text(period_type.quantity)?, text(period_type.unit)?);
    let has_period = parts.period > 0 && !of_period.0.is_empty();
    let made = quantities.iter().map(|quantity| {
        let is_redundant = quantity.0 == "samples" && quantities.contains(&of_period);
        match has_period && !is_redundant {
            true => SampleType { profile_type: profile_type(quantity, &of_period), period: parts.period },
            false => SampleType { profile_type: profile_type(quantity, quantity), period: 1 },
        }
    });
    Ok(made.collect())
}

/// The type with these quantities and units: the model's own if there is one.
fn profile_type(sample: &(String, String), period: &(String, String)) -> &'static ProfileType {
    let (sample, period) = ((&*sample.0, &*sample.1), (&*period.0, &*period.1));
    let is_known = |known: &&&ProfileType| {
        ((known.sample_type, known.sample_unit), (known.period_type, known.period_unit)) == (sample, period)
    };
    let name = sample.0.replace('_', "-");
    types::ALL.iter().find(is_known).copied().unwrap_or_else(|| ProfileType::custom(&name, sample, period))
}

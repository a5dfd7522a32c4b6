//! The resources of the selected samples, by which a report says what it is about.

use std::collections::HashSet;

use super::resource_survey::ResourceSurvey;

/// The resources that a selection leaves.
#[derive(Debug, Default)]
pub struct SelectedResources {
    /// Their attributes.
    pub survey: ResourceSurvey,
    /// Their numbers, which are those of processes.
    numbers: HashSet<u64>,
}

impl SelectedResources {
    /// Adds a resource by its number and its attributes, unless a resource of this number was added.
    pub fn add(&mut self, number: u64, attributes: &[(String, String)]) {
        if self.numbers.insert(number) {
            self.survey.add(attributes.iter().map(|(key, value)| (&**key, value.into())));
        }
    }

    /// Whether the resource of this number was added.
    pub fn has(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }
}

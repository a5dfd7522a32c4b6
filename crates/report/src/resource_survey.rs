//! The attributes of resources in profile files. Some differ, and tell processes and services apart.
//! Processes are known by their ids and by the programs that they run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use otlpprof_model::attribute_keys;

/// The most keys that are compared, so that memory is bounded whatever the files have.
const MOST_KEYS: usize = 256;
/// The most processes whose programs are kept.
const MOST_PROCESSES: usize = 4096;

/// The prefix of a service that has no name (semantic conventions, "service.name"). The executable's name
/// follows.
const NAMELESS: &str = "unknown_service:";

/// The attributes of all resources that were added.
#[derive(Debug, Default)]
pub struct ResourceSurvey {
    /// The services that the resources name.
    pub services: BTreeSet<String>,
    resources: u64,
    keys: BTreeMap<String, Known>,
    /// The programs by process id, as far as they are known. Processes of several hosts may have one id.
    processes: BTreeMap<String, BTreeSet<String>>,
}

/// An attribute.
#[derive(Debug)]
struct Known {
    /// The first value.
    value: String,
    /// The number of resources that have the attribute.
    resources: u64,
    /// Whether a resource has another value.
    differs: bool,
}

impl ResourceSurvey {
    /// Adds a resource by its attributes, with their values as text. An empty text counts as no value.
    pub fn add<'a>(&mut self, attributes: impl IntoIterator<Item = (&'a str, Cow<'a, str>)>) {
        self.resources += 1;
        let (mut pid, mut program) = (None, None);
        for (key, value) in attributes.into_iter().filter(|(_, value)| !value.is_empty()) {
            match key {
                attribute_keys::PROCESS_PID => pid = Some(value.clone().into_owned()),
                attribute_keys::SERVICE_NAME if !self.services.contains(&*value) => {
                    self.services.insert(value.clone().into_owned());
                }
                attribute_keys::PROCESS_COMMAND => program = Some(value.clone().into_owned()),
                _ => {}
            }
            if let Some(known) = self.keys.get_mut(key) {
                known.resources += 1;
                known.differs |= known.value != value;
            } else if self.keys.len() < MOST_KEYS {
                let known = Known { value: value.into_owned(), resources: 1, differs: false };
                self.keys.insert(key.to_owned(), known);
            }
        }
        if let Some(pid) = pid
            && (self.processes.len() < MOST_PROCESSES || self.processes.contains_key(&pid))
        {
            self.processes.entry(pid).or_default().extend(program);
        }
    }

    /// The names of the services, separated by commas. A service without a name is called by its executable.
    pub fn service_names(&self) -> String {
        let names = self.services.iter().map(|name| name.strip_prefix(NAMELESS).unwrap_or(name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// The programs that processes with this id run, separated by commas; empty if unknown.
    pub fn programs_of(&self, pid: &str) -> String {
        let programs = self.processes.get(pid).into_iter().flatten();
        programs.map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// The value of an attribute that all resources have alike.
    pub fn shared(&self, key: &str) -> Option<&str> {
        let known = self.keys.get(key)?;
        (!known.differs && known.resources == self.resources).then_some(&*known.value)
    }

    /// The process ids, in the order of their text. At most 4,096 are known.
    pub fn process_ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.processes.keys().map(String::as_str)
    }

    /// The keys of the attributes that are not the same in all resources: the values differ, or some
    /// resources lack the attribute.
    pub fn differing(&self) -> BTreeSet<String> {
        self.keys.keys().filter(|key| self.shared(key).is_none()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differing(resources: &[&[(&'static str, &'static str)]]) -> Vec<String> {
        let mut survey = ResourceSurvey::default();
        for &resource in resources {
            survey.add(resource.iter().map(|&(key, value)| (key, value.into())));
        }
        survey.differing().into_iter().collect()
    }

    #[test]
    fn attributes_differ_that_some_resource_lacks_or_has_with_another_value() {
        let (one, two) = ([("service", "shop"), ("pid", "1")], [("service", "shop"), ("pid", "2")]);
        assert_eq!(differing(&[&one, &one]), [""; 0]);
        assert_eq!(differing(&[&one, &two, &one]), ["pid"]);
        assert_eq!(differing(&[&one, &two[..1]]), ["pid"]);
        assert_eq!(differing(&[&one[..1], &one]), ["pid"]);
        assert_eq!(differing(&[&one, &[("service", "shop"), ("pid", "")]]), ["pid"]);
        assert_eq!(differing(&[&one, &[]]), ["pid", "service"]);
    }

    #[test]
    fn processes_have_their_programs() {
        let mut survey = ResourceSurvey::default();
        for (pid, program) in [("1", "shop.jar"), ("2", ""), ("1", "shop.jar"), ("3", "a.B"), ("3", "a.A")] {
            survey.add([("process.command", program.into()), ("process.pid", pid.into())]);
        }
        assert_eq!(["1", "2", "3", "4"].map(|pid| survey.programs_of(pid)), ["shop.jar", "", "a.A, a.B", ""]);
        assert_eq!(survey.process_ids().collect::<Vec<_>>(), ["1", "2", "3"]);
        assert_eq!((survey.shared("process.pid"), survey.shared("process.command")), (None, None));
    }
}

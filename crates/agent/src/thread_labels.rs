//! Names and ids of threads.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use otlpprof_aggregate::ThreadKey;
use otlpprof_core::record::{Owner, OwnerThread};
use otlpprof_model::{AttributeSetId, Tables, attribute_keys};
use otlpprof_sampling::thread_records;
use parking_lot::Mutex;

use super::native_thread_names::NativeLife;
use super::thread_names::{THREAD_NAMES, ThreadLabel};

/// The names of the threads that an interval has samples of.
#[derive(Debug, Default)]
pub(super) struct IntervalLabels {
    /// Java threads, by incarnation.
    pub(super) java: HashMap<u32, ThreadLabel>,
    /// The kernel's names of all other threads.
    pub(super) native: HashMap<NativeLife, String>,
}

impl IntervalLabels {
    /// Returns the name of a thread's samples, if the thread has one.
    pub(super) fn name(&self, thread: ThreadKey) -> Option<&str> {
        match self.java.get(&thread.java_incarnation) {
            Some(label) => Some(&label.name),
            None => self.native.get(&(thread.os_tid, thread.java_incarnation)).map(String::as_str),
        }
    }
}

/// The most ended threads that are remembered for the rest of an interval.
const MAX_ENDED: usize = 100_000;

/// The labels of the threads that existed in this interval.
#[derive(Default)]
pub(super) struct ThreadLabels {
    /// Threads that ended in this interval, with their last names, by incarnation.
    ended: Mutex<HashMap<u32, ThreadLabel>>,
}

impl ThreadLabels {
    /// Remembers a thread that ends, until the interval's profile is made.
    pub(super) fn ended(&self, java_incarnation: u32, label: ThreadLabel) {
        let mut ended = self.ended.lock();
        if ended.len() < MAX_ENDED {
            ended.insert(java_incarnation, label);
        }
    }

    /// Returns the labels for an interval that ends now, by incarnation: the labels of `live` threads, which
    /// are given by kernel thread id, and those of threads that ended in the interval.
    pub(super) fn of_interval(&self, live: HashMap<i32, ThreadLabel>) -> HashMap<u32, ThreadLabel> {
        let ended = std::mem::take(&mut *self.ended.lock());
        with_live(ended, live, |incarnation, label| THREAD_NAMES.compare(incarnation, &label.name))
    }

    /// The labels of the interval so far, as [`ThreadLabels::of_interval`]. The interval goes on.
    pub(super) fn so_far(&self, live: HashMap<i32, ThreadLabel>) -> HashMap<u32, ThreadLabel> {
        let ended = self.ended.lock().clone();
        with_live(ended, live, |_, _| ())
    }
}

/// Adds the labels of live threads, which are given by kernel thread id, to those of ended threads. `visit`
/// is called for each live thread.
fn with_live(
    ended: HashMap<u32, ThreadLabel>,
    mut live: HashMap<i32, ThreadLabel>,
    visit: impl Fn(u32, &ThreadLabel),
) -> HashMap<u32, ThreadLabel> {
    let mut labels = ended;
    thread_records::for_each_thread(|record| {
        let incarnation = record.java_incarnation.load(Ordering::Relaxed);
        if let Some(label) = live.remove(&record.os_tid.load(Ordering::Relaxed)) {
            visit(incarnation, &label);
            // A thread that has just ended keeps the name with which it ended.
            labels.entry(incarnation).or_insert(label);
        }
    });
    labels
}

/// Adds the names of all lives in which threads have been sampled so far. Called when the samples have been
/// drained.
pub(super) fn add_names_of_incarnations(labels: &mut HashMap<u32, ThreadLabel>) {
    THREAD_NAMES.put_into(labels);
    let mut present = HashSet::new();
    thread_records::for_each_thread(|record| {
        present.insert(record.java_incarnation.load(Ordering::Relaxed));
    });
    THREAD_NAMES.forget_all_but(&present);
}

/// Adds the names, as [`add_names_of_incarnations`]. The interval goes on.
pub(super) fn add_names_so_far(labels: &mut HashMap<u32, ThreadLabel>) {
    THREAD_NAMES.put_into(labels);
}

/// Returns the attributes of one thread's samples: a Java thread's name and managed id; for other threads the
/// kernel's name and id. A virtual thread has its carrier's name and no id: its own id would make one more
/// series for each of a million threads.
pub(super) fn attributes(tables: &mut Tables, thread: ThreadKey, labels: &IntervalLabels) -> AttributeSetId {
    let name = labels.name(thread);
    let name =
        name.map(|name| tables.string_attribute(attribute_keys::THREAD_NAME, otlpprof_model::label(name)));
    let id = match labels.java.get(&thread.java_incarnation) {
        None => Some(tables.int_attribute(attribute_keys::THREAD_OS_ID, i64::from(thread.os_tid), "")),
        Some(_) if thread.is_virtual => None,
        Some(label) => Some(tables.int_attribute(attribute_keys::THREAD_ID, label.id, "")),
    };
    let attributes: Vec<_> = name.into_iter().chain(id).collect();
    tables.attribute_set(&attributes)
}

/// The threads of an interval, as owners of locks that others wait for.
pub(super) struct OwnerLabels<'a> {
    by_incarnation: &'a HashMap<u32, ThreadLabel>,
    /// Made when it is first needed.
    by_id: Option<HashMap<i64, &'a ThreadLabel>>,
}

impl<'a> OwnerLabels<'a> {
    pub(super) const fn new(by_incarnation: &'a HashMap<u32, ThreadLabel>) -> Self {
        Self { by_incarnation, by_id: None }
    }

    /// Returns the attributes of the thread `owner`: its name and managed id. A virtual thread, or one that
    /// ended before this interval, has only its id if that is known, and otherwise only its carrier's name.
    pub(super) fn attributes(&mut self, tables: &mut Tables, owner: Owner) -> AttributeSetId {
        let (label, id) = match owner.thread() {
            None => (None, None),
            Some(OwnerThread::ThreadId(id)) => {
                let by_incarnation = self.by_incarnation;
                let by_id = self.by_id.get_or_insert_with(|| present_by_id(by_incarnation));
                (by_id.get(&id).copied(), Some(id))
            }
            Some(OwnerThread::Incarnation(incarnation)) => {
                let label = self.by_incarnation.get(&incarnation);
                (label, label.map(|label| label.id))
            }
            Some(OwnerThread::Carrier(incarnation)) => (self.by_incarnation.get(&incarnation), None),
        };
        let name = label.map(|label| {
            tables.string_attribute(attribute_keys::LOCK_OWNER_NAME, otlpprof_model::label(&label.name))
        });
        let id = id.map(|id| tables.int_attribute(attribute_keys::LOCK_OWNER_ID, id, ""));
        let attributes: Vec<_> = name.into_iter().chain(id).collect();
        tables.attribute_set(&attributes)
    }
}

/// Returns the labels by the threads' ids, each of the thread's last life.
fn present_by_id(by_incarnation: &HashMap<u32, ThreadLabel>) -> HashMap<i64, &ThreadLabel> {
    let mut last: Vec<_> = by_incarnation.iter().collect();
    last.sort_unstable_by_key(|(incarnation, _)| **incarnation);
    last.into_iter().map(|(_, label)| (label.id, label)).collect()
}

#[cfg(test)]
mod tests {
    use otlpprof_model::AttributeValue;

    use super::*;

    #[test]
    fn an_owner_has_the_name_and_the_id_that_are_known() {
        let label = |name: &str, id| ThreadLabel { name: name.to_owned(), id };
        let threads = HashMap::from([(1, label("main", 3)), (2, label("carrier", 30))]);
        let mut tables = Tables::new();
        let mut labels = OwnerLabels::new(&threads);
        let mut of = |thread| {
            let set = labels.attributes(&mut tables, Owner::new(thread));
            let text = tables.attributes_of(set).iter().map(|id| match tables.attributes.get(*id).value {
                AttributeValue::Str(text) => tables.strings.get(text).to_owned(),
                AttributeValue::Int(number) => number.to_string(),
                other => panic!("{other:?}"),
            });
            let mut text: Vec<_> = text.collect();
            text.sort_unstable();
            text.join(" ")
        };
        assert_eq!(of(OwnerThread::ThreadId(3)), "3 main");
        assert_eq!(of(OwnerThread::Incarnation(1)), "3 main");
        assert_eq!(of(OwnerThread::ThreadId(77)), "77");
        assert_eq!(of(OwnerThread::Carrier(2)), "carrier");
        assert_eq!(of(OwnerThread::Incarnation(9)), "");
    }

    #[test]
    fn a_long_thread_name_is_cut() {
        let mut tables = Tables::new();
        let thread = ThreadKey { os_tid: 7, java_incarnation: 1, is_virtual: true };
        let label = ThreadLabel { name: "worker ".repeat(1_000), id: 1 };
        let labels = IntervalLabels { java: HashMap::from([(1, label.clone())]), native: HashMap::new() };
        let set = attributes(&mut tables, thread, &labels);
        let AttributeValue::Str(name) = tables.attributes.get(tables.attributes_of(set)[0]).value else {
            panic!("thread.name is text");
        };
        assert_eq!(tables.strings.get(name), &label.name[..otlpprof_model::LONGEST_LABEL]);
    }
}

//! Names and ids of Java threads.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::aggregate::ThreadKey;
use crate::model::{self, AttributeSetId, Tables};
use crate::sampling::thread_records;

/// What a Java thread is called in profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadLabel {
    pub(super) name: String,
    /// `Thread.threadId()`.
    pub(super) id: i64,
}

/// At most so many ended threads are remembered for the rest of an interval.
const MAX_ENDED: usize = 100_000;

/// The labels of the threads that were there in this interval.
#[derive(Default)]
pub(super) struct ThreadLabels {
    /// Threads that ended in this interval, as they were called then, by incarnation.
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

    /// The labels for an interval that ends now, by incarnation: `live` threads, which are known by the kernel's
    /// ids, and those that ended in it.
    pub(super) fn of_interval(&self, live: HashMap<i32, ThreadLabel>) -> HashMap<u32, ThreadLabel> {
        let mut labels = std::mem::take(&mut *self.ended.lock());
        let mut live = live;
        thread_records::for_each_thread(|record| {
            let incarnation = record.java_incarnation.load(Ordering::Relaxed);
            if let Some(label) = live.remove(&record.os_tid.load(Ordering::Relaxed)) {
                // A thread that has just ended keeps the name it ended with.
                labels.entry(incarnation).or_insert(label);
            }
        });
        labels
    }
}

/// The attributes of the samples of one thread: a Java thread's name and managed id, or, where there is no Java
/// thread, the kernel's id. A virtual thread has its carrier's name and no id: its own would be one more series
/// for each of a million threads.
pub(super) fn attributes(
    tables: &mut Tables,
    thread: ThreadKey,
    label: Option<&ThreadLabel>,
) -> AttributeSetId {
    let Some(label) = label else {
        let id = tables.int_attribute("otlpprof.thread.os_id", i64::from(thread.os_tid), "");
        return tables.attribute_set(&[id]);
    };
    let name = tables.string_attribute("thread.name", model::label(&label.name));
    if thread.is_virtual {
        return tables.attribute_set(&[name]);
    }
    let id = tables.int_attribute("thread.id", label.id, "");
    tables.attribute_set(&[name, id])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AttributeValue;

    #[test]
    fn a_long_thread_name_is_cut() {
        let mut tables = Tables::new();
        let thread = ThreadKey { os_tid: 7, java_incarnation: 1, is_virtual: true };
        let label = ThreadLabel { name: "worker ".repeat(1_000), id: 1 };
        let set = attributes(&mut tables, thread, Some(&label));
        let AttributeValue::Str(name) = tables.attributes.get(tables.attributes_of(set)[0]).value else {
            panic!("thread.name is text");
        };
        assert_eq!(tables.strings.get(name), &label.name[..model::LONGEST_LABEL]);
    }
}

//! Support for a /proc of another PID namespace, as in a container that has the host's /proc mounted.
//!
//! There a thread's number is the one of the other namespace. It differs from the thread's id in its own
//! namespace, which clocks, timers and signals use. The thread's status file has both (proc_pid_status(5),
//! `NSpid`).

use std::collections::{HashMap, HashSet};
use std::fs;

use parking_lot::Mutex;

use super::clock::cpu_time_of;

/// The threads' ids by their numbers in /proc; `None` if the numbers are the ids.
static NUMBERS: Mutex<Option<Numbers>> = Mutex::new(None);

#[derive(Debug, Default)]
struct Numbers {
    /// Ids by number.
    ids: HashMap<i32, i32>,
    /// Numbers by id.
    numbers: HashMap<i32, i32>,
}

/// Checks whether /proc belongs to another namespace.
pub(super) fn notice() -> bool {
    let is_foreign = fs::read_to_string("/proc/self/status").is_ok_and(|status| is_of_outer(&status));
    *NUMBERS.lock() = is_foreign.then(Numbers::default);
    is_foreign
}

/// Converts threads' numbers in /proc to their ids.
pub(super) fn own_ids(listed: Vec<i32>) -> Vec<i32> {
    match &mut *NUMBERS.lock() {
        None => listed,
        Some(numbers) => numbers.own_ids(listed, id_of, is_alive),
    }
}

/// Returns a thread's number in /proc. `None` if the thread has ended.
pub(super) fn number_of(tid: i32) -> Option<i32> {
    match &mut *NUMBERS.lock() {
        None => Some(tid),
        Some(numbers) => numbers.number_of(tid, listed, id_of, is_alive),
    }
}

impl Numbers {
    /// As [`Numbers::own_ids`]; `list` returns the numbers of all threads. A thread that has begun after the
    /// last list is looked for in a new one, which then has all other new threads as well.
    fn number_of(
        &mut self,
        tid: i32,
        list: impl Fn() -> Vec<i32>,
        read: impl Fn(i32) -> Option<i32>,
        is_alive: impl Fn(i32) -> bool,
    ) -> Option<i32> {
        if !self.numbers.contains_key(&tid) && is_alive(tid) {
            self.own_ids(list(), read, is_alive);
        }
        self.numbers.get(&tid).copied()
    }

    /// `read` returns the id of a thread by its number, and is slow; `is_alive` says whether a thread with
    /// this id exists.
    fn own_ids(
        &mut self,
        listed: Vec<i32>,
        read: impl Fn(i32) -> Option<i32>,
        is_alive: impl Fn(i32) -> bool,
    ) -> Vec<i32> {
        let present: HashSet<i32> = listed.iter().copied().collect();
        // Numbers and ids of threads that have ended may have been reused.
        self.ids.retain(|number, id| present.contains(number) && is_alive(*id));
        let mut known = HashSet::new();
        if !self.ids.values().all(|id| known.insert(*id)) {
            self.ids.clear();
        }
        for number in listed {
            if !self.ids.contains_key(&number)
                && let Some(id) = read(number)
            {
                // The thread that had this id before has ended.
                self.ids.retain(|_, other| *other != id);
                self.ids.insert(number, id);
            }
        }
        self.numbers = self.ids.iter().map(|(&number, &id)| (id, number)).collect();
        self.numbers.keys().copied().collect()
    }
}

/// The numbers of all threads in /proc; none if the list cannot be read.
fn listed() -> Vec<i32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn is_alive(tid: i32) -> bool {
    cpu_time_of(tid).is_some()
}

fn id_of(number: i32) -> Option<i32> {
    numbers(&fs::read_to_string(format!("/proc/self/task/{number}/status")).ok()?).last()
}

/// Returns the thread's numbers, from the one in the namespace of this /proc to the one in its own namespace.
fn numbers(status: &str) -> impl Iterator<Item = i32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or("");
    line.split_ascii_whitespace().filter_map(|number| number.parse().ok())
}

/// Whether the thread has a further number, in a namespace inside the one of this /proc.
fn is_of_outer(status: &str) -> bool {
    numbers(status).count() > 1
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_last_number_is_the_thread_s_own() {
        let status = "Name:\tjava\nTgid:\t4711\nNSpid:\t4711\t23\t7\nThreads:\t3\n";
        assert_eq!(numbers(status).last(), Some(7));
        assert!(is_of_outer(status));
        assert!(!is_of_outer("NSpid:\t4711\n"));
        assert!(!is_of_outer("Name:\tjava\n"), "an old kernel");
    }

    /// Regression: a thread that armed itself had no number until the next list.
    #[test]
    fn a_new_thread_is_listed_when_its_number_is_needed() {
        let mut numbers = Numbers::default();
        let lists = Cell::new(0);
        let mut number_of = |tid, threads: &[(i32, i32)]| {
            let list = || {
                lists.set(lists.get() + 1);
                threads.iter().map(|(number, _)| *number).collect()
            };
            let read = |number| threads.iter().find(|(of, _)| *of == number).map(|(_, id)| *id);
            numbers.number_of(tid, list, read, |id| threads.iter().any(|(_, of)| *of == id))
        };
        let threads = [(100, 1), (101, 2), (102, 3)];
        assert_eq!([1, 2].map(|tid| number_of(tid, &threads[..2])), [Some(100), Some(101)]);
        assert_eq!(number_of(3, &threads), Some(102));
        assert_eq!(number_of(4, &threads), None, "ended");
        assert_eq!(lists.get(), 2);
    }

    #[test]
    fn a_reused_thread_number_is_read_again() {
        let mut numbers = Numbers::default();
        let mut ids = |listed: &[i32], threads: &[(i32, i32)]| {
            let read = |number| threads.iter().find(|(of, _)| *of == number).map(|(_, id)| *id);
            let is_alive = |id| threads.iter().any(|(_, of)| *of == id);
            let mut ids = numbers.own_ids(listed.to_vec(), read, is_alive);
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(&[100, 101], &[(100, 1), (101, 2)]), [1, 2]);
        assert_eq!(ids(&[100, 101], &[(100, 1), (101, 3)]), [1, 3]);
        // Known numbers are not read again, so the reuse of an id shows only through another number.
        assert_eq!(ids(&[100, 102], &[(100, 9), (102, 1)]), [1]);
        assert_eq!(ids(&[100, 102], &[(100, 9), (102, 1)]), [1, 9]);
    }
}

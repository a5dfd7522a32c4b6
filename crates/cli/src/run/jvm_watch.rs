//! The JVMs among a program's processes, and whether they have loaded the agent. The program, or what it
//! starts, may remove the variable that loads the agent.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::main_class;

/// The time between two looks. There is no event to wait for in their place: without privileges, the kernel
/// does not report the programs that descendants execute or the libraries that they map. The process
/// connector and fanotify need capabilities, and perf events a setting that containers lack.
const LOOK: Duration = Duration::from_millis(100);
/// A JVM that so many looks in a row have found without the agent is taken for one that does not load it.
/// The agent is loaded soon after the JVM's library.
const SURE: u32 = 5;
/// A program that is no JVM after so many looks is not looked at again until its process executes another.
const PATIENCE: u32 = 50;

/// A JVM of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenJvm {
    pub(super) pid: u32,
    /// The main class or jar.
    pub(super) main: String,
}

/// The JVMs of the program, in the order in which they were seen.
#[derive(Debug, Default)]
pub(super) struct SeenJvms {
    pub(super) with_agent: Vec<SeenJvm>,
    pub(super) without_agent: Vec<SeenJvm>,
}

/// A thread that looks at the processes that this process has started.
#[derive(Debug)]
pub(super) struct JvmWatch {
    end: Sender<()>,
    thread: JoinHandle<SeenJvms>,
}

impl JvmWatch {
    /// Begins to look for JVMs, and for this library in them.
    pub(super) fn begin(library: &Path) -> Self {
        let (end, ended) = mpsc::channel();
        let mut looks = Looks::new(library.to_owned());
        let thread = thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK) {
                looks.look();
            }
            looks.seen
        });
        Self { end, thread }
    }

    /// Ends looking. Returns what was seen.
    pub(super) fn end(self) -> SeenJvms {
        drop(self.end);
        self.thread.join().unwrap_or_default()
    }
}

/// A process of the program.
#[derive(Debug, Default)]
struct Process {
    executable: OsString,
    /// The looks at this executable, and those in a row that found a JVM without the agent.
    looks: u32,
    looks_without_agent: u32,
    /// Whether the process has been counted.
    is_counted: bool,
}

/// The libraries that a process has mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Agent,
    JvmAlone,
    Other,
}

/// The looks so far.
#[derive(Debug)]
struct Looks {
    library: PathBuf,
    /// This process's id in /proc. Without one nothing is seen.
    own: Option<u32>,
    /// The processes that the last look has found, apart from those of the program.
    others: HashSet<u32>,
    of_program: HashMap<u32, Process>,
    seen: SeenJvms,
}

impl Looks {
    fn new(library: PathBuf) -> Self {
        let own = fs::read_link("/proc/self").ok().and_then(|own| own.to_str()?.parse().ok());
        Self { library, own, others: HashSet::new(), of_program: HashMap::new(), seen: SeenJvms::default() }
    }

    fn look(&mut self) {
        let Some(own) = self.own else { return };
        let mut pids = process_ids();
        // A parent mostly has a lower id than its children.
        pids.sort_unstable();
        let running: HashSet<u32> = pids.iter().copied().collect();
        self.others.retain(|pid| running.contains(pid));
        self.of_program.retain(|pid, _| running.contains(pid));
        for pid in pids {
            if pid == own || self.others.contains(&pid) || self.of_program.contains_key(&pid) {
                continue;
            }
            match parent(pid) {
                Some(parent) if parent == own || self.of_program.contains_key(&parent) => {
                    self.of_program.insert(pid, Process::default());
                }
                _ => drop(self.others.insert(pid)),
            }
        }
        for (&pid, process) in &mut self.of_program {
            let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default().into_os_string();
            if let Some(has_agent) = process.next_look(executable, || content(pid, &self.library)) {
                let jvms = if has_agent { &mut self.seen.with_agent } else { &mut self.seen.without_agent };
                jvms.push(SeenJvm { pid, main: main_of(pid) });
            }
        }
    }
}

impl Process {
    /// Looks at the process once more. Returns whether a JVM has the agent, when that becomes known.
    fn next_look(&mut self, executable: OsString, content: impl FnOnce() -> Content) -> Option<bool> {
        if self.executable != executable {
            *self = Self { executable, is_counted: self.is_counted, ..Self::default() };
        }
        if self.is_counted || self.looks >= PATIENCE {
            return None;
        }
        self.looks += 1;
        let has_agent = match content() {
            Content::Agent => true,
            Content::JvmAlone => {
                self.looks_without_agent += 1;
                // A JVM is looked at until it is counted.
                self.looks = 0;
                if self.looks_without_agent < SURE {
                    return None;
                }
                false
            }
            Content::Other => {
                self.looks_without_agent = 0;
                return None;
            }
        };
        self.is_counted = true;
        Some(has_agent)
    }
}

fn process_ids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The parent of a process.
fn parent(pid: u32) -> Option<u32> {
    // The process's name may end inside a letter.
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Whether a process has a JVM and the agent mapped. Another user's process is known only by its program.
fn content(pid: u32, library: &Path) -> Content {
    match fs::read(format!("/proc/{pid}/maps")) {
        Ok(maps) => {
            let maps = String::from_utf8_lossy(&maps);
            if maps.contains(&*library.to_string_lossy()) {
                Content::Agent
            } else if maps.contains("/libjvm.so") {
                Content::JvmAlone
            } else {
                Content::Other
            }
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied && is_java(pid) => Content::JvmAlone,
        Err(_) => Content::Other,
    }
}

/// Whether a process runs that has the library mapped. Another process may have the id meanwhile.
pub(super) fn has_agent(pid: u32, library: &Path) -> bool {
    content(pid, library) == Content::Agent
}

fn is_java(pid: u32) -> bool {
    arguments(pid).first().is_some_and(|program| main_class::file_name(program) == "java")
}

fn main_of(pid: u32) -> String {
    let arguments = arguments(pid);
    main_class::of(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).to_owned()
}

fn arguments(pid: u32) -> Vec<String> {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&arguments).split_terminator('\0').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdicts of looks at one process.
    fn found(looks: &[(&str, Content)]) -> Vec<Option<bool>> {
        let mut process = Process::default();
        looks.iter().map(|(executable, content)| process.next_look(executable.into(), || *content)).collect()
    }

    #[test]
    fn a_jvm_without_the_agent_is_known_after_several_looks() {
        let (shell, starting) = (("sh", Content::Other), ("java", Content::Other));
        let (alone, agent) = (("java", Content::JvmAlone), ("java", Content::Agent));
        let sure = SURE as usize;
        let mut looks = vec![shell, starting];
        looks.extend(vec![alone; sure + 1]);
        let verdicts = found(&looks);
        assert_eq!(verdicts.iter().position(|verdict| *verdict == Some(false)), Some(sure + 1));
        assert_eq!(verdicts.iter().flatten().count(), 1);
        assert_eq!(found(&[alone, alone, agent, agent]), [None, None, Some(true), None]);
        // Another program of the process begins anew.
        looks = vec![alone; sure - 1];
        looks.extend([("other", Content::JvmAlone), alone]);
        assert_eq!(found(&looks).iter().flatten().count(), 0);
    }

    #[test]
    fn a_program_that_is_no_jvm_is_looked_at_for_some_time() {
        let mut looks = vec![("node", Content::Other); PATIENCE as usize];
        looks.extend([("node", Content::Agent), ("java", Content::Agent)]);
        assert_eq!(found(&looks)[PATIENCE as usize..], [None, Some(true)]);
    }
}

//! Containers, without a program that makes them: namespaces, a root of its own, and control groups.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::jdk::with_its_c_library;
use crate::this_build;

/// The script that gives a command a root of its own.
const IN_CONTAINER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/java_run/in_container.sh");

/// The place of a container's volume in the container.
pub const VOLUME: &str = "/volume";

/// The folders that a JVM of this home and the agent need, none of which is inside of another one.
fn needed(home: &Path) -> Vec<PathBuf> {
    let home = home.canonicalize().unwrap();
    // The JDK's own C library lies outside of its home.
    let home = with_its_c_library(&home).and_then(|run| run.parent().map(PathBuf::from)).unwrap_or(home);
    let built = [this_build::libraries()[0], otlpprof_testkit_products::TEST_CLASSES].map(PathBuf::from);
    let files = built.into_iter().chain([this_build::command().to_owned(), this_build::agent()]);
    let folders = files.map(|file| file.parent().unwrap().canonicalize().unwrap());
    let mut folders: Vec<_> = [home].into_iter().chain(folders).collect();
    folders.sort();
    let mut needed: Vec<PathBuf> = vec!["/usr".into()];
    for folder in folders {
        if !needed.iter().any(|outer| folder.starts_with(outer)) {
            needed.push(folder);
        }
    }
    needed.split_off(1)
}

/// Adds to a command that makes a mount namespace the arguments that give it a container's root, mounted in
/// `folder`, and a volume: its folder and its place. The command to run is to be added.
pub fn add_root(command: &mut Command, home: &Path, folder: &Path, volume: (&Path, &str)) {
    let root = folder.join("root");
    fs::create_dir(&root).unwrap();
    command.arg(IN_CONTAINER).arg(root).arg(volume.0).arg(volume.1).args(needed(home)).arg("--");
}

/// The command that makes namespaces of users, processes and mounts for its arguments.
pub fn namespaces() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--pid", "--mount", "--fork", "--kill-child"]);
    command
}

/// Whether this machine permits to make such namespaces.
pub fn are_permitted() -> bool {
    namespaces().arg("true").status().is_ok_and(|status| status.success())
}

/// A control group, or one of each hierarchy: of memory and of processors.
pub struct ControlGroup {
    folders: Vec<PathBuf>,
}

impl ControlGroup {
    /// Creates a group of processes that have this much memory, and this part of one processor in percent.
    ///
    /// # Errors
    /// If the machine has no control groups, or this process may not create any.
    pub fn limiting(memory_bytes: u64, processor_percent: u64) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("otlpprof-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let root = Path::new("/sys/fs/cgroup");
        let (period, quota, memory) =
            ("100000", (processor_percent * 1_000).to_string(), memory_bytes.to_string());
        let create = |hierarchy: PathBuf, limits: &[(&str, &str)]| {
            let folder = hierarchy.join(&name);
            fs::create_dir(&folder)?;
            // Removed below, by `Drop`, if a limit is refused.
            let group = Self { folders: vec![folder] };
            for (file, limit) in limits {
                fs::write(group.folders[0].join(file), limit)?;
            }
            Ok::<_, io::Error>(group)
        };
        if root.join("cgroup.controllers").is_file() {
            fs::write(root.join("cgroup.subtree_control"), "+memory +cpu")?;
            let processors = format!("{quota} {period}");
            return create(root.to_owned(), &[("memory.max", &memory), ("cpu.max", &processors)]);
        }
        let mut memory = create(root.join("memory"), &[("memory.limit_in_bytes", &memory)])?;
        let limits = [("cpu.cfs_period_us", period), ("cpu.cfs_quota_us", &quota)];
        let mut processors = create(root.join("cpu"), &limits)?;
        memory.folders.append(&mut processors.folders);
        Ok(memory)
    }

    /// The variable that makes a container join the group.
    pub(super) fn variable(&self) -> (&'static str, String) {
        let folders: Vec<_> = self.folders.iter().map(|folder| folder.to_str().unwrap()).collect();
        ("CONTROL_GROUPS", folders.join(" "))
    }

    /// The number of periods in which the group's processes had to wait for the next one.
    pub fn periods_throttled(&self) -> u64 {
        let stat = |folder: &PathBuf| fs::read_to_string(folder.join("cpu.stat")).ok();
        let stat = self.folders.iter().find_map(stat).expect("the group's cpu.stat");
        let count = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        count.expect("nr_throttled").parse().unwrap()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Fails while a process is in the group, which the test's end leaves behind at worst.
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}

//! The JVMs of this machine, found by their mapped libjvm.so: a JVM may have its performance data off. A
//! process whose mapped files this user may not see is found by the name of its program, `java`.

use std::fs;
use std::io::{self, Read as _, Write};

use serde_json::{Value, json};

use super::account_names::user_name;
use super::error::AttachError;
use super::process::JvmProcess;
use super::status::Status;
use super::target_files::TargetFiles;
use crate::main_class;

/// A JVM.
pub(super) struct Jvm {
    pub(super) pid: u32,
    user: String,
    /// The Java version, if the JVM's home says so.
    version: Option<String>,
    /// The main class or jar.
    pub(super) main: String,
    /// The path of the loaded agent.
    agent: Option<String>,
    /// The reason why the command cannot inspect the process.
    problem: Option<String>,
}

/// All JVMs, by process id.
pub(super) fn jvms() -> io::Result<Vec<Jvm>> {
    let names = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut pids: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids.into_iter().filter_map(jvm).collect())
}

fn jvm(pid: u32) -> Option<Jvm> {
    let found = JvmProcess::find(pid);
    let status = Status::of(pid).ok()?;
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let arguments = String::from_utf8_lossy(&arguments).into_owned();
    let arguments: Vec<_> = arguments.split_terminator('\0').collect();
    let (process, problem) = match found {
        Ok(process) => (Some(process), None),
        Err(error) if is_of_jvm(&error, &arguments) => (None, Some(error.to_string())),
        Err(_) => return None,
    };
    let agent = process.as_ref().and_then(|process| process.maps.agent.as_ref());
    Some(Jvm {
        pid,
        user: user_name(status.uid),
        version: process.as_ref().and_then(version),
        main: main_class::of(&arguments).to_owned(),
        agent: agent.map(|agent| agent.path.display().to_string()),
        problem,
    })
}

/// Whether a process that cannot be inspected for this reason is a JVM.
fn is_of_jvm(error: &AttachError, arguments: &[&str]) -> bool {
    match error {
        AttachError::OpenJ9(_) => true,
        AttachError::OtherUser { .. }
        | AttachError::OtherGroup { .. }
        | AttachError::MorePrivileges(_)
        | AttachError::NotTraceable(_) => {
            arguments.first().is_some_and(|program| main_class::file_name(program) == "java")
        }
        _ => false,
    }
}

/// The version in the file `release` of the JVM's home, which has its library at lib/server/libjvm.so.
fn version(process: &JvmProcess) -> Option<String> {
    const MOST_BYTES: u64 = 1 << 16;
    let home = process.maps.libjvm.as_ref()?.path.ancestors().nth(3)?.to_owned();
    let file = TargetFiles::open(process).ok()?.read(&home.join("release")).ok()?;
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    let version = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
    Some(version.trim_end_matches('"').to_owned())
}

/// Prints a line for each JVM.
pub(super) fn print(jvms: &[Jvm], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:>8}  {:<12}  {:<10}  {:<5}  MAIN", "PID", "USER", "JAVA", "AGENT")?;
    for Jvm { pid, user, version, main, agent, problem } in jvms {
        let version = version.as_deref().unwrap_or("?");
        let agent = match (agent, problem) {
            (Some(_), _) => "yes",
            (None, None) => "no",
            (None, Some(_)) => "?",
        };
        writeln!(out, "{pid:>8}  {user:<12}  {version:<10}  {agent:<5}  {main}")?;
    }
    Ok(())
}

/// A line about the JVMs that cannot be inspected.
pub(super) fn problem(jvms: &[Jvm]) -> Option<String> {
    let mut problems = jvms.iter().filter_map(|jvm| jvm.problem.as_deref());
    let first = problems.next()?;
    Some(match problems.count() {
        0 => first.to_owned(),
        others => {
            format!("{first}; {others} more cannot be inspected: `otlpprof list --json` has the reasons")
        }
    })
}

/// The JVMs as JSON.
pub(super) fn to_json(jvms: &[Jvm]) -> Value {
    let jvm = |jvm: &Jvm| {
        let Jvm { pid, user, version, main, agent, problem } = jvm;
        let mut object = json!({ "pid": pid, "user": user, "javaVersion": version });
        object["main"] = json!(main);
        object["agent"] = json!(agent);
        object["problem"] = json!(problem);
        object
    };
    jvms.iter().map(jvm).collect()
}

impl Jvm {
    /// Whether the command can inspect the process.
    pub(super) fn is_open(&self) -> bool {
        self.problem.is_none()
    }
}

#[cfg(test)]
impl Jvm {
    /// A JVM of which only these facts matter.
    pub(super) fn named(pid: u32, main: &str) -> Self {
        let main = main.to_owned();
        Self { pid, user: String::new(), version: None, main, agent: None, problem: None }
    }

    /// A JVM that cannot be inspected.
    pub(super) fn closed(pid: u32, main: &str) -> Self {
        Self { problem: Some("closed".to_owned()), ..Self::named(pid, main) }
    }
}

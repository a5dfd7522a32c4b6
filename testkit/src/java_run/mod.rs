//! Runs Java programs under the agent, and reads the files that the agent wrote. When a program has ended,
//! every file is validated, and read by Python too.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]

pub(crate) mod containers;
#[path = "../heeded_signals.rs"]
pub(crate) mod heeded_signals;
#[path = "../../../tests/agent/made_once.rs"]
pub(crate) mod made_once;
#[path = "../profiles.rs"]
pub(crate) mod profiles;
mod refused_calls;
pub(crate) mod restricted;
pub(crate) mod running;
#[path = "../stacks.rs"]
pub(crate) mod stacks;
#[path = "../binutils.rs"]
pub(crate) mod symbols;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

pub(crate) use crate::jdk_support::{
    everything, installed_homes, java_builds, java_homes, java_homes_from, java_version, missing_versions,
    newest_of, newest_or_all, newest_that_start_with, starts_with,
};
pub(crate) use crate::python_support::assert_read_alike;
use containers::ControlGroup;
use running::{Finished, Running};

/// The folder of the test programs' sources.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/java/testprograms/programs");

/// The agent that was built with this test; of OTLPPROF_TEST_BUILD, if set.
pub(crate) fn agent() -> PathBuf {
    let beside = std::env::current_exe().unwrap().with_file_name("libotlpprof.so");
    let agent = PathBuf::from(built(beside.to_str().unwrap()));
    assert!(agent.is_file(), "{}: the agent was not built", agent.display());
    agent
}

/// The sample library, compiled without frame pointers, and with them.
pub(crate) fn libraries() -> [&'static str; 2] {
    static PATHS: LazyLock<[String; 2]> =
        LazyLock::new(|| [otlpprof_testkit::DDPROFTEST, otlpprof_testkit::DDPROFTEST_FP].map(built));
    PATHS.each_ref().map(String::as_str)
}

/// Whether an emulator runs the JVMs, with the libraries of OTLPPROF_TEST_BUILD.
pub(crate) fn is_emulated() -> bool {
    std::env::var_os("OTLPPROF_TEST_BUILD").is_some()
}

/// The library of this build's path in OTLPPROF_TEST_BUILD, the folder of a build for the architecture of
/// OTLPPROF_TEST_JDKS; without the variable, the path.
pub(crate) fn built(library: &str) -> String {
    let Some(folder) = std::env::var_os("OTLPPROF_TEST_BUILD") else { return library.to_owned() };
    let name = Path::new(library).file_name().unwrap();
    Path::new(&folder).join(name).to_str().unwrap().to_owned()
}

/// A Java program to run, with its options.
pub(crate) struct JavaRun {
    home: PathBuf,
    program: &'static str,
    arguments: Vec<String>,
    agent_options: Vec<String>,
    jvm_options: Vec<String>,
    library: PathBuf,
    api: PathBuf,
    java_agent: Option<(PathBuf, String)>,
    variables: Vec<(&'static str, String)>,
    refused_calls: Vec<libc::c_long>,
    in_pid_namespace: bool,
    in_container: bool,
    denied_capabilities: Vec<libc::c_ulong>,
    denied_resources: Vec<libc::__rlimit_resource_t>,
    lasting: Duration,
}

impl JavaRun {
    /// Creates a run of a test program, without the agent.
    pub(crate) fn new(home: &Path, program: &'static str) -> Self {
        Self {
            home: home.to_owned(),
            program,
            arguments: Vec::new(),
            agent_options: Vec::new(),
            jvm_options: Vec::new(),
            library: libraries()[0].into(),
            api: otlpprof_testkit::API_CLASSES.into(),
            java_agent: None,
            variables: Vec::new(),
            refused_calls: Vec::new(),
            in_pid_namespace: false,
            in_container: false,
            denied_capabilities: Vec::new(),
            denied_resources: Vec::new(),
            lasting: Duration::ZERO,
        }
    }

    /// Adds an argument of the program.
    pub(crate) fn argument(mut self, argument: impl ToString) -> Self {
        self.arguments.push(argument.to_string());
        self
    }

    /// Loads the agent with these options. A second call loads it once more. See [`with_paths`] for the paths
    /// in the options.
    pub(crate) fn agent(mut self, options: &str) -> Self {
        self.agent_options.push(options.to_owned());
        self
    }

    /// Adds an option of the JVM.
    pub(crate) fn jvm_option(mut self, option: &str) -> Self {
        self.jvm_options.push(option.to_owned());
        self
    }

    /// Sets the library that the program loads. The default is the first of [`libraries`].
    pub(crate) fn library(mut self, library: impl Into<PathBuf>) -> Self {
        self.library = library.into();
        self
    }

    /// Sets the folder or jar of the API. The default is the folder of the API's classes.
    pub(crate) fn api(mut self, api: &Path) -> Self {
        api.clone_into(&mut self.api);
        self
    }

    /// Loads a jar as a Java agent (`-javaagent`), with these options.
    pub(crate) fn java_agent(mut self, jar: &Path, options: &str) -> Self {
        self.java_agent = Some((jar.to_owned(), options.to_owned()));
        self
    }

    /// Sets a variable of the environment. Variables that configure agents or JVMs are otherwise removed from
    /// it.
    pub(crate) fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Makes the system refuse perf events, as in containers.
    pub(crate) fn without_perf_events(self) -> Self {
        self.without_call(libc::SYS_perf_event_open)
    }

    /// Makes the system refuse a system call.
    pub(crate) fn without_call(mut self, call: libc::c_long) -> Self {
        self.refused_calls.push(call);
        self
    }

    /// Runs the program in a new PID namespace, with the /proc of the outer namespace. Needs root.
    pub(crate) fn in_pid_namespace(mut self) -> Self {
        self.in_pid_namespace = true;
        self
    }

    /// Runs the program in a container: in namespaces of its own, with a read-only root that has no /tmp. The
    /// agent's files are in the container's volume.
    pub(crate) fn in_container(mut self, group: Option<&ControlGroup>) -> Self {
        self.in_container = true;
        self.variables.extend(group.map(ControlGroup::variable));
        self
    }

    /// Runs the program without a capability.
    pub(crate) fn without_capability(mut self, capability: libc::c_ulong) -> Self {
        self.denied_capabilities.push(capability);
        self
    }

    /// Forbids the program to lock memory, by RLIMIT_MEMLOCK and by removing CAP_IPC_LOCK, which overrides
    /// it.
    pub(crate) fn without_locked_memory(mut self) -> Self {
        self.denied_resources.push(libc::RLIMIT_MEMLOCK);
        self.without_capability(restricted::CAP_IPC_LOCK)
    }

    /// Leaves no room for queued signals, by RLIMIT_SIGPENDING.
    pub(crate) fn without_queued_signals(mut self) -> Self {
        self.denied_resources.push(libc::RLIMIT_SIGPENDING);
        self
    }

    /// Announces that the program runs for this long, so that a long program is not taken for one that hangs.
    pub(crate) fn lasting(mut self, lasting: Duration) -> Self {
        self.lasting = lasting;
        self
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// If the program cannot be started or does not end, or if a file of the agent is not valid.
    pub(crate) fn run(&self) -> Finished {
        self.start().finish()
    }

    /// Starts the program.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub(crate) fn start(&self) -> Running {
        let classes = otlpprof_testkit::TEST_CLASSES;
        assert!(!classes.is_empty(), "the Java test programs were not built: no JDK with javac");
        let folder = tempfile::tempdir().unwrap();
        let profiles = folder.path().join("profiles");
        fs::create_dir(&profiles).unwrap();
        let java = self.home.join("bin/java");
        let mut command = if self.in_pid_namespace {
            let mut command = Command::new("unshare");
            command.args(["--pid", "--fork", "--kill-child"]).arg(java);
            command
        } else if self.in_container {
            let mut command = containers::namespaces();
            let volume = (&*profiles, containers::VOLUME);
            containers::add_root(&mut command, &self.home, folder.path(), volume);
            command.arg(java.canonicalize().unwrap());
            command
        } else {
            Command::new(java)
        };
        // The path of the profiles' folder for the program.
        let profiles = if self.in_container { PathBuf::from(containers::VOLUME) } else { profiles };
        for options in &self.agent_options {
            let mut argument = OsString::from("-agentpath:");
            argument.push(agent());
            argument.push("=");
            argument.push(with_paths(options, &profiles));
            command.arg(argument);
        }
        if let Some((jar, options)) = &self.java_agent {
            command.arg(format!("-javaagent:{}={}", jar.display(), with_paths(options, &profiles)));
        }
        command.args(&self.jvm_options).arg(format!("-Dddproftest={}", self.library.display()));
        command
            .arg("-cp")
            .arg(format!("{classes}:{}", self.api.display()))
            .arg(format!("programs.{}", self.program))
            .args(&self.arguments);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("OTEL_") || text.starts_with("OTLPPROF_") || text.contains("JAVA_") {
                command.env_remove(&name);
            }
        }
        // Tests sample more often than the default budget and limit allow. Agent options override these
        // variables.
        command.env("OTLPPROF_BUDGET", "off").env("OTLPPROF_LIMIT", "off");
        // Counters are logged at this level.
        command.env("OTLPPROF_LOGLEVEL", "debug");
        // Cargo's value, with which the JVM would find agents of other builds.
        command.env_remove("LD_LIBRARY_PATH");
        let variables = self.variables.iter().map(|(name, value)| (name, with_paths(value, &profiles)));
        command.envs(variables);
        let output = |name| File::create(folder.path().join(name)).unwrap();
        command.stdin(Stdio::null()).stdout(output("stdout")).stderr(output("stderr"));
        for call in &self.refused_calls {
            refused_calls::refuse(&mut command, *call);
        }
        for capability in &self.denied_capabilities {
            restricted::without_capability(&mut command, *capability);
        }
        for resource in &self.denied_resources {
            restricted::without_resource(&mut command, *resource);
        }
        let label = format!("{} on {}", self.program, self.home.display());
        Running::spawn(label, &self.home, &mut command, self.lasting, folder)
    }
}

/// Replaces the placeholders in options: `FILE` by the file that most tests write to, `DIR` by its folder.
fn with_paths(options: &str, profiles: &Path) -> String {
    let folder = profiles.to_str().expect("a temporary path is UTF-8");
    // The folder's random name may contain a placeholder, so the text is replaced part by part.
    let parts: Vec<_> = options.split("FILE").map(|part| part.replace("DIR", folder)).collect();
    parts.join(&format!("{folder}/profile.otlp"))
}

/// A program of mixed work of this many seconds under the engines, in messages of one second.
pub(crate) fn under_all_engines(home: &Path, seconds: u32) -> Finished {
    let engines = "cpu,wall,alloc=64k,live=64k,lock,wait,exceptions,nativemem=256k,nativemem.leaks";
    JavaRun::new(home, "MixedWork")
        .argument(seconds)
        .agent(&format!("{engines},interval=1s,remotesym=true,file=FILE"))
        .run()
        .expect_success()
}

/// The number of the line of a test program that ends in the comment `mark`.
pub(crate) fn line_marked(program: &str, mark: &str) -> i64 {
    let source = fs::read_to_string(format!("{PROGRAMS}/{program}.java")).unwrap();
    let at = source.lines().position(|line| line.ends_with(&format!("// {mark}")));
    at.unwrap_or_else(|| panic!("{program}.java has no line marked '{mark}'")) as i64 + 1
}

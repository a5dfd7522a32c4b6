//! Runs Java programs under the agent, and reads the files that the agent wrote. When a program has ended,
//! every file is validated, and read by Python too.
//!
//! | Module | Duty |
//! |---|---|
//! | [`running`] | JVMs that run, and the results of ended ones |
//! | [`containers`] | namespaces, a root of its own and control groups for a JVM |
//! | [`restricted`] | JVMs without privileges of root |
//! | `placeholders` | the placeholders for paths in the agent's options |
//! | `refused_calls` | system calls that the system refuses to a JVM |

pub mod containers;
mod placeholders;
mod refused_calls;
pub mod restricted;
pub mod running;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::Resource;

use crate::environment::remove_configuration;
use crate::this_build::{self, agent, libraries};
use containers::ControlGroup;
use placeholders::with_paths;
use running::{Finished, Running};

/// A Java program to run, with its options.
pub struct JavaRun {
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
    denied_resources: Vec<Resource>,
    lasting: Duration,
}

impl JavaRun {
    /// Creates a run of a test program, without the agent.
    pub fn new(home: &Path, program: &'static str) -> Self {
        Self {
            home: home.to_owned(),
            program,
            arguments: Vec::new(),
            agent_options: Vec::new(),
            jvm_options: Vec::new(),
            library: libraries()[0].into(),
            api: otlpprof_testkit_products::API_CLASSES.into(),
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
    pub fn argument(mut self, argument: impl ToString) -> Self {
        self.arguments.push(argument.to_string());
        self
    }

    /// Loads the agent with these options. A second call loads it once more. See [`with_paths`] for the paths
    /// in the options.
    pub fn agent(mut self, options: &str) -> Self {
        self.agent_options.push(options.to_owned());
        self
    }

    /// Adds an option of the JVM.
    pub fn jvm_option(mut self, option: &str) -> Self {
        self.jvm_options.push(option.to_owned());
        self
    }

    /// Sets the library that the program loads. The default is the first of [`libraries`].
    pub fn library(mut self, library: impl Into<PathBuf>) -> Self {
        self.library = library.into();
        self
    }

    /// Sets the folder or jar of the API. The default is the folder of the API's classes.
    pub fn api(mut self, api: &Path) -> Self {
        api.clone_into(&mut self.api);
        self
    }

    /// Loads a jar as a Java agent (`-javaagent`), with these options.
    pub fn java_agent(mut self, jar: &Path, options: &str) -> Self {
        self.java_agent = Some((jar.to_owned(), options.to_owned()));
        self
    }

    /// Sets a variable of the environment. Variables that configure agents or JVMs are otherwise removed from
    /// it.
    pub fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Makes the system refuse perf events, as in containers.
    pub fn without_perf_events(self) -> Self {
        self.without_call(libc::SYS_perf_event_open)
    }

    /// Makes the system refuse a system call.
    pub fn without_call(mut self, call: libc::c_long) -> Self {
        self.refused_calls.push(call);
        self
    }

    /// Runs the program in a new PID namespace, with the /proc of the outer namespace. Needs root.
    pub fn in_pid_namespace(mut self) -> Self {
        self.in_pid_namespace = true;
        self
    }

    /// Runs the program in a container: in namespaces of its own, with a read-only root that has no /tmp. The
    /// agent's files are in the container's volume.
    pub fn in_container(mut self, group: Option<&ControlGroup>) -> Self {
        self.in_container = true;
        self.variables.extend(group.map(ControlGroup::variable));
        self
    }

    /// Runs the program without a capability.
    pub fn without_capability(mut self, capability: libc::c_ulong) -> Self {
        self.denied_capabilities.push(capability);
        self
    }

    /// Forbids the program to lock memory, by RLIMIT_MEMLOCK and by removing CAP_IPC_LOCK, which overrides
    /// it.
    pub fn without_locked_memory(mut self) -> Self {
        self.denied_resources.push(Resource::RLIMIT_MEMLOCK);
        self.without_capability(restricted::CAP_IPC_LOCK)
    }

    /// Leaves no room for queued signals, by RLIMIT_SIGPENDING.
    pub fn without_queued_signals(mut self) -> Self {
        self.denied_resources.push(Resource::RLIMIT_SIGPENDING);
        self
    }

    /// Announces that the program runs for this long, so that a long program is not taken for one that hangs.
    pub fn lasting(mut self, lasting: Duration) -> Self {
        self.lasting = lasting;
        self
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// If the program cannot be started or does not end, or if a file of the agent is not valid.
    #[track_caller]
    pub fn run(&self) -> Finished {
        self.start().finish()
    }

    /// Starts the program.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn start(&self) -> Running {
        let classes = otlpprof_testkit_products::TEST_CLASSES;
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
        remove_configuration(&mut command);
        // Counters are logged at this level.
        command.env("OTLPPROF_LOGLEVEL", "debug");
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

/// A program of mixed work of this many seconds under the engines, in messages of one second.
#[track_caller]
pub fn under_all_engines(home: &Path, seconds: u32) -> Finished {
    let engines = "cpu,wall,alloc=64k,live=64k,lock,wait,exceptions,nativemem=256k,nativemem.leaks";
    JavaRun::new(home, "MixedWork")
        .argument(seconds)
        .agent(&format!("{engines},interval=1s,remotesym=true,file=FILE"))
        .run()
        .expect_success()
}

/// The number of the line of a test program that ends in the comment `mark`.
#[track_caller]
pub fn line_marked(program: &str, mark: &str) -> i64 {
    let programs = this_build::project().join("java/testprograms/programs");
    let source = fs::read_to_string(programs.join(program).with_extension("java")).unwrap();
    let at = source.lines().position(|line| line.ends_with(&format!("// {mark}")));
    at.unwrap_or_else(|| panic!("{program}.java has no line marked '{mark}'")) as i64 + 1
}

//! Running JVMs, and the results of ended ones.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use otlpprof_otlp::read::Message;
use tempfile::TempDir;

use super::placeholders::with_paths;
use crate::jdk::installed_homes;
use crate::profiles;
use crate::python::assert_read_alike;
use crate::this_build::{agent, is_emulated};
use crate::waiting::PATIENCE;

/// [`PATIENCE`] with the JVMs of OTLPPROF_TEST_BUILD, which an emulator runs ten times slower.
const PATIENCE_WITH_EMULATOR: Duration = Duration::from_secs(600);

/// A program that runs this much longer than announced is taken to hang, and so is any other wait of this
/// length.
fn patience() -> Duration {
    if is_emulated() { PATIENCE_WITH_EMULATOR } else { PATIENCE }
}

/// A running JVM. It is killed when this value is dropped.
pub struct Running {
    /// The program and its JVM, for messages.
    pub label: String,
    home: PathBuf,
    child: Child,
    ended: bool,
    patience: Duration,
    folder: TempDir,
}

impl Running {
    /// Starts a JVM that runs for `lasting` or longer.
    pub(super) fn spawn(
        label: String,
        home: &Path,
        command: &mut Command,
        lasting: Duration,
        folder: TempDir,
    ) -> Self {
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Self { label, home: home.to_owned(), child, ended: false, patience: lasting + patience(), folder }
    }

    /// Loads the agent as a user does: `jcmd PID JVMTI.agent_load LIBRARY OPTIONS`. Returns jcmd's output.
    #[track_caller]
    pub fn load_agent_by_jcmd(&self, options: &str) -> String {
        let options = with_paths(options, &self.profiles());
        // The options have quotes of their own. Otherwise jcmd cuts the text after a `=`.
        let arguments =
            ["JVMTI.agent_load".into(), agent().into_os_string(), format!("\"{options}\"").into()];
        let output =
            Command::new(self.jcmd()).arg(self.child.id().to_string()).args(&arguments).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}: {printed}\n{}", self.label, self.stderr());
        printed
    }

    /// Loads a jar as a Java agent by the same command. Returns jcmd's output.
    pub fn load_java_agent_by_jcmd(&self, jar: &Path, options: &str) -> String {
        let options = format!("\"{}\"", with_paths(options, &self.profiles()));
        let mut command = Command::new(self.jcmd());
        command.arg(self.child.id().to_string()).arg("JVMTI.agent_load").arg(jar).arg(options);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    /// Loads the agent like [`Running::load_agent_by_jcmd`], but without starting another JVM. Uses the
    /// socket that the JVM has opened for its first jcmd. Sends the protocol's version, the command and its
    /// three arguments, each terminated by a zero byte (HotSpot: os/posix/attachListener_posix.cpp, until 21
    /// os/linux/attachListener_linux.cpp). Falls back to jcmd if there is no such socket: a cleaner of /tmp
    /// may have removed it, and jcmd makes the JVM open another.
    pub fn load_agent(&self, options: &str) -> String {
        let Ok(mut socket) = UnixStream::connect(format!("/tmp/.java_pid{}", self.child.id())) else {
            return self.load_agent_by_jcmd(options);
        };
        let options = with_paths(options, &self.profiles());
        let library = agent();
        for part in ["1", "load", library.to_str().unwrap(), "true", &options] {
            socket.write_all(part.as_bytes()).unwrap();
            socket.write_all(&[0]).unwrap();
        }
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The value of one of the JVM's flags: `true`, `false`, or a number.
    #[track_caller]
    pub fn flag(&self, name: &str) -> String {
        let pid = self.child.id().to_string();
        let output = Command::new(self.jcmd()).args([&pid, "VM.flags", "-all"]).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let words = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        // "bool DebugNonSafepoints = true {diagnostic} {default}". The sign is `:=` rather than `=` if the
        // flag was changed.
        let value = words.filter(|words| words.get(1) == Some(&name)).find_map(|words| {
            words
                .iter()
                .position(|word| word.ends_with('='))
                .and_then(|at| words.get(at + 1))
                .map(|v| (*v).to_owned())
        });
        value.unwrap_or_else(|| panic!("{}: no flag {name}: {printed}", self.label))
    }

    /// The home's own jcmd, or else an installed JDK's: a jcmd works with JVMs of all versions, and runtimes
    /// have none.
    fn jcmd(&self) -> PathBuf {
        let homes = [self.home.clone()].into_iter().chain(installed_homes());
        let jcmd = homes.map(|home| home.join("bin/jcmd")).find(|jcmd| jcmd.is_file());
        jcmd.expect("no JDK has a jcmd")
    }

    /// Waits until a condition holds.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !condition(self) {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() && start.elapsed() < patience(),
                "{}: not {what} ({ended:?})\n{}\n{}",
                self.label,
                self.stdout(),
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Flushes the agent until the messages in one of its files satisfy a condition.
    #[track_caller]
    pub fn wait_for_profiles(&mut self, file: &str, what: &str, is_there: impl Fn(&[Message]) -> bool) {
        let file = self.profiles().join(file);
        self.wait_until(what, |jvm| {
            jvm.load_agent("flush");
            is_there(&profiles::messages_if_any(&file))
        });
    }

    /// The program's standard output so far.
    pub fn stdout(&self) -> String {
        text(&self.folder.path().join("stdout"))
    }

    /// The program's standard error so far.
    pub fn stderr(&self) -> String {
        text(&self.folder.path().join("stderr"))
    }

    /// The id of the JVM's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The folder of the agent's profiles.
    pub fn profiles(&self) -> PathBuf {
        self.folder.path().join("profiles")
    }

    /// The traces that the agent has in the process at present.
    pub fn traces(&self) -> Traces {
        Traces::of(self.child.id())
    }

    /// The user CPU time of the process, in hundredths of a second (proc_pid_stat(5): utime).
    pub fn cpu_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The name, field 2, may contain any characters.
        let fields = stat.rsplit_once(") ").expect("a name in parentheses").1;
        fields.split(' ').nth(11).unwrap().parse().unwrap()
    }

    /// Sets the limit of queued signals for the process's user (RLIMIT_SIGPENDING), from now on.
    #[track_caller]
    pub fn limit_pending_signals(&self, limit: libc::rlim_t) {
        let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
        let pid = self.child.id().cast_signed();
        // SAFETY: the kernel reads one rlimit from a valid pointer, and the null pointer means that none is
        // returned.
        let result =
            unsafe { libc::prlimit(pid, libc::RLIMIT_SIGPENDING, &raw const limit, std::ptr::null_mut()) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }

    /// Asks the JVM to end, by SIGTERM.
    pub fn terminate(&self) {
        // SAFETY: kill accesses no memory. The child has not been waited for, so its process id has not been
        // reused.
        unsafe { libc::kill(self.child.id().cast_signed(), libc::SIGTERM) };
    }

    /// Waits for the JVM's end, and checks the files that the agent wrote against every rule.
    ///
    /// # Panics
    /// If the JVM does not end, or if a file of the agent is not valid.
    #[track_caller]
    pub fn finish(mut self) -> Finished {
        let (status, usage) = self.wait();
        let finished = Finished {
            label: self.label.clone(),
            status,
            stdout: self.stdout(),
            stderr: self.stderr(),
            cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
            peak_memory_kib: usage.ru_maxrss.unsigned_abs(),
            profiles: self.profiles(),
            // An empty folder takes its place, since `self` is dropped.
            _folder: std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap()),
        };
        let files = finished.files();
        files.iter().for_each(|file| profiles::assert_valid(&finished.label, file));
        assert_read_alike(&finished.label, &files);
        finished
    }

    /// Waits by wait4, the only call that reports the resources that one child has used.
    #[track_caller]
    fn wait(&mut self) -> (libc::c_int, libc::rusage) {
        let pid = self.child.id().cast_signed();
        let start = Instant::now();
        loop {
            let mut status = 0;
            // SAFETY: the structure consists of integers, so zeros are a valid value.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: both pointers are to variables of this frame.
            let waited = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
            assert!(waited >= 0, "wait4: {}", io::Error::last_os_error());
            if waited == pid {
                self.ended = true;
                return (status, usage);
            }
            assert!(start.elapsed() < self.patience, "{} does not end\n{}", self.label, self.stderr());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

/// The resources of a profiler in a process.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// POSIX timers.
    pub timers: usize,
    /// Descriptors of perf events.
    pub perf_events: usize,
    /// Mappings of the ring buffers of perf events.
    pub event_rings: usize,
    /// Names of the agent's threads.
    pub threads: BTreeSet<String>,
}

impl Traces {
    fn of(pid: u32) -> Self {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let entries =
            |name: &str| fs::read_dir(process.join(name)).unwrap().map(|entry| entry.unwrap().path());
        let timers = fs::read_to_string(process.join("timers")).expect("a kernel with /proc/PID/timers");
        let names = entries("task").filter_map(|task| fs::read_to_string(task.join("comm")).ok());
        Self {
            timers: timers.lines().filter(|line| line.starts_with("ID:")).count(),
            perf_events: entries("fd")
                .filter_map(|fd| fs::read_link(fd).ok())
                .filter(|target| target.to_string_lossy().contains("perf_event"))
                .count(),
            event_rings: fs::read_to_string(process.join("maps")).unwrap().matches("[perf_event]").count(),
            threads: names
                .map(|name| name.trim().to_owned())
                .filter(|name| name.starts_with("otlpprof"))
                .collect(),
        }
    }
}

/// The results of a program that has ended.
pub struct Finished {
    /// The program and its JVM, for messages.
    pub label: String,
    /// The status, as wait(2) encodes it.
    pub status: libc::c_int,
    /// The whole standard output.
    pub stdout: String,
    /// The whole standard error.
    pub stderr: String,
    /// User and system time of all threads.
    pub cpu: Duration,
    /// The peak of the resident memory in KiB (getrusage(2): ru_maxrss).
    pub peak_memory_kib: u64,
    profiles: PathBuf,
    _folder: TempDir,
}

impl Finished {
    /// Whether the program ended with exit code 0.
    pub fn succeeded(&self) -> bool {
        self.status == 0
    }

    /// Panics with the program's output unless the program ended with exit code 0.
    #[track_caller]
    pub fn expect_success(self) -> Self {
        let Self { label, status, stdout, stderr, .. } = &self;
        assert!(self.succeeded(), "{label}: status {status:#x}\n{stdout}\n{stderr}");
        self
    }

    /// The files that the agent wrote, sorted by name.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(&self.profiles).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        files
    }

    /// The messages of the files that the agent wrote.
    ///
    /// # Panics
    /// If there is no message.
    #[track_caller]
    pub fn messages(&self) -> Vec<Message> {
        let messages: Vec<_> = self.files().iter().flat_map(|file| profiles::messages(file)).collect();
        assert!(!messages.is_empty(), "{}: no profile\n{}", self.label, self.stderr);
        messages
    }

    /// A counter from the last line of counters that the agent logged. 0 if the line does not contain it.
    ///
    /// # Panics
    /// If there is no such line.
    #[track_caller]
    pub fn counter(&self, name: &str) -> u64 {
        let line = self.stderr.lines().rfind(|line| line.contains("handler.") || line.contains("upload."));
        let line = line.unwrap_or_else(|| panic!("{}: no counters\n{}", self.label, self.stderr));
        let value = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        value.map_or(0, |value| value.parse().unwrap())
    }
}

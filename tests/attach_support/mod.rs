//! Processes that the command attaches to, and their files.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use otlpprof::export::answer::Answer;
use serde_json::Value;

/// A user without rights.
pub(crate) const NOBODY: u32 = 65_534;

/// A wait of this length is taken to last for ever.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn otlpprof() -> Command {
    Command::new(env!("CARGO_BIN_EXE_otlpprof"))
}

pub(crate) fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

pub(crate) fn exit_code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

pub(crate) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "no {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `Some` if the tests run as root.
pub(crate) fn root() -> Option<()> {
    // SAFETY: the call accesses no memory.
    (unsafe { libc::geteuid() } == 0).then_some(())
}

/// A process that is killed when this value is dropped.
pub(crate) struct Target(Child);

impl Target {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn is_alive(&self) -> bool {
        !status(self.pid(), "State").starts_with('Z')
    }

    /// Ends the process by SIGTERM, and returns the signal that ended it.
    pub(crate) fn terminate(&mut self) -> i32 {
        // SAFETY: kill accesses no memory, and the child has not been waited for.
        unsafe { libc::kill(self.pid().cast_signed(), libc::SIGTERM) };
        let ended = self.0.wait().unwrap();
        // The JVM exits with 128 + the signal.
        ended.signal().unwrap_or_else(|| ended.code().unwrap_or(0) - 128)
    }

    /// The id of the JVM that [`in_namespaces`] has started, once it is ready.
    pub(crate) fn jvm_in_namespaces(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.pid());
        let child = || fs::read_to_string(&children).ok()?.split_whitespace().next()?.parse().ok();
        wait_for("the JVM", || {
            child().is_some_and(|pid: u32| {
                maps(pid).iter().any(|path| path.ends_with("libjvm.so")) && caught(pid, libc::SIGQUIT)
            })
        });
        child().unwrap()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a JVM in PID and mount namespaces of its own, with another /tmp. `None` if that is not permitted.
pub(crate) fn in_namespaces(home: &Path, mount_options: &str) -> Option<Target> {
    let permitted = Command::new("unshare").args(["--pid", "--mount", "--fork", "true"]).status();
    permitted.ok().filter(std::process::ExitStatus::success)?;
    let script = format!(
        "mount -t tmpfs -o {mount_options} tmpfs /tmp && exec '{}/bin/java' -XX:-UsePerfData -cp '{}' \
         programs.UserLoop 600",
        home.display(),
        env!("OTLPPROF_TEST_CLASSES")
    );
    let mut command = Command::new("unshare");
    command.args(["--pid", "--mount", "--fork", "--kill-child", "sh", "-c", &script]);
    Some(Target::start(&mut command))
}

/// A process that looks like a JVM, whose attach socket belongs to the test.
pub(crate) fn fake_jvm() -> (Target, UnixListener) {
    let home = super::oldest_and_newest().pop().unwrap();
    let mut command = Command::new("sleep");
    command.arg("600").env("LD_PRELOAD", home.join("lib/server/libjvm.so"));
    let target = Target::start(&mut command);
    let pid = target.pid();
    wait_for("libjvm.so", || maps(pid).iter().any(|path| path.ends_with("libjvm.so")));
    let path = format!("/tmp/.java_pid{pid}");
    let _ = fs::remove_file(&path);
    (target, UnixListener::bind(path).unwrap())
}

/// Takes a request off the JVM's socket. Returns the connection, and the path of the socket for the answer.
pub(crate) fn socket_of(jvm: &UnixListener) -> (UnixStream, String) {
    // The command looks for the JVM's process behind the first connection that has a request.
    let (mut connection, _) = jvm.accept().unwrap();
    let mut request = Vec::new();
    while request.iter().filter(|byte| **byte == 0).count() < 5 {
        let mut bytes = [0; 4096];
        let count = connection.read(&mut bytes).unwrap();
        assert!(count > 0, "{request:?}");
        request.extend_from_slice(&bytes[..count]);
    }
    if let Ok(address) = jvm.local_addr() {
        fs::remove_file(address.as_pathname().unwrap()).unwrap();
    }
    let options = request.split(|byte| *byte == 0).nth(4).unwrap();
    let socket = text_of(options).strip_prefix("answer=").unwrap().split(',').next().unwrap();
    (connection, socket.to_owned())
}

pub(crate) fn reply(mut connection: UnixStream, text: &str) {
    connection.write_all(text.as_bytes()).unwrap();
}

/// Runs `body` in a thread of another user. The system call changes one thread alone.
fn as_user<T: Send + 'static>(uid: u32, body: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(move || {
        // SAFETY: the call accesses no memory.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) }, 0);
        body()
    });
    thread.join().unwrap()
}

/// Answers on a socket as another user.
pub(crate) fn answer_as(uid: u32, socket: &str, message: &str) {
    let socket = socket.to_owned();
    let answer = Answer { succeeded: true, message: message.to_owned(), ..Answer::default() };
    as_user(uid, move || {
        let mut stream = UnixStream::connect(socket).unwrap();
        // The command may have closed the connection already.
        let _ = stream.write_all(&answer.to_bytes());
    });
}

pub(crate) fn listen_as(uid: u32, path: &Path) -> UnixListener {
    let path = path.to_owned();
    as_user(uid, move || UnixListener::bind(path).unwrap())
}

pub(crate) fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The value of a field of /proc/PID/status.
pub(crate) fn status(pid: u32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_default().trim().to_owned()
}

/// Whether a process has a handler for a signal.
pub(crate) fn caught(pid: u32, signal: i32) -> bool {
    u64::from_str_radix(&status(pid, "SigCgt"), 16).is_ok_and(|caught| caught >> (signal - 1) & 1 == 1)
}

/// The paths of a process's mapped files.
pub(crate) fn maps(pid: u32) -> Vec<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().filter_map(|line| Some(line[line.find('/')?..].to_owned())).collect()
}

/// The files that the command has left in a process's /tmp: requests to attach, and sockets for answers that
/// this process has no part in are not counted.
pub(crate) fn answer_files(pid: u32) -> Vec<String> {
    let own_pid = status(pid, "NSpid").split_whitespace().next_back().unwrap_or_default().to_owned();
    let names = fs::read_dir(format!("/proc/{pid}/root/tmp")).unwrap();
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let is_own_tmp = fs::metadata(format!("/proc/{pid}/root/tmp")).unwrap();
    let is_own_tmp = std::os::unix::fs::MetadataExt::dev(&is_own_tmp)
        != std::os::unix::fs::MetadataExt::dev(&fs::metadata("/tmp").unwrap());
    let is_left = |name: &String| {
        *name == format!(".attach_pid{own_pid}") || (is_own_tmp && name.starts_with(".otlpprof-"))
    };
    names.filter(is_left).collect()
}

/// Removes copies of the library that the process has loaded from /tmp.
pub(crate) fn remove_copies(pid: u32) {
    for path in maps(pid).into_iter().filter(|path| path.starts_with("/tmp/libotlpprof-")) {
        let _ = fs::remove_file(path);
    }
}

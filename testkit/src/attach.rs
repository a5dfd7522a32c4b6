//! Processes that the command attaches to, and their files.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use otlpprof_export::answer::Answer;
use otlpprof_testkit_products::TEST_CLASSES;
use serde_json::Value;
use tempfile::TempDir;

use crate::commands::{exit_code, otlpprof, text_of};
use crate::java_run::JavaRun;
use crate::java_run::running::Running;
use crate::processes::{caught, kill, maps, status};
use crate::waiting::wait_for;
use crate::{jdk, this_build};

/// A user without rights.
pub const NOBODY: u32 = 65_534;

/// A JVM that can be attached to.
pub fn jvm(home: &Path) -> Running {
    ready(JavaRun::new(home, "UserLoop").argument(600))
}

/// Starts a JVM, and waits until it can be attached to.
pub fn ready(run: JavaRun) -> Running {
    let mut jvm = run.start();
    jvm.wait_until("ready", |jvm| caught(jvm.pid(), libc::SIGQUIT));
    jvm
}

/// The command that attaches the agent of this build with these options.
pub fn attach_command(pid: u32, options: &str) -> Command {
    attach_command_with(&this_build::agent(), pid, options)
}

/// The command that attaches this library with these options.
pub fn attach_command_with(library: &Path, pid: u32, options: &str) -> Command {
    let mut command = otlpprof();
    command.arg("attach").arg(pid.to_string()).arg("--library").arg(library).arg(options);
    command
}

/// Attaches the agent of this build with these options, in this working folder.
#[track_caller]
pub fn attach(pid: u32, options: &str, folder: &Path) -> Output {
    attach_command(pid, options).current_dir(folder).output().unwrap()
}

/// Runs a command to the agent, such as `status`.
pub fn command(name: &str, pid: u32) -> Output {
    otlpprof().args([name, &pid.to_string()]).output().unwrap()
}

/// The answer to `status`.
pub fn state(pid: u32) -> Value {
    json(&otlpprof().args(["status", "--json", &pid.to_string()]).output().unwrap())
}

/// The one line that the command prints when it does not reach the agent.
#[track_caller]
pub fn refusal(output: &Output) -> &str {
    let line = text_of(&output.stderr);
    assert_eq!((exit_code(output), line.lines().count()), (2, 1), "{output:?}");
    line
}

/// The JSON document on standard output.
#[track_caller]
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// `Some` if the tests run as root.
pub fn root() -> Option<()> {
    // SAFETY: the call accesses no memory.
    (unsafe { libc::geteuid() } == 0).then_some(())
}

/// A process that is killed when this value is dropped.
pub struct Target {
    child: Child,
    /// The files of the process.
    folder: Option<TempDir>,
}

impl Target {
    /// Starts a program without standard streams.
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap(), folder: None }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has not ended.
    pub fn is_alive(&self) -> bool {
        !status(self.pid(), "State").starts_with('Z')
    }

    /// Ends the process by SIGTERM, and returns the signal that ended it.
    pub fn terminate(&mut self) -> i32 {
        kill(self.pid(), libc::SIGTERM);
        let ended = self.child.wait().unwrap();
        // The JVM exits with 128 + the signal.
        ended.signal().unwrap_or_else(|| ended.code().unwrap_or(0) - 128)
    }

    /// The id of the JVM that [`in_namespaces`] has started, once it is ready.
    pub fn jvm_in_namespaces(&self) -> u32 {
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
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Namespaces of a JVM.
#[derive(Clone, Copy)]
pub enum Namespaces {
    /// PID and mount namespaces.
    PidAndMount,
    /// A user namespace as well, made by a user without rights, who is root in there.
    OfNobody,
}

impl Namespaces {
    /// The command that runs its arguments in new namespaces. `None` if that is not permitted.
    fn command(self) -> Option<Command> {
        let mut words = match self {
            Self::PidAndMount => vec!["unshare".to_owned()],
            Self::OfNobody => {
                let mut words: Vec<_> = ["setpriv", "--clear-groups"].map(str::to_owned).into();
                words.extend([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]);
                words.extend(["unshare", "--user", "--map-root-user"].map(str::to_owned));
                words
            }
        };
        words.extend(["--pid", "--mount", "--fork", "--kill-child"].map(str::to_owned));
        let command = || {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            command
        };
        let permitted = command().arg("true").status();
        permitted.is_ok_and(|status| status.success()).then(command)
    }
}

/// Starts a JVM in namespaces of its own, with another /tmp. `None` if that is not permitted.
pub fn in_namespaces(home: &Path, namespaces: Namespaces, mount_options: &str) -> Option<Target> {
    // This build may be in the /tmp that is hidden. So its classes are mounted elsewhere before.
    let script = format!(
        "mount --bind '{}' /mnt && mount -t tmpfs -o {mount_options} tmpfs /tmp && \
         exec '{}/bin/java' -XX:-UsePerfData -cp /mnt programs.UserLoop 600",
        TEST_CLASSES,
        home.display()
    );
    let mut command = namespaces.command()?;
    command.args(["sh", "-c", &script]);
    Some(Target::start(&mut command))
}

/// Starts a JVM whose root is `root`, where all files of the machine are. `None` if that is not permitted.
pub fn in_chroot(home: &Path, root: &Path) -> Option<Target> {
    let permitted = Command::new("unshare").args(["--mount", "true"]).status();
    permitted.ok().filter(std::process::ExitStatus::success)?;
    let script = format!(
        "mount --rbind / '{root}' && exec chroot '{root}' '{}/bin/java' -cp '{}' programs.UserLoop 600",
        home.display(),
        TEST_CLASSES,
        root = root.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    Some(Target::start(&mut command))
}

/// The newest home that a user without rights can reach, since the cache may be in a folder of this user
/// alone; all of them if [`jdk::everything`] is true.
pub fn homes_for_nobody() -> Vec<PathBuf> {
    let is_open = |folder: &Path| mode(folder) & 0o001 != 0;
    let homes = jdk::java_homes().into_iter();
    jdk::newest_of(homes.filter(|home| home.ancestors().all(is_open)).collect())
}

/// Starts a JVM of a user without rights.
pub fn as_nobody(home: &Path) -> Target {
    as_nobody_with(&[&format!("--regid={NOBODY}")], &home.join("bin/java"))
}

/// As [`as_nobody`], with these options of setpriv(1), by this launcher.
pub fn as_nobody_with(options: &[&str], launcher: &Path) -> Target {
    // The user can reach this folder wherever the build is.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    open_to_all(folder.path());
    let classes = Path::new(TEST_CLASSES).join("programs");
    let copied = Command::new("cp").arg("-r").arg(classes).arg(folder.path()).status().unwrap();
    assert!(copied.success(), "{copied}");
    let mut java = Command::new("setpriv");
    java.arg(format!("--reuid={NOBODY}")).arg("--clear-groups").args(options).arg(launcher);
    java.arg("-cp").arg(folder.path()).args(["programs.UserLoop", "600"]);
    let mut target = Target::start(&mut java);
    target.folder = Some(folder);
    let pid = target.pid();
    wait_for("the JVM", || target.is_alive() && caught(pid, libc::SIGQUIT));
    target
}

/// A process that has libjvm.so mapped, as a JVM that is still starting, and no handlers. `libraries` are
/// mapped, too.
pub fn starting_jvm(libraries: &[PathBuf]) -> Target {
    starting_program(Path::new("sleep"), libraries)
}

/// As [`starting_jvm`], of another program that does what `sleep` does.
pub fn starting_program(program: &Path, libraries: &[PathBuf]) -> Target {
    let home = jdk::loadable_homes().pop().unwrap();
    let mut preloaded = vec![home.join("lib/server/libjvm.so")];
    preloaded.extend_from_slice(libraries);
    let mut command = Command::new(program);
    command.arg("600").env("LD_PRELOAD", std::env::join_paths(&preloaded).unwrap());
    let target = Target::start(&mut command);
    let is_mapped = |library: &PathBuf| maps(target.pid()).iter().any(|path| Path::new(path) == library);
    wait_for("its libraries", || preloaded.iter().all(is_mapped));
    target
}

/// A process that looks like a JVM, whose attach socket belongs to the test.
pub fn fake_jvm() -> (Target, UnixListener) {
    let target = starting_jvm(&[]);
    let path = format!("/tmp/.java_pid{}", target.pid());
    let _ = fs::remove_file(&path);
    (target, UnixListener::bind(path).unwrap())
}

/// Takes the only request off the JVM's socket, as [`next_request`] does.
pub fn request_of(jvm: &UnixListener) -> (UnixStream, String, String) {
    let request = next_request(jvm);
    fs::remove_file(jvm.local_addr().unwrap().as_pathname().unwrap()).unwrap();
    request
}

/// Takes a request off the JVM's socket. Returns the connection, the path of the socket for the answer, and
/// the options.
pub fn next_request(jvm: &UnixListener) -> (UnixStream, String, String) {
    let (mut connection, _) = jvm.accept().unwrap();
    let mut request = Vec::new();
    while request.iter().filter(|byte| **byte == 0).count() < 5 {
        let mut bytes = [0; 4096];
        let count = connection.read(&mut bytes).unwrap();
        assert!(count > 0, "{request:?}");
        request.extend_from_slice(&bytes[..count]);
    }
    let argument = text_of(request.split(|byte| *byte == 0).nth(4).unwrap());
    let argument = argument.strip_prefix("answer=").unwrap();
    let (socket, options) = argument.split_once(',').unwrap_or((argument, ""));
    (connection, socket.to_owned(), options.to_owned())
}

/// Writes the JVM's reply to a request, and closes the connection.
pub fn reply(mut connection: UnixStream, text: &str) {
    connection.write_all(text.as_bytes()).unwrap();
}

/// Runs `body` in a thread of another user. The system call changes only one thread.
fn as_user<T: Send + 'static>(uid: u32, body: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(move || {
        // SAFETY: the call accesses no memory.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) }, 0);
        body()
    });
    thread.join().unwrap()
}

/// Answers on a socket as another user.
pub fn answer_as(uid: u32, socket: &str, message: &str) {
    let socket = socket.to_owned();
    let answer = Answer { succeeded: true, message: message.to_owned(), ..Answer::default() };
    as_user(uid, move || {
        let mut stream = UnixStream::connect(socket).unwrap();
        // The command may have closed the connection already.
        let _ = stream.write_all(&answer.to_bytes());
    });
}

/// A socket that another user owns.
pub fn listen_as(uid: u32, path: &Path) -> UnixListener {
    let path = path.to_owned();
    as_user(uid, move || UnixListener::bind(path).unwrap())
}

/// Permits all users everything with a file.
pub fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
}

/// The permissions of a file.
pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Whether the command has left its request to attach in a process's /tmp.
pub fn has_request(pid: u32) -> bool {
    let own_pid = status(pid, "NSpid").split_whitespace().next_back().unwrap_or_default().to_owned();
    Path::new(&format!("/proc/{pid}/root/tmp/.attach_pid{own_pid}")).exists()
}

/// The names in the /tmp of a process that has one of its own, without the JVM's attach socket.
pub fn own_tmp(pid: u32) -> Vec<String> {
    let names = fs::read_dir(format!("/proc/{pid}/root/tmp")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with(".java_pid")).collect()
}

/// Removes copies of the library that the process has loaded from /tmp.
pub fn remove_copies(pid: u32) {
    for path in maps(pid).into_iter().filter(|path| path.starts_with("/tmp/libotlpprof-")) {
        let _ = fs::remove_file(path);
    }
}

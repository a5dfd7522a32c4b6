//! `otlpprof convert --follow`: recordings of running JVMs, by the streaming program and from the JVM's
//! repository.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use otlpprof_otlp::read::read;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::recordings::synthetic::{Shape, recording, sum_of_weights};
use otlpprof_testkit::skipped::not_tested;

const PROGRAMS: &str = otlpprof_testkit::products::TEST_CLASSES;

/// The JDKs that can run a program from source, attach to a JVM and stream its recording. Each test uses a
/// different one of them, since a busy machine has resources for one JVM at a time.
fn jdks() -> Vec<PathBuf> {
    let homes = std::fs::read_dir("/usr/lib/jvm").map(|homes| homes.map(|home| home.unwrap().path()));
    let homes = homes.into_iter().flatten().filter(|home| home.join("bin/javac").is_file());
    let mut homes: Vec<_> = homes.filter_map(|home| home.canonicalize().ok()).collect();
    homes.sort();
    homes.dedup();
    if homes.is_empty() {
        not_tested("no JDK with bin/javac in /usr/lib/jvm to stream with");
    }
    homes
}

/// Starts the test program, which causes events of many types for `seconds` seconds.
fn recorded(home: &Path, options: &[&str], seconds: &str) -> Child {
    Command::new(home.join("bin/java"))
        .args(["-Xmx128m"])
        .args(options)
        .args(["-cp", PROGRAMS, "programs.Recorded", seconds])
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits for a child process that ends without a signal.
fn wait(child: &mut Child, who: &str) {
    for _ in 0..1_500 {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{who}: {status}");
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    panic!("{who} did not end");
}

/// The seconds for which recordings are followed. The longer ones are for the case that other programs have
/// used the CPU.
const SECONDS: [&str; 3] = ["3", "15", "60"];

/// Checks that each message of the output is valid. Returns whether there are several messages, and whether
/// together they cover the program's whole run.
fn is_followed(output: &Path, who: &str) -> bool {
    let report = otlpprof().arg("validate").arg(output).output().unwrap();
    assert!(report.status.success(), "{who}: {}", String::from_utf8_lossy(&report.stdout));
    let bytes = std::fs::read(output).unwrap();
    let messages: Vec<_> = read(&bytes).map(Result::unwrap).collect();
    let (mut sleeps, mut ends, mut types) = (0, Vec::new(), Vec::new());
    for message in &messages {
        let dictionary = message.data.dictionary.as_ref().unwrap();
        let profiles = &message.data.resource_profiles[0].scope_profiles[0].profiles;
        ends.push(profiles[0].time_unix_nano + profiles[0].duration_nano);
        for profile in profiles {
            let name = &dictionary.string_table[profile.period_type.as_ref().unwrap().type_strindex as usize];
            types.push(name.clone());
            if name == "sleeps" {
                sleeps += profile.samples.iter().flat_map(|sample| &sample.values).sum::<i64>();
            }
        }
    }
    assert!(ends.is_sorted(), "{who}: {ends:?}");
    println!("{who}: {} messages, {sleeps} ns asleep, {types:?}", messages.len());
    // The program's threads sleep most of the time, at least one of them for more than a second in total.
    messages.len() > 1 && sleeps > 1_000_000_000 && types.iter().any(|name| name == "cpu")
}

/// Streams a running program's recording from `from`, and converts it while it arrives.
fn stream(home: &Path, mut program: Child, from: &str) {
    let who = format!("{} from {from}", home.display());
    let is_followed = SECONDS.into_iter().any(|seconds| is_streamed(home, from, seconds, &who));
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(is_followed, "{who}: too few events");
}

/// Streams the recording for some seconds. Returns whether the output is as [`is_followed`] requires.
fn is_streamed(home: &Path, from: &str, seconds: &str, who: &str) -> bool {
    let output = tempfile::NamedTempFile::new().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/recorder/RecordingStream.java");
    let mut stream = Command::new(home.join("bin/java"))
        .arg(source)
        .args([from, "--settings", "profile", "--event", "jdk.ThreadSleep", "--seconds", seconds])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut convert = otlpprof()
        .args(["convert", "-", "--follow", "--interval", "1s", "-o"])
        .arg(output.path())
        .stdin(stream.stdout.take().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait(&mut stream, who);
    wait(&mut convert, who);
    is_followed(output.path(), who)
}

/// A number of seconds greater than any machine needs to start the stream.
const LONG: &str = "300";

#[test]
fn a_running_jvm_is_recorded_over_jmx_and_converted_as_it_goes() {
    if let Some(home) = jdks().last() {
        let program = recorded(home, &[], LONG);
        let pid = program.id().to_string();
        stream(home, program, &pid);
    }
}

/// Regression: an invalid number of seconds ended the program with a stack trace, and JMX's errors have
/// several lines.
#[test]
fn mistakes_in_streaming_arguments_are_one_line() {
    let Some(home) = jdks().pop() else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("java/recorder/RecordingStream.java");
    // Compiled once for all cases.
    let classes = tempfile::tempdir().unwrap();
    let mut compiler = Command::new(home.join("bin/javac"));
    assert!(compiler.arg("-d").args([classes.path(), &source]).status().unwrap().success());
    for (arguments, says) in [
        (&["1", "--seconds"][..], "--seconds needs a value"),
        (&["1", "--seconds", "x"], "--seconds x: not a whole number of seconds above 0"),
        (&["1", "--seconds", "-3"], "--seconds -3: not a whole number of seconds above 0"),
        (&["1", "2"], "what is '2'?"),
        (&["localhost:1"], "localhost:1: "),
        (&["none"], "cannot attach to process none: "),
    ] {
        let mut program = Command::new(home.join("bin/java"));
        let ran =
            program.arg("-cp").arg(classes.path()).arg("RecordingStream").args(arguments).output().unwrap();
        let printed = String::from_utf8(ran.stderr).unwrap();
        assert!(printed.starts_with(&format!("RecordingStream: {says}")), "{arguments:?}: {printed}");
        assert_eq!((ran.status.code(), printed.lines().count()), (Some(2), 1), "{arguments:?}: {printed}");
    }
}

#[test]
fn a_jvm_with_a_jmx_server_is_recorded_by_its_address() {
    if let Some(home) = jdks().first() {
        for is_url in [false, true] {
            let (program, address) = (0..10).find_map(|_| with_jmx_server(home)).expect("a free port");
            let from = match is_url {
                true => format!("service:jmx:rmi:///jndi/rmi://{address}/jmxrmi"),
                false => address,
            };
            stream(home, program, &from);
        }
    }
}

/// Starts a program with a JMX server. Returns the server's address, too. `None` if another program has taken
/// the port.
fn with_jmx_server(home: &Path) -> Option<(Child, String)> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let options = [
        &format!("-Dcom.sun.management.jmxremote.port={port}"),
        &format!("-Dcom.sun.management.jmxremote.rmi.port={port}"),
        "-Dcom.sun.management.jmxremote.authenticate=false",
        "-Dcom.sun.management.jmxremote.ssl=false",
        "-Djava.rmi.server.hostname=127.0.0.1",
    ];
    let mut program = recorded(home, &options, LONG);
    while TcpStream::connect(&address).is_err() {
        if program.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Some((program, address))
}

/// Starts a program with these options whose recording is written to this repository. Returns once the
/// repository has a file.
fn recorded_to(repository: &Path, home: &Path, options: &[&str], seconds: &str) -> Child {
    let repository_option = format!("repository={}", repository.display());
    let recorder: Vec<_> = ["-XX:FlightRecorderOptions:", "-XX:StartFlightRecording:"]
        .into_iter()
        .zip([repository_option, format!("settings={}/scripts/jfr-corpus.jfc", env!("CARGO_MANIFEST_DIR"))])
        .zip(options)
        .map(|((option, first), more)| format!("{option}{first}{more}"))
        .collect();
    let mut program = recorded(home, &recorder.iter().map(String::as_str).collect::<Vec<_>>(), seconds);
    let has_chunk = || {
        let below = std::fs::read_dir(repository).into_iter().flatten().map_while(Result::ok);
        let mut files = below.flat_map(|entry| std::fs::read_dir(entry.path()).into_iter().flatten());
        files.any(|file| file.is_ok_and(|file| file.path().extension().is_some_and(|it| it == "jfr")))
    };
    while !has_chunk() {
        assert!(program.try_wait().unwrap().is_none(), "{home:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    program
}

#[test]
fn a_repository_is_followed_to_its_last_chunk() {
    if let Some(home) = jdks().first() {
        let who = home.display().to_string();
        // The second options keep only one second of the recording, so the JVM removes files while they are
        // read.
        for options in [["", ""], [",maxchunksize=1m", ",maxage=1s"]] {
            let is_followed = SECONDS.into_iter().any(|seconds| {
                let directory = tempfile::tempdir().unwrap();
                let repository = directory.path().join("repository");
                let mut program = recorded_to(&repository, home, &options, seconds);
                let output = tempfile::NamedTempFile::new().unwrap();
                let mut convert = otlpprof()
                    .args(["convert", "--follow", "--interval", "1s", "-o"])
                    .arg(output.path())
                    .arg(&repository)
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
                wait(&mut program, &who);
                wait(&mut convert, &who);
                is_followed(output.path(), &format!("{who} {options:?}"))
            });
            assert!(is_followed, "{who} {options:?}: too few events");
        }
    }
}

/// The number of unread bytes in a pipe.
fn unread(pipe: &impl AsRawFd) -> i32 {
    let mut bytes = 0;
    // SAFETY: FIONREAD writes an int through the passed pointer, and `bytes` is a live i32.
    assert_eq!(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &mut bytes) }, 0);
    bytes
}

const SHAPE: Shape =
    Shape { events: 500, depth: 10, repeated_percent: 50, contexts: 3, remote_frames: 0, compressed: true };

/// The sum of all samples' values, for each message of a file.
fn sums(output: &Path) -> Vec<i64> {
    let bytes = std::fs::read(output).unwrap();
    let profiles = |message: otlpprof_otlp::read::Message| {
        let scopes = message.data.resource_profiles.into_iter().flat_map(|resource| resource.scope_profiles);
        let profiles = scopes.flat_map(|scope| scope.profiles);
        profiles.flat_map(|profile| profile.samples).flat_map(|sample| sample.values).sum()
    };
    read(&bytes).map_while(Result::ok).map(profiles).collect()
}

#[test]
fn a_file_is_followed_as_it_grows() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("growing.jfr"), directory.path().join("out.pb"));
    let whole = recording(SHAPE);
    let mut growing = std::fs::File::create(&input).unwrap();
    growing.write_all(&whole[..whole.len() / 3]).unwrap();
    let mut convert = otlpprof()
        .args(["convert", "--follow", "--interval", "1s", "-o"])
        .args([&output, &input])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Each part ends one recording and begins the next.
    for recordings in 1..=3 {
        growing.write_all(&whole[whole.len() / 3..]).unwrap();
        growing.write_all(&whole[..whole.len() / 3]).unwrap();
        let is_there =
            || output.exists() && sums(&output).iter().sum::<i64>() >= recordings * sum_of_weights(SHAPE);
        for _ in 0..1_500 {
            if is_there() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(is_there(), "{recordings}: {:?}", sums(&output));
    }
    // SAFETY: kill accesses no memory of ours. The child has not been waited for, so the process id is still
    // its own.
    assert_eq!(unsafe { libc::kill(convert.id().cast_signed(), libc::SIGTERM) }, 0);
    wait(&mut convert, "following a file");
    let sums = sums(&output);
    assert!(sums.len() >= 3 && sums.iter().sum::<i64>() == 3 * sum_of_weights(SHAPE), "{sums:?}");
}

#[test]
fn a_signal_ends_following_after_the_events_so_far_are_written() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // The command needs a moment to convert what it has read, on a busy machine a long one.
        let is_written = [300, 3_000, 30_000].into_iter().any(|moment_ms| {
            let sum = sum_after_signal(signal, Duration::from_millis(moment_ms));
            println!("{signal}: {sum} after {moment_ms} ms");
            sum >= sum_of_weights(SHAPE)
        });
        assert!(is_written, "{signal}: events are missing");
    }
}

/// Sends the signal a moment after the command has read a whole recording and half of another. Returns the
/// sum of the values that the command has written.
fn sum_after_signal(signal: i32, moment: Duration) -> i64 {
    let whole = recording(SHAPE);
    let cut = whole.len() / 2;
    let output = tempfile::NamedTempFile::new().unwrap();
    let mut convert = otlpprof()
        .args(["convert", "-", "--follow", "--interval", "1h", "-o"])
        .arg(output.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = convert.stdin.take().unwrap();
    pipe.write_all(&whole).and_then(|()| pipe.write_all(&whole[..cut])).unwrap();
    while unread(&pipe) > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(moment);
    // SAFETY: kill accesses no memory of ours. The child has not been waited for, so the process id is still
    // its own.
    assert_eq!(unsafe { libc::kill(convert.id().cast_signed(), signal) }, 0);
    let ended = convert.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{signal}: {} {printed}", ended.status);
    let bytes = std::fs::read(output.path()).unwrap();
    let messages: Vec<_> = read(&bytes).map(Result::unwrap).collect();
    assert!(messages.len() <= 1, "{signal}: {printed}");
    drop(pipe);
    sums(output.path()).into_iter().sum()
}

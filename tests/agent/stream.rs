//! `stream=INTERVAL`: processes that read the agent's profiles along.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use otlpprof_export::answer::Answer;
use otlpprof_otlp::read::{self, Message};
use otlpprof_testkit::attach::{jvm, state};
use otlpprof_testkit::java_run::running::Running;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::profiles;
use otlpprof_testkit::stacks::cpu_stacks;
use otlpprof_testkit::waiting::PATIENCE;
use serde_json::Value;

/// A process that reads along.
struct Along {
    connection: UnixStream,
    answer: Answer,
}

impl Along {
    /// Loads the agent with these options, and reads its answer.
    fn load(jvm: &Running, options: &str) -> Self {
        let path = jvm.profiles().with_file_name("answer");
        let listener = UnixListener::bind(&path).unwrap();
        jvm.load_agent_by_jcmd(&format!("answer={},{options}", path.display()));
        let (mut connection, _) = listener.accept().unwrap();
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        let answer = Answer::read(&mut connection).unwrap();
        fs::remove_file(path).unwrap();
        Self { connection, answer }
    }

    /// The next message; `None` if the agent has closed the connection.
    fn next(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        match self.connection.read_exact(&mut length) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return None,
            read => read.unwrap(),
        }
        let mut message = vec![0; u32::from_be_bytes(length) as usize];
        self.connection.read_exact(&mut message).unwrap();
        Some(message)
    }

    /// All messages until the agent closes the connection.
    fn rest(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
    let framed = |bytes: &Vec<u8>| [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), &**bytes].concat();
    messages.iter().flat_map(framed).collect()
}

/// The whole messages of a file, as their bytes. A message that the agent is still writing is left out.
fn in_file(path: &Path) -> Vec<Vec<u8>> {
    let (bytes, mut messages) = (fs::read(path).unwrap(), Vec::new());
    let mut rest = &*bytes;
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let Some((message, after)) = after.split_at_checked(u32::from_be_bytes(*length) as usize) else {
            break;
        };
        messages.push(message.to_vec());
        rest = after;
    }
    messages
}

fn decoded(message: &[u8]) -> Message {
    read::read(&framed(&[message.to_vec()])).next().unwrap().unwrap()
}

/// The start of a message's interval, and its length.
fn times(message: &[u8]) -> (u64, u64) {
    let message = decoded(message);
    let profile = &message.data.resource_profiles[0].scope_profiles[0].profiles[0];
    (profile.time_unix_nano, profile.duration_nano)
}

/// The number of CPU samples by thread and stack.
fn samples(message: &[u8]) -> BTreeMap<(String, Vec<String>), i64> {
    let mut samples = BTreeMap::new();
    for stack in cpu_stacks(&[decoded(message)]) {
        let frames = stack.frames.iter().map(|frame| format!("{}:{}", frame.name, frame.line)).collect();
        *samples.entry((stack.thread, frames)).or_default() += stack.value;
    }
    samples
}

fn counter(pid: u32, name: &str) -> u64 {
    state(pid)["session"]["counters"][format!("otlpprof.{name}")].as_u64().unwrap_or(0)
}

#[test]
fn messages_grow_until_the_one_that_the_file_has() {
    for home in newest_or_all() {
        let mut jvm = jvm(&home);
        let file = jvm.profiles().join("profile.otlp");
        let mut reader = Along::load(&jvm, "stream=100ms,cpu=1ms,interval=1s,file=FILE");
        assert!(reader.answer.succeeded, "{:?}", reader.answer);
        assert!(reader.answer.session.is_some());
        // A second reader joins the session, which goes on as it is.
        let session = state(jvm.pid())["session"]["startedUnixMs"].clone();
        let mut second = Along::load(&jvm, "stream=100ms");
        assert!(second.answer.succeeded && second.next().is_some());
        drop(second);
        jvm.wait_until("without the reader that has gone", |jvm| counter(jvm.pid(), "stream.readers") == 1);
        assert_eq!(state(jvm.pid())["session"]["startedUnixMs"], session);
        let mut messages = Vec::new();
        // Three intervals, and messages between their ends.
        let intervals = || if file.is_file() { in_file(&file).len() } else { 0 };
        while intervals() < 3 || messages.len() <= intervals() + 1 {
            messages.push(reader.next().unwrap());
        }
        // The JVM's end.
        jvm.terminate();
        messages.extend(reader.rest());
        let finished = jvm.finish();
        let label = &finished.label;
        profiles::assert_valid_bytes(label, &framed(&messages));
        let mut last_of_intervals = HashMap::new();
        for message in &messages {
            let (start, length) = times(message);
            if let Some(before) = last_of_intervals.insert(start, message) {
                let (_, before_length) = times(before);
                assert!(before_length < length, "{label}: {before_length} {length}");
                let (before, now) = (samples(before), samples(message));
                let sum = |samples: &BTreeMap<_, i64>| samples.values().sum::<i64>();
                // The sum is right to within one half, a stack's value to within one.
                assert!(sum(&now) + 1 >= sum(&before), "{label}: {before:?} {now:?}");
                for ((thread, stack), count) in before.iter().filter(|((thread, _), _)| thread == "main") {
                    let now = now.get(&(thread.clone(), stack.clone())).copied().unwrap_or(0);
                    assert!(now + 2 >= *count, "{label}: {stack:?} {count} {now}");
                }
            }
        }
        let written = in_file(&finished.files()[0]);
        // Regression: each message had a start of its own, some microseconds apart.
        let starts = |messages: &[Vec<u8>]| -> BTreeSet<u64> {
            messages.iter().map(|message| times(message).0).collect()
        };
        assert_eq!(starts(&messages), starts(&written), "{label}: one start for each interval");
        assert_eq!(framed(&written), fs::read(&finished.files()[0]).unwrap(), "{label}: a cut message");
        assert!(messages.len() > written.len(), "{label}: nothing between the intervals' ends");
        for message in &written {
            let (start, _) = times(message);
            let last = last_of_intervals.get(&start);
            assert!(last.is_some_and(|last| *last == message), "{label}: {start}");
        }
    }
}

#[test]
fn a_reader_that_does_not_read_loses_messages_and_the_file_none() {
    for home in newest_or_all() {
        let mut jvm = jvm(&home);
        // Many messages fill the buffers of the connection.
        let mut reader = Along::load(&jvm, "stream=100ms,cpu=1ms,interval=500ms,file=FILE");
        jvm.wait_until("losing", |jvm| counter(jvm.pid(), "stream.lost.messages") > 2);
        assert_eq!(counter(jvm.pid(), "stream.readers"), 1);
        jvm.load_agent("stop");
        let messages = reader.rest();
        assert!(!messages.is_empty());
        profiles::assert_valid_bytes(&jvm.label, &framed(&messages));
        jvm.terminate();
        let finished = jvm.finish();
        let (label, written) = (&finished.label, finished.messages());
        assert!(profiles::counted_in_profiles(&written, "stream.lost.messages") > 0, "{label}");
        for name in ["handler.samples_recorded", "handler.periods_recorded"] {
            let counted = profiles::counted_in_profiles(&written, name);
            assert_eq!(counted.unsigned_abs(), finished.counter(name), "{label}: {name}");
        }
        let periods = profiles::counted_in_profiles(&written, "handler.periods_recorded");
        let sum = cpu_stacks(&written).iter().map(|stack| stack.value).sum::<i64>();
        assert!(sum.abs_diff(periods) <= written.len() as u64, "{label}: {sum} {periods}");
    }
}

#[test]
fn a_session_without_another_destination_ends_with_its_reader() {
    for home in newest_or_all() {
        let mut jvm = jvm(&home);
        let idle = Along::load(&jvm, "stream=100ms").answer;
        assert!(idle.session.is_none() && !idle.succeeded, "{idle:?}");
        for (options, message) in [
            ("stream=99ms,cpu=1ms", "stream=99ms: must be from 100ms to 1h"),
            ("stream=1s,stop", "stream=1s: it cannot go with the command stop"),
            ("endpoint=off", "leaves no destination"),
        ] {
            let refused = Along::load(&jvm, options).answer;
            assert!(!refused.succeeded && refused.message.contains(message), "{refused:?}");
        }
        // Twice: a session can be started again.
        for _ in 0..2 {
            let mut reader = Along::load(&jvm, "stream=100ms,cpu=1ms,endpoint=off");
            assert!(reader.answer.succeeded, "{:?}", reader.answer);
            while samples(&reader.next().unwrap()).is_empty() {}
            drop(reader);
            jvm.wait_until("idle", |jvm| state(jvm.pid())["message"] == "not profiling");
        }
        // A stopped session closes the connection, after its last message.
        let mut reader = Along::load(&jvm, "stream=1h,cpu=1ms,format=json,file=FILE");
        jvm.wait_until("sampled", |jvm| counter(jvm.pid(), "handler.samples_recorded") > 100);
        jvm.load_agent("stop");
        let last = reader.rest().pop().unwrap();
        let written = profiles::messages(&jvm.profiles().join("profile.otlp"));
        let count =
            |stacks: Vec<otlpprof_testkit::stacks::Stack>| stacks.iter().map(|s| s.value).sum::<i64>();
        assert_eq!(samples(&last).values().sum::<i64>(), count(cpu_stacks(&written)), "{}", jvm.label);
        assert_eq!(state(jvm.pid())["session"], Value::Null);
        jvm.terminate();
        jvm.finish();
    }
}

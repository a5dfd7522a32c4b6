//! pprof files, as Go's pprof reads them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Functions, Stacks};
use crate::toolchain::go;

/// `go tool pprof`, without symbols of this machine; `None` if there is no Go.
fn tool(folder: &Path) -> Option<Command> {
    let mut command = Command::new(go("pprof files")?);
    command.args(["tool", "pprof", "-symbolize=none"]).env("PPROF_TMPDIR", folder);
    Some(command)
}

/// A sample of a pprof file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PprofSample {
    /// A value of each type.
    pub values: Vec<i64>,
    /// The names of the frames, from the root on. A frame without a function is named by the build-id of its
    /// mapping and its address.
    pub stack: Vec<String>,
    /// The labels, as pprof prints them.
    pub labels: String,
}

/// A pprof file, as `-raw` prints it.
#[derive(Debug)]
pub struct Raw {
    /// All that `-raw` prints.
    pub text: String,
    /// The sample types, each as `TYPE/UNIT`.
    pub types: Vec<String>,
    /// The samples, in the order of the file.
    pub samples: Vec<PprofSample>,
}

/// Reads a file by `go tool pprof -raw`; `None` if there is no Go.
#[track_caller]
pub fn raw(file: &Path) -> Option<Raw> {
    let output = tool(file.parent().unwrap())?.arg("-raw").arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let section = |name: &str, next: &str| {
        let start = text.find(&format!("\n{name}\n")).map_or(text.len(), |at| at + name.len() + 2);
        let end = text[start..].find(&format!("\n{next}\n")).map_or(text.len(), |at| start + at + 1);
        text[start..end].lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let build_ids = build_ids(&section("Mappings", "nothing"));
    let locations = locations(&section("Locations", "Mappings"), &build_ids);
    let mut lines = section("Samples:", "Locations").into_iter();
    let types = lines.next().unwrap();
    let types: Vec<_> = types.split_whitespace().map(|name| name.replace("[dflt]", "")).collect();
    let mut samples: Vec<PprofSample> = Vec::new();
    for line in lines {
        let numbers = line.split_once(": ").map(|(values, ids)| {
            let values = values.split_whitespace().map(|value| value.parse::<i64>().ok()).collect();
            let ids = ids.split_whitespace().map(|id| id.parse::<u64>().ok()).collect();
            (values, ids)
        });
        if let Some((Some(values), Some(ids))) = numbers {
            let (values, ids): (Vec<i64>, Vec<u64>) = (values, ids);
            let stack = ids.iter().rev().flat_map(|id| locations[id].clone()).collect();
            samples.push(PprofSample { values, stack, labels: String::new() });
        } else if let Some(sample) = samples.last_mut() {
            sample.labels.push_str(line.trim());
            sample.labels.push(' ');
        }
    }
    Some(Raw { text, types, samples })
}

impl Raw {
    /// The sum of each stack, of the values of a type.
    #[track_caller]
    pub fn stacks(&self, name: &str) -> Stacks {
        let at = self.types.iter().position(|known| known.starts_with(&format!("{name}/"))).unwrap();
        let mut stacks = Stacks::new();
        for sample in &self.samples {
            *stacks.entry(sample.stack.clone()).or_default() += sample.values[at];
        }
        stacks.retain(|_, value| *value != 0);
        stacks
    }
}

/// The build-id of each mapping, by its id. A line is `1: 0x1000/0x3000/0x1000 FILE BUILD-ID [FN]`.
fn build_ids(lines: &[String]) -> BTreeMap<String, String> {
    let of = |line: &String| {
        let (id, rest) = line.trim().split_once(": ")?;
        Some((id.to_owned(), rest.split_whitespace().nth(2)?.to_owned()))
    };
    lines.iter().filter_map(of).collect()
}

/// The names of each location's frames, outermost first. A line is
/// `1: 0x1234 M=1 NAME FILE:LINE:COLUMN s=START(SYSTEM NAME)`; further inlined frames are on further lines.
fn locations(lines: &[String], build_ids: &BTreeMap<String, String>) -> BTreeMap<u64, Vec<String>> {
    let mut found: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut last = 0;
    for line in lines {
        let mut rest = line.trim();
        if let Some((id, of_location)) = rest.split_once(": 0x")
            && let Ok(id) = id.trim().parse()
        {
            last = id;
            let (address, of_location) = of_location.split_once(' ').unwrap_or((of_location, ""));
            let mapping = of_location.strip_prefix("M=").and_then(|rest| rest.split(' ').next());
            rest = of_location
                .strip_prefix("M=")
                .map_or(of_location, |rest| rest.split_once(' ').map_or("", |(_, rest)| rest));
            if rest.is_empty() {
                let build_id = mapping.and_then(|mapping| build_ids.get(mapping));
                let build_id = build_id.map_or("", String::as_str);
                found.insert(last, vec![format!("{build_id}.<remote>(0x{address})")]);
                continue;
            }
        }
        let name = rest.rsplit_once(" s=").map_or(rest, |(name, _)| name);
        let name = name.rsplit_once(' ').map_or(name, |(name, _)| name);
        found.entry(last).or_default().insert(0, name.to_owned());
    }
    found
}

/// Flat and cumulative value of each named function, as `-top` prints them, and the total.
#[track_caller]
pub fn top(file: &Path, unit: &str) -> Option<(Functions, i64)> {
    let mut command = tool(file.parent().unwrap())?;
    command.args(["-top", "-trim=false", "-nodecount=1000000", &format!("-unit={unit}")]).arg(file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let number =
        |text: &str| text.trim_end_matches(|letter: char| !letter.is_ascii_digit()).parse::<i64>().ok();
    let total = text.lines().find_map(|line| line.strip_suffix(" total")?.rsplit(' ').next()).unwrap();
    let mut functions = Functions::new();
    for line in text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1) {
        let mut words = line.split_whitespace();
        // The rest of a name with a line end stands on a line of its own.
        let Some(flat) = words.next().and_then(number) else { continue };
        let cumulative = words.nth(2).and_then(number).expect("a whole number");
        let name = words.skip(1).collect::<Vec<_>>().join(" ");
        let name = name.trim_end_matches(" (inline)").trim_end_matches(" (partial-inline)");
        functions.insert(name.to_owned(), (flat, cumulative));
    }
    Some((functions, number(total).expect("a whole number")))
}

/// pprof's web interface, which ends when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: a signal to the group that `web_page` has started.
        unsafe { libc::kill(-i32::try_from(self.0.id()).unwrap(), libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

/// A page of pprof's web interface for a file; `None` if there is no Go.
pub fn web_page(file: &Path, page: &str) -> Option<String> {
    let mut command = tool(file.parent().unwrap())?;
    command.args(["-no_browser", "-http=localhost:"]).arg(file);
    // A group of its own, as `go tool` starts another process.
    let mut server = Server(command.process_group(0).stderr(Stdio::piped()).spawn().unwrap());
    let stderr = server.0.stderr.take().unwrap();
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    let address = lines.find_map(|line| Some(line.split_once("http://")?.1.trim().to_owned()));
    let address = address.expect("pprof prints its address");
    // The address is printed before the server listens.
    let mut stream = loop {
        match TcpStream::connect(&address) {
            Ok(stream) => break stream,
            Err(error) => assert_eq!(server.0.try_wait().unwrap(), None, "{address}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let request = format!("GET {page} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    Some(String::from_utf8_lossy(&answer).into_owned())
}

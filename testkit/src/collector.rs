//! A real OpenTelemetry collector, built by `scripts/collector.sh`.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use otlpprof_otlp::read;

use crate::skipped::not_tested;
use crate::small_profile::{FlatSample, flatten};
use crate::this_build;

const AMPLE: Duration = Duration::from_secs(60);

/// A running collector that writes what it receives to files in both formats.
pub struct Collector {
    process: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Collector {
    /// Starts a collector. If there is none, returns `None` and reports that tests are skipped.
    pub fn start() -> Option<Self> {
        Self::start_with("http")
    }

    /// Starts a collector that only accepts gRPC.
    pub fn start_grpc() -> Option<Self> {
        Self::start_with("grpc")
    }

    fn start_with(protocol: &str) -> Option<Self> {
        let binary = binary()?;
        let folder = tempfile::tempdir().unwrap();
        // The port is free now. Another program is unlikely to take it within the next second.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let configuration = folder.path().join("collector.yaml");
        let [proto, json] = ["proto", "json"].map(|format| folder.path().join(format).display().to_string());
        let text = format!(
            "receivers: {{otlp: {{protocols: {{{protocol}: {{endpoint: '{address}'}}}}}}}}\n\
             exporters: {{file/proto: {{path: '{proto}', format: proto}}, file/json: {{path: '{json}'}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  pipelines:\n    profiles: \
             {{receivers: [otlp], exporters: [file/proto, file/json]}}\n"
        );
        std::fs::write(&configuration, text).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new(binary)
            .arg("--config")
            .arg(&configuration)
            .arg("--feature-gates=+service.profilesSupport")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut collector = Self { process, address, folder };
        collector.wait_until_it_listens();
        Some(collector)
    }

    fn wait_until_it_listens(&mut self) {
        let deadline = Instant::now() + AMPLE;
        while TcpStream::connect(&self.address).is_err() {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// The collector's base URL.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the collector, so that it writes everything, and returns the samples in its two files.
    #[track_caller]
    pub fn received(self) -> [Vec<FlatSample>; 2] {
        self.files().map(|bytes| samples_of(&bytes))
    }

    /// Stops the collector, so that it writes everything, and returns its two files.
    #[track_caller]
    pub fn files(mut self) -> [Vec<u8>; 2] {
        let process = nix::unistd::Pid::from_raw(self.process.id().cast_signed());
        // SAFETY: kill accesses no memory of ours. The child has not been waited for, so the process id is
        // still its own.
        unsafe { libc::kill(process.as_raw(), libc::SIGTERM) };
        assert!(self.process.wait().unwrap().success(), "{}", self.log());
        ["proto", "json"].map(|format| std::fs::read(self.folder.path().join(format)).unwrap())
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn binary() -> Option<PathBuf> {
    let script = this_build::project().join("scripts/collector.sh");
    let output = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    if !output.status.success() {
        not_tested("the OpenTelemetry collector is missing");
        return None;
    }
    Some(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()))
}

/// The samples in a collector's file, sorted.
pub fn samples_of(bytes: &[u8]) -> Vec<FlatSample> {
    let mut samples: Vec<_> = read::read(bytes).flat_map(|message| flatten(&message.unwrap().data)).collect();
    samples.sort();
    samples
}

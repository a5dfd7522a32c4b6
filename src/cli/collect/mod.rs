//! `otlpprof collect`: a small OTLP/HTTP receiver of profiles.
//!
//! In: requests, as the OTLP specification has them. Out: for every request with samples a file in a folder,
//! named `profiles-<unix time in ns>-<number>.otlp` (one plain protobuf message) or `.json` (one document), just
//! as it came, decompressed; and a line on stdout. What does not decode is refused and stored nowhere. A message that
//! cannot be stored is a line on stderr, unless the one before could not be for the same reason.
//!
//! However many requests come and whatever is in them, it takes less than 256 MB (`memory`): a body has 20
//! MiB at most, before and after decompression, and its parts the bounds of all messages (`otlp::bounds`),
//! else the answer is 413; a request that there is no memory for is told to come again, by 503.
//!
//! Called by the command line. For the main job on one machine: it speaks no TLS and knows no users.

mod connection;
mod memory;
mod message;
mod protocol;
mod server;
mod store;

use std::io::{self, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use super::signals::Signals;
use super::terminal;

pub use server::{Report, Server};
pub use store::{Store, Stored};

/// How long requests in progress may take when the command is told to end.
const GRACE: Duration = Duration::from_secs(5);

/// Receive profiles over OTLP/HTTP and store them in files
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Address to listen at; port 0 takes a free one, which is printed
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4318")]
    pub listen: String,
    /// Folder for the files, one for each request; it must exist
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Runs the receiver until SIGINT or SIGTERM.
///
/// # Errors
/// The folder is not there or cannot be written, or the address cannot be listened at.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    memory::give_back_at_once();
    let store = Store::open(&args.out)?;
    let listener = TcpListener::bind(&args.listen).with_context(|| format!("--listen {}", args.listen))?;
    let address = listener.local_addr().context("the listening socket has no address")?;
    // Blocked before there are threads, so that none of them takes the signal.
    let signals = Signals::block();
    let out = args.out.clone();
    let report = Arc::new(move |outcome: Result<&Stored, &io::Error>| match outcome {
        Ok(stored) => say(&stored.to_string()),
        Err(error) => complain(&format!(
            "--out {}: cannot store a message: {error} (said once; senders are told to come again)",
            out.display()
        )),
    });
    let server = Server::start(listener, store, report).context("cannot start the receiver")?;
    say(&format!("listening on http://{address}"));
    signals.wait();
    server.stop(GRACE);
    Ok(ExitCode::SUCCESS)
}

/// Prints a line at once. Nobody reading is no reason to end.
fn say(line: &str) {
    let mut stdout = terminal::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Prints a line about what is wrong. Nobody reading is no reason to end.
fn complain(line: &str) {
    let _ = writeln!(terminal::stderr(), "otlpprof: {line}");
}

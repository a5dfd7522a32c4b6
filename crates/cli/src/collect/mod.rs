//! `otlpprof collect`: a small OTLP/HTTP receiver of profiles.
//!
//! The input is requests, as the OTLP specification defines them. For every accepted request the receiver
//! writes a line to stdout, and for every one with samples a file in a folder. The file is named
//! `profiles-<unix time in ns>-<number>.otlp` (one plain protobuf message) or `.json` (one document), and
//! holds the request's body as it was sent, decompressed. A body that does not decode is refused and not
//! stored. A message that cannot be stored is reported by a line on stderr, unless the previous one failed
//! for the same reason.
//!
//! Whatever the number and content of requests, the receiver occupies less than 256 MB (`memory`). A body has
//! at most 20 MiB before and after decompression, and its parts are within the bounds of all messages
//! (`otlp::bounds`); otherwise the answer is 413. A request for which there is no memory is asked by 503 to
//! retry.
//!
//! Called by the command line. Intended for use on one machine: it has neither TLS nor authentication.
//!
//! | Module | Duty |
//! |---|---|
//! | `server` | the listening socket, and the threads of its connections |
//! | `connection` | HTTP/1.1 on one connection, within time limits |
//! | `message` | HTTP requests and answers as plain data |
//! | `protocol` | which requests are accepted, and the answers to the others |
//! | `memory` | bounds on the memory that all requests together occupy |
//! | `store` | received messages in files |

mod connection;
mod memory;
pub(super) mod message;
pub(super) mod protocol;
pub(super) mod server;
mod store;

use std::io::{self, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use super::signals::Signals;
use super::{allocator, terminal};

pub use server::{Report, Server};
pub use store::{Store, Stored};

/// How long requests in progress may take after a signal to end.
const GRACE: Duration = Duration::from_secs(5);

/// Receive profiles over OTLP/HTTP and store them in files
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The address to listen at. With port 0 the system chooses a port, which is printed
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4318")]
    pub listen: String,
    /// The folder for the files, one for each request; it is created if its parent exists
    #[arg(short, long = "output", visible_alias = "out", value_name = "DIR")]
    pub out: PathBuf,
}

/// Runs the receiver until SIGINT or SIGTERM.
///
/// # Errors
/// The folder does not exist or cannot be written, or the address cannot be listened at.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // The value that glibc begins with. By this call the value no longer grows.
    allocator::return_freed_blocks(128 << 10);
    let store = Store::open(&args.out)?;
    let listener = TcpListener::bind(&args.listen).with_context(|| format!("--listen {}", args.listen))?;
    let address = listener.local_addr().context("the listening socket has no address")?;
    // The signals are blocked before the threads start, so that none of the threads receives them.
    let signals = Signals::block();
    let out = args.out.clone();
    let report = Arc::new(move |outcome: Result<&Stored, &io::Error>| match outcome {
        Ok(stored) => say(&stored.to_string()),
        Err(error) => complain(&format!(
            "--output {}: cannot store a message: {error} (logged once; senders are asked to retry)",
            out.display()
        )),
    });
    let server = Server::start(listener, store, report).context("cannot start the receiver")?;
    say(&format!("listening on http://{address}"));
    signals.wait();
    server.stop(GRACE);
    Ok(ExitCode::SUCCESS)
}

/// Prints a line at once. Ignores errors, since a closed standard output is no reason to end.
fn say(line: &str) {
    let mut stdout = terminal::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Prints an error line. Ignores errors, since a closed standard error is no reason to end.
fn complain(line: &str) {
    let _ = writeln!(terminal::stderr(), "otlpprof: {line}");
}

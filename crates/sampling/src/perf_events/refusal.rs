//! The reasons why an event cannot be counted, and remedies.

use std::io;
use std::path::PathBuf;

use otlpprof_signal::chain::ChainError;
use perf_event_open_sys::bindings as perf;
use thiserror::Error;

use super::names::{EventSource, EventSpec};

/// The reason why an event cannot be counted.
#[derive(Debug, Error)]
pub enum Refusal {
    /// A foreign handler is installed for the signal, or no handler can be installed.
    #[error("its signal's handler cannot be installed; choose another by event.signal")]
    Handler(ChainError),
    /// No tracefs is mounted.
    #[error(
        "there is no tracefs at /sys/kernel/tracing, which lists the tracepoints; run mount -t tracefs \
         tracefs /sys/kernel/tracing, and mount it into containers"
    )]
    NoTracefs,
    /// A tracefs is mounted, but this process may not read it.
    #[error(
        "{}, which lists the tracepoints, may not be read; run as root, or mount it again with gid=",
        .0.display()
    )]
    TracefsDenied(PathBuf),
    /// The kernel does not have the tracepoint.
    #[error("this kernel has no tracepoint {0}; /sys/kernel/tracing/events lists its tracepoints")]
    NoTracepoint(String),
    /// The kernel does not support probes of this kind.
    #[error(
        "this kernel has no {kind}s; they need one that is built with CONFIG_{}_EVENTS",
        .kind.to_uppercase()
    )]
    NoProbes {
        /// `kprobe` or `uprobe`.
        kind: &'static str,
    },
    /// A file to be probed cannot be used.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The error.
        error: String,
    },
    /// The file does not have the function.
    #[error(
        "{path} has no function {symbol} in its symbol tables; give its position in the file, \
         uprobe:{path}:+OFFSET"
    )]
    NoSymbol {
        /// The file.
        path: String,
        /// The function's symbol.
        symbol: String,
    },
    /// The kernel refuses the event.
    #[error("{0}")]
    Kernel(String),
}

impl Refusal {
    /// Explains the kernel's error `error` for an event. `paranoia` is the value of `perf_event_paranoid`.
    pub(super) fn by_kernel(event: &EventSpec, error: &io::Error, paranoia: Option<i32>) -> Self {
        let why = match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => not_granted(event, paranoia),
            Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL) => not_there(event),
            Some(libc::ENOSYS) => "the kernel is built without perf events (CONFIG_PERF_EVENTS)".into(),
            Some(libc::EBUSY) => "another user has reserved the processor's counters".into(),
            _ => "perf_event_open fails".into(),
        };
        Self::Kernel(format!("{why} ({error})"))
    }
}

fn not_granted(event: &EventSpec, paranoia: Option<i32>) -> String {
    let is_probe = !matches!(event.source, EventSource::Counter { .. });
    let enough = if is_probe { -1 } else { 1 };
    let now = paranoia.map_or(String::new(), |level| format!(", now {level}"));
    let mut message = format!(
        "the process may not count it; allow it by CAP_PERFMON, or by sysctl \
         kernel.perf_event_paranoid={enough}{now}, and in a container by a seccomp profile that lets \
         perf_event_open through"
    );
    if !is_probe && !event.user_only && EventSpec::parse(&format!("{}:u", event.name)).is_ok() {
        message += &format!("; event={}:u leaves the kernel out", event.name);
    }
    message
}

fn not_there(event: &EventSpec) -> String {
    match &event.source {
        EventSource::Counter { kind, .. } if *kind == perf::PERF_TYPE_SOFTWARE => {
            "this kernel does not count it".into()
        }
        EventSource::Counter { .. } => {
            "this machine's processor does not count it, or its hypervisor hides the counters from virtual \
             machines; give a virtual machine a virtual PMU"
                .into()
        }
        EventSource::Tracepoint { .. } => "this kernel does not have the tracepoint".into(),
        EventSource::Kprobe { symbol, .. } => {
            format!(
                "this kernel has no place {symbol} that can be probed; /proc/kallsyms lists its functions"
            )
        }
        EventSource::Uprobe { path, .. } => format!("there is no instruction at that place of {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(event: &str, errno: i32) -> String {
        let event = EventSpec::parse(event).unwrap();
        let message = Refusal::by_kernel(&event, &io::Error::from_raw_os_error(errno), Some(2)).to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    }

    #[test]
    fn a_refusal_names_the_remedy() {
        for (event, errno, says) in [
            ("cycles", libc::ENOENT, "virtual PMU"),
            ("r1a8", libc::EOPNOTSUPP, "virtual PMU"),
            ("cycles", libc::EACCES, "kernel.perf_event_paranoid=1, now 2"),
            ("cycles", libc::EACCES, "event=cycles:u leaves the kernel out"),
            ("page-faults", libc::EPERM, "seccomp"),
            ("sched:sched_switch", libc::EACCES, "kernel.perf_event_paranoid=-1, now 2"),
            ("uprobe:/bin/sh:+0x0", libc::EACCES, "CAP_PERFMON"),
            ("uprobe:/bin/sh:+0x0", libc::EINVAL, "no instruction at that place of /bin/sh"),
            ("kprobe:nothing", libc::ENOENT, "/proc/kallsyms"),
            ("page-faults", libc::ENOSYS, "CONFIG_PERF_EVENTS"),
        ] {
            let message = message(event, errno);
            assert!(message.contains(says), "{event} {errno}: {message}");
        }
        assert!(!message("cycles:u", libc::EACCES).contains("leaves the kernel out"));
        assert!(!message("context-switches", libc::EACCES).contains(":u"));
    }
}

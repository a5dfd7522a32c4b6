//! What a virtual machine's host takes from its CPUs. Events go on counting meanwhile, which the kernel's accounts do
//! not have: a comparison of the two leaves it out.

#![allow(unreachable_pub, reason = "test binaries and other support modules include this")]

use std::time::Duration;

/// The time taken from all CPUs since the machine started: the eighth number of /proc/stat's first line, in ticks of
/// 10 ms (proc_stat(5)).
pub fn stolen_since_boot() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks = stat.split_whitespace().nth(8).and_then(|ticks| ticks.parse::<u64>().ok());
    Duration::from_millis(ticks.expect("a kernel since 2.6.11") * 10)
}

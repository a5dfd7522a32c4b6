//! The place where a thread waits, as the kernel reports it to other threads. A thread that waits where its
//! last sample found it need not be woken to find that out.

use std::io::Read;

use otlpprof_core::thread::WallAccount;

use crate::task_file;

/// Whether a thread waits where its last sample found it waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitingState {
    /// The thread waits at that place.
    Same,
    /// The thread waits elsewhere, or runs.
    Other,
    /// The kernel does not report the place: the file does not exist, or may not be read.
    Unknown,
}

/// Compares the place where the thread `tid` waits to the place of its last sample.
pub(super) fn whereabouts(tid: i32, account: &WallAccount) -> WaitingState {
    let mut text = [0; 256];
    let read = task_file::open(tid, "syscall").and_then(|mut file| file.read(&mut text));
    let Ok(length) = read else { return WaitingState::Unknown };
    let place = text.get(..length).and_then(|text| std::str::from_utf8(text).ok()).and_then(waiting_place);
    let sampled = account.waiting_place();
    if place.is_some() && place == sampled { WaitingState::Same } else { WaitingState::Other }
}

/// Parses the stack pointer and the address after the system call from the kernel's text (proc(5),
/// `/proc/pid/syscall`): the call's number, six arguments, stack pointer, program counter. `None` for a
/// thread that is in no system call.
fn waiting_place(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace();
    fields.next()?.parse::<u32>().ok()?;
    let mut hexadecimal = fields.map(|field| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok());
    let stack_pointer = hexadecimal.nth(6)??;
    Some((stack_pointer, hexadecimal.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_waiting_system_calls() {
        let poll = "7 0x7f2a 0x1 0xffffffff 0x0 0x0 0x0 0x7ffd8e7c2a10 0x7f2ab1c0d8e7\n";
        assert_eq!(waiting_place(poll), Some((0x7ffd_8e7c_2a10, 0x7f2a_b1c0_d8e7)));
        for none in ["running\n", "-1 0x7ffd8e7c2a10 0x7f2ab1c0d8e7\n", "", "7 0x1 0x2\n"] {
            assert_eq!(waiting_place(none), None, "{none}");
        }
    }
}

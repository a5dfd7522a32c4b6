//! A memory barrier in every running thread of the process, for the price of one system call, so that the
//! other threads need no barrier of their own (membarrier(2)).

use std::sync::OnceLock;

/// `enum membarrier_cmd` (include/uapi/linux/membarrier.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
enum Command {
    /// All threads of the system; takes milliseconds. Linux 4.3.
    Global = 1,
    /// All threads of this process; takes microseconds. Linux 4.14.
    PrivateExpedited = 8,
    RegisterPrivateExpedited = 16,
}

fn membarrier(command: Command) -> bool {
    // SAFETY: the call takes three numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command as i32, 0, 0) == 0 }
}

/// Makes every thread of the process pass a full barrier between call and return. Returns `false` if the
/// kernel offers none: then nothing follows about what other threads have done.
pub fn pass() -> bool {
    static COMMAND: OnceLock<Option<Command>> = OnceLock::new();
    let command = *COMMAND.get_or_init(|| {
        if membarrier(Command::RegisterPrivateExpedited) && membarrier(Command::PrivateExpedited) {
            return Some(Command::PrivateExpedited);
        }
        membarrier(Command::Global).then_some(Command::Global)
    });
    command.is_some_and(membarrier)
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_kernel_has_a_process_barrier() {
        assert!(super::pass() && super::pass());
    }
}

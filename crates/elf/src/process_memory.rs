//! Reads this process's own memory by system calls, so that an address that is unmapped, or whose file was
//! truncated, causes an error instead of a signal.
//!
//! The handler's loads (`signal::safe_load`) make the same promise without a system call. But they need an
//! installed handler of SIGSEGV, which other code may replace. The reads here copy sections of megabytes with
//! one call, in any process and at any time.

use std::fs::File;
use std::os::unix::fs::FileExt;

use otlpprof_core::memory::Memory;

/// This process's memory.
///
/// Read by `process_vm_readv(2)`; if a seccomp filter refuses that call, as in older container runtimes,
/// through `/proc/self/mem`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessMemory;

impl Memory for ProcessMemory {
    fn read_bytes(&self, address: u64, bytes: &mut [u8]) -> bool {
        let mut done = 0;
        while done < bytes.len() {
            let Some(at) = address.checked_add(done as u64) else { return false };
            match read_some(at, &mut bytes[done..]) {
                Ok(0) | Err(Refusal::Unreadable) => return false,
                Ok(count) => done += count,
                Err(Refusal::NotPermitted) => return read_through_proc(at, &mut bytes[done..]),
            }
        }
        true
    }
}

enum Refusal {
    Unreadable,
    NotPermitted,
}

fn read_some(address: u64, bytes: &mut [u8]) -> Result<usize, Refusal> {
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: the kernel writes only into `local`, which is `bytes`; the kernel itself checks `remote`.
    let count = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    if let Ok(count) = usize::try_from(count) {
        return Ok(count);
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => Err(Refusal::NotPermitted),
        _ => Err(Refusal::Unreadable),
    }
}

/// Reads through `/proc/self/mem`. The file is opened for each read: after a fork, a descriptor that was
/// opened before would still read the parent's memory.
fn read_through_proc(address: u64, bytes: &mut [u8]) -> bool {
    File::open("/proc/self/mem").is_ok_and(|memory| memory.read_exact_at(bytes, address).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pages, the second of which is not accessible.
    fn page_before_a_hole() -> (u64, usize) {
        // SAFETY: sysconf has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        // SAFETY: a fresh anonymous mapping, whose upper page is made inaccessible.
        unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                2 * page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(start.byte_add(page), page, libc::PROT_NONE), 0);
            start.cast::<u8>().add(page - 4).write_bytes(7, 4);
            (start as u64, page)
        }
    }

    #[test]
    fn reads_up_to_a_hole_and_not_into_it() {
        let (start, page) = page_before_a_hole();
        let mut bytes = [0; 4];
        assert!(ProcessMemory.read_bytes(start + page as u64 - 4, &mut bytes));
        assert_eq!(bytes, [7; 4]);
        assert!(!ProcessMemory.read_bytes(start + page as u64 - 3, &mut bytes));
    }

    #[test]
    fn both_ways_read_the_same_and_refuse_unmapped_memory() {
        let (start, page) = page_before_a_hole();
        type Read = fn(u64, &mut [u8]) -> bool;
        let ways: [Read; 2] = [|at, bytes| ProcessMemory.read_bytes(at, bytes), read_through_proc];
        for read in ways {
            let mut bytes = [0; 4];
            assert!(read(start + page as u64 - 4, &mut bytes));
            assert_eq!(bytes, [7; 4]);
            for unmapped in [0, 1 << 63, u64::MAX - 1] {
                assert!(!read(unmapped, &mut bytes), "{unmapped:#x}");
            }
        }
    }
}

//! The process context: a small mapping by which outside readers learn what this process is (OTEP 4719).
//!
//! Readers find it by its name in `/proc/PID/maps`. It holds a header of 32 bytes, which says where in this process the
//! encoded message is. A reader takes the header's time before and after it reads, and begins anew if that has changed, so
//! who updates writes 0 there first and the new time last. There is one in a process: where another publisher has one, there
//! is none of ours. A child of the process does not inherit it.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use thiserror::Error;

const NAME: &CStr = c"OTEL_CTX";
const SIGNATURE: [u8; 8] = *b"OTEL_CTX";
const VERSION: u32 = 2;

/// Not in `libc` for this C library (include/uapi/linux/memfd.h).
const MFD_NOEXEC_SEAL: libc::c_uint = 8;

/// How the mapping is called, by what of it could be named.
const MAPPING_NAMES: [&str; 3] = ["[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"];

/// What readers take at most (opentelemetry-ebpf-profiler, processcontext.go).
const MOST_PAYLOAD_BYTES: usize = 65_536;

#[repr(C)]
struct Header {
    signature: [u8; 8],
    version: u32,
    payload_bytes: u32,
    /// By CLOCK_BOOTTIME; 0 while the rest is written.
    published_at_ns: AtomicU64,
    payload: u64,
}

const _: () = assert!(size_of::<Header>() == 32);

/// Why there is no process context of ours.
#[derive(Debug, Error)]
pub enum ProcessContextError {
    /// Another publisher has one.
    #[error("another publisher's process context is there")]
    Taken,
    /// Readers would not take it.
    #[error("the process context has {0} bytes, of which readers take {MOST_PAYLOAD_BYTES} at most")]
    TooLong(usize),
    /// The system refuses.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
}

/// A process context that is there until this is dropped.
#[derive(Debug)]
pub struct ProcessContext {
    header: NonNull<Header>,
    /// What the header leads to.
    payload: Vec<u8>,
    process: u32,
}

// SAFETY: the mapping belongs to this value, and may be written from any thread, by one at a time.
unsafe impl Send for ProcessContext {}

impl ProcessContext {
    /// Publishes a message of type `ProcessContext`, encoded as protobuf.
    pub fn publish(payload: Vec<u8>) -> Result<Self, ProcessContextError> {
        check(&payload)?;
        if find_others(None) {
            return Err(ProcessContextError::Taken);
        }
        let (mapping, has_name) = map()?;
        let mut context = Self { header: mapping, payload, process: std::process::id() };
        // SAFETY: the mapping is of one header's size or more, and nobody else writes it.
        unsafe {
            // A child has it not, or it has the parent's name for itself.
            if libc::madvise(mapping.as_ptr().cast(), size_of::<Header>(), libc::MADV_DONTFORK) != 0 {
                return Err(system("madvise"));
            }
            mapping.as_ptr().write(Header {
                signature: SIGNATURE,
                version: VERSION,
                payload_bytes: 0,
                published_at_ns: AtomicU64::new(0),
                payload: 0,
            });
        }
        let is_named = context.write();
        if has_name || is_named { Ok(context) } else { Err(system("prctl")) }
    }

    /// Publishes another message in its place.
    pub fn update(&mut self, payload: Vec<u8>) -> Result<(), ProcessContextError> {
        check(&payload)?;
        if std::process::id() == self.process {
            let before = std::mem::replace(&mut self.payload, payload);
            self.write();
            drop(before);
        }
        Ok(())
    }

    /// Whether another publisher has a process context by now.
    pub fn is_contested(&self) -> bool {
        find_others(Some(self.header.as_ptr().addr()))
    }

    /// Returns whether the mapping has its name as an anonymous one.
    fn write(&mut self) -> bool {
        let header = self.header.as_ptr();
        // SAFETY: the mapping is there; only this value's owner writes it. Other processes read it, who look at the time
        // first and last.
        unsafe {
            let time = &(*header).published_at_ns;
            let before = time.swap(0, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            (&raw mut (*header).payload).write_volatile(self.payload.as_ptr().expose_provenance() as u64);
            (&raw mut (*header).payload_bytes).write_volatile(self.payload.len() as u32);
            fence(Ordering::SeqCst);
            time.store(boot_time_ns().max(before.wrapping_add(1)), Ordering::SeqCst);
            // Each time: it is what readers that watch this call learn of an update by.
            libc::prctl(
                libc::PR_SET_VMA,
                libc::PR_SET_VMA_ANON_NAME,
                header,
                size_of::<Header>(),
                NAME.as_ptr(),
            ) == 0
        }
    }
}

impl Drop for ProcessContext {
    fn drop(&mut self) {
        // A child's addresses may have something else there.
        if std::process::id() == self.process {
            // SAFETY: the mapping is this value's.
            unsafe { libc::munmap(self.header.as_ptr().cast(), size_of::<Header>()) };
        }
    }
}

fn check(payload: &[u8]) -> Result<(), ProcessContextError> {
    match payload.len() {
        bytes if bytes > MOST_PAYLOAD_BYTES => Err(ProcessContextError::TooLong(bytes)),
        _ => Ok(()),
    }
}

fn system(call: &'static str) -> ProcessContextError {
    ProcessContextError::System(call, io::Error::last_os_error())
}

/// A mapping for a header; whether it shows its name by itself.
fn map() -> Result<(NonNull<Header>, bool), ProcessContextError> {
    let file = memory_file();
    let (flags, descriptor) = match &file {
        Some(file) => (libc::MAP_PRIVATE, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, which nothing refers to.
    let mapping =
        unsafe { libc::mmap(ptr::null_mut(), size_of::<Header>(), protection, flags, descriptor, 0) };
    if mapping == libc::MAP_FAILED {
        return Err(system("mmap"));
    }
    // SANITY: it has not failed, and a mapping at 0 is not given to who asks for none.
    Ok((NonNull::new(mapping.cast()).expect("a mapping"), file.is_some()))
}

/// A file that is nowhere, whose mapping has its name; `None` where the system forbids such.
fn memory_file() -> Option<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Kernels before 6.3 do not know the first.
    [flags | MFD_NOEXEC_SEAL, flags].into_iter().find_map(|flags| {
        // The system call: the function memfd_create is missing from the C library before glibc 2.27.
        // SAFETY: the name is a C string; a descriptor that comes of it is nobody else's.
        let file = unsafe {
            let descriptor = libc::syscall(libc::SYS_memfd_create, NAME.as_ptr(), flags);
            (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor as RawFd))
        }?;
        // SAFETY: an open descriptor.
        let is_sized = unsafe { libc::ftruncate(file.as_raw_fd(), size_of::<Header>() as libc::off_t) } == 0;
        is_sized.then_some(file)
    })
}

/// Whether there is a process context besides the one at this address.
fn find_others(own: Option<usize>) -> bool {
    let Ok(maps) = File::open("/proc/self/maps") else { return false };
    let lines = BufReader::new(maps).lines().map_while(Result::ok);
    lines.filter(|line| is_named(line)).any(|line| {
        let start = line.split('-').next().and_then(|start| usize::from_str_radix(start, 16).ok());
        start.is_some_and(|start| Some(start) != own && has_signature(start))
    })
}

/// Whether a line of /proc/PID/maps is of a mapping with one of the names.
fn is_named(line: &str) -> bool {
    // The name is the sixth field, and may have blanks.
    let name = line.splitn(6, ' ').nth(5).unwrap_or_default().trim_start();
    MAPPING_NAMES.iter().any(|known| name.starts_with(known))
}

/// The mapping may be gone by now: so the kernel reads it.
fn has_signature(address: usize) -> bool {
    let mut found = [0_u8; 8];
    let local = libc::iovec { iov_base: found.as_mut_ptr().cast(), iov_len: found.len() };
    let remote = libc::iovec { iov_base: ptr::without_provenance_mut(address), iov_len: found.len() };
    // SAFETY: the kernel writes the eight bytes of `found`, or fails.
    let read = unsafe {
        libc::process_vm_readv(std::process::id().cast_signed(), &raw const local, 1, &raw const remote, 1, 0)
    };
    read == found.len() as isize && found == SIGNATURE
}

fn boot_time_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_known_by_their_names() {
        let line = |name: &str| format!("7f00-7f01 rw-p 00000000 00:01 2049                  {name}");
        for name in ["/memfd:OTEL_CTX (deleted)", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"] {
            assert!(is_named(&line(name)), "{name}");
        }
        for name in ["", "[anon:other]", "/tmp/memfd:OTEL_CTX", "/memfd:OTEL"] {
            assert!(!is_named(&line(name)), "{name}");
        }
    }

    /// One test, since there is one process context in a process.
    #[test]
    fn there_is_one_and_it_goes_with_its_owner() {
        let read = |context: &ProcessContext| {
            // SAFETY: the mapping is there; nobody writes it now.
            let header = unsafe { context.header.as_ref() };
            (
                header.signature,
                header.version,
                header.payload_bytes,
                header.published_at_ns.load(Ordering::Relaxed),
            )
        };
        let mut first = ProcessContext::publish(vec![1, 2, 3]).unwrap();
        let (signature, version, bytes, time) = read(&first);
        assert_eq!((signature, version, bytes), (SIGNATURE, 2, 3));
        assert!(time != 0 && !first.is_contested());
        assert!(matches!(ProcessContext::publish(vec![4]), Err(ProcessContextError::Taken)));
        first.update(vec![5; 40]).unwrap();
        let (_, _, bytes, later) = read(&first);
        assert!(bytes == 40 && later > time);
        assert!(first.update(vec![0; MOST_PAYLOAD_BYTES + 1]).is_err(), "readers do not take it");
        assert_eq!(read(&first).2, 40);

        // SAFETY: the child makes system calls alone.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = i32::from(has_signature(first.header.as_ptr().addr()));
            // SAFETY: as above.
            unsafe { libc::_exit(code) };
        }
        let mut status = -1;
        // SAFETY: the pointer is to this frame's variable.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "a child has it");

        // A publisher that did not look.
        let (other, _) = map().unwrap();
        // SAFETY: a mapping of a header's size, which nobody else has.
        unsafe { other.cast::<[u8; 8]>().as_ptr().write(SIGNATURE) };
        assert!(first.is_contested());
        // SAFETY: as above.
        unsafe { libc::munmap(other.as_ptr().cast(), size_of::<Header>()) };
        assert!(!first.is_contested());

        let address = first.header.as_ptr().addr();
        drop(first);
        assert!(!has_signature(address) && !find_others(None));
        drop(ProcessContext::publish(vec![6]).unwrap());
    }
}

//! The process context: a small mapping from which outside readers learn what this process is (OTEP 4719).
//!
//! Readers find the mapping by its name in `/proc/PID/maps`. It holds a header of 32 bytes with the address
//! and length of the encoded message in this process. A reader compares the header's time before and after it
//! reads, and starts over if the time has changed. An update therefore writes the time 0 first and the new
//! time last. A process has one process context: if another publisher already has one, ours is not published.
//! A child process does not inherit it.

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

/// Missing from `libc` for this C library (include/uapi/linux/memfd.h).
const MFD_NOEXEC_SEAL: libc::c_uint = 8;

/// The mapping's possible names in `/proc/PID/maps`, depending on whether the kernel could name the mapping
/// or only its memory file.
const MAPPING_NAMES: [&str; 3] = ["[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"];

/// The most bytes of a message that readers accept (opentelemetry-ebpf-profiler, processcontext.go).
const MOST_PAYLOAD_BYTES: usize = 65_536;

#[repr(C)]
struct Header {
    signature: [u8; 8],
    version: u32,
    payload_bytes: u32,
    /// The time of publication in ns, by CLOCK_BOOTTIME. 0 while the other fields are being written.
    published_at_ns: AtomicU64,
    payload: u64,
}

const _: () = assert!(size_of::<Header>() == 32);

/// The reason why this process's context is not published.
#[derive(Debug, Error)]
pub enum ProcessContextError {
    /// Another publisher has a process context.
    #[error("another publisher has published a process context")]
    Taken,
    /// Longer than readers accept.
    #[error("the process context has {0} bytes, more than the {MOST_PAYLOAD_BYTES} that readers accept")]
    TooLong(usize),
    /// A system call failed.
    #[error("{0}: {1}")]
    System(&'static str, io::Error),
}

/// A process context that stays published until this value is dropped.
#[derive(Debug)]
pub struct ProcessContext {
    header: NonNull<Header>,
    /// The encoded message that the header points to.
    payload: Vec<u8>,
    process: u32,
}

// SAFETY: the mapping belongs to this value. Any thread may write it, one at a time.
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
        // SAFETY: the mapping has at least the size of one header, and no other code writes it.
        unsafe {
            // A forked child does not inherit the mapping: it would carry the parent's name.
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

    /// Publishes another message in place of the previous one.
    pub fn update(&mut self, payload: Vec<u8>) -> Result<(), ProcessContextError> {
        check(&payload)?;
        if std::process::id() == self.process {
            let before = std::mem::replace(&mut self.payload, payload);
            self.write();
            drop(before);
        }
        Ok(())
    }

    /// Whether another publisher has published a process context in the meantime.
    pub fn is_contested(&self) -> bool {
        find_others(Some(self.header.as_ptr().addr()))
    }

    /// Writes the header. Returns whether the mapping could be named as an anonymous mapping.
    fn write(&mut self) -> bool {
        let header = self.header.as_ptr();
        // SAFETY: the mapping exists for as long as this value, and only this value's owner writes it. Other
        // processes read it, and compare the time before and after they read.
        unsafe {
            let time = &(*header).published_at_ns;
            let before = time.swap(0, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            (&raw mut (*header).payload).write_volatile(self.payload.as_ptr().expose_provenance() as u64);
            (&raw mut (*header).payload_bytes).write_volatile(self.payload.len() as u32);
            fence(Ordering::SeqCst);
            time.store(boot_time_ns().max(before.wrapping_add(1)), Ordering::SeqCst);
            // Called at each update: readers that trace this system call learn of the update by it.
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
        // In a forked child another mapping may be at this address.
        if std::process::id() == self.process {
            // SAFETY: the mapping belongs to this value.
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

/// Maps memory for a header. Also returns whether the mapping has a name already.
fn map() -> Result<(NonNull<Header>, bool), ProcessContextError> {
    let file = memory_file();
    let (flags, descriptor) = match &file {
        Some(file) => (libc::MAP_PRIVATE, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the mapping is new, and no reference to its memory exists.
    let mapping =
        unsafe { libc::mmap(ptr::null_mut(), size_of::<Header>(), protection, flags, descriptor, 0) };
    if mapping == libc::MAP_FAILED {
        return Err(system("mmap"));
    }
    // SANITY: mmap has succeeded, and does not return address 0 unless the caller asks for it.
    Ok((NonNull::new(mapping.cast()).expect("a mapping"), file.is_some()))
}

/// An unlinked memory file whose mapping shows its name. `None` where the system forbids such files.
fn memory_file() -> Option<OwnedFd> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Kernels before 6.3 do not know MFD_NOEXEC_SEAL.
    [flags | MFD_NOEXEC_SEAL, flags].into_iter().find_map(|flags| {
        // The raw system call is used because glibc before 2.27 has no function memfd_create.
        // SAFETY: the name is a C string, and the returned descriptor is owned only here.
        let file = unsafe {
            let descriptor = libc::syscall(libc::SYS_memfd_create, NAME.as_ptr(), flags);
            (descriptor >= 0).then(|| OwnedFd::from_raw_fd(descriptor as RawFd))
        }?;
        // SAFETY: the descriptor is open.
        let is_sized = unsafe { libc::ftruncate(file.as_raw_fd(), size_of::<Header>() as libc::off_t) } == 0;
        is_sized.then_some(file)
    })
}

/// Whether a process context exists at an address other than `own`.
fn find_others(own: Option<usize>) -> bool {
    let Ok(maps) = File::open("/proc/self/maps") else { return false };
    let lines = BufReader::new(maps).lines().map_while(Result::ok);
    lines.filter(|line| is_named(line)).any(|line| {
        let start = line.split('-').next().and_then(|start| usize::from_str_radix(start, 16).ok());
        start.is_some_and(|start| Some(start) != own && has_signature(start))
    })
}

/// Whether a line of /proc/PID/maps describes a mapping with one of the names.
fn is_named(line: &str) -> bool {
    // The name is the sixth field, and may contain blanks.
    let name = line.splitn(6, ' ').nth(5).unwrap_or_default().trim_start();
    MAPPING_NAMES.iter().any(|known| name.starts_with(known))
}

/// Whether the signature is at an address. The kernel reads the memory, since the mapping may be gone in the
/// meantime.
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
    // SAFETY: the pointer is to a valid timespec.
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

    /// A single test, since a process has a single process context.
    #[test]
    fn the_process_context_is_single_and_removed_with_its_owner() {
        let read = |context: &ProcessContext| {
            // SAFETY: the mapping exists while `context` does, and no code writes it now.
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

        // SAFETY: the child makes only system calls.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = i32::from(has_signature(first.header.as_ptr().addr()));
            // SAFETY: _exit is a system call, and ends the child.
            unsafe { libc::_exit(code) };
        }
        let mut status = -1;
        // SAFETY: the pointer is to a variable of this frame.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "a child has it");

        // A second publisher that did not look for an existing process context.
        let (other, _) = map().unwrap();
        // SAFETY: the mapping has a header's size, and only this test uses it.
        unsafe { other.cast::<[u8; 8]>().as_ptr().write(SIGNATURE) };
        assert!(first.is_contested());
        // SAFETY: the mapping is unmapped once, and no reference to its memory exists.
        unsafe { libc::munmap(other.as_ptr().cast(), size_of::<Header>()) };
        assert!(!first.is_contested());

        let address = first.header.as_ptr().addr();
        drop(first);
        assert!(!has_signature(address) && !find_others(None));
        drop(ProcessContext::publish(vec![6]).unwrap());
    }
}

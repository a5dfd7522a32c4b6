//! Descriptors of perf events: opens them for a thread, directs their signals to the thread, makes them known
//! to the handler, closes them.

use std::mem::MaybeUninit;
use std::{fs, io};

use perf_event_open_sys as perf;
use perf_event_open_sys::bindings::perf_event_attr;

use otlpprof_signal::thread_table::{
    FdChunk, SignalToken, missing_fd_chunk, note_fd, note_fd_closed, publish_fds,
};

/// Opens an event of one thread, on any CPU.
pub(super) fn open(attributes: &perf_event_attr, tid: i32) -> io::Result<i32> {
    let mut attributes = *attributes;
    let flags = u64::from(perf::bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes are complete and initialised, and contain their size.
    let fd = check(unsafe { perf::perf_event_open(&raw mut attributes, tid, -1, -1, flags) })?;
    if !is_in_our_share(fd) {
        // SAFETY: the descriptor was opened by this function, and no other code has it.
        unsafe { libc::close(fd) };
        return Err(io::Error::other(
            "the lower half of the descriptors that RLIMIT_NOFILE allows is in use",
        ));
    }
    Ok(fd)
}

/// Reads the kernel's restriction on the use of perf events, if it can be read.
pub(super) fn paranoia() -> Option<i32> {
    fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// Whether `fd` is in the lower half of the numbers that the process may have. The upper half is reserved for
/// the application, which depends on its descriptors. The limit is read each time, as it can be changed at
/// any time.
fn is_in_our_share(fd: i32) -> bool {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the kernel writes one rlimit if the call succeeds.
    let soft = unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, limit.as_mut_ptr()) != 0 {
            return false;
        }
        limit.assume_init().rlim_cur
    };
    u64::try_from(fd).is_ok_and(|fd| fd < soft / 2)
}

/// `struct f_owner_ex` (include/uapi/asm-generic/fcntl.h).
#[repr(C)]
struct OwnerEx {
    kind: i32,
    pid: i32,
}
const F_OWNER_TID: i32 = 0;
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

/// Directs the event's overflows to the thread `tid` as the signal `signal`, and starts the event. The
/// handler attributes the signals to the record that `token` names. `set` stores the descriptor in the
/// record; it is called before any signal can arrive.
pub(super) fn start_signals(
    fd: i32,
    tid: i32,
    signal: i32,
    token: SignalToken,
    set: impl FnOnce(),
) -> io::Result<()> {
    note_event(fd, token)?;
    set();
    let owner = OwnerEx { kind: F_OWNER_TID, pid: tid };
    // SAFETY: the caller owns the descriptor; the kernel reads one OwnerEx.
    unsafe {
        check(libc::fcntl(fd, F_SETOWN_EX, &raw const owner))?;
        check(libc::fcntl(fd, F_SETSIG, signal))?;
        check(libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC))?;
        check(perf::ioctls::ENABLE(fd, 0)).map(drop)
    }
}

/// Stops the event and closes it. One of the event's signals may still be pending in the thread.
pub(super) fn close(fd: i32) {
    // A forked child may still have the descriptor; closing it here alone would not stop the event then.
    // SAFETY: the descriptor is the caller's own until it is closed here.
    unsafe { perf::ioctls::DISABLE(fd, 0) };
    note_fd_closed(fd);
    // SAFETY: the descriptor is the caller's own until it is closed here.
    unsafe { libc::close(fd) };
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn note_event(fd: i32, token: SignalToken) -> io::Result<()> {
    if let Some(number) = missing_fd_chunk(fd) {
        // Never freed, since a signal may look up a descriptor at any time. Another thread may have published
        // a chunk first.
        // SAFETY: all zeroes is a valid array of atomics.
        let chunk: Box<FdChunk> = unsafe { Box::<FdChunk>::new_zeroed().assume_init() };
        let chunk = Box::into_raw(chunk);
        // SAFETY: the box has just been leaked.
        if !publish_fds(number, unsafe { &*chunk }) {
            // SAFETY: the chunk was not published, so this is the only pointer to it.
            drop(unsafe { Box::from_raw(chunk) });
        }
    }
    if note_fd(fd, token) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EMFILE)) }
}

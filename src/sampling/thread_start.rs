//! Catches threads at their birth: every loaded object's import of `pthread_create` is led to ours, which has
//! the new thread arm itself before it enters the application's start routine.
//!
//! The new thread begins in a trampoline that arms it, undoes its own frame and *jumps* to the start routine. The
//! routine's caller is the C library's thread entry, as ever: stacks keep their root, and the forced unwinding
//! of `pthread_exit` and cancellation meets no frame of ours.
//!
//! Threads made in other ways (a raw clone, a `pthread_create` found by dlsym, or stored in data) are the
//! poller's.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use parking_lot::Mutex;

use super::imports::Redirection;
use super::{own_threads, threads};
use crate::elf::loader_list::load_counts;
use crate::signal::cpu::SESSION;

type StartRoutine = extern "C" fn(*mut libc::c_void) -> *mut libc::c_void;
type PthreadCreate = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    StartRoutine,
    *mut libc::c_void,
) -> libc::c_int;

/// What a new thread is to do once it is armed. Returned in two registers, which the trampoline relies on.
#[repr(C)]
struct Start {
    routine: StartRoutine,
    argument: *mut libc::c_void,
}

/// What the creator hands to the new thread.
struct Birth {
    start: Start,
    excluded: bool,
}

/// The function that the dynamic linker finds for everybody; another tool's, if one has been preloaded.
fn real_pthread_create() -> Option<PthreadCreate> {
    static REAL: OnceLock<usize> = OnceLock::new();
    let address = *REAL.get_or_init(|| {
        // SAFETY: the name is a C string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"pthread_create".as_ptr()) as usize }
    });
    // SAFETY: it is the address of pthread_create, or null.
    unsafe { std::mem::transmute::<usize, Option<PthreadCreate>>(address) }
}

/// Stands in for `pthread_create` in other objects.
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: StartRoutine,
    argument: *mut libc::c_void,
) -> libc::c_int {
    let Some(real) = real_pthread_create() else { return libc::EAGAIN };
    // A panic of ours must not keep the application from its thread; the poller finds the thread then.
    let birth = catch_unwind(|| {
        if !SESSION.is_open() || own_threads::is_creating() {
            return None;
        }
        let birth = Birth { start: Start { routine, argument }, excluded: threads::is_excluded() };
        Some(Box::into_raw(Box::new(birth)))
    });
    let Ok(Some(birth)) = birth else {
        // SAFETY: the caller's own call.
        return unsafe { real(thread, attributes, routine, argument) };
    };
    // SAFETY: the caller's own call, but for the routine, which takes what it is given.
    let result = unsafe { real(thread, attributes, thread_entry, birth.cast()) };
    if result != 0 {
        // SAFETY: no thread was made: nobody else has the pointer.
        drop(unsafe { Box::from_raw(birth) });
    }
    result
}

/// Where new threads begin. `begin` gives the routine and its argument in the first two result registers; the
/// frame is gone when the routine is jumped to.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn thread_entry(_birth: *mut libc::c_void) -> *mut libc::c_void {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {begin}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "mov rdi, rdx",
        "jmp rax",
        ".cfi_endproc",
        begin = sym begin,
    )
}

/// Where new threads begin. `begin` gives the routine and its argument in the first two result registers; the
/// frame is gone when the routine is jumped to. x16 may be jumped to where calls are (BTI).
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn thread_entry(_birth: *mut libc::c_void) -> *mut libc::c_void {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "hint #34",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset w30, -8",
        ".cfi_offset w29, -16",
        "mov x29, sp",
        "bl {begin}",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore w30",
        ".cfi_restore w29",
        "mov x16, x0",
        "mov x0, x1",
        "br x16",
        ".cfi_endproc",
        begin = sym begin,
    )
}

extern "C" fn begin(birth: *mut Birth) -> Start {
    // SAFETY: the creator leaked the box for this thread.
    let Birth { start, excluded } = *unsafe { Box::from_raw(birth) };
    // A panic of ours must not keep the application from its thread; the poller finds the thread then.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if excluded {
            threads::exclude_current_thread();
        } else {
            threads::current_thread_born();
        }
    }));
    start
}

static IMPORTS: Mutex<Option<Redirection>> = Mutex::new(None);

/// Leads the imports of every object to us that was loaded since the last time. Cheap if there is none.
pub(super) fn install() {
    if real_pthread_create().is_none() {
        return;
    }
    let mut imports = IMPORTS.lock();
    let hook = pthread_create as *const () as u64;
    let redirection = imports.get_or_insert_with(|| Redirection::new(vec![vec![("pthread_create", hook)]]));
    redirection.install(load_counts(), |_, _, _| true);
}

/// Gives every import back what it held. Threads that are being created at this moment may still come by.
pub(super) fn remove() {
    if let Some(redirection) = IMPORTS.lock().take() {
        redirection.remove();
    }
}

//! Arms threads when they start: every loaded object's import of `pthread_create` is redirected to our
//! function, which makes the new thread arm itself before it enters the application's start routine.
//!
//! The new thread begins in a trampoline that arms it, removes its own frame and *jumps* to the start
//! routine. The routine's caller is the C library's thread entry, as without us. So stacks keep their root,
//! and the forced unwinding of `pthread_exit` and cancellation meets no frame of ours.
//!
//! Threads that are created in other ways (by a raw clone, or by a `pthread_create` found by dlsym or stored
//! in data) are found by the poller.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use otlpprof_elf::loader_list::load_counts;
use otlpprof_signal::cpu::SESSION;
use parking_lot::Mutex;

use super::imports::Redirection;
use super::{own_threads, threads};

type StartRoutine = extern "C" fn(*mut libc::c_void) -> *mut libc::c_void;
type PthreadCreate = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    StartRoutine,
    *mut libc::c_void,
) -> libc::c_int;

/// The routine that a new thread enters once it is armed. Returned in two registers, on which the trampoline
/// relies.
#[repr(C)]
struct Start {
    routine: StartRoutine,
    argument: *mut libc::c_void,
}

/// The data that the creator passes to the new thread.
struct StartArguments {
    start: Start,
    excluded: bool,
}

/// Returns the function that the dynamic linker finds for every object: another tool's function, if one has
/// been preloaded.
fn real_pthread_create() -> Option<PthreadCreate> {
    static REAL: OnceLock<usize> = OnceLock::new();
    let address = *REAL.get_or_init(|| {
        // SAFETY: the name is a C string.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"pthread_create".as_ptr()) as usize }
    });
    // SAFETY: the address of pthread_create, or null.
    unsafe { std::mem::transmute::<usize, Option<PthreadCreate>>(address) }
}

/// The replacement of `pthread_create` in other objects.
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: StartRoutine,
    argument: *mut libc::c_void,
) -> libc::c_int {
    let Some(real) = real_pthread_create() else { return libc::EAGAIN };
    // A panic here must not keep the application from creating its thread; the poller then finds the thread.
    let birth = catch_unwind(|| {
        if !SESSION.is_open() || own_threads::is_creating() {
            return None;
        }
        let birth = StartArguments { start: Start { routine, argument }, excluded: threads::is_excluded() };
        Some(Box::into_raw(Box::new(birth)))
    });
    let Ok(Some(birth)) = birth else {
        // SAFETY: the caller's own call, with the caller's arguments.
        return unsafe { real(thread, attributes, routine, argument) };
    };
    // SAFETY: the caller's own call, except for the routine, which takes the argument that is passed with it.
    let result = unsafe { real(thread, attributes, thread_entry, birth.cast()) };
    if result != 0 {
        // SAFETY: no thread was created, so this is the only pointer to the box.
        drop(unsafe { Box::from_raw(birth) });
    }
    result
}

/// The function in which new threads begin. `begin` returns the routine and its argument in the first two
/// result registers; the frame has been removed when the routine is jumped to.
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

/// The function in which new threads begin. `begin` returns the routine and its argument in the first two
/// result registers; the frame has been removed when the routine is jumped to. A jump by x16 may enter a
/// function whose entry allows only calls (BTI).
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

extern "C" fn begin(birth: *mut StartArguments) -> Start {
    // SAFETY: the creator has leaked the box for this thread.
    let StartArguments { start, excluded } = *unsafe { Box::from_raw(birth) };
    // A panic here must not keep the application's thread from starting; the poller then finds the thread.
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

/// Redirects the imports of every object that was loaded since the last call. Cheap if there is none.
pub(super) fn install() {
    if real_pthread_create().is_none() {
        return;
    }
    let mut imports = IMPORTS.lock();
    let hook = pthread_create as *const () as u64;
    let redirection = imports.get_or_insert_with(|| Redirection::new(vec![vec![("pthread_create", hook)]]));
    redirection.install(load_counts(), |_, _, _| true);
}

/// Restores every import. Threads that are being created at this moment may still begin in the trampoline.
pub(super) fn remove() {
    if let Some(redirection) = IMPORTS.lock().take() {
        redirection.remove();
    }
}

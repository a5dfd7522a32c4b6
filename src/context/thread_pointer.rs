//! The pointer by which outside readers find what a thread works for: `otel_thread_ctx_v1`, a thread-local variable of
//! OpenTelemetry's thread context (OTEP 4947, "Thread-Local Variable"), in the library's dynamic symbol table.
//!
//! Readers find the variable by the relocation of its TLS descriptor, the dialect that the specification wants. Rust has no
//! thread-local variable of a given name and dialect: so it is an ordinary one, put into the section of the thread-local
//! ones, where it is the pattern of a variable that each thread has. The name stands for no address; [`slot`] asks for the
//! thread's own as C compilers do (ELF Handling For Thread-Local Storage, TLS descriptors).
//!
//! A reader looks while the thread is stopped: of what the thread stores itself the compiler must keep the order, and the
//! processor need not. Others may store the pointer too, as long as the thread is there.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering, compiler_fence};

/// Whether readers find the variable.
pub const IS_EXPORTED: bool = cfg!(exports_thread_context);

#[allow(non_upper_case_globals, reason = "the specification names it")]
#[cfg_attr(exports_thread_context, unsafe(no_mangle))]
// SAFETY: the section has zeros for each thread, which is what the variable begins with; nothing refers to it but `slot`.
#[unsafe(link_section = ".tbss")]
static otel_thread_ctx_v1: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The current thread's variable.
fn slot() -> &'static AtomicPtr<c_void> {
    let address: usize;
    // SAFETY: the sequence that linkers know and replace; it calls a function of the dynamic linker, which takes the
    // descriptor in the first register and leaves the variable's distance from the thread's own area there. The first call
    // in a thread may allocate. Newer C libraries keep all other registers, older ones not those of vectors.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "lea rax, [rip + {variable}@TLSDESC]",
            "call [rax + {variable}@TLSCALL]",
            "add rax, qword ptr fs:[0]",
            variable = sym otel_thread_ctx_v1,
            out("rax") address,
            clobber_abi("C"),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "adrp x0, :tlsdesc:{variable}",
            "ldr x1, [x0, :tlsdesc_lo12:{variable}]",
            "add x0, x0, :tlsdesc_lo12:{variable}",
            ".tlsdesccall {variable}",
            "blr x1",
            "mrs x1, tpidr_el0",
            "add x0, x0, x1",
            variable = sym otel_thread_ctx_v1,
            out("x0") address,
            clobber_abi("C"),
        );
    }
    // SAFETY: the thread's own variable, which is there until the thread's last moment, and is not used after that.
    unsafe { &*std::ptr::with_exposed_provenance(address) }
}

/// A thread's pointer. Not to be used when the thread has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadPointer(&'static AtomicPtr<c_void>);

impl ThreadPointer {
    /// That of the current thread.
    pub(super) fn of_current_thread() -> Self {
        Self(slot())
    }

    /// Has the thread's context be found at `record`; with null none is found. What was written before is there for who finds
    /// it, and what the thread itself writes after this call is not found by the earlier pointer.
    pub(super) fn point_to(self, record: *const c_void) {
        self.0.store(record.cast_mut(), Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    /// Where the thread's context is found; null where none is.
    #[cfg(test)]
    pub(super) fn target(self) -> *const c_void {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn every_thread_has_a_pointer_of_its_own_which_begins_as_null() {
        static SOMETHING: u64 = 0;
        let something: *const c_void = ptr::from_ref(&SOMETHING).cast();
        let pointer = ThreadPointer::of_current_thread();
        pointer.point_to(something);
        std::thread::spawn(move || {
            let other = ThreadPointer::of_current_thread();
            assert!(other.target().is_null());
            other.point_to(ptr::from_ref(&SOMETHING).cast());
            pointer.point_to(ptr::null());
            assert!(!other.target().is_null());
            pointer.point_to(ptr::from_ref(&SOMETHING).cast());
        })
        .join()
        .unwrap();
        assert_eq!(slot().load(Ordering::Relaxed).cast_const(), something);
        pointer.point_to(ptr::null());
    }
}

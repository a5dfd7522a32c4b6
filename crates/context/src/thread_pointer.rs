//! The pointer by which outside readers find a thread's context: `otel_thread_ctx_v1`, a thread-local
//! variable of OpenTelemetry's thread context (OTEP 4947, "Thread-Local Variable"), in the library's dynamic
//! symbol table.
//!
//! Readers find the variable by the relocation of its TLS descriptor, which is the TLS dialect that the
//! specification demands. Rust cannot define a thread-local variable of a given name and dialect. So the
//! variable is an ordinary one, placed in the section of thread-local variables, where it serves as the
//! initial image of each thread's variable. Its own address means nothing. `slot` computes the address of
//! the thread's variable as C compilers do (ELF Handling For Thread-Local Storage, TLS descriptors).
//!
//! A reader reads while the thread is stopped: the compiler must keep the order of the thread's own stores,
//! the processor need not. Other threads may store the pointer too, as long as the thread exists.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering, compiler_fence};

/// Whether readers find the variable.
pub const IS_EXPORTED: bool = cfg!(exports_thread_context);

#[allow(non_upper_case_globals, reason = "the specification names it")]
#[cfg_attr(exports_thread_context, unsafe(no_mangle))]
// SAFETY: the section is zero in each thread, which is the variable's initial value; only `slot` refers to
// it.
#[unsafe(link_section = ".tbss")]
static otel_thread_ctx_v1: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Returns the current thread's variable.
fn slot() -> &'static AtomicPtr<c_void> {
    let address: usize;
    // SAFETY: this is the sequence that linkers know and replace. It calls a function of the dynamic linker,
    // which takes the descriptor in the first register and returns there the variable's offset from the
    // thread pointer. The first call in a thread may allocate. Newer C libraries preserve all other
    // registers; older ones do not preserve vector registers.
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
    // SAFETY: this is aarch64's form of the same sequence.
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
    // SAFETY: the thread's own variable exists until the thread's last moment, and is not used after that.
    unsafe { &*std::ptr::with_exposed_provenance(address) }
}

/// A thread's pointer. Must not be used after the thread has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadPointer(&'static AtomicPtr<c_void>);

impl ThreadPointer {
    /// The pointer of the current thread.
    pub(super) fn of_current_thread() -> Self {
        Self(slot())
    }

    /// Points readers to the thread's context at `record`; null: to none. A reader that finds the record sees
    /// what was written before this call. A reader that found the earlier target does not see what the thread
    /// itself writes after this call.
    pub(super) fn point_to(self, record: *const c_void) {
        self.0.store(record.cast_mut(), Ordering::Release);
        compiler_fence(Ordering::SeqCst);
    }

    /// The target of the pointer; null if there is none.
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

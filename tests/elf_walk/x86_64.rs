//! The parts of the test that are specific to x86_64.

use otlpprof_core::unwind_rule::{CfaRule, FpRule};
use otlpprof_elf::unwind::FrameSections;

use super::{Position, walks_in};
use otlpprof_testkit::elf_objects::{Library, compile_library, image_of};

/// The DWARF numbers of SP and FP.
pub(super) const SP: usize = 7;
pub(super) const FP: usize = 6;

/// Stores the return address, and the values of SP and FP after the return.
#[unsafe(naked)]
pub(super) extern "C" fn capture(position: *mut Position) {
    std::arch::naked_asm!(
        "mov rax, [rsp]",
        "mov [rdi], rax",
        "lea rax, [rsp + 8]",
        "mov [rdi + 8], rax",
        "mov [rdi + 16], rbp",
        "ret"
    )
}

/// The number of walks from a callback of a function that realigns its stack.
pub(super) fn walks_through_realigned_stack(call_back: extern "C" fn()) -> Option<usize> {
    let directory = tempfile::tempdir().unwrap();
    let source = "
        #include <alloca.h>
        void realigned(void (*call_back)(void), int size) {
            volatile char aligned[64] __attribute__((aligned(64)));
            volatile char *more = alloca(size);
            more[0] = aligned[0] = 1;
            call_back();
            aligned[1] = more[0];
        }";
    let path = compile_library(directory.path(), "librealigned.so", source, &[]);
    let library = Library::open(&path);
    let table = FrameSections::of_image(&image_of(&path).unwrap()).unwrap().compile();
    let realigned = table
        .rows()
        .filter_map(|row| row.1)
        .find(|rule| matches!(rule.cfa, CfaRule::FpDeref { .. }) && matches!(rule.fp, FpRule::AtFpPlus(_)));
    assert!(realigned.is_some(), "the compiler realigns through a saved argument pointer");
    let walks = walks_in(|| {
        // SAFETY: the symbol is the function `realigned` in the source above, with this signature.
        let realigned = unsafe {
            std::mem::transmute::<*const (), extern "C" fn(extern "C" fn(), i32)>(
                library.symbol("realigned") as *const ()
            )
        };
        realigned(call_back, 100);
    });
    Some(walks)
}

//! Selects the linker that crate `context` has chosen, for the tests of this package: a program that links
//! that crate exports its thread-local variable.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(folder) = env::var("DEP_OTEL_THREAD_CTX_V1_LLD") {
        println!("cargo::rustc-link-arg=-B{folder}");
        println!("cargo::rustc-link-arg=-fuse-ld=lld");
    }
}

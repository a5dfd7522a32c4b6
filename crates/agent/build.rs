//! Passes on the link options of crate `context`, which choose the linker, for the tests of this package: a
//! program that links that crate exports its thread-local variable.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let options = env::var("DEP_OTEL_THREAD_CTX_V1_LINK_OPTIONS").unwrap_or_default();
    options.split_terminator('\t').for_each(|option| println!("cargo::rustc-link-arg={option}"));
}

//! Gives the agent and the command their link options.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    identify_products();
    link_agent();
    export_thread_context();
}

/// Gives the agent and the command a build-id, by which their frames and their debug files are identified.
fn identify_products() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,--build-id=sha1");
    println!("cargo::rustc-link-arg-bins=-Wl,--build-id=sha1");
}

/// Sets the agent's link options. The agent must stay mapped: HotSpot closes the library of an attach that
/// failed, while a signal handler or a thread of ours may still be inside it. A symbol that no library
/// defines is an error here, rather than in the process that loads the agent. Fuzzing is the exception: the
/// library then has the counters of a fuzz target, whose functions only the target's program defines.
fn link_agent() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    if env::var_os("CARGO_CFG_FUZZING").is_none() {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,defs");
    }
}

/// Passes on the link options of crate `context`, which choose the linker. Programs that contain the library,
/// such as tests, export its thread-local variable as well.
fn export_thread_context() {
    let options = env::var("DEP_OTEL_THREAD_CTX_V1_LINK_OPTIONS").unwrap_or_default();
    options.split_terminator('\t').for_each(|option| println!("cargo::rustc-link-arg={option}"));
}

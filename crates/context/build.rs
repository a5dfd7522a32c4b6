//! Decides whether the thread-local variable `otel_thread_ctx_v1` is exported, which only LLD can do.
//!
//! Rust refers to an exported symbol as to data of an object file of its own, and GNU ld refuses a
//! thread-local symbol in its place. LLD comes with Rust, and is zig's linker, which links a release
//! (`OTLPPROF_PORTABLE`, set by `scripts/build-release.sh`). A package that links this crate reads the link
//! options, with tabs between them, from `DEP_OTEL_THREAD_CTX_V1_LINK_OPTIONS`, in its build script.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=OTLPPROF_PORTABLE");
    println!("cargo::rustc-check-cfg=cfg(exports_thread_context)");
    if env::var_os("OTLPPROF_PORTABLE").is_some() {
        println!("cargo::rustc-cfg=exports_thread_context");
    } else if let Some(folder) = find_lld() {
        println!("cargo::rustc-cfg=exports_thread_context");
        let options = [format!("-B{}", folder.display()), "-fuse-ld=lld".to_owned()];
        options.iter().for_each(|option| println!("cargo::rustc-link-arg={option}"));
        println!("cargo::metadata=link_options={}", options.join("\t"));
    } else {
        println!(
            "cargo::warning=no LLD in Rust's folder: the agent will not publish contexts to other processes"
        );
    }
}

/// Returns the folder of the `ld.lld` that Rust has for this machine.
fn find_lld() -> Option<PathBuf> {
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let host = env::var("HOST").expect("cargo sets HOST");
    let folder = sysroot.join("lib/rustlib").join(host).join("bin/gcc-ld");
    folder.join("ld.lld").is_file().then_some(folder)
}

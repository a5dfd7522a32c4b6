//! Builds everything that is not Rust: the libraries and agents of `native/`, which tests and a benchmark
//! load, the Java API (`java/api`) and the Java test programs (`java/testprograms`).
//!
//! Tests find the products by the constants of `src/lib.rs`. Scripts find copies of some of them in
//! `target/<profile>/`. A library that only scripts use is there too: `libhandlertimer.so`, which measures
//! how long a signal handler runs.
//!
//! Tests for musl (`scripts/test-musl.sh`) have these libraries too, except the handler guard, which depends
//! on glibc, and the sample library's entry points for Java: no JVM runs there.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The oldest Java on which the API and the programs run.
const JAVA_RELEASE: &str = "11";

fn main() {
    // The paths below begin at the project's folder, in which the sources are.
    env::set_current_dir("../..").expect("this package has its own folder in the project's");
    for path in ["build.rs", "../../native", "../../java"] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=JAVA_HOME");

    let out_dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let jdk = find_jdk();
    if jdk.is_none() {
        println!(
            "cargo::warning=no JDK with javac in JAVA_HOME, PATH or /usr/lib/jvm: the Java test programs are \
             not built, and the tests that run them will fail (scripts/install-toolchain.sh installs one)"
        );
        // This file never exists, so that the next build looks for a JDK again.
        println!("cargo::rerun-if-changed={}", out_dir.join("no-jdk").display());
    }
    build_test_libraries(&out_dir, jdk.as_deref().filter(|_| is_for_glibc()));
    let (mut api, mut programs) = (PathBuf::new(), PathBuf::new());
    if let Some(jdk) = &jdk {
        api = compile_java(jdk, &out_dir, "api", "java/api/io/otlpprof", "io/otlpprof", None);
        programs =
            compile_java(jdk, &out_dir, "testprograms", "java/testprograms/programs", "programs", Some(&api));
    }
    println!("cargo::rustc-env=OTLPPROF_API_CLASSES={}", api.display());
    println!("cargo::rustc-env=OTLPPROF_TEST_CLASSES={}", programs.display());
}

/// Builds the libraries of `native/`.
fn build_test_libraries(out_dir: &Path, jdk: Option<&Path>) {
    for (name, variable, frame_pointers) in [
        ("libddproftest.so", "OTLPPROF_DDPROFTEST", false),
        ("libddproftest-fp.so", "OTLPPROF_DDPROFTEST_FP", true),
    ] {
        let library = out_dir.join(name);
        build_sample_library(&library, frame_pointers, jdk);
        copy(&library, &profile_dir(out_dir).join(name));
        println!("cargo::rustc-env={variable}={}", library.display());
    }
    if is_for_glibc() {
        let guard = out_dir.join("libhandlerguard.so");
        build_handler_guard(&guard);
        copy(&guard, &profile_dir(out_dir).join("libhandlerguard.so"));
        println!("cargo::rustc-env=OTLPPROF_HANDLER_GUARD={}", guard.display());
    }
    let timer = out_dir.join("libhandlertimer.so");
    run(shared_library(&timer, false).arg("native/handlertimer/timer.c").arg("-ldl"));
    copy(&timer, &profile_dir(out_dir).join("libhandlertimer.so"));
    let damage = out_dir.join("libvmdamage.so");
    run(shared_library(&damage, false).arg("native/vmdamage/damage.c").arg("-ldl"));
    copy(&damage, &profile_dir(out_dir).join("libvmdamage.so"));
    println!("cargo::rustc-env=OTLPPROF_VM_DAMAGE={}", damage.display());
    let unwinding = out_dir.join("libunwindingmalloc.so");
    let mut command = shared_library(&unwinding, false);
    // Without builtins, since the library defines functions that compilers know by name.
    run(command.arg("-fno-builtin").arg("native/unwindingmalloc/allocator.c").arg("-ldl"));
    println!("cargo::rustc-env=OTLPPROF_UNWINDING_MALLOC={}", unwinding.display());
    let allocating = out_dir.join("liballocating.so");
    run(shared_library(&allocating, false).arg("native/allocating/allocating.c").arg("-ldl"));
    println!("cargo::rustc-env=OTLPPROF_ALLOCATING={}", allocating.display());
    let clock = out_dir.join("libjumpingclock.so");
    run(shared_library(&clock, false).arg("native/jumpingclock/clock.c").arg("-ldl"));
    println!("cargo::rustc-env=OTLPPROF_JUMPING_CLOCK={}", clock.display());
    for (name, variable, function) in [
        ("libplugin-a.so", "OTLPPROF_PLUGIN_A", "ddprof_plugin_a"),
        ("libplugin-b.so", "OTLPPROF_PLUGIN_B", "ddprof_plugin_b"),
    ] {
        let library = out_dir.join(name);
        let mut command = shared_library(&library, false);
        command.arg(format!("-DDDPROF_PLUGIN_FUNCTION={function}"));
        run(command.arg("native/ddproftest/plugin/plugin.c"));
        println!("cargo::rustc-env={variable}={}", library.display());
    }
}

/// Whether the build is for glibc, rather than for musl.
fn is_for_glibc() -> bool {
    env::var_os("CARGO_CFG_TARGET_ENV").expect("cargo sets CARGO_CFG_TARGET_ENV") == "gnu"
}

/// Returns `target/<profile>`, given `target/<profile>/build/<package>/out`.
fn profile_dir(out_dir: &Path) -> PathBuf {
    out_dir.ancestors().nth(3).expect("cargo's OUT_DIR has three parents").to_path_buf()
}

/// Returns a command of the C compiler that links a shared library with a build-id and line tables. It
/// optimises in every profile, since the tests are about code as it runs in production.
fn shared_library(library: &Path, frame_pointers: bool) -> Command {
    let mut build = cc::Build::new();
    build.opt_level(2).debug(true).pic(true).force_frame_pointer(frame_pointers).cargo_metadata(false);
    let mut command = build.get_compiler().to_command();
    let frame_pointer_flag = if frame_pointers { "-fno-omit-frame-pointer" } else { "-fomit-frame-pointer" };
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", frame_pointer_flag]);
    command.args(["-shared", "-pthread", "-Wl,--build-id=sha1", "-o"]).arg(library);
    command
}

/// Links `native/interposer/*.c`, without builtins: the guard defines functions that compilers know by name.
fn build_handler_guard(library: &Path) {
    let mut command = shared_library(library, false);
    command.arg("-fno-builtin").args(files_in("native/interposer", "c")).arg("-ldl");
    run(&mut command);
}

/// Links `native/ddproftest/*.c`. Without a JDK there is no jni.h, and no entry point for Java.
fn build_sample_library(library: &Path, frame_pointers: bool, jdk: Option<&Path>) {
    let mut command = shared_library(library, frame_pointers);
    command.args(["-Wl,-soname,libddproftest.so"]);
    for source in files_in("native/ddproftest", "c") {
        if source.ends_with("jni.c") {
            let Some(jdk) = jdk else { continue };
            command.arg("-I").arg(jdk.join("include")).arg("-I").arg(jdk.join("include/linux"));
        }
        command.arg(source);
    }
    // libdl is a separate library before glibc 2.34.
    command.arg("-ldl");
    run(&mut command);
}

/// Compiles the sources of one package, with the classes in `class_path`. Returns the directory of the
/// compiled classes.
fn compile_java(
    jdk: &Path,
    out_dir: &Path,
    name: &str,
    sources: &str,
    package: &str,
    class_path: Option<&Path>,
) -> PathBuf {
    let classes = out_dir.join(name);
    // Removes classes whose sources no longer exist.
    let _ = fs::remove_dir_all(&classes);
    let mut command = Command::new(jdk.join("bin/javac"));
    // `-options`: newer compilers warn that support for old releases will be dropped.
    command.args([
        "--release",
        JAVA_RELEASE,
        "-g",
        "-encoding",
        "UTF-8",
        "-Xlint:all,-options",
        "-Werror",
        "-d",
    ]);
    command.arg(&classes);
    if let Some(class_path) = class_path {
        command.arg("-cp").arg(class_path);
    }
    run(command.args(files_in(sources, "java")));

    let copies = profile_dir(out_dir).join(name);
    let _ = fs::remove_dir_all(&copies);
    for class in files_in(classes.join(package), "class") {
        let relative = class.strip_prefix(&classes).expect("listed below it");
        copy(&class, &copies.join(relative));
    }
    classes
}

/// Returns the JDK of JAVA_HOME, or the JDK of the javac in PATH, or the first one in Debian's directory.
fn find_jdk() -> Option<PathBuf> {
    let java_home = env::var_os("JAVA_HOME").map(PathBuf::from);
    let in_path = env::var_os("PATH")
        .into_iter()
        .flat_map(|path| env::split_paths(&path).collect::<Vec<_>>())
        .filter_map(|dir| dir.join("javac").canonicalize().ok())
        .filter_map(|javac| Some(javac.parent()?.parent()?.to_path_buf()));
    let mut installed: Vec<_> =
        fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    installed.sort();
    java_home
        .into_iter()
        .chain(in_path)
        .chain(installed)
        .find(|jdk| jdk.join("bin/javac").is_file() && jdk.join("include/jni.h").is_file())
}

/// Returns the files of one directory with this extension, sorted so that every build is the same.
fn files_in(directory: impl AsRef<Path>, extension: &str) -> Vec<PathBuf> {
    let directory = directory.as_ref();
    let entries = fs::read_dir(directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension() == Some(OsStr::new(extension)))
        .collect();
    files.sort();
    files
}

/// Copies to a new file and renames it, so that a program that has the old file mapped keeps it.
fn copy(from: &Path, to: &Path) {
    let parent = to.parent().expect("a file has a parent");
    let temporary = to.with_extension("new");
    fs::create_dir_all(parent)
        .and_then(|()| fs::copy(from, &temporary))
        .and_then(|_| fs::rename(&temporary, to))
        .unwrap_or_else(|e| panic!("{}: {e}", to.display()));
}

fn run(command: &mut Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{command:?}: {status}"),
        Err(e) => panic!("{command:?}: {e}"),
    }
}

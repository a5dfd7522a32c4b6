//! The hand-written JVMTI tables, compared with the JDKs' own `jvmti.h` by a C compiler.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use otlpprof_jvm::jvmti::{Capability, Phase};
use otlpprof_jvm::jvmti_env::SLOTS;
use otlpprof_jvm::jvmti_error::ERROR_NAMES;
use otlpprof_jvm::jvmti_events::JvmtiEvent;
use otlpprof_jvm::jvmti_table::{Capabilities, FUNCTIONS, REPLACED, RawThreadInfo};
use otlpprof_testkit::jdk::java_builds;
use otlpprof_testkit::jvm_in_process::{TestJvm, for_each_jdk};
use otlpprof_testkit::skipped::not_tested;

/// Events with their names in `jvmti.h`: of the enumerator and of the callback.
const EVENTS: [(JvmtiEvent, &str, &str); 10] = [
    (JvmtiEvent::ClassFileLoadHook, "CLASS_FILE_LOAD_HOOK", "ClassFileLoadHook"),
    (JvmtiEvent::VmInit, "VM_INIT", "VMInit"),
    (JvmtiEvent::VmDeath, "VM_DEATH", "VMDeath"),
    (JvmtiEvent::ThreadStart, "THREAD_START", "ThreadStart"),
    (JvmtiEvent::ThreadEnd, "THREAD_END", "ThreadEnd"),
    (JvmtiEvent::VmStart, "VM_START", "VMStart"),
    (JvmtiEvent::DynamicCodeGenerated, "DYNAMIC_CODE_GENERATED", "DynamicCodeGenerated"),
    (JvmtiEvent::DataDumpRequest, "DATA_DUMP_REQUEST", "DataDumpRequest"),
    (JvmtiEvent::GarbageCollectionStart, "GARBAGE_COLLECTION_START", "GarbageCollectionStart"),
    (JvmtiEvent::GarbageCollectionFinish, "GARBAGE_COLLECTION_FINISH", "GarbageCollectionFinish"),
];

/// The JDKs that have headers; runtimes have none.
fn homes_with_headers() -> Vec<PathBuf> {
    let homes: Vec<_> =
        java_builds().into_iter().filter(|home| home.join("include/jvmti.h").is_file()).collect();
    if homes.is_empty() {
        not_tested("no JDK with include/jvmti.h");
    }
    homes
}

fn version(home: &Path) -> u32 {
    let release = std::fs::read_to_string(home.join("release")).unwrap();
    let version = release.split("JAVA_VERSION=\"").nth(1).and_then(|rest| rest.split(['.', '"']).next());
    version.unwrap().parse().unwrap()
}

/// Compiles and runs a program with these statements in `main`. Parses its output, which has lines of the
/// form "name number".
fn ask_the_header(home: &Path, statements: &str) -> BTreeMap<String, i64> {
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("ask.c"), directory.path().join("ask"));
    let prelude = "#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n#include <jvmti.h>\n";
    std::fs::write(&source, format!("{prelude}int main(void) {{\n{statements}return 0;\n}}\n")).unwrap();
    let include = home.join("include");
    let compiled = Command::new("cc")
        .arg("-I")
        .arg(&include)
        .arg("-I")
        .arg(include.join("linux"))
        .args([&source, Path::new("-o"), &program])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let printed = Command::new(program).output().unwrap();
    assert!(printed.status.success());
    let lines = String::from_utf8(printed.stdout).unwrap();
    lines
        .lines()
        .map(|line| {
            let (name, number) = line.split_once(' ').unwrap();
            (name.to_owned(), number.parse().unwrap())
        })
        .collect()
}

fn print(statements: &mut String, name: &str, value: &str) {
    writeln!(statements, "printf(\"{name} %ld\\n\", (long)({value}));").unwrap();
}

#[test]
fn functions_are_in_their_slots() {
    for home in homes_with_headers() {
        let mut statements = String::new();
        for (name, _) in FUNCTIONS.iter().chain(&REPLACED) {
            let offset = format!("offsetof(jvmtiInterface_1, {name}) / sizeof(void *) + 1");
            print(&mut statements, name, &offset);
        }
        print(&mut statements, "SLOTS", "sizeof(jvmtiInterface_1) / sizeof(void *)");
        let mut ours: BTreeMap<_, _> =
            FUNCTIONS.iter().chain(&REPLACED).map(|&(name, slot)| (name.to_owned(), slot as i64)).collect();
        ours.insert("SLOTS".to_owned(), SLOTS as i64);
        print(&mut statements, "jvmtiThreadInfo", "sizeof(jvmtiThreadInfo)");
        ours.insert("jvmtiThreadInfo".to_owned(), size_of::<RawThreadInfo>() as i64);
        print(&mut statements, "context_class_loader", "offsetof(jvmtiThreadInfo, context_class_loader)");
        let offset = std::mem::offset_of!(RawThreadInfo, context_class_loader);
        ours.insert("context_class_loader".to_owned(), offset as i64);
        assert_eq!(ask_the_header(&home, &statements), ours, "{}", home.display());
    }
}

#[test]
fn events_callbacks_and_errors_have_their_numbers() {
    for home in homes_with_headers() {
        let mut statements = String::new();
        let mut ours = BTreeMap::new();
        for (event, enumerator, callback) in EVENTS {
            print(&mut statements, enumerator, &format!("JVMTI_EVENT_{enumerator}"));
            print(
                &mut statements,
                callback,
                &format!("offsetof(jvmtiEventCallbacks, {callback}) / sizeof(void *)"),
            );
            ours.insert(enumerator.to_owned(), event as i64);
            // Tests in jvmti_events.rs compare the structure of callbacks with the events' numbers.
            ours.insert(callback.to_owned(), event as i64 - JvmtiEvent::VmInit as i64);
        }
        // This error code was added with virtual threads.
        let known = |name| version(&home) >= 21 || name != "UNSUPPORTED_OPERATION";
        for &(code, name) in ERROR_NAMES.iter().filter(|&&(_, name)| known(name)) {
            let prefix = if name.starts_with("JNI_") { "" } else { "JVMTI_ERROR_" };
            print(&mut statements, name, &format!("{prefix}{name}"));
            ours.insert(name.to_owned(), i64::from(code));
        }
        assert_eq!(ask_the_header(&home, &statements), ours, "{}", home.display());
    }
}

#[test]
fn capabilities_have_their_bits() {
    let known = [
        (Capability::AllClassHookEvents, "can_generate_all_class_hook_events", 11),
        (Capability::RetransformClasses, "can_retransform_classes", 11),
        (Capability::GarbageCollectionEvents, "can_generate_garbage_collection_events", 11),
        (Capability::SupportVirtualThreads, "can_support_virtual_threads", 21),
    ];
    for home in homes_with_headers() {
        let version = version(&home);
        for (capability, name, _) in known.iter().filter(|(_, _, since)| *since <= version) {
            let mut statements = String::from("jvmtiCapabilities set; unsigned words[4];\n");
            writeln!(
                statements,
                "memset(&set, 0, sizeof set); set.{name} = 1; memcpy(words, &set, sizeof words);"
            )
            .unwrap();
            for word in 0..4 {
                print(&mut statements, &word.to_string(), &format!("words[{word}]"));
            }
            print(&mut statements, "size", "sizeof set");
            let theirs = ask_the_header(&home, &statements);
            let ours = Capabilities::default().with(*capability);
            assert_eq!(theirs["size"], size_of::<Capabilities>() as i64);
            for word in 0..4 {
                assert_eq!(theirs[&word.to_string()], i64::from(ours.0[word]), "{name} word {word}");
            }
            assert!(ours.has(*capability));
        }
    }
}

#[test]
fn the_wrappers_work() {
    for_each_jdk("child_calls_jvmti", "");
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_calls_jvmti() {
    let jvm = TestJvm::create();
    let jvmti = jvm.jvmti;
    assert_eq!(jvmti.phase().unwrap(), Phase::Live);
    assert_eq!(jvmti.version_number().unwrap() >> 28, 3, "JVMTI's interface type");

    let vm_name = jvmti.system_property(c"java.vm.specification.name").unwrap();
    assert_eq!(vm_name.as_deref(), Some("Java Virtual Machine Specification"));
    assert_eq!(jvmti.system_property(c"no.such.property").unwrap(), None);

    let wanted = Capabilities::default().with(Capability::GarbageCollectionEvents);
    assert!(!jvmti.capabilities().unwrap().has(Capability::GarbageCollectionEvents));
    assert!(jvmti.potential_capabilities().unwrap().has(Capability::GarbageCollectionEvents));
    let refused = jvmti.set_event_enabled(JvmtiEvent::GarbageCollectionStart, true).unwrap_err();
    assert_eq!(refused.to_string(), "JVMTI SetEventNotificationMode failed: MUST_POSSESS_CAPABILITY (99)");
    jvmti.add_capabilities(wanted).unwrap();
    assert!(jvmti.capabilities().unwrap().has(Capability::GarbageCollectionEvents));
    jvmti.set_event_enabled(JvmtiEvent::GarbageCollectionStart, true).unwrap();

    let memory = jvmti.allocate(16).unwrap();
    // SAFETY: `memory` is 16 bytes that JVMTI allocated for us; it is deallocated once, after the last use.
    unsafe {
        memory.as_ptr().write_bytes(0xff, 16);
        jvmti.deallocate(memory.as_ptr());
    }
    assert_eq!(jvmti.local_storage().unwrap(), None);
    jvmti.set_local_storage(Some(std::ptr::NonNull::from(&EVENTS).cast())).unwrap();
    assert_eq!(jvmti.local_storage().unwrap(), Some(std::ptr::NonNull::from(&EVENTS).cast()));

    assert!(jvmti.all_threads().unwrap().len() > 3);
    // SAFETY: null stands for the current thread. The environment is not used after dispose.
    unsafe {
        let main = jvmti.thread_info(std::ptr::null_mut()).unwrap();
        assert_eq!((&*main.name, main.daemon), ("main", false));
        jvmti.dispose().unwrap();
    }
}

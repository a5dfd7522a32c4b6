//! The layout of every JVM that can be had, built and checked inside it.

mod jvm_support;

use jvm_support::{STUBS, TestJvm, for_each_jdk};
use otlpprof::core::vm_layout::{BlobPart, CodeRange, CodeletKind, VmLayout};
use otlpprof::jvm::layout::{self, LayoutError, Probe};
use otlpprof::signal::safe_load::ProcessMemory;

/// Enough compilations before the checks to have compiled methods among the code.
const MIXED: &str = "-Xbatch -XX:CompileThresholdScaling=0.02";

#[test]
fn layouts_build_and_check_on_every_jdk() {
    for_each_jdk("child_builds_and_checks", "");
}

#[test]
fn layouts_build_and_check_in_other_configurations() {
    for options in [
        "-Xint",
        "-XX:-SegmentedCodeCache -XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UseCompressedOops",
        "-XX:+UnlockExperimentalVMOptions -XX:+IgnoreUnrecognizedVMOptions -XX:+UseCompactObjectHeaders",
        "-XX:+UnlockExperimentalVMOptions -XX:+UseZGC -XX:+IgnoreUnrecognizedVMOptions -XX:+ZGenerational",
    ] {
        for_each_jdk("child_builds_and_checks", options);
    }
}

#[test]
fn a_wrong_offset_is_found_and_named() {
    for_each_jdk("child_finds_wrong_offsets", MIXED);
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_builds_and_checks() {
    let jvm = TestJvm::create();
    let layout = jvm.layout();
    // SAFETY: the environment is this thread's.
    let probe = unsafe { Probe::of_current_thread(jvm.env) }.unwrap();
    layout::check(&layout, &ProcessMemory, &probe).unwrap();

    let of_kind = |kind| layout.stubs.codelets.iter().filter(|codelet| codelet.kind == kind).count();
    for kind in [
        CodeletKind::MethodEntry,
        CodeletKind::SynchronizedMethodEntry,
        CodeletKind::NativeMethodEntry,
        CodeletKind::SynchronizedNativeMethodEntry,
    ] {
        assert_eq!(of_kind(kind), 1, "{kind:?}");
    }
    assert!(of_kind(CodeletKind::FramelessEntry) > 10);
    assert_eq!(of_kind(CodeletKind::Return), 7);
    assert!(layout.stubs.codelets.is_sorted_by_key(|codelet| codelet.code.start));
    if cfg!(target_arch = "x86_64") {
        let framed = layout.stubs.interpreter_code.entries.iter().filter(|entry| entry.push_fp != 0);
        assert_eq!(framed.count(), 4, "every framed entry shows its stages");
        assert!(layout.stubs.interpreter_code.exits.len() >= 9, "seven returns and two native entries");
    }

    check_stubs(&layout);
}

fn check_stubs(layout: &VmLayout) {
    let call_stub = STUBS.range_of("call_stub").expect("the call stub is told of");
    assert!(call_stub.contains(layout.stubs.call_stub_return));
    assert_eq!(STUBS.name_at(layout.stubs.call_stub_return).as_deref(), Some("call_stub"));
    assert_eq!(STUBS.name_at(layout.stubs.interpreter.start).as_deref(), Some("Interpreter"));
    let stubs = &layout.stubs;
    let continuations = [stubs.cont_thaw, stubs.cont_return_barrier, stubs.cont_return_barrier_exception];
    if layout.java_version >= 21 {
        for range in continuations {
            assert!(range.start < range.end);
        }
        assert!(stubs.method_entry_barrier.start < stubs.method_entry_barrier.end);
        assert!(layout.continuation.is_some_and(|continuation| continuation.frozen.is_some()));
    } else {
        assert_eq!(continuations, [CodeRange::default(); 3]);
        assert_eq!(layout.continuation, None);
    }
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_finds_wrong_offsets() {
    let jvm = TestJvm::create();
    let layout = jvm.layout();
    // SAFETY: the environment is this thread's.
    let probe = unsafe { Probe::of_current_thread(jvm.env) }.unwrap();
    layout::check(&layout, &ProcessMemory, &probe).unwrap();

    type Damage = fn(&mut VmLayout);
    let cases: &[(&str, &str, Damage)] = &[
        ("JavaThread", "_osthread", |layout| layout.thread.osthread += 8),
        ("JavaThread", "_osthread", |layout| layout.thread.osthread_thread_id += 4),
        ("JavaThread", "_osthread", |layout| layout.thread.jni_environment += 8),
        ("JavaThread", "_stack_base", |layout| layout.thread.stack_base += 8),
        ("JavaThread", "_stack_base", |layout| layout.thread.stack_size -= 8),
        ("JavaThread", "_thread_state", |layout| layout.thread.thread_state += 4),
        ("Method", "_constMethod", |layout| layout.method.const_method += 8),
        ("Method", "_constMethod", |layout| layout.method.constants += 8),
        ("Method", "_constMethod", |layout| layout.method.name_index += 2),
        ("Method", "_constMethod", |layout| layout.method.constant_pool_size += 8),
        ("Method", "_constMethod", |layout| layout.method.klass_name += 8),
        ("Method", "_constMethod", |layout| layout.method.symbol_body += 1),
        ("Method", "_i2i_entry", |layout| layout.method.i2i_entry += 8),
        ("CodeHeap", "_log2_segment_size", |layout| layout.code_cache.heap_log2_segment_size += 4),
        ("CodeCache", "_heaps", |layout| layout.code_cache.heap_memory_low += 8),
        ("CodeBlob", "_name", |layout| layout.code_blob.name += 8),
        ("CodeBlob", "_code_begin", |layout| layout.code_blob.size += 4),
        ("nmethod", "_method", |layout| layout.nmethod.method += 8),
        ("nmethod", "_scopes_pcs_offset", |layout| shift(&mut layout.nmethod.scopes_pcs_begin)),
        ("nmethod", "_scopes_pcs_offset", |layout| shift(&mut layout.nmethod.scopes_pcs_end)),
        ("nmethod", "_scopes_data_offset", |layout| shift(&mut layout.nmethod.scopes_data_begin)),
        ("nmethod", "_scopes_data_offset", |layout| shift(&mut layout.nmethod.metadata_begin)),
        ("nmethod", "_scopes_data_offset", |layout| layout.nmethod.unsigned5_excluded ^= 1),
        ("nmethod", "_scopes_data_offset", |layout| layout.nmethod.pc_desc_scope_decode_offset += 4),
        ("nmethod", "_deopt_handler", |layout| shift(&mut layout.nmethod.deopt_handler)),
    ];
    for (structure, field, damage) in cases {
        let mut damaged = layout;
        damage(&mut damaged);
        match layout::check(&damaged, &ProcessMemory, &probe) {
            Err(LayoutError::Implausible { structure: s, field: f, .. })
                if (s, f) == (*structure, *field) => {}
            other => panic!("{structure}::{field}: {other:?}"),
        }
    }
}

/// The next field in place of the right one.
fn shift(part: &mut BlobPart) {
    match part {
        BlobPart::Pointer(field) => *field += 8,
        BlobPart::FromBlob(field) => *field += 4,
        BlobPart::FromPointer { offset, .. } => *offset += 4,
    }
}

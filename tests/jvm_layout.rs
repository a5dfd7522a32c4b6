//! The layout of every available JVM, built and checked inside it.

mod jdk_support;
mod jvm_support;
mod loud_support;

use std::ffi::CStr;

use jvm_support::{STUBS, TestJvm, for_each_jdk};
use otlpprof::core::address::CodeRange;
use otlpprof::core::continuation::{MountedThreadLayout, References};
use otlpprof::core::memory::Memory;
use otlpprof::core::vm_layout::{BlobPart, CodeletKind, VmLayout};
use otlpprof::jvm::layout::{self, LayoutError, Probe};
use otlpprof::signal::safe_load::ProcessMemory;

/// Options that cause enough compilations before the checks that the code cache contains compiled methods.
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
fn a_wrong_frame_size_is_found() {
    for_each_jdk("child_finds_wrong_frame_sizes", MIXED);
}

#[test]
fn a_wrong_description_is_found_and_named() {
    // At a high address, since otherwise compressed references might have no base, and a wrong one would not
    // be noticed.
    for_each_jdk("child_finds_wrong_descriptions", "-XX:HeapBaseMinAddress=64g");
}

/// A layout that passes its check, and the probe for the check.
fn checked_layout(jvm: &TestJvm) -> (VmLayout, Probe) {
    let layout = jvm.layout();
    // SAFETY: `jvm.env` belongs to this thread.
    let probe = unsafe { Probe::of_current_thread(jvm.env, &ProcessMemory, layout.method.ids) }.unwrap();
    layout::check(&layout, &ProcessMemory, &probe).unwrap();
    (layout, probe)
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_builds_and_checks() {
    let jvm = TestJvm::create();
    let (layout, _) = checked_layout(&jvm);

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
    let is_throw_known = layout.stubs.interpreter_code.throws.windows(2).any(|two| two[1].caller.is_none());
    assert!(is_throw_known, "what an exception does to a frame");
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
        let mounted = layout.continuation.and_then(|continuation| continuation.mounted);
        assert_eq!(matches!(mounted, Some(MountedThreadLayout::Id(_))), layout.java_version >= 24);
        assert_eq!(matches!(mounted, Some(MountedThreadLayout::Object(_))), layout.java_version < 24);
    } else {
        assert_eq!(continuations, [CodeRange::default(); 3]);
        assert_eq!(layout.continuation, None);
    }
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_finds_wrong_offsets() {
    let jvm = TestJvm::create();
    let (layout, probe) = checked_layout(&jvm);

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
        ("CodeBlob", "_frame_complete_offset", |layout| {
            layout.code_blob.frame_complete += u32::from(layout.code_blob.frame_complete_width);
        }),
        ("nmethod", "_orig_pc_offset", |layout| layout.nmethod.orig_pc_offset += 4),
        ("nmethod", "_method", |layout| layout.nmethod.method += 8),
        ("nmethod", "_scopes_pcs_offset", |layout| shift(&mut layout.nmethod.scopes_pcs_begin)),
        ("nmethod", "_scopes_pcs_offset", |layout| shift(&mut layout.nmethod.scopes_pcs_end)),
        ("nmethod", "_scopes_data_offset", |layout| shift(&mut layout.nmethod.scopes_data_begin)),
        ("nmethod", "_scopes_data_offset", |layout| shift(&mut layout.nmethod.metadata_begin)),
        ("nmethod", "_scopes_data_offset", |layout| layout.nmethod.unsigned5_excluded ^= 1),
        ("nmethod", "_scopes_data_offset", |layout| layout.nmethod.pc_desc_scope_decode_offset += 4),
        ("frame", "interpreter_frame_sender_sp_offset", |layout| layout.interpreter_frame.sender_sp -= 1),
        ("frame", "interpreter_frame_last_sp_offset", |layout| layout.interpreter_frame.last_sp -= 1),
        ("frame", "interpreter_frame_method_offset", |layout| layout.interpreter_frame.method -= 1),
        ("frame", "interpreter_frame_locals_offset", |layout| layout.interpreter_frame.locals -= 1),
        ("frame", "interpreter_frame_bcp_offset", |layout| layout.interpreter_frame.bcp -= 1),
        ("frame", "entry_frame_call_wrapper_offset", |layout| layout.thread.entry_frame_call_wrapper -= 1),
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

/// The field that is read instead of the size differs between versions, and so does the check that then
/// fails.
#[test]
#[ignore = "run for each JDK by its parent"]
fn child_finds_wrong_frame_sizes() {
    let jvm = TestJvm::create();
    let (layout, probe) = checked_layout(&jvm);
    for frame_size in [layout.code_blob.frame_size - 4, layout.code_blob.frame_size + 4] {
        let mut damaged = layout;
        damaged.code_blob.frame_size = frame_size;
        let result = layout::check(&damaged, &ProcessMemory, &probe);
        assert!(matches!(result, Err(LayoutError::Implausible { .. })), "{frame_size}: {result:?}");
    }
}

/// Descriptions of structures that do not exist at start: their parts must be consistent.
#[test]
#[ignore = "run for each JDK by its parent"]
fn child_finds_wrong_descriptions() {
    let jvm = TestJvm::create();
    let layout = jvm.layout();
    let virtual_threads = layout.java_version >= 21;
    let narrow = layout
        .continuation
        .and_then(|continuation| continuation.frozen)
        .is_some_and(|frozen| matches!(frozen.references, References::Narrow { .. }));
    assert_eq!(narrow, virtual_threads);
    let vframe_array = ("vframeArray", "_caller");
    let mut cases = vec![
        ("vframeArray::_original", vframe_array),
        ("vframeArray::_caller", vframe_array),
        ("vframeArray::_frames", vframe_array),
        ("vframeArrayElement::_bci", vframe_array),
        ("vframeArrayElement::_method", vframe_array),
        ("vframeArray", vframe_array),
        ("vframeArrayElement", vframe_array),
        ("frame", vframe_array),
        ("ConcreteRegisterImpl::number_of_registers", vframe_array),
        ("JavaCallWrapper::_anchor", ("JavaCallWrapper", "_anchor")),
        ("JavaCallWrapper", ("JavaCallWrapper", "_anchor")),
        ("JavaFrameAnchor", ("JavaCallWrapper", "_anchor")),
        ("JavaFrameAnchor::_last_Java_sp", ("JavaFrameAnchor", "_last_Java_sp")),
        ("JavaFrameAnchor::_last_Java_pc", ("JavaFrameAnchor", "_last_Java_sp")),
        ("JavaFrameAnchor::_last_Java_fp", ("JavaFrameAnchor", "_last_Java_sp")),
    ];
    if virtual_threads {
        // Some static fields lost a part of their names in a version after 21; such fields are given by both
        // names.
        cases.extend([
            ("Klass::_layout_helper", ("Klass", "_layout_helper")),
            ("CompressedOops::_narrow_oop._base CompressedOops::_base", ("CompressedOops", "_base")),
            ("CompressedOops::_narrow_oop._shift CompressedOops::_shift", ("CompressedOops", "_base")),
            (
                "CompressedKlassPointers::_narrow_klass._base CompressedKlassPointers::_base",
                ("CompressedKlassPointers", "_base"),
            ),
            if layout.java_version < 24 {
                ("JavaThread::_vthread", ("JavaThread", "_vthread"))
            } else {
                ("JavaThread::_monitor_owner_id", ("JavaThread", "_monitor_owner_id"))
            },
        ]);
    }
    for (damaged, (structure, field)) in cases {
        let memory = damaged.split(' ').find_map(|name| DamagedTables::new(&jvm, name));
        let memory = memory.unwrap_or_else(|| panic!("libjvm does not describe {damaged}"));
        let structs = jvm.vm_structs_by(&memory);
        let learnt = layout::build(&structs, &memory, &STUBS).and_then(|layout| {
            // SAFETY: `jvm.env` belongs to this thread.
            unsafe {
                let continuation = layout::frozen_frames(jvm.env, &structs, &memory, &STUBS, &layout)?;
                let layout = VmLayout { continuation, ..layout };
                layout::mounted_thread(jvm.env, &structs, &memory, &layout)
            }
        });
        match learnt {
            Err(LayoutError::Implausible { structure: s, field: f, .. }) if (s, f) == (structure, field) => {}
            // The value that is read instead of the size may be too small for the fields of a stack chunk.
            Err(LayoutError::Implausible { structure: "StackChunk", field: "sp", .. })
                if structure == "Klass" => {}
            other => panic!("{damaged}: {other:?}"),
        }
    }
}

/// The process's memory, with one number in libjvm's tables increased by eight: a field's offset, a static
/// field's address, a type's size or a constant.
struct DamagedTables {
    at: u64,
}

impl DamagedTables {
    const BY: u64 = 8;

    /// `None` if no entry has this name.
    fn new(jvm: &TestJvm, name: &str) -> Option<Self> {
        let variable = |name: &str| ProcessMemory.load_u64(jvm.symbol(name).unwrap()).unwrap();
        let text = |pointer: u64| {
            // SAFETY: the tables contain pointers to C strings.
            unsafe { CStr::from_ptr(ProcessMemory.load_u64(pointer).unwrap() as *const _) }.to_str().unwrap()
        };
        let tables = [
            ("gHotSpotVMStructs", "gHotSpotVMStructEntry", "TypeName", Some("FieldName")),
            ("gHotSpotVMTypes", "gHotSpotVMTypeEntry", "TypeName", None),
            ("gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry", "Name", None),
        ];
        for (table, prefix, first, second) in tables {
            let part = |name: &str| variable(&format!("{prefix}{name}"));
            let names: Vec<_> = [Some(first), second].into_iter().flatten().collect();
            let offsets: Vec<_> = names.iter().map(|name| part(&format!("{name}Offset"))).collect();
            let mut entry = variable(table);
            while ProcessMemory.load_u64(entry + offsets[0]) != Some(0) {
                let found: Vec<_> = offsets.iter().map(|offset| text(entry + offset)).collect();
                if found.join("::") == name {
                    let number = match prefix {
                        "gHotSpotVMTypeEntry" => "SizeOffset",
                        "gHotSpotVMIntConstantEntry" => "ValueOffset",
                        _ if ProcessMemory.load_u32(entry + part("IsStaticOffset")) == Some(1) => {
                            "AddressOffset"
                        }
                        _ => "OffsetOffset",
                    };
                    return Some(Self { at: entry + part(number) });
                }
                entry += part("ArrayStride");
            }
        }
        None
    }
}

impl Memory for DamagedTables {
    fn read_bytes(&self, address: u64, bytes: &mut [u8]) -> bool {
        let is_readable = ProcessMemory.read_bytes(address, bytes);
        if address == self.at
            && let Some(low) = bytes.first_mut()
        {
            *low = low.checked_add(Self::BY as u8).expect("no carry");
        }
        is_readable
    }
}

/// Changes a part's location to the next field.
fn shift(part: &mut BlobPart) {
    match part {
        BlobPart::Pointer(field) => *field += 8,
        BlobPart::FromBlob(field) => *field += 4,
        BlobPart::FromPointer { offset, .. } => *offset += 4,
    }
}

//! The layout of every available JVM, built and checked inside it.

#[path = "jvm_layout/debug_information.rs"]
mod debug_information;

use std::ffi::CStr;
use std::process::Command;

use otlpprof_core::address::CodeRange;
use otlpprof_core::continuation::{MountedThreadLayout, References};
use otlpprof_core::memory::Memory;
use otlpprof_core::method_ids::MethodIds;
use otlpprof_core::vm_layout::{
    BlobPart, CodeletKind, DeoptimizationLayout, MonitorOwnerWord, StackBounds, VmLayout,
};
use otlpprof_jvm::layout::{self, LayoutError, Learnt, Probe};
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_testkit::jdk::everything;
use otlpprof_testkit::jvm_in_process::{STUBS, TestJvm, for_each_jdk, for_each_jdk_with};

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

/// Regression: the layout of JDK 11 was refused where it had an archive of classes, as Debian's has. Methods
/// of classes in the archive have an entry there, which jumps to the interpreter's.
#[test]
fn layouts_build_and_check_with_an_archive_of_classes() {
    let folder = tempfile::tempdir().unwrap();
    for_each_jdk_with("child_builds_and_checks", |home| {
        let archive = folder.path().join(home.to_str().unwrap().replace('/', "-"));
        let option = format!("-XX:SharedArchiveFile={}", archive.display());
        let written = Command::new(home.join("bin/java"))
            .args(["-XX:+UnlockDiagnosticVMOptions", "-Xshare:dump", &option])
            .output()
            .unwrap();
        assert!(written.status.success(), "{}: {written:?}", home.display());
        // In this mode a JVM that cannot use the archive does not start.
        format!("-XX:+UnlockDiagnosticVMOptions {option} -Xshare:on")
    });
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

/// Every offset and size of the layout agrees with the JVM's debug information.
#[test]
#[ignore = "needs debug files of the JVMs: scripts/check-offsets.sh"]
fn offsets_are_those_of_the_debug_information() {
    for_each_jdk("child_compares_with_debug_information", MIXED);
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_compares_with_debug_information() {
    let jvm = TestJvm::create();
    let (layout, _) = checked_layout(&jvm);
    let libjvm = TestJvm::libjvm();
    let file = libjvm.ancestors().find_map(|root| crate::debug_information::debug_file(root, &libjvm));
    let file = file.unwrap_or_else(|| panic!("{} has no debug file", libjvm.display()));
    let facts = crate::debug_information::facts(&layout);
    let expressions = || facts.iter().flat_map(|fact| fact.expressions.iter().map(String::as_str));
    let values = crate::debug_information::evaluate(&file, expressions());
    let is_wrong = |fact: &&crate::debug_information::Fact| {
        let mut found = fact.expressions.iter().filter_map(|expression| values.get(&**expression)).peekable();
        found.peek().is_none() || found.any(|value| *value != fact.number)
    };
    let wrong: Vec<_> = facts
        .iter()
        .filter(is_wrong)
        .map(|fact| {
            let by_gdb: Vec<_> = fact.expressions.iter().map(|name| (name, values.get(&**name))).collect();
            format!("{}: {by_gdb:?}", fact.number)
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} numbers are those of {}", facts.len(), file.display());
}

/// A layout that passes its check, and the probe for the check.
fn checked_layout(jvm: &TestJvm) -> (VmLayout, Probe) {
    let layout = jvm.layout();
    // SAFETY: `jvm.env` belongs to this thread.
    let probe = unsafe { Probe::of_current_thread(jvm.env, &ProcessMemory, &layout.method) }.unwrap();
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

    assert_eq!(layout.method.ids == MethodIds::Cells, jvm.feature() < 26);
    check_stubs(&jvm, &layout);
}

fn check_stubs(jvm: &TestJvm, layout: &VmLayout) {
    assert!(layout.stubs.call_stub.contains(layout.stubs.call_stub_return));
    let name = STUBS.name_at(layout.stubs.call_stub_return).expect("the VM announces the call stub");
    assert!(&*name == "call_stub" || cfg!(without_rules_of_26) && name.contains("call_stub"), "{name}");
    assert_eq!(STUBS.name_at(layout.stubs.interpreter.start).as_deref(), Some("Interpreter"));
    let stubs = &layout.stubs;
    let continuations = [stubs.cont_thaw, stubs.cont_return_barrier, stubs.cont_return_barrier_exception];
    if jvm.feature() >= 21 {
        for range in continuations {
            assert!(range.start < range.end);
        }
        assert!(stubs.method_entry_barrier.start < stubs.method_entry_barrier.end);
        assert!(layout.continuation.is_some_and(|continuation| continuation.frozen.is_some()));
        let mounted = layout.continuation.and_then(|continuation| continuation.mounted);
        assert_eq!(matches!(mounted, Some(MountedThreadLayout::Id(_))), jvm.feature() >= 24);
        assert_eq!(matches!(mounted, Some(MountedThreadLayout::Object(_))), jvm.feature() < 24);
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
        ("JavaThread", "_thread_state", |layout| layout.thread.thread_state += 4),
        ("Method", "_constMethod", |layout| layout.method.const_method += 8),
        ("Method", "_constMethod", |layout| layout.method.constants += 8),
        ("Method", "_constMethod", |layout| layout.method.name_index += 2),
        ("Method", "_constMethod", |layout| layout.method.constant_pool_size += 8),
        ("Method", "_constMethod", |layout| layout.method.klass_name += 8),
        ("Method", "_constMethod", |layout| layout.method.symbol_body += 1),
        ("ConstMethod", "_code_size", |layout| layout.method.code_size += 2),
        ("ConstMethod", "_code_size", |layout| layout.method.const_method_size += 8),
        ("InterpreterCodelet", "_size", |layout| layout.stubs.codelets = &[]),
        ("CodeHeap", "_log2_segment_size", |layout| layout.code_cache.heap_log2_segment_size += 4),
        ("CodeCache", "_heaps", |layout| layout.code_cache.heap_memory_low += 8),
        ("CodeBlob", "_name", |layout| layout.code_blob.name += 8),
        ("CodeBlob", "_code_begin", |layout| layout.code_blob.size += 4),
        ("CodeBlob", "_frame_complete_offset", |layout| {
            layout.code_blob.frame_complete += u32::from(layout.code_blob.frame_complete_width);
        }),
        ("nmethod", "_orig_pc_offset", |layout| deoptimization(layout).orig_pc_offset += 4),
        ("nmethod", "_comp_level", |layout| layout.nmethod.comp_level += 4),
        ("nmethod", "_stub_offset", |layout| layout.nmethod.stub_begin = layout.code_blob.code_begin),
        ("nmethod", "_method", |layout| layout.nmethod.method += 8),
        ("nmethod", "_scopes_pcs_offset", |layout| shift(&mut layout.nmethod.scopes_pcs_begin)),
        ("nmethod", "_scopes_pcs_offset", |layout| shift(&mut layout.nmethod.scopes_pcs_end)),
        ("nmethod", "_scopes_data_offset", |layout| shift(&mut layout.nmethod.scopes_data_begin)),
        ("nmethod", "_scopes_data_offset", |layout| shift(&mut layout.nmethod.metadata_begin)),
        ("nmethod", "_scopes_data_offset", |layout| layout.nmethod.unsigned5_excluded ^= 1),
        ("nmethod", "_scopes_data_offset", |layout| layout.nmethod.pc_desc_scope_decode_offset += 4),
        ("nmethod", "_deopt_handler", |layout| shift(&mut deoptimization(layout).handlers[0])),
    ];
    let bounds: [(_, _, Damage); 2] = [
        ("JavaThread", "_stack_base", |layout| stack_bounds(layout).unwrap().base += 8),
        ("JavaThread", "_stack_base", |layout| stack_bounds(layout).unwrap().size -= 8),
    ];
    let mut undamaged = layout;
    let has_bounds = stack_bounds(&mut undamaged).is_some();
    assert_eq!(has_bounds, jvm.feature() < 24);
    for (structure, field, damage) in cases.iter().chain(bounds.iter().filter(|_| has_bounds)) {
        let mut damaged = layout;
        damage(&mut damaged);
        match layout::check(&damaged, &ProcessMemory, &probe) {
            Err(LayoutError::Implausible { structure: s, field: f, .. })
                if (s, f) == (*structure, *field) => {}
            other => panic!("{structure}::{field}: {other:?}"),
        }
    }
}

/// The bounds of stacks, where the owners of monitors are known by them.
fn stack_bounds(layout: &mut VmLayout) -> Option<&mut StackBounds> {
    match &mut layout.monitor.as_mut().expect("libjvm describes it").owner_is {
        MonitorOwnerWord::ThreadOrStack(bounds) => Some(bounds),
        MonitorOwnerWord::ThreadId => None,
    }
}

fn deoptimization(layout: &mut VmLayout) -> &mut DeoptimizationLayout {
    layout.nmethod.deoptimization.as_mut().expect("libjvm describes it")
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
    let virtual_threads = jvm.feature() >= 21;
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
            if jvm.feature() < 24 {
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
        // SAFETY: `jvm.env` belongs to this thread.
        let learnt = unsafe {
            layout::learn(jvm.env, &structs, &memory, &STUBS).and_then(|Learnt { layout, gaps, .. }| {
                if let Some(gap) = gaps.into_iter().next() {
                    return Err(gap.reason);
                }
                let continuation = layout::frozen_frames(jvm.env, &structs, &memory, &STUBS, &layout)?;
                let layout = VmLayout { continuation, ..layout };
                layout::mounted_thread(jvm.env, &structs, &memory, &layout)
            })
        };
        match learnt {
            Err(LayoutError::Implausible { structure: s, field: f, .. }) if (s, f) == (structure, field) => {}
            // The value that is read instead of the size may be too small for the fields of a stack chunk.
            Err(LayoutError::Implausible { structure: "StackChunk", field: "sp", .. })
                if structure == "Klass" => {}
            other => panic!("{damaged}: {other:?}"),
        }
    }
}

/// Fields that the checks recognise by their values, the fastest ones to find first. Between releases, fields
/// move to other structures; such fields are given by all names.
const RECOGNISED: [&str; 27] = [
    "JavaThread::_anchor",
    "JavaThread::_stack_base Thread::_stack_base",
    "JavaThread::_stack_size Thread::_stack_size",
    "CodeBlob::_kind",
    "nmethod::_comp_level",
    "nmethod::_stub_offset",
    "HeapBlock::_header",
    "HeapBlock::Header::_used",
    "GrowableArray<int>::_data",
    "JavaCallWrapper::_anchor",
    "PcDesc::_pc_offset",
    "Symbol::_body",
    "Method::_constMethod",
    "ThreadsList::_threads",
    "CodeBlob::_name",
    "CodeHeap::_log2_segment_size",
    "ConstMethod::_code_size",
    "ConstMethod::_constants",
    "ConstMethod::_name_index",
    "ConstMethod::_signature_index",
    "ConstantPool::_pool_holder",
    "Klass::_name",
    "OSThread::_thread_id",
    "Symbol::_length",
    "nmethod::_method CompiledMethod::_method",
    "nmethod::_scopes_data_offset CompiledMethod::_scopes_data_begin",
    "nmethod::_scopes_pcs_offset",
];

/// The number of [`RECOGNISED`] that are tested unless everything is.
const FASTEST: usize = 14;

/// Regression: all Java frames lost their lines where libjvm did not describe one field.
#[test]
fn a_field_that_is_not_described_is_found_where_the_checks_recognise_it() {
    for_each_jdk("child_finds_missing_fields", MIXED);
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_finds_missing_fields() {
    let jvm = TestJvm::create();
    jvm.replay_stubs();
    let learn = |memory: &dyn Memory| {
        let structs = jvm.vm_structs_by(memory);
        // SAFETY: `jvm.env` belongs to this thread.
        unsafe { layout::learn(jvm.env, &structs, &ProcessMemory, &STUBS) }
    };
    let without = |names: &str| {
        let memory = names.split(' ').find_map(|name| DamagedTables::without(&jvm, name));
        learn(&memory.unwrap_or_else(|| panic!("libjvm does not describe {names}")))
    };
    let described = learn(&ProcessMemory).unwrap();
    assert!(described.found.is_empty());
    let number = if everything() { RECOGNISED.len() } else { FASTEST };
    for names in &RECOGNISED[..number] {
        // 11 has no ThreadsList, and until 22 blobs have no kind.
        if jvm.feature() == 11 && names.starts_with("ThreadsList")
            || jvm.feature() < 23 && *names == "CodeBlob::_kind"
        {
            continue;
        }
        let Learnt { layout, gaps, found } = without(names).unwrap();
        // From 24 on nothing reads the bounds of stacks.
        if jvm.feature() >= 24 && names.contains("_stack_") {
            assert!(found.is_empty(), "{names}: {found:?}");
            continue;
        }
        let found: Vec<_> =
            found.iter().map(|found| format!("{}::{}", found.structure, found.field)).collect();
        assert!(found.len() == 1 && names.contains(&*found[0]), "{names}: {found:?}");
        assert_eq!(format!("{layout:?}"), format!("{:?}", described.layout), "{names}");
        assert!(gaps.is_empty(), "{names}: {gaps:?}");
    }
}

/// The fields of which each release describes one.
const HANDLERS: [&str; 3] = [
    "CompiledMethod::_deopt_handler_begin",
    "nmethod::_deopt_handler_offset",
    "nmethod::_deopt_handler_entry_offset",
];

/// Regression: frames that were to be deoptimised had no lines where the field of their handler had a new
/// name.
#[test]
fn deoptimisation_handlers_are_found_by_their_code() {
    for_each_jdk("child_finds_handlers_by_code", MIXED);
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_finds_handlers_by_code() {
    let jvm = TestJvm::create();
    jvm.replay_stubs();
    let learn = |memory: &dyn Memory| {
        let structs = jvm.vm_structs_by(memory);
        // SAFETY: `jvm.env` belongs to this thread.
        unsafe { layout::learn(jvm.env, &structs, &ProcessMemory, &STUBS) }.unwrap()
    };
    let mut described = learn(&ProcessMemory).layout;
    let damaged = HANDLERS.iter().find_map(|name| DamagedTables::without(&jvm, name));
    let Learnt { mut layout, gaps, found } = learn(&damaged.expect("libjvm describes a handler"));
    assert!(gaps.is_empty(), "{gaps:?}");
    assert!(found.first().is_some_and(|found| found.field == "_deopt_handler"), "{found:?}");
    let names = |layout: &mut VmLayout| deoptimization(layout).handlers.map(|part| format!("{part:?}"));
    let (by_tables, by_code) = (names(&mut described), names(&mut layout));
    println!("{by_tables:?} by the tables, {by_code:?} by code");
    // Few methods have a handler for method handles' calls.
    assert_eq!(by_code[0], by_tables[0]);
    assert!(by_tables.contains(&by_code[1]));
    deoptimization(&mut layout).handlers = deoptimization(&mut described).handlers;
    assert_eq!(format!("{layout:?}"), format!("{described:?}"));
}

/// The place of the count in ZGC's forwardings is calculated where it is not described, as it is from 27 on.
#[test]
fn the_count_of_a_forwarding_is_where_libjvm_describes_it() {
    let zgc = "-XX:+UnlockExperimentalVMOptions -XX:+UseZGC -XX:+IgnoreUnrecognizedVMOptions";
    for_each_jdk("child_calculates_the_count", &format!("{zgc} -XX:+ZGenerational"));
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_calculates_the_count() {
    let jvm = TestJvm::create();
    // 11 and 17 have no virtual threads, whose frames are all that forwardings are read for.
    if jvm.feature() < 21 {
        return;
    }
    let layout = jvm.layout();
    let count = |memory: &dyn Memory| {
        let structs = jvm.vm_structs_by(memory);
        // SAFETY: `jvm.env` belongs to this thread.
        let continuation =
            unsafe { layout::frozen_frames(jvm.env, &structs, &ProcessMemory, &STUBS, &layout) };
        continuation.unwrap()?.frozen?.forwarding.map(|forwarding| forwarding.ref_count)
    };
    let described = count(&ProcessMemory);
    assert!(described.is_some());
    if let Some(damaged) = DamagedTables::without(&jvm, "ZForwarding::_ref_count") {
        assert_eq!(count(&damaged), described);
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
        Self::with(jvm, name, None)
    }

    /// The tables without this field, which has another name. `None` if no entry has this name.
    fn without(jvm: &TestJvm, field: &str) -> Option<Self> {
        Self::with(jvm, field, Some("FieldNameOffset"))
    }

    /// The tables with a damaged column, by default the one that describes the entry's place or value.
    fn with(jvm: &TestJvm, name: &str, column: Option<&str>) -> Option<Self> {
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
                    return Some(Self { at: entry + part(column.unwrap_or(number)) });
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
        if address == self.at {
            let mut carry = Self::BY as u8;
            for byte in bytes {
                let (sum, overflows) = byte.overflowing_add(carry);
                (*byte, carry) = (sum, overflows.into());
            }
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

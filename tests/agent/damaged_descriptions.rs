//! JVMs that describe themselves wrongly, field by field (`native/vmdamage`): whatever the agent makes of the
//! description, the JVM runs on, and profiles are written.

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::java_homes;
use otlpprof_testkit::this_build::built;

/// The fields that the agent reads from libjvm's tables, in some release, by structure.
const FIELDS: &[(&str, &[&str])] = &[
    ("AbstractInterpreter", &["_code"]),
    ("Array<Method*>", &["_data"]),
    ("Array<int>", &["_length"]),
    (
        "CodeBlob",
        &[
            "_code_begin",
            "_code_end",
            "_code_offset",
            "_data_offset",
            "_frame_complete_offset",
            "_frame_size",
            "_kind",
            "_mutable_data",
            "_name",
            "_relocation_size",
            "_size",
        ],
    ),
    ("CodeCache", &["_heaps", "_high_bound", "_low_bound"]),
    ("CodeHeap", &["_log2_segment_size", "_memory", "_segmap"]),
    ("CompiledMethod", &["_deopt_handler_begin", "_deopt_mh_handler_begin", "_method", "_scopes_data_begin"]),
    ("CompressedKlassPointers", &["_base", "_narrow_klass._base", "_narrow_klass._shift", "_shift"]),
    ("CompressedOops", &["_base", "_narrow_oop._base", "_narrow_oop._shift", "_shift"]),
    (
        "ConstMethod",
        &["_code_size", "_constants", "_flags", "_flags._flags", "_name_index", "_signature_index"],
    ),
    ("ConstantPool", &["_length", "_pool_holder", "_source_file_name_index"]),
    ("GenericGrowableArray", &["_len"]),
    ("GrowableArray<int>", &["_data"]),
    ("GrowableArrayBase", &["_len"]),
    ("HeapBlock", &["_header"]),
    ("HeapBlock::Header", &["_used"]),
    ("InstanceKlass", &["_constants", "_methods", "_source_file_name_index"]),
    ("InterpreterCodelet", &["_description", "_size"]),
    ("JVMFlag", &["_addr", "_name", "flags", "numFlags"]),
    ("JavaCallWrapper", &["_anchor"]),
    ("JavaFrameAnchor", &["_last_Java_fp", "_last_Java_pc", "_last_Java_sp"]),
    (
        "JavaThread",
        &[
            "_anchor",
            "_cont_entry",
            "_current_pending_monitor",
            "_monitor_owner_id",
            "_next",
            "_osthread",
            "_stack_base",
            "_stack_size",
            "_threadObj",
            "_thread_state",
            "_vframe_array_head",
            "_vthread",
        ],
    ),
    ("Klass", &["_layout_helper", "_name"]),
    ("Method", &["_constMethod", "_i2i_entry"]),
    ("OSThread", &["_thread_id"]),
    ("ObjectMonitor", &["_owner"]),
    ("PcDesc", &["_pc_offset", "_scope_decode_offset"]),
    ("StubQueue", &["_number_of_stubs", "_queue_begin", "_queue_end", "_stub_buffer"]),
    ("StubRoutines", &["_call_stub_return_address"]),
    ("Symbol", &["_body", "_length"]),
    ("Thread", &["_current_pending_monitor", "_osthread", "_stack_base", "_stack_size"]),
    ("Threads", &["_thread_list"]),
    ("ThreadsList", &["_length", "_threads"]),
    ("ThreadsSMRSupport", &["_java_thread_list"]),
    ("Universe", &["_collectedHeap"]),
    ("VirtualSpace", &["_high", "_low"]),
    ("java_lang_Class", &["_klass_offset"]),
    (
        "nmethod",
        &[
            "_comp_level",
            "_deopt_handler_entry_offset",
            "_deopt_handler_offset",
            "_deopt_mh_handler_offset",
            "_dependencies_offset",
            "_immutable_data",
            "_metadata_offset",
            "_method",
            "_orig_pc_offset",
            "_scopes_data_offset",
            "_scopes_pcs_offset",
            "_stub_offset",
        ],
    ),
    ("vframeArray", &["_caller", "_frames", "_original"]),
    ("vframeArrayElement", &["_bci", "_method"]),
];

/// The sizes and constants that the agent reads, in some release.
const NUMBERS: &[&str] = &[
    "CodeBlobKind::Adapter",
    "CodeBlobKind::Nmethod",
    "CodeBlobKind::Safepoint",
    "ConcreteRegisterImpl::number_of_registers",
    "ConstMethod::_has_linenumber_table",
    "ConstMethodFlags::_misc_has_linenumber_table",
    "_thread_blocked",
    "_thread_in_Java",
    "_thread_in_native",
    "_thread_in_vm",
    "_thread_new",
    "frame::entry_frame_call_wrapper_offset",
    "markWord::klass_shift",
    "sizeof(ConstMethod)",
    "sizeof(ConstantPool)",
    "sizeof(HeapBlock)",
    "sizeof(InterpreterCodelet)",
    "sizeof(JVMFlag)",
    "sizeof(JavaCallWrapper)",
    "sizeof(JavaFrameAnchor)",
    "sizeof(Method)",
    "sizeof(PcDesc)",
    "sizeof(ZForwarding)",
    "sizeof(ZHeap)",
    "sizeof(frame)",
    "sizeof(vframeArray)",
    "sizeof(vframeArrayElement)",
];

/// The descriptions whose damage the agent need not notice, by reason. It reports all others at its start.
const UNNOTICED: &[(&str, &[&str])] = &[
    (
        "nothing reads them in every release and configuration",
        &[
            "JavaThread::_stack_base",
            "JavaThread::_stack_size",
            "JavaThread::_threadObj",
            "JavaThread::_vthread",
            "Method::_i2i_entry",
            "Thread::_stack_base",
            "Thread::_stack_size",
            "Universe::_collectedHeap",
            "markWord::klass_shift",
            "nmethod::_deopt_mh_handler_offset",
            "sizeof(ZForwarding)",
            "sizeof(ZHeap)",
        ],
    ),
    (
        "until 25 an id leads to a method, without a search in its class",
        &[
            "Array<Method*>::_data",
            "Array<int>::_length",
            "InstanceKlass::_methods",
            "java_lang_Class::_klass_offset",
        ],
    ),
    (
        "no instance exists at the start",
        &[
            "JavaThread::_current_pending_monitor",
            "JavaThread::_vframe_array_head",
            "ObjectMonitor::_owner",
            "Thread::_current_pending_monitor",
        ],
    ),
    (
        "they lead to lines and file names alone, which a JDK may lack",
        &[
            "ConstMethod::_flags",
            "ConstMethod::_flags._flags",
            "ConstMethod::_has_linenumber_table",
            "ConstMethodFlags::_misc_has_linenumber_table",
            "ConstantPool::_length",
            "ConstantPool::_source_file_name_index",
            "InstanceKlass::_constants",
            "InstanceKlass::_source_file_name_index",
        ],
    ),
    (
        "26 and 27 have too few compiled methods at their start",
        &["PcDesc::_scope_decode_offset", "nmethod::_stub_offset"],
    ),
    (
        "no blob or thread of the kind is compared",
        &["CodeBlobKind::Adapter", "CodeBlobKind::Safepoint", "_thread_in_vm", "_thread_new"],
    ),
    ("only the function of a native method is behind it", &["sizeof(Method)"]),
];

/// Runs a program once for each field, size and constant, with the damage that `mode` means to vmdamage.
/// Damage that `must_be_noticed` is reported, by one warning or several.
fn assert_no_damage_ends_the_jvm(mode: &str, must_be_noticed: bool) {
    let homes = java_homes();
    let home = homes.last().expect("a JDK");
    let mut damaged = 0;
    let fields = FIELDS
        .iter()
        .flat_map(|(structure, fields)| fields.iter().map(move |field| format!("{structure}::{field}")));
    for name in fields.chain(NUMBERS.iter().map(ToString::to_string)) {
        let damage = format!("{mode}{name}");
        let run = JavaRun::new(home, "Demo")
            .argument(0.1)
            .variable(
                "JAVA_TOOL_OPTIONS",
                &format!("-agentpath:{}={damage}", built(otlpprof_testkit::products::VM_DAMAGE)),
            )
            .agent("cpu=500us,file=FILE")
            .run();
        if run.stderr.contains("vmdamage: no field") {
            continue;
        }
        let run = run.expect_success();
        let label = format!("{} {damage}: {}", run.label, run.stderr);
        assert!(!run.stderr.contains("internal error"), "{label}");
        assert!(run.counter("handler.samples_recorded") > 0, "{label}");
        let may_be_unnoticed = UNNOTICED.iter().any(|(_, names)| names.contains(&&*name));
        let is_noticed = run.stderr.contains("[otlpprof] warning: ");
        assert!(is_noticed || may_be_unnoticed || !must_be_noticed, "{label}");
        damaged += 1;
    }
    assert!(damaged > 70, "{}: only {damaged} of the fields are described", home.display());
}

#[test]
#[ignore = "long: a JVM for each field"]
fn no_field_at_another_place_ends_the_jvm() {
    assert_no_damage_ends_the_jvm("", true);
}

#[test]
#[ignore = "long: a JVM for each field"]
fn no_field_that_is_missing_ends_the_jvm() {
    assert_no_damage_ends_the_jvm("-", false);
}

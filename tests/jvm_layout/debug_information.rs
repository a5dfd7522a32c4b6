//! Offsets and sizes of HotSpot's structures by its debug information, which gdb reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use otlpprof_core::continuation::{ContinuationLayout, MountedThreadLayout};
use otlpprof_core::vm_layout::{BlobPart, SourceFileIndex, ThreadList, VmLayout};
use otlpprof_elf::build_id;

/// The debug file of a library in a root of scripts/install-debian-jdks.sh. `None` if the root has none.
pub(crate) fn debug_file(root: &Path, library: &Path) -> Option<PathBuf> {
    let id = build_id::of_file(library).ok()?.to_string();
    let (folder, name) = id.split_at(2);
    let file = root.join("usr/lib/debug/.build-id").join(folder).join(format!("{name}.debug"));
    file.is_file().then_some(file)
}

/// A number of the layout, and the expressions that give it in the debug information: one for each form of
/// the field in some release. At least one of them must have a value, and each value must be the number.
pub(crate) struct Fact {
    pub(crate) number: i64,
    pub(crate) expressions: Vec<String>,
}

struct Facts(Vec<Fact>);

impl Facts {
    fn add(&mut self, number: impl Into<i64>, expressions: Vec<String>) {
        self.0.push(Fact { number: number.into(), expressions });
    }

    /// The offset of a field; `fields` are its names in different releases.
    fn offset(&mut self, number: u32, class: &str, fields: &[&str]) {
        let expression = |field: &&str| format!("(long)&(({class}*)0)->{field}");
        self.add(number, fields.iter().map(expression).collect());
    }

    fn size(&mut self, number: u32, class: &str) {
        self.add(number, vec![format!("(long)sizeof({class})")]);
    }

    fn width(&mut self, number: u8, class: &str, field: &str) {
        self.add(number, vec![format!("(long)sizeof((({class}*)0)->{field})")]);
    }

    /// The field or fields that locate a part of a code blob.
    fn part(&mut self, part: BlobPart, pointers: &[&str], from_blob: &[&str], from_pointer: [&str; 2]) {
        match part {
            BlobPart::Pointer(offset) => self.offset(offset, "nmethod", pointers),
            BlobPart::FromBlob(offset) => self.offset(offset, "nmethod", from_blob),
            BlobPart::FromPointer { base, offset } => {
                self.offset(base, "nmethod", &from_pointer[..1]);
                self.offset(offset, "nmethod", &from_pointer[1..]);
            }
        }
    }
}

/// The numbers of the layout.
pub(crate) fn facts(layout: &VmLayout) -> Vec<Fact> {
    let mut facts = Facts(Vec::new());
    let cache = &layout.code_cache;
    facts.offset(cache.heap_memory_low, "CodeHeap", &["_memory._low"]);
    facts.offset(cache.heap_memory_high, "CodeHeap", &["_memory._high"]);
    facts.offset(cache.heap_segmap_low, "CodeHeap", &["_segmap._low"]);
    facts.offset(cache.heap_log2_segment_size, "CodeHeap", &["_log2_segment_size"]);
    facts.offset(cache.block_used, "HeapBlock", &["_header._used"]);
    facts.size(cache.block_size, "HeapBlock");

    let blob = &layout.code_blob;
    facts.offset(blob.name, "CodeBlob", &["_name"]);
    facts.offset(blob.size, "CodeBlob", &["_size"]);
    facts.offset(blob.frame_size, "CodeBlob", &["_frame_size"]);
    facts.offset(blob.frame_complete, "CodeBlob", &["_frame_complete_offset"]);
    facts.width(blob.frame_complete_width, "CodeBlob", "_frame_complete_offset");
    facts.part(blob.code_begin, &["_code_begin"], &["_code_offset"], [""; 2]);
    facts.part(blob.code_end, &["_code_end"], &["_data_offset"], [""; 2]);
    if let Some(kinds) = blob.kinds {
        facts.offset(kinds.field, "CodeBlob", &["_kind"]);
    }

    let nmethod = &layout.nmethod;
    facts.offset(nmethod.method, "nmethod", &["_method"]);
    facts.offset(nmethod.comp_level, "nmethod", &["_comp_level"]);
    facts.part(nmethod.stub_begin, &[], &["_stub_offset"], [""; 2]);
    let in_data = ["_immutable_data", "_scopes_pcs_offset"];
    facts.part(nmethod.scopes_pcs_begin, &[], &["_scopes_pcs_offset"], in_data);
    let in_data = ["_immutable_data", "_scopes_data_offset"];
    facts.part(nmethod.scopes_pcs_end, &[], &["_dependencies_offset"], in_data);
    facts.part(nmethod.scopes_data_begin, &["_scopes_data_begin"], &[], in_data);
    let in_data = ["_mutable_data", "_relocation_size"];
    facts.part(nmethod.metadata_begin, &[], &["_metadata_offset"], in_data);
    facts.size(nmethod.pc_desc_size, "PcDesc");
    facts.offset(nmethod.pc_desc_pc_offset, "PcDesc", &["_pc_offset"]);
    facts.offset(nmethod.pc_desc_scope_decode_offset, "PcDesc", &["_scope_decode_offset"]);
    if let Some(deoptimization) = &nmethod.deoptimization {
        facts.offset(deoptimization.orig_pc_offset, "nmethod", &["_orig_pc_offset"]);
        let [handler, of_method_handles] = deoptimization.handlers;
        let names = ["_deopt_handler_offset", "_deopt_handler_entry_offset"];
        facts.part(handler, &["_deopt_handler_begin"], &names, [""; 2]);
        // From 26 on one handler is for both.
        let names = ["_deopt_mh_handler_offset", "_deopt_handler_entry_offset"];
        facts.part(of_method_handles, &["_deopt_mh_handler_begin"], &names, [""; 2]);
    }

    let method = &layout.method;
    facts.offset(method.const_method, "Method", &["_constMethod"]);
    facts.size(method.method_size, "Method");
    facts.offset(method.constants, "ConstMethod", &["_constants"]);
    facts.offset(method.code_size, "ConstMethod", &["_code_size"]);
    facts.offset(method.name_index, "ConstMethod", &["_name_index"]);
    facts.offset(method.signature_index, "ConstMethod", &["_signature_index"]);
    facts.offset(method.const_method_flags, "ConstMethod", &["_flags"]);
    facts.size(method.const_method_size, "ConstMethod");
    facts.offset(method.pool_holder, "ConstantPool", &["_pool_holder"]);
    facts.offset(method.constant_pool_length, "ConstantPool", &["_length"]);
    facts.size(method.constant_pool_size, "ConstantPool");
    facts.offset(method.klass_constants, "InstanceKlass", &["_constants"]);
    match method.source_file_name_index {
        SourceFileIndex::ConstantPool(offset) => {
            facts.offset(offset, "ConstantPool", &["_source_file_name_index"]);
        }
        SourceFileIndex::InstanceKlass(offset) => {
            facts.offset(offset, "InstanceKlass", &["_source_file_name_index"]);
        }
    }
    facts.offset(method.klass_name, "Klass", &["_name"]);
    facts.offset(method.symbol_length, "Symbol", &["_length", "_hash_and_refcount + 4"]);
    facts.offset(method.symbol_body, "Symbol", &["_body"]);
    if let Some(of_class) = &method.of_class {
        facts.offset(of_class.methods, "InstanceKlass", &["_methods"]);
        facts.offset(of_class.length, "Array<int>", &["_length"]);
        facts.offset(of_class.first, "Array<Method*>", &["_data"]);
    }

    let thread = &layout.thread;
    facts.offset(thread.last_java_sp, "JavaThread", &["_anchor._last_Java_sp"]);
    facts.offset(thread.last_java_pc, "JavaThread", &["_anchor._last_Java_pc"]);
    facts.offset(thread.last_java_fp, "JavaThread", &["_anchor._last_Java_fp"]);
    facts.offset(thread.thread_state, "JavaThread", &["_thread_state"]);
    facts.offset(thread.jni_environment, "JavaThread", &["_jni_environment"]);
    facts.offset(thread.osthread, "JavaThread", &["_osthread"]);
    facts.offset(thread.osthread_thread_id, "OSThread", &["_thread_id"]);
    match thread.list {
        ThreadList::Linked { next, .. } => facts.offset(next, "JavaThread", &["_next"]),
        ThreadList::Array { length, threads, .. } => {
            facts.offset(length, "ThreadsList", &["_length"]);
            facts.offset(threads, "ThreadsList", &["_threads"]);
        }
    }
    facts.offset(thread.call_wrapper_last_java_sp, "JavaCallWrapper", &["_anchor._last_Java_sp"]);
    facts.offset(thread.call_wrapper_last_java_pc, "JavaCallWrapper", &["_anchor._last_Java_pc"]);
    facts.offset(thread.call_wrapper_last_java_fp, "JavaCallWrapper", &["_anchor._last_Java_fp"]);

    if let Some(array) = &layout.vframe_array {
        facts.offset(array.head, "JavaThread", &["_vframe_array_head"]);
        facts.offset(array.owner_thread, "vframeArray", &["_owner_thread"]);
        facts.offset(array.caller_pc, "vframeArray", &["_caller._pc"]);
        facts.offset(array.caller_fp, "vframeArray", &["_caller._fp"]);
        facts.offset(array.caller_unextended_sp, "vframeArray", &["_caller._unextended_sp"]);
        facts.offset(array.frames, "vframeArray", &["_frames"]);
        facts.offset(array.elements, "vframeArray", &["_elements"]);
        facts.size(array.element_size, "vframeArrayElement");
        facts.offset(array.element_bci, "vframeArrayElement", &["_bci"]);
        facts.offset(array.element_method, "vframeArrayElement", &["_method"]);
    }
    if let Some(monitor) = &layout.monitor {
        facts.offset(monitor.pending, "JavaThread", &["_current_pending_monitor"]);
        facts.offset(monitor.owner, "ObjectMonitor", &["_owner"]);
    }
    if let Some(continuation) = &layout.continuation {
        facts.offset(continuation.entry, "JavaThread", &["_cont_entry"]);
        let entry = |number: u64| u32::try_from(number).unwrap();
        facts.offset(entry(ContinuationLayout::ENTRY_CONTINUATION), "ContinuationEntry", &["_cont"]);
        facts.offset(entry(ContinuationLayout::ENTRY_FLAGS), "ContinuationEntry", &["_flags"]);
        facts.offset(entry(ContinuationLayout::ENTRY_ARGUMENT_WORDS), "ContinuationEntry", &["_argsize"]);
        let rounded = "((long)sizeof(ContinuationEntry) + 15) / 16 * 16".to_owned();
        facts.add(entry(ContinuationLayout::ENTRY_BYTES), vec![rounded]);
        match continuation.mounted {
            Some(MountedThreadLayout::Id(offset)) => {
                facts.offset(offset, "JavaThread", &["_monitor_owner_id", "_lock_id"]);
            }
            Some(MountedThreadLayout::Object(object)) => {
                facts.offset(object.handle, "JavaThread", &["_vthread._obj"]);
            }
            None => {}
        }
    }
    facts.0
}

/// The values of expressions by a debug file. An expression without a value is left out.
pub(crate) fn evaluate<'a>(
    file: &Path,
    expressions: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'a str, i64> {
    let expressions: Vec<_> = expressions.collect();
    let mut command = Command::new("gdb");
    command.args(["-batch", "-nx", "-ex", "set max-value-size unlimited"]);
    for (index, expression) in expressions.iter().enumerate() {
        let mut line = String::new();
        write!(line, "printf \"{index}=%ld\\n\", {expression}").unwrap();
        command.arg("-ex").arg(line);
    }
    let output = command.arg(file).output().expect("gdb (scripts/install-toolchain.sh gdb)");
    let printed = String::from_utf8_lossy(&output.stdout);
    let value = |line: &str| {
        let (index, value) = line.split_once('=')?;
        Some((*expressions.get(index.parse::<usize>().ok()?)?, value.parse().ok()?))
    };
    printed.lines().filter_map(value).collect()
}

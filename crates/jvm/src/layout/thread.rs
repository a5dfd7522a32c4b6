//! Threads and their frame anchors (`runtime/javaThread.hpp`, in 11 and 17 `runtime/thread.hpp`;
//! `runtime/javaFrameAnchor.hpp`, `runtime/javaCalls.hpp`).

use otlpprof_core::java_thread_state::{JavaThreadState, JavaThreadStates, MAX_STATES};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{StubLayout, ThreadLayout, ThreadList};

use super::error::LayoutError;
use super::learnt::Found;
use super::{frames, stubs};
use crate::stubs::StubTable;
use crate::vm_structs::VmStructs;

/// The distance from `JavaThread::_anchor` to `_jni_environment`, in bytes: the anchor's three words and
/// `_entry_point` (11-27). Used where `java.lang.Thread` does not lead to its JavaThread.
const ANCHOR_TO_JNI_ENVIRONMENT: u32 = 32;

/// The offsets in an anchor, in bytes: `_last_Java_sp`, `_last_Java_pc` and, after the fields that all
/// architectures have, `_last_Java_fp` (11-25).
const ANCHOR: [u32; 3] = [0, 8, 16];

/// The place of `JavaThread::_anchor`, if libjvm does not describe the field: the current thread's JNIEnv
/// lies at a known distance from the anchor, and its JavaThread is in `java.lang.Thread.eetop`.
pub(super) fn anchor(jni_environment: u64, structs: &VmStructs, java_thread: u64) -> Option<Found> {
    let (structure, field) = ("JavaThread", "_anchor");
    if structs.offset(structure, field).is_ok() {
        return None;
    }
    let jni_environment = jni_environment.checked_sub(java_thread).filter(|_| java_thread != 0)?;
    let offset = u32::try_from(jni_environment).ok()?.checked_sub(ANCHOR_TO_JNI_ENVIRONMENT)?;
    Some(Found { structure, field, offset })
}

/// The layout of threads and their anchors.
pub(super) fn thread(
    structs: &VmStructs,
    memory: &dyn Memory,
    stubs: &StubLayout,
) -> Result<ThreadLayout, LayoutError> {
    let field = |name| structs.offset("JavaThread", name);
    let anchor_field = |name| structs.offset("JavaFrameAnchor", name);
    let (sp, pc, fp) =
        (anchor_field("_last_Java_sp")?, anchor_field("_last_Java_pc")?, anchor_field("_last_Java_fp")?);
    // The anchor of the checking thread is empty, because the thread has called no Java; so check the offsets
    // themselves.
    if [sp, pc, fp] != ANCHOR {
        let reason = format!("sp, pc and fp at {sp}, {pc} and {fp}");
        return Err(LayoutError::implausible("JavaFrameAnchor", "_last_Java_sp", reason));
    }
    let anchor = field("_anchor")?;
    let wrapper_anchor = call_wrapper_anchor(structs)?;
    let slot = frames::call_wrapper(memory, stubs)?;
    let described = structs.constant("frame::entry_frame_call_wrapper_offset").unwrap_or(slot);
    let entry_frame_call_wrapper =
        i32::try_from(slot).ok().filter(|slot| (-64..0).contains(slot) && described == i64::from(*slot));
    let entry_frame_call_wrapper = entry_frame_call_wrapper.ok_or_else(|| {
        let reason = format!("described as {described}, while the VM's code uses {slot}");
        LayoutError::implausible("frame", "entry_frame_call_wrapper_offset", reason)
    })?;
    Ok(ThreadLayout {
        last_java_sp: anchor + sp,
        last_java_pc: anchor + pc,
        last_java_fp: anchor + fp,
        thread_state: field("_thread_state")?,
        states: states(structs)?,
        jni_environment: anchor + ANCHOR_TO_JNI_ENVIRONMENT,
        osthread: structs.offset_in_any(&["JavaThread", "Thread"], "_osthread")?,
        osthread_thread_id: structs.offset("OSThread", "_thread_id")?,
        list: list(structs)?,
        call_wrapper_last_java_sp: wrapper_anchor + sp,
        call_wrapper_last_java_pc: wrapper_anchor + pc,
        call_wrapper_last_java_fp: wrapper_anchor + fp,
        entry_frame_call_wrapper,
    })
}

/// The numbers of the states. Until 27 each state has a transition too (`utilities/globalDefinitions.hpp`).
fn states(structs: &VmStructs) -> Result<JavaThreadStates, LayoutError> {
    let mut numbers = Vec::new();
    for (name, transition, state) in [
        ("_thread_new", "_thread_new_trans", JavaThreadState::New),
        ("_thread_in_native", "_thread_in_native_trans", JavaThreadState::InNative),
        ("_thread_in_vm", "_thread_in_vm_trans", JavaThreadState::InVm),
        ("_thread_in_Java", "_thread_in_Java_trans", JavaThreadState::InJava),
        ("_thread_blocked", "_thread_blocked_trans", JavaThreadState::Blocked),
    ] {
        let number = structs.constant(name)?;
        let number = u32::try_from(number).ok().filter(|&number| (number as usize) < MAX_STATES);
        let unexpected = || LayoutError::implausible("JavaThreadState", name, "its number is too large");
        numbers.push((number.ok_or_else(unexpected)?, state));
        let transition = structs.constant(transition).ok().and_then(|number| u32::try_from(number).ok());
        numbers.extend(transition.map(|number| (number, state)));
    }
    Ok(JavaThreadStates::new(&numbers))
}

/// The offset of `JavaCallWrapper::_anchor`. A wrapper with an anchor in use may not exist when the layout is
/// checked. The sizes and offsets from libjvm must therefore fit together, and the walker checks that each
/// anchor leads into the code cache and to an older frame of the same stack.
fn call_wrapper_anchor(structs: &VmStructs) -> Result<u32, LayoutError> {
    let anchor = structs.offset("JavaCallWrapper", "_anchor")?;
    let (size, anchor_size) = (structs.size_of("JavaCallWrapper")?, structs.size_of("JavaFrameAnchor")?);
    // Four pointers come before the anchor, one after it.
    if anchor != 4 * 8 || size != anchor + anchor_size + 8 {
        let reason = format!("an anchor of {anchor_size} bytes at {anchor} of {size}");
        return Err(LayoutError::implausible("JavaCallWrapper", "_anchor", reason));
    }
    Ok(anchor)
}

fn list(structs: &VmStructs) -> Result<ThreadList, LayoutError> {
    if let Ok(list) = structs.static_address("ThreadsSMRSupport", "_java_thread_list") {
        return Ok(ThreadList::Array {
            list,
            length: structs.offset("ThreadsList", "_length")?,
            threads: structs.offset("ThreadsList", "_threads")?,
        });
    }
    Ok(ThreadList::Linked {
        head: structs.static_address("Threads", "_thread_list")?,
        next: structs.offset("JavaThread", "_next")?,
    })
}

/// Whether the VM has continuations, and with them virtual threads (from 19 on, JDK-8284161): it has stubs
/// for these, and threads that carry virtual ones.
pub(super) fn has_continuations(structs: &VmStructs, stub_table: &StubTable) -> bool {
    stubs::range_of(stub_table, stubs::CONT_THAW).start != 0
        || structs.offset("JavaThread", "_vthread").is_ok()
}

/// The offset of `JavaThread::_cont_entry`. Few builds export the offset; the code of all builds with
/// continuations contains it. `None` if the VM has no continuations.
pub(super) fn cont_entry(
    structs: &VmStructs,
    stub_table: &StubTable,
    memory: &dyn Memory,
) -> Result<Option<u32>, LayoutError> {
    if !has_continuations(structs, stub_table) {
        return Ok(None);
    }
    let exported = structs.offset("JavaThread", "_cont_entry").ok();
    let decoded = stubs::cont_entry_offset(stub_table, memory);
    match (exported, decoded) {
        (Some(exported), Some(decoded)) if exported != decoded => Err(LayoutError::implausible(
            "JavaThread",
            "_cont_entry",
            format!("described at {exported:#x}, used at {decoded:#x}"),
        )),
        _ => Ok(exported.or(decoded)),
    }
}

//! Builds [`VmLayout`] for the JVM of this process, after the JVM's initialisation, and checks the layout.
//!
//! Input: libjvm's own tables ([`VmStructs`]), the names of the stubs ([`StubTable`]), and JNI. The release
//! decides nothing: fields and types that the tables have, and the code and the ids of the VM, show how the
//! VM differs from others, so that a VM of a later release is read as it describes itself. A field that the
//! tables lack is searched for. Everything else that is missing or implausible is a [`LayoutError`] with the
//! name of the field; the walker then stays off. The facts after each part were checked on Temurin 11.0.13,
//! 17.0.9, 21.0.8, 25.0.2 and 25.0.3 and on Debian's 17.
//!
//! | Threads and frames | Duty |
//! |---|---|
//! | `thread` | threads and their frame anchors |
//! | `current_thread` | the current thread as Java sees it |
//! | `own_stack` | the current thread's stack as the C library knows it |
//! | `frames` | the slots of interpreter frames and of entry frames |
//! | `vframe_array` | frames during deoptimisation |
//! | `monitor` | monitors, and the threads that wait for them |
//!
//! | Code and methods | Duty |
//! |---|---|
//! | `code` | the code cache and its blobs |
//! | `nmethod` | compiled methods |
//! | `deoptimization` | the search for the deoptimisation handlers |
//! | `method` | methods and the structures that lead to their names |
//! | `interpreter` | the template interpreter's codelets |
//! | `stubs` | the VM's own generated code |
//!
//! | Virtual threads and the heap | Duty |
//! |---|---|
//! | `mounted_thread` | the facts by which a mounted virtual thread is recognised |
//! | `continuation` | the frozen frames of virtual threads |
//! | `forwarding` | ZGC's forwarding tables |
//!
//! | Trust | Duty |
//! |---|---|
//! | `release` | the releases of HotSpot, and the facts that only the release tells |
//! | `learnt` | the result: a layout, and the parts that it lacks |
//! | `search` | the search for a field that the tables lack |
//! | `blob_fields` | the search for fields of code blobs, by their values in all blobs |
//! | `check` | comparisons with facts that are also known from other sources |
//! | `error` | the reasons why a layout is refused |

mod blob_fields;
mod check;
mod code;
mod continuation;
mod current_thread;
mod deoptimization;
pub(super) mod error;
mod forwarding;
mod frames;
mod interpreter;
mod learnt;
mod method;
mod monitor;
mod mounted_thread;
mod nmethod;
mod own_stack;
mod release;
mod search;
mod stubs;
mod thread;
mod vframe_array;

pub use check::{Probe, check};
pub use continuation::frozen_frames;
pub use error::LayoutError;
pub use learnt::{Found, Gap, Learnt};
pub use mounted_thread::mounted_thread;
pub use release::Release;

use jni::sys::JNIEnv;
use otlpprof_core::continuation::ContinuationLayout;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{CodeBlobLayout, NmethodLayout, VmLayout};

use self::current_thread::CurrentThread;
use self::frames::InterpreterFrames;
use self::own_stack::OwnStack;
use super::stubs::StubTable;
use super::vm_structs::VmStructs;

/// Learns the layout of this process's JVM, and checks it. The JVM must be initialised (JVMTI's live phase),
/// and `stubs` must contain the stubs that [`StubTable::replay`] collects. Frozen frames and the mounted
/// virtual thread are parts of their own: [`frozen_frames`], [`mounted_thread()`].
///
/// # Safety
///
/// `env` must be the current thread's JNIEnv, without a pending exception.
pub unsafe fn learn(
    env: *mut JNIEnv,
    structs: &VmStructs,
    memory: &dyn Memory,
    stubs: &'static StubTable,
) -> Result<Learnt, LayoutError> {
    let interpreter = InterpreterFrames::new(memory, stubs::stubs(structs, memory, stubs)?);
    // SAFETY: the contract is that of `learn_by`.
    let learn = |structs: &VmStructs| unsafe { learn_by(env, structs, memory, stubs, &interpreter) };
    // SAFETY: the contract is that of `CurrentThread::read`.
    let java_thread = unsafe { CurrentThread::read(env, memory) }.java_thread;
    let mut found = Vec::from_iter(thread::anchor(env as u64, structs, java_thread));
    let own_stack = OwnStack::of_current_thread();
    found.extend(monitor::stack_bounds(structs, memory, java_thread, own_stack.as_ref()));
    found.extend(blob_fields::missing(structs, memory));
    let structs = &completed(structs, &found);
    let mut learnt = learn(structs).or_else(|error| search::for_missing(structs, error, learn))?;
    learnt.found.extend(found);
    let contradiction = blob_fields::contradiction(structs, memory);
    learnt.gaps.extend(contradiction.map(|reason| Gap { effect: WITHOUT_STUBS, reason }));
    let has_no_handlers = |gap: &Gap| {
        gap.effect == WITHOUT_DEOPTIMIZATION && matches!(gap.reason, LayoutError::MissingField { .. })
    };
    if let Some(at) = learnt.gaps.iter().position(has_no_handlers)
        && let Some((handlers, found)) = deoptimization::find(structs, memory, &learnt.layout)
    {
        learnt.gaps.remove(at);
        learnt.layout.nmethod.deoptimization = Some(handlers);
        learnt.found.extend(found);
    }
    Ok(learnt)
}

/// The tables, with the fields that were found.
fn completed(structs: &VmStructs, found: &[Found]) -> VmStructs {
    let mut structs = structs.clone();
    for Found { structure, field, offset } in found {
        structs.set_offset(structure, field, *offset);
    }
    structs
}

/// [`learn`], without a search for a field that is not described.
///
/// # Safety
///
/// As for [`learn`].
unsafe fn learn_by(
    env: *mut JNIEnv,
    structs: &VmStructs,
    memory: &dyn Memory,
    stubs: &'static StubTable,
    interpreter: &InterpreterFrames<'_>,
) -> Result<Learnt, LayoutError> {
    let Learnt { mut layout, mut gaps, .. } = build(structs, memory, stubs, interpreter)?;
    // SAFETY: the contract is that of `of_current_thread`.
    let probe = unsafe { Probe::of_current_thread(env, memory, &layout.method) }?;
    layout.method.ids = probe.method_ids;
    if let Some(offset) = probe.jni_environment_offset() {
        layout.thread.jni_environment = offset;
    }
    let mut has_other_unsigned5 = false;
    while let Err(error) = check(&layout, memory, &probe) {
        match error.field() {
            Some(("nmethod", check::ORIG_PC_OFFSET | check::DEOPT_HANDLER)) => {
                layout.nmethod.deoptimization = None;
                gaps.push(Gap { effect: WITHOUT_DEOPTIMIZATION, reason: error });
            }
            Some(("JavaThread", monitor::STACK_BASE)) => {
                layout.monitor = None;
                gaps.push(Gap { effect: WITHOUT_MONITOR, reason: error });
            }
            Some(("CodeBlob", check::KIND)) => {
                layout.code_blob.kinds = None;
                gaps.push(Gap { effect: WITHOUT_KINDS, reason: error });
            }
            Some(("nmethod", check::SCOPES_DATA_OFFSET)) if !has_other_unsigned5 => {
                has_other_unsigned5 = true;
                layout.nmethod.unsigned5_excluded ^= 1;
                layout.method.unsigned5_excluded ^= 1;
            }
            _ => return Err(error),
        }
    }
    Ok(Learnt { layout, gaps, found: Vec::new() })
}

const WITHOUT_STUBS: &str = "samples in the stubs of compiled methods may have wrong callers";
const WITHOUT_KINDS: &str = "adapters of an AOT cache and targets of safepoint polls are known by name only";
const WITHOUT_DEOPTIMIZATION: &str = "frames that are to be deoptimised have no lines";
const WITHOUT_VFRAME_ARRAY: &str = "stacks end at frames that are being deoptimised";
const WITHOUT_MONITOR: &str = "the owners of monitors are not recorded";

/// The layout that libjvm's tables and code describe, not yet checked. Only JNI tells the meaning of
/// jmethodIDs ([`Probe::method_ids`]).
fn build(
    structs: &VmStructs,
    memory: &dyn Memory,
    stubs: &'static StubTable,
    interpreter: &InterpreterFrames<'_>,
) -> Result<Learnt, LayoutError> {
    // From 20 on UNSIGNED5 excludes the byte 0 (JDK-8292758, utilities/unsigned5.hpp), which no table tells.
    // In the same release `_comp_level` became a byte (JDK-8288477). The check finds a wrong assumption.
    let unsigned5_excluded = u8::from(structs.width_of(memory, "nmethod", "_comp_level").unwrap_or(1) == 1);
    let method = method::method(structs, memory, unsigned5_excluded)?;
    let mut gaps = Vec::new();
    part(&mut gaps, nmethod::stub_offset(structs), WITHOUT_STUBS);
    let code_blob = code::code_blob(structs, memory)?;
    let layout = VmLayout {
        has_continuations: thread::has_continuations(structs, stubs),
        code_cache: code::code_cache(structs, memory)?,
        code_blob: CodeBlobLayout {
            kinds: part(&mut gaps, code::blob_kinds(structs), WITHOUT_KINDS).flatten(),
            ..code_blob
        },
        nmethod: NmethodLayout {
            deoptimization: part(&mut gaps, nmethod::deoptimization(structs), WITHOUT_DEOPTIMIZATION),
            ..nmethod::nmethod(structs, code_blob.code_end, unsigned5_excluded)?
        },
        method,
        thread: thread::thread(structs, memory, &interpreter.stubs)?,
        interpreter_frame: interpreter.of(&method)?,
        vframe_array: part(&mut gaps, vframe_array::vframe_array(structs), WITHOUT_VFRAME_ARRAY),
        monitor: part(&mut gaps, monitor::monitor(structs), WITHOUT_MONITOR),
        continuation: thread::cont_entry(structs, stubs, memory)?.map(|entry| ContinuationLayout {
            entry,
            mounted: None,
            frozen: None,
        }),
        stubs: interpreter.stubs,
    };
    Ok(Learnt { layout, gaps, found: Vec::new() })
}

/// The part, or `None` and a gap.
fn part<T>(gaps: &mut Vec<Gap>, part: Result<T, LayoutError>, effect: &'static str) -> Option<T> {
    part.map_err(|reason| gaps.push(Gap { effect, reason })).ok()
}

//! The functions that Java calls: the native methods of `io.otlpprof.Natives` (java/api).
//!
//! The VM finds them by name, whether the library was loaded as an agent or by Java. No panic leaves them. A
//! failure is returned as null or 0, and Java turns it into the outcome that its documentation promises.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Once;

use jni::sys::{JNI_OK, JNIEnv, jboolean, jclass, jint, jlong, jlongArray, jobject, jobjectArray, jstring};
use otlpprof_context::counts::{COUNTS, add};
use otlpprof_context::dictionary::{DICTIONARY, Interned, LONGEST_VALUE, MAX_VALUES};
use otlpprof_context::published_records::{PublishedRecord, RECORD_BYTES};
use otlpprof_context::slot_names::SLOT_NAMES;
use otlpprof_context::{changes, threads, virtual_blocks};
use otlpprof_core::context::{BLOCK_BYTES, ContextBlock, ContextRecord, ValueRef};
use otlpprof_jvm::thread_kinds::ThreadKind;
use otlpprof_model::{Link, attribute_keys};
use otlpprof_options::Request;

use super::callbacks::callbacks;
use super::entry;
use super::events::{EventKind, ProgramEvent};
use super::java_strings::{new_string, text_of, texts_of, throw};
use super::lifecycle::{self, Agent};
use super::{logging, publication, virtual_contexts};

/// Returns `body`'s result, or `otherwise` if it panics.
fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        log::error!("internal error in a call from Java; the call has no effect");
        otherwise
    })
}

/// Returns the agent, which knows the VM. Makes the agent if Java loaded the library (`System.load`) and no
/// agent exists.
///
/// # Safety
/// `env` belongs to the current thread.
unsafe fn agent(env: *mut JNIEnv) -> Option<&'static Agent> {
    if let Some(agent) = lifecycle::agent().filter(|agent| agent.vm.names().is_some()) {
        return Some(agent);
    }
    let mut vm = null_mut();
    // SAFETY: the contract gives the current thread's `env`; the out parameter is valid.
    let found = unsafe { ((**env).v1_1.GetJavaVM)(env, &mut vm) };
    if found != 0 {
        return None;
    }
    // SAFETY: `vm` is the VM that `GetJavaVM` has just returned.
    unsafe { lifecycle::make(vm, &callbacks()) }
        .inspect_err(|error| log::warn!("{error}; calls of io.otlpprof do nothing"))
        .ok()
}

/// Implements `Natives.version0`.
///
/// # Safety
/// Called by the JVM only, as all functions below.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_version0(
    env: *mut JNIEnv,
    _: jclass,
) -> jstring {
    // SAFETY: the JVM passes the current thread's environment, without a pending exception.
    guarded(null_mut(), || unsafe { new_string(env, env!("CARGO_PKG_VERSION")) })
}

/// The value of `ABI` in `Natives.java` that this file implements.
const ABI: jint = 7;

/// Implements `Natives.abi0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_abi0(_: *mut JNIEnv, _: jclass) -> jint {
    guarded(0, || ABI)
}

/// Implements `Natives.load0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_load0(
    env: *mut JNIEnv,
    _: jclass,
    options: jstring,
) -> jboolean {
    guarded(true, || {
        // SAFETY: the JVM passes the current thread's environment and a live reference to a string, or null.
        let text = unsafe { text_of(env, options, usize::MAX) }.unwrap_or_default();
        let mut vm = null_mut();
        // SAFETY: the JVM passes the current thread's environment; the out parameter is valid, and gets this
        // process's VM.
        unsafe {
            ((**env).v1_1.GetJavaVM)(env, &mut vm);
            entry::load_with(vm, text.as_bytes()) == JNI_OK
        }
    })
}

/// Implements `Natives.start0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_start0(
    env: *mut JNIEnv,
    _: jclass,
    options: jstring,
) -> jstring {
    guarded(null_mut(), || {
        // SAFETY: the JVM passes the current thread's environment and a live reference to a string.
        let problem = unsafe { start(env, options) }.err();
        // SAFETY: the JVM passes the current thread's environment; `start` leaves no exception pending.
        problem.map_or(null_mut(), |problem| unsafe { new_string(env, &problem) })
    })
}

/// Starts a session. An error that begins with `options: ` is the caller's mistake; one that begins with
/// `disabled: ` means that the user has disabled the profiler.
///
/// # Safety
/// `env` belongs to the current thread. `options` is a live reference to a string.
unsafe fn start(env: *mut JNIEnv, options: jstring) -> Result<(), String> {
    // SAFETY: the contract gives the current thread's `env` and a live string.
    let text = unsafe { text_of(env, options, usize::MAX) }.unwrap_or_default();
    let mut vm = null_mut();
    // SAFETY: the contract gives `env`; the out parameter is valid, and gets this process's VM.
    let environment = unsafe {
        ((**env).v1_1.GetJavaVM)(env, &mut vm);
        entry::environment(vm)
    };
    let request = otlpprof_options::parse(&text, &environment);
    let options = match request.map_err(|error| format!("options: {}", error.message))? {
        Request::Start(options) => *options,
        Request::Disabled(name) => {
            logging::say(&format!("{name}=true: nothing is profiled"));
            return Err(format!("disabled: {name}"));
        }
        _ => return Err("options: commands are not accepted here; call the method for the command".into()),
    };
    if !lifecycle::agent().is_some_and(Agent::is_profiling) {
        logging::set_level(options.log_level);
    }
    // SAFETY: `vm` is the VM that `GetJavaVM` has returned.
    unsafe { lifecycle::start(vm, &callbacks(), options) }.map_err(|error| error.to_string())
}

/// Implements `Natives.stop0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_stop0(env: *mut JNIEnv, _: jclass) -> jboolean {
    guarded(false, || lifecycle::agent().is_some_and(|agent| agent.stop(Some(env))))
}

/// Implements `Natives.flush0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_flush0(
    env: *mut JNIEnv,
    _: jclass,
) -> jboolean {
    guarded(false, || lifecycle::agent().is_some_and(|agent| agent.flush(Some(env))))
}

/// Implements `Natives.status0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_status0(
    env: *mut JNIEnv,
    _: jclass,
) -> jstring {
    guarded(null_mut(), || {
        let status = lifecycle::agent().map_or_else(|| lifecycle::NOT_PROFILING.to_owned(), Agent::status);
        // SAFETY: the JVM passes the current thread's environment, without a pending exception.
        unsafe { new_string(env, &status) }
    })
}

/// Implements `Natives.setRegistered0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_setRegistered0(
    env: *mut JNIEnv,
    _: jclass,
    is_registered: jboolean,
) -> jboolean {
    // SAFETY: the JVM passes the current thread's environment.
    guarded(false, || unsafe { set_registered(env, is_registered) }.is_some())
}

/// # Safety
/// `env` belongs to the current thread.
unsafe fn set_registered(env: *mut JNIEnv, is_registered: bool) -> Option<()> {
    // SAFETY: the contract gives the current thread's `env`.
    let agent = unsafe { agent(env) }?;
    // SAFETY: the thread is attached. A native method's local references are released when it returns.
    let current = unsafe { agent.vm.jvmti.current_thread() }.ok()?;
    // SAFETY: the contract gives the current thread's `env`; the reference is live.
    if unsafe { ThreadKind::of(agent.vm.jvmti, env, current) }.ok()? != ThreadKind::Virtual {
        return threads::set_registered(is_registered).then_some(());
    }
    // The handler finds a virtual thread's registration through the thread's block. SAFETY: the contract
    // gives the current thread's `env`; the reference is live.
    let id = unsafe { agent.vm.names()?.thread_id(env, current) };
    virtual_contexts::enable(agent.vm).then(|| threads::virtual_block(id))??;
    virtual_blocks::set_registered(id, is_registered);
    Some(())
}

/// Implements `Natives.epoch0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_epoch0(env: *mut JNIEnv, _: jclass) -> jobject {
    guarded(null_mut(), || {
        let words = std::ptr::from_ref(DICTIONARY.published()).cast_mut().cast();
        // SAFETY: the JVM passes the current thread's environment; the words live as long as the process.
        unsafe { ((**env).v1_4.NewDirectByteBuffer)(env, words, 8) }
    })
}

/// Implements `Natives.changes0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_changes0(
    env: *mut JNIEnv,
    _: jclass,
) -> jobject {
    guarded(null_mut(), || {
        let Some(changes) = changes::memory() else { return null_mut() };
        // SAFETY: the JVM passes the current thread's environment; the memory is never unmapped.
        unsafe { ((**env).v1_4.NewDirectByteBuffer)(env, changes.as_ptr().cast(), changes::BYTES as jlong) }
    })
}

/// Implements `Natives.threadId0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_threadId0(
    env: *mut JNIEnv,
    _: jclass,
) -> jlong {
    guarded(0, || {
        // SAFETY: the JVM passes the current thread's environment. Local references are released when this
        // method returns.
        let id = || unsafe {
            let agent = agent(env)?;
            Some(agent.vm.names()?.thread_id(env, agent.vm.jvmti.current_thread().ok()?))
        };
        id().unwrap_or(0)
    })
}

/// Implements `Natives.block0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_block0(env: *mut JNIEnv, _: jclass) -> jobject {
    guarded(null_mut(), || {
        // SAFETY: the JVM passes the current thread's environment.
        let Some(block) = (unsafe { block_of_current_thread(env) }) else { return null_mut() };
        let memory = std::ptr::from_ref(block).cast_mut().cast();
        // SAFETY: the JVM passes the current thread's environment; blocks are never unmapped.
        unsafe { ((**env).v1_4.NewDirectByteBuffer)(env, memory, BLOCK_BYTES as jlong) }
    })
}

/// # Safety
/// `env` belongs to the current thread.
unsafe fn block_of_current_thread(env: *mut JNIEnv) -> Option<&'static ContextBlock> {
    // Blocks need the agent, whose callbacks give them back when threads end. SAFETY: the contract gives the
    // current thread's `env`.
    let agent = unsafe { agent(env) }?;
    // SAFETY: the thread is attached. A native method's local references are released when it returns.
    let current = unsafe { agent.vm.jvmti.current_thread() }.ok()?;
    // SAFETY: the contract gives the current thread's `env`; the reference is live.
    match unsafe { ThreadKind::of(agent.vm.jvmti, env, current) }.ok()? {
        ThreadKind::Platform => threads::platform_block(false),
        ThreadKind::Carrier => threads::platform_block(true),
        // A virtual thread that is bound to a kernel thread for its whole life. For its end the VM sends no
        // ThreadEnd, in which a platform thread's block is released (`JvmtiExport::post_thread_end`,
        // prims/jvmtiExport.cpp, 21 and 25).
        ThreadKind::BoundVirtual => None,
        ThreadKind::Virtual => {
            let names = agent.vm.names()?;
            // SAFETY: the contract gives the current thread's `env`; the reference is live.
            let id = unsafe { names.thread_id(env, current) };
            virtual_contexts::enable(agent.vm).then(|| threads::virtual_block(id))?
        }
    }
}

/// Implements `Natives.publishedRecord0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_publishedRecord0(
    env: *mut JNIEnv,
    _: jclass,
    earlier: jobject,
) -> jobject {
    guarded(null_mut(), || {
        let address = || {
            // SAFETY: the JVM passes the current thread's environment and a live reference to a buffer.
            unsafe { ((**env).v1_4.GetDirectBufferAddress)(env, earlier) }
        };
        let earlier = if earlier.is_null() { null_mut() } else { address() };
        // SAFETY: the JVM passes the current thread's environment.
        let Some(record) = (unsafe { record_of_current_thread(env, earlier) }) else { return null_mut() };
        let memory = record.as_ptr().cast_mut();
        // SAFETY: the JVM passes the current thread's environment; records are never freed.
        unsafe { ((**env).v1_4.NewDirectByteBuffer)(env, memory, RECORD_BYTES as jlong) }
    })
}

/// # Safety
/// `env` belongs to the current thread.
unsafe fn record_of_current_thread(
    env: *mut JNIEnv,
    earlier: *const c_void,
) -> Option<&'static PublishedRecord> {
    let agent = lifecycle::agent()?;
    // SAFETY: the thread is attached. A native method's local references are released when it returns.
    let current = unsafe { agent.vm.jvmti.current_thread() }.ok()?;
    // SAFETY: the contract gives the current thread's `env`; the reference is live.
    match unsafe { ThreadKind::of(agent.vm.jvmti, env, current) }.ok()? {
        ThreadKind::Virtual => {
            let names = agent.vm.names()?;
            // SAFETY: the contract gives the current thread's `env`; the reference is live.
            threads::virtual_record(unsafe { names.thread_id(env, current) }, earlier)
        }
        _ => threads::published_record(earlier),
    }
}

/// Implements `Natives.event0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_event0(
    env: *mut JNIEnv,
    _: jclass,
    kind: jint,
    texts: jobjectArray,
    numbers: jlongArray,
) -> jboolean {
    // SAFETY: the JVM passes the current thread's environment and live references to the arrays.
    guarded(false, || unsafe { event(env, kind, texts, numbers) }.unwrap_or(false))
}

/// # Safety
/// `env` belongs to the current thread. The arrays are live references.
unsafe fn event(env: *mut JNIEnv, kind: jint, texts: jobjectArray, numbers: jlongArray) -> Option<bool> {
    // SAFETY: the contract gives `env` and live arrays; the region is within Java's array and the buffer.
    let (given, [time_ns, high, low, span, thread_id, length]) = unsafe {
        let mut values = [0; 6];
        ((**env).v1_1.GetLongArrayRegion)(env, numbers, 0, 6, values.as_mut_ptr());
        (texts_of(env, texts), values)
    };
    let (kind, keys): (_, &[&str]) = match kind {
        0 => (
            EventKind::TraceRoot,
            &[attribute_keys::TRACE_ROOT_ENDPOINT, attribute_keys::TRACE_ROOT_OPERATION],
        ),
        1 => (
            EventKind::Queue,
            &[
                attribute_keys::QUEUE_SCHEDULER,
                attribute_keys::QUEUE_TASK,
                attribute_keys::QUEUE_TYPE,
                attribute_keys::QUEUE_ORIGIN,
            ],
        ),
        _ => (EventKind::Duration, &[attribute_keys::EVENT_NAME]),
    };
    let keys = keys.iter().chain(&[attribute_keys::THREAD_NAME]);
    let texts: Vec<_> =
        keys.zip(&given).filter_map(|(key, text)| Some(((*key).to_owned(), text.clone()?))).collect();
    let mut trace_id = [0; 16];
    trace_id[..8].copy_from_slice(&high.to_be_bytes());
    trace_id[8..].copy_from_slice(&low.to_be_bytes());
    let numbers = [(attribute_keys::THREAD_ID, thread_id), (attribute_keys::QUEUE_LENGTH, length)];
    let mut event = ProgramEvent {
        kind,
        frame: given.first()?.clone()?,
        texts,
        numbers: numbers.into_iter().filter(|(_, number)| *number >= 0).collect(),
        link: Link { trace_id, span_id: span.to_be_bytes() },
    };
    // A thread that has never set a context has no block, and gets none for an event. SAFETY: the contract
    // gives the current thread's `env`.
    if let Some(context) = unsafe { context_of_current_thread(env) } {
        event.take_context(&context);
    }
    let mut is_recorded = false;
    lifecycle::agent()?.with_session(|session| is_recorded = session.record_event(event, time_ns));
    Some(is_recorded)
}

/// # Safety
/// `env` belongs to the current thread.
unsafe fn context_of_current_thread(env: *mut JNIEnv) -> Option<ContextRecord> {
    let agent = lifecycle::agent()?;
    // SAFETY: the thread is attached. A native method's local references are released when it returns.
    let current = unsafe { agent.vm.jvmti.current_thread() }.ok()?;
    // SAFETY: the contract gives the current thread's `env`; the reference is live.
    let block = match unsafe { ThreadKind::of(agent.vm.jvmti, env, current) }.ok()? {
        // SAFETY: the contract gives the current thread's `env`; the reference is live.
        ThreadKind::Virtual => virtual_blocks::find(unsafe { agent.vm.names()?.thread_id(env, current) }),
        _ => threads::own_block(),
    };
    block?.read()
}

/// Implements `Natives.intern0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_intern0(
    env: *mut JNIEnv,
    _: jclass,
    value: jstring,
) -> jlong {
    guarded(0, || {
        // A UTF-16 unit takes at least one byte of UTF-8, so a longer text need not be converted. SAFETY: the
        // JVM passes the current thread's environment and a live reference to a string.
        let text = unsafe { text_of(env, value, LONGEST_VALUE) }.filter(|text| text.len() <= LONGEST_VALUE);
        let Some(text) = text else {
            add(&COUNTS.values_dropped_long, 1);
            return 0;
        };
        let Some(Interned { reference, epoch, .. }) = intern(&text) else {
            add(&COUNTS.values_dropped_full, 1);
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                log::warn!(
                    "{MAX_VALUES} values of context attributes are in use at once: further values are not \
                     recorded"
                )
            });
            return 0;
        };
        jlong::from(epoch) << 32 | jlong::from(reference.0)
    })
}

fn intern(text: &str) -> Option<Interned> {
    if let Ok(interned) = DICTIONARY.intern(text) {
        if interned.is_crowded
            && let Some(agent) = lifecycle::agent()
        {
            agent.ring_drain_bell();
        }
        return Some(interned);
    }
    // The agent's thread has not reclaimed values in time, or there is no such thread.
    let has_room = lifecycle::agent()?.reclaim_values();
    DICTIONARY.intern(text).ok().filter(|_| has_room)
}

/// Implements `Natives.refused0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_refused0(
    env: *mut JNIEnv,
    _: jclass,
    is_of_ids: jboolean,
    line: jstring,
) {
    guarded((), || {
        add(&COUNTS.ids_refused, u64::from(is_of_ids));
        // SAFETY: the JVM passes the current thread's environment, and null or a live reference to a string.
        if let Some(line) = unsafe { text_of(env, line, 1 << 16) } {
            let line = line.replace(char::is_control, " ");
            log::warn!("{line} (logged once; further calls are only counted)");
        }
    });
}

/// Implements `Natives.value0`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_value0(
    env: *mut JNIEnv,
    _: jclass,
    reference: jint,
) -> jstring {
    guarded(null_mut(), || {
        let text = DICTIONARY.values().get(ValueRef(reference.cast_unsigned())).map(str::to_owned);
        // SAFETY: the JVM passes the current thread's environment. The dictionary is not locked here, since
        // making a string may wait for a safepoint.
        text.map_or(null_mut(), |text| unsafe { new_string(env, &text) })
    })
}

/// Implements `Natives.slots0`. The result has four bits for each name; the first name has the lowest four.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Java_io_otlpprof_Natives_slots0(
    env: *mut JNIEnv,
    _: jclass,
    names: jobjectArray,
) -> jlong {
    guarded(0, || {
        // SAFETY: the JVM passes the current thread's environment and a live reference to an array of
        // strings.
        let names: Vec<_> =
            unsafe { texts_of(env, names) }.into_iter().map(Option::unwrap_or_default).collect();
        let named = SLOT_NAMES.list().len();
        let slots = SLOT_NAMES.slots_of(&names);
        if SLOT_NAMES.list().len() > named {
            publication::names_changed();
        }
        slots
            .map(|slots| slots.into_iter().rfold(0, |all, slot| all << 4 | jlong::from(slot)))
            .unwrap_or_else(|error| {
                // SAFETY: the JVM passes the current thread's environment, without a pending exception.
                unsafe { throw(env, c"java/lang/IllegalArgumentException", &error.to_string()) };
                0
            })
    })
}

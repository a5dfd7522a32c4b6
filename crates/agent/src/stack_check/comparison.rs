//! One stack of the current thread, by a walk and as JVMTI describes it.

use jni::sys::JNIEnv;

use otlpprof_core::collections::COLLECTIONS;
use otlpprof_core::object::ObjectMap;
use otlpprof_core::record::{FrameKind, FrameRecord};
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::vm_layout::VmLayout;
use otlpprof_jvm::jvmti::Jvmti;
use otlpprof_jvm::jvmti_error::JvmtiError;
use otlpprof_jvm::methods::{MethodTable, MethodTableLimits};
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_signal::walk::registers::Registers;
use otlpprof_signal::walk::{FrameSink, Start, Walk};

/// The most frames that are compared. The compared stacks have fewer, even with the frames of the thread's
/// callers.
const MAX_FRAMES: usize = 64;

/// The frames of a stack that the walk and the VM agree on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Same {
    pub(super) frames: usize,
    /// The number of them that are in compiled code.
    pub(super) compiled: usize,
    /// The highest level that one of them was compiled at.
    pub(super) level: u8,
}

/// Compares the current thread's Java frames, up to the method `last` or else the thread's root.
///
/// # Errors
/// The first difference, or the reason why the VM describes no stack.
///
/// # Safety
/// Called in a native method or in an event of the VM's, with the current thread's environment.
pub(super) unsafe fn compare(
    jvmti: Jvmti,
    env: *mut JNIEnv,
    layout: &VmLayout,
    last: Option<&str>,
) -> Result<Same, String> {
    let described = jvmti.stack_trace(MAX_FRAMES).map_err(|error| error.to_string())?;
    let no_frame = FrameRecord { value: 0, aux: 0, kind: FrameKind::NoJavaFrame, level: 0, reserved: 0 };
    let mut frames = [no_frame; MAX_FRAMES + 2];
    let walked = walk(env, layout, &mut frames);
    let mut methods = MethodTable::new(layout.method, MethodTableLimits::default());
    let mut same = Same::default();
    for (index, (method, bci)) in described.iter().enumerate() {
        // SAFETY: the VM has just issued the id.
        let expected = unsafe { name_of(jvmti, env, *method) }.map_err(|error| error.to_string())?;
        let found = walked.get(index).filter(|frame| frame.kind.is_java()).and_then(|frame| {
            let id = methods.resolve(&ProcessMemory, frame.value).ok()?;
            let method = methods.get(id)?;
            let name = format!("{}.{}{}", method.class.name, method.name, method.signature);
            Some((frame, name, i64::from(frame.aux.cast_signed())))
        });
        let frame = match found {
            Some((frame, name, at)) if name == expected && at == *bci => frame,
            Some((_, name, at)) => return Err(format!("{name} at {at} in place of {expected} at {bci}")),
            None => return Err(format!("no frame in place of {expected} at {bci}")),
        };
        same.frames += 1;
        same.compiled += usize::from(frame.kind != FrameKind::Interpreted);
        same.level = same.level.max(frame.level);
        if last == Some(&*expected) {
            return Ok(same);
        }
    }
    match walked.get(described.len()) {
        _ if last.is_some() => Err(format!("{} is not in the stack", last.unwrap_or_default())),
        Some(frame) if described.len() < MAX_FRAMES => Err(format!("{:?} beyond the root", frame.kind)),
        _ => Ok(same),
    }
}

/// The Java frames of the current thread, by the walker.
fn walk<'a>(env: *mut JNIEnv, layout: &VmLayout, frames: &'a mut [FrameRecord]) -> &'a [FrameRecord] {
    let mut sink = FrameSink::new(frames, None);
    let start = Start {
        vm: Some(layout),
        objects: &ObjectMap::default(),
        java_thread: (env as u64).wrapping_sub(u64::from(layout.thread.jni_environment)),
        stack_high: u64::MAX,
        registers: Registers::default(),
        walker: StackWalker::No,
        call_trace: None,
        collections: &COLLECTIONS,
        loader: |_| None,
    };
    Walk::new(&ProcessMemory, start).walk_from_call(&mut sink);
    let len = sink.len();
    &frames[..len]
}

/// A method's class, name and descriptor, as [`MethodTable`] has them.
///
/// # Safety
/// The VM has issued the id, and `env` belongs to the current thread.
unsafe fn name_of(jvmti: Jvmti, env: *mut JNIEnv, method: jni::sys::jmethodID) -> Result<String, JvmtiError> {
    // SAFETY: the VM has issued the id, by the contract. The class's reference is deleted once.
    unsafe {
        let (name, descriptor) = jvmti.method_name(method)?;
        let class = jvmti.method_class(method)?;
        let signature = jvmti.class_signature(class);
        if !class.is_null() {
            ((**env).v1_2.DeleteLocalRef)(env, class);
        }
        let signature = signature?;
        let class = signature.trim_start_matches('L').trim_end_matches(';').replace('/', ".");
        Ok(format!("{class}.{name}{descriptor}"))
    }
}

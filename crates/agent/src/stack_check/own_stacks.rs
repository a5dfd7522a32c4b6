//! Stacks of a class of the agent's own ([`probe_class`]). Its native method compares the stack that called
//! it, if a comparison is wanted.

use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use jni::sys::{JNIEnv, jclass, jvalue};
use otlpprof_core::vm_layout::VmLayout;
use otlpprof_jvm::boot_classes::{BootClassError, class_with_native};
use otlpprof_jvm::class_file::probe_class::{DESCEND, LOOK, RUN, probe_class};
use otlpprof_jvm::java_calls::{CallError, Java, in_frame};
use otlpprof_jvm::jvmti::Jvmti;
use parking_lot::{Condvar, Mutex};

use super::comparison::{Same, compare};

/// The calls of the probe before each comparison: HotSpot compiles a method after 200 calls first, and again
/// after some thousands (compiler/compiler_globals.hpp: Tier3InvocationThreshold, Tier4InvocationThreshold).
const CALLS: u32 = 1_000;
/// The comparisons until the VM has compiled the probe at its highest level, and the pause before each, in
/// which the compiler works. A VM that compiles nothing costs all of the pauses.
const ROUNDS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(1);
/// The highest compilation level, at which C2 compiles.
const HIGHEST_LEVEL: u8 = 4;
/// The longest time until a virtual thread has been looked at.
const PATIENCE: Duration = Duration::from_secs(2);

/// The results.
#[derive(Debug)]
pub(super) struct OwnStacks {
    /// The last stack of the current thread, or the first difference.
    pub(super) of_thread: Result<Same, String>,
    /// The frames of a virtual thread; 0 if the VM has no virtual threads.
    pub(super) of_virtual_thread: Result<usize, String>,
}

/// A comparison that the next call of the native method makes, on whatever thread.
struct Wanted {
    jvmti: Jvmti,
    layout: VmLayout,
    /// The last method of the stack that is compared. `None`: the whole stack.
    last: Option<String>,
    result: Option<Result<Same, String>>,
}

static WANTED: Mutex<Option<Wanted>> = Mutex::new(None);
static LOOKED: Condvar = Condvar::new();

/// Compares stacks of the current thread while the VM compiles their method, and one of a virtual thread.
/// Unless `is_untried`, one stack of the current thread is compared, before the VM has compiled its method.
///
/// # Errors
/// If the VM does not take the probe's class.
///
/// # Safety
/// `env` belongs to the current thread, which has no pending exception, in the live phase.
pub(super) unsafe fn check(
    jvmti: Jvmti,
    env: *mut JNIEnv,
    layout: &VmLayout,
    is_untried: bool,
) -> Result<OwnStacks, BootClassError> {
    let want = |last: Option<String>| {
        *WANTED.lock() = Some(Wanted { jvmti, layout: *layout, last, result: None });
    };
    // SAFETY: the contract gives the current thread's `env`. `look` has the method's signature and is never
    // unloaded. References are used according to their types.
    unsafe {
        let class = class_with_native(env, LOOK, probe_class(), look as *mut c_void)?;
        let own = in_frame(env, |java| OwnStacks {
            of_thread: of_thread(java, class, if is_untried { ROUNDS } else { 1 }, &want),
            of_virtual_thread: match layout.continuation {
                Some(_) if is_untried => of_virtual_thread(java, class, &want).map(|same| same.frames),
                _ => Ok(0),
            },
        });
        *WANTED.lock() = None;
        ((**env).v1_2.DeleteLocalRef)(env, class);
        Ok(own)
    }
}

/// Compares stacks of the current thread.
///
/// # Safety
/// `class` is a live reference to the probe's class.
unsafe fn of_thread(
    java: Java,
    class: jclass,
    rounds: u32,
    want: &impl Fn(Option<String>),
) -> Result<Same, String> {
    let [name, descriptor] = [DESCEND.0, DESCEND.1].map(c_string);
    let call = || {
        let arguments = [jvalue { i: 3 }, jvalue { i: 0 }];
        // SAFETY: the class is live by the contract, and the arguments have the descriptor's types.
        let called = unsafe { java.call_static(class, (&name, &descriptor), &arguments) };
        called.map(drop).map_err(|error| error.to_string())
    };
    let mut same = Same::default();
    for round in 0..rounds {
        if round > 0 {
            (0..CALLS).try_for_each(|_| call())?;
            std::thread::sleep(PAUSE);
        }
        want(None);
        call()?;
        let result = WANTED.lock().take().and_then(|wanted| wanted.result);
        same = result.unwrap_or_else(|| Err("the probe was not called".to_owned()))?;
        if same.level >= HIGHEST_LEVEL {
            break;
        }
    }
    Ok(same)
}

/// Compares the stack of a virtual thread that has frozen frames.
///
/// # Safety
/// As for [`of_thread`].
unsafe fn of_virtual_thread(
    java: Java,
    class: jclass,
    want: &impl Fn(Option<String>),
) -> Result<Same, String> {
    want(Some(format!("{}.{}{}", LOOK.class.replace('/', "."), RUN.0, RUN.1)));
    // SAFETY: the class is live by the contract. The thread takes a Runnable, which the probe is.
    unsafe { start_virtual_thread(java, class) }.map_err(|error| error.to_string())?;
    let mut wanted = WANTED.lock();
    let is_missing =
        |wanted: &mut Option<Wanted>| wanted.as_ref().is_some_and(|wanted| wanted.result.is_none());
    LOOKED.wait_while_for(&mut wanted, is_missing, PATIENCE);
    let result = wanted.take().and_then(|wanted| wanted.result);
    result.unwrap_or_else(|| Err(format!("no virtual thread has run within {PATIENCE:?}")))
}

/// Starts a virtual thread that runs the probe.
///
/// # Safety
/// As for [`of_thread`].
unsafe fn start_virtual_thread(java: Java, class: jclass) -> Result<(), CallError> {
    let start = (c"startVirtualThread", c"(Ljava/lang/Runnable;)Ljava/lang/Thread;");
    let threads = java.class(c"java/lang/Thread")?;
    // SAFETY: the contract gives a live class, whose object is a Runnable.
    unsafe {
        let probe = java.allocate(class)?;
        java.call_static(threads, start, &[jvalue { l: probe }]).map(drop)
    }
}

fn c_string(text: &str) -> CString {
    // SANITY: the names of the probe's methods have no zero byte.
    CString::new(text).unwrap()
}

unsafe extern "system" fn look(env: *mut JNIEnv, _: jclass) {
    // A panic that reaches a C frame ends the process. Without a result the stack counts as not described.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let mut wanted = WANTED.lock();
        if let Some(wanted) = wanted.as_mut().filter(|wanted| wanted.result.is_none()) {
            let last = wanted.last.as_deref();
            // SAFETY: a native method, to which the VM passes the current thread's environment.
            wanted.result = Some(unsafe { compare(wanted.jvmti, env, &wanted.layout, last) });
            LOOKED.notify_all();
        }
    }));
}

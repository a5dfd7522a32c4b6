//! The functions that the JVM calls when it loads and unloads the agent.

use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::catch_unwind;

use jni::sys::{JNI_ERR, JNI_OK, JavaVM, jint};
use log::LevelFilter;

use super::callbacks::callbacks;
use super::engines;
use super::lifecycle;
use super::logging;
use super::options::{self, Environment, Request};
use crate::jvm::jvmti::Jvmti;

/// Starts the agent at the JVM's start: `-agentpath:…/libotlpprof.so=OPTIONS`.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Agent_OnLoad(
    vm: *mut JavaVM,
    options: *const c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: the JVM passes its JavaVM, and options that are null or a C string.
    unsafe { load(vm, options) }
}

/// Loads the agent into a running JVM: `jcmd PID JVMTI.agent_load …/libotlpprof.so "OPTIONS"`. A repeated
/// load controls the agent that is already running.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Agent_OnAttach(
    vm: *mut JavaVM,
    options: *const c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: the JVM passes its JavaVM, and options that are null or a C string.
    unsafe { load(vm, options) }
}

/// Prepares for the JVM's unloading of the library.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Agent_OnUnload(_: *mut JavaVM) {
    let _ = catch_unwind(|| {
        if let Some(agent) = lifecycle::agent() {
            agent.unload();
        }
    });
}

/// # Safety
/// `vm` is the JavaVM of this process. `options` is null or a C string.
unsafe fn load(vm: *mut JavaVM, options: *const c_char) -> jint {
    let text: &[u8] = if options.is_null() {
        &[]
    } else {
        // SAFETY: the contract requires a C string where `options` is not null.
        unsafe { CStr::from_ptr(options) }.to_bytes()
    };
    // SAFETY: the contract requires the JavaVM of this process.
    unsafe { load_with(vm, text) }
}

/// Loads the agent with these options, in whatever way the library was loaded. The caller ends the JVM with
/// any result other than `JNI_OK`.
///
/// # Safety
/// `vm` is the JavaVM of this process.
pub(super) unsafe fn load_with(vm: *mut JavaVM, options: &[u8]) -> jint {
    let result = catch_unwind(|| {
        // A running session keeps its log level, whatever controls it later.
        if lifecycle::agent().is_none() {
            logging::set_level(LevelFilter::Info);
        }
        // SAFETY: the contract requires the JavaVM of this process.
        let environment = unsafe { environment(vm) };
        let request = options::parse_bytes(options, &environment);
        // SAFETY: the contract requires the JavaVM of this process.
        unsafe { obey(vm, request) }
    });
    result.unwrap_or_else(|_| {
        logging::say("error: internal error at start; the JVM continues without profiling");
        JNI_OK
    })
}

/// Returns the environment variables of this process, and the system properties that replace some of them.
///
/// # Safety
/// `vm` is the JavaVM of this process.
pub(super) unsafe fn environment(vm: *mut JavaVM) -> Environment {
    let environment = Environment::of_process();
    // SAFETY: the contract requires the JavaVM of this process.
    let Ok(jvmti) = (unsafe { Jvmti::new(vm) }) else { return environment };
    let property = |name: String| {
        let value = jvmti.system_property(&CString::new(name.as_str()).ok()?).ok()??;
        Some((name, value))
    };
    let environment = environment.with_properties(options::property_names().filter_map(property));
    // SAFETY: this environment has no other copy, and is not used again.
    let _ = unsafe { jvmti.dispose() };
    environment
}

/// Carries out a request. A mistake in it leaves the JVM running, unless `strict` is set.
unsafe fn obey(vm: *mut JavaVM, request: Result<Request, options::OptionError>) -> jint {
    let is_profiling = lifecycle::agent().is_some_and(lifecycle::Agent::is_profiling);
    let outcome = if is_profiling { "profiling continues as before" } else { "the agent does not start" };
    let failed = |message: &str, strict: bool| {
        logging::say(&format!("error: {message}; {outcome}"));
        if strict { JNI_ERR } else { JNI_OK }
    };
    match request {
        Ok(Request::Start(options)) => {
            let strict = options.strict;
            if !is_profiling {
                logging::set_level(options.log_level);
            }
            if strict && let Err(error) = engines::check_clock(&options) {
                return failed(&error.to_string(), strict);
            }
            // SAFETY: the callers pass the JavaVM of this process.
            match unsafe { lifecycle::start(vm, &callbacks(), *options) } {
                Ok(()) => JNI_OK,
                Err(error) => failed(&error.to_string(), strict),
            }
        }
        Ok(Request::Disabled(name)) => {
            logging::say(&format!("{name}=true: nothing is profiled"));
            JNI_OK
        }
        Ok(Request::Help) => {
            print!("{}", options::help());
            JNI_OK
        }
        Ok(command) => {
            match lifecycle::agent() {
                Some(agent) => agent.obey(&command),
                None => {
                    logging::say("error: the agent is not running in this JVM; load it with `start` first")
                }
            }
            JNI_OK
        }
        Err(error) => failed(&error.message, error.strict),
    }
}

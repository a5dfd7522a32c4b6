//! The functions that the JVM calls when it loads and unloads the agent.

use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::catch_unwind;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use jni::sys::{JNI_ERR, JNI_OK, JavaVM, jint};
use log::LevelFilter;
use otlpprof_export::answer::Answer;
use otlpprof_export::stream::MOST_READERS;
use otlpprof_jvm::jvmti::Jvmti;
use otlpprof_jvm::jvmti_error::{DETACHED, JvmtiError};
use otlpprof_options::{Environment, Request};

use super::answer;
use super::callbacks::callbacks;
use super::engines;
use super::lifecycle;
use super::logging;
use super::session::ProfilingSession;

/// The longest wait for a JVM that is still starting when the agent is attached.
const START_PATIENCE: Duration = Duration::from_secs(10);

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
    // SAFETY: the JVM passes options that are null or a C string.
    let options = unsafe { bytes_of(options) };
    // SAFETY: the JVM passes its JavaVM.
    catch_unwind(|| unsafe { load_with(vm, options) }).unwrap_or(JNI_OK)
}

/// Loads the agent into a running JVM: `jcmd PID JVMTI.agent_load …/libotlpprof.so "OPTIONS"`. A repeated
/// load controls the agent that is already running. A mistake is a result other than `JNI_OK`, whatever
/// `strict` is: the JVM passes the result to the caller, and goes on. With `answer=SOCKET` before the options
/// the outcome is also written to that socket; with `stream=INTERVAL` after it profiles follow.
///
/// # Safety
/// Called by the JVM only.
#[unsafe(no_mangle)]
pub(super) unsafe extern "system" fn Agent_OnAttach(
    vm: *mut JavaVM,
    options: *const c_char,
    _: *mut c_void,
) -> jint {
    // SAFETY: the JVM passes options that are null or a C string.
    let options = unsafe { bytes_of(options) };
    // SAFETY: the JVM passes its JavaVM.
    catch_unwind(|| unsafe { attach(vm, options) }).unwrap_or(JNI_ERR)
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

/// The bytes of the options, without the terminating zero.
///
/// # Safety
/// `options` is null or a C string.
unsafe fn bytes_of<'a>(options: *const c_char) -> &'a [u8] {
    if options.is_null() {
        return &[];
    }
    // SAFETY: the contract requires a C string where `options` is not null.
    unsafe { CStr::from_ptr(options) }.to_bytes()
}

/// A request that was not carried out.
struct Failure {
    /// The mistake, in one line.
    message: String,
    /// Whether the JVM's start fails for the mistake.
    strict: bool,
}

impl Failure {
    /// A failure that has been printed.
    fn reported(message: String, strict: bool) -> Self {
        logging::say_outcome(&format!("error: {message}"));
        Self { message, strict }
    }
}

/// Loads the agent with these options, in whatever way the library was loaded. The caller ends the JVM with
/// any result other than `JNI_OK`.
///
/// # Safety
/// `vm` is the JavaVM of this process.
pub(super) unsafe fn load_with(vm: *mut JavaVM, options: &[u8]) -> jint {
    // SAFETY: the contract requires the JavaVM of this process.
    match unsafe { carry_out(vm, options, false) } {
        Err(failure) if failure.strict => JNI_ERR,
        _ => JNI_OK,
    }
}

/// Loads the agent with these options into a running JVM, and answers on the socket that they name.
///
/// # Safety
/// `vm` is the JavaVM of this process.
unsafe fn attach(vm: *mut JavaVM, options: &[u8]) -> jint {
    let (socket, options) = answer::split(options);
    let Some(socket) = socket else {
        // SAFETY: the contract requires the JavaVM of this process.
        return result_of(&unsafe { carry_out(vm, options, false) });
    };
    // The answer has them, so the program's standard error need not.
    let captured = logging::capture();
    let before = lifecycle::agent().and_then(lifecycle::Agent::session);
    let (interval, options) = otlpprof_options::split_stream(options);
    let mut outcome = match &interval {
        // SAFETY: the contract requires the JavaVM of this process.
        Ok(interval) => unsafe { carry_out(vm, options, interval.is_some()) },
        Err(message) => Err(Failure::reported(message.clone(), false)),
    };
    let interval = interval.ok().flatten().filter(|_| outcome.is_ok());
    let running = lifecycle::agent().and_then(lifecycle::Agent::session);
    if interval.is_some() && running.as_ref().is_some_and(|running| running.readers().is_full()) {
        let message = format!("{MOST_READERS} commands read along already: end one of them");
        outcome = Err(Failure::reported(message, false));
    }
    let ended = before.filter(|before| !running.as_ref().is_some_and(|running| Arc::ptr_eq(before, running)));
    let result = result_of(&outcome);
    let answer = Answer {
        succeeded: outcome.is_ok(),
        message: outcome.unwrap_or_else(|failure| failure.message),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session: running.as_deref().map(ProfilingSession::state),
        ended_session: ended.as_deref().map(ProfilingSession::state),
        last_error: logging::last_error(),
        log: captured.end(),
    };
    let connection = answer::send(socket, &answer);
    if connection.is_none() {
        answer.log.iter().chain([&answer.message]).for_each(|line| logging::print(line));
    }
    if let (Some(interval), Some(running), true) = (interval, running, answer.succeeded) {
        match connection {
            Some(connection) => running.readers().add(connection, interval),
            None => running.readers().note_missed(),
        }
    }
    result
}

fn result_of(outcome: &Result<String, Failure>) -> jint {
    if outcome.is_ok() { JNI_OK } else { JNI_ERR }
}

/// Carries out the request that the options make, and prints the outcome. Returns the outcome in one line. If
/// a command reads the profiles along, no other destination is needed.
///
/// # Safety
/// `vm` is the JavaVM of this process.
unsafe fn carry_out(vm: *mut JavaVM, options: &[u8], is_read_along: bool) -> Result<String, Failure> {
    let result = catch_unwind(|| {
        // A running session keeps its log level, whatever controls it later.
        if lifecycle::agent().is_none() {
            logging::set_level(LevelFilter::Info);
        }
        // SAFETY: the contract requires the JavaVM of this process.
        let environment = unsafe { environment(vm) };
        let request = otlpprof_options::parse_bytes(options, &environment, is_read_along);
        // SAFETY: the contract requires the JavaVM of this process.
        unsafe { obey(vm, request) }
    });
    result.unwrap_or_else(|_| {
        let message = "internal error at start; the JVM continues without profiling".to_owned();
        Err(Failure::reported(message, false))
    })
}

/// Returns the environment variables of this process, and the system properties that replace some of them.
///
/// # Safety
/// `vm` is the JavaVM of this process.
pub(super) unsafe fn environment(vm: *mut JavaVM) -> Environment {
    let environment = Environment::of_process();
    // SAFETY: the contract requires the JavaVM of this process.
    let Ok(jvmti) = (unsafe { jvmti_of_started(vm) }) else { return environment };
    let property = |name: String| {
        let value = jvmti.system_property(&CString::new(name.as_str()).ok()?).ok()??;
        Some((name, value))
    };
    let environment = environment.with_properties(otlpprof_options::property_names().filter_map(property));
    // SAFETY: this environment has no other copy, and is not used again.
    let _ = unsafe { jvmti.dispose() };
    environment
}

/// Returns a new JVMTI environment. A JVM that is still starting may attach agents already, but has no
/// environments until its live phase begins: waits for that phase.
///
/// # Safety
/// `vm` is the JavaVM of this process, and is not destroyed while the result is used.
unsafe fn jvmti_of_started(vm: *mut JavaVM) -> Result<Jvmti, JvmtiError> {
    let start = Instant::now();
    loop {
        // SAFETY: the contract requires the JavaVM of this process, and its life.
        match unsafe { Jvmti::new(vm) } {
            Err(error) if error.code == DETACHED && start.elapsed() < START_PATIENCE => {
                thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

/// Carries out a request. Returns the outcome in one line. A mistake is printed, and leaves the JVM running
/// unless `strict` is set.
unsafe fn obey(
    vm: *mut JavaVM,
    request: Result<Request, otlpprof_options::OptionError>,
) -> Result<String, Failure> {
    let is_profiling = lifecycle::agent().is_some_and(lifecycle::Agent::is_profiling);
    let outcome = if is_profiling { "profiling continues as before" } else { "the agent does not start" };
    let failed =
        |message: &str, strict: bool| Err(Failure::reported(format!("{message}; {outcome}"), strict));
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
                Ok(()) => {
                    Ok(lifecycle::agent().map_or("started", lifecycle::Agent::outcome_of_start).to_owned())
                }
                Err(error) => failed(&error.to_string(), strict),
            }
        }
        Ok(Request::Disabled(name)) => {
            let message = format!("{name}=true: nothing is profiled");
            logging::say_outcome(&message);
            Ok(message)
        }
        Ok(Request::Help) => {
            let help = otlpprof_options::help();
            if !logging::is_captured() {
                print!("{help}");
            }
            Ok(help)
        }
        Ok(command) => match lifecycle::agent() {
            Some(agent) => Ok(agent.obey(&command)),
            None => {
                let message = "the agent is not running in this JVM; load it with `start` first".to_owned();
                Err(Failure::reported(message, false))
            }
        },
        Err(error) => failed(&error.message, error.strict),
    }
}

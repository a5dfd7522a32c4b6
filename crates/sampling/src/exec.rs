//! Programs that replace themselves by others. The process's timer survives execve(2) and runs on in the new
//! program (it is the only clock for sampling that does), where its first signal would end the program. So
//! the timer is stopped before the call.
//!
//! Input: the objects' imports of `execve` and similar functions, while the timer runs. Functions with a
//! variable number of arguments (`execl` and similar) are not redirected, and a system call that is made
//! without the C library is not noticed.
//!
//! A child of `vfork` shares this memory. In such a child nothing is locked or changed here, and the child
//! has no timer of ours.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use libc::{c_char, c_int, itimerval};
use otlpprof_elf::loader_list::load_counts;
use otlpprof_signal::cpu::SESSION;
use parking_lot::Mutex;

use super::imports::Redirection;

type Strings = *const *const c_char;

/// A function that other objects import.
struct Function {
    name: &'static CStr,
    /// The address of the function that the dynamic linker finds.
    real: AtomicUsize,
}

impl Function {
    const fn new(name: &'static CStr) -> Self {
        Self { name, real: AtomicUsize::new(0) }
    }

    fn find(&self) {
        // SAFETY: the name is a C string.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, self.name.as_ptr()) } as usize;
        self.real.store(address, Ordering::Release);
    }

    fn is_known(&self) -> bool {
        self.real.load(Ordering::Acquire) != 0
    }
}

macro_rules! stand_ins {
    ($($function:ident = $name:ident($($argument:ident: $type:ty),*),)*) => {
        $(
            static $function: Function = {
                let name = concat!(stringify!($name), "\0").as_bytes();
                match CStr::from_bytes_with_nul(name) {
                    Ok(name) => Function::new(name),
                    Err(_) => panic!("no C string"),
                }
            };

            unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                let timer = StoppedTimer::stop();
                // SAFETY: the address leads to the function with this name and type.
                let real = unsafe {
                    std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> c_int>(
                        $function.real.load(Ordering::Acquire),
                    )
                };
                // SAFETY: the caller's own call, with the caller's arguments.
                let result = unsafe { real($($argument),*) };
                // The call has failed, so this program continues.
                timer.go_on();
                result
            }
        )*

        /// Returns all functions, each with the address of its stand-in.
        fn functions() -> Vec<(&'static Function, u64)> {
            vec![$((&$function, $name as *const () as u64)),*]
        }
    };
}

stand_ins! {
    EXECVE = execve(path: *const c_char, arguments: Strings, environment: Strings),
    EXECV = execv(path: *const c_char, arguments: Strings),
    EXECVP = execvp(file: *const c_char, arguments: Strings),
    EXECVPE = execvpe(file: *const c_char, arguments: Strings, environment: Strings),
    FEXECVE = fexecve(descriptor: c_int, arguments: Strings, environment: Strings),
}

/// The process whose timer it is; 0 while the timer does not run.
static PROCESS: AtomicI32 = AtomicI32::new(0);

static IMPORTS: Mutex<Option<Redirection>> = Mutex::new(None);

/// Redirects imports from now on, since the process's timer has been started.
pub(super) fn begin() {
    // SAFETY: getpid takes nothing and cannot fail.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Release);
    functions().iter().for_each(|(function, _)| function.find());
    let known = functions().into_iter().filter(|(function, _)| function.is_known());
    let names = known.filter_map(|(function, hook)| Some((function.name.to_str().ok()?, hook))).collect();
    IMPORTS.lock().get_or_insert_with(|| Redirection::new(vec![names]));
    install();
}

/// Redirects the imports of every object that was loaded since the last call. Cheap if there is none, or if
/// no timer runs.
pub(super) fn install() {
    if let Some(imports) = &mut *IMPORTS.lock() {
        imports.install(load_counts(), |_, _, _| true);
    }
}

/// Restores every import, since the timer is being stopped.
pub(super) fn end() {
    PROCESS.store(0, Ordering::Release);
    if let Some(imports) = IMPORTS.lock().take() {
        imports.remove();
    }
}

/// The state of the process's timer before it was stopped; `None` if the timer is not ours.
struct StoppedTimer(Option<itimerval>);

impl StoppedTimer {
    fn stop() -> Self {
        // SAFETY: getpid takes nothing and cannot fail.
        if !SESSION.is_open() || PROCESS.load(Ordering::Acquire) != unsafe { libc::getpid() } {
            return Self(None);
        }
        let zero = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let none = itimerval { it_interval: zero, it_value: zero };
        let mut before = MaybeUninit::<itimerval>::uninit();
        // SAFETY: the kernel reads one itimerval, and writes another if it succeeds.
        let stopped = unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const none, before.as_mut_ptr()) };
        if stopped != 0 {
            return Self(None);
        }
        drop_pending_signal();
        // SAFETY: the call has succeeded.
        Self(Some(unsafe { before.assume_init() }))
    }

    /// Restarts the timer. Preserves `errno`.
    fn go_on(self) {
        let Self(Some(before)) = self else { return };
        // The session may have ended meanwhile.
        if PROCESS.load(Ordering::Acquire) == 0 {
            return;
        }
        // SAFETY: the C library's location of this thread's `errno`; the kernel reads one itimerval.
        unsafe {
            let errno = *libc::__errno_location();
            libc::setitimer(libc::ITIMER_PROF, &raw const before, ptr::null_mut());
            *libc::__errno_location() = errno;
        }
    }
}

/// Removes the timer's last signal if it is pending, since the new program would receive it. A pending signal
/// from any other sender is sent again.
fn drop_pending_signal() {
    /// `SI_KERNEL` (include/uapi/asm-generic/siginfo.h).
    const FROM_TIMER: c_int = 0x80;
    let set: u64 = 1 << (libc::SIGPROF - 1);
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel reads a set of 8 bytes and a timespec, and writes a siginfo_t, for which all zeroes
    // is valid.
    unsafe {
        let taken = libc::syscall(
            libc::SYS_rt_sigtimedwait,
            &raw const set,
            info.as_mut_ptr(),
            &raw const at_once,
            size_of::<u64>(),
        );
        if taken == i64::from(libc::SIGPROF) && info.assume_init().si_code != FROM_TIMER {
            libc::kill(libc::getpid(), libc::SIGPROF);
        }
    }
}

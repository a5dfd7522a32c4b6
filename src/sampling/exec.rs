//! Programs that replace themselves by others. The process's timer lives on in the new program (execve(2), alone of the clocks
//! that threads are sampled by), where its first signal would be the end of it: it is stopped before.
//!
//! In: what objects import of `execve` and its like, while the timer runs. Functions whose arguments vary in number (`execl` and
//! its like) are not led here, and whoever makes the system call without the C library is not seen.
//!
//! A child of `vfork` shares this memory: nothing is locked or changed here, and its own timer is none of ours.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use libc::{c_char, c_int, itimerval};
use parking_lot::Mutex;

use super::imports::Redirection;
use crate::elf::loader_list::load_counts;
use crate::signal::cpu::SESSION;

type Strings = *const *const c_char;

/// A function that others call, and what stands in for it.
struct Function {
    name: &'static CStr,
    /// The address that the dynamic linker finds.
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
            static $function: Function = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => Function::new(name),
                Err(_) => panic!("no C string"),
            };

            unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                let timer = StoppedTimer::stop();
                // SAFETY: the address of the function of this name and type.
                let real = unsafe {
                    std::mem::transmute::<usize, unsafe extern "C" fn($($type),*) -> c_int>(
                        $function.real.load(Ordering::Acquire),
                    )
                };
                // SAFETY: the caller's own call.
                let result = unsafe { real($($argument),*) };
                // It has failed: this program goes on.
                timer.go_on();
                result
            }
        )*

        /// All of them, each with what stands in for it.
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

/// The process whose timer it is; 0 while it does not run.
static PROCESS: AtomicI32 = AtomicI32::new(0);

static IMPORTS: Mutex<Option<Redirection>> = Mutex::new(None);

/// The process's timer runs from now on.
pub(super) fn begin() {
    // SAFETY: getpid takes nothing and cannot fail.
    PROCESS.store(unsafe { libc::getpid() }, Ordering::Release);
    functions().iter().for_each(|(function, _)| function.find());
    let known = functions().into_iter().filter(|(function, _)| function.is_known());
    let names = known.filter_map(|(function, hook)| Some((function.name.to_str().ok()?, hook))).collect();
    IMPORTS.lock().get_or_insert_with(|| Redirection::new(vec![names]));
    install();
}

/// Leads the imports of every object to us that was loaded since the last time. Cheap if there is none, or no timer.
pub(super) fn install() {
    if let Some(imports) = &mut *IMPORTS.lock() {
        imports.install(load_counts(), |_, _, _| true);
    }
}

/// The timer has stopped: gives every import back what it held.
pub(super) fn end() {
    PROCESS.store(0, Ordering::Release);
    if let Some(imports) = IMPORTS.lock().take() {
        imports.remove();
    }
}

/// The process's timer, as it was before it was stopped; `None`: it is not ours.
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
        // SAFETY: the kernel reads one itimerval, and writes another where it succeeds.
        let stopped = unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const none, before.as_mut_ptr()) };
        if stopped != 0 {
            return Self(None);
        }
        drop_pending_signal();
        // SAFETY: the call has succeeded.
        Self(Some(unsafe { before.assume_init() }))
    }

    /// Has it go on, and leaves `errno` as it is.
    fn go_on(self) {
        let Self(Some(before)) = self else { return };
        // The session may have ended meanwhile.
        if PROCESS.load(Ordering::Acquire) == 0 {
            return;
        }
        // SAFETY: the C library's own location; the kernel reads one itimerval.
        unsafe {
            let errno = *libc::__errno_location();
            libc::setitimer(libc::ITIMER_PROF, &raw const before, ptr::null_mut());
            *libc::__errno_location() = errno;
        }
    }
}

/// Takes away the timer's last signal, which would come to the new program if nobody has handled it. One that was sent by
/// somebody is sent again.
fn drop_pending_signal() {
    /// `SI_KERNEL` (include/uapi/asm-generic/siginfo.h).
    const FROM_TIMER: c_int = 0x80;
    let set: u64 = 1 << (libc::SIGPROF - 1);
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel reads a set of 8 bytes and a timespec, and writes a siginfo_t; zeros are one.
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

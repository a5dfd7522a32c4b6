//! The current thread's stack, as the C library knows it. HotSpot asks the C library too
//! (`os/linux/os_linux.cpp` and until 17 `os_cpu/linux_*/os_linux_*.cpp`, current_stack_region).

use std::mem::MaybeUninit;
use std::ops::Range;

use otlpprof_core::thread::current_os_tid;

/// The stack of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnStack {
    /// The whole stack, guard pages included.
    pub(super) stack: Range<u64>,
    /// An address in use.
    pub(super) address: u64,
}

impl OwnStack {
    /// The current thread's. `None` for the process's first thread, whose stack grows on demand: HotSpot and
    /// the C library take different ends for it.
    pub(super) fn of_current_thread() -> Option<Self> {
        if current_os_tid().cast_unsigned() == std::process::id() {
            return None;
        }
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        let (mut start, mut size) = (std::ptr::null_mut(), 0);
        // SAFETY: the attributes are initialised by the first call before they are read and destroyed, and
        // not used if that call fails.
        let is_known = unsafe {
            libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) == 0 && {
                let result = libc::pthread_attr_getstack(attributes.as_ptr(), &mut start, &mut size);
                libc::pthread_attr_destroy(attributes.as_mut_ptr());
                result == 0
            }
        };
        let start = start as u64;
        let address = (&raw const size) as u64;
        is_known.then(|| Self { stack: start..start.saturating_add(size as u64), address })
    }

    /// Whether the values are the end and the size of the stack. The size may leave out guard pages.
    pub(super) fn is(&self, end: u64, size: u64) -> bool {
        let start = end.checked_sub(size);
        end == self.stack.end && start.is_some_and(|start| (self.stack.start..self.address).contains(&start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_its_stack() {
        let own = std::thread::spawn(OwnStack::of_current_thread).join().unwrap().expect("not the first");
        assert!(own.stack.contains(&own.address));
        assert!(own.is(own.stack.end, own.stack.end - own.stack.start));
        assert!(!own.is(own.stack.end - 8, own.stack.end - own.stack.start));
        assert!(!own.is(own.stack.end, 8));
    }
}

//! The names of the kernel's functions, which separate threads read before they are needed.

use std::thread::JoinHandle;

use otlpprof_elf::kernel::Kernel;
use parking_lot::Mutex;

use super::own_threads;

/// The threads that read the kernel's symbols, one for each engine that asks for them.
static READERS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Reads the kernel's symbols in a separate thread, so that no other thread waits for them.
pub(super) fn read_ahead() {
    let read = own_threads::spawn("otlpprof-kernel", || {
        Kernel::running();
    });
    match read {
        Ok(thread) => READERS.lock().push(thread),
        Err(error) => log::debug!("the kernel's symbols are read only when they are needed: {error}"),
    }
}

/// Waits until no thread is reading the kernel's symbols.
pub fn join_readers() {
    let readers = std::mem::take(&mut *READERS.lock());
    for thread in readers {
        // A panic in the thread has been reported already.
        let _ = thread.join();
    }
}

//! The assignment of blocks to threads.
//!
//! A platform thread has a block from its first request until it ends as a Java thread, or as a kernel
//! thread; a virtual thread from its first request until it ends. The map in
//! [`core::context`](otlpprof_core::context) leads from a kernel thread to its own block, the table in
//! [`virtual_blocks`] from a virtual thread's id to its block.
//!
//! Where a handler cannot find out which virtual thread it has interrupted, the VM's events are used: the map
//! then also leads to the block of the mounted virtual thread. No handler code runs during a mount or
//! unmount.
//!
//! [`published_threads`](super::published_threads) decides which contexts outside readers find.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering, compiler_fence};

use otlpprof_core::context::{
    BlockEntry, BlockEntryChunk, ContextBlock, EMPTY_BLOCK, THREADS_PER_CHUNK, entry_of, publish_chunk,
};
use otlpprof_core::thread::current_os_tid;

use super::blocks::BLOCKS;
use super::counts::{COUNTS, add};
use super::published_records::PublishedRecord;
use super::published_threads::{Carried, PublishedThread, is_carried_shown, publication_number};
use super::{thread_end, virtual_blocks};

/// The current thread's state. It has no destructor, so that it exists until the thread's last moment.
struct Current {
    entry: Cell<Option<&'static BlockEntry>>,
    /// The block of the platform thread.
    own: Cell<Option<&'static ContextBlock>>,
    /// The thread as outside readers find it; `None` if the thread's end would go unnoticed.
    published: Cell<Option<&'static PublishedThread>>,
}

thread_local! {
    static CURRENT: Current = const {
        Current {
            entry: Cell::new(None),
            own: Cell::new(None),
            published: Cell::new(None),
        }
    };
}

impl Current {
    /// Returns the thread's entry in the map; `None` for an id that no kernel assigns.
    fn entry(&self) -> Option<&'static BlockEntry> {
        if self.entry.get().is_none() {
            let os_tid = current_os_tid();
            if entry_of(os_tid).is_none() {
                let chunk: BlockEntryChunk = [const { BlockEntry::new() }; THREADS_PER_CHUNK];
                // Another thread may have published its chunk first. This chunk is then leaked, which
                // can happen only where threads race for the same range of ids.
                publish_chunk(os_tid, Box::leak(Box::new(chunk)));
            }
            self.entry.set(entry_of(os_tid));
            if thread_end::run_at_end(kernel_thread_ends) {
                self.published.set(Some(PublishedThread::of_current()));
            }
        }
        self.entry.get()
    }

    /// Sets the thread's own block. Returns `false` if the thread has no entry in the map.
    fn point_to_own(&self, block: Option<&'static ContextBlock>) -> bool {
        self.entry().map(|entry| point(&entry.own, block)).is_some()
    }

    /// Makes readers find the context of a virtual thread for this thread.
    fn carry(&self, carried: Option<Carried>) {
        let Some(entry) = self.entry() else { return };
        if EVENTS_REPORT_MOUNTS.load(Ordering::Acquire) {
            point(&entry.mounted, Some(carried.map_or(&EMPTY_BLOCK, |carried| carried.block)));
        }
        if let Some(published) = self.published.get() {
            published.carries(carried);
        }
    }
}

/// Points `place` to a block. A handler on this thread does not find what is written to the earlier block
/// after this call.
fn point(place: &AtomicPtr<ContextBlock>, block: Option<&'static ContextBlock>) {
    let block = block.map_or(ptr::null_mut(), |block| ptr::from_ref(block).cast_mut());
    place.store(block, Ordering::Release);
    compiler_fence(Ordering::SeqCst);
}

/// Whether the VM's events are the source for which virtual thread is mounted.
static EVENTS_REPORT_MOUNTS: AtomicBool = AtomicBool::new(false);

/// Declares that from now on [`virtual_thread_mounted`] and [`virtual_thread_unmounts`] are called for each
/// mount and unmount.
pub fn events_report_mounts() {
    EVENTS_REPORT_MOUNTS.store(true, Ordering::Release);
}

fn take_block() -> Option<&'static ContextBlock> {
    let block = BLOCKS.take();
    if block.is_none() {
        add(&COUNTS.threads_without_block, 1);
    }
    block
}

/// Returns the block of the current thread, a platform thread, and assigns one if there is none. `None` if it
/// cannot have one.
pub fn platform_block(is_carrier: bool) -> Option<&'static ContextBlock> {
    CURRENT.with(|current| {
        if let Some(own) = current.own.get() {
            return Some(own);
        }
        let own = take_block()?;
        if !current.point_to_own(Some(own)) {
            BLOCKS.release(own);
            return None;
        }
        current.own.set(Some(own));
        if let Some(published) = current.published.get() {
            published.begins(own, is_carrier);
        }
        Some(own)
    })
}

/// Returns the block of the current thread, a platform thread, if it has one.
pub fn own_block() -> Option<&'static ContextBlock> {
    CURRENT.with(|current| current.own.get())
}

/// Returns the record of the current thread, a platform thread. From now on outside readers find it instead
/// of the block. `None` if the thread is hidden or nothing is published. The caller writes to the record
/// until its next call, which passes it as `earlier`.
pub fn published_record(earlier: *const c_void) -> Option<&'static PublishedRecord> {
    CURRENT.with(|current| current.published.get()?.record(earlier))
}

/// As [`published_record`], for the virtual thread that is mounted on the current thread.
pub fn virtual_record(thread_id: i64, earlier: *const c_void) -> Option<&'static PublishedRecord> {
    let publication = publication_number();
    let is_found = is_carried_shown() && publication != 0;
    if !is_carried_shown() && earlier.is_null() {
        return None;
    }
    let mut records = virtual_blocks::records_of(thread_id)?;
    records.release(earlier);
    let record = is_found.then(|| records.hold(publication));
    drop(records);
    // This also applies to a caller that is refused, and writes to the block only.
    CURRENT.with(|current| current.carry(virtual_blocks::find_carried(thread_id)));
    record
}

/// Sets whether the current thread, as a platform thread, is registered for sampling with `filter`. Returns
/// `false` if it has no entry in the map.
pub fn set_registered(is_registered: bool) -> bool {
    let entry = CURRENT.with(Current::entry);
    entry.map(|entry| entry.is_registered.store(is_registered, Ordering::Relaxed)).is_some()
}

/// Releases the block of the current thread, which is no longer the Java thread that it was.
pub fn platform_thread_ended() {
    CURRENT.with(|current| {
        if let Some(published) = current.published.get() {
            published.hide();
        }
        if let Some(entry) = current.entry.get() {
            entry.is_registered.store(false, Ordering::Relaxed);
        }
        if let Some(own) = current.own.take() {
            // No handler finds the block from here on.
            current.point_to_own(None);
            BLOCKS.release(own);
        }
    });
}

/// Releases everything of the current thread, which ends. Another thread may then get its kernel id.
fn kernel_thread_ends() {
    platform_thread_ended();
    CURRENT.with(|current| {
        if let Some(entry) = current.entry.take() {
            entry.own.store(ptr::null_mut(), Ordering::Release);
            entry.mounted.store(ptr::null_mut(), Ordering::Release);
        }
        if let Some(published) = current.published.take() {
            published.ends();
        }
    });
}

/// Returns the block of a virtual thread that is mounted on the current thread, and assigns one if there is
/// none.
pub fn virtual_block(thread_id: i64) -> Option<&'static ContextBlock> {
    let block = virtual_blocks::find_or_insert(thread_id, take_block);
    // The current thread is a carrier, even if it does not look like one, as with a scheduler other than the
    // VM's.
    CURRENT.with(|current| current.carry(virtual_blocks::find_carried(thread_id)));
    block
}

/// Notes that a virtual thread has been mounted on the current thread.
pub fn virtual_thread_mounted(thread_id: i64) {
    CURRENT.with(|current| current.carry(virtual_blocks::find_carried(thread_id)));
}

/// Notes that the virtual thread on the current thread is about to be unmounted.
pub fn virtual_thread_unmounts() {
    CURRENT.with(|current| current.carry(None));
}

/// Releases the block of a virtual thread that has ended on the current thread.
pub fn virtual_thread_ended(thread_id: i64) {
    virtual_thread_unmounts();
    if let Some(block) = virtual_blocks::remove(thread_id) {
        compiler_fence(Ordering::SeqCst);
        BLOCKS.release(block);
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::virtual_blocks::virtual_block_of;

    use super::*;

    fn entry() -> Option<&'static BlockEntry> {
        entry_of(current_os_tid())
    }

    fn seen() -> Option<*const ContextBlock> {
        entry()?.own_block().map(ptr::from_ref)
    }

    fn reported() -> Option<*const ContextBlock> {
        entry()?.mounted_block().map(ptr::from_ref)
    }

    #[test]
    fn a_platform_thread_keeps_its_block_until_it_ends_and_another_takes_it_over() {
        std::thread::spawn(|| {
            assert_eq!(seen(), None);
            let block = platform_block(false).unwrap();
            assert_eq!(seen(), Some(ptr::from_ref(block)));
            assert!(ptr::eq(platform_block(false).unwrap(), block), "asked twice");
            platform_thread_ended();
            assert_eq!(seen(), None);
            platform_thread_ended();
            // Attached again, it is another Java thread.
            assert!(platform_block(false).is_some());
            platform_thread_ended();
        })
        .join()
        .unwrap();
    }

    /// Regression: a thread that got the kernel id of one that was never detached had the latter's context.
    #[test]
    fn a_thread_that_ends_without_detaching_leaves_no_context_under_its_kernel_id() {
        let its_block_is_free = || {
            let ended = std::thread::spawn(|| {
                let own = platform_block(false).unwrap();
                virtual_thread_mounted(-9);
                (current_os_tid(), ptr::from_ref(own).addr())
            });
            let (os_tid, own) = ended.join().unwrap();
            let entry = entry_of(os_tid).unwrap();
            assert!(entry.own_block().is_none() && entry.mounted_block().is_none());
            let next = std::thread::spawn(move || {
                let taken: Vec<_> = (0..64).map_while(|_| BLOCKS.take()).collect();
                let is_free = taken.iter().any(|block| ptr::from_ref(*block).addr() == own);
                taken.into_iter().for_each(|block| BLOCKS.release(block));
                is_free
            });
            next.join().unwrap()
        };
        // The block goes to another thread, unless concurrent tests take it first, which they do not do each
        // time.
        assert!((0..16).any(|_| its_block_is_free()), "its block is lost");
    }

    #[test]
    fn a_virtual_thread_takes_its_block_along_and_leaves_the_carriers_alone() {
        events_report_mounts();
        let nobody = || Some(&raw const EMPTY_BLOCK);
        let first = std::thread::spawn(move || {
            assert_eq!(reported(), None, "no event came");
            let block = virtual_block(-7).unwrap();
            assert_eq!((seen(), reported()), (None, Some(ptr::from_ref(block))));
            // A setter runs on the carrier while the virtual thread is mounted.
            let own = platform_block(false).unwrap();
            assert_eq!((seen(), reported()), (Some(ptr::from_ref(own)), Some(ptr::from_ref(block))));
            virtual_thread_unmounts();
            assert_eq!((seen(), reported()), (Some(ptr::from_ref(own)), nobody()));
            (ptr::from_ref(block).addr(), ptr::from_ref(own).addr())
        });
        let (block, own) = first.join().unwrap();
        assert_ne!(block, own);
        std::thread::spawn(move || {
            virtual_thread_mounted(-8);
            assert_eq!(reported(), nobody(), "a thread that has set nothing");
            virtual_thread_mounted(-7);
            assert_eq!(reported().map(<*const ContextBlock>::addr), Some(block));
            assert_eq!(virtual_block_of(-7).map(|found| ptr::from_ref(found).addr()), Some(block));
            virtual_thread_ended(-7);
            assert_eq!(reported(), nobody());
            virtual_thread_mounted(-7);
            assert_eq!(reported(), nobody(), "it has ended");
            assert!(virtual_block_of(-7).is_none() && seen().is_none());
        })
        .join()
        .unwrap();
    }
}

//! Which thread has which block.
//!
//! A platform thread has one from when it first asks until it ends as a Java thread; a virtual thread likewise. The map
//! in [`core::context`](crate::core::context) leads from a kernel thread to the block of the Java thread that it runs:
//! its own, or that of the virtual thread that is mounted on it. In between, while a virtual thread is being mounted or
//! unmounted, to none.
//!
//! Virtual threads are looked up under a lock, of which there are many: a mount or unmount runs no handler code and
//! never meets one.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::blocks::BLOCKS;
use super::counts::{COUNTS, add};
use crate::core::context::{
    BlockEntry, BlockEntryChunk, ContextBlock, THREADS_PER_CHUNK, entry_of, publish_chunk,
};

/// What a kernel thread knows of itself. Without destructors, so that it is there until the thread's last moment.
struct Current {
    entry: Cell<Option<&'static BlockEntry>>,
    /// The block of the platform thread.
    own: Cell<Option<&'static ContextBlock>>,
}

thread_local! {
    static CURRENT: Current = const { Current { entry: Cell::new(None), own: Cell::new(None) } };
}

impl Current {
    /// The thread's place in the map; `None` for an id that no kernel gives.
    fn entry(&self) -> Option<&'static BlockEntry> {
        if self.entry.get().is_none() {
            // SAFETY: gettid takes nothing and cannot fail.
            let os_tid = unsafe { libc::gettid() };
            if entry_of(os_tid).is_none() {
                let chunk: BlockEntryChunk = [const { BlockEntry::new(ptr::null_mut()) }; THREADS_PER_CHUNK];
                // Another thread's chunk may have come first; this one is then lost, once in the process's life.
                publish_chunk(os_tid, Box::leak(Box::new(chunk)));
            }
            self.entry.set(entry_of(os_tid));
        }
        self.entry.get()
    }

    fn point_to(&self, block: Option<&'static ContextBlock>) -> bool {
        let block = block.map_or(ptr::null_mut(), |block| ptr::from_ref(block).cast_mut());
        self.entry().map(|entry| entry.store(block, Ordering::Release)).is_some()
    }
}

const SHARDS: usize = 64;

type Shard = Mutex<HashMap<i64, &'static ContextBlock, FixedState>>;

/// The blocks of virtual threads, by `Thread.threadId()`.
static VIRTUAL: [Shard; SHARDS] =
    [const { Mutex::new(HashMap::with_hasher(FixedState::with_seed(0))) }; SHARDS];

fn shard_of(thread_id: i64) -> &'static Shard {
    // Ids are given out in sequence.
    &VIRTUAL[thread_id as usize % SHARDS]
}

fn take_block() -> Option<&'static ContextBlock> {
    let block = BLOCKS.take();
    if block.is_none() {
        add(&COUNTS.threads_without_block, 1);
    }
    block
}

/// The block of the current thread, a platform thread; made if there is none. `None` if it can have none.
pub fn platform_block() -> Option<&'static ContextBlock> {
    CURRENT.with(|current| {
        if current.own.get().is_none() {
            current.own.set(take_block());
        }
        let own = current.own.get()?;
        current.point_to(Some(own)).then_some(own)
    })
}

/// The current thread is no longer the Java thread that it was: its block may go to another.
pub fn platform_thread_ended() {
    CURRENT.with(|current| {
        if let Some(own) = current.own.take() {
            // No handler finds the block from here on.
            current.point_to(None);
            BLOCKS.give_back(own);
        }
    });
}

/// The block of a virtual thread that is mounted on the current thread; made if there is none.
pub fn virtual_block(thread_id: i64) -> Option<&'static ContextBlock> {
    let block = {
        let mut shard = shard_of(thread_id).lock();
        match shard.get(&thread_id) {
            Some(block) => *block,
            None => {
                let block = take_block()?;
                shard.insert(thread_id, block);
                block
            }
        }
    };
    CURRENT.with(|current| current.point_to(Some(block))).then_some(block)
}

/// A virtual thread has been mounted on the current thread.
pub fn virtual_thread_mounted(thread_id: i64) {
    let block = shard_of(thread_id).lock().get(&thread_id).copied();
    CURRENT.with(|current| current.point_to(block));
}

/// The virtual thread on the current thread is about to be unmounted.
pub fn virtual_thread_unmounts() {
    // Until it has left the stack, that is its own and not the carrier's: neither's context is right.
    CURRENT.with(|current| current.point_to(None));
}

/// A virtual thread has come to its end on the current thread.
pub fn virtual_thread_ended(thread_id: i64) {
    let block = shard_of(thread_id).lock().remove(&thread_id);
    if let Some(block) = block {
        CURRENT.with(|current| current.point_to(None));
        BLOCKS.give_back(block);
    }
}

/// How many virtual threads have a block.
pub fn virtual_threads() -> usize {
    VIRTUAL.iter().map(|shard| shard.lock().len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::block_of;

    fn seen() -> Option<*const ContextBlock> {
        // SAFETY: gettid takes nothing and cannot fail.
        block_of(unsafe { libc::gettid() }).map(ptr::from_ref)
    }

    #[test]
    fn a_platform_thread_keeps_its_block_until_it_ends_and_another_takes_it_over() {
        std::thread::spawn(|| {
            assert_eq!(seen(), None);
            let block = platform_block().unwrap();
            assert_eq!(seen(), Some(ptr::from_ref(block)));
            assert!(ptr::eq(platform_block().unwrap(), block), "asked twice");
            platform_thread_ended();
            assert_eq!(seen(), None);
            platform_thread_ended();
            // Attached again, it is another Java thread.
            assert!(platform_block().is_some());
            platform_thread_ended();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_virtual_thread_takes_its_block_along() {
        let own = std::thread::spawn(|| {
            let own = platform_block().unwrap();
            let block = virtual_block(-7).unwrap();
            assert_eq!(seen(), Some(ptr::from_ref(block)));
            virtual_thread_unmounts();
            assert_eq!(seen(), None, "nobody's, while it leaves");
            (ptr::from_ref(block).addr(), ptr::from_ref(own).addr())
        });
        let (block, own) = own.join().unwrap();
        std::thread::spawn(move || {
            virtual_thread_mounted(-8);
            assert_eq!(seen(), None, "a thread that has set nothing");
            virtual_thread_mounted(-7);
            assert_eq!(seen().map(<*const ContextBlock>::addr), Some(block));
            virtual_thread_ended(-7);
            assert_eq!(seen(), None);
            virtual_thread_mounted(-7);
            assert_eq!(seen(), None, "it has ended");
            assert_ne!(block, own);
        })
        .join()
        .unwrap();
    }
}

//! The blocks of virtual threads: inserted, found and removed. The table itself, which handlers read, is
//! [`core::virtual_blocks`](otlpprof_core::virtual_blocks).

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use otlpprof_core::context::ContextBlock;
use otlpprof_core::virtual_blocks::{SHARDS, VirtualEntry, bucket_of, removals_of, shard_number};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::published_records::Records;
use super::published_threads::Carried;

/// The number of entries that are made at once. They live as long as the process.
const ENTRIES_PER_CHUNK: usize = 64;

/// The locks of the shards. A thread that changes a bucket holds its shard's lock. There are many shards, so
/// that threads that start at the same time seldom wait for each other.
static SHARD_LOCKS: [Mutex<Shard>; SHARDS] =
    [const { Mutex::new(Shard { free: Vec::new(), used: 0, records: None }) }; SHARDS];

struct Shard {
    free: Vec<&'static VirtualEntry>,
    used: usize,
    /// The records of the virtual threads that have attributes published, by thread id.
    records: Option<HashMap<i64, Records>>,
}

fn shard_of(thread_id: i64) -> &'static Mutex<Shard> {
    &SHARD_LOCKS[shard_number(thread_id)]
}

impl Shard {
    fn take_entry(&mut self) -> &'static VirtualEntry {
        if self.free.is_empty() {
            let entries: Box<[VirtualEntry]> = (0..ENTRIES_PER_CHUNK).map(|_| VirtualEntry::new()).collect();
            self.free.extend(Box::leak(entries).iter());
        }
        // SANITY: the list has just been filled if it was empty.
        self.free.pop().expect("an entry")
    }
}

/// Returns the place that points to a virtual thread's entry, and the entry, if there is one. The caller
/// holds the shard's lock, so that the chain does not change.
fn place_of(thread_id: i64) -> Option<(&'static AtomicPtr<VirtualEntry>, &'static VirtualEntry)> {
    let mut place = bucket_of(thread_id)?;
    loop {
        // SAFETY: the pointer is null or leads to an entry, which is never freed.
        let entry: &'static VirtualEntry = unsafe { place.load(Ordering::Relaxed).as_ref() }?;
        if entry.owner.load(Ordering::Relaxed) == thread_id {
            return Some((place, entry));
        }
        place = &entry.next;
    }
}

fn block_of(entry: &VirtualEntry) -> Option<&'static ContextBlock> {
    // SAFETY: the pointer is null or leads to a block, whose memory is never unmapped.
    unsafe { entry.block.load(Ordering::Relaxed).as_ref() }
}

/// Returns the block of a virtual thread. If it has none, inserts the one that `make` returns, if any.
pub fn find_or_insert(
    thread_id: i64,
    make: impl FnOnce() -> Option<&'static ContextBlock>,
) -> Option<&'static ContextBlock> {
    let mut shard = shard_of(thread_id).lock();
    if let Some((_, entry)) = place_of(thread_id) {
        return block_of(entry);
    }
    let first = bucket_of(thread_id)?;
    let block = make()?;
    let entry = shard.take_entry();
    entry.block.store(ptr::from_ref(block).cast_mut(), Ordering::Relaxed);
    entry.is_registered.store(false, Ordering::Relaxed);
    // A handler that follows the entry into this chain must see that the entry was removed from another.
    entry.next.store(first.load(Ordering::Relaxed), Ordering::Release);
    entry.owner.store(thread_id, Ordering::Release);
    first.store(ptr::from_ref(entry).cast_mut(), Ordering::Release);
    shard.used += 1;
    Some(block)
}

/// Returns the context of a virtual thread that outside readers may find.
pub(super) fn find_carried(thread_id: i64) -> Option<Carried> {
    let shard = shard_of(thread_id).lock();
    let block = place_of(thread_id).and_then(|(_, entry)| block_of(entry))?;
    let record = shard.records.as_ref().and_then(|records| records.get(&thread_id)?.latest());
    Some(Carried { block, record })
}

/// The records of a virtual thread; `None` if it has no block.
pub(super) fn records_of(thread_id: i64) -> Option<MappedMutexGuard<'static, Records>> {
    let shard = shard_of(thread_id).lock();
    place_of(thread_id)?;
    Some(MutexGuard::map(shard, |shard| shard.records.get_or_insert_default().entry(thread_id).or_default()))
}

/// Returns the block of a virtual thread.
pub fn find(thread_id: i64) -> Option<&'static ContextBlock> {
    let _shard = shard_of(thread_id).lock();
    place_of(thread_id).and_then(|(_, entry)| block_of(entry))
}

/// Sets whether a virtual thread, which must have a block, is registered for sampling with `filter`.
pub fn set_registered(thread_id: i64, is_registered: bool) {
    let _shard = shard_of(thread_id).lock();
    if let Some((_, entry)) = place_of(thread_id) {
        entry.is_registered.store(is_registered, Ordering::Relaxed);
    }
}

/// Removes a virtual thread that outside readers do not find. Returns its block.
pub fn remove(thread_id: i64) -> Option<&'static ContextBlock> {
    let mut shard = shard_of(thread_id).lock();
    let (place, entry) = place_of(thread_id)?;
    // From here on no handler accepts the entry.
    entry.owner.store(0, Ordering::SeqCst);
    place.store(entry.next.load(Ordering::Relaxed), Ordering::Release);
    // Counted here, when no new search reaches the entry any more, and before the entry is inserted into
    // another chain.
    removals_of(thread_id)?.fetch_add(1, Ordering::Release);
    let block = block_of(entry);
    shard.free.push(entry);
    shard.used -= 1;
    if let Some(mut records) = shard.records.as_mut().and_then(|records| records.remove(&thread_id)) {
        records.release_all();
    }
    block
}

/// The number of virtual threads that have a block.
pub fn count() -> usize {
    SHARD_LOCKS.iter().map(|shard| shard.lock().used).sum()
}

#[cfg(test)]
mod tests {
    use otlpprof_core::virtual_blocks::{bucket_number, virtual_block_of};

    use super::*;

    fn block() -> &'static ContextBlock {
        Box::leak(Box::default())
    }

    /// An id that is far from those that other tests use.
    const FIRST: i64 = 0x5000_0000_1234;

    /// The ids that share a bucket with `id`, which comes first.
    fn that_share_a_bucket(id: i64) -> impl Iterator<Item = i64> {
        (id..).filter(move |&other| bucket_number(other) == bucket_number(id))
    }

    #[test]
    fn a_thread_deep_in_a_bucket_is_entered_once() {
        let ids: Vec<i64> = that_share_a_bucket(FIRST + 3).take(100).collect();
        for &id in &ids {
            find_or_insert(id, || Some(block())).unwrap();
        }
        for &id in &ids {
            assert!(find(id).is_some() && find_or_insert(id, || panic!("it has one")).is_some());
        }
        for &id in &ids {
            assert!(remove(id).is_some() && remove(id).is_none());
        }
    }

    #[test]
    fn threads_that_share_a_bucket_have_their_own_blocks_until_they_end() {
        let ids: Vec<i64> = that_share_a_bucket(FIRST).take(40).collect();
        let blocks: Vec<_> = ids.iter().map(|&id| find_or_insert(id, || Some(block())).unwrap()).collect();
        let is = |found: Option<&'static ContextBlock>, block: &'static ContextBlock| {
            found.is_some_and(|found| ptr::eq(found, block))
        };
        for (&id, &block) in ids.iter().zip(&blocks) {
            assert!(is(virtual_block_of(id), block) && is(find(id), block));
            assert!(is(find_or_insert(id, || panic!("it has one")), block));
        }
        // The last, the first and one in the middle of the chain.
        for gone in [0, 39, 17] {
            assert!(is(remove(ids[gone]), blocks[gone]));
            assert!(virtual_block_of(ids[gone]).is_none() && remove(ids[gone]).is_none());
        }
        for (n, (&id, &block)) in ids.iter().zip(&blocks).enumerate() {
            assert_eq!(is(virtual_block_of(id), block), ![0, 39, 17].contains(&n));
            remove(id);
        }
        assert!(bucket_of(FIRST).unwrap().load(Ordering::Relaxed).is_null());
    }

    #[test]
    fn a_thread_that_can_have_no_block_is_not_entered() {
        assert!(find_or_insert(FIRST + 1, || None).is_none());
        assert!(bucket_of(FIRST + 1).unwrap().load(Ordering::Relaxed).is_null());
    }

    /// Threads start and end while another looks for itself in the same buckets: it must never find another's
    /// block.
    #[test]
    fn a_lookup_while_chains_change_finds_the_threads_own_block_or_none() {
        use std::sync::atomic::AtomicBool;
        static DONE: AtomicBool = AtomicBool::new(false);
        let mine = FIRST + 2;
        let block = find_or_insert(mine, || Some(block())).unwrap();
        let neighbours: Vec<i64> = that_share_a_bucket(mine).skip(1).take(7).collect();
        let mut others = (mine + 1..).filter(|&id| ptr::eq(shard_of(id), shard_of(mine)));
        let another = others.find(|&id| bucket_number(id) != bucket_number(mine)).unwrap();
        let changer = std::thread::spawn(move || {
            for n in 1.. {
                let id = neighbours[n % 7];
                find_or_insert(id, || Some(self::block_of_others()));
                remove(id);
                // The entry may move into this chain, another one of the same shard.
                find_or_insert(another, || Some(self::block_of_others()));
                remove(another);
                if DONE.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let removals = || removals_of(mine).unwrap().load(Ordering::Acquire);
        for _ in 0..400_000 {
            let removals_before = removals();
            match virtual_block_of(mine) {
                Some(other) => assert!(ptr::eq(other, block)),
                None => assert_ne!(removals(), removals_before, "missed in chains that stayed as they were"),
            }
        }
        DONE.store(true, Ordering::Relaxed);
        changer.join().unwrap();
        assert!(virtual_block_of(mine).is_some_and(|found| ptr::eq(found, block)));
        remove(mine);
    }

    fn block_of_others() -> &'static ContextBlock {
        static OTHERS: std::sync::OnceLock<&'static ContextBlock> = std::sync::OnceLock::new();
        OTHERS.get_or_init(block)
    }
}

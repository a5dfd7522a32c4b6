//! The sample buffer between handlers and drainer.
//!
//! The buffer has sixteen strips, each with a lock that handlers try and never wait for: a handler whose
//! first strip is held or full tries the next. A strip has two halves. Handlers fill the active half. The
//! drainer holds the lock only to swap the halves, and reads the other half without it. Each half has its own
//! pool of [`RemoteRecord`]s. Draining a half frees all of its slots at once, so a pool cannot wear out.
//!
//! The memory is reserved once in the life of the process; pages are touched only as far as they are used.

use std::cell::UnsafeCell;
use std::mem::size_of;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use otlpprof_core::address::ElfVaddr;
use otlpprof_core::build_id::BuildId;
use otlpprof_core::object::ObjectIndex;
use otlpprof_core::record::{FrameRecord, SampleHeader};

use crate::doorbell::Doorbell;

/// The number of strips.
pub const STRIPS: usize = 16;
/// The largest number of frames in a stack, whatever the `depth` option says.
pub const MAX_FRAMES: usize = 8192;

const HALF_BYTES: usize = 512 * 1024;
const HALF_AND_POOL_BYTES: usize = HALF_BYTES + REMOTE_SLOTS * size_of::<RemoteRecord>();
const ALL_BYTES: usize = 2 * STRIPS * HALF_AND_POOL_BYTES;
const REMOTE_SLOTS: usize = 4096;
const HEADER_BYTES: usize = size_of::<SampleHeader>();
const FRAME_BYTES: usize = size_of::<FrameRecord>();

const _: () = assert!(HEADER_BYTES.is_multiple_of(8) && FRAME_BYTES.is_multiple_of(8));
const _: () = assert!(HALF_BYTES >= 2 * (HEADER_BYTES + MAX_FRAMES * FRAME_BYTES));

/// A native frame as build-id and address, for symbolization outside of this process.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RemoteRecord {
    /// The object's build-id, in a record that is never freed.
    pub build_id: &'static BuildId,
    /// The lookup address, as a virtual address of the object's file.
    pub address: ElfVaddr,
    /// The loading of the object that the frame belongs to.
    pub object: ObjectIndex,
}

struct Half {
    records: *mut u8,
    used: usize,
    remote: *mut RemoteRecord,
    remote_used: usize,
}

struct Strip {
    /// 0 free, 1 held.
    lock: AtomicU32,
    /// The half that handlers fill, guarded by the lock.
    active: UnsafeCell<Half>,
    /// The half that belongs to the drainer.
    drained: UnsafeCell<Half>,
}

/// The strips of this process.
pub struct SampleBuffer {
    strips: [Strip; STRIPS],
    /// Rung when the buffer should be drained.
    pub drain_bell: Doorbell,
}

// SAFETY: a strip's active half is touched only under the strip's lock, and the drained half only by the one
// drainer that the contract of `drain` allows. The memory behind the pointers is never unmapped.
unsafe impl Sync for SampleBuffer {}
// SAFETY: the strips' locks and the one drainer order all access to the halves, whichever threads they are
// on.
unsafe impl Send for SampleBuffer {}

static BUFFER: AtomicPtr<SampleBuffer> = AtomicPtr::new(std::ptr::null_mut());

/// Returns the buffer, once [`create`] has been called.
#[inline]
pub fn get() -> Option<&'static SampleBuffer> {
    // SAFETY: the pointer is null, or leads to a leaked and fully built buffer (published with Release).
    unsafe { BUFFER.load(Ordering::Acquire).as_ref() }
}

/// Creates the buffer, or returns the existing one. Ordinary zone only.
#[expect(clippy::disallowed_types, reason = "made before the first signal")]
pub fn create() -> std::io::Result<&'static SampleBuffer> {
    if let Some(buffer) = get() {
        return Ok(buffer);
    }
    // SAFETY: a fresh anonymous mapping, to which nothing else refers.
    let memory = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::mmap(std::ptr::null_mut(), ALL_BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if memory == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    let half = |index: usize| {
        // SAFETY: inside the mapping, which has room for two halves per strip.
        let records = unsafe { memory.cast::<u8>().add(index.wrapping_mul(HALF_AND_POOL_BYTES)) };
        // SAFETY: the slots follow the records, and HALF_BYTES keeps them aligned.
        let remote = unsafe { records.add(HALF_BYTES) }.cast();
        Half { records, used: 0, remote, remote_used: 0 }
    };
    let strips = std::array::from_fn(|index| Strip {
        lock: AtomicU32::new(0),
        active: UnsafeCell::new(half(index.wrapping_mul(2))),
        drained: UnsafeCell::new(half(index.wrapping_mul(2).wrapping_add(1))),
    });
    let buffer = Box::into_raw(Box::new(SampleBuffer { strips, drain_bell: Doorbell::new() }));
    match BUFFER.compare_exchange(std::ptr::null_mut(), buffer, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: the buffer was leaked a few lines above.
        Ok(_) => Ok(unsafe { &*buffer }),
        Err(first) => {
            // SAFETY: this buffer and its memory were never published; the first buffer was published and is
            // never freed.
            unsafe {
                drop(Box::from_raw(buffer));
                libc::munmap(memory, ALL_BYTES);
                Ok(&*first)
            }
        }
    }
}

/// A strip that a handler holds, with room for one record.
pub struct HeldStrip<'a> {
    buffer: &'a SampleBuffer,
    strip: &'a Strip,
}

/// The reason why there is no strip for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStrip {
    /// Other handlers, or the drainer, hold all of them.
    Held,
    /// No strip that was free had room.
    Full,
}

impl SampleBuffer {
    /// Holds a free strip with room for a record of `max_frames` frames. The search begins at the strip that
    /// `hint` (a thread id) prefers.
    ///
    /// # Errors
    /// If all strips were held or full.
    pub fn try_hold(&self, hint: u32, max_frames: usize) -> Result<HeldStrip<'_>, NoStrip> {
        let needed = HEADER_BYTES.wrapping_add(max_frames.min(MAX_FRAMES).wrapping_mul(FRAME_BYTES));
        // Neighbouring thread ids are common, so they are spread (Fibonacci hashing).
        let first = hint.wrapping_mul(0x9e37_79b9) >> 28;
        let mut reason = NoStrip::Held;
        for step in 0..STRIPS {
            let Some(strip) = self.strips.get((first as usize).wrapping_add(step) % STRIPS) else { continue };
            if strip.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
                continue;
            }
            let held = HeldStrip { buffer: self, strip };
            // SAFETY: the lock is held.
            let used = unsafe { (*strip.active.get()).used };
            if HALF_BYTES.wrapping_sub(used) >= needed {
                return Ok(held);
            }
            reason = NoStrip::Full;
            self.drain_bell.ring();
        }
        Err(reason)
    }
}

impl HeldStrip<'_> {
    fn half(&mut self) -> &mut Half {
        // SAFETY: this value exists only while the lock is held, and it is borrowed mutably.
        unsafe { &mut *self.strip.active.get() }
    }

    /// Returns the room for the record's frames, and the remote pool. `max_frames` is the number that was
    /// passed to `try_hold`.
    pub fn frames_and_pool(&mut self, max_frames: usize) -> (&mut [FrameRecord], RemotePool<'_>) {
        let half = self.half();
        let at = half.used.wrapping_add(HEADER_BYTES);
        let room = HALF_BYTES.wrapping_sub(at) / FRAME_BYTES;
        // SAFETY: the frames lie inside the half and are aligned to 8 bytes. The memory is zero or holds
        // older records: every bit pattern there was written as a FrameRecord or is overwritten before it is
        // read.
        let frames = unsafe {
            let first = half.records.add(at).cast::<FrameRecord>();
            std::slice::from_raw_parts_mut(first, room.min(max_frames))
        };
        (frames, RemotePool { slots: half.remote, used: &mut half.remote_used })
    }

    /// Completes a record of which `header.frame_count` frames were written. Releases the strip.
    pub fn commit(mut self, header: SampleHeader) {
        let half = self.half();
        let before = half.used;
        let bytes = HEADER_BYTES.wrapping_add(usize::from(header.frame_count).wrapping_mul(FRAME_BYTES));
        // SAFETY: `try_hold` has checked that there is room; the header is aligned to 8 bytes.
        unsafe { half.records.add(before).cast::<SampleHeader>().write(header) };
        half.used = before.wrapping_add(bytes);
        if before < HALF_BYTES / 2 && half.used >= HALF_BYTES / 2 {
            self.buffer.drain_bell.ring();
        }
    }
}

impl Drop for HeldStrip<'_> {
    fn drop(&mut self) {
        self.strip.lock.store(0, Ordering::Release);
    }
}

/// The free slots for remote frames in a strip that is held.
pub struct RemotePool<'a> {
    slots: *mut RemoteRecord,
    used: &'a mut usize,
}

impl RemotePool<'_> {
    /// Puts `frame` into a free slot; `None` if no slot is free.
    pub fn put(&mut self, frame: RemoteRecord) -> Option<u32> {
        let slot = *self.used;
        if slot >= REMOTE_SLOTS {
            return None;
        }
        // SAFETY: the slot is below the pool's size.
        unsafe { self.slots.add(slot).write(frame) };
        *self.used = slot.wrapping_add(1);
        u32::try_from(slot).ok()
    }
}

/// One drained half. Its records are valid while it is borrowed.
pub struct Drained<'a> {
    half: &'a Half,
}

/// A record as the drainer reads it.
pub struct DrainedRecord<'a> {
    /// The header, of fixed size.
    pub header: SampleHeader,
    /// The frames, leaf first.
    pub frames: &'a [FrameRecord],
}

impl Drained<'_> {
    /// The records, in the order in which they were written.
    pub fn records(&self) -> impl Iterator<Item = DrainedRecord<'_>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            if at >= self.half.used {
                return None;
            }
            // SAFETY: a committed record begins here: a header, then the number of frames that it gives.
            let (header, frames) = unsafe {
                let header = self.half.records.add(at).cast::<SampleHeader>().read();
                let first = self.half.records.add(at.wrapping_add(HEADER_BYTES)).cast::<FrameRecord>();
                (header, std::slice::from_raw_parts(first, usize::from(header.frame_count)))
            };
            at = at.wrapping_add(HEADER_BYTES).wrapping_add(size_of_val(frames));
            Some(DrainedRecord { header, frames })
        })
    }

    /// The remote frame in `slot`.
    pub fn remote(&self, slot: u32) -> Option<RemoteRecord> {
        // SAFETY: slots below `remote_used` were written by `RemotePool::put`.
        ((slot as usize) < self.half.remote_used)
            .then(|| unsafe { self.half.remote.add(slot as usize).read() })
    }
}

impl SampleBuffer {
    /// Passes each strip's drained half to `take`, and then frees its records and remote slots. Ordinary
    /// zone.
    ///
    /// # Safety
    /// One drainer at a time.
    pub unsafe fn drain(&self, mut take: impl FnMut(&Drained<'_>)) {
        for strip in &self.strips {
            hold_from_drainer(strip);
            // SAFETY: the lock is held, and by this function's contract no other drainer touches the drained
            // half.
            unsafe { std::ptr::swap(strip.active.get(), strip.drained.get()) };
            strip.lock.store(0, Ordering::Release);
            // SAFETY: handlers do not touch this half until it is swapped back.
            let half = unsafe { &mut *strip.drained.get() };
            if half.used > 0 {
                take(&Drained { half });
            }
            half.used = 0;
            half.remote_used = 0;
        }
    }

    /// Returns once every handler that was running at the time of the call has finished. Memory that was
    /// unpublished before the call can then be freed. Ordinary zone.
    pub fn wait_for_handlers(&self) {
        for strip in &self.strips {
            hold_from_drainer(strip);
            strip.lock.store(0, Ordering::Release);
        }
    }
}

/// Holds a strip's lock for the drainer. A handler holds the lock for microseconds, unless its thread is
/// preempted; sleeping then lets that thread run.
#[expect(clippy::disallowed_methods, reason = "the drainer's thread, not a handler")]
fn hold_from_drainer(strip: &Strip) {
    let mut tries = 0_u32;
    while strip.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        tries = tries.saturating_add(1);
        if tries < 100 {
            std::hint::spin_loop();
        } else {
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::context::ContextRecord;
    use otlpprof_core::engine::Engine;
    use otlpprof_core::java_thread_state::JavaThreadState;
    use otlpprof_core::record::{FrameKind, Subject};

    use super::*;

    static SERIAL: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

    fn header(frame_count: u16, weight: u64) -> SampleHeader {
        SampleHeader {
            monotonic_ns: 0,
            weight,
            values: [weight as f64, 0.0],
            context: ContextRecord::NONE,
            owner: otlpprof_core::record::Owner::NONE,
            os_tid: 0,
            java_incarnation: 0,
            frame_count,
            subject: Subject::NONE,
            number: 0,
            engine: Engine::Cpu,
            thread_state: JavaThreadState::Unknown,
            is_virtual: 0,
            is_waiting: 0,
            is_runnable: 0,
            reserved: 0,
        }
    }

    fn put(buffer: &SampleBuffer, hint: u32, frames: u16, weight: u64) -> bool {
        let Ok(mut held) = buffer.try_hold(hint, usize::from(frames)) else { return false };
        let (room, _) = held.frames_and_pool(usize::from(frames));
        for (index, frame) in room.iter_mut().enumerate() {
            *frame = FrameRecord {
                value: weight + index as u64,
                aux: 0,
                kind: FrameKind::Native,
                level: 0,
                reserved: 0,
            };
        }
        held.commit(header(frames, weight));
        true
    }

    fn drain_weights(buffer: &SampleBuffer) -> Vec<u64> {
        let mut weights = Vec::new();
        // SAFETY: the tests of this module run one at a time.
        unsafe {
            buffer.drain(|drained| {
                for record in drained.records() {
                    for (index, frame) in record.frames.iter().enumerate() {
                        assert_eq!(frame.value, record.header.weight + index as u64);
                    }
                    weights.push(record.header.weight);
                }
            });
        }
        weights.sort_unstable();
        weights
    }

    #[test]
    fn each_record_is_drained_once() {
        let _serial = SERIAL.lock();
        let buffer = create().unwrap();
        drain_weights(buffer);
        for weight in 0..1000 {
            assert!(put(buffer, weight as u32, (weight % 50) as u16, weight));
        }
        assert_eq!(drain_weights(buffer), (0..1000).collect::<Vec<_>>());
        assert!(drain_weights(buffer).is_empty());
    }

    #[test]
    fn a_full_buffer_refuses_and_works_again_after_draining() {
        let _serial = SERIAL.lock();
        let buffer = create().unwrap();
        drain_weights(buffer);
        let mut count = 0;
        while put(buffer, 7, 2000, count) {
            count += 1;
        }
        assert!(count >= (STRIPS * HALF_BYTES / (2001 * FRAME_BYTES + HEADER_BYTES) / 2) as u64);
        assert_eq!(drain_weights(buffer).len() as u64, count);
        assert!(put(buffer, 7, 2000, 1));
        assert_eq!(drain_weights(buffer), [1]);
    }

    #[test]
    fn a_held_strip_is_passed_over() {
        let _serial = SERIAL.lock();
        let buffer = create().unwrap();
        drain_weights(buffer);
        let held: Vec<_> = (0..STRIPS).map(|_| buffer.try_hold(3, 10).unwrap()).collect();
        assert_eq!(buffer.try_hold(3, 10).err(), Some(NoStrip::Held));
        drop(held);
        assert!(buffer.try_hold(3, 10).is_ok());
    }

    #[test]
    fn the_remote_pool_is_exhausted_and_comes_back_with_the_drain() {
        let _serial = SERIAL.lock();
        let buffer = create().unwrap();
        drain_weights(buffer);
        let build_id: &'static BuildId = Box::leak(Box::new(BuildId::new(&[1; 20]).unwrap()));
        let frame = |n: usize| RemoteRecord { build_id, address: ElfVaddr(n as u64), object: ObjectIndex(5) };
        // More rounds than the two halves could hold together: slots are reused.
        for _ in 0..5 {
            let mut held = buffer.try_hold(3, 1).unwrap();
            let (_, mut pool) = held.frames_and_pool(1);
            for slot in 0..REMOTE_SLOTS {
                assert_eq!(pool.put(frame(slot)), Some(slot as u32));
            }
            assert_eq!(pool.put(frame(0)), None);
            held.commit(header(0, 1));
            let mut seen = 0;
            // SAFETY: the tests of this module run one at a time.
            unsafe {
                buffer.drain(|drained| {
                    assert_eq!(drained.remote(17).unwrap().address, ElfVaddr(17));
                    assert!(drained.remote(REMOTE_SLOTS as u32).is_none());
                    seen += drained.records().count();
                });
            }
            assert_eq!(seen, 1);
        }
    }
}

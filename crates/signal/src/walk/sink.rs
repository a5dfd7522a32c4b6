//! The output of a walk: a list of frames.

use otlpprof_core::address::RuntimeAddr;
use otlpprof_core::object::LoadedObject;
use otlpprof_core::record::{FrameKind, FrameRecord, NO_OBJECT};

use super::frozen_reason::FrozenReason;
use super::walk_error::WalkError;
use crate::buffer::{RemotePool, RemoteRecord};
use crate::counters::{COUNTERS, add};

/// The frames of one sample. The sink takes one frame beyond the limit, which distinguishes a stack that ends
/// at the limit from one that continues. A truncation mark then replaces that frame.
pub struct FrameSink<'a> {
    frames: &'a mut [FrameRecord],
    len: usize,
    limit: usize,
    has_unknown_code: bool,
    /// The pool for native frames that are recorded as build-id and address. `None` where they are not.
    remote: Option<RemotePool<'a>>,
    left_out: LeftOut,
}

/// The native frames and stubs that the sink discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    None,
    /// Frames above the first Java frame.
    OnTop,
    All,
}

impl<'a> FrameSink<'a> {
    /// Makes a sink that keeps `frames.len() - 2` frames. The other two records are for the frame beyond the
    /// limit and for a mark.
    pub fn new(frames: &'a mut [FrameRecord], remote: Option<RemotePool<'a>>) -> Self {
        let limit = frames.len().saturating_sub(2);
        Self { frames, len: 0, limit, has_unknown_code: false, remote, left_out: LeftOut::None }
    }

    /// The number of frames up to the limit.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.len)
    }

    /// The next `count` records, for another function to fill. [`FrameSink::take_rest`] then appends them.
    pub(crate) fn rest(&mut self, count: usize) -> Option<&mut [FrameRecord]> {
        self.frames.get_mut(self.len..self.len.wrapping_add(count))
    }

    /// Appends the first `count` of the records that [`FrameSink::rest`] gave out.
    pub(crate) fn take_rest(&mut self, count: usize) {
        self.len = self.len.wrapping_add(count).min(self.limit);
    }

    /// The method of the last frame, if that is a Java frame.
    pub(super) fn last_method(&self) -> Option<u64> {
        let last = self.frames.get(self.len.checked_sub(1)?)?;
        last.kind.is_java().then_some(last.value)
    }

    /// Discards all but the first `len` frames.
    pub(super) fn cut(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Discards native frames and stubs from now on.
    pub(super) fn leave_out_native_frames(&mut self) {
        self.left_out = LeftOut::All;
    }

    /// Discards native frames and stubs until the first Java frame.
    pub(super) fn begin_at_java(&mut self) {
        self.left_out = LeftOut::OnTop;
    }

    fn takes_native_frames(&self) -> bool {
        match self.left_out {
            LeftOut::None => true,
            LeftOut::OnTop => !self.is_empty(),
            LeftOut::All => false,
        }
    }

    /// The number of frames so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the sink has no frame yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the stack continues beyond the limit. The walk then ends, and [`FrameSink::truncate`] marks
    /// the stack.
    pub fn is_full(&self) -> bool {
        self.len > self.limit
    }

    /// Whether a native frame was in no known object.
    pub fn has_unknown_code(&self) -> bool {
        self.has_unknown_code
    }

    fn put(&mut self, kind: FrameKind, level: u8, aux: u32, value: u64) {
        self.put_record(FrameRecord { value, aux, kind, level, reserved: 0 });
    }

    fn put_record(&mut self, frame: FrameRecord) {
        if let Some(slot) = self.frames.get_mut(self.len) {
            *slot = frame;
            self.len = self.len.wrapping_add(1);
        }
    }

    /// Appends a Java frame. `bci` is -1 if not known.
    pub fn java(&mut self, kind: FrameKind, level: u8, method: u64, bci: i32) {
        if !self.is_full() {
            self.put(kind, level, bci as u32, method);
        }
    }

    /// Appends the frames at `places` again.
    pub fn repeat(&mut self, places: std::ops::Range<usize>) {
        for place in places {
            let Some(&frame) = self.frames.get(place).filter(|_| !self.is_full()) else { return };
            self.put_record(frame);
        }
    }

    /// Appends a native frame in `object`. The caller has checked that this object is still loaded there.
    pub fn native(&mut self, object: Option<&LoadedObject>, lookup_pc: u64) {
        if self.is_full() || !self.takes_native_frames() {
            return;
        }
        let Some(object) = object else {
            self.has_unknown_code = true;
            return self.put(FrameKind::Native, 0, NO_OBJECT, lookup_pc);
        };
        if let (Some(pool), Some(build_id)) = (&mut self.remote, object.build_id) {
            let address = object.load_bias.to_elf(RuntimeAddr(lookup_pc));
            if let Some(slot) = pool.put(RemoteRecord { build_id, address, object: object.index }) {
                return self.put(FrameKind::Remote, 0, slot, 0);
            }
            add(&COUNTERS.remote_pool_exhausted, 1);
        }
        self.put(FrameKind::Native, 0, object.index.0, lookup_pc);
    }

    /// Appends a kernel frame. Kernel frames come before the program's frames.
    pub fn kernel(&mut self, lookup_pc: u64) {
        if !self.is_full() {
            self.put(FrameKind::Kernel, 0, 0, lookup_pc);
        }
    }

    /// Appends a frame for a stub of the VM.
    pub fn stub(&mut self, lookup_pc: u64) {
        if !self.is_full() && self.takes_native_frames() {
            self.put(FrameKind::Stub, 0, 0, lookup_pc);
        }
    }

    /// Appends a mark where the walk could not go on, and counts it.
    pub fn unwalkable(&mut self, error: WalkError, pc: u64) {
        COUNTERS.walk_error(error);
        self.put(FrameKind::Unwalkable, 0, error as u32, pc);
    }

    /// Appends the mark for a thread without Java frames.
    pub(super) fn no_java_frame(&mut self) {
        self.put(FrameKind::NoJavaFrame, 0, 0, 0);
    }

    /// Appends the mark that replaces a virtual thread's frozen frames, and counts it.
    pub fn frozen(&mut self, reason: FrozenReason, pc: u64) {
        COUNTERS.frozen(reason);
        self.put(FrameKind::Frozen, 0, reason as u32, pc);
    }

    /// Whether the last frame is a frame of `method`.
    pub fn ends_in(&self, method: u64) -> bool {
        self.last_method() == Some(method)
    }

    /// Replaces the frames beyond the limit by the truncation mark.
    pub fn truncate(&mut self) {
        add(&COUNTERS.truncated, 1);
        self.cut(self.limit);
        self.put(FrameKind::Truncated, 0, 0, 0);
    }
}

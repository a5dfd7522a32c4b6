//! AsyncGetCallTrace: HotSpot's undocumented function that walks the current thread's Java frames in a signal
//! handler (prims/forte.cpp, JDK 11-25).

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use otlpprof_core::memory::Memory;
use otlpprof_core::method_ids::MethodIds;
use otlpprof_core::record::{FrameKind, FrameRecord};

use super::walk::sink::FrameSink;

/// `ASGCT_CallFrame`: a bytecode index, negative if there is none, and a jmethodID, null if there is none.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CallFrame {
    /// The bytecode index; -3 for a native method.
    pub bci: i32,
    /// A `jmethodID`.
    pub method_id: u64,
}

/// `ASGCT_CallTrace`.
#[derive(Debug)]
#[repr(C)]
pub struct CallTrace {
    /// The thread's `JNIEnv*`.
    pub env: u64,
    /// The number of frames that were found; 0 or a negative number gives the reason why there are none.
    pub num_frames: i32,
    /// The array for the frames.
    pub frames: *mut CallFrame,
}

/// The type of AsyncGetCallTrace. Its arguments: trace, capacity in frames, and the handler's context.
pub type AsyncGetCallTrace = unsafe extern "C" fn(*mut CallTrace, i32, *mut c_void);

/// The bytecode index that stands for a native method.
const NATIVE_METHOD: i32 = -3;

/// Frames are converted to records in place, in the array that the VM has filled.
const _: () = assert!(size_of::<CallFrame>() == size_of::<FrameRecord>());
const _: () = assert!(align_of::<CallFrame>() == align_of::<FrameRecord>());

/// Methods in which complete stacks are known to have ended, above all `Thread.run`. AsyncGetCallTrace stops
/// silently at a frame that it does not trust, so a trace that ends in any other method may be incomplete.
#[derive(Debug, Default)]
pub struct RootMethods {
    methods: [AtomicU64; 16],
    next: AtomicUsize,
}

impl RootMethods {
    /// Returns an empty set.
    pub const fn new() -> Self {
        Self { methods: [const { AtomicU64::new(0) }; 16], next: AtomicUsize::new(0) }
    }

    /// Whether `method` is one of the methods that were learnt last.
    pub fn knows(&self, method: u64) -> bool {
        self.methods.iter().any(|known| known.load(Ordering::Relaxed) == method)
    }

    /// Adds a method. If the set is full, the oldest one is replaced.
    pub fn learn(&self, method: u64) {
        if self.knows(method) {
            return;
        }
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let place = count.checked_rem(self.methods.len());
        if let Some(slot) = place.and_then(|place| self.methods.get(place)) {
            slot.store(method, Ordering::Relaxed);
        }
    }
}

/// The arguments of the call, in a handler of the thread in question.
#[derive(Clone, Copy, Debug)]
pub struct CallTraceSource {
    function: AsyncGetCallTrace,
    env: u64,
    context: *mut c_void,
    ids: MethodIds,
    /// The methods in which complete stacks end.
    pub roots: &'static RootMethods,
}

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallTraceEnd {
    /// The Java frames are in the sink.
    Complete,
    /// The sink has as many frames as there was room for, and there are more.
    Truncated,
    /// The thread has no Java frames.
    Empty,
    /// An error, or a frame whose method has no id. The sink is unchanged.
    Failed,
}

impl CallTraceSource {
    /// `ids` is the meaning of the VM's jmethodIDs. If they are opaque, frames hold the ids themselves.
    ///
    /// # Safety
    /// `function` is AsyncGetCallTrace, `env` belongs to the current thread, and `context` comes from the
    /// kernel; both are valid as long as the value is used.
    pub const unsafe fn new(
        function: AsyncGetCallTrace,
        env: u64,
        context: *mut c_void,
        ids: MethodIds,
        roots: &'static RootMethods,
    ) -> Self {
        Self { function, env, context, ids, roots }
    }

    /// Puts the thread's Java frames into the sink, from the last frame that was entered to the first.
    pub fn put_frames(&self, memory: &impl Memory, sink: &mut FrameSink<'_>) -> CallTraceEnd {
        let limit = sink.room();
        // Room for one frame more distinguishes a stack that ends at the limit from one that continues.
        let Some(room) = sink.rest(limit.wrapping_add(1)) else { return CallTraceEnd::Failed };
        let frames: *mut CallFrame = room.as_mut_ptr().cast();
        let mut trace = CallTrace { env: self.env, num_frames: 0, frames };
        // SAFETY: by the contract of `new` function, `env` and `context` are valid; a frame has the size of a
        // record, so there is room for `room.len()` frames.
        unsafe { (self.function)(&raw mut trace, room.len() as i32, self.context) };
        let count = usize::try_from(trace.num_frames).unwrap_or(0).min(room.len());
        if trace.num_frames == 0 {
            return CallTraceEnd::Empty;
        }
        let mut complete = count > 0;
        for (index, record) in room.iter_mut().enumerate().take(count) {
            // SAFETY: `index` is below the number of frames that the VM has written.
            let frame = unsafe { frames.add(index).read() };
            let method = self.record(memory, &frame);
            complete &= method.is_some();
            *record = method.unwrap_or(FrameRecord {
                value: 0,
                aux: 0,
                kind: FrameKind::Truncated,
                level: 0,
                reserved: 0,
            });
        }
        if !complete {
            return CallTraceEnd::Failed;
        }
        sink.take_rest(count.min(limit));
        if count > limit { CallTraceEnd::Truncated } else { CallTraceEnd::Complete }
    }

    fn record(&self, memory: &impl Memory, frame: &CallFrame) -> Option<FrameRecord> {
        let id = frame.method_id;
        let (value, kind) = match (self.ids, frame.bci) {
            (MethodIds::Opaque, _) => (id, FrameKind::MethodId),
            (MethodIds::Cells, NATIVE_METHOD) => (self.ids.method(memory, id)?, FrameKind::NativeMethod),
            (MethodIds::Cells, _) => (self.ids.method(memory, id)?, FrameKind::Java),
        };
        let valid = value != 0 && (kind == FrameKind::MethodId || value.is_multiple_of(8));
        let aux = frame.bci.max(-1) as u32;
        valid.then_some(FrameRecord { value, aux, kind, level: 0, reserved: 0 })
    }
}

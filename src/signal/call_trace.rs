//! AsyncGetCallTrace: HotSpot's own, undocumented walk of the current thread's Java frames, for signal handlers
//! (prims/forte.cpp, JDK 11-25).

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::walk::FrameSink;
use crate::core::memory::Memory;
use crate::core::record::{FrameKind, FrameRecord};

/// `ASGCT_CallFrame`: a bytecode index, below 0 where there is none, and a jmethodID, null where there is none.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CallFrame {
    /// -3: a native method.
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
    /// How many frames were found; 0 or less: none, and why.
    pub num_frames: i32,
    /// Room for them.
    pub frames: *mut CallFrame,
}

/// The function's type: trace, room, and the handler's context.
pub type AsyncGetCallTrace = unsafe extern "C" fn(*mut CallTrace, i32, *mut c_void);

/// The bytecode index that stands for a native method.
const NATIVE_METHOD: i32 = -3;

/// Frames are turned into records where the VM has put them.
const _: () = assert!(size_of::<CallFrame>() == size_of::<FrameRecord>());
const _: () = assert!(align_of::<CallFrame>() == align_of::<FrameRecord>());

/// Methods in which whole stacks are known to have ended, `Thread.run` above all. AsyncGetCallTrace ends without a
/// word at a frame that it does not trust; a trace that ends elsewhere may be such a one.
#[derive(Debug, Default)]
pub struct RootMethods {
    methods: [AtomicU64; 16],
    next: AtomicUsize,
}

impl RootMethods {
    /// None yet.
    pub const fn new() -> Self {
        Self { methods: [const { AtomicU64::new(0) }; 16], next: AtomicUsize::new(0) }
    }

    /// Whether it is one of those that were learnt last.
    pub fn knows(&self, method: u64) -> bool {
        self.methods.iter().any(|known| known.load(Ordering::Relaxed) == method)
    }

    /// Remembers one, and forgets another where there are too many.
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

/// What the call needs, in a handler of the thread in question.
#[derive(Clone, Copy, Debug)]
pub struct CallTraceSource {
    function: AsyncGetCallTrace,
    env: u64,
    context: *mut c_void,
    ids_lead_to_methods: bool,
    /// Where whole stacks end.
    pub roots: &'static RootMethods,
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallTraceEnd {
    /// The Java frames are in the sink.
    Complete,
    /// As many as there was room for, and there are more.
    Truncated,
    /// The thread has no Java frames.
    Empty,
    /// An error, or a frame whose method has no id: the sink is as it was.
    Failed,
}

impl CallTraceSource {
    /// `ids_lead_to_methods`: a jmethodID is the address of a `Method*` (until 25); else frames hold the ids.
    ///
    /// # Safety
    /// `function` is AsyncGetCallTrace, `env` the current thread's and `context` the kernel's, both as long as
    /// this is used.
    pub const unsafe fn new(
        function: AsyncGetCallTrace,
        env: u64,
        context: *mut c_void,
        ids_lead_to_methods: bool,
        roots: &'static RootMethods,
    ) -> Self {
        Self { function, env, context, ids_lead_to_methods, roots }
    }

    /// Puts the thread's Java frames into the sink, from the last one that was entered to the first.
    pub fn put_frames(&self, memory: &impl Memory, sink: &mut FrameSink<'_>) -> CallTraceEnd {
        let limit = sink.room();
        // One more tells a stack that ends at the limit from one that goes on.
        let Some(room) = sink.rest(limit.wrapping_add(1)) else { return CallTraceEnd::Failed };
        let frames: *mut CallFrame = room.as_mut_ptr().cast();
        let mut trace = CallTrace { env: self.env, num_frames: 0, frames };
        // SAFETY: by the contract of `new`; there is room for as many frames, of the size of records.
        unsafe { (self.function)(&raw mut trace, room.len() as i32, self.context) };
        let count = usize::try_from(trace.num_frames).unwrap_or(0).min(room.len());
        if trace.num_frames == 0 {
            return CallTraceEnd::Empty;
        }
        let mut complete = count > 0;
        for (index, record) in room.iter_mut().enumerate().take(count) {
            // SAFETY: within the room, where the VM has put that many frames.
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
        let (value, kind) = match (self.ids_lead_to_methods, frame.bci) {
            (false, _) => (id, FrameKind::MethodId),
            (true, NATIVE_METHOD) => (memory.load_u64(id)?, FrameKind::NativeMethod),
            (true, _) => (memory.load_u64(id)?, FrameKind::Java),
        };
        let valid = id != 0 && value != 0 && (kind == FrameKind::MethodId || value.is_multiple_of(8));
        let aux = frame.bci.max(-1) as u32;
        valid.then_some(FrameRecord { value, aux, kind, level: 0, reserved: 0 })
    }
}

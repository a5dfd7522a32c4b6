//! The Java frames of a recorded stack.

use otlpprof_core::record::{FrameKind, FrameRecord};

/// The Java frames, each with its index in `frames`.
pub(super) fn java_frames(frames: &[FrameRecord]) -> impl Iterator<Item = (usize, &FrameRecord)> {
    let is_java = |frame: &FrameRecord| frame.kind.is_java() || frame.kind == FrameKind::MethodId;
    frames.iter().enumerate().filter(move |(_, frame)| is_java(frame))
}

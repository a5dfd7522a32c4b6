//! A message whose frames are resolved, before their names are put into it.

use std::collections::BTreeMap;
use std::sync::Arc;

use otlpprof_debug_files::ObjectIdentity;
use otlpprof_otlp::encoded::EncodedMessage;
use parking_lot::RwLock;

use super::names::Names;
use super::objects::Objects;
use super::remote_frames;
use super::rewrite::{self, Resolved};

/// A message and the names of its frames.
#[derive(Debug)]
pub struct ResolvedMessage {
    pub(super) message: EncodedMessage,
    /// The resolved frames, in the order of their locations.
    pub(super) resolved: Vec<Resolved>,
    /// Has the names of the resolved frames.
    pub(super) names: Arc<RwLock<Names>>,
}

/// Resolved frames that stay as they were, since readers would refuse their message with the names.
#[derive(Debug)]
pub struct RefusedFrames {
    /// The objects, and the number of frames of each.
    pub(super) frames: Vec<(ObjectIdentity, u64)>,
    pub(super) why: String,
}

impl ResolvedMessage {
    /// The message with the names, and the frames that were not named after all.
    pub fn rewritten(self) -> (EncodedMessage, Option<RefusedFrames>) {
        let Self { message, resolved, names } = self;
        if resolved.is_empty() {
            return (message, None);
        }
        match rewrite::rewritten(&message, &resolved, &names.read()) {
            Ok(rewritten) => (rewritten, None),
            Err(error) => {
                let why = format!("its message would be refused: {error}");
                let frames = frames_of_objects(&message, &resolved);
                (message, Some(RefusedFrames { frames, why }))
            }
        }
    }
}

/// The objects of the resolved frames, and the number of frames of each.
fn frames_of_objects(message: &EncodedMessage, resolved: &[Resolved]) -> Vec<(ObjectIdentity, u64)> {
    let mut objects = Objects::default();
    let mut counts = BTreeMap::new();
    for frame in remote_frames::find(message, &mut objects) {
        if resolved.binary_search_by_key(&frame.location, |resolved| resolved.location).is_ok() {
            *counts.entry(frame.place.object).or_default() += 1;
        }
    }
    counts.into_iter().map(|(number, count)| (objects.get(number).clone(), count)).collect()
}

//! The objects of which messages have frames without names.

use std::collections::HashMap;

use otlpprof_debug_files::ObjectIdentity;
use otlpprof_otlp::encoded::EncodedMessage;

use super::objects::{ObjectNumber, Objects};
use super::remote_frames;

/// The objects of messages, each with the number of its frames without a name. They are the frames that a
/// [`Symbolizer`](super::Symbolizer) resolves.
#[derive(Debug, Default)]
pub struct Needs {
    objects: Objects,
    /// By number: the frames of each object.
    frames: Vec<u64>,
}

impl Needs {
    /// Adds the frames of a message.
    pub fn add(&mut self, message: &EncodedMessage) {
        let unnamed = remote_frames::find(message, &mut self.objects);
        self.frames.resize(self.objects.len(), 0);
        for frame in unnamed {
            self.frames[frame.place.object.0 as usize] += 1;
        }
    }

    /// The objects, the ones with the most frames first.
    pub fn into_objects(self) -> Vec<(ObjectIdentity, u64)> {
        let mut objects: Vec<(ObjectIdentity, u64)> = Vec::new();
        let mut known: HashMap<ObjectIdentity, usize> = HashMap::new();
        for (number, frames) in (0..).zip(self.frames).filter(|(_, frames)| *frames > 0) {
            let identity = self.objects.get(ObjectNumber(number));
            let at = *known.entry(essential(identity)).or_insert_with(|| {
                objects.push((ObjectIdentity::default(), 0));
                objects.len() - 1
            });
            let (merged, sum) = &mut objects[at];
            *sum += frames;
            merged.build_id = merged.build_id.or(identity.build_id);
            merged.htlhash = merged.htlhash.or(identity.htlhash);
            // The text of a frame has only the build-id.
            merged.path = merged.path.take().or_else(|| identity.path.clone());
        }
        objects.sort_by_key(|(_, frames)| std::cmp::Reverse(*frames));
        objects
    }
}

/// The part of an identity that is the same in all processes: paths differ from process to process.
fn essential(identity: &ObjectIdentity) -> ObjectIdentity {
    let ObjectIdentity { build_id, htlhash, path } = identity.clone();
    match (build_id, htlhash) {
        (Some(_), _) => ObjectIdentity { build_id, ..ObjectIdentity::default() },
        (None, Some(_)) => ObjectIdentity { htlhash, ..ObjectIdentity::default() },
        (None, None) => ObjectIdentity { path, ..ObjectIdentity::default() },
    }
}

//! Messages with their frames resolved.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use otlpprof_core::address::ElfVaddr;
use otlpprof_debug_files::Locator;
use otlpprof_otlp::encoded::EncodedMessage;
use parking_lot::RwLock;

use super::index_cache::IndexCache;
use super::names::Names;
use super::object::Object;
use super::objects::{ObjectNumber, Objects};
use super::remote_frames::{self, Unnamed};
use super::resolved_message::{RefusedFrames, ResolvedMessage};
use super::rewrite::Resolved;
use super::summary::{ObjectSummary, Summary};
use super::unresolved::Unresolved;

/// The most objects whose files are open at a time.
const OPEN_OBJECTS: usize = 128;
/// The most bytes that the readers of open indexes keep at a time.
const OPEN_BYTES: u64 = 512 << 20;
/// The most objects that are known at a time. A process has some hundred.
const KNOWN_OBJECTS: usize = 16 << 10;
/// The time after which an object without files is searched again.
const SEARCHED_AGAIN: Duration = Duration::from_secs(600);

/// Resolves the frames of messages. Answers are kept from message to message.
#[derive(Debug)]
pub struct Symbolizer {
    locator: Locator,
    cache: IndexCache,
    objects: Objects,
    /// By number: what is known of the objects.
    states: Vec<State>,
    names: Arc<RwLock<Names>>,
    /// Counts of objects that are no longer known.
    forgotten: Vec<ObjectSummary>,
}

/// The state of an object.
#[derive(Debug, Default)]
struct State {
    /// The object, or the reason why there is none, and the time of the search; `None` before the search.
    searched: Option<(Result<Object, Unresolved>, Instant)>,
    resolved: u64,
    unresolved: BTreeMap<String, u64>,
}

impl Symbolizer {
    /// Resolves by the files that the locator finds.
    pub fn new(locator: Locator, cache: IndexCache) -> Self {
        let (objects, states, names, forgotten) = Default::default();
        Self { locator, cache, objects, states, names, forgotten }
    }

    /// Expects only one message: the indexes of objects that are used for the first time are left to their
    /// second use, because to make them takes longer than to resolve the frames of one message.
    pub fn expect_one_message(&mut self) {
        self.cache.make_at_second_use();
    }

    /// The message with its frames resolved. Frames that are not resolved stay as they were.
    pub fn symbolize(&mut self, message: EncodedMessage) -> EncodedMessage {
        let (symbolized, refused) = self.resolve(message).rewritten();
        if let Some(refused) = refused {
            self.take_back(refused);
        }
        symbolized
    }

    /// Resolves the frames of a message. The names are not in the message yet, so that another thread can put
    /// them there while this one resolves the next message.
    pub fn resolve(&mut self, message: EncodedMessage) -> ResolvedMessage {
        let mut unnamed = remote_frames::find(&message, &mut self.objects);
        self.states.resize_with(self.objects.len(), State::default);
        unnamed.sort_unstable_by_key(|frame| frame.place);
        self.search(&unnamed);
        let mut resolved = Vec::with_capacity(unnamed.len());
        for frames in unnamed.chunk_by(|one, other| one.place.object == other.place.object) {
            self.resolve_in_object(frames, &mut resolved);
        }
        resolved.sort_unstable_by_key(|resolved: &Resolved| resolved.location);
        let resolved = ResolvedMessage { message, resolved, names: Arc::clone(&self.names) };
        self.stay_within_bounds();
        resolved
    }

    /// Searches the objects of these frames, which are sorted by object, that have not been searched, or not
    /// found, for a while.
    fn search(&mut self, frames: &[Unnamed]) {
        let Self { locator, cache, objects, states, .. } = self;
        let is_known =
            |(found, at): &(Result<_, _>, Instant)| found.is_ok() || at.elapsed() <= SEARCHED_AGAIN;
        let mut due: Vec<ObjectNumber> = frames.iter().map(|frame| frame.place.object).collect();
        due.dedup();
        due.retain(|number| !states[number.0 as usize].searched.as_ref().is_some_and(is_known));
        let identities: Vec<_> = due.iter().map(|&number| objects.get(number)).collect();
        for ((number, identity), located) in due.iter().zip(&identities).zip(locator.locate_all(&identities))
        {
            let located = located.map_err(Unresolved::from);
            let found = located.and_then(|files| Object::open(identity, files, locator, cache));
            states[number.0 as usize].searched = Some((found, Instant::now()));
        }
    }

    /// Resolves frames of one object, which has been searched, in the order of their addresses.
    fn resolve_in_object(&mut self, frames: &[Unnamed], resolved: &mut Vec<Resolved>) {
        // SANITY: the groups of frames are not empty.
        let Some(number) = frames.first().map(|frame| frame.place.object) else { return };
        let Self { cache, states, names, .. } = self;
        let state = &mut states[number.0 as usize];
        // SANITY: the object of each frame has been searched.
        let Some((found, _)) = &mut state.searched else { return };
        let mut unresolved = Vec::new();
        match found {
            Err(why) => unresolved.push((why.to_string(), frames.len() as u64)),
            Ok(object) => {
                if let Err(why) = resolve_in(object, frames, names, cache, resolved, &mut unresolved) {
                    unresolved.push((why.to_string(), frames.len() as u64));
                    *found = Err(why);
                }
            }
        }
        let lost: u64 = unresolved.iter().map(|(_, count)| count).sum();
        state.resolved += frames.len() as u64 - lost;
        for (why, count) in unresolved {
            *state.unresolved.entry(why).or_default() += count;
        }
    }

    /// Counts frames that were resolved as unresolved.
    pub fn take_back(&mut self, refused: RefusedFrames) {
        for (identity, count) in refused.frames {
            let number = self.objects.number(&identity);
            self.states.resize_with(self.objects.len(), State::default);
            let state = &mut self.states[number.0 as usize];
            state.resolved = state.resolved.saturating_sub(count);
            *state.unresolved.entry(refused.why.clone()).or_default() += count;
        }
    }

    /// Forgets answers, and closes objects, if there are too many.
    fn stay_within_bounds(&mut self) {
        let open = || self.states.iter().filter_map(|state| state.searched.as_ref()?.0.as_ref().ok());
        let (count, bytes) = (open().count(), open().map(Object::index_bytes).sum::<u64>());
        let closes = count > OPEN_OBJECTS || bytes > OPEN_BYTES;
        let forgets = self.names.read().is_full();
        if closes || forgets {
            for state in &mut self.states {
                match &mut state.searched {
                    Some((Ok(_), _)) if closes => state.searched = None,
                    Some((Ok(object), _)) => object.forget_answers(),
                    _ => {}
                }
            }
        }
        if forgets {
            self.names = Arc::default();
        }
        if self.objects.len() > KNOWN_OBJECTS {
            self.forgotten = self.summary().objects;
            self.forgotten.truncate(KNOWN_OBJECTS);
            (self.objects, self.states) = Default::default();
        }
    }

    /// The counts so far.
    pub fn summary(&self) -> Summary {
        let mut objects = self.forgotten.clone();
        for (number, state) in (0..).zip(&self.states) {
            if state.resolved == 0 && state.unresolved.is_empty() {
                continue;
            }
            let found = state.searched.as_ref().and_then(|(found, _)| found.as_ref().ok());
            objects.push(ObjectSummary {
                identity: self.objects.get(ObjectNumber(number)).clone(),
                resolved: state.resolved,
                unresolved: state.unresolved.clone(),
                problems: found.map(Object::problems).unwrap_or_default(),
            });
        }
        objects.sort_by_key(|object| std::cmp::Reverse(object.unresolved_frames()));
        Summary { objects, problems: self.locator.problems() }
    }
}

/// Resolves frames of an object. Counts the others by reason.
fn resolve_in(
    object: &mut Object,
    frames: &[Unnamed],
    names: &RwLock<Names>,
    cache: &mut IndexCache,
    resolved: &mut Vec<Resolved>,
    unresolved: &mut Vec<(String, u64)>,
) -> Result<(), Unresolved> {
    let places: Vec<_> =
        frames.iter().map(|frame| object.vaddr(frame.place.address, frame.place.mapped)).collect();
    let mut vaddrs: Vec<ElfVaddr> = places.iter().filter_map(|vaddr| vaddr.as_ref().ok().copied()).collect();
    vaddrs.sort_unstable();
    vaddrs.dedup();
    object.look_up(&vaddrs, names, cache)?;
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for (frame, place) in frames.iter().zip(places) {
        let why = match place {
            Ok(vaddr) => match object.answer(vaddr) {
                Some(chain) => {
                    let location = frame.location;
                    resolved.push(Resolved { location, chain, address: vaddr.0 });
                    continue;
                }
                None => Unresolved::NoFunction { quality: object.quality() },
            },
            Err(why) => why,
        };
        *reasons.entry(why.to_string()).or_default() += 1;
    }
    unresolved.extend(reasons);
    Ok(())
}

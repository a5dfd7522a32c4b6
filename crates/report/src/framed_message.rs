//! A message with the frames of its locations, which any thread resolves before a reader needs them.

use std::ops::Range;
use std::sync::Arc;

use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::frames::push_location;

use super::frame_entry::FrameEntry;
use super::frame_origin::FrameOrigins;
use super::indexed_tables::IndexedTables;
use super::known_frames::{KnownFrames, KnownId};

/// The number of frames that are interned at a time.
const FRAMES: usize = 512;

/// Resolves the frames of messages for one reader.
#[derive(Clone, Debug)]
pub struct FrameResolver {
    /// `None` if the reader itself resolves the frames.
    pub(super) known: Option<Arc<KnownFrames>>,
    /// Whether each line of a function is a frame of its own.
    pub(super) lines: bool,
}

/// A message whose frames are resolved.
#[derive(Debug)]
pub struct FramedMessage {
    pub(super) message: EncodedMessage,
    pub(super) locations: LocationFrames,
}

/// The frames of a message's locations.
#[derive(Debug, Default)]
pub(super) struct LocationFrames {
    /// By location: the end of its frames in `frames`.
    ends: Vec<u32>,
    /// The frames of all locations, the innermost call of each first.
    frames: Vec<KnownId>,
}

impl FrameResolver {
    /// Resolves the frames of a message's locations.
    pub fn resolve(&self, message: EncodedMessage) -> FramedMessage {
        let locations = self.known.as_ref().map(|known| self.location_frames(known, &message));
        FramedMessage { message, locations: locations.unwrap_or_default() }
    }

    fn location_frames(&self, known: &KnownFrames, message: &EncodedMessage) -> LocationFrames {
        let tables = message.tables();
        let (count, indexed) = (tables.encoded_locations().len(), IndexedTables::new(tables));
        let (mut ends, mut frames) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut found, mut origins) = (Vec::new(), FrameOrigins::default());
        origins.begin(tables);
        // SANITY: a message of 2^31 locations is refused.
        for location in 0..count as i32 {
            push_location(&indexed, location, &mut found);
            // SANITY: a message has fewer than 2^32 bytes, and each frame of its locations takes some.
            ends.push((frames.len() + found.len()) as u32);
            if found.len() >= FRAMES || location as usize + 1 == count {
                let entries = found
                    .iter()
                    .map(|frame| (FrameEntry::of(frame, self.lines, 0), origins.of(tables, frame)));
                known.intern_all(&entries.collect::<Vec<_>>(), &mut frames);
                found.clear();
            }
        }
        LocationFrames { ends, frames }
    }
}

impl FramedMessage {
    /// The message.
    pub fn message(&self) -> &EncodedMessage {
        &self.message
    }
}

impl LocationFrames {
    /// The number of locations that are resolved: none, or all.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The frames of a location, the innermost call first; `None` if they are not resolved.
    pub(super) fn of(&self, location: i32) -> Option<&[KnownId]> {
        let at = usize::try_from(location).ok()?;
        let end = *self.ends.get(at)?;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        let Range { start, end } = start as usize..end as usize;
        Some(&self.frames[start..end])
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use otlpprof_otlp::wire::*;
    use prost::Message as _;

    use super::*;
    use crate::collect::Collected;
    use crate::measure::Measure;
    use crate::sample_reader::{SampleForm, SampleReader};
    use crate::selection::{Selection, Window};

    /// A message of stacks of some functions, of which the other messages have some too, in other objects.
    /// Each location has an inlined call.
    fn message(number: i32) -> EncodedMessage {
        let mapping = |filename_strindex| Mapping { filename_strindex, ..Mapping::default() };
        let mut tables = ProfilesDictionary {
            string_table: ["", "samples", "count", "libc.so.6", "libjvm.so"].map(str::to_owned).to_vec(),
            mapping_table: [0, 3, 4].map(mapping).to_vec(),
            function_table: vec![Function::default()],
            location_table: vec![Location::default()],
            stack_table: vec![Stack::default()],
            ..ProfilesDictionary::default()
        };
        let mut samples = Vec::new();
        for at in 0..40 {
            tables.string_table.push(format!("f{}", (number * 13 + at * 7) % 60));
            let name_strindex = tables.string_table.len() as i32 - 1;
            tables.function_table.push(Function { name_strindex, ..Function::default() });
            let line = |function_index| Line { function_index, line: at.into(), column: 0 };
            let lines = vec![line(at + 1), line((at + 1) / 2)];
            let mapping_index = (at + number) % 4;
            tables.location_table.push(Location { lines, mapping_index, ..Location::default() });
            // One location does not exist.
            let location_indices = (0..8).map(|depth| (at * 5 + depth * number) % 42).collect();
            tables.stack_table.push(Stack { location_indices });
            samples.push(Sample { stack_index: at + 2, values: vec![3], ..Sample::default() });
        }
        let sample_type = Some(ValueType { type_strindex: 1, unit_strindex: 2 });
        let profile = Profile { sample_type, samples, time_unix_nano: 1, ..Profile::default() };
        let scope = ScopeProfiles { profiles: vec![profile], ..ScopeProfiles::default() };
        let resource = ResourceProfiles { scope_profiles: vec![scope], ..ResourceProfiles::default() };
        let data = ProfilesData { resource_profiles: vec![resource], dictionary: Some(tables) };
        EncodedMessage::of_protobuf(data.encode_to_vec()).unwrap()
    }

    /// Everything that a reader has: frames, nodes and values. The numbers of the messages are in the order
    /// of reading; `resolved_by` has threads, each of which resolves some of them.
    fn read(lines: bool, resolved_by: &[&[i32]]) -> String {
        let (selection, measure) =
            (Selection::default(), Measure { name: "samples".into(), unit: "count".into() });
        let mut reader = SampleReader::new(&selection, SampleForm { lines, ..SampleForm::default() });
        let mut collected = Collected::new(&measure, Window::default(), None);
        let resolver = &reader.resolver();
        let mut resolved: Vec<(i32, FramedMessage)> = thread::scope(|scope| {
            let resolve = |number: i32| (number, resolver.resolve(message(number)));
            let threads = resolved_by
                .iter()
                .map(|numbers| scope.spawn(move || numbers.iter().map(|&n| resolve(n)).collect::<Vec<_>>()));
            let threads: Vec<_> = threads.collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        resolved.sort_by_key(|&(number, _)| number);
        for number in 0..9 {
            match resolved.iter().find(|(of, _)| *of == number) {
                Some((_, message)) => reader.read_framed(message, &mut collected),
                None => reader.read(&message(number), &mut collected),
            }
        }
        let mut values: Vec<_> = collected.merged().into_iter().collect();
        values.sort_unstable();
        let stacks: Vec<Vec<_>> =
            (0..reader.tree.len() as u32).map(|node| reader.tree.stack(node).collect()).collect();
        format!("{:?} {:?} {stacks:?} {values:?}", reader.frames.all(), reader.frames.origins())
    }

    #[test]
    fn results_do_not_depend_on_the_threads_that_resolve_frames() {
        for lines in [false, true] {
            let alone = read(lines, &[]);
            assert_eq!(read(lines, &[&[8, 7, 6, 5, 4, 3, 2, 1, 0]]), alone);
            assert_eq!(read(lines, &[&[6, 3, 0], &[7, 4, 1], &[8, 5, 2]]), alone);
        }
    }

    /// The number of lines of each location: the frames before one of many are nearly [`FRAMES`].
    fn lines_of_locations() -> Vec<usize> {
        [vec![2; FRAMES / 2 - 1], vec![40], vec![1; FRAMES + 100], vec![3; 7]].concat()
    }

    #[test]
    fn frames_of_more_than_one_part_belong_to_their_locations() {
        let lines_of_locations = lines_of_locations();
        let mut tables = ProfilesDictionary {
            string_table: vec![String::new()],
            function_table: vec![Function::default()],
            location_table: vec![Location::default()],
            ..ProfilesDictionary::default()
        };
        let (mut names, mut expected) = (0.., vec![vec![]]);
        for &count in &lines_of_locations {
            let of_location: Vec<_> = names.by_ref().take(count).map(|number| format!("f{number}")).collect();
            let mut location = Location::default();
            for name in &of_location {
                let (name_strindex, function_index) =
                    (tables.string_table.len() as i32, tables.function_table.len() as i32);
                tables.string_table.push(name.clone());
                tables.function_table.push(Function { name_strindex, ..Function::default() });
                location.lines.push(Line { function_index, line: 1, column: 0 });
            }
            tables.location_table.push(location);
            expected.push(of_location);
        }
        let frames: usize = lines_of_locations.iter().sum();
        assert!(frames > 2 * FRAMES && !frames.is_multiple_of(FRAMES));
        let data = ProfilesData { dictionary: Some(tables), ..ProfilesData::default() };
        let message = EncodedMessage::of_protobuf(data.encode_to_vec()).unwrap();
        let known = KnownFrames::default();
        let resolver = FrameResolver { known: None, lines: false };
        let locations = resolver.location_frames(&known, &message);
        assert_eq!(locations.len(), expected.len());
        for (location, names) in (0..).zip(&expected).skip(1) {
            let ids = locations.of(location).unwrap();
            let found: Vec<_> =
                ids.iter().map(|&id| known.get(id, |frame, _| frame.name.to_owned())).collect();
            assert_eq!(found, *names, "{location}");
        }
        assert_eq!(locations.of(0).map(<[_]>::len), Some(1), "a frame without a name");
    }
}

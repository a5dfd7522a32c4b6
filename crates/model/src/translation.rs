//! Translates ids of one batch's tables to ids of the tables of another batch.

use std::hash::Hash;

use foldhash::fast::RandomState;

use super::attributes::{Attribute, AttributeValue};
use super::frame::{Frame, Function, Mapping};
use super::ids::{AttributeSetId, FrameId, FunctionId, LinkId, MappingId, StackId, StringId};
use super::profile::{Profile, SampleIdentity};
use super::tables::Tables;

type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

impl Tables {
    /// Returns the profiles with everything that they refer to moved from `from` into these tables.
    pub fn absorb(&mut self, from: &Tables, profiles: Vec<Profile>) -> Vec<Profile> {
        let mut translation = Translation::new(from, self);
        let absorbed = profiles.into_iter().map(|mut profile| {
            profile.attributes = translation.attribute_set(profile.attributes);
            profile.with_identities(|identity| translation.identity(identity))
        });
        absorbed.collect()
    }
}

/// Translates ids from one set of tables to another. Each value is looked up once.
pub struct Translation<'a> {
    from: &'a Tables,
    to: &'a mut Tables,
    strings: HashMap<StringId, StringId>,
    functions: HashMap<FunctionId, FunctionId>,
    mappings: HashMap<MappingId, MappingId>,
    frames: HashMap<FrameId, FrameId>,
    stacks: HashMap<StackId, StackId>,
    attributes: HashMap<AttributeSetId, AttributeSetId>,
}

impl<'a> Translation<'a> {
    /// A translation that has not met any value yet.
    pub fn new(from: &'a Tables, to: &'a mut Tables) -> Self {
        Self {
            from,
            to,
            strings: HashMap::default(),
            functions: HashMap::default(),
            mappings: HashMap::default(),
            frames: HashMap::default(),
            stacks: HashMap::default(),
            attributes: HashMap::default(),
        }
    }

    /// The target tables.
    pub fn to(&mut self) -> &mut Tables {
        self.to
    }

    /// Sets the translation of a frame, which is then not looked up by content.
    pub fn frame_is(&mut self, from: FrameId, to: FrameId) {
        self.frames.insert(from, to);
    }

    /// Translates a sample's identity.
    pub fn identity(&mut self, identity: SampleIdentity) -> SampleIdentity {
        SampleIdentity {
            stack: self.stack(identity.stack),
            attributes: self.attribute_set(identity.attributes),
            link: self.link(identity.link),
        }
    }

    fn stack(&mut self, id: StackId) -> StackId {
        if let Some(&known) = self.stacks.get(&id) {
            return known;
        }
        let frames: Vec<FrameId> = self.from.stacks.get(id).iter().map(|&frame| self.frame(frame)).collect();
        let stack = self.to.stacks.intern(&frames);
        known(&mut self.stacks, id, stack)
    }

    fn frame(&mut self, id: FrameId) -> FrameId {
        if let Some(&known) = self.frames.get(&id) {
            return known;
        }
        let frame = match *self.from.frames.get(id) {
            Frame::Java { function, line, execution } => {
                Frame::Java { function: self.function(function), line, execution }
            }
            Frame::RemoteNative { mapping, address } => {
                Frame::RemoteNative { mapping: self.mapping(mapping), address }
            }
            Frame::Native { mapping, address, function, line } => Frame::Native {
                mapping: mapping.map(|mapping| self.mapping(mapping)),
                address,
                function: self.function(function),
                line,
            },
            Frame::Kernel { mapping, address, function } => Frame::Kernel {
                mapping: mapping.map(|mapping| self.mapping(mapping)),
                address,
                function: self.function(function),
            },
            Frame::Stub { function } => Frame::Stub { function: self.function(function) },
            Frame::Marker { function, frame_type } => {
                Frame::Marker { function: self.function(function), frame_type }
            }
        };
        let frame = self.to.frames.intern(frame);
        known(&mut self.frames, id, frame)
    }

    fn function(&mut self, id: FunctionId) -> FunctionId {
        if let Some(&known) = self.functions.get(&id) {
            return known;
        }
        let Function { name, system_name, is_method, filename, start_line } = *self.from.functions.get(id);
        let function = Function {
            name: self.string(name),
            system_name: self.string(system_name),
            is_method,
            filename: self.string(filename),
            start_line,
        };
        let function = self.to.functions.intern(function);
        known(&mut self.functions, id, function)
    }

    fn mapping(&mut self, id: MappingId) -> MappingId {
        if let Some(&known) = self.mappings.get(&id) {
            return known;
        }
        let mapping = *self.from.mappings.get(id);
        let mapping = Mapping {
            filename: self.string(mapping.filename),
            htlhash: mapping.htlhash.map(|hash| self.string(hash)),
            ..mapping
        };
        let mapping = self.to.mappings.intern(mapping);
        known(&mut self.mappings, id, mapping)
    }

    fn attribute_set(&mut self, id: AttributeSetId) -> AttributeSetId {
        if let Some(&known) = self.attributes.get(&id) {
            return known;
        }
        let from = self.from;
        let attributes: Vec<_> = from
            .attributes_of(id)
            .iter()
            .map(|&attribute| {
                let Attribute { key, value, unit } = *from.attributes.get(attribute);
                let value = match value {
                    AttributeValue::Str(text) => AttributeValue::Str(self.string(text)),
                    other => other,
                };
                let attribute = Attribute { key: self.string(key), value, unit: self.string(unit) };
                self.to.attributes.intern(attribute)
            })
            .collect();
        let set = self.to.attribute_set(&attributes);
        known(&mut self.attributes, id, set)
    }

    fn link(&mut self, id: LinkId) -> LinkId {
        self.to.links.intern(*self.from.links.get(id))
    }

    fn string(&mut self, id: StringId) -> StringId {
        if let Some(&known) = self.strings.get(&id) {
            return known;
        }
        let string = self.to.strings.intern(self.from.strings.get(id));
        known(&mut self.strings, id, string)
    }
}

/// Stores the translation of `id`, and returns it.
fn known<I: Eq + Hash + Copy>(map: &mut HashMap<I, I>, id: I, translated: I) -> I {
    map.insert(id, translated);
    translated
}

#[cfg(test)]
mod tests {
    use otlpprof_core::address::ElfVaddr;

    use super::*;
    use crate::{FrameType, Link, LinkId, types};

    /// Interns a stack with a frame of each kind, attributes and a link. `before` is interned first, so that
    /// ids differ.
    fn sample(tables: &mut Tables, before: &[&str]) -> SampleIdentity {
        for text in before {
            tables.named_function(text);
        }
        let function = tables.named_function("f");
        let filename = tables.strings.intern("/lib/x.so");
        let htlhash = Some(tables.strings.intern("abc"));
        let mapping = tables.mappings.intern(Mapping { filename, htlhash, ..Mapping::default() });
        let address = ElfVaddr(0x10);
        let frames = [
            Frame::java(function, 3),
            Frame::RemoteNative { mapping, address },
            Frame::Native { mapping: Some(mapping), address: Some(address), function, line: 0 },
            Frame::Kernel { mapping: Some(mapping), address: Some(address), function },
            Frame::Stub { function },
            Frame::Marker { function, frame_type: FrameType::Jvm },
        ];
        let frames = frames.map(|frame| tables.frames.intern(frame));
        let attributes = [tables.string_attribute("key", "value"), tables.int_attribute("n", 7, "By")];
        SampleIdentity {
            stack: tables.stacks.intern(&frames),
            attributes: tables.attribute_set(&attributes),
            link: tables.links.intern(Link { trace_id: [1; 16], span_id: [2; 8] }),
        }
    }

    #[test]
    fn a_translated_sample_equals_one_made_in_the_other_tables() {
        let (mut from, mut to, mut expected) = (Tables::new(), Tables::new(), Tables::new());
        let identity = sample(&mut from, &["a", "b", "c"]);
        let translated = Translation::new(&from, &mut to).identity(identity);
        // The target contains only what is needed, as if the sample had been made there.
        assert_eq!(translated, sample(&mut expected, &[]));
        assert_ne!(from.strings.len(), to.strings.len());
        let back = Translation::new(&to, &mut from).identity(translated);
        assert_eq!(back, identity);
    }

    #[test]
    fn samples_mean_the_same_in_the_other_tables() {
        let mut into = Tables::new();
        // From here on ids differ between the two tables.
        into.named_function("other");
        into.string_attribute("other", "x");
        let mut from = Tables::new();
        let function = from.named_function("App.main");
        let frames = [7, 8].map(|line| from.frames.intern(Frame::java(function, line)));
        let stack = from.stacks.intern(&frames);
        let attribute = from.string_attribute("thread.name", "main");
        let number = from.int_attribute("thread.id", 1, "");
        let attributes = from.attribute_set(&[attribute, number]);
        let link = from.links.intern(Link { trace_id: [1; 16], span_id: [2; 8] });
        let mut profile = Profile::new(&types::EXCEPTIONS, 1);
        profile.add(SampleIdentity { stack, attributes, link }, 5, Some(9));
        profile.add(SampleIdentity { stack, attributes, link: LinkId::NONE }, 6, Some(10));
        profile.attributes = from.attribute_set(&[number]);
        let absorbed = into.absorb(&from, vec![profile]);
        let [first, second] = absorbed[0].samples() else { panic!("two samples") };
        assert_eq!((first.value, second.value), (5, 6));
        assert_eq!(absorbed[0].observations(1).map(|seen| seen.unix_nano).collect::<Vec<_>>(), [10]);
        assert_eq!(*into.links.get(first.identity.link), Link { trace_id: [1; 16], span_id: [2; 8] });
        assert_eq!(second.identity.link, LinkId::NONE);
        let lines: Vec<_> =
            into.stacks.get(first.identity.stack).iter().map(|id| *into.frames.get(*id)).collect();
        let function = into.named_function("App.main");
        assert_eq!(lines, [7, 8].map(|line| Frame::java(function, line)));
        let expected = [into.string_attribute("thread.name", "main"), into.int_attribute("thread.id", 1, "")];
        assert_eq!(first.identity.attributes, into.attribute_set(&expected));
        assert_eq!(absorbed[0].attributes, into.attribute_set(&expected[1..]));
    }
}

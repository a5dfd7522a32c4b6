//! Profiles of one batch into the tables of another.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::attributes::{Attribute, AttributeValue};
use super::frame::{Frame, Function, Mapping};
use super::profile::{Profile, SampleIdentity};
use super::tables::{AttributeId, AttributeSetId, FrameId, FunctionId, MappingId, StackId, StringId, Tables};

impl Tables {
    /// The same profiles with what they refer to in these tables, in place of `from`.
    pub fn absorb(&mut self, from: &Tables, profiles: Vec<Profile>) -> Vec<Profile> {
        let mut moved = Moved {
            from,
            into: self,
            frames: HashMap::default(),
            stacks: HashMap::default(),
            attribute_sets: HashMap::default(),
        };
        let absorbed = profiles.into_iter().map(|mut profile| {
            profile.attributes = moved.attribute_set(profile.attributes);
            profile.with_identities(|identity| SampleIdentity {
                stack: moved.stack(identity.stack),
                attributes: moved.attribute_set(identity.attributes),
                link: moved.into.links.intern(*moved.from.links.get(identity.link)),
            })
        });
        absorbed.collect()
    }
}

/// What has been moved. What few frames share is looked up anew for each.
struct Moved<'a> {
    from: &'a Tables,
    into: &'a mut Tables,
    frames: HashMap<FrameId, FrameId, RandomState>,
    stacks: HashMap<StackId, StackId, RandomState>,
    attribute_sets: HashMap<AttributeSetId, AttributeSetId, RandomState>,
}

impl Moved<'_> {
    fn string(&mut self, id: StringId) -> StringId {
        self.into.strings.intern(self.from.strings.get(id))
    }

    fn function(&mut self, id: FunctionId) -> FunctionId {
        let Function { name, system_name, filename, start_line } = *self.from.functions.get(id);
        let (name, system_name) = (self.string(name), self.string(system_name));
        let filename = self.string(filename);
        self.into.functions.intern(Function { name, system_name, filename, start_line })
    }

    fn mapping(&mut self, id: MappingId) -> MappingId {
        let mapping = *self.from.mappings.get(id);
        let filename = self.string(mapping.filename);
        let htlhash = mapping.htlhash.map(|hash| self.string(hash));
        self.into.mappings.intern(Mapping { filename, htlhash, ..mapping })
    }

    fn frame(&mut self, id: FrameId) -> FrameId {
        if let Some(&known) = self.frames.get(&id) {
            return known;
        }
        let frame = match *self.from.frames.get(id) {
            Frame::Java { function, line } => Frame::Java { function: self.function(function), line },
            Frame::RemoteNative { mapping, address } => {
                Frame::RemoteNative { mapping: self.mapping(mapping), address }
            }
            Frame::Native { mapping, address, function, line } => {
                let mapping = mapping.map(|mapping| self.mapping(mapping));
                Frame::Native { mapping, address, function: self.function(function), line }
            }
            Frame::Kernel { mapping, address, function } => Frame::Kernel {
                mapping: mapping.map(|mapping| self.mapping(mapping)),
                address,
                function: self.function(function),
            },
            Frame::Marker { function, frame_type } => {
                Frame::Marker { function: self.function(function), frame_type }
            }
        };
        let moved = self.into.frames.intern(frame);
        self.frames.insert(id, moved);
        moved
    }

    fn stack(&mut self, id: StackId) -> StackId {
        if let Some(&known) = self.stacks.get(&id) {
            return known;
        }
        let frames: Vec<FrameId> = self.from.stacks.get(id).iter().map(|&frame| self.frame(frame)).collect();
        let moved = self.into.stacks.intern(&frames);
        self.stacks.insert(id, moved);
        moved
    }

    fn attribute(&mut self, id: AttributeId) -> AttributeId {
        let Attribute { key, value, unit } = *self.from.attributes.get(id);
        let value = match value {
            AttributeValue::Str(text) => AttributeValue::Str(self.string(text)),
            AttributeValue::Int(_) | AttributeValue::Bool(_) | AttributeValue::Double(_) => value,
        };
        let (key, unit) = (self.string(key), self.string(unit));
        self.into.attributes.intern(Attribute { key, value, unit })
    }

    fn attribute_set(&mut self, id: AttributeSetId) -> AttributeSetId {
        if let Some(&known) = self.attribute_sets.get(&id) {
            return known;
        }
        let attributes = self.from.attributes_of(id).to_vec();
        let attributes: Vec<AttributeId> = attributes.into_iter().map(|id| self.attribute(id)).collect();
        let moved = self.into.attribute_set(&attributes);
        self.attribute_sets.insert(id, moved);
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Link, LinkId, types};

    #[test]
    fn samples_mean_the_same_in_the_other_tables() {
        let mut into = Tables::new();
        // Numbers differ on both sides from here on.
        into.named_function("other");
        into.string_attribute("other", "x");
        let mut from = Tables::new();
        let function = from.named_function("App.main");
        let frames = [7, 8].map(|line| from.frames.intern(Frame::Java { function, line }));
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
        assert_eq!((first.value, second.value, absorbed[0].observations()[1].sample), (5, 6, 1));
        assert_eq!(*into.links.get(first.identity.link), Link { trace_id: [1; 16], span_id: [2; 8] });
        assert_eq!(second.identity.link, LinkId::NONE);
        let lines: Vec<_> =
            into.stacks.get(first.identity.stack).iter().map(|id| *into.frames.get(*id)).collect();
        let function = into.named_function("App.main");
        assert_eq!(lines, [7, 8].map(|line| Frame::Java { function, line }));
        let expected = [into.string_attribute("thread.name", "main"), into.int_attribute("thread.id", 1, "")];
        assert_eq!(first.identity.attributes, into.attribute_set(&expected));
        assert_eq!(absorbed[0].attributes, into.attribute_set(&expected[1..]));
    }
}

//! Tests of the aggregator: records in, samples out.

use otlpprof_core::java_thread_state::JavaThreadState;
use otlpprof_core::record::{FrameKind, NO_OBJECT, Owner, OwnerThread};
use otlpprof_model::{Profile, types};

use super::*;
use crate::ProfileKind;

struct ByNumber {
    resolved: usize,
}

impl Resolver for ByNumber {
    fn frame(&mut self, tables: &mut Tables, frame: RawFrame) -> Option<FrameId> {
        if frame.kind == FrameKind::Native {
            return None;
        }
        self.resolved += 1;
        let function = tables.named_function(&format!("f{}", frame.value));
        Some(tables.frames.intern(Frame::java(function, frame.aux)))
    }

    fn labels(&mut self, tables: &mut Tables, slots: &[ValueRef; SLOTS]) -> AttributeSetId {
        self.resolved += 1;
        let labels: Vec<_> = (0..)
            .zip(slots)
            .filter(|(_, value)| **value != ValueRef::NONE)
            .map(|(slot, value)| tables.string_attribute(&format!("slot{slot}"), &value.0.to_string()))
            .collect();
        tables.attribute_set(&labels)
    }

    fn subject(&mut self, tables: &mut Tables, engine: Engine, subject: Subject) -> AttributeSetId {
        let attribute = tables.int_attribute(&format!("{engine:?}"), i64::from(subject.0), "");
        tables.attribute_set(&[attribute])
    }
}

/// Returns the CPU engine's profile, with period 1.
fn cpu_profile(
    interval: Interval,
    unix_offset_ns: i64,
    attributes_of: impl FnMut(&mut Tables, ThreadKey) -> AttributeSetId,
) -> (Tables, Profile) {
    let owner = |tables: &mut Tables, owner: Owner| {
        let attribute = tables.string_attribute("owner", &format!("{:?}", owner.thread()));
        tables.attribute_set(&[attribute])
    };
    let kinds = |_| [Some(ProfileKind { profile_type: &types::CPU, period: 1, scale: 1.0 }), None];
    let (tables, mut profiles) = interval.into_profiles(kinds, unix_offset_ns, attributes_of, owner);
    (tables, profiles.remove(0))
}

fn header(os_tid: i32, weight: u64, monotonic_ns: u64) -> SampleHeader {
    SampleHeader {
        monotonic_ns,
        weight,
        values: [weight as f64, 0.0],
        context: ContextRecord::NONE,
        owner: Owner::NONE,
        os_tid,
        java_incarnation: 0,
        frame_count: 0,
        subject: Subject::NONE,
        number: 0,
        engine: Engine::Cpu,
        thread_state: JavaThreadState::Unknown,
        is_virtual: 0,
        is_waiting: 0,
        is_runnable: 0,
        reserved: 0,
    }
}

fn frames(values: &[u64]) -> impl Iterator<Item = RawFrame> {
    values.iter().map(|&value| RawFrame { kind: FrameKind::Interpreted, aux: 1, value })
}

fn no_attributes(_: &mut Tables, _: ThreadKey) -> AttributeSetId {
    AttributeSetId::EMPTY
}

#[test]
fn samples_of_one_stack_and_thread_are_summed_by_weight() {
    let mut aggregator = Aggregator::new(false);
    let mut resolver = ByNumber { resolved: 0 };
    for (tid, weight, stack) in [(1, 2, [1, 2]), (1, 3, [1, 2]), (2, 1, [1, 2]), (1, 1, [2, 1])] {
        aggregator.add(&header(tid, weight, 0), frames(&stack), &mut resolver);
    }
    assert_eq!(resolver.resolved, 2, "each frame is resolved once");
    let interval = aggregator.take(&[]);
    assert!(aggregator.is_empty());
    let by_tid = |tables: &mut Tables, thread: ThreadKey| {
        let attribute = tables.int_attribute("tid", i64::from(thread.os_tid), "");
        tables.attribute_set(&[attribute])
    };
    let (_, profile) = cpu_profile(interval, 0, by_tid);
    let mut values: Vec<i64> = profile.samples().iter().map(|sample| sample.value).collect();
    values.sort_unstable();
    assert_eq!(values, [1, 1, 5]);
}

#[test]
fn threads_with_equal_attributes_share_a_sample() {
    let mut aggregator = Aggregator::new(false);
    let mut resolver = ByNumber { resolved: 0 };
    aggregator.add(&header(1, 2, 0), frames(&[1]), &mut resolver);
    aggregator.add(&header(2, 3, 0), frames(&[1]), &mut resolver);
    let (_, profile) = cpu_profile(aggregator.take(&[]), 0, no_attributes);
    assert_eq!(profile.samples().len(), 1);
    assert_eq!(profile.samples()[0].value, 5);
}

#[test]
fn samples_with_different_owners_are_kept_apart() {
    let mut aggregator = Aggregator::new(false);
    let mut resolver = ByNumber { resolved: 0 };
    let owners = [Owner::NONE, Owner::new(OwnerThread::ThreadId(7)), Owner::new(OwnerThread::Carrier(7))];
    for (weight, owner) in (1..).zip(owners).chain([(10, owners[1])]) {
        let header = SampleHeader { owner, ..header(1, weight, 0) };
        aggregator.add(&header, frames(&[1]), &mut resolver);
    }
    let (tables, profile) = cpu_profile(aggregator.take(&[]), 0, no_attributes);
    let found = profile.samples().iter().map(|sample| {
        let attributes = tables.attributes_of(sample.identity.attributes).iter();
        let text = attributes.map(|id| match tables.attributes.get(*id).value {
            otlpprof_model::AttributeValue::Str(text) => tables.strings.get(text).to_owned(),
            _ => panic!("a string"),
        });
        (sample.value, text.collect::<Vec<_>>().join(" "))
    });
    let expected = [(1, ""), (12, "Some(ThreadId(7))"), (3, "Some(Carrier(7))")];
    assert_eq!(found.collect::<Vec<_>>(), expected.map(|(value, text)| (value, text.to_owned())));
}

fn native(object: u32, value: u64) -> RawFrame {
    RawFrame { kind: FrameKind::Native, aux: object, value }
}

/// Names native frames by their objects, and those in no object by the count of loaded objects.
fn named(tables: &mut Tables, frame: UnnamedFrame) -> Frame {
    let object = if frame.frame.aux == NO_OBJECT { frame.since.loaded } else { frame.frame.aux.into() };
    let function = tables.named_function(&format!("plugin{object}"));
    Frame::Marker { function, frame_type: FrameType::Native }
}

/// Regression: within an interval an address in no known object kept the name of the object that was there
/// first.
#[test]
fn an_address_in_no_object_is_another_one_when_objects_have_come_or_gone() {
    for (object, stacks) in [(NO_OBJECT, 3), (5, 1)] {
        let mut aggregator = Aggregator::new(false);
        let mut resolver = ByNumber { resolved: 0 };
        for since in [(1, 0), (2, 0), (2, 0), (3, 1)] {
            aggregator.sampled_since(ObjectCounts { loaded: since.0, unloaded: since.1 });
            aggregator.add(&header(1, 1, 0), [native(object, 0x7000)].into_iter(), &mut resolver);
        }
        let mut interval = aggregator.take(&[]);
        interval.name_frames(named);
        let (_, profile) = cpu_profile(interval, 0, no_attributes);
        assert_eq!(profile.samples().len(), stacks, "{object}");
    }
}

/// Regression: symbol tables were read, and names demangled, at the safepoint where a collection begins.
#[test]
fn frames_that_take_long_to_name_are_named_when_the_interval_has_ended() {
    let mut aggregator = Aggregator::new(false);
    let mut resolver = ByNumber { resolved: 0 };
    for object in [1, 2, 1] {
        aggregator.add(&header(1, 1, 0), [native(object, 0x10)].into_iter(), &mut resolver);
    }
    assert_eq!(resolver.resolved, 0);
    let frames = |aggregator: &mut Aggregator| {
        aggregator.new_unnamed_frames().iter().map(|unnamed| unnamed.frame.aux).collect::<Vec<_>>()
    };
    assert_eq!(frames(&mut aggregator), [1, 2]);
    aggregator.add(&header(1, 1, 0), [native(1, 0x10), native(3, 0x10)].into_iter(), &mut resolver);
    assert_eq!(frames(&mut aggregator), [3], "each is reported once");
    let mut interval = aggregator.take(&[]);
    interval.name_frames(named);
    let (tables, profile) = cpu_profile(interval, 0, no_attributes);
    let texts = |identity: otlpprof_model::SampleIdentity| {
        let frames = tables.stacks.get(identity.stack).iter();
        let text = frames.map(|id| match *tables.frames.get(*id) {
            Frame::Marker { function, .. } => tables.strings.get(tables.functions.get(function).name),
            _ => panic!("a marker"),
        });
        text.collect::<Vec<_>>().join(";")
    };
    let found: Vec<_> =
        profile.samples().iter().map(|sample| (texts(sample.identity), sample.value)).collect();
    let expected = [("plugin1", 2), ("plugin2", 1), ("plugin1;plugin3", 1)];
    assert_eq!(found, expected.map(|(text, value)| (text.to_owned(), value)));
}

/// Two addresses in one object that turn out to be the same frame.
#[test]
fn stacks_of_frames_that_turn_out_to_be_one_are_one() {
    let mut aggregator = Aggregator::new(false);
    let mut resolver = ByNumber { resolved: 0 };
    for value in [0x10, 0x20, 0x10] {
        let java = RawFrame { kind: FrameKind::Interpreted, aux: 1, value: 7 };
        aggregator.add(&header(1, 1, 0), [native(1, value), java].into_iter(), &mut resolver);
        aggregator.add(&header(1, 1, 0), [java].into_iter(), &mut resolver);
    }
    let mut interval = aggregator.take(&[]);
    interval.name_frames(named);
    let (tables, profile) = cpu_profile(interval, 0, no_attributes);
    let found: Vec<_> = profile
        .samples()
        .iter()
        .map(|sample| (tables.stacks.get(sample.identity.stack).len(), sample.value))
        .collect();
    assert_eq!(found, [(2, 3), (1, 3)]);
}

#[test]
fn a_forgotten_java_frame_is_resolved_again() {
    let mut aggregator = Aggregator::new(false);
    let mut resolver = ByNumber { resolved: 0 };
    aggregator.add(&header(1, 1, 0), frames(&[1]), &mut resolver);
    aggregator.forget_java_frames();
    aggregator.add(&header(1, 1, 0), frames(&[1]), &mut resolver);
    assert_eq!(resolver.resolved, 2);
}

#[test]
fn times_are_kept_when_asked_for_and_turned_into_unix_time() {
    let mut aggregator = Aggregator::new(true);
    let mut resolver = ByNumber { resolved: 0 };
    aggregator.add(&header(1, 1, 500), frames(&[1]), &mut resolver);
    aggregator.add(&header(1, 1, 700), frames(&[1]), &mut resolver);
    let (_, profile) = cpu_profile(aggregator.take(&[]), 1_000_000, no_attributes);
    let times: Vec<u64> = profile.observations(0).map(|seen| seen.unix_nano).collect();
    assert_eq!(times, [1_000_500, 1_000_700]);
    assert!(profile.is_timed());
}

fn in_context(trace: u8, span: u8, slot3: u32) -> SampleHeader {
    let mut slots = [ValueRef::NONE; SLOTS];
    slots[3] = ValueRef(slot3);
    let context =
        ContextRecord { trace_id: [trace; 16], span_id: [span; 8], valid: 1, slots, ..ContextRecord::NONE };
    SampleHeader { context, ..header(1, 1, 0) }
}

#[test]
fn contexts_are_kept_apart_and_become_labels_and_links() {
    let mut aggregator = Aggregator::new(false);
    let mut resolver = ByNumber { resolved: 0 };
    let contexts = [(1, 2, 0), (1, 2, 9), (1, 3, 9), (1, 2, 9), (0, 0, 0), (1, 0, 0), (0, 2, 0)];
    for (trace, span, slot) in contexts {
        aggregator.add(&in_context(trace, span, slot), frames(&[5]), &mut resolver);
    }
    assert_eq!(resolver.resolved, 3, "a frame and two sets of slots");
    let (tables, profile) = cpu_profile(aggregator.take(&[]), 0, |tables, _| {
        let attributes = ["slot3", "thread.name"].map(|key| tables.string_attribute(key, "thread's"));
        tables.attribute_set(&attributes[1..])
    });
    let found: Vec<_> = profile
        .samples()
        .iter()
        .map(|sample| {
            let link = tables.links.get(sample.identity.link);
            let attributes = tables.attributes_of(sample.identity.attributes).len();
            (link.trace_id[0], link.span_id[0], attributes, sample.value)
        })
        .collect();
    assert_eq!(found, [(1, 2, 1, 1), (1, 2, 2, 2), (1, 3, 2, 1), (0, 0, 1, 3)]);
    let ids: Vec<_> = profile.samples().iter().map(|sample| sample.identity.link).collect();
    assert_eq!(ids[3], LinkId::NONE);
}

#[test]
fn a_label_does_not_hide_the_threads_own_attributes() {
    let mut aggregator = Aggregator::new(false);
    let mut resolver = ByNumber { resolved: 0 };
    aggregator.add(&in_context(0, 0, 9), frames(&[5]), &mut resolver);
    let (tables, profile) = cpu_profile(aggregator.take(&[]), 0, |tables, _| {
        let attribute = tables.string_attribute("slot3", "thread's");
        tables.attribute_set(&[attribute])
    });
    let attributes = tables.attributes_of(profile.samples()[0].identity.attributes);
    let [attribute] = attributes else { panic!("{attributes:?}") };
    let otlpprof_model::AttributeValue::Str(value) = tables.attributes.get(*attribute).value else {
        panic!("a string")
    };
    assert_eq!(tables.strings.get(value), "thread's");
}

//! Conversion of frames: each kind of code is kept, and each stack is resolved in its own chunk.

use std::collections::BTreeMap;

use otlpprof_convert::{ConvertOptions, JfrToOtlp};
use otlpprof_otlp::wire::ProfilesData;
use otlpprof_otlp::{EncodeOptions, encode};
use otlpprof_testkit::recordings::converted::{attribute, profiles, string};
use otlpprof_testkit::recordings::synthetic::{
    CLASS, FRAME_TYPE, FieldOf, LONG, METHOD, STACK_TRACE, SYMBOL, TypeOf, VALUE_TYPES, Writer, crafted,
};
use prost::Message as _;

const EVENT: i64 = 200;
const FIELDS: &[FieldOf] = &[("startTime", LONG, false, false), ("stackTrace", STACK_TRACE, true, false)];
const THROWN: TypeOf = (EVENT, "jdk.JavaExceptionThrow", "jdk.jfr.Event", FIELDS);

/// The names of frame kinds in recordings of HotSpot and async-profiler.
const KINDS: [&str; 7] = ["Interpreted", "JIT compiled", "Inlined", "Native", "C++", "Kernel", "C1 compiled"];

/// A frame's class, method, descriptor and kind.
type FrameOf = (&'static str, &'static str, &'static str, &'static str);

/// A chunk with these stacks, each with its id and its frames, leaf first. For each stack id in `events` it
/// has one event.
fn chunk(stacks: &[(i64, &[FrameOf])], events: &[i64]) -> Vec<u8> {
    let mut symbols: Vec<&str> = Vec::new();
    let mut classes: Vec<i64> = Vec::new();
    let mut methods: Vec<[i64; 3]> = Vec::new();
    // A key is a position plus one.
    fn key_of<T: PartialEq>(all: &mut Vec<T>, one: T) -> i64 {
        let known = all.iter().position(|other| *other == one);
        known.map_or_else(
            || {
                all.push(one);
                all.len() as i64
            },
            |known| known as i64 + 1,
        )
    }
    let mut made: Vec<(i64, Vec<[i64; 2]>)> = Vec::new();
    for (id, frames) in stacks {
        let frame = |&(class, name, descriptor, kind): &FrameOf| {
            let [class, name, descriptor] = [class, name, descriptor].map(|text| key_of(&mut symbols, text));
            let method = [key_of(&mut classes, class), name, descriptor];
            let kind = KINDS.iter().position(|known| *known == kind).unwrap() as i64 + 1;
            [key_of(&mut methods, method), kind]
        };
        made.push((*id, frames.iter().map(frame).collect()));
    }
    let write = |out: &mut Writer| {
        for (number, &stack) in (1..).zip(events) {
            out.event(EVENT, |out| [number * 10, stack].into_iter().for_each(|field| out.long(field)));
        }
    };
    let constants = |out: &mut Writer| {
        let keys = |count: usize| 1..count as i64 + 1;
        out.pool(SYMBOL, keys(symbols.len()), |out, key| out.text(symbols[key as usize - 1]));
        out.pool(CLASS, keys(classes.len()), |out, key| out.long(classes[key as usize - 1]));
        out.pool(METHOD, keys(methods.len()), |out, key| {
            methods[key as usize - 1].into_iter().for_each(|field| out.long(field));
        });
        out.pool(FRAME_TYPE, keys(KINDS.len()), |out, key| out.text(KINDS[key as usize - 1]));
        out.long(STACK_TRACE);
        out.int(made.len() as i64);
        for (id, frames) in &made {
            out.long(*id);
            out.bytes.push(0);
            out.int(frames.len() as i64);
            for [method, kind] in frames {
                out.long(*method);
                [7, 3].into_iter().for_each(|number| out.int(number));
                out.long(*kind);
            }
        }
    };
    crafted(&[VALUE_TYPES, &[THROWN]].concat(), write, 5, constants)
}

/// The stacks of the result with their values. A stack has one line for each frame: type, execution mode and
/// function.
fn stacks(converter: &mut JfrToOtlp) -> BTreeMap<String, i64> {
    let message = encode(&converter.convert(), &EncodeOptions::default());
    let data = ProfilesData::decode(&*message).unwrap();
    let dictionary = data.dictionary.as_ref().unwrap();
    let frame = |&index: &i32| {
        let location = &dictionary.location_table[index as usize];
        let of = |key| attribute(&data, &location.attribute_indices, key).unwrap_or_default();
        let [line] = &location.lines[..] else { panic!("{location:?}") };
        let function = &dictionary.function_table[line.function_index as usize];
        let name = string(&data, function.name_strindex);
        let kind = [of("otlpprof.frame.execution"), of("otlpprof.frame.kind")].concat();
        format!("{} {kind} {name}", of("profile.frame.type"))
    };
    let mut stacks = BTreeMap::new();
    for sample in profiles(&data).flat_map(|profile| &profile.samples) {
        let locations = dictionary.stack_table[sample.stack_index as usize].location_indices.iter();
        let stack = locations.map(frame).collect::<Vec<_>>().join("\n");
        let is_new = stacks.insert(stack, sample.values.iter().sum()).is_none();
        assert!(is_new, "a stack has two samples: {:?}", profiles(&data).collect::<Vec<_>>());
    }
    stacks
}

fn converted(recording: &[u8]) -> BTreeMap<String, i64> {
    let mut converter = JfrToOtlp::new(ConvertOptions::default());
    converter.add(recording).unwrap();
    stacks(&mut converter)
}

#[test]
fn each_kind_of_frame_keeps_its_kind() {
    // Machine code has the descriptor `()L;` or none. A native frame with another descriptor is a Java
    // method.
    let frames: &[FrameOf] = &[
        ("", "sys_futex_[k]", "()L;", "Kernel"),
        ("", "__futex_wait", "()L;", "Native"),
        ("", "no_descriptor", "", "Native"),
        ("", "JVM_Sleep", "()L;", "C++"),
        ("", "itable stub", "()L;", "Native"),
        ("", "StubRoutines (1)", "", "Native"),
        ("java/lang/Thread", "sleep", "(J)V", "Native"),
        ("app/Shop", "small", "()V", "Inlined"),
        ("app/Shop", "hot", "()V", "JIT compiled"),
        ("app/Shop", "warm", "()V", "C1 compiled"),
        ("app/Shop", "cold", "()V", "Interpreted"),
    ];
    let expected = [
        "kernel  sys_futex_[k]",
        "native  __futex_wait",
        "native  no_descriptor",
        "native  JVM_Sleep",
        "native stub itable stub",
        "native stub StubRoutines (1)",
        "jvm native java.lang.Thread.sleep",
        "jvm inlined app.Shop.small",
        "jvm compiled app.Shop.hot",
        "jvm c1 app.Shop.warm",
        "jvm interpreted app.Shop.cold",
    ];
    assert_eq!(converted(&chunk(&[(1, frames)], &[1, 1])), [(expected.join("\n"), 2)].into());
}

/// One method may be executed in several modes, and each mode is a frame of its own.
#[test]
fn a_method_may_be_executed_in_several_ways() {
    let as_kind = |kind| ("app/Shop", "buy", "()V", kind);
    let frames = [as_kind("Inlined"), as_kind("JIT compiled"), as_kind("Interpreted"), as_kind("Inlined")];
    let expected =
        ["inlined", "compiled", "interpreted", "inlined"].map(|how| format!("jvm {how} app.Shop.buy"));
    assert_eq!(converted(&chunk(&[(1, &frames)], &[1])), [(expected.join("\n"), 1)].into());
}

/// Ids of stacks, methods and classes are valid in one chunk only.
#[test]
fn stacks_of_one_id_in_two_chunks_do_not_mix_and_equal_ones_become_one() {
    const A: &[FrameOf] = &[("app/A", "leaf", "()V", "Interpreted"), ("app/A", "root", "()V", "Interpreted")];
    const B: &[FrameOf] = &[("app/B", "leaf", "()V", "Interpreted"), ("app/B", "root", "()V", "Interpreted")];
    let chunks = [
        chunk(&[(1, A), (2, B)], &[1, 1, 2]),
        // Both stacks, their methods and their classes have exchanged ids.
        chunk(&[(1, B), (2, A)], &[1, 1, 1, 1, 2]),
        // Stack A has another id, and follows a stack that no event refers to.
        chunk(&[(9, B), (700, A)], &[700; 8]),
    ];
    let of = |class: &str| format!("jvm interpreted app.{class}.leaf\njvm interpreted app.{class}.root");
    let expected = BTreeMap::from([(of("A"), 2 + 1 + 8), (of("B"), 1 + 4)]);
    let whole = chunks.concat();
    assert_eq!(converted(&whole), expected, "in one file");
    let mut converter = JfrToOtlp::new(ConvertOptions::default());
    converter.add_reader(&whole[..]).unwrap();
    assert_eq!(stacks(&mut converter), expected, "by a reader");
    chunks.iter().for_each(|chunk| converter.add(chunk).unwrap());
    assert_eq!(stacks(&mut converter), expected, "in three files");
    whole.chunks(1).for_each(|byte| converter.push(byte).unwrap());
    converter.finish().unwrap();
    assert_eq!(stacks(&mut converter), expected, "byte by byte");
}

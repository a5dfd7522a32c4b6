//! ZGC: references that the collector has yet to update.

use otlpprof_core::continuation::{ForwardingLayout, References};

use super::continuation::*;
use super::machine;
use crate::walk::FrozenReason;

const TABLES: [u64; 2] = [0x80_0000, 0x81_0000];
const FORWARDING: u64 = 0x82_0000;
/// The chunk's old place, and its page.
const FROM: u64 = 0x67_0040;
const PAGE: u64 = 0x67_0000;
/// The object's index in its page, and the first entry that is probed for it in a table of 16.
pub(super) const INDEX: u64 = 8;
const ENTRY: u64 = 6;
pub(super) const YOUNG: usize = 0;
const OLD: usize = 1;

/// The scene under ZGC, with an empty forwarding table. The highest of the four remappings is the good one.
pub(super) fn scene(references: References) -> Scene {
    let mut scene = Scene::new();
    scene.frozen.references = references;
    scene.frozen.forwarding = Some(ForwardingLayout {
        tables: TABLES,
        granule_shift: 16,
        offset_mask: 0xff_ffff,
        remapped_bit: 1 << 44,
        start: 0,
        alignment_shift: 16,
        ref_count: 40,
        length: 24,
        entries: 48,
    });
    let memory = &mut scene.world.memory;
    for word in 0..0x100 {
        memory.put_u64(TABLES[YOUNG] + word * 8, 0).put_u64(TABLES[OLD] + word * 8, 0);
    }
    for word in 0..22 {
        memory.put_u64(FORWARDING + word * 8, 0);
    }
    memory.put_u64(FORWARDING, PAGE).put_u64(FORWARDING + 16, 3).put_u64(FORWARDING + 24, 16);
    scene
}

fn coloured() -> Scene {
    let mut scene = scene(References::Coloured { bad_mask: BAD_MASK });
    scene.world.memory.put_u64(BAD_MASK, machine::bad_mask(3));
    scene
}

/// Makes the continuation's `tail` a coloured pointer with the remapped bit of this number.
pub(super) fn refer(scene: &mut Scene, remapping: u32, colours: u64) {
    scene.object(CONTINUATION, CONTINUATION_KLASS, machine::coloured(FROM, remapping) | colours);
}

/// Gives the page of `FROM` a forwarding with these entries, starting at the first entry that is probed.
pub(super) fn forward(scene: &mut Scene, generation: usize, entries: &[u64], ref_count: i32) {
    let memory = &mut scene.world.memory;
    memory.put_u64(TABLES[generation] + (PAGE >> 16) * 8, FORWARDING);
    memory.put_u64(FORWARDING + 40, u64::from(ref_count as u32));
    for (at, entry) in entries.iter().enumerate() {
        memory.put_u64(FORWARDING + 48 + ((ENTRY + at as u64) & 15) * 8, *entry);
    }
}

pub(super) const fn entry(index: u64, to: u64) -> u64 {
    index << 46 | to << 1 | 1
}

#[test]
fn a_stale_reference_is_followed_by_its_generations_forwarding_table() {
    // The cases differ in how the pointer's remapped bit differs from the good bit, 3.
    for (what, remapping, colours, generation) in [
        ("a young collection since", 2, 0, YOUNG),
        ("an old collection since", 1, 0, OLD),
        ("both, a young object", 0, 0x10, YOUNG),
        ("both, an old object", 0, 0x10, OLD),
        ("both, from old to old", 0, 0x30, OLD),
    ] {
        let mut scene = coloured();
        refer(&mut scene, remapping, colours);
        // The first entry belongs to another object.
        forward(&mut scene, generation, &[entry(INDEX + 1, 0x66_0000), entry(INDEX, CHUNK)], 0);
        let expected = scene.whole();
        assert_eq!(scene.walk(), expected, "{what}");
    }
}

#[test]
fn an_object_that_has_not_been_moved_is_where_it_was() {
    for (what, has_forwarding) in [("its page stays", false), ("its page is retained", true)] {
        let mut scene = coloured();
        let words = scene.usual_stack();
        scene.chunk(FROM, 0, SIZE - 2 * FRAME as u32, 2 * FRAME as u32, &words);
        refer(&mut scene, 2, 0);
        if has_forwarding {
            forward(&mut scene, YOUNG, &[entry(INDEX + 1, 0x66_0000)], 1);
        }
        let expected = scene.whole();
        assert_eq!(scene.walk(), expected, "{what}");
    }
}

#[test]
fn an_object_missing_from_its_forwarding_table_is_marked() {
    for (what, entries, ref_count) in [
        ("the page is gone", vec![], 0),
        ("objects are moved within the page", vec![], -1),
        ("a table without end", vec![entry(INDEX + 1, 0x66_0000); 16], 1),
    ] {
        let mut scene = coloured();
        let words = scene.usual_stack();
        scene.chunk(FROM, 0, SIZE - 2 * FRAME as u32, 2 * FRAME as u32, &words);
        refer(&mut scene, 2, 0);
        forward(&mut scene, YOUNG, &entries, ref_count);
        let expected = scene.marked(FrozenReason::StaleReference);
        assert_eq!(scene.walk(), expected, "{what}");
    }
}

/// Regression: the oldest chunk's reference to an older chunk is a null pointer with a colour of its own.
#[test]
fn a_null_pointer_has_a_colour_and_is_never_stale() {
    let mut scene = coloured();
    refer(&mut scene, 2, 0);
    forward(&mut scene, YOUNG, &[entry(INDEX, CHUNK)], 0);
    scene.object(CHUNK, CHUNK_KLASS, 0x1620);
    let expected = scene.whole();
    assert_eq!(scene.walk(), expected);
}

#[test]
fn a_mapped_reference_is_followed_unless_it_is_only_not_marked_yet() {
    for (what, bit, forwarded) in [("moved", 42, true), ("not marked yet", 44, false)] {
        let mut scene = scene(References::Mapped { bad_mask: BAD_MASK });
        scene.world.memory.put_u64(BAD_MASK, 1 << 42 | 1 << 44);
        // The address is in the heap's view of that colour.
        let view = 1 << bit;
        let words = scene.usual_stack();
        let to = if forwarded { CHUNK } else { FROM };
        scene.chunk(view | to, 0, SIZE - 2 * FRAME as u32, 2 * FRAME as u32, &words);
        scene.object(CONTINUATION, CONTINUATION_KLASS, view | FROM);
        forward(&mut scene, YOUNG, &[entry(INDEX, CHUNK)], 0);
        let expected = scene.whole();
        assert_eq!(scene.walk(), expected, "{what}");
    }
}

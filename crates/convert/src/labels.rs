//! Attributes and links of a sample: its thread, the thread's state, and the thread's context.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::types::Constant;
use otlpprof_jfr::values::{Struct, Value};
use otlpprof_model::{AttributeId, AttributeSetId, Link, LinkId, Tables, attribute_keys, label};

use super::constants::ConvertedConstants;
use super::subjects::Subject;
use super::witness::EventThread;

/// The converted threads, states and contexts of one chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkLabels {
    threads: ConvertedConstants<AttributeSetId>,
    /// `None` for a state that becomes no attribute.
    states: ConvertedConstants<Option<AttributeId>>,
    owners: ConvertedConstants<[Option<AttributeId>; 2]>,
    /// The values of contexts, by the position of their field among the context fields.
    contexts: Vec<ConvertedConstants<Option<AttributeId>>>,
    traces: ConvertedConstants<Option<[u8; 16]>>,
    event_threads: ConvertedConstants<EventThread>,
    /// The classes, by their role in the event.
    classes: [ConvertedConstants<Option<AttributeId>>; Subject::ALL],
    joined: ExtendedSets,
}

/// Cache: attribute sets that were extended by one attribute.
#[derive(Debug, Default)]
pub(super) struct ExtendedSets(HashMap<(AttributeSetId, AttributeId), AttributeSetId, RandomState>);

impl ExtendedSets {
    /// The set extended by the attribute.
    #[inline]
    pub(super) fn with(
        &mut self,
        set: AttributeSetId,
        attribute: AttributeId,
        tables: &mut Tables,
    ) -> AttributeSetId {
        *self.0.entry((set, attribute)).or_insert_with(|| {
            let mut attributes = tables.attributes_of(set).to_vec();
            attributes.push(attribute);
            tables.attribute_set(&attributes)
        })
    }
}

impl ChunkLabels {
    /// The set extended by the attribute.
    #[inline]
    pub(super) fn with(
        &mut self,
        set: AttributeSetId,
        attribute: AttributeId,
        tables: &mut Tables,
    ) -> AttributeSetId {
        self.joined.with(set, attribute, tables)
    }

    /// The attributes of a thread.
    #[inline]
    pub(super) fn thread(
        &mut self,
        chunk: Chunk<'_>,
        constant: Constant,
        tables: &mut Tables,
    ) -> AttributeSetId {
        match self.threads.find(chunk, constant) {
            None => AttributeSetId::EMPTY,
            Some(Ok(known)) => known,
            Some(Err(place)) => {
                let made = thread(chunk, constant, tables);
                self.threads.put(chunk, place, made)
            }
        }
    }

    /// The attributes of the thread that held the lock for which another thread waited: its name and its id.
    #[inline]
    pub(super) fn owner(
        &mut self,
        chunk: Chunk<'_>,
        constant: Constant,
        tables: &mut Tables,
    ) -> [Option<AttributeId>; 2] {
        match self.owners.find(chunk, constant) {
            None => [None; 2],
            Some(Ok(known)) => known,
            Some(Err(place)) => {
                let made = owner(chunk, constant, tables);
                self.owners.put(chunk, place, made)
            }
        }
    }

    /// The ids of a thread.
    #[inline]
    pub(super) fn event_thread(&mut self, chunk: Chunk<'_>, constant: Constant) -> EventThread {
        match self.event_threads.find(chunk, constant) {
            None => EventThread::default(),
            Some(Ok(known)) => known,
            Some(Err(place)) => {
                let thread = Value::Constant(constant).as_struct(chunk);
                let id = |name| thread.as_ref()?.get(name).as_ref().and_then(Value::as_i64);
                let made = EventThread {
                    java_id: id("javaThreadId").unwrap_or(0),
                    os_id: id("osThreadId").unwrap_or(0),
                };
                self.event_threads.put(chunk, place, made)
            }
        }
    }

    /// The attribute of a thread's state: in lower case, without the prefix `STATE_` that some writers add.
    /// `None` for an unknown state, such as async-profiler's for samples of its CPU clocks.
    #[inline]
    pub(super) fn state(
        &mut self,
        chunk: Chunk<'_>,
        constant: Constant,
        tables: &mut Tables,
    ) -> Option<AttributeId> {
        match self.states.find(chunk, constant)? {
            Ok(known) => known,
            Err(place) => {
                let state = chunk.text(Value::Constant(constant)).unwrap_or_default();
                let state = state.strip_prefix("STATE_").unwrap_or(&state).to_ascii_lowercase();
                let is_known = !["", "default", "unknown"].contains(&&*state);
                let made =
                    is_known.then(|| tables.string_attribute(attribute_keys::THREAD_STATE, label(&state)));
                self.states.put(chunk, place, made)
            }
        }
    }

    /// The attribute of the class that an event refers to.
    #[inline]
    pub(super) fn class(
        &mut self,
        chunk: Chunk<'_>,
        subject: Subject,
        constant: Constant,
        tables: &mut Tables,
    ) -> Option<AttributeId> {
        let classes = &mut self.classes[subject as usize];
        match classes.find(chunk, constant)? {
            Ok(known) => known,
            Err(place) => {
                let name = super::subjects::class_name(chunk, constant);
                let made = name.map(|name| tables.string_attribute(subject.key(), label(&name)));
                classes.put(chunk, place, made)
            }
        }
    }

    /// The attribute of a context value. `position` is the position of the value's field among the context
    /// fields; `key` is the attribute's key.
    #[inline]
    pub(super) fn context(
        &mut self,
        chunk: Chunk<'_>,
        position: usize,
        key: &str,
        constant: Constant,
        tables: &mut Tables,
    ) -> Option<AttributeId> {
        if self.contexts.len() <= position {
            self.contexts.resize_with(position + 1, ConvertedConstants::default);
        }
        match self.contexts[position].find(chunk, constant)? {
            Ok(known) => known,
            Err(place) => {
                let value = chunk.text(Value::Constant(constant)).unwrap_or_default();
                let made = (!value.is_empty()).then(|| tables.string_attribute(key, label(&value)));
                self.contexts[position].put(chunk, place, made)
            }
        }
    }

    /// The trace id in a context value: 128 or 64 bits in hexadecimal.
    #[inline]
    pub(super) fn trace(&mut self, chunk: Chunk<'_>, constant: Constant) -> Option<[u8; 16]> {
        match self.traces.find(chunk, constant)? {
            Ok(known) => known,
            Err(place) => {
                let made = chunk.text(Value::Constant(constant)).and_then(|text| trace_id(&text));
                self.traces.put(chunk, place, made)
            }
        }
    }
}

/// The link to a span in a trace. `LinkId::NONE` if either id is unknown, since readers reject such a link.
pub(super) fn link(trace_id: [u8; 16], span_id: i64, tables: &mut Tables) -> LinkId {
    if trace_id == [0; 16] || span_id == 0 {
        return LinkId::NONE;
    }
    tables.links.intern(Link { trace_id, span_id: span_id.to_be_bytes() })
}

/// The trace id that a local root span id stands for ([`super::identity::Links::LocalRoot`]).
pub(super) fn trace_of_local_root(local_root: i64) -> [u8; 16] {
    u128::from(local_root.cast_unsigned()).to_be_bytes()
}

/// Whether a context field with this name contains the trace id.
pub(super) fn names_trace(field: &str) -> bool {
    let letters: String = field.chars().filter(char::is_ascii_alphabetic).collect();
    letters.eq_ignore_ascii_case("traceid")
}

fn trace_id(text: &str) -> Option<[u8; 16]> {
    let is_hex = [16, 32].contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()?;
    Some(number.to_be_bytes())
}

/// A thread's name and id, in the agent's form. The id is the managed id (`Thread.threadId()`), or the
/// kernel's id for a thread that is not a Java thread.
fn thread(chunk: Chunk<'_>, constant: Constant, tables: &mut Tables) -> AttributeSetId {
    let Some(thread) = Value::Constant(constant).as_struct(chunk) else { return AttributeSetId::EMPTY };
    let mut attributes = Vec::new();
    if let Some(name) = thread_name(chunk, thread) {
        attributes.push(tables.string_attribute(attribute_keys::THREAD_NAME, label(&name)));
    }
    let id = |name| thread.get(name).and_then(|value| value.as_i64()).filter(|&id| id > 0);
    let is_virtual = thread.get("virtual").and_then(|value| value.as_i64()) == Some(1);
    match (id("javaThreadId"), id("osThreadId")) {
        // A virtual thread gets no id: each of a million threads would be a series of its own in a backend.
        _ if is_virtual => {}
        (Some(id), _) => attributes.push(tables.int_attribute(attribute_keys::THREAD_ID, id, "")),
        (None, Some(id)) => attributes.push(tables.int_attribute(attribute_keys::THREAD_OS_ID, id, "")),
        (None, None) => {}
    }
    tables.attribute_set(&attributes)
}

/// A lock owner's name and managed id, in the agent's form. A virtual thread gets both: few virtual threads
/// own a lock that others wait for.
fn owner(chunk: Chunk<'_>, constant: Constant, tables: &mut Tables) -> [Option<AttributeId>; 2] {
    let Some(thread) = Value::Constant(constant).as_struct(chunk) else { return [None; 2] };
    let name = thread_name(chunk, thread);
    let name = name.map(|name| tables.string_attribute(attribute_keys::LOCK_OWNER_NAME, label(&name)));
    let id = thread.get("javaThreadId").and_then(|value| value.as_i64()).filter(|&id| id > 0);
    [name, id.map(|id| tables.int_attribute(attribute_keys::LOCK_OWNER_ID, id, ""))]
}

fn thread_name<'c>(chunk: Chunk<'c>, thread: Struct<'c>) -> Option<Cow<'c, str>> {
    let text = |name| {
        let text: Option<Cow<'_, str>> = thread.get(name).and_then(|value| chunk.text(value));
        text.filter(|text| !text.is_empty())
    };
    text("javaName").or_else(|| text("osName"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_ids_are_hexadecimal_and_whole() {
        assert_eq!(trace_id("00000000000000ab"), Some(0xab_u128.to_be_bytes()));
        assert_eq!(trace_id("0123456789abcdef0123456789abcdef").unwrap()[..2], [0x01, 0x23]);
        for text in ["", "ab", "+000000000000000000000000000000a", "1234567890123456789"] {
            assert_eq!(trace_id(text), None, "{text}");
        }
        assert!(names_trace("traceid") && names_trace("trace_id") && names_trace("Trace.Id"));
        assert!(!names_trace("traceid2id") && !names_trace("span_id"));
    }
}

//! Labels of samples: their attributes, and the span that they link to.

use std::collections::HashMap;
use std::rc::Rc;

use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::wire::{Link, Sample};
use serde_json::{Map, Value, json};

use super::value;

/// A set of labels, by its number in [`LabelSets`].
pub(super) type LabelSetId = u32;

/// The text of a set is cut after this many bytes.
const LONGEST_TEXT: usize = 4096;
/// Approximate bytes that a set occupies besides its texts.
const OF_ENTRY: usize = 160;

/// The number of sets of labels that are shown for a stack.
pub(super) const SHOWN_LABELS: usize = 3;

/// Sets of labels, interned over all messages.
#[derive(Debug, Default)]
pub(super) struct LabelSets {
    ids: HashMap<Rc<str>, LabelSetId>,
    sets: HashMap<LabelSetId, LabelSet>,
    next: LabelSetId,
    /// The length of all texts, in bytes.
    text_bytes: usize,
}

/// The labels of a sample.
#[derive(Debug)]
pub(super) struct LabelSet {
    /// `key = value` for each label, sorted by key, then `trace ID span ID`. Empty if there are no labels.
    pub(super) text: Rc<str>,
    /// As [`LabelSet::fields`].
    json: Box<str>,
}

impl LabelSet {
    fn text_bytes(&self) -> usize {
        self.text.len() + self.json.len()
    }

    /// The fields of the set in JSON: `attributes` by key, and `link`, which is the span or null.
    pub(super) fn fields(&self) -> Value {
        // SANITY: the text was made of a value.
        serde_json::from_str(&self.json).unwrap()
    }
}

impl LabelSets {
    /// The approximate bytes that the sets occupy.
    pub(super) fn bytes(&self) -> usize {
        self.text_bytes + self.sets.len() * OF_ENTRY
    }

    /// The set of labels of a sample. The order of the sample's attributes does not matter.
    pub(super) fn of(&mut self, tables: EncodedTables<'_>, sample: &Sample) -> LabelSetId {
        let link = tables.link(sample.link_index);
        let mut indices: Vec<_> =
            sample.attribute_indices.iter().copied().filter(|&index| index != 0).collect();
        indices.sort_by_key(|&index| tables.attribute_keys(&[index]).next().unwrap_or_default());
        let (mut text, mut attributes) = (String::new(), Map::new());
        for (key, value) in tables.attributes(&indices) {
            let separator = if text.is_empty() { "" } else { ", " };
            text.push_str(&format!("{separator}{key} = {}", value::text(tables, value.as_ref())));
            if text.len() > LONGEST_TEXT {
                break;
            }
            attributes.insert(key.to_owned(), value::to_json(tables, value.as_ref()));
        }
        if let Some(link) = &link {
            let separator = if text.is_empty() { "" } else { ", " };
            text.push_str(&format!("{separator}{}", span_text(link)));
        }
        let is_long = text.len() > LONGEST_TEXT;
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        if let Some(&known) = self.ids.get(&*text) {
            return known;
        }
        let link = span_json(link.as_ref().filter(|_| !is_long));
        let json = json!({ "attributes": attributes, "link": link }).to_string();
        let text = Rc::<str>::from(text);
        let set = LabelSet { text: Rc::clone(&text), json: json.into() };
        self.text_bytes += set.text_bytes();
        let id = self.next;
        // SANITY: to read 2^32 different sets would take days.
        self.next += 1;
        self.sets.insert(id, set);
        self.ids.insert(text, id);
        id
    }

    /// Removes the sets that are not used.
    pub(super) fn keep(&mut self, is_used: impl Fn(LabelSetId) -> bool) {
        self.sets.retain(|&id, _| is_used(id));
        self.ids.retain(|_, &mut id| is_used(id));
        self.text_bytes = self.sets.values().map(LabelSet::text_bytes).sum();
    }

    /// The set with this id.
    pub(super) fn get(&self, id: LabelSetId) -> &LabelSet {
        &self.sets[&id]
    }
}

/// A span as text.
pub(super) fn span_text(link: &Link) -> String {
    format!("trace {} span {}", value::hexadecimal(&link.trace_id), value::hexadecimal(&link.span_id))
}

/// A span as JSON.
pub(super) fn span_json(link: Option<&Link>) -> Value {
    link.map_or(Value::Null, |link| {
        json!({ "traceId": value::hexadecimal(&link.trace_id), "spanId": value::hexadecimal(&link.span_id) })
    })
}

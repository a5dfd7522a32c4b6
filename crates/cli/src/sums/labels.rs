//! Labels of samples: their attributes, and the span that they link to.

use std::collections::HashMap;

use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::wire::{Link, Sample};
use serde_json::{Map, Value, json};

use super::value;

/// A set of labels, by its number in [`LabelSets`].
pub(crate) type LabelSetId = usize;

/// Stands for all sets for which there is no room.
pub(super) const OTHER_LABELS: LabelSetId = 0;
/// The most sets that are kept at a time.
const KEPT: usize = 1 << 15;
/// The text of a set is cut after this many bytes.
const LONGEST_TEXT: usize = 4096;
/// Approximate bytes that a set occupies besides its texts.
const OF_ENTRY: usize = 96;

/// The number of sets of labels that are shown for a stack.
pub(crate) const SHOWN_LABELS: usize = 3;

/// Sets of labels, interned over all messages.
#[derive(Debug)]
pub(super) struct LabelSets {
    by_text: HashMap<String, LabelSetId>,
    all: HashMap<LabelSetId, LabelSet>,
    next: LabelSetId,
    texts: usize,
}

/// The labels of a sample.
#[derive(Debug, Default)]
pub(crate) struct LabelSet {
    /// `key = value` for each label, sorted by key, then `trace ID span ID`. Empty if there are no labels.
    pub(crate) text: String,
    /// Attributes by key, as JSON.
    attributes: String,
    /// The span.
    link: Option<Link>,
}

impl LabelSet {
    /// Attributes by key.
    pub(crate) fn attributes(&self) -> Value {
        serde_json::from_str(&self.attributes).unwrap_or_else(|_| json!({}))
    }

    /// The span, or null.
    pub(crate) fn link(&self) -> Value {
        span_json(self.link.as_ref())
    }
}

impl Default for LabelSets {
    fn default() -> Self {
        let other = LabelSet { text: "other labels".into(), ..LabelSet::default() };
        Self {
            by_text: HashMap::new(),
            all: HashMap::from([(OTHER_LABELS, other)]),
            next: OTHER_LABELS + 1,
            texts: 0,
        }
    }
}

impl LabelSets {
    /// The approximate bytes that the sets occupy.
    pub(super) fn bytes(&self) -> usize {
        self.texts + self.all.len() * OF_ENTRY
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
        text.shrink_to_fit();
        if let Some(&known) = self.by_text.get(&text) {
            return known;
        }
        if self.all.len() > KEPT {
            return OTHER_LABELS;
        }
        let attributes = Value::from(attributes).to_string();
        self.texts += 2 * text.len() + attributes.len();
        let id = self.next;
        self.next += 1;
        self.all.insert(id, LabelSet { text: text.clone(), attributes, link: link.filter(|_| !is_long) });
        self.by_text.insert(text, id);
        id
    }

    /// Removes the sets that are not used.
    pub(super) fn forget(&mut self, is_used: impl Fn(LabelSetId) -> bool) {
        self.all.retain(|&id, _| id == OTHER_LABELS || is_used(id));
        self.by_text.retain(|_, id| self.all.contains_key(id));
        self.texts = self.all.values().map(|set| 2 * set.text.len() + set.attributes.len()).sum();
    }

    /// The set with this id.
    pub(super) fn get(&self, id: LabelSetId) -> &LabelSet {
        self.all.get(&id).unwrap_or_else(|| &self.all[&OTHER_LABELS])
    }
}

/// A span as text.
pub(crate) fn span_text(link: &Link) -> String {
    format!("trace {} span {}", value::hexadecimal(&link.trace_id), value::hexadecimal(&link.span_id))
}

/// A span as JSON.
pub(crate) fn span_json(link: Option<&Link>) -> Value {
    link.map_or(Value::Null, |link| {
        json!({ "traceId": value::hexadecimal(&link.trace_id), "spanId": value::hexadecimal(&link.span_id) })
    })
}

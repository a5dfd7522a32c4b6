//! What samples are labelled with: their attributes, and the span that they link to.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::value;
use crate::otlp::lookup::Lookup;
use crate::otlp::wire::{Link, Sample};

/// A set of labels, by its number in [`LabelSets`].
pub(super) type LabelSetId = usize;

/// Sets of labels, each once, over all messages.
#[derive(Debug, Default)]
pub(super) struct LabelSets {
    by_text: HashMap<String, LabelSetId>,
    all: Vec<LabelSet>,
}

/// What a sample is labelled with.
#[derive(Debug)]
pub(super) struct LabelSet {
    /// `key = value` for each, by key, then `trace ID span ID`; empty without labels.
    pub(super) text: String,
    /// Attributes by key.
    pub(super) attributes: Value,
    /// The span, or null.
    pub(super) link: Value,
}

impl LabelSets {
    /// The set that a sample has, in whatever order it has them.
    pub(super) fn of(&mut self, tables: Lookup<'_>, sample: &Sample) -> LabelSetId {
        let link = tables.link(sample.link_index);
        let mut labels: Vec<_> = tables.attributes(&sample.attribute_indices).collect();
        labels.sort_by_key(|&(key, _)| key);
        let attributes = labels.iter().map(|&(key, value)| format!("{key} = {}", value::text(tables, value)));
        let text = attributes.chain(link.map(span_text)).collect::<Vec<_>>().join(", ");
        if let Some(&known) = self.by_text.get(&text) {
            return known;
        }
        let attributes = labels.iter().map(|&(key, value)| (key.to_owned(), value::to_json(tables, value)));
        let attributes = attributes.collect::<Map<_, _>>().into();
        self.all.push(LabelSet { text: text.clone(), attributes, link: span_json(link) });
        self.by_text.insert(text, self.all.len() - 1);
        self.all.len() - 1
    }

    /// The set of this number.
    pub(super) fn get(&self, id: LabelSetId) -> &LabelSet {
        &self.all[id]
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

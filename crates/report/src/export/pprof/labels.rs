//! Sets of labels: the attributes and the span of a sample.

use std::collections::HashMap;

use foldhash::fast::RandomState as FastState;
use otlpprof_model::{AttributeSetId, SliceInterner};
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::Value;
use otlpprof_pprof::messages::Label;

use super::tables::ProfileTables;
use crate::sample_reader::SelectedSample;
use crate::selection::text_of;

/// The label of a span's trace, in hexadecimal.
const TRACE_ID: &str = "trace_id";
/// The label of a span, in hexadecimal.
const SPAN_ID: &str = "span_id";

/// Sets of labels, interned.
#[derive(Debug, Default)]
pub struct LabelSets {
    sets: SliceInterner<Label, AttributeSetId>,
    /// By the number of a sample's labels in the present message.
    of_samples: HashMap<u64, AttributeSetId, FastState>,
    /// Whether an attribute had a value that no label can hold.
    pub has_lost_values: bool,
}

impl LabelSets {
    /// Begins the next message, in which indices have another meaning.
    pub fn begin_message(&mut self) {
        self.of_samples.clear();
    }

    /// The labels of a set.
    pub fn get(&self, set: AttributeSetId) -> &[Label] {
        self.sets.get(set)
    }

    /// The set of a sample's labels.
    pub fn of(
        &mut self,
        texts: &mut ProfileTables,
        tables: EncodedTables<'_>,
        sample: &SelectedSample<'_>,
    ) -> AttributeSetId {
        if let Some(&known) = self.of_samples.get(&sample.labels) {
            return known;
        }
        let mut labels = Vec::new();
        for &index in &sample.sample.attribute_indices {
            labels.extend(self.label(texts, tables, index));
        }
        if let Some(link) = tables.link(sample.sample.link_index) {
            for (key, id) in [(TRACE_ID, &link.trace_id), (SPAN_ID, &link.span_id)] {
                let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
                labels.extend(text_label(texts, key, &hex));
            }
        }
        labels.sort_unstable();
        let set = self.sets.intern(&labels);
        self.of_samples.insert(sample.labels, set);
        set
    }

    fn label(&mut self, texts: &mut ProfileTables, tables: EncodedTables<'_>, index: i32) -> Option<Label> {
        let attribute = tables.attribute(index)?;
        let value = attribute.value.and_then(|value| value.value)?;
        let key = tables.text(attribute.key_strindex);
        if let Value::IntValue(number) = value {
            let unit = texts.text(tables.text(attribute.unit_strindex));
            return Some(Label { key: texts.text(key), text: 0, number, unit });
        }
        self.has_lost_values |=
            matches!(value, Value::ArrayValue(_) | Value::KvlistValue(_) | Value::BytesValue(_));
        text_label(texts, key, &text_of(tables, Some(&value)))
    }
}

/// A label with a text; `None` for an empty text, which would be no label.
pub fn text_label(texts: &mut ProfileTables, key: &str, text: &str) -> Option<Label> {
    let is_label = !text.is_empty();
    is_label.then(|| Label { key: texts.text(key), text: texts.text(text), number: 0, unit: 0 })
}

//! Determines the sample that an event belongs to, by its stack, its thread and the thread's context.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use otlpprof_jfr::chunk::Chunk;
use otlpprof_model::{
    AttributeId, AttributeSetId, LinkId, SampleIdentity, StackId, Tables, attribute_keys, label,
};

use super::event_plan::{EventPlan, Slot};
use super::labels::{self, ChunkLabels};
use super::libraries::Libraries;
use super::stacks::{self, Stacks};
use super::witness::{Occurrence, Witness};

/// The construction of a link from an event. The event has a span id (`spanId`), the id of the span's local
/// root (`localRootSpanId`), and possibly a trace id among its context attributes. A link needs a span id and
/// a trace id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Use the trace id if the event has one; otherwise proceed like [`Links::LocalRoot`].
    #[default]
    Auto,
    /// Use the trace id only: an event without a trace id gets no link.
    Trace,
    /// Use the form of Datadog's own converter (dd-trace-java, `JfrToOtlpConverter.extractLinkIndex`): the id
    /// of the local root span, in the last eight bytes, replaces the trace id. Datadog finds traces by the
    /// local root's id and the span id.
    LocalRoot,
}

/// The converted constants of one chunk.
#[derive(Debug, Default)]
pub(super) struct Identities {
    stacks: Stacks,
    labels: ChunkLabels,
    spans: HashMap<(Slot, i64), AttributeId, RandomState>,
}

/// The reason why an event does not become a sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoSample {
    /// The witness excludes the event's thread from the recording.
    LeftOut,
    /// The stack is not known yet: the chunk's writer has not written any constants.
    Unfinished,
    /// The witness says that the user does not want the event.
    Unwanted,
}

/// The identity of a sample, with further facts that its profiles need.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventIdentity {
    pub(super) identity: SampleIdentity,
    /// Whether the JVM could not walk the stack. A marker frame says so.
    pub(super) is_failed: bool,
    /// Whether there is no stack. A marker frame says so.
    pub(super) is_without_stack: bool,
    /// Whether the event has the thread's state.
    pub(super) has_state: bool,
}

impl Identities {
    /// The sample that an event with these numbers belongs to.
    pub(super) fn identify(
        &mut self,
        chunk: Chunk<'_>,
        (plan, links): (&EventPlan, Links),
        read: &[i64],
        mut witness: Option<&mut (dyn Witness + 'static)>,
        (libraries, tables): (&mut Libraries, &mut Tables),
    ) -> Result<EventIdentity, NoSample> {
        let Self { stacks, labels, spans } = self;
        let thread = plan.constant(Slot::Thread, read);
        let event_thread =
            witness.as_ref().and(thread).map(|thread| labels.event_thread(chunk, thread)).unwrap_or_default();
        if witness.as_ref().is_some_and(|witness| witness.leaves_out(event_thread)) {
            return Err(NoSample::LeftOut);
        }
        let stack = plan.constant(Slot::Stack, read);
        let stack = stack.and_then(|stack| stacks.stack(chunk, stack, libraries, tables));
        let is_failed = stack.is_none() && Slot::IsFailed.of(read) == 1;
        let is_without_stack = stack.is_none() && !is_failed;
        if is_without_stack && !chunk.has_checkpoint() {
            return Err(NoSample::Unfinished);
        }
        let stack: StackId = match stack {
            Some(stack) => stack,
            None if is_failed => stacks::failed(tables),
            None => stacks::none(tables),
        };
        let mut attributes =
            thread.map_or(AttributeSetId::EMPTY, |thread| labels.thread(chunk, thread, tables));
        if let Some(witness) = &witness
            && !witness.wants(tables.text_of(attributes, attribute_keys::THREAD_NAME), stack, tables)
        {
            return Err(NoSample::Unwanted);
        }
        let state = plan.constant(Slot::State, read);
        let state = state.and_then(|of| labels.state(chunk, of, tables));
        let class = plan
            .subject
            .and_then(|subject| labels.class(chunk, subject, plan.constant(Slot::Subject, read)?, tables));
        for attribute in [state, plan.lock_kind, class].into_iter().flatten() {
            attributes = labels.with(attributes, attribute, tables);
        }
        if let Some(owner) = plan.constant(Slot::Owner, read) {
            for attribute in labels.owner(chunk, owner, tables).into_iter().flatten() {
                attributes = labels.with(attributes, attribute, tables);
            }
        }
        let mut link = LinkId::NONE;
        for (field, key) in plan.contexts.iter().enumerate() {
            let Some(value) = plan.numbers.constant(plan.first_context + field, read) else { continue };
            if plan.trace == Some(field) && links != Links::LocalRoot {
                let trace = labels.trace(chunk, value);
                link = trace.map_or(LinkId::NONE, |trace| labels::link(trace, Slot::Span.of(read), tables));
            }
            // A trace that the link refers to needs no attribute.
            if plan.trace != Some(field) || link == LinkId::NONE {
                let attribute = labels.context(chunk, field, key, value, tables);
                attributes =
                    attribute.map_or(attributes, |attribute| labels.with(attributes, attribute, tables));
            }
        }
        if link == LinkId::NONE && links != Links::Trace {
            link = labels::link(
                labels::trace_of_local_root(Slot::LocalRoot.of(read)),
                Slot::Span.of(read),
                tables,
            );
        }
        if let Some(witness) = &mut witness {
            let occurrence = Occurrence {
                thread: event_thread,
                start_ticks: Slot::Start.of(read),
                end_ticks: Slot::Start.of(read).saturating_add(if plan.has_duration {
                    Slot::Duration.of(read)
                } else {
                    0
                }),
                ticks_per_second: chunk.header().clock.ticks_per_second,
                is_seen_by_another: plan.is_seen_by_another,
            };
            if let Some(context) = witness.context(occurrence) {
                for (key, value) in context.labels.iter() {
                    let attribute = tables.string_attribute(key, label(value));
                    attributes = labels.with(attributes, attribute, tables);
                }
                link = tables.links.intern(context.link);
            }
        }
        for (slot, key) in
            [(Slot::Span, attribute_keys::SPAN_ID), (Slot::LocalRoot, attribute_keys::LOCAL_ROOT_SPAN_ID)]
        {
            // A link needs the trace id, which only some recordings have. Without a link the span id becomes
            // an attribute.
            let is_linked = slot == Slot::Span && link != LinkId::NONE;
            if slot.of(read) != 0 && !is_linked {
                let attribute = *spans
                    .entry((slot, slot.of(read)))
                    .or_insert_with(|| tables.string_attribute(key, &format!("{:016x}", slot.of(read))));
                attributes = labels.with(attributes, attribute, tables);
            }
        }
        let identity = SampleIdentity { stack, attributes, link };
        Ok(EventIdentity { identity, is_failed, is_without_stack, has_state: state.is_some() })
    }
}

//! What a sample holds: its stack, its names, its context.

use super::{LIST_SEPARATOR, OptionSpec, PLAIN, set};
use crate::agent::options::types::{ContextPublication, StackWalker};
use crate::agent::options::value;
use crate::context::slot_names;
use crate::core::context::SLOTS;
use crate::otlp::NativeFrames;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "cstack",
        value: "vm|vmx|fp|dwarf|no",
        default: Some("vm"),
        help: "stacks: vm, vmx (native frames throughout), fp, dwarf (the VM makes and keeps ids of all methods), no (Java only)",
        read: |draft, text| {
            let walkers = StackWalker::ALL.map(|walker| (walker.name(), walker));
            set(&mut draft.options.stack_walker, value::choice(text, &walkers))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "depth",
        value: "FRAMES",
        default: Some("2048"),
        help: "the most frames of a stack; deeper ones are marked as truncated (at most 2048)",
        read: |draft, text| set(&mut draft.options.depth, value::integer(text, 1, 2048)),
        ..PLAIN
    },
    OptionSpec {
        name: "remotesym",
        value: "BOOL",
        default: Some("false"),
        bare: Some("true"),
        help: "leave native frames to the backend: build-id and address instead of a symbol",
        read: |draft, text| set(&mut draft.options.remotesym, value::boolean(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "native_frames",
        value: "remote|name",
        default: Some("remote"),
        help: "remote frames as address and mapping, or (name) with <build-id>.<remote>(0xADDRESS) as function name",
        read: |draft, text| {
            let forms = [("remote", NativeFrames::Remote), ("name", NativeFrames::Name)];
            set(&mut draft.options.encode.native_frames, value::choice(text, &forms))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "class_names",
        value: "normalised|full",
        default: Some("normalised"),
        help: "classes made at run time without what numbers them (Foo$$Lambda), or (full) as the VM has them",
        read: |draft, text| {
            let forms = [("normalised", true), ("full", false)];
            set(&mut draft.options.normalise_class_names, value::choice(text, &forms))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "timestamps",
        value: "BOOL",
        default: Some("false"),
        bare: Some("true"),
        help: "keep the time of each sample",
        read: |draft, text| set(&mut draft.options.encode.timestamps, value::boolean(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "context",
        value: "NAME+...",
        help: "names of context attributes, in this order; Java code may name others; nine at most",
        read: |draft, text| {
            set(&mut draft.options.context, value::names(text, LIST_SEPARATOR, SLOTS, check_slot_name))
        },
        ..PLAIN
    },
    OptionSpec {
        name: "context.publish",
        value: "off|trace|attributes",
        // A block is a record of its trace already: its thread's pointer to it is set once, and no setter does more.
        default: Some("trace"),
        help: "what profilers outside the process may read of threads' contexts: nothing, trace and span, attributes too",
        read: |draft, text| {
            let publications = [
                ("off", ContextPublication::Off),
                ("trace", ContextPublication::Trace),
                ("attributes", ContextPublication::Attributes),
            ];
            set(&mut draft.options.context_publication, value::choice(text, &publications))
        },
        ..PLAIN
    },
];

fn check_slot_name(name: &str) -> Result<(), String> {
    slot_names::check(name).map_err(|error| error.to_string())
}

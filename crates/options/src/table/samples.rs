//! The options of a sample's contents: its stack, its names, its context.

use otlpprof_aggregate::{NamePattern, NameSelection};
use otlpprof_core::attribute_name;
use otlpprof_core::context::SLOTS;
use otlpprof_elf::debug_file_places::DEBUG_ROOT;
use otlpprof_otlp::NativeFrames;

use crate::option_spec::{LIST_SEPARATOR, OptionSpec, PLAIN, set};
use crate::types::{ContextPublication, StackWalker};
use crate::value;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "filter",
        value: "BOOL",
        default: Some("false"),
        bare: Some("true"),
        help: "sample only registered threads (Otlpprof.addThread in Java)",
        read: |draft, text| set(&mut draft.options.filter, value::boolean(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "threads",
        value: "NAME+!NAME...",
        help: "keep samples of threads with these names, except names after a !; * matches anything",
        read: |draft, text| {
            let (unwanted, wanted) =
                patterns(text)?.into_iter().partition::<Vec<_>, _>(|name| name.starts_with('!'));
            let unwanted = unwanted.iter().map(|name| NamePattern::new(&name[1..])).collect();
            let wanted = wanted.iter().map(|name| NamePattern::new(name)).collect();
            draft.options.threads = NameSelection { wanted, unwanted };
            Ok(())
        },
        ..PLAIN
    },
    OptionSpec {
        name: "include",
        value: "FRAME+...",
        help: "keep stacks with a frame of one of these names, like com.example.Class.method; * matches \
               anything",
        read: |draft, text| set(&mut draft.options.frames.wanted, frame_patterns(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "exclude",
        value: "FRAME+...",
        help: "omit stacks with a frame of one of these names",
        read: |draft, text| set(&mut draft.options.frames.unwanted, frame_patterns(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "cstack",
        value: "vm|vmx|fp|dwarf|no",
        default: Some("vm"),
        help: "the stack walker: vm, vmx (all native frames), fp, dwarf (the VM keeps ids of all methods), \
               no (Java only)",
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
        help: "record native frames as build-id and address, for the backend to symbolize",
        read: |draft, text| set(&mut draft.options.remotesym, value::boolean(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "debug_files",
        value: "DIR|no",
        default: Some(DEBUG_ROOT),
        help: "the folder of installed debug files, which name functions of stripped libraries; or (no) none \
               is used",
        read: |draft, text| set(&mut draft.options.debug_files, value::folder_or_no(text)),
        ..PLAIN
    },
    OptionSpec {
        name: "native_frames",
        value: "remote|name",
        default: Some("remote"),
        help: "the form of remote frames: address and mapping, or (name) <build-id>.<remote>(0xADDRESS) as \
               function name too",
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
        help: "names of classes created at run time: without their numbers (Foo$$Lambda), or (full) as in \
               the VM",
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
        // Publishing the trace costs setters nothing: a block already is a published record of its trace, and
        // the thread's pointer to its block is set once.
        default: Some("trace"),
        help: "the contexts of threads that other processes can read: none, trace and span, attributes too",
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
    OptionSpec {
        name: "context.publish.virtual",
        value: "BOOL",
        bare: Some("true"),
        // The VM's events of each mount and unmount are expensive.
        default: Some("false"),
        help: "other processes can read contexts of virtual threads too; from the first context on, each \
               mount is slower",
        read: |draft, text| set(&mut draft.options.publishes_virtual_threads, value::boolean(text)),
        ..PLAIN
    },
];

/// The most patterns of one option.
const MAX_PATTERNS: usize = 100;

fn patterns(text: &str) -> Result<Vec<String>, String> {
    let check = |name: &str| match name.trim_start_matches('!') {
        "" => Err("an item is empty".to_owned()),
        _ if name.chars().any(char::is_control) => Err("must be names; * stands for anything".to_owned()),
        _ => Ok(()),
    };
    value::names(text, LIST_SEPARATOR, MAX_PATTERNS, check)
}

fn frame_patterns(text: &str) -> Result<Vec<NamePattern>, String> {
    patterns(text).map(|names| names.iter().map(|name| NamePattern::new(name)).collect())
}

fn check_slot_name(name: &str) -> Result<(), String> {
    attribute_name::check(name).map_err(|error| error.to_string())
}

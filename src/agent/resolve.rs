//! Names what drained records point to: frames, and the values of contexts.

use std::sync::Arc;

use crate::aggregate::{RawFrame, Resolver, ThreadState};
use crate::context::counts::{COUNTS, add};
use crate::context::dictionary::DICTIONARY;
use crate::context::slot_names::SLOT_NAMES;
use crate::core::address::{ElfVaddr, RuntimeAddr};
use crate::core::context::{SLOTS, ValueRef};
use crate::core::object::ObjectIndex;
use crate::core::record::{Engine, FrameKind, NO_OBJECT, Subject};
use crate::elf::image::LoadCounts;
use crate::elf::kernel::{KERNEL_NAME, Kernel};
use crate::elf::objects::ObjectDetails;
use crate::jvm::method_names::MethodNames;
use crate::jvm::methods::MethodTable;
use crate::jvm::stubs::StubTable;
use crate::model::{
    self, AttributeId, AttributeSetId, Frame, FrameId, FrameType, Function, JavaMethod, Mapping, Tables,
    attribute_keys, native_frame_nowhere, unnamed_native_frame,
};
use crate::signal::safe_load::ProcessMemory;
use crate::signal::walk::{FrozenReason, WalkError};

use super::engines::SUBJECTS;
use super::objects::{self, Objects};

/// Resolves frames in this process. Runs under the aggregator's lock, also at a safepoint: it reads memory and
/// its own tables, and never calls into the VM, but for `method_names`.
pub(super) struct FrameResolver {
    /// The methods, if the JVM's layout is known.
    pub(super) methods: Option<MethodTable>,
    /// The methods by their ids, where the layout is not known. Asks the VM: then no drain is made at a safepoint.
    pub(super) method_names: Option<MethodNames>,
    pub(super) stubs: &'static StubTable,
    pub(super) objects: Arc<Objects>,
    /// What was loaded and unloaded before the oldest sample that is being resolved was taken.
    pub(super) loaded_before: LoadCounts,
    /// Whether objects with a build-id are left to the backend.
    pub(super) remote_symbols: bool,
    /// Whether generated classes lose what numbers them.
    pub(super) normalise_class_names: bool,
    pub(super) unresolved: Unresolved,
}

/// Frames of which nobody knew any more what they are. Each counts once for every interval that it was on a stack in,
/// and anew after a collection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unresolved {
    /// `[unwalkable: unknown_method]`.
    pub(super) methods: u64,
    /// `[unknown object]`.
    pub(super) objects: u64,
}

impl Resolver for FrameResolver {
    fn frame(&mut self, tables: &mut Tables, frame: RawFrame) -> FrameId {
        match frame.kind {
            FrameKind::Interpreted
            | FrameKind::Compiled
            | FrameKind::Inlined
            | FrameKind::NativeMethod
            | FrameKind::Java => self.java(tables, frame.value, frame.aux as i32),
            FrameKind::MethodId => self.java_by_id(tables, frame.value),
            FrameKind::Native => self.native(tables, frame),
            FrameKind::Kernel => kernel_frame(tables, RuntimeAddr(frame.value)),
            FrameKind::Remote => self.remote(tables, ObjectIndex(frame.aux), ElfVaddr(frame.value)),
            FrameKind::Stub => {
                let name = self.stubs.name_at(frame.value);
                marker(tables, name.as_deref().unwrap_or("[stub]"), FrameType::Native)
            }
            FrameKind::Unwalkable => {
                let error = WalkError::ALL.get(frame.aux as usize).map_or("unknown", |error| error.name());
                marker(tables, &format!("[unwalkable: {error}]"), FrameType::Native)
            }
            FrameKind::NoJavaFrame => marker(tables, "[no_Java_frame]", FrameType::Native),
            FrameKind::Frozen => {
                let reason =
                    FrozenReason::ALL.get(frame.aux as usize).map_or("unknown", |reason| reason.name());
                marker(tables, &format!("[frozen: {reason}]"), FrameType::Native)
            }
            FrameKind::Truncated => marker(tables, "[truncated]", FrameType::Native),
        }
    }

    fn labels(&mut self, tables: &mut Tables, slots: &[ValueRef; SLOTS]) -> AttributeSetId {
        let names = SLOT_NAMES.list();
        let values = DICTIONARY.values();
        let mut labels = Vec::with_capacity(SLOTS);
        for (name, &reference) in names.iter().zip(slots) {
            match values.get(reference) {
                Some(value) => labels.push(tables.string_attribute(name, value)),
                None if reference == ValueRef::NONE => {}
                None => add(&COUNTS.labels_stale, 1),
            }
        }
        tables.attribute_set(&labels)
    }

    fn subject(&mut self, tables: &mut Tables, engine: Engine, subject: Subject) -> AttributeSetId {
        let key = match engine {
            Engine::Wall => {
                let state = ThreadState::from_subject(subject).map_or("unknown", ThreadState::name);
                let state = tables.string_attribute(attribute_keys::THREAD_STATE, state);
                return tables.attribute_set(&[state]);
            }
            Engine::Alloc | Engine::Live => attribute_keys::OBJECT_CLASS,
            Engine::Lock => return self.lock(tables, subject),
            Engine::Wait => attribute_keys::MONITOR_CLASS,
            Engine::Exceptions => attribute_keys::EXCEPTION_TYPE,
            Engine::Cpu | Engine::Event | Engine::NativeMemory | Engine::Trace => {
                return AttributeSetId::EMPTY;
            }
        };
        let class = self.class_attribute(tables, key, subject);
        tables.attribute_set(class.as_slice())
    }
}

fn marker(tables: &mut Tables, text: &str, frame_type: FrameType) -> FrameId {
    let function = tables.named_function(text);
    tables.frames.intern(Frame::Marker { function, frame_type })
}

/// A frame of the kernel's: with its name, also where native frames are left to the backend, which seldom has the kernel.
fn kernel_frame(tables: &mut Tables, pc: RuntimeAddr) -> FrameId {
    let kernel = Kernel::running();
    let place = kernel.place(pc);
    let function = match (place.function, place.address) {
        (Some(name), _) => tables.named_function(name),
        (None, Some(address)) => tables.named_function(&unnamed_native_frame(KERNEL_NAME, address)),
        (None, None) => tables.named_function("[kernel]"),
    };
    let mapping = place.address.map(|_| {
        let filename = tables.strings.intern(KERNEL_NAME);
        tables.mappings.intern(Mapping {
            memory_limit: ElfVaddr(kernel.text_bytes()),
            filename,
            build_id: kernel.build_id(),
            ..Mapping::default()
        })
    });
    tables.frames.intern(Frame::Kernel { mapping, address: place.address, function })
}

impl FrameResolver {
    /// The class of a subject, if it has one, as an attribute of this name.
    fn class_attribute(&self, tables: &mut Tables, key: &str, subject: Subject) -> Option<AttributeId> {
        let class = SUBJECTS.class_name(subject, self.normalise_class_names)?;
        Some(tables.string_attribute(key, model::label(&class)))
    }

    /// What a thread waited to have.
    fn lock(&self, tables: &mut Tables, subject: Subject) -> AttributeSetId {
        let (is_parked, class) = subject.split_parked();
        let kind =
            tables.string_attribute(attribute_keys::LOCK_KIND, if is_parked { "park" } else { "monitor" });
        let class = self.class_attribute(tables, attribute_keys::MONITOR_CLASS, class);
        let attributes: Vec<_> = std::iter::once(kind).chain(class).collect();
        tables.attribute_set(&attributes)
    }

    fn java(&mut self, tables: &mut Tables, method: u64, bci: i32) -> FrameId {
        let resolved = self.methods.as_mut().and_then(|methods| {
            let id = methods.resolve(&ProcessMemory, method).ok()?;
            Some((methods.line_of(id, bci), methods.get(id)?))
        });
        let Some((line, info)) = resolved else {
            self.unresolved.methods += 1;
            return marker(tables, "[unwalkable: unknown_method]", FrameType::Jvm);
        };
        let name = JavaMethod {
            class: &info.class.internal_name,
            method: &info.name,
            descriptor: &info.signature,
            normalise: self.normalise_class_names,
        };
        let function = tables.java_function(name, info.class.source_file.as_deref().unwrap_or(""), 0);
        tables.frames.intern(Frame::Java { function, line })
    }

    fn java_by_id(&mut self, tables: &mut Tables, id: u64) -> FrameId {
        let Some(name) = self.method_names.as_mut().and_then(|names| names.get(id)) else {
            return marker(tables, "[unwalkable: unknown_method]", FrameType::Jvm);
        };
        let name = JavaMethod {
            class: &name.class,
            method: &name.method,
            descriptor: &name.descriptor,
            normalise: self.normalise_class_names,
        };
        let function = tables.java_function(name, "", 0);
        tables.frames.intern(Frame::Java { function, line: 0 })
    }

    fn native(&mut self, tables: &mut Tables, frame: RawFrame) -> FrameId {
        let pc = RuntimeAddr(frame.value);
        let details = match frame.aux {
            NO_OBJECT => self.objects.find_late(pc, self.loaded_before),
            index => self.objects.details(ObjectIndex(index)),
        };
        match details {
            Some(details) => self.in_object(tables, &details, details.load_bias().to_elf(pc)),
            None => marker(tables, &native_frame_nowhere(pc), FrameType::Native),
        }
    }

    fn remote(&mut self, tables: &mut Tables, object: ObjectIndex, address: ElfVaddr) -> FrameId {
        match self.objects.details(object) {
            Some(details) => self.in_object(tables, &details, address),
            None => {
                self.unresolved.objects += 1;
                marker(tables, "[unknown object]", FrameType::Native)
            }
        }
    }

    fn in_object(&mut self, tables: &mut Tables, details: &ObjectDetails, address: ElfVaddr) -> FrameId {
        let mapping = objects::mapping(tables, details, address);
        if let Some(mapping) = mapping.filter(|_| self.remote_symbols && details.build_id.is_some()) {
            return tables.frames.intern(Frame::RemoteNative { mapping, address });
        }
        let native = self.objects.function(details, address);
        let name = tables.strings.intern(&native.name);
        let system_name = tables.strings.intern(&native.linkage_name);
        let function = tables.functions.intern(Function { name, system_name, ..Function::default() });
        tables.frames.intern(Frame::Native { mapping, address: Some(address), function, line: 0 })
    }
}

//! Resolves references in drained records that may become invalid later: methods, and the values of contexts.

use otlpprof_aggregate::{RawFrame, Resolver, ThreadState};
use otlpprof_context::counts::{COUNTS, add};
use otlpprof_context::dictionary::DICTIONARY;
use otlpprof_context::slot_names::SLOT_NAMES;
use otlpprof_core::context::{SLOTS, ValueRef};
use otlpprof_core::engine::Engine;
use otlpprof_core::record::{FrameKind, FrameRecord, Subject};
use otlpprof_jvm::method_names::MethodNames;
use otlpprof_jvm::methods::MethodTable;
use otlpprof_jvm::stubs::StubTable;
use otlpprof_model::{
    self, AttributeId, AttributeSetId, Frame, FrameId, FrameType, JavaMethod, Tables, attribute_keys, markers,
};
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_signal::walk::{FrozenReason, WalkError};

use super::subjects::SUBJECTS;

/// The form of a sample's subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubjectForm {
    /// The samples have no subject.
    None,
    /// A thread's state.
    ThreadState,
    /// A class, as an attribute with this key.
    Class(&'static str),
    /// The class and the kind of a lock.
    Lock,
}

/// Resolves frames in this process. Runs with the aggregator's lock, also at a safepoint. So it reads memory
/// and its own tables, opens no file, and never calls into the VM, except through `method_names`. Native and
/// kernel frames are named later, by [`NativeFrames`](super::native_frames::NativeFrames).
pub(super) struct FrameResolver {
    /// The methods, if the JVM's layout is known.
    pub(super) methods: Option<MethodTable>,
    /// The methods by their ids, if the layout is unknown. This calls the VM; no drain happens at a safepoint
    /// then.
    pub(super) method_names: Option<MethodNames>,
    pub(super) stubs: &'static StubTable,
    /// Whether names of generated classes leave out their numbers.
    pub(super) normalise_class_names: bool,
    /// The form of the subjects of an engine's samples.
    pub(super) subject_form: fn(Engine) -> SubjectForm,
    /// The number of frames resolved to [`markers::UNKNOWN_METHOD`]. A frame counts once for every
    /// interval in which it was on a stack, and again after a collection.
    pub(super) unknown_methods: u64,
}

impl Resolver for FrameResolver {
    fn frame(&mut self, tables: &mut Tables, frame: RawFrame) -> Option<FrameId> {
        Some(match frame.kind {
            FrameKind::Interpreted
            | FrameKind::Compiled
            | FrameKind::Inlined
            | FrameKind::NativeMethod
            | FrameKind::Java => self.java(tables, frame.value, frame.aux as i32),
            FrameKind::MethodId => self.java_by_id(tables, frame.value),
            FrameKind::Native | FrameKind::Kernel | FrameKind::Remote => return None,
            FrameKind::Stub => {
                let name = self.stubs.name_at(frame.value);
                let function = tables.named_function(name.as_deref().unwrap_or(markers::STUB));
                tables.frames.intern(Frame::Stub { function })
            }
            FrameKind::Unwalkable => {
                let error = WalkError::ALL.get(frame.aux as usize).map_or("unknown", |error| error.name());
                marker(tables, &markers::unwalkable(error), FrameType::Native)
            }
            FrameKind::NoJavaFrame => marker(tables, markers::NO_JAVA_FRAME, FrameType::Native),
            FrameKind::Frozen => {
                let reason =
                    FrozenReason::ALL.get(frame.aux as usize).map_or("unknown", |reason| reason.name());
                marker(tables, &markers::frozen(reason), FrameType::Native)
            }
            FrameKind::Truncated => marker(tables, markers::TRUNCATED, FrameType::Native),
        })
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
        let key = match (self.subject_form)(engine) {
            SubjectForm::ThreadState => {
                let state = ThreadState::from_subject(subject).map_or("unknown", ThreadState::name);
                let state = tables.string_attribute(attribute_keys::THREAD_STATE, state);
                return tables.attribute_set(&[state]);
            }
            SubjectForm::Class(key) => key,
            SubjectForm::Lock => return self.lock(tables, subject),
            SubjectForm::None => return AttributeSetId::EMPTY,
        };
        let class = self.class_attribute(tables, key, subject);
        tables.attribute_set(class.as_slice())
    }
}

fn marker(tables: &mut Tables, text: &str, frame_type: FrameType) -> FrameId {
    let function = tables.named_function(text);
    tables.frames.intern(Frame::Marker { function, frame_type })
}

impl FrameResolver {
    /// Returns the class of a subject, if there is one, as an attribute of this name.
    fn class_attribute(&self, tables: &mut Tables, key: &str, subject: Subject) -> Option<AttributeId> {
        let class = SUBJECTS.class_name(subject, self.normalise_class_names)?;
        Some(tables.string_attribute(key, otlpprof_model::label(&class)))
    }

    /// The attributes of the lock that a thread waited for.
    fn lock(&self, tables: &mut Tables, subject: Subject) -> AttributeSetId {
        let (is_parked, class) = subject.split_parked();
        let kind =
            tables.string_attribute(attribute_keys::LOCK_KIND, if is_parked { "park" } else { "monitor" });
        let class = self.class_attribute(tables, attribute_keys::MONITOR_CLASS, class);
        let attributes: Vec<_> = std::iter::once(kind).chain(class).collect();
        tables.attribute_set(&attributes)
    }

    /// Whether a Java frame is in a method for which `is_it` holds. `is_it` gets the class's name in the VM's
    /// form, and the method's name.
    pub(super) fn is_method(&mut self, frame: &FrameRecord, is_it: impl Fn(&str, &str) -> bool) -> bool {
        if frame.kind == FrameKind::MethodId {
            let name = self.method_names.as_mut().and_then(|names| names.get(frame.value));
            return name.is_some_and(|name| is_it(&name.class, &name.method));
        }
        let resolved = self.methods.as_mut().and_then(|methods| {
            let id = methods.resolve(&ProcessMemory, frame.value).ok()?;
            methods.get(id)
        });
        resolved.is_some_and(|info| is_it(&info.class.internal_name, &info.name))
    }

    fn java(&mut self, tables: &mut Tables, method: u64, bci: i32) -> FrameId {
        let resolved = self.methods.as_mut().and_then(|methods| {
            let id = methods.resolve(&ProcessMemory, method).ok()?;
            Some((methods.line_of(id, bci), methods.get(id)?))
        });
        let Some((line, info)) = resolved else {
            self.unknown_methods += 1;
            return marker(tables, markers::UNKNOWN_METHOD, FrameType::Jvm);
        };
        let name = JavaMethod {
            class: &info.class.internal_name,
            method: &info.name,
            descriptor: &info.signature,
            normalise: self.normalise_class_names,
        };
        let function = tables.java_function(name, info.class.source_file.as_deref().unwrap_or(""), 0);
        tables.frames.intern(Frame::java(function, line))
    }

    fn java_by_id(&mut self, tables: &mut Tables, id: u64) -> FrameId {
        let Some(name) = self.method_names.as_mut().and_then(|names| names.get(id)) else {
            self.unknown_methods += 1;
            return marker(tables, markers::UNKNOWN_METHOD, FrameType::Jvm);
        };
        let name = JavaMethod {
            class: &name.class,
            method: &name.method,
            descriptor: &name.descriptor,
            normalise: self.normalise_class_names,
        };
        let function = tables.java_function(name, "", 0);
        tables.frames.intern(Frame::java(function, 0))
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::record::NO_OBJECT;

    use super::*;
    use crate::vm::STUBS;

    /// A resolver that knows no method, neither by pointer nor by id.
    fn without_methods() -> FrameResolver {
        FrameResolver {
            methods: None,
            method_names: None,
            stubs: &STUBS,
            normalise_class_names: true,
            subject_form: |_| SubjectForm::None,
            unknown_methods: 0,
        }
    }

    /// Regression: a method that was known by its id only, and no longer existed, was marked but not counted.
    #[test]
    fn each_unknown_method_is_marked_and_counted_however_it_is_known() {
        let mut resolver = without_methods();
        let mut tables = Tables::new();
        let unknown = marker(&mut tables, markers::UNKNOWN_METHOD, FrameType::Jvm);
        let kinds = [
            FrameKind::Interpreted,
            FrameKind::Compiled,
            FrameKind::Inlined,
            FrameKind::NativeMethod,
            FrameKind::Java,
            FrameKind::MethodId,
        ];
        for (before, kind) in (0..).zip(kinds) {
            assert_eq!(resolver.unknown_methods, before, "{kind:?}");
            let frame = resolver.frame(&mut tables, RawFrame { kind, aux: 0, value: 0x1000 });
            assert_eq!(frame, Some(unknown), "{kind:?}");
        }
        assert_eq!(resolver.unknown_methods, kinds.len() as u64);
    }

    /// Regression: native and kernel frames were named in drains. One drain happens at the safepoint where a
    /// collection begins, and any other delays it: the program stood still while symbol tables were read.
    #[test]
    fn frames_whose_names_may_be_in_files_are_not_named_in_a_drain() {
        let mut resolver = without_methods();
        let mut tables = Tables::new();
        for (kind, aux) in [
            (FrameKind::Native, 1),
            (FrameKind::Native, NO_OBJECT),
            (FrameKind::Remote, 1),
            (FrameKind::Kernel, 0),
        ] {
            assert_eq!(resolver.frame(&mut tables, RawFrame { kind, aux, value: 0x1000 }), None, "{kind:?}");
        }
        let stub = RawFrame { kind: FrameKind::Stub, aux: 0, value: 0 };
        let stub = resolver.frame(&mut tables, stub).expect("a frame");
        assert!(matches!(tables.frames.get(stub), Frame::Stub { .. }));
    }
}

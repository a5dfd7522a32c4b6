//! The classes that events refer to: of an allocated or live object, of a monitor, of an exception.

use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::types::{Constant, FieldKind, Type};
use otlpprof_jfr::values::Value;
use otlpprof_model::attribute_keys::{EXCEPTION_TYPE, MONITOR_CLASS, OBJECT_CLASS};
use otlpprof_model::{LONGEST_NAME, java_type_name};

/// The role of a class in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Object,
    Monitor,
    Exception,
}

/// Fields that refer to a class or to an object with a class. The names come from HotSpot, async-profiler and
/// Datadog's profiler.
const FIELDS: [(&str, Subject); 5] = [
    ("objectClass", Subject::Object),
    // In `jdk.OldObjectSample`.
    ("object", Subject::Object),
    ("monitorClass", Subject::Monitor),
    ("parkedClass", Subject::Monitor),
    ("thrownClass", Subject::Exception),
];

impl Subject {
    /// The number of roles.
    pub(super) const ALL: usize = 3;

    /// The field of a type that refers to a class, and the role of this class.
    pub(super) fn of_type(event: &Type) -> Option<(&'static str, Self)> {
        FIELDS.into_iter().find(|(name, _)| {
            let field = event.field(name);
            field.is_some_and(|field| {
                let is_object = ["java.lang.Class", "jdk.types.OldObject"].contains(&&*field.type_name);
                is_object && !field.is_array && matches!(field.kind, FieldKind::Constant(_))
            })
        })
    }

    /// The attribute's key.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Object => OBJECT_CLASS,
            Self::Monitor => MONITOR_CLASS,
            Self::Exception => EXCEPTION_TYPE,
        }
    }
}

/// The name of a class, or of an object's class; `None` if the chunk does not contain it.
pub(super) fn class_name(chunk: Chunk<'_>, constant: Constant) -> Option<String> {
    let mut class = Value::Constant(constant).as_struct(chunk)?;
    if &*class.type_of().name == "jdk.types.OldObject" {
        class = class.get("type")?.as_struct(chunk)?;
    }
    let name = class
        .get("name")
        .and_then(|name| chunk.text_up_to(name, LONGEST_NAME))
        .filter(|name| !name.is_empty())?;
    Some(java_type_name(&name, true))
}

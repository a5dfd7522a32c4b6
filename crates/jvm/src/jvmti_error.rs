//! JVMTI's errors (`jvmtiError` in `jvmti.h`, 11-25).

use std::fmt;

/// An error that a JVMTI function returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JvmtiError {
    /// The function.
    pub function: &'static str,
    /// The `jvmtiError`, or the code that `GetEnv` returned.
    pub code: i32,
}

impl JvmtiError {
    /// The error's name without `JVMTI_ERROR_`, such as `ABSENT_INFORMATION`.
    pub fn name(&self) -> &'static str {
        ERROR_NAMES.iter().find(|(code, _)| *code == self.code).map_or("unknown error", |(_, name)| name)
    }
}

impl fmt::Display for JvmtiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JVMTI {} failed: {} ({})", self.function, self.name(), self.code)
    }
}

impl std::error::Error for JvmtiError {}

/// `GetEnv`: no environment exists in this phase (prims/jvmtiExport.cpp, get_jvmti_interface, 11-25).
pub const DETACHED: i32 = -2;
/// The thread has ended.
pub const THREAD_NOT_ALIVE: i32 = 15;
/// The property does not exist.
pub const NOT_AVAILABLE: i32 = 98;
/// The function cannot be called in this phase.
pub const WRONG_PHASE: i32 = 112;

/// The names of all error codes. `GetEnv` returns the negative ones (`jni.h`).
pub const ERROR_NAMES: &[(i32, &str)] = &[
    (-3, "JNI_EVERSION"),
    (DETACHED, "JNI_EDETACHED"),
    (-1, "JNI_ERR"),
    (10, "INVALID_THREAD"),
    (11, "INVALID_THREAD_GROUP"),
    (12, "INVALID_PRIORITY"),
    (13, "THREAD_NOT_SUSPENDED"),
    (14, "THREAD_SUSPENDED"),
    (THREAD_NOT_ALIVE, "THREAD_NOT_ALIVE"),
    (20, "INVALID_OBJECT"),
    (21, "INVALID_CLASS"),
    (22, "CLASS_NOT_PREPARED"),
    (23, "INVALID_METHODID"),
    (24, "INVALID_LOCATION"),
    (25, "INVALID_FIELDID"),
    (26, "INVALID_MODULE"),
    (31, "NO_MORE_FRAMES"),
    (32, "OPAQUE_FRAME"),
    (34, "TYPE_MISMATCH"),
    (35, "INVALID_SLOT"),
    (40, "DUPLICATE"),
    (41, "NOT_FOUND"),
    (50, "INVALID_MONITOR"),
    (51, "NOT_MONITOR_OWNER"),
    (52, "INTERRUPT"),
    (60, "INVALID_CLASS_FORMAT"),
    (61, "CIRCULAR_CLASS_DEFINITION"),
    (62, "FAILS_VERIFICATION"),
    (63, "UNSUPPORTED_REDEFINITION_METHOD_ADDED"),
    (64, "UNSUPPORTED_REDEFINITION_SCHEMA_CHANGED"),
    (65, "INVALID_TYPESTATE"),
    (66, "UNSUPPORTED_REDEFINITION_HIERARCHY_CHANGED"),
    (67, "UNSUPPORTED_REDEFINITION_METHOD_DELETED"),
    (68, "UNSUPPORTED_VERSION"),
    (69, "NAMES_DONT_MATCH"),
    (70, "UNSUPPORTED_REDEFINITION_CLASS_MODIFIERS_CHANGED"),
    (71, "UNSUPPORTED_REDEFINITION_METHOD_MODIFIERS_CHANGED"),
    (72, "UNSUPPORTED_REDEFINITION_CLASS_ATTRIBUTE_CHANGED"),
    (73, "UNSUPPORTED_OPERATION"),
    (79, "UNMODIFIABLE_CLASS"),
    (80, "UNMODIFIABLE_MODULE"),
    (NOT_AVAILABLE, "NOT_AVAILABLE"),
    (99, "MUST_POSSESS_CAPABILITY"),
    (100, "NULL_POINTER"),
    (101, "ABSENT_INFORMATION"),
    (102, "INVALID_EVENT_TYPE"),
    (103, "ILLEGAL_ARGUMENT"),
    (104, "NATIVE_METHOD"),
    (106, "CLASS_LOADER_UNSUPPORTED"),
    (110, "OUT_OF_MEMORY"),
    (111, "ACCESS_DENIED"),
    (WRONG_PHASE, "WRONG_PHASE"),
    (113, "INTERNAL"),
    (115, "UNATTACHED_THREAD"),
    (116, "INVALID_ENVIRONMENT"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_function_and_reason() {
        let error = JvmtiError { function: "AddCapabilities", code: 98 };
        assert_eq!(error.to_string(), "JVMTI AddCapabilities failed: NOT_AVAILABLE (98)");
        let error = JvmtiError { function: "GetPhase", code: 9999 };
        assert_eq!(error.to_string(), "JVMTI GetPhase failed: unknown error (9999)");
    }
}

//! The names of HotSpot's stubs, by which they are told from native functions in profiles that do not say so.
//!
//! The names come from JVMTI's event DynamicCodeGenerated, which other profilers show as native frames.
//! Sources: HotSpot 11 to 27, `runtime/sharedRuntime.cpp`, `runtime/stubRoutines.cpp`, `runtime/stubInfo.cpp`
//! (26 on), `cpu/*/stubGenerator_*.cpp`, `c1/c1_Runtime1.cpp`, `opto/runtime.cpp`, `code/vtableStubs.cpp`.

/// Names of blobs and routines.
const NAMES: [&str; 57] = [
    "Interpreter",
    "I2C/C2I adapters",
    "MethodHandles adapters",
    "DeoptimizationBlob",
    "ExceptionBlob",
    "SafepointBlob",
    "UncommonTrapBlob",
    "vtable chunks",
    "vtable stub",
    "itable stub",
    "call_stub",
    "catch_exception",
    "forward exception",
    "forward_exception",
    "wrong_method_stub",
    "wrong_method_abstract_stub",
    "ic_miss_stub",
    "resolve_opt_virtual_call",
    "resolve_virtual_call",
    "resolve_static_call",
    "nmethod_entry_barrier",
    "method_entry_barrier",
    "Cont thaw",
    "Cont thaw return barrier",
    "Cont thaw return barrier exception",
    "cont_thaw",
    "cont_return_barrier",
    "_new_instance_Java",
    "_new_array_Java",
    "_new_array_nozero_Java",
    "_multianewarray2_Java",
    "_multianewarray3_Java",
    "_complete_monitor_locking_Java",
    "_monitor_notify_Java",
    "_monitor_notifyAll_Java",
    "_rethrow_stub",
    "_rethrow_Java",
    "_slow_arraycopy_Java",
    "_register_finalizer_Java",
    "jbyte_fill",
    "jshort_fill",
    "jint_fill",
    "arrayof_jbyte_fill",
    "arrayof_jshort_fill",
    "arrayof_jint_fill",
    "updateBytesCRC32",
    "updateBytesCRC32C",
    "updateBytesAdler32",
    "multiplyToLen",
    "squareToLen",
    "mulAdd",
    "montgomeryMultiply",
    "montgomerySquare",
    "vectorizedMismatch",
    "ghash_processBlocks",
    "poly1305_processBlocks",
    "chacha20Block",
];
/// Beginnings of names.
const BEGINNINGS: [&str; 7] = [
    "StubRoutines (",
    "Stub Generator ",
    "C1 Runtime ",
    "C2 Runtime ",
    "Shared Runtime ",
    "aescrypt_",
    "cipherBlockChaining_",
];
/// Ends of names.
const ENDS: [&str; 8] = [
    " Runtime1 stub",
    " (C1 runtime)",
    " (C2 runtime)",
    " (shared runtime)",
    " (stub gen)",
    "_arraycopy",
    "_arraycopy_uninit",
    "_implCompress",
];

/// Whether a native function without a place is a stub of HotSpot, going by its name.
pub fn is_hotspot_stub(name: &str) -> bool {
    NAMES.contains(&name)
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_are_known_by_their_names() {
        for stub in [
            "Interpreter",
            "call_stub",
            "itable stub",
            "StubRoutines (1)",
            "StubRoutines (final stubs)",
            "Stub Generator call_stub_stub",
            "call_stub_stub (stub gen)",
            "ic_miss_blob (shared runtime)",
            "new_instance Runtime1 stub",
            "C1 Runtime new_instance_blob",
            "jint_disjoint_arraycopy",
            "sha256_implCompress",
        ] {
            assert!(is_hotspot_stub(stub), "{stub}");
        }
        for function in ["malloc", "JavaCalls::call_helper", "Interpreter::run", "vtable for Foo", "stub", ""]
        {
            assert!(!is_hotspot_stub(function), "{function}");
        }
    }
}

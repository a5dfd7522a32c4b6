//! Access to the JVM: JVMTI, HotSpot's data layouts, and the method, stub and thread that an address refers
//! to.
//!
//! In: a JavaVM, and a [`Memory`](otlpprof_core::memory::Memory) to read this process through. Out:
//! [`VmLayout`](otlpprof_core::vm_layout::VmLayout) for the handler's walker, and names for the aggregator.
//! Imports only `core`. `agent` and `aggregate` may call it, a signal handler never.

pub mod boot_classes;
pub mod class_file;
pub mod class_methods;
pub mod extension_events;
pub mod flags;
pub mod interpreter_code;
pub mod java_calls;
pub mod java_threads;
pub mod jvmti;
pub mod jvmti_error;
pub mod jvmti_events;
pub mod jvmti_table;
pub mod layout;
pub mod libjvm;
pub mod line_table;
pub mod live_phase;
pub mod local_references;
pub mod methods;
pub mod modified_utf8;
pub mod monitor_owner;
pub mod native_binding;
pub mod stubs;
pub mod synchronizer_owner;
pub mod system_properties;
pub mod thread_kinds;
pub mod thread_names;
pub mod vm_structs;

mod c_string;
mod interpreter_slots;
pub mod method_ids;
pub mod method_names;
mod method_reader;
pub mod redefinition;
pub mod retransform;
mod used_slots;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64"]
mod arch {
    pub(super) mod archived_entry;
    pub(super) mod compiled_prologue;
    pub(super) mod continuation_entry;
    pub(super) mod interpreter_code;
    pub(super) mod interpreter_slots;
    pub(super) mod thaw_stub;
    pub(super) mod vm_frame;
}

#[cfg(target_arch = "x86_64")]
#[path = "x86_64"]
mod arch {
    pub(super) mod archived_entry;
    pub(super) mod compiled_prologue;
    pub(super) mod continuation_entry;
    pub(super) mod interpreter_code;
    pub(super) mod interpreter_slots;
    pub(super) mod thaw_stub;
    pub(super) mod vm_frame;
}

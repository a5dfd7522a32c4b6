//! Access to the JVM: JVMTI, HotSpot's data layouts, and the method, stub and thread that an address refers
//! to.
//!
//! In: a JavaVM, and a [`Memory`](otlpprof_core::memory::Memory) to read this process through. Out:
//! [`VmLayout`](otlpprof_core::vm_layout::VmLayout) for the handler's walker, and names for the aggregator.
//! Imports only `core`. `agent` and `aggregate` may call it, a signal handler never.
//!
//! | The VM's interfaces | Duty |
//! |---|---|
//! | [`libjvm`] | the libjvm of this process |
//! | [`jvmti`] | a JVMTI environment |
//! | [`jvmti_env`] | the target of a `jvmtiEnv*`, in the layout of JVMTI |
//! | [`jvmti_table`] | the function table of a JVMTI environment |
//! | [`jvmti_events`] | JVMTI's events and their callbacks |
//! | [`extension_events`] | HotSpot's events beyond the specification of JVMTI |
//! | [`jvmti_error`] | JVMTI's errors |
//! | [`live_phase`] | the end of the time in which the VM may be called |
//! | [`local_references`] | capacity for many local references at once |
//! | [`java_calls`] | calls of Java methods by name |
//! | [`system_properties`] | Java's system properties |
//! | [`flags`] | the VM's flags |
//!
//! | The VM's structures in memory | Duty |
//! |---|---|
//! | [`vm_structs`] | the tables in which libjvm describes its own structures |
//! | [`layout`] | the layout of these structures for the handler's walker, learnt and checked |
//! | [`interpreter_code`] | the stages of the interpreter's entries and exits |
//! | `interpreter_slots` | the frame slots that the interpreter's code and the call stub use |
//! | `used_slots` | the frame slots that have been found in instructions |
//! | `c_string` | C strings in memory that may be unmapped |
//!
//! | Methods and generated code | Duty |
//! |---|---|
//! | [`methods`] | the method that a `Method*` from a stack refers to |
//! | `method_reader` | HotSpot's description of one `Method*` |
//! | [`line_table`] | a method's line table |
//! | [`method_ids`] | the creation of the jmethodIDs of all methods |
//! | [`method_names`] | names of methods by jmethodID, for a VM of unknown layout |
//! | [`class_methods`] | the `Method*` of a method whose class is held by a JNI reference |
//! | [`stubs`] | names and ranges of generated code that belongs to no method |
//! | [`modified_utf8`] | the encoding of HotSpot's symbols and JNI's strings |
//!
//! | Threads and locks | Duty |
//! |---|---|
//! | [`java_threads`] | the VM's list of Java threads, read from memory |
//! | [`thread_kinds`] | the kind of thread that a `java.lang.Thread` represents |
//! | [`thread_names`] | names and ids of threads, as Java sees them |
//! | [`monitor_owner`] | the owner of the monitor that a thread waits for |
//! | [`synchronizer_owner`] | the owner of a lock of `java.util.concurrent` |
//!
//! | Changed classes | Duty |
//! |---|---|
//! | [`boot_classes`] | the agent's own classes in the boot loader |
//! | [`class_file`] | class files with instrumented methods |
//! | [`retransform`] | changes of classes in use |
//! | [`redefinition`] | the redefinitions of classes, by whatever agent of the process |
//! | [`native_binding`] | the function that a native method is bound to |
//!
//! | In the architecture's folder | Duty |
//! |---|---|
//! | `interpreter_code` | the stages of the interpreter, by its instructions |
//! | `interpreter_slots` | the frame slots, by the instructions that use them |
//! | `compiled_prologue` | the instructions by which compiled methods build their frames |
//! | `archived_entry` | entries of methods in an archive of classes |
//! | `continuation_entry` | the offset at which a thread keeps its continuation's entry |
//! | `thaw_stub` | the stages of the stubs that thaw frozen frames |
//! | `vm_frame` | the layout of HotSpot's class `frame` |

#[cfg(all(without_rules_of_26, not(debug_assertions)))]
compile_error!("without_rules_of_26 is for builds of tests (scripts/without-rules-of-26.sh)");

pub mod boot_classes;
pub mod class_file;
pub mod class_methods;
pub mod extension_events;
pub mod flags;
pub mod interpreter_code;
pub mod java_calls;
pub mod java_threads;
pub mod jvmti;
pub mod jvmti_env;
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

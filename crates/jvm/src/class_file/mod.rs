//! Instruments class files (JVM specification, chapter 4): chosen methods report the duration of their calls,
//! and constructors report the objects that they initialise.
//!
//! In: the bytes of a class file, which may come from anyone. Out: a class file whose methods call a class of
//! the agent; everything else is copied. This module does not verify classes; the VM does.
//!
//! | Class files | Duty |
//! |---|---|
//! | `reader` | bounds-checked reads |
//! | `pool` | the constant pool, read and extended |
//! | `instructions` | lengths and jump targets of instructions |
//! | `frames` | the types that StackMapTables declare for the verifier |
//! | `moved_code` | code with insertions |
//! | `changed_class` | replaces the code of some methods of a class |
//! | `own_class` | classes of the agent |
//! | `error` | the reasons why a class file cannot be changed |
//!
//! | Results | Duty |
//! |---|---|
//! | `timed_code` | the code of a method that reads the clock |
//! | [`timed_class`] | a class with timed methods |
//! | [`exit_class`] | the classes that timed methods call |
//! | [`binding_class`] | the class that binds native methods |
//! | [`probe_class`] | the class of stacks that the agent compares with the VM's description |
//! | [`instrumented_class`] | a class whose constructors report each object |

pub mod binding_class;
mod changed_class;
mod error;
pub mod exit_class;
mod frames;
mod instructions;
pub mod instrumented_class;
mod moved_code;
mod own_class;
mod pool;
pub mod probe_class;
mod reader;
pub mod timed_class;
mod timed_code;

pub use error::ClassFileError;
pub use own_class::OwnNativeMethod;

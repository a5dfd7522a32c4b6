//! Class files (JVM specification, chapter 4): has chosen methods tell how long each of their calls took, and constructors
//! what they make.
//!
//! In: the bytes of a class file, which may be anyone's. Out: those of one whose methods call a class of ours; everything
//! else is copied. No class is checked here: that is for the VM.
//!
//! | Module | Duty |
//! |---|---|
//! | `reader` | bounds-checked reads |
//! | `pool` | the constant pool, read and added to |
//! | `instructions` | instructions: how long they are, where they lead |
//! | `frames` | the types that a verifier is told of |
//! | `moved_code` | code to which something is added |
//! | `changed_class` | a class some of whose methods have other code |
//! | `own_class` | classes of ours that have one method |
//! | `timed_code` | the code of a method that reads the clock |
//! | [`timed_class`] | a class with timed methods |
//! | [`exit_class`] | the classes that they call |
//! | [`telling_class`] | a class whose constructors tell of each object |

mod changed_class;
pub mod exit_class;
mod frames;
mod instructions;
mod moved_code;
mod own_class;
mod pool;
mod reader;
pub mod telling_class;
pub mod timed_class;
mod timed_code;

use thiserror::Error;

pub use own_class::OwnNativeMethod;

/// Why a class file, or one of its methods, is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClassFileError {
    /// It ends too early.
    #[error("its class file ends inside of something")]
    Truncated,
    /// It is not what the specification says.
    #[error("its class file is malformed")]
    Malformed,
    /// It would be larger than a class file may be.
    #[error("it is too large to be added to")]
    TooLarge,
    /// What the VM compiles would become something that it only interprets.
    #[error("with what is added its code is larger than what the VM compiles")]
    TooLargeToCompile,
}

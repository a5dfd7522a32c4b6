//! The reasons why a class file cannot be changed.

use thiserror::Error;

/// The reason why a class file, or one of its methods, is left unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClassFileError {
    /// The class file ends too early.
    #[error("its class file is truncated")]
    Truncated,
    /// The class file violates the specification.
    #[error("its class file is malformed")]
    Malformed,
    /// The result would exceed a limit of the class file format.
    #[error("with the added code it would exceed a limit of class files")]
    TooLarge,
    /// The VM compiles the method as it is, and would only interpret the larger one.
    #[error("with the added code it would be larger than the VM compiles")]
    TooLargeToCompile,
}

//! What a stack is made of.

use crate::core::address::{ElfVaddr, FileOffset};
use crate::core::build_id::BuildId;

use super::tables::{FunctionId, MappingId, StringId};

/// One frame of a stack. Inlined calls are frames of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// A Java method.
    Java {
        /// The method.
        function: FunctionId,
        /// The source line, 0 if not known.
        line: u32,
        /// How it was executed, where that is told.
        execution: Option<Execution>,
    },
    /// Native code that a backend is to symbolize.
    RemoteNative {
        /// The object; its build-id is what a backend looks symbols up by.
        mapping: MappingId,
        /// The lookup address: a return address already less one.
        address: ElfVaddr,
    },
    /// Native code with a local symbol, or named `[name+0xoffset]`.
    Native {
        /// The object, where known.
        mapping: Option<MappingId>,
        /// The lookup address, where known.
        address: Option<ElfVaddr>,
        /// The symbol.
        function: FunctionId,
        /// The source line, 0 if not known.
        line: u32,
    },
    /// A kernel function.
    Kernel {
        /// The kernel, where known.
        mapping: Option<MappingId>,
        /// The lookup address in it, where known.
        address: Option<ElfVaddr>,
        /// The symbol.
        function: FunctionId,
    },
    /// A frame that is no function of the program: a stub of the VM, or a note in brackets such as
    /// `[truncated]` and `[unwalkable: reason]`.
    Marker {
        /// What it says.
        function: FunctionId,
        /// The kind of code it stands for.
        frame_type: FrameType,
    },
}

impl Frame {
    /// A Java method, however it was executed.
    pub const fn java(function: FunctionId, line: u32) -> Self {
        Self::Java { function, line, execution: None }
    }

    /// The kind of code.
    pub const fn frame_type(&self) -> FrameType {
        match *self {
            Self::Java { .. } => FrameType::Jvm,
            Self::RemoteNative { .. } | Self::Native { .. } => FrameType::Native,
            Self::Kernel { .. } => FrameType::Kernel,
            Self::Marker { frame_type, .. } => frame_type,
        }
    }
}

/// How a Java method was executed, as recordings tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Execution {
    /// Bytecode by bytecode.
    Interpreted,
    /// As machine code of either compiler, or of the second one where the first is told from it.
    Compiled,
    /// As machine code of the first compiler.
    C1,
    /// Within its caller's machine code.
    Inlined,
    /// It is a native method.
    Native,
}

impl Execution {
    /// The key of the attribute that carries it.
    pub const KEY: &'static str = "otlpprof.frame.execution";

    /// The attribute's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interpreted => "interpreted",
            Self::Compiled => "compiled",
            Self::C1 => "c1",
            Self::Inlined => "inlined",
            Self::Native => "native",
        }
    }
}

/// The kinds of code that appear here, a subset of the semantic conventions' `profile.frame.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameType {
    /// Code of the Java virtual machine's programs.
    Jvm,
    /// Machine code.
    Native,
    /// The kernel.
    Kernel,
}

impl FrameType {
    /// The key of the attribute that carries it.
    pub const KEY: &'static str = "profile.frame.type";

    /// The attribute's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Jvm => "jvm",
            Self::Native => "native",
            Self::Kernel => "kernel",
        }
    }
}

/// A function, as a frame refers to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Function {
    /// As users read it: `com.example.Outer$Inner.method`, a demangled symbol, a marker's text.
    pub name: StringId,
    /// As the system has it: with the descriptor, mangled; or empty.
    pub system_name: StringId,
    /// Whether the system name is `name` with a descriptor, and so says more than it only where a method is overloaded.
    pub is_method: bool,
    /// The source file, or empty.
    pub filename: StringId,
    /// The function's first line, 0 if not known.
    pub start_line: u32,
}

/// A segment of a loaded object. At least one of `build_id` and `htlhash` must be known for it to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The segment's first ELF virtual address.
    pub memory_start: ElfVaddr,
    /// One past its last ELF virtual address.
    pub memory_limit: ElfVaddr,
    /// Where the segment begins in the file.
    pub file_offset: FileOffset,
    /// The object's path or name.
    pub filename: StringId,
    /// The GNU build-id.
    pub build_id: Option<BuildId>,
    /// `process.executable.build_id.htlhash`: hexadecimal, from the file's head, tail and length.
    pub htlhash: Option<StringId>,
}

//! The elements of a stack.

use otlpprof_core::address::{ElfVaddr, FileOffset};
use otlpprof_core::build_id::BuildId;

use super::ids::{FunctionId, MappingId, StringId};

/// One frame of a stack. Inlined calls are frames of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// A Java method.
    Java {
        /// The method.
        function: FunctionId,
        /// The source line; 0 if unknown.
        line: u32,
        /// The way in which the method was executed, if the source states it.
        execution: Option<Execution>,
    },
    /// Native code that is left to a backend to symbolize.
    RemoteNative {
        /// The object. Backends look symbols up by its build-id.
        mapping: MappingId,
        /// The lookup address; for a return address it has already been decremented by one.
        address: ElfVaddr,
    },
    /// Native code with a local symbol, or named `[name+0xoffset]`.
    Native {
        /// The object, if known.
        mapping: Option<MappingId>,
        /// The lookup address, if known.
        address: Option<ElfVaddr>,
        /// The symbol.
        function: FunctionId,
        /// The source line; 0 if unknown.
        line: u32,
    },
    /// A kernel function.
    Kernel {
        /// The kernel, if known.
        mapping: Option<MappingId>,
        /// The lookup address in the kernel, if known.
        address: Option<ElfVaddr>,
        /// The symbol.
        function: FunctionId,
    },
    /// Code that the VM has generated and that belongs to no method: a stub, an adapter, the interpreter.
    Stub {
        /// The VM's name of the code.
        function: FunctionId,
    },
    /// A frame that is no code: one of the [`markers`](super::markers) in brackets.
    Marker {
        /// The marker's text.
        function: FunctionId,
        /// The kind of code that the marker stands for.
        frame_type: FrameType,
    },
}

impl Frame {
    /// A Java method, executed in an unstated way.
    pub const fn java(function: FunctionId, line: u32) -> Self {
        Self::Java { function, line, execution: None }
    }

    /// The kind of code.
    pub const fn frame_type(&self) -> FrameType {
        match *self {
            Self::Java { .. } => FrameType::Jvm,
            Self::RemoteNative { .. } | Self::Native { .. } | Self::Stub { .. } => FrameType::Native,
            Self::Kernel { .. } => FrameType::Kernel,
            Self::Marker { frame_type, .. } => frame_type,
        }
    }
}

/// The kind of code of a [`Frame::Stub`], as an attribute.
pub const STUB_KIND: &str = "stub";

/// The way in which a Java method was executed, as recordings state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Execution {
    /// Interpreted.
    Interpreted,
    /// Machine code of either compiler, or of the second one in recordings that distinguish them.
    Compiled,
    /// Machine code of the first compiler.
    C1,
    /// Machine code inlined into the caller's.
    Inlined,
    /// A native method.
    Native,
}

impl Execution {
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
    /// Java code.
    Jvm,
    /// Machine code.
    Native,
    /// Kernel code.
    Kernel,
}

impl FrameType {
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
    /// The name for users: `com.example.Outer$Inner.method`, a demangled symbol, or a marker's text.
    pub name: StringId,
    /// The system's name: with a descriptor, or mangled; or empty.
    pub system_name: StringId,
    /// Whether the system name is `name` with a descriptor. Such a system name adds information only if the
    /// method is overloaded.
    pub is_method: bool,
    /// The source file, or empty.
    pub filename: StringId,
    /// The function's first line; 0 if unknown.
    pub start_line: u32,
}

/// A segment of a loaded object. It is written only if `build_id` or `htlhash` is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The segment's first ELF virtual address.
    pub memory_start: ElfVaddr,
    /// One past the segment's last ELF virtual address.
    pub memory_limit: ElfVaddr,
    /// The segment's offset in the file.
    pub file_offset: FileOffset,
    /// The object's path or name.
    pub filename: StringId,
    /// The GNU build-id.
    pub build_id: Option<BuildId>,
    /// `process.executable.build_id.htlhash`, in hexadecimal: a hash of the file's head, tail and length.
    pub htlhash: Option<StringId>,
}

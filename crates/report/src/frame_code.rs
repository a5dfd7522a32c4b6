//! The code in which the leaf of a stack is, frame by frame: whose code a frame is, and which frames work for
//! their callers.

use super::frame_origin::FrameOrigin;
use super::frame_table::{FrameEntry, FrameKind, FrameTable};

/// The code of a frame, or that of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameCode {
    /// No code: a mark, or this profiler's Java classes.
    Nothing,
    /// The C library, which works for its caller.
    CLibrary,
    /// A Java method outside of the JDK.
    Program,
    /// A Java method or a native library of the JDK.
    Jdk,
    /// The VM, which works for its caller where that is a Java method.
    Vm,
    /// A collection, or another of a collector's operations, in the VM's own thread.
    Collection,
    /// Another native library, or native code in an unknown object.
    Native,
    /// The kernel.
    Kernel,
    /// A function in another language.
    OtherLanguage,
}

impl FrameCode {
    /// All codes, in the order of their numbers.
    pub(super) const ALL: [Self; 9] = [
        Self::Nothing,
        Self::CLibrary,
        Self::Program,
        Self::Jdk,
        Self::Vm,
        Self::Collection,
        Self::Native,
        Self::Kernel,
        Self::OtherLanguage,
    ];

    /// The code of a frame.
    pub(super) fn of(frame: &FrameEntry, origin: FrameOrigin) -> Self {
        match frame.kind {
            FrameKind::Marker => Self::Nothing,
            FrameKind::Kernel => Self::Kernel,
            FrameKind::Stub => Self::Vm,
            FrameKind::Other(_) => Self::OtherLanguage,
            FrameKind::Java if frame.name.starts_with(PROFILER) => Self::Nothing,
            FrameKind::Java if is_of_jdk(&frame.name) => Self::Jdk,
            FrameKind::Java => Self::Program,
            FrameKind::Native => match origin {
                FrameOrigin::CLibrary => Self::CLibrary,
                FrameOrigin::JdkLibrary => Self::Jdk,
                FrameOrigin::VmLibrary if is_collectors_operation(&frame.name) => Self::Collection,
                FrameOrigin::VmLibrary => Self::Vm,
                FrameOrigin::Unknown | FrameOrigin::Jvm | FrameOrigin::Object => Self::Native,
            },
        }
    }

    /// The code of a stack whose leaf is this frame, on a stack of the code `callers`.
    pub(super) fn called_by(self, callers: Self) -> Self {
        match (self, callers) {
            (Self::Nothing, _) => callers,
            (Self::CLibrary, Self::Nothing) => self,
            (Self::CLibrary, _) => callers,
            (Self::Vm | Self::Collection, Self::Program | Self::Jdk) => callers,
            (Self::Vm, Self::Collection) => callers,
            _ => self,
        }
    }

    /// Whether a frame of this code, which has this origin, shows that a JVM runs.
    fn is_of_jvm(self, origin: FrameOrigin) -> bool {
        let is_of_jvm = matches!(origin, FrameOrigin::Jvm | FrameOrigin::JdkLibrary | FrameOrigin::VmLibrary);
        is_of_jvm && self != Self::Nothing || matches!(self, Self::Jdk | Self::Vm | Self::Collection)
    }
}

/// The codes of frames.
#[derive(Debug)]
pub(super) struct FrameCodes {
    /// By frame.
    pub(super) codes: Vec<FrameCode>,
    /// Whether a frame shows that a JVM runs.
    pub(super) has_jvm: bool,
}

impl FrameCodes {
    /// The codes of all frames of a table.
    pub(super) fn of(frames: &FrameTable) -> Self {
        let mut has_jvm = false;
        let codes = frames.all().iter().zip(frames.origins()).map(|(frame, &origin)| {
            let code = FrameCode::of(frame, origin);
            has_jvm |= code.is_of_jvm(origin);
            code
        });
        let codes = codes.collect();
        Self { codes, has_jvm }
    }
}

/// The package of this profiler's Java classes.
const PROFILER: &str = "io.otlpprof.";

/// The packages of the JDK's modules, those of JDK 11 to 27, that no library shares. A library may have other
/// packages in `javax` and `com.sun`, such as `javax.servlet` and `com.sun.jna`.
const JDK_PACKAGES: [&str; 59] = [
    "java.",
    "jdk.",
    "sun.",
    "javax.accessibility.",
    "javax.annotation.processing.",
    "javax.crypto.",
    "javax.imageio.",
    "javax.lang.model.",
    "javax.management.",
    "javax.naming.",
    "javax.net.",
    "javax.print.",
    "javax.rmi.ssl.",
    "javax.script.",
    "javax.security.auth.",
    "javax.security.cert.",
    "javax.security.sasl.",
    "javax.smartcardio.",
    "javax.sound.",
    "javax.sql.",
    "javax.swing.",
    "javax.tools.",
    "javax.transaction.xa.",
    "javax.xml.catalog.",
    "javax.xml.crypto.",
    "javax.xml.datatype.",
    "javax.xml.namespace.",
    "javax.xml.parsers.",
    "javax.xml.stream.",
    "javax.xml.transform.",
    "javax.xml.validation.",
    "javax.xml.xpath.",
    "com.sun.beans.",
    "com.sun.crypto.provider.",
    "com.sun.imageio.",
    "com.sun.jarsigner.",
    "com.sun.java.",
    "com.sun.java_cup.internal.",
    "com.sun.jdi.",
    "com.sun.jmx.",
    "com.sun.jndi.",
    "com.sun.management.",
    "com.sun.media.sound.",
    "com.sun.naming.",
    "com.sun.net.",
    "com.sun.nio.",
    "com.sun.org.",
    "com.sun.proxy.",
    "com.sun.rowset.",
    "com.sun.security.",
    "com.sun.source.",
    "com.sun.swing.",
    "com.sun.tools.",
    "com.sun.xml.internal.",
    "netscape.javascript.",
    "org.ietf.jgss.",
    "org.jcp.xml.dsig.internal.",
    "org.w3c.dom.",
    "org.xml.sax.",
];

/// Whether a method's class is the JDK's.
fn is_of_jdk(method: &str) -> bool {
    JDK_PACKAGES.iter().any(|package| method.starts_with(package))
}

/// Whether a function of the VM carries out a collector's operation (`gc/*/*VMOperations.cpp`): with the
/// serial collector collections run in the VM's own thread.
fn is_collectors_operation(function: &str) -> bool {
    const PARTS: [&str; 5] = ["Collect", "GC", "G1", "CMS", "Shenandoah"];
    let class = function.split("::").next().unwrap_or_default();
    let Some(operation) = class.strip_prefix("VM_") else { return false };
    operation.starts_with(['X', 'Z']) || PARTS.iter().any(|part| operation.contains(part))
}

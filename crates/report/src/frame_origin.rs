//! The origin of a frame's code, as far as a message states it beyond the kind of code.
//!
//! A frame of a report has no object: equal functions of several objects are one. So of several origins of a
//! function the highest counts, whatever the order of the messages.

use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::frames::Frame;
use otlpprof_otlp::lookup::DictionaryTables as _;

/// The origin of a frame's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameOrigin {
    /// The message does not state it.
    #[default]
    Unknown,
    /// A method whose message states that a JVM runs it.
    Jvm,
    /// The C library, or a library that compilers add to programs.
    CLibrary,
    /// Any other object.
    Object,
    /// A native library of the JDK, other than the VM.
    JdkLibrary,
    /// The VM's library.
    VmLibrary,
}

/// `profile.frame.type` of Java methods.
const JVM: &str = "jvm";
/// HotSpot's library.
const VM_LIBRARY: &str = "libjvm";

/// The C libraries (glibc, musl), the libraries that GCC and Clang add, and the kernel's code in processes,
/// before the first dot. The launcher's library only waits for the VM and calls it.
const C_LIBRARIES: [&str; 18] = [
    "[vdso]",
    "ld",
    "ld-linux-aarch64",
    "ld-linux-x86-64",
    "ld-musl-aarch64",
    "ld-musl-x86_64",
    "libc",
    "libc++",
    "libc++abi",
    "libdl",
    "libgcc_s",
    "libjli",
    "libm",
    "libpthread",
    "librt",
    "libstdc++",
    "linux-vdso",
    "linux-vdso64",
];

/// The native libraries of OpenJDK 11 to 27 on Linux, before the first dot. Libraries that other programs
/// have too (`libfreetype`, `liblcms`) are left out.
const JDK_LIBRARIES: [&str; 34] = [
    "libattach",
    "libawt",
    "libawt_headless",
    "libawt_xawt",
    "libdt_socket",
    "libextnet",
    "libfontmanager",
    "libinstrument",
    "libj2gss",
    "libj2pcsc",
    "libj2pkcs11",
    "libjaas",
    "libjava",
    "libjavajpeg",
    "libjawt",
    "libjdwp",
    "libjimage",
    "libjsig",
    "libjsound",
    "libjsvml",
    "libmanagement",
    "libmanagement_agent",
    "libmanagement_ext",
    "libmlib_image",
    "libnet",
    "libnio",
    "libprefs",
    "librmi",
    "libsctp",
    "libsimdsort",
    "libsplashscreen",
    "libsyslookup",
    "libverify",
    "libzip",
];

impl FrameOrigin {
    /// The origin of code in the object of this path.
    fn of_object(path: &str) -> Self {
        let file = path.rsplit('/').next().unwrap_or_default();
        let name = file.split('.').next().unwrap_or_default();
        // Files of glibc before 2.34 have the release in their names: `libc-2.31.so`.
        match name.strip_suffix("-2").unwrap_or(name) {
            "" => Self::Unknown,
            VM_LIBRARY => Self::VmLibrary,
            name if JDK_LIBRARIES.contains(&name) => Self::JdkLibrary,
            name if C_LIBRARIES.contains(&name) => Self::CLibrary,
            _ => Self::Object,
        }
    }
}

/// Finds the origins of the frames of messages, and remembers those of the present message's mappings.
#[derive(Debug, Default)]
pub(super) struct FrameOrigins {
    /// By mapping, once it is known.
    of_mappings: Vec<Option<FrameOrigin>>,
}

impl FrameOrigins {
    /// Begins the message with these tables.
    pub(super) fn begin(&mut self, tables: EncodedTables<'_>) {
        self.of_mappings.clear();
        self.of_mappings.resize(tables.mappings().len(), None);
    }

    /// The origin of a frame of the present message.
    pub(super) fn of(&mut self, tables: EncodedTables<'_>, frame: &Frame<'_>) -> FrameOrigin {
        if frame.frame_type == JVM {
            return FrameOrigin::Jvm;
        }
        let at = usize::try_from(frame.mapping_index).ok();
        let known = at.and_then(|at| self.of_mappings.get_mut(at));
        known.map_or(FrameOrigin::Unknown, |known| {
            *known.get_or_insert_with(|| {
                let mapping = tables.mapping(frame.mapping_index);
                FrameOrigin::of_object(mapping.map_or("", |mapping| tables.text(mapping.filename_strindex)))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_known_by_the_name_of_its_file() {
        for (path, origin) in [
            ("/opt/jdk/lib/server/libjvm.so", FrameOrigin::VmLibrary),
            ("/opt/jdk/lib/libnio.so", FrameOrigin::JdkLibrary),
            ("/opt/jdk/lib/libjli.so", FrameOrigin::CLibrary),
            ("/lib/x86_64-linux-gnu/libc.so.6", FrameOrigin::CLibrary),
            ("/lib/x86_64-linux-gnu/libc-2.31.so", FrameOrigin::CLibrary),
            ("/lib/ld-musl-x86_64.so.1", FrameOrigin::CLibrary),
            ("[vdso]", FrameOrigin::CLibrary),
            ("/app/libnetty_transport_native_epoll_x86_64.so", FrameOrigin::Object),
            ("/usr/bin/program", FrameOrigin::Object),
            ("", FrameOrigin::Unknown),
        ] {
            assert_eq!(FrameOrigin::of_object(path), origin, "{path}");
        }
    }
}

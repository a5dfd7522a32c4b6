//! The releases of HotSpot, and the facts by which they differ.
//!
//! Code that depends on the release asks a predicate of [`Release`], and compares no numbers itself. Each
//! predicate states the first or last release with the fact, HotSpot's change (JDK-…), HotSpot's file, and
//! the code that reads the answer. The release is the one in which HotSpot's sources changed, whether its
//! layout is known or not. Differences that libjvm's tables show by the existence of a field need no
//! predicate. docs/internals/hotspot.md lists them.

use std::fmt;

use crate::core::method_ids::MethodIds;

/// A feature release of HotSpot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release(u32);

impl Release {
    /// The releases whose layouts have been checked.
    pub const KNOWN: [Self; 4] = [Self(11), Self(17), Self(21), Self(25)];

    /// The release of this number.
    pub const fn new(feature: u32) -> Self {
        Self(feature)
    }

    /// The release that JVMTI's GetVersionNumber states: `0x30000000 | major << 16 | minor << 8 | micro`.
    pub const fn of_jvmti(version_number: i32) -> Self {
        Self((version_number.cast_unsigned() & 0x0fff_ffff) >> 16)
    }

    /// The number of the release, such as 17.
    pub const fn feature(self) -> u32 {
        self.0
    }

    /// Whether the layout of this release has been checked.
    pub fn is_known(self) -> bool {
        Self::KNOWN.contains(&self)
    }

    /// The known releases, separated by commas.
    pub fn known_list() -> String {
        Self::KNOWN.map(|release| release.to_string()).join(", ")
    }

    /// Whether UNSIGNED5 excludes the byte 0: from 20 on (JDK-8292758), `utilities/unsigned5.hpp`, before 20
    /// `code/compressedStream.hpp`. Readers: `layout::method`, `layout::nmethod`, and through these
    /// `core::unsigned5`.
    pub const fn unsigned5_excludes_zero(self) -> bool {
        self.0 >= 20
    }

    /// Whether `nmethod::_comp_level` is one byte instead of an int: from 20 on (JDK-8288477),
    /// `code/nmethod.hpp`, `compiler/compilerDefinitions.hpp` (CompLevel). Reader: `layout::nmethod`.
    pub const fn has_comp_level_byte(self) -> bool {
        self.0 >= 20
    }

    /// Whether the flags of a ConstMethod are a ConstMethodFlags instead of a u2: from 21 on,
    /// `oops/constMethodFlags.hpp`. Reader: `layout::method`.
    pub const fn has_const_method_flags(self) -> bool {
        self.0 >= 21
    }

    /// Whether a CodeBlob locates its code by distances from the blob, has a `_kind`, and has a
    /// `_frame_complete_offset` of two bytes: from 23 on (JDK-8329332, JDK-8329433), `code/codeBlob.hpp`.
    /// Before 23 a blob has pointers to its code, no `_kind`, and an int. Reader: `layout::code`.
    pub const fn has_compact_blob_header(self) -> bool {
        self.0 >= 23
    }

    /// Whether an nmethod is a CompiledMethod, which has pointers to the deoptimisation handlers and to the
    /// scopes: until 22 (JDK-8329332 removes the class in 23), `code/compiledMethod.hpp`. Afterwards the
    /// nmethod has distances. Reader: `layout::nmethod`.
    pub const fn has_compiled_method(self) -> bool {
        self.0 < 23
    }

    /// Whether an nmethod's PcDescs and scopes are outside the code cache, at `_immutable_data`: from 23 on
    /// (JDK-8331087), `code/nmethod.hpp`. Reader: `layout::nmethod`.
    pub const fn has_immutable_nmethod_data(self) -> bool {
        self.0 >= 23
    }

    /// Whether an nmethod's metadata is outside the code cache, at `_mutable_data`: from 25 on (JDK-8343789),
    /// `code/codeBlob.hpp`, `code/nmethod.hpp`. Reader: `layout::nmethod`.
    pub const fn has_mutable_nmethod_data(self) -> bool {
        self.0 >= 25
    }

    /// Whether the VM has continuations, and with them virtual threads: from 19 on (JDK-8284161, a preview
    /// until 20), `runtime/continuationEntry.hpp`, `runtime/javaThread.hpp`. Readers: `layout::thread`, and
    /// `signal::walk::mounted_thread` through `VmLayout::has_continuations`.
    pub const fn has_continuations(self) -> bool {
        self.0 >= 19
    }

    /// Whether a JavaThread has the id of its current thread, virtual or not, and a monitor has the id of its
    /// owner: from 24 on (JDK-8338383; JDK-8343957 names the field `_monitor_owner_id`),
    /// `runtime/javaThread.hpp`, `runtime/objectMonitor.hpp`. Readers: `layout::mounted_thread`,
    /// `layout::monitor`.
    pub const fn has_monitor_owner_id(self) -> bool {
        self.0 >= 24
    }

    /// Whether a jmethodID is the address of a cell with the `Method*`: until 25, `oops/method.cpp`
    /// (JNIMethodBlock). JDK-8268406 replaces the cells by a table in 26, `oops/jmethodIDTable.cpp`. Reader:
    /// [`method_ids`](Self::method_ids).
    pub const fn has_method_id_cells(self) -> bool {
        self.0 < 26
    }

    /// Whether JNI's IsSameObject may keep a weakly referenced object alive, in some build of the release:
    /// until 12 (JDK-8215451, which 11.0.5 and 13 have; 12 was not read), `prims/jni.cpp` (jni_IsSameObject),
    /// from then on `runtime/jniHandles.inline.hpp`. Reader: `agent::engines::live_objects`.
    pub const fn is_same_object_may_keep_objects(self) -> bool {
        self.0 < 13
    }

    /// Whether the recorder samples allocations (`jdk.ObjectAllocationSample`): from 16 on (JDK-8257602),
    /// `jfr/metadata/metadata.xml`. Before 16 it has events of new TLABs and of allocations outside of TLABs
    /// only. Reader: `agent::recording::selection`.
    pub const fn has_allocation_sample_event(self) -> bool {
        self.0 >= 16
    }

    /// The meaning of the release's jmethodIDs. The contract is that of [`MethodIds`].
    pub const fn method_ids(self) -> MethodIds {
        if self.has_method_id_cells() { MethodIds::Cells } else { MethodIds::Opaque }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::layout::LayoutError;

    /// A predicate's name, the predicate, and its answers for the releases 11 to 26: `#` is true, `.` false.
    type Row = (&'static str, fn(Release) -> bool, &'static str);

    const ROWS: [Row; 12] = [
        // One column for each release from 11 to 26.
        ("unsigned5_excludes_zero", Release::unsigned5_excludes_zero, ".........#######"),
        ("has_comp_level_byte", Release::has_comp_level_byte, ".........#######"),
        ("has_const_method_flags", Release::has_const_method_flags, "..........######"),
        ("has_compact_blob_header", Release::has_compact_blob_header, "............####"),
        ("has_compiled_method", Release::has_compiled_method, "############...."),
        ("has_immutable_nmethod_data", Release::has_immutable_nmethod_data, "............####"),
        ("has_mutable_nmethod_data", Release::has_mutable_nmethod_data, "..............##"),
        ("has_continuations", Release::has_continuations, "........########"),
        ("has_monitor_owner_id", Release::has_monitor_owner_id, ".............###"),
        ("has_method_id_cells", Release::has_method_id_cells, "###############."),
        ("is_same_object_may_keep_objects", Release::is_same_object_may_keep_objects, "##.............."),
        ("has_allocation_sample_event", Release::has_allocation_sample_event, ".....###########"),
    ];

    #[test]
    fn each_fact_begins_and_ends_with_its_release() {
        for (name, predicate, expected) in ROWS {
            let answer = |feature| if predicate(Release::new(feature)) { '#' } else { '.' };
            assert_eq!((11..=26).map(answer).collect::<String>(), expected, "{name}");
        }
    }

    #[test]
    fn the_ledger_names_each_predicate() {
        let ledger = include_str!("../../../docs/internals/hotspot.md");
        for (name, ..) in ROWS {
            assert!(ledger.contains(&format!("`{name}`")), "{name}");
        }
    }

    /// A release whose jmethodIDs are opaque must not become known before the layout's check, frozen frames
    /// and native bindings find a `Method*` in another way.
    #[test]
    fn known_releases_have_cells_of_method_ids() {
        for release in Release::KNOWN {
            assert!(release.is_known());
            assert_eq!(release.method_ids(), MethodIds::Cells, "{release}");
        }
        assert_eq!(Release::new(26).method_ids(), MethodIds::Opaque);
        assert!(!Release::new(26).is_known());
    }

    #[test]
    fn an_unknown_release_is_reported_with_the_known_ones() {
        let error = LayoutError::UnknownRelease { release: Release::new(99) };
        assert_eq!(error.to_string(), "the layout of HotSpot 99 is not known (known: 11, 17, 21, 25)");
    }

    #[test]
    fn jvmti_states_the_release() {
        assert_eq!(Release::of_jvmti(0x300b_0000), Release::new(11));
        assert_eq!(Release::of_jvmti(0x3019_0002), Release::new(25));
    }

    #[test]
    fn documents_name_the_known_releases() {
        let numbers = Release::KNOWN.map(|release| release.to_string());
        let (last, others) = numbers.split_last().expect("a release");
        let sentence = format!("HotSpot {} and {last}", others.join(", "));
        for (name, text) in [
            ("README.md", include_str!("../../../README.md")),
            ("docs/compatibility.md", include_str!("../../../docs/compatibility.md")),
        ] {
            assert!(text.contains(&sentence), "{name} does not name {sentence}");
        }
    }
}

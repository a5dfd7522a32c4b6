//! The releases of HotSpot, and the facts that only the release tells.
//!
//! Layouts do not depend on the release: libjvm's tables and the VM's code show the differences, which
//! docs/internals/hotspot.md lists. Other code that depends on the release asks a predicate of [`Release`],
//! and compares no numbers itself. Each predicate states the first or last release with the fact, HotSpot's
//! change (JDK-…), HotSpot's file, and the code that reads the answer. The release is the one in which
//! HotSpot's sources changed.

use std::fmt;

/// A feature release of HotSpot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release(u32);

impl Release {
    /// The releases on which everything has been tried.
    #[cfg(without_rules_of_26)]
    pub const KNOWN: [Self; 4] = [Self(11), Self(17), Self(21), Self(25)];
    /// The releases on which everything has been tried.
    #[cfg(not(without_rules_of_26))]
    pub const KNOWN: [Self; 6] = [Self(11), Self(17), Self(21), Self(25), Self(26), Self(27)];

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

    /// Whether everything has been tried on this release.
    pub fn is_known(self) -> bool {
        Self::KNOWN.contains(&self)
    }

    /// The known releases, separated by commas.
    pub fn known_list() -> String {
        Self::KNOWN.map(|release| release.to_string()).join(", ")
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
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A predicate's name, the predicate, and its answers for the releases 11 to 27: `#` is true, `.` false.
    type Row = (&'static str, fn(Release) -> bool, &'static str);

    const ROWS: [Row; 2] = [
        // One column for each release from 11 to 27.
        ("is_same_object_may_keep_objects", Release::is_same_object_may_keep_objects, "##..............."),
        ("has_allocation_sample_event", Release::has_allocation_sample_event, ".....############"),
    ];

    #[test]
    fn each_fact_begins_and_ends_with_its_release() {
        for (name, predicate, expected) in ROWS {
            let answer = |feature| if predicate(Release::new(feature)) { '#' } else { '.' };
            assert_eq!((11..=27).map(answer).collect::<String>(), expected, "{name}");
        }
    }

    #[test]
    fn the_ledger_names_each_predicate() {
        let ledger = include_str!("../../../../docs/internals/hotspot.md");
        for (name, ..) in ROWS {
            assert!(ledger.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn known_releases_are_known() {
        assert!(Release::KNOWN.into_iter().all(Release::is_known));
        assert!(!Release::new(24).is_known());
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
            ("README.md", include_str!("../../../../README.md")),
            ("docs/compatibility.md", include_str!("../../../../docs/compatibility.md")),
        ] {
            assert!(text.contains(&sentence), "{name} does not name {sentence}");
        }
    }
}

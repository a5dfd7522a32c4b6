//! The profiles that an engine's samples become, and the rounding of their values to whole numbers.

use otlpprof_model::{Profile, ProfileType, SampleIdentity};

/// One of the profiles that an engine's samples become, with its period.
#[derive(Clone, Copy, Debug)]
pub struct ProfileKind {
    /// The profile's type.
    pub profile_type: &'static ProfileType,
    /// The period, in the type's period unit.
    pub period: i64,
    /// The factor for a sample's values.
    pub scale: f64,
}

/// The profiles of an engine, one for each of a sample's values: the first only, or both.
pub type EngineProfiles = [Option<ProfileKind>; 2];

/// A profile of whole numbers that receives fractions. The remainder of rounding one sample is carried to the
/// next, so that the sum is right to within one.
pub(super) struct Rounding {
    profile: Profile,
    scale: f64,
    carried: f64,
}

impl Rounding {
    pub(super) fn new(kind: ProfileKind) -> Self {
        Self { profile: Profile::new(kind.profile_type, kind.period), scale: kind.scale, carried: 0.0 }
    }

    pub(super) fn finish(self) -> Profile {
        self.profile
    }

    pub(super) fn add(&mut self, identity: SampleIdentity, value: f64, at_unix_nano: Option<u64>) {
        let exact = value * self.scale + self.carried;
        let whole = exact.round().max(0.0);
        self.carried = exact - whole;
        // A value rounded to 0 is dropped: a sample of 0 would say that nothing was there.
        if whole > 0.0 {
            self.profile.add(identity, whole as i64, at_unix_nano);
        }
    }
}

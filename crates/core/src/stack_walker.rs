//! The ways in which a stack is walked.

/// A stack walker: its treatment of native frames, and its source of Java frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StackWalker {
    /// Java frames through HotSpot's structures; native frames on top of them, by unwind tables.
    #[default]
    Vm = 0,
    /// Like `Vm`, with the native frames between Java frames and below them, down to the thread's native
    /// entry.
    Vmx,
    /// Native frames on top by frame pointers, except the first caller, which is found by its unwind rule;
    /// Java frames from AsyncGetCallTrace.
    Fp,
    /// Native frames on top by unwind tables; Java frames from AsyncGetCallTrace.
    Dwarf,
    /// Java frames only, through HotSpot's structures.
    No,
}

impl StackWalker {
    /// All walkers, each at the index of its number.
    pub const ALL: [Self; 5] = [Self::Vm, Self::Vmx, Self::Fp, Self::Dwarf, Self::No];

    /// Returns the walker of this number; [`StackWalker::Vm`] if there is none.
    pub const fn from_u8(number: u8) -> Self {
        match number {
            1 => Self::Vmx,
            2 => Self::Fp,
            3 => Self::Dwarf,
            4 => Self::No,
            _ => Self::Vm,
        }
    }

    /// The walker's name in options, logs and profiles.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Vmx => "vmx",
            Self::Fp => "fp",
            Self::Dwarf => "dwarf",
            Self::No => "no",
        }
    }

    /// Returns the walker of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|walker| walker.name() == name)
    }

    /// Whether Java frames come from AsyncGetCallTrace.
    pub const fn asks_the_vm(self) -> bool {
        matches!(self, Self::Fp | Self::Dwarf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_convert_back_to_their_walker() {
        for walker in StackWalker::ALL {
            assert_eq!(StackWalker::from_u8(walker as u8), walker);
            assert_eq!(StackWalker::from_name(walker.name()), Some(walker));
        }
        assert_eq!(StackWalker::from_u8(200), StackWalker::Vm);
        assert_eq!(StackWalker::from_name("lbr"), None);
    }
}

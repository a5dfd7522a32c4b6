//! The states of Java threads, whose numbers differ between releases of HotSpot.

/// The state of a Java thread (`utilities/globalDefinitions.hpp`, JavaThreadState). A transition (until 27)
/// counts as the state that it is named for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum JavaThreadState {
    /// The thread is no Java thread, or its state cannot be read.
    #[default]
    Unknown,
    /// `_thread_new`: the thread is starting.
    New,
    /// `_thread_in_native`: the thread runs native code, agents' code included.
    InNative,
    /// `_thread_in_vm`: the thread runs the VM's code.
    InVm,
    /// `_thread_in_Java`: the thread runs Java, or code that Java has called without notifying the VM.
    InJava,
    /// `_thread_blocked`: the thread waits in the VM.
    Blocked,
}

/// One past the largest number of a state.
pub const MAX_STATES: usize = 16;

/// The states by the numbers that a VM gives them.
#[derive(Clone, Copy, Debug)]
pub struct JavaThreadStates([JavaThreadState; MAX_STATES]);

impl JavaThreadStates {
    /// No number has a state.
    pub const NONE: Self = Self([JavaThreadState::Unknown; MAX_STATES]);

    /// The states of the VM that has these numbers. Numbers from [`MAX_STATES`] on are ignored.
    pub fn new(numbers: &[(u32, JavaThreadState)]) -> Self {
        let mut states = Self::NONE;
        for &(number, state) in numbers {
            if let Some(place) = states.0.get_mut(number as usize) {
                *place = state;
            }
        }
        states
    }

    /// The state of this number.
    #[inline]
    pub fn of(&self, number: u32) -> JavaThreadState {
        self.0.get(number as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_state_are_unknown() {
        let states = JavaThreadStates::new(&[(4, JavaThreadState::InJava), (16, JavaThreadState::New)]);
        assert_eq!(states.of(4), JavaThreadState::InJava);
        for number in [0, 5, 16, u32::MAX] {
            assert_eq!(states.of(number), JavaThreadState::Unknown);
        }
    }
}

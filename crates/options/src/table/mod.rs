//! Every option, once: its name, the form of its value, its default, its help line, and its parser.
//!
//! An option's environment variable follows from its name: `OTLPPROF_` and the name in capitals, with dots
//! replaced by underscores.
//!
//! | Module | Duty |
//! |---|---|
//! | `engines` | the options of the engines, which decide what is sampled |
//! | `samples` | the options of a sample's contents: its stack, its names, its context |
//! | `delivery` | the options of destinations, formats, and the log |

mod delivery;
mod engines;
mod samples;

use super::option_spec::OptionSpec;

/// Returns the option of this name.
pub(super) fn find(name: &str) -> Option<&'static OptionSpec> {
    all().find(|option| option.name == name)
}

/// All options, in the order of the help. Where two write the same thing, the later one wins.
pub(super) fn all() -> impl Iterator<Item = &'static OptionSpec> {
    [engines::OPTIONS, samples::OPTIONS, delivery::OPTIONS].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::super::draft::Draft;
    use super::*;

    #[test]
    fn names_are_unique_and_spelt_alike() {
        for (i, option) in all().enumerate() {
            assert!(all().take(i).all(|earlier| earlier.name != option.name), "{}", option.name);
            assert!(
                option.name.bytes().all(|c| c.is_ascii_lowercase() || c == b'.' || c == b'_'),
                "{}",
                option.name
            );
            assert!(!option.value.is_empty() && !option.help.is_empty(), "{}", option.name);
            // Two names must not map to one variable.
            let variable = option.environment_variable();
            assert!(all().take(i).all(|earlier| earlier.environment_variable() != variable), "{variable}");
        }
    }

    #[test]
    fn defaults_and_bare_forms_can_be_read() {
        for option in all() {
            for text in [option.default, option.bare].into_iter().flatten() {
                assert_eq!((option.read)(&mut Draft::default(), text), Ok(()), "{}={text}", option.name);
            }
        }
    }
}

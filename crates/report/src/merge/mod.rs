//! Many messages summed into one.
//!
//! In: encoded messages, read twice: first for the periods, times and last states of all profiles, then for
//! their samples. Out: one message. Profiles of equal resource, scope and type become one profile. Memory
//! grows with the number of different stacks and sets of attributes; with times, with that of all values.
//!
//! | Module | Duty |
//! |---|---|
//! | [`merger`] | the messages that are read, and the message that they become |
//! | [`origins`] | resources and scopes |
//! | [`profile`] | a merged profile: its period, its window, its sums |
//! | [`attributes`] | the attributes of a merged profile |
//! | `sample_sums` | values of samples, summed by key |
//! | [`dictionary`] | the tables of the merged message |
//! | `encoding` | the bytes of the merged message |

pub mod attributes;
pub mod dictionary;
mod encoding;
pub mod merger;
pub mod origins;
pub mod profile;
mod sample_sums;

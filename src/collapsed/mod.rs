//! Collapsed stacks, the text format of flame graph tools: a line for each stack, `main;run;work 42`.
//!
//! In: lines of text. Out: [`Batch`](crate::model::Batch)es with one profile of the type `samples`. A frame
//! may have one of async-profiler's suffixes: `_[j]` (compiled), `_[i]` (inlined), `_[0]` (interpreted),
//! `_[1]` (compiled by C1), `_[k]` (kernel). Without a suffix the name decides (`frame_name`). A first frame
//! `[NAME tid=NUMBER]` is the thread. Times, units and other labels are not in the format. Called by `cli`.
//!
//! | Module | Duty |
//! |---|---|
//! | `read` | reads the lines of a file, and sums them |
//! | `line` | the stack and the value of a line |
//! | `frame_name` | the kind, name and line of a frame |

mod frame_name;
mod line;
mod read;

pub use line::LineProblem;
pub use read::{CollapsedError, is_collapsed, read};

//! Collapsed stacks, the text format of flame graph tools: a line for each stack, `main;run;work 42`.
//!
//! In: lines of text, in UTF-8 or with a byte order mark. Out: [`Batch`](otlpprof_model::Batch)es with one
//! profile of the type `samples`. A frame may have one of async-profiler's suffixes: `_[j]` (compiled),
//! `_[i]` (inlined), `_[0]` (interpreted), `_[1]` (compiled by C1), `_[k]` (kernel). Without a suffix the
//! name decides (`frame_name`). A first frame `[NAME tid=NUMBER]` is the thread. Times and other labels are
//! not in the format. Lines that begin with `#` are comments; one of them may name the quantity and its unit.
//! Values may have fractions if one of the first values has one. Called by `cli`.
//!
//! | Module | Duty |
//! |---|---|
//! | `read` | reads the lines of a file, and sums them |
//! | `blocks`, `block` | blocks of lines, which several threads parse |
//! | `text` | the text of a file in any encoding |
//! | `form` | the form of the lines of a file |
//! | `line` | the stack and the value of a line |
//! | `quantity` | the comment that names the quantity and its unit |
//! | `frame_name` | the kind, name and line of a frame |

mod block;
mod blocks;
mod form;
mod frame_name;
mod line;
mod quantity;
mod read;
mod text;

pub use line::LineProblem;
pub use quantity::Quantity;
pub use read::{CollapsedError, Remarks, is_collapsed, read};

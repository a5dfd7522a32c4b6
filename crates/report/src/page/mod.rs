//! The flame graph page: one HTML file with the profile's data.
//!
//! | Module | Duty |
//! |---|---|
//! | [`steps`] | the division of time into steps |
//! | [`rows`] | the selected samples, summed by stack, labels, time and side |
//! | [`labels`] | the labels of rows |
//! | `kinds` | the rules by which the page finds the kinds of code of its samples |
//! | [`columns`] | the data in the form that the page decodes |
//! | [`html`] | the page with its data |

pub mod columns;
pub mod html;
mod kinds;
pub mod labels;
pub mod rows;
pub mod steps;

//! Recordings become samples of the model, stacks and contexts included.

mod events;
mod frames;
mod readers;
mod settings;

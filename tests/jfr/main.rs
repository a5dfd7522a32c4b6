//! The recordings' events, metadata and pieces, compared with what the JDK's own tools say of them.

mod events;
mod jdk_json;
mod jdk_reader;
mod jmc_json;
mod metadata;
mod oracle;
mod push;

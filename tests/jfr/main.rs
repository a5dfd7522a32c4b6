//! The recordings' events, metadata and pieces, compared with what the JDK's own tools say of them.

#[path = "../jdk_support/mod.rs"]
mod jdk_support;
#[path = "../jfr_support/mod.rs"]
mod jfr_support;
#[path = "../loud_support/mod.rs"]
mod loud_support;
#[path = "../profcheck_support/mod.rs"]
mod profcheck_support;

mod events;
mod metadata;
mod oracle;
mod push;

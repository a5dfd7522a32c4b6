//! The recordings' events, metadata and pieces, compared with what the JDK's own tools say of them.

#[path = "../../testkit/src/jdk.rs"]
mod jdk_support;
#[path = "../../testkit/src/recordings/mod.rs"]
mod jfr_support;
#[path = "../../testkit/src/skipped.rs"]
mod loud_support;
#[path = "../../testkit/src/profcheck.rs"]
mod profcheck_support;

mod events;
mod metadata;
mod oracle;
mod push;

//! Profiles, neutral of any format.
//!
//! Input: samples, from the aggregator or from a reader of recordings. Output: a [`Batch`], which `otlp`
//! encodes. Strings, functions, mappings, frames, stacks, attributes and links are interned once in
//! [`Tables`] and identified by small ids; a [`Profile`] sums its samples by identity. Imports only `core`;
//! `aggregate`, `otlp`, `convert`, `agent` and `cli` may import it.

pub mod attribute_keys;
mod attributes;
mod batch;
mod frame;
mod hotspot_stubs;
mod ids;
mod intern;
mod java_command;
mod java_names;
mod label;
pub mod markers;
mod observations;
mod percent;
mod profile;
mod profile_types;
mod remote_frame;
mod tables;
mod translation;

pub use attributes::{Attribute, AttributeValue, Link};
pub use batch::{Batch, Resource, ResourceValue, Scope};
pub use frame::{Execution, Frame, FrameType, Function, Mapping, STUB_KIND};
pub use hotspot_stubs::is_hotspot_stub;
pub use ids::{AttributeId, AttributeSetId, FrameId, FunctionId, LinkId, MappingId, StackId, StringId};
pub use intern::{Id, Interner, SliceInterner, StringInterner};
pub use java_command::program_of;
pub use java_names::{JavaMethod, java_class_name, java_type_name, normalise_class_name};
pub use label::{LONGEST_LABEL, LONGEST_NAME, label};
pub use observations::Observation;
pub use percent::{PercentError, percent_decoded};
pub use profile::{Profile, Sample, SampleIdentity};
pub use profile_types::{BILLIONTHS, ProfileType, types};
pub use remote_frame::{REMOTE_METHOD, RemoteFrame, native_frame_nowhere, unnamed_native_frame};
pub use tables::Tables;
pub use translation::Translation;

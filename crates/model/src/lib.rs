//! Profiles, neutral of any format.
//!
//! Input: samples, from the aggregator or from a reader of recordings. Output: a [`Batch`], which `otlp`
//! encodes. Strings, functions, mappings, frames, stacks, attributes and links are interned once in
//! [`Tables`] and identified by small ids; a [`Profile`] sums its samples by identity. Imports only `core`;
//! `aggregate`, `otlp`, `convert`, `agent` and `cli` may import it.
//!
//! | Profiles | Duty |
//! |---|---|
//! | `batch` | the unit of output: profiles, their tables, and their origin |
//! | `profile` | one profile: samples of one type over one span of time, summed by identity |
//! | `profile_types` | the names and units of all profiles |
//! | `observations` | the times and values of one sample, packed |
//!
//! | Tables | Duty |
//! |---|---|
//! | `tables` | the tables that the profiles of one batch share |
//! | `ids` | the ids of values in the tables |
//! | `intern` | interning: each distinct value once, by a dense index |
//! | `translation` | ids of one batch's tables as those of another's |
//! | `frame` | the elements of a stack |
//! | `attributes` | facts attached to samples and profiles, and links to spans |
//! | [`attribute_keys`] | the keys of all attributes |
//! | [`thread_states`] | the states of threads, as an attribute has them |
//!
//! | Names | Duty |
//! |---|---|
//! | `java_names` | names of Java methods and classes |
//! | `java_command` | the program that a JVM runs, by the JVM's command |
//! | `hotspot_stubs` | the names of HotSpot's stubs |
//! | `remote_frame` | the text form of a native frame without a name |
//! | [`markers`] | frames in brackets that stand for something that a stack lacks |
//! | `label` | the limits of labels and names |
//! | `percent` | percent-decoding, as in lists of resource attributes |

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
pub mod thread_states;
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

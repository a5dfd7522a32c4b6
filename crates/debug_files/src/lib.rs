//! Finds the files of an object: the executable or library, its debug file, and their companions.
//!
//! In: an object's identity, as a profile gives it ([`ObjectIdentity`]), and the places to search
//! ([`Places`]). Out: the paths of the object's files ([`ObjectFiles`]), or the reason why there is none.
//! Also the store of `otlpprof symbols` ([`store`]). Called only by the command.
//!
//! A file is used only if it belongs to the object: by its GNU build-id, by the hash of its content
//! (htlhash), or by the name and CRC-32 of a debug link in a file that belongs to the object. Of several
//! files the one that tells most is used ([`Quality`]), whatever place it is in.
//!
//! | Search | Duty |
//! |---|---|
//! | [`identity`] | an object's identity, and the key of its files |
//! | [`files`] | the files of one object, and how much each tells |
//! | [`places`] | the places at which files are searched |
//! | [`locator`] | searches the places |
//! | `candidates` | the files that were found for one object, with their identity checked |
//! | `names_beside` | the names of debug files beside their object |
//! | [`examined`] | one ELF file: its identity, its quality, the companions that it names |
//! | [`links`] | the sections in which a debug file names its supplementary file |
//! | [`split_units`] | finds `.dwo` files |
//! | `vdso` | this machine's vDSO as a file |
//! | [`not_located`] | the reason why an object has no file |
//!
//! | Folders and servers | Duty |
//! |---|---|
//! | `path_index` | the files below one folder |
//! | `path_indexes` | the files below all folders to search |
//! | [`index_format`] | the file in which the content of a folder is remembered |
//! | [`store`] | the store: its layout, and the rule by which a file replaces another |
//! | [`debuginfod`] | a client of debuginfod servers |
//! | `acceptance` | the check that a file must pass before it enters a cache |

mod acceptance;
mod candidates;
pub mod debuginfod;
pub mod examined;
pub mod files;
pub mod identity;
pub mod index_format;
pub mod links;
pub mod locator;
mod names_beside;
pub mod not_located;
mod path_index;
mod path_indexes;
pub mod places;
pub mod split_units;
pub mod store;
mod vdso;

pub use files::{FileKind, ObjectFiles, Quality};
pub use identity::{FileId, ObjectIdentity};
pub use locator::Locator;
pub use not_located::NotLocated;
pub use places::Places;
pub use split_units::SplitUnits;

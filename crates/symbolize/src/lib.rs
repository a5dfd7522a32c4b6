//! Names for the native frames of OTLP messages that have none: function, file, line, column, and all inlined
//! functions.
//!
//! In: encoded messages, and a [`Locator`](otlpprof_debug_files::Locator) of files. Out: the messages, in
//! which the locations of resolved frames have lines; and counts of resolved and unresolved frames with the
//! reason of each object. Called only by the command.
//!
//! A frame is resolved by the identity of its object (build-id, htlhash) and its address. Addresses of
//! callers are return addresses minus 1 already, and are looked up as they are. An address that no function
//! covers stays as it was: it never gets the nearest function's name. Each object's answers come from its
//! index ([`otlpprof_dwarf::index`]), which is kept in a folder. A single message is resolved by the debug
//! information of its addresses where there is no index yet.
//!
//! Messages stay encoded. Everything but the dictionary's changed locations, its new functions and its new
//! strings is copied byte for byte.
//!
//! | Messages | Duty |
//! |---|---|
//! | [`symbolizer`] | the names of a message's frames |
//! | [`resolved_message`] | a message with the names of its frames |
//! | `remote_frames` | finds the frames without names in a message |
//! | `location_fields` | the fields of an encoded location |
//! | `address` | the address space of a mapping; run-time addresses to ELF virtual addresses |
//! | `rewrite` | puts chains into a message's dictionary |
//! | [`needs`] | the objects of frames without names |
//!
//! | Objects | Duty |
//! |---|---|
//! | `objects` | numbers for objects, over all messages |
//! | `object` | one object's files and index; its answers |
//! | `open_files` | the files of one object, open |
//! | `split_files` | the files of split units |
//! | [`index_cache`] | the folder of indexes |
//! | `names` | functions and chains of functions, over all messages |
//! | `chains` | the chains of functions at addresses, read by several threads |
//!
//! | Accounts | Duty |
//! |---|---|
//! | [`summary`] | counts, and the reasons of unresolved frames |
//! | [`unresolved`] | the reason why a frame is not resolved |
//! | `trial` | one chain for all frames, for tests |

mod address;
mod chains;
pub mod index_cache;
mod location_fields;
mod names;
pub mod needs;
mod object;
mod objects;
mod open_files;
mod remote_frames;
pub mod resolved_message;
mod rewrite;
mod split_files;
pub mod summary;
pub mod symbolizer;
mod trial;
pub mod unresolved;

pub use index_cache::IndexCache;
pub use symbolizer::Symbolizer;
#[doc(hidden)]
pub use trial::with_names;

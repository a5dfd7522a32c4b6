//! Writes first inputs of fuzz targets, those that no other tool makes:
//!
//! ```text
//! fuzz_inputs symbolize FOLDER       a message with native frames without names, in all forms
//! fuzz_inputs debug_files FOLDER     the remembered content of a folder
//! ```

use std::error::Error;
use std::fs;
use std::path::Path;

use otlpprof_core::address::ElfVaddr;
use otlpprof_core::build_id::BuildId;
use otlpprof_debug_files::index_format::{ElfIdentity, IndexedFile, Version, encode};
use otlpprof_elf::htlhash::HtlHash;
use otlpprof_model::attribute_keys::{BUILD_ID_GNU, BUILD_ID_HTLHASH, FRAME_REMOTE, FRAME_TYPE};
use otlpprof_model::{RemoteFrame, unnamed_native_frame};
use otlpprof_otlp::to_json;
use otlpprof_otlp::wire::*;
use otlpprof_testkit::otlp_fixture::Dictionary;
use prost::Message as _;

const BUILD_ID: [u8; 20] = [0xab; 20];
const HTLHASH: HtlHash = HtlHash([0xcd; 16]);
const LIBRARY: &str = "/opt/libcode.so";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, folder] = &arguments[..] else { return Err("usage: fuzz_inputs TARGET FOLDER".into()) };
    let folder = Path::new(folder);
    let build_id = BuildId::new(&BUILD_ID).ok_or("no build-id")?;
    match target.as_str() {
        "symbolize" => {
            let message = unnamed_frames(build_id).encode_to_vec();
            fs::write(folder.join("json"), to_json(&message).ok_or("no message")?)?;
            fs::write(folder.join("protobuf"), message)?;
        }
        "debug_files" => {
            /// The bytes before the files: a magic number and a checksum.
            const HEAD_LEN: usize = 16;
            let index = encode(&indexed_files(build_id));
            fs::write(folder.join("files"), &index[HEAD_LEN..])?;
            fs::write(folder.join("index"), index)?;
        }
        _ => return Err(format!("no inputs for target {target}").into()),
    }
    Ok(())
}

/// An ELF file with a build-id, one without, and another file.
fn indexed_files(build_id: BuildId) -> Vec<IndexedFile> {
    let version = Version { len: 4_096, seconds: 1_700_000_000, nanoseconds: 5 };
    let file = |path: &str, elf| IndexedFile { path: path.into(), version, elf };
    let elf = |build_id| Some(ElfIdentity { build_id, htlhash: HTLHASH });
    vec![file(LIBRARY, elf(Some(build_id))), file("/opt/old.debug", elf(None)), file("/opt/README", None)]
}

/// The line of a function of this name.
fn line(tables: &mut Dictionary, function: &str) -> Vec<Line> {
    vec![Line { function_index: tables.function(function, ""), ..Line::default() }]
}

fn push<T>(table: &mut Vec<T>, entry: T) -> i32 {
    table.push(entry);
    table.len() as i32 - 1
}

/// A message whose only stack has a native frame without a name in each form that `symbolize` resolves, and a
/// frame with a name.
fn unnamed_frames(build_id: BuildId) -> ProfilesData {
    let mut tables = Dictionary::new();
    let build_id_attribute = tables.text(BUILD_ID_GNU, &build_id.to_string());
    let htlhash = tables.text(BUILD_ID_HTLHASH, &HTLHASH.to_string());
    let native = tables.text(FRAME_TYPE, "native");
    let mapping = Mapping {
        memory_start: 0x1000,
        memory_limit: 0x3000,
        file_offset: 0x1000,
        filename_strindex: tables.string(LIBRARY),
        attribute_indices: vec![build_id_attribute, htlhash],
    };
    let mapping_index = push(&mut tables.0.mapping_table, mapping);
    let text = |address| RemoteFrame { build_id, address: ElfVaddr(address) }.to_string();
    let in_mapping =
        |address| Location { mapping_index, address, attribute_indices: vec![native], ..Location::default() };
    let remote = tables.text(FRAME_REMOTE, &text(0x1100));
    let locations = [
        in_mapping(0x1000),
        Location { attribute_indices: vec![native, remote], ..in_mapping(0x1100) },
        Location { lines: line(&mut tables, &text(0x1200)), ..Location::default() },
        Location {
            lines: line(&mut tables, &unnamed_native_frame(LIBRARY, ElfVaddr(0x1300))),
            ..in_mapping(0x1300)
        },
        Location { lines: line(&mut tables, "java.lang.Thread.run"), ..Location::default() },
    ];
    let location_indices = locations.map(|location| push(&mut tables.0.location_table, location)).into();
    let stack_index = push(&mut tables.0.stack_table, Stack { location_indices });
    let profile = Profile {
        sample_type: tables.value_type("samples", "count"),
        samples: vec![Sample { stack_index, values: vec![1], ..Sample::default() }],
        ..Profile::default()
    };
    let scope_profiles = vec![ScopeProfiles { profiles: vec![profile], ..ScopeProfiles::default() }];
    let resource_profiles = vec![ResourceProfiles { scope_profiles, ..ResourceProfiles::default() }];
    ProfilesData { resource_profiles, dictionary: Some(tables.0) }
}

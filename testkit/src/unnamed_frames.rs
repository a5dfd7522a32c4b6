//! Messages with native frames without names, and the command that resolves them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use otlpprof_elf::build_id;
use otlpprof_elf::file::ElfFile;
use otlpprof_elf::htlhash::HtlHash;
use otlpprof_elf::program_header::ProgramHeader;
use otlpprof_elf::source::FileSource;
use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};
use otlpprof_otlp::read::read;
use otlpprof_otlp::wire::{
    Line, Location, Mapping, Profile, ProfilesData, Resource, ResourceProfiles, Sample, ScopeProfiles,
};
use prost::Message as _;
use tempfile::TempDir;

use crate::otlp_fixture::{DURATION, Dictionary, TIME, inline};
use crate::this_build;

/// A function, its linkage name, file, line and column.
pub type Named = (String, String, String, i64, i64);

/// The sample library, with debug information.
pub const LIBRARY: &str = otlpprof_testkit_products::DDPROFTEST;

/// The form in which a message has a frame without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameForm {
    /// As this profiler writes frames: a mapping, an address, and the text as an attribute.
    Agent,
    /// As OpenTelemetry's eBPF profiler: a mapping with only an htlhash, and an address.
    Htlhash,
    /// As pprof: run-time addresses, at a random base.
    RunTime,
    /// The text as the name of a function, without a mapping.
    Text,
    /// `[file+0x…]` as the name of a function.
    Offset,
}

/// All forms.
pub const FRAME_FORMS: [FrameForm; 5] =
    [FrameForm::Agent, FrameForm::Htlhash, FrameForm::RunTime, FrameForm::Text, FrameForm::Offset];

/// An object whose frames a message has.
pub struct ProfiledObject {
    /// The path in the message.
    pub path: String,
    build_id: String,
    htlhash: String,
    code: ProgramHeader,
}

/// The base of run-time addresses.
const BASE: u64 = 0x7f12_3456_7000;

impl ProfiledObject {
    /// The object in a file, which the message says is at another path.
    pub fn of(file: &Path, path: &str) -> Self {
        let source = || FileSource::open(file).unwrap();
        let elf = ElfFile::parse(source()).unwrap();
        let headers = elf.program_headers().unwrap();
        Self {
            path: path.into(),
            build_id: build_id::of_file(file).map_or_else(|_| String::new(), |id| id.to_string()),
            htlhash: HtlHash::of(&source()).unwrap().to_string(),
            code: *headers.iter().find(|header| header.is_executable()).unwrap(),
        }
    }

    /// The object with this text for its build-id, and no other identity.
    pub fn with_build_id(self, build_id: &str) -> Self {
        Self { build_id: build_id.into(), htlhash: String::new(), ..self }
    }

    /// Enters the mapping of the object's code.
    fn mapping(&self, tables: &mut Dictionary, form: FrameForm) -> i32 {
        let gnu = (form != FrameForm::Htlhash && !self.build_id.is_empty())
            .then(|| tables.text("process.executable.build_id.gnu", &self.build_id));
        let htlhash = ((form != FrameForm::RunTime || gnu.is_none()) && !self.htlhash.is_empty())
            .then(|| tables.text("process.executable.build_id.htlhash", &self.htlhash));
        let bias = if form == FrameForm::RunTime { BASE } else { 0 };
        let mapping = Mapping {
            memory_start: self.code.vaddr.0 + bias,
            memory_limit: self.code.vaddr.0 + self.code.memory_size + bias,
            file_offset: self.code.offset.0,
            filename_strindex: tables.string(&self.path),
            attribute_indices: gnu.into_iter().chain(htlhash).collect(),
        };
        let table = &mut tables.0.mapping_table;
        let known = table.iter().position(|known| *known == mapping);
        known.unwrap_or_else(|| {
            table.push(mapping);
            table.len() - 1
        }) as i32
    }

    /// Enters the frame at an ELF virtual address. Returns the index of its location.
    pub fn location(&self, tables: &mut Dictionary, form: FrameForm, vaddr: u64) -> i32 {
        let remote = format!("{}.<remote>({vaddr:#x})", self.build_id);
        let file = self.path.rsplit('/').next().unwrap();
        let native = tables.text("profile.frame.type", "native");
        let mut location =
            Location { address: vaddr, attribute_indices: vec![native], ..Location::default() };
        if form != FrameForm::Text {
            location.mapping_index = self.mapping(tables, form);
        }
        let mut name = |tables: &mut Dictionary, name: &str| {
            let function_index = tables.function(name, "");
            location.lines.push(Line { function_index, line: 0, column: 0 });
        };
        match form {
            FrameForm::Agent => {
                location.attribute_indices.push(tables.text("otlpprof.frame.remote", &remote))
            }
            FrameForm::Htlhash => {}
            FrameForm::RunTime => location.address += BASE,
            FrameForm::Text => {
                name(tables, &remote);
                location.address = 0;
            }
            FrameForm::Offset => name(tables, &format!("[{file}+{vaddr:#x}]")),
        }
        tables.0.location_table.push(location);
        tables.0.location_table.len() as i32 - 1
    }
}

/// A message with a sample for each location.
pub fn message_of(mut tables: Dictionary, locations: &[i32]) -> ProfilesData {
    let java = tables.java("com.example.Main.main", 7);
    let samples = locations
        .iter()
        .map(|&location| Sample {
            stack_index: tables.stack(vec![location, java]),
            values: vec![1],
            ..Sample::default()
        })
        .collect();
    let profile = Profile {
        sample_type: tables.value_type("samples", "count"),
        period_type: tables.value_type("cpu", "nanoseconds"),
        period: 10_000_000,
        time_unix_nano: TIME,
        duration_nano: DURATION,
        samples,
        original_payload_format: "linux_perf".into(),
        original_payload: vec![0, 255, 7],
        ..Profile::default()
    };
    let scope = ScopeProfiles { profiles: vec![profile], ..ScopeProfiles::default() };
    let attributes = vec![inline("service.name", "shop")];
    ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_profiles: vec![scope],
            ..ResourceProfiles::default()
        }],
        dictionary: Some(tables.0),
    }
}

/// The lines of a location.
pub fn lines_of(message: &ProfilesData, location: i32) -> Vec<Named> {
    let lookup = Lookup::new(message);
    let lines = &lookup.location(location).unwrap().lines;
    let named = |line: &Line| {
        let function = lookup.function(line.function_index).unwrap();
        let text = |index| lookup.text(index).to_owned();
        let [name, system, file] =
            [function.name_strindex, function.system_name_strindex, function.filename_strindex].map(text);
        (name, system, file, line.line, line.column)
    };
    lines.iter().map(named).collect()
}

/// The command with a cache of its own.
pub struct Command {
    /// The folder of the cache, and of results.
    pub folder: TempDir,
}

impl Command {
    /// Creates the folder, which is removed with this value.
    pub fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder of indexes.
    pub fn indexes(&self) -> PathBuf {
        self.path("cache/indexes")
    }

    /// The command, which neither asks servers nor knows the user's cache.
    pub fn prepared(&self) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::new(this_build::command());
        command.env("OTLPPROF_CACHE", self.path("cache")).env("OTLPPROF_SYMBOLS", self.path("store"));
        command.env_remove("DEBUGINFOD_URLS");
        command
    }

    /// Resolves the frames of a file. Returns the result's path and standard error.
    #[track_caller]
    pub fn symbolize(&self, input: &Path, output: &str, options: &[&str]) -> (PathBuf, String) {
        let out = self.path(output);
        let mut command = self.prepared();
        command.arg("symbolize").arg(input).arg("-o").arg(&out).args(options);
        let output = command.assert().success().get_output().clone();
        assert_eq!(output.stdout, b"", "nothing on stdout");
        (out, String::from_utf8(output.stderr).unwrap())
    }
}

/// The messages of a file.
#[track_caller]
pub fn messages_of(file: &Path) -> Vec<ProfilesData> {
    let bytes = std::fs::read(file).unwrap();
    read(&bytes).map(|message| message.unwrap().data).collect()
}

/// A message with frames at these addresses of an object, and their locations.
pub fn message(object: &ProfiledObject, form: FrameForm, vaddrs: &[u64]) -> (ProfilesData, Vec<i32>) {
    let mut tables = Dictionary::new();
    let locations: Vec<_> = vaddrs.iter().map(|&vaddr| object.location(&mut tables, form, vaddr)).collect();
    (message_of(tables, &locations), locations)
}

/// Asserts that nothing but the lines of these locations differs, and entries at the ends of tables.
#[track_caller]
pub fn assert_only_lines_differ(before: &ProfilesData, after: &ProfilesData, locations: &[i32]) {
    assert_eq!(before.resource_profiles, after.resource_profiles);
    let (old, new) = (before.dictionary.as_ref().unwrap(), after.dictionary.as_ref().unwrap());
    assert_eq!(old.mapping_table, new.mapping_table);
    assert_eq!(old.attribute_table, new.attribute_table);
    assert_eq!(old.stack_table, new.stack_table);
    assert_eq!(old.link_table, new.link_table);
    assert_eq!(old.string_table, new.string_table[..old.string_table.len()]);
    assert_eq!(old.function_table, new.function_table[..old.function_table.len()]);
    assert_eq!(old.location_table.len(), new.location_table.len());
    let resolved: HashSet<&i32> = locations.iter().collect();
    for (index, (old, new)) in (0..).zip(old.location_table.iter().zip(&new.location_table)) {
        let is_resolved = resolved.contains(&index);
        assert_eq!(old == new, !is_resolved, "location {index}");
        assert_eq!((old.mapping_index, &old.attribute_indices), (new.mapping_index, &new.attribute_indices));
        assert!(old.address == new.address || old.address == 0, "location {index}");
    }
    let mut strings = new.string_table.clone();
    strings.sort();
    strings.dedup();
    assert_eq!(strings.len(), new.string_table.len(), "each string once");
    let mut functions =
        new.function_table.iter().map(|function| function.encode_to_vec()).collect::<Vec<_>>();
    functions.sort();
    functions.dedup();
    assert_eq!(functions.len(), new.function_table.len(), "each function once");
}

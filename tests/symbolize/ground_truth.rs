//! A library whose functions record where they are called: `otlpprof symbolize` finds the function, file and
//! line of each recorded return address, for the library at any base.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Program;

use otlpprof_elf::build_id;
use otlpprof_elf::htlhash::HtlHash;
use otlpprof_elf::source::FileSource;
use otlpprof_otlp::wire::{Location, Mapping};
use otlpprof_testkit::debug_information::run;
use otlpprof_testkit::otlp_fixture::Dictionary;
use otlpprof_testkit::unnamed_frames::{Command, lines_of, message_of, messages_of};
use prost::Message as _;

const MOST_FUNCTIONS: usize = 4;

/// `struct call` of `recorded_calls/call.h`.
#[repr(C)]
struct RecordedCall {
    function: *const c_char,
    file: *const c_char,
    line: c_int,
    inlined_at: *const RecordedCall,
}

/// `struct site` of `recorded_calls/calls.c`.
#[repr(C)]
struct RecordedSite {
    return_address: *const c_void,
    functions: c_int,
    chain: [RecordedCall; MOST_FUNCTIONS],
}

/// `record_calls` of `recorded_calls/calls.c`.
type RecordCalls = unsafe extern "C" fn(*mut c_int) -> *const RecordedSite;

/// A function, its file, and a line.
type Place = (String, String, i64);

/// A call: the run-time address that follows it, and its places, the innermost function's first.
#[derive(Debug)]
struct Call {
    return_address: u64,
    chain: Vec<Place>,
}

/// A part of a loaded library.
#[derive(Clone, Debug)]
struct Segment {
    start: u64,
    limit: u64,
    offset: u64,
}

/// A library that has recorded its calls. It stays loaded.
struct Loaded {
    path: PathBuf,
    calls: Vec<Call>,
    code: Segment,
}

impl Loaded {
    fn load(path: &Path) -> Self {
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: the library's constructors do nothing; the name is a C string.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!library.is_null(), "{}", path.display());
        // SAFETY: the handle is valid.
        let symbol = unsafe { libc::dlsym(library, c"record_calls".as_ptr()) };
        assert!(!symbol.is_null());
        // SAFETY: the function has this type.
        let record_calls = unsafe { std::mem::transmute::<*mut c_void, RecordCalls>(symbol) };
        let mut count = 0;
        // SAFETY: the function returns an array of `count` sites, which lives as long as the library.
        let sites = unsafe {
            let sites = record_calls(&raw mut count);
            std::slice::from_raw_parts(sites, count as usize)
        };
        let calls: Vec<_> = sites.iter().map(call).collect();
        let code = segment_of(path, calls[0].return_address);
        Self { path: path.to_owned(), calls, code }
    }

    /// The addresses of the calls: callers' addresses are return addresses minus 1.
    fn addresses(&self) -> impl Iterator<Item = u64> {
        self.calls.iter().map(|call| call.return_address - 1)
    }

    /// Enters the library's mapping and the frames of its calls, with run-time addresses.
    fn locations(&self, tables: &mut Dictionary) -> Vec<i32> {
        let (key, id) = identity_of(&self.path);
        let mapping = Mapping {
            memory_start: self.code.start,
            memory_limit: self.code.limit,
            file_offset: self.code.offset,
            filename_strindex: tables.string(self.path.to_str().unwrap()),
            attribute_indices: vec![tables.text(key, &id)],
        };
        tables.0.mapping_table.push(mapping);
        let mapping_index = tables.0.mapping_table.len() as i32 - 1;
        let native = tables.text("profile.frame.type", "native");
        let locations = self.addresses().map(|address| {
            let attribute_indices = vec![native];
            tables.0.location_table.push(Location {
                mapping_index,
                address,
                attribute_indices,
                ..Location::default()
            });
            tables.0.location_table.len() as i32 - 1
        });
        locations.collect()
    }
}

/// The attribute by which a profile identifies a file, and its value.
fn identity_of(path: &Path) -> (&'static str, String) {
    match build_id::of_file(path) {
        Ok(id) => ("process.executable.build_id.gnu", id.to_string()),
        Err(_) => {
            let hash = HtlHash::of(&FileSource::open(path).unwrap()).unwrap();
            ("process.executable.build_id.htlhash", hash.to_string())
        }
    }
}

fn call(site: &RecordedSite) -> Call {
    let text = |text: *const c_char| {
        // SAFETY: the library's constants, which are C strings.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    };
    let place = |call: &RecordedCall| (text(call.function), text(call.file), i64::from(call.line));
    let chain = site.chain[..site.functions as usize].iter().map(place).collect();
    Call { return_address: site.return_address.addr() as u64, chain }
}

/// The mapped part of a file that has an address.
fn segment_of(path: &Path, address: u64) -> Segment {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let number = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
    let of_line = |line: &str| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let [range, _, offset, ..] = words[..] else { return None };
        let (start, limit) = range.split_once('-')?;
        let segment = Segment { start: number(start), limit: number(limit), offset: number(offset) };
        let is_in = (segment.start..segment.limit).contains(&address);
        (is_in && Path::new(words.last()?) == path).then_some(segment)
    };
    maps.lines().find_map(of_line).expect("the library's code is mapped")
}

/// Compiles the library in a folder.
fn compile(folder: &Path, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/symbolize/recorded_calls/calls.c");
    let output = ["-O2", "-shared", "-fPIC", "-Wl,--build-id", "-o", "libcalls.so", source.to_str().unwrap()];
    run(folder, "gcc", &[&output[..], flags].concat());
    folder.join("libcalls.so")
}

/// The functions of a library's symbol table: name, ELF virtual address, and length.
fn symbols(library: &Path) -> Vec<(String, u64, u64)> {
    let output = Program::new("nm").args(["--defined-only", "-S"]).arg(library).output().unwrap();
    let of_line = |line: &str| {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let [start, len, _, name] = words[..] else { return None };
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        Some((name.to_owned(), number(start)?, number(len)?))
    };
    String::from_utf8(output.stdout).unwrap().lines().filter_map(of_line).collect()
}

/// Loads copies of the library, whose names are found by `options`, and compares each call with its frame.
fn assert_all_found(command: &Command, library: &Path, folder: &Path, options: &[&str]) {
    let loaded: Vec<_> = (0..3)
        .map(|number| {
            let copy = folder.join(format!("{number}.so"));
            fs::copy(library, &copy).unwrap();
            Loaded::load(&copy)
        })
        .collect();
    let bases: BTreeSet<_> = loaded.iter().map(|library| library.code.start - library.code.offset).collect();
    assert_eq!(bases.len(), loaded.len(), "each copy has a base of its own");
    let mut tables = Dictionary::new();
    let locations: Vec<_> = loaded.iter().map(|library| library.locations(&mut tables)).collect();
    let input = command.path("in.otlp");
    fs::write(&input, message_of(tables, &locations.concat()).encode_to_vec()).unwrap();
    let (out, stderr) = command.symbolize(&input, "out.otlp", options);
    let count = loaded.iter().map(|library| library.calls.len()).sum::<usize>();
    assert!(stderr.contains(&format!("{count} of {count} native frames resolved")), "{stderr}");
    let message = messages_of(&out).remove(0);
    let mut in_cold_parts = 0;
    for (library, locations) in loaded.iter().zip(&locations) {
        for (call, &location) in library.calls.iter().zip(locations) {
            let mut lines = lines_of(&message, location);
            // The part of a function that the compiler has moved has the name of its symbol.
            let outermost = lines.last_mut().unwrap();
            if let Some(function) = outermost.1.strip_suffix(".cold") {
                outermost.1 = function.to_owned();
                in_cold_parts += 1;
            }
            let found: Vec<Place> =
                lines.into_iter().map(|(_, function, file, line, _)| (function, file, line)).collect();
            assert_eq!(found, call.chain, "{:#x}", call.return_address);
        }
    }
    assert_eq!(in_cold_parts, loaded.len(), "calls in cold parts");
}

/// Asserts that the library has chains of inlined functions, a call in a part that the compiler has moved,
/// and a call that is a function's last instruction.
fn assert_is_difficult(library: &Path, folder: &Path) {
    let copy = folder.join("examined.so");
    fs::copy(library, &copy).unwrap();
    let loaded = Loaded::load(&copy);
    let longest = loaded.calls.iter().map(|call| call.chain.len()).max();
    assert_eq!(longest, Some(3), "{:#?}", loaded.calls);
    let base = loaded.code.start - loaded.code.offset;
    let symbols = symbols(library);
    let of = |function: &str| {
        let call = loaded.calls.iter().find(|call| call.chain[0].0 == function).unwrap();
        let address = call.return_address - base;
        let at = symbols.iter().find(|(_, start, len)| (*start..start + len).contains(&(address - 1)));
        let (name, start, len) = at.unwrap();
        (name.clone(), address == start + len)
    };
    assert_eq!(of("branching").0, "branching.cold");
    assert_eq!(of("ends_in_call"), ("ends_in_call".to_owned(), true), "the return address is outside");
}

#[test]
fn every_call_that_a_library_records_is_found() {
    // Build-ids have 20 bytes, or as many as a linker writes.
    let long = format!("-Wl,--build-id=0x{}", "5a".repeat(32));
    for flags in [
        &["-g"][..],
        &["-gdwarf-4", "-Wl,--build-id=0x0123456789abcdef"],
        &["-g", "-gz", "-Wl,--build-id=md5"],
        &["-g", "-gsplit-dwarf", &long],
    ] {
        let command = Command::new();
        let folder = tempfile::tempdir().unwrap();
        let library = compile(folder.path(), flags);
        assert_is_difficult(&library, folder.path());
        let objects = folder.path().to_str().unwrap();
        assert_all_found(&command, &library, folder.path(), &["--path", objects]);
    }
}

#[test]
fn every_call_of_a_stripped_library_is_found_by_its_debug_file() {
    let command = Command::new();
    let folder = tempfile::tempdir().unwrap();
    let library = compile(folder.path(), &["-g"]);
    let id = build_id::of_file(&library).unwrap().to_string();
    let root = tempfile::tempdir().unwrap();
    let place = root.path().join(format!(".build-id/{}/{}.debug", &id[..2], &id[2..]));
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let (whole, debug) = (library.to_str().unwrap(), place.to_str().unwrap());
    run(folder.path(), "objcopy", &["--only-keep-debug", whole, debug]);
    run(folder.path(), "objcopy", &["--strip-all", whole, "stripped.so"]);
    let loaded = tempfile::tempdir().unwrap();
    let options = ["--debug-root", root.path().to_str().unwrap()];
    assert_all_found(&command, &folder.path().join("stripped.so"), loaded.path(), &options);
}

/// PyPI's JDKs have no build-id: the library is known by its content, and its debug file by the debug link.
#[test]
fn every_call_of_a_library_without_a_build_id_is_found_by_its_debug_link() {
    let command = Command::new();
    let folder = tempfile::tempdir().unwrap();
    let library = compile(folder.path(), &["-g", "-Wl,--build-id=none"]);
    let debug_files = tempfile::tempdir().unwrap();
    let debug = debug_files.path().join("libcalls.debuginfo");
    let (whole, debug) = (library.to_str().unwrap(), debug.to_str().unwrap());
    run(folder.path(), "objcopy", &["--only-keep-debug", whole, debug]);
    let link = format!("--add-gnu-debuglink={debug}");
    run(folder.path(), "objcopy", &["--strip-all", &link, whole, "stripped.so"]);
    let loaded = tempfile::tempdir().unwrap();
    let options = ["--path", debug_files.path().to_str().unwrap()];
    assert_all_found(&command, &folder.path().join("stripped.so"), loaded.path(), &options);
}

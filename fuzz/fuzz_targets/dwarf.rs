//! ELF files with debug information of any content: compiled, looked up, written to an index, and looked up
//! there. The input may be several files, one after another: the debug file, the object, the file with
//! MiniDebugInfo, the supplementary file, the package of split units, and a split unit. The last byte of the
//! input rotates the order of all but the first.
//!
//! `cargo fuzz run dwarf`; small programs with code at 0x1000, compiled with `-g`, `-g -gz=zlib` and
//! `-gdwarf-2`, and programs compiled with `-gsplit-dwarf` or treated by dwz, each followed by its other
//! files, make a good first corpus.

#![no_main]

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use otlpprof_dwarf::index::{Identity, Index, write};
use otlpprof_dwarf::{DwarfError, Inputs, LookUp, SplitFiles, compile};
use otlpprof_elf::source::Source;
use otlpprof_fuzz::ADDRESSES;

/// The first bytes of an ELF file, at which the input is cut.
const MAGIC: &[u8] = b"\x7fELF";

/// The index of one input at a time.
static INDEX: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("otlpprof-fuzz-{}", std::process::id())));

/// The files of an input.
fn files(bytes: &[u8]) -> Vec<&[u8]> {
    let mut starts: Vec<_> = (1..bytes.len()).filter(|&at| bytes[at..].starts_with(MAGIC)).collect();
    starts.push(bytes.len());
    let mut files = Vec::new();
    let mut begin = 0;
    for end in starts {
        files.push(&bytes[begin..end]);
        begin = end;
    }
    files
}

/// One split unit, whatever its name.
struct SplitFile<'a>(&'a [u8]);

impl SplitFiles for SplitFile<'_> {
    fn open(&self, _: &str, _: Option<&str>, _: u64) -> Option<Box<dyn Source + Send + Sync>> {
        Some(Box::new(Owned(self.0.to_vec())))
    }
}

/// The bytes of a file.
struct Owned(Vec<u8>);

impl Source for Owned {
    fn len(&self) -> u64 {
        self.0.as_slice().len() as u64
    }

    fn read_into(&self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.0.as_slice().read_into(offset, bytes)
    }
}

/// A text, or none where it cannot be read.
fn text_of<E>(text: Result<Cow<'_, str>, E>) -> String {
    text.map_or(String::new(), Cow::into_owned)
}

/// The linkage names and names for people, paths, lines and columns of all addresses.
fn answers<L: LookUp>(of: &mut L) -> Vec<([String; 3], u32, u32)> {
    let (mut answers, mut frames) = (Vec::new(), Vec::new());
    for address in ADDRESSES {
        if of.frames(address, &mut frames).is_err() {
            continue;
        }
        for frame in &frames {
            let linkage_name = frame.function.map(|id| text_of(of.text(id)));
            let name = frame.function.map(|id| text_of(of.name(id)));
            let path = frame.file.map(|id| text_of(of.text(id)));
            let texts = [linkage_name, name, path].map(Option::unwrap_or_default);
            answers.push((texts, frame.line, frame.column));
        }
    }
    answers
}

fuzz_target!(|bytes: &[u8]| {
    let files = files(bytes);
    let rotation = usize::from(bytes.last().copied().unwrap_or_default());
    let other = |role: usize| files.get(1 + (role + rotation) % 5);
    let split = other(4).map(|&bytes| SplitFile(bytes));
    let inputs = Inputs {
        debug: &files[0],
        object: other(0).map(|file| file as _),
        minidebug: other(1).map(|file| file as _),
        supplementary: other(2).map(|file| file as _),
        package: other(3).map(|file| file as _),
        split: split.as_ref().map(|split| split as _),
    };
    let wanted = bytes.len().is_multiple_of(2).then_some(&ADDRESSES[..]);
    match compile(&inputs, wanted) {
        Ok(mut compiled) => {
            let direct = answers(&mut compiled);
            if wanted.is_none() && !direct.is_empty() {
                write(&compiled, &Identity::default(), &INDEX).expect("a file");
                let index = std::fs::read(&*INDEX).expect("the file");
                assert_eq!(answers(&mut Index::open(&index[..]).expect("an index")), direct);
            }
        }
        Err(error) => assert!(!matches!(error, DwarfError::Panicked)),
    }
});

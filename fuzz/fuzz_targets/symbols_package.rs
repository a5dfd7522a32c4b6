//! Packages of any content: each ELF file in them is read to its end.
//!
//! `cargo fuzz run symbols_package`; small packages of each format (.deb, .rpm, .tar.gz, .tar.xz, .tar.zst)
//! with a file that begins as an ELF file does make a good first corpus.

#![no_main]

use std::ffi::OsStr;
use std::io;

use libfuzzer_sys::fuzz_target;
use otlpprof_cli::symbols::package::each_elf_file;

fuzz_target!(|bytes: &[u8]| {
    // A few bytes may become gigabytes, which is bounded, but not in the time of one input.
    const MOST: u64 = 1 << 20;
    let mut left = MOST;
    let _ = each_elf_file(&mut &*bytes, OsStr::new("input"), &mut |_, content| {
        left = left.saturating_sub(io::copy(&mut io::Read::take(content, left), &mut io::sink())?);
        if left == 0 {
            Err::<(), _>(io::Error::other("enough"))?;
        }
        Ok(())
    });
});

//! Finds the roots of stacks in a C library without call frame information: the calls that enter a thread's
//! or the program's own code.
//!
//! musl is compiled without call frame information, so no description says where a stack ends. Two of its
//! functions are at the root: `start` calls the function of a thread and passes the result to `pthread_exit`,
//! and `libc_start_main_stage2` calls `main` and passes the result to `exit` (musl:
//! src/thread/pthread_create.c, src/env/__libc_start_main.c). Neither is exported. The instructions show
//! both: a call through a register or memory, then at most a move of the result, then a call of the exported
//! function, which never returns.
//!
//! | Module | Duty |
//! |---|---|
//! | `x86_64`, `aarch64` | the calls that enter such code, on each architecture |

use std::ops::Range;

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};

use crate::image::LoadedImage;

mod aarch64;
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as native;
#[cfg(target_arch = "x86_64")]
use x86_64 as native;

/// Code with less than this share of its size in call frame information is compiled without: musl has the
/// descriptions of three functions, which come from the compiler's own library.
const LEAST_SHARE: u64 = 100;

/// The most code that is read, in bytes. musl has half a MiB.
const MAX_TEXT_LEN: u64 = 16 << 20;

/// Returns the code in `text` at which stacks end: from each call that enters other code to the end of the
/// call that follows. Ascending. `frames_len` is the length of the object's call frame information, in bytes.
pub(super) fn of_image(
    image: &LoadedImage,
    text: &Range<ElfVaddr>,
    frames_len: usize,
) -> Vec<Range<ElfVaddr>> {
    // Other C libraries describe their roots. Their loaders also hold locks while the list of objects is
    // visited, for which `dlsym` could wait.
    if cfg!(not(target_env = "musl")) {
        return Vec::new();
    }
    let text_len = text.end.0.saturating_sub(text.start.0);
    if (frames_len as u64).saturating_mul(LEAST_SHARE) >= text_len || text_len > MAX_TEXT_LEN {
        return Vec::new();
    }
    let exits: Vec<ElfVaddr> = [c"pthread_exit", c"exit"]
        .into_iter()
        .filter_map(|name| {
            // SAFETY: the name is a C string; nothing is loaded.
            let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            let at = image.load_bias().to_elf(RuntimeAddr(address as u64));
            text.contains(&at).then_some(at)
        })
        .collect();
    if exits.is_empty() {
        return Vec::new();
    }
    let executable = image.program_headers().iter().filter(|header| header.is_executable());
    executable
        .flat_map(|header| {
            let code = image.read(header.vaddr, header.file_size).unwrap_or_default();
            native::entries(&code, header.vaddr, &exits)
        })
        .collect()
}

/// Code for the tests of each architecture.
#[cfg(test)]
mod tests {
    use super::*;

    /// The address of a function that never returns.
    pub(super) const EXIT: ElfVaddr = ElfVaddr(0x1000);
    /// The address of the code.
    pub(super) const START: ElfVaddr = ElfVaddr(0x2000);

    /// The function of an architecture.
    type Entries = fn(&[u8], ElfVaddr, &[ElfVaddr]) -> Vec<Range<ElfVaddr>>;

    /// The starts and ends of the entries that an architecture's function finds in code, relative to it.
    pub(super) fn found(entries: Entries, code: &[u8]) -> Vec<(u64, u64)> {
        let ranges = entries(code, START, &[ElfVaddr(0x500), EXIT]);
        ranges.into_iter().map(|range| (range.start.0 - START.0, range.end.0 - START.0)).collect()
    }
}

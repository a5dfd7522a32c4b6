//! The kernel as a loaded object: names of its functions, and its build-id.
//!
//! The names are read once (`/proc/kallsyms`; kernel/kallsyms.c), so functions of modules that are loaded
//! later have no names. The kernel shows the addresses only to permitted processes. The kernel's load address
//! differs at each boot and is confidential, so this module only reveals addresses relative to `_text`, the
//! kernel's first symbol.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::LazyLock;

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};
use otlpprof_core::build_id::BuildId;
use thiserror::Error;

use super::build_id::of_notes;

const SYMBOLS: &str = "/proc/kallsyms";
/// The notes that are linked into the kernel (kernel/ksysfs.c).
const NOTES: &str = "/sys/kernel/notes";

/// The kernel's name, used in place of an object's path; `perf` uses the same name.
pub const KERNEL_NAME: &str = "[kernel.kallsyms]";

/// The reason why the kernel's functions have no names.
#[derive(Debug, Error)]
pub enum KernelSymbolsError {
    /// The table does not exist or cannot be read.
    #[error("{SYMBOLS} cannot be read, so kernel frames would have no names: {0}")]
    File(#[from] io::Error),
    /// The table has zeros in place of addresses.
    #[error(
        "{SYMBOLS} shows the process no addresses, so kernel frames would have no names; allow it by \
         CAP_SYSLOG, or by sysctl kernel.kptr_restrict=0 with kernel.perf_event_paranoid=1"
    )]
    Hidden,
}

/// A symbol. All addresses up to the next symbol belong to it.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    /// The range of the name in [`Kernel::names`]; empty for a symbol that is not a function.
    name: (u32, u32),
}

/// The names, code range and build-id of a kernel.
#[derive(Debug, Default)]
pub struct Kernel {
    symbols: Vec<Symbol>,
    /// All names in the kernel's form: `vfs_read`; with a module, `nf_hook_slow [nf_tables]`.
    names: String,
    /// The start and the end of the kernel's own code, without modules.
    text: (u64, u64),
    build_id: Option<BuildId>,
}

/// The function and the relative address of a place in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelPlace<'a> {
    /// The function's name, followed by the module's name if it belongs to a module.
    pub function: Option<&'a str>,
    /// The distance from `_text`, in bytes; `None` for modules.
    pub address: Option<ElfVaddr>,
}

impl Kernel {
    /// The running kernel; without names if the process is not permitted to see them. The first call takes
    /// about 150 ms.
    pub fn running() -> &'static Self {
        static KERNEL: LazyLock<Kernel> = LazyLock::new(|| {
            let build_id = std::fs::read(NOTES).ok().and_then(|notes| of_notes(&notes).ok());
            let symbols = File::open(SYMBOLS).and_then(|file| Kernel::read(BufReader::new(file)));
            Kernel { build_id, ..symbols.unwrap_or_default() }
        });
        &KERNEL
    }

    /// The kernel's build-id, if it is readable.
    pub fn build_id(&self) -> Option<BuildId> {
        self.build_id
    }

    /// The size of the kernel's code without modules, in bytes.
    pub fn text_bytes(&self) -> u64 {
        self.text.1 - self.text.0
    }

    /// The function and the relative address of `address`.
    pub fn place(&self, address: RuntimeAddr) -> KernelPlace<'_> {
        let (start, end) = self.text;
        let own = (start..end).contains(&address.0).then(|| ElfVaddr(address.0 - start));
        let after = self.symbols.partition_point(|symbol| symbol.address <= address.0);
        let symbol = after.checked_sub(1).and_then(|at| self.symbols.get(at));
        let name = symbol.and_then(|symbol| self.names.get(symbol.name.0 as usize..symbol.name.1 as usize));
        KernelPlace { function: name.filter(|name| !name.is_empty()), address: own }
    }

    /// Parses lines of `ADDRESS TYPE NAME[\t[MODULE]]`.
    fn read(lines: impl BufRead) -> io::Result<Self> {
        let mut kernel = Self::default();
        for line in lines.lines() {
            let line = line?;
            let Some(Line { address, is_function, name }) = Line::read(&line) else { continue };
            match name {
                "_text" => kernel.text.0 = address,
                "_etext" => kernel.text.1 = address,
                _ => {}
            }
            let start = kernel.names.len() as u32;
            if is_function && address != 0 {
                let (name, module) = name.split_once('\t').unwrap_or((name, ""));
                kernel.names.push_str(name);
                if !module.is_empty() {
                    kernel.names.extend([" ", module]);
                }
            }
            kernel.symbols.push(Symbol { address, name: (start, kernel.names.len() as u32) });
        }
        if kernel.text.0 > kernel.text.1 {
            kernel.text = (0, 0);
        }
        // The sort is stable: of several names for one address, the kernel itself uses the first
        // (`get_symbol_pos`).
        kernel.symbols.sort_by_key(|symbol| symbol.address);
        kernel
            .symbols
            .dedup_by(|later, first| later.address == first.address && first.name.0 != first.name.1);
        kernel.symbols.shrink_to_fit();
        kernel.names.shrink_to_fit();
        Ok(kernel)
    }
}

/// Checks that this process can see the names of the kernel's functions.
///
/// # Errors
/// The reason why the names are hidden, and how to permit reading them.
pub fn check_symbols() -> Result<(), KernelSymbolsError> {
    check_symbols_in(Path::new(SYMBOLS))
}

fn check_symbols_in(path: &Path) -> Result<(), KernelSymbolsError> {
    for line in BufReader::new(File::open(path)?).lines() {
        // Data may have the address 0, but functions do not.
        match Line::read(&line?) {
            Some(Line { is_function: true, address: 0, .. }) => return Err(KernelSymbolsError::Hidden),
            Some(Line { is_function: true, .. }) => return Ok(()),
            _ => {}
        }
    }
    Err(KernelSymbolsError::Hidden)
}

struct Line<'a> {
    address: u64,
    is_function: bool,
    /// The name, followed by the module's name if there is one.
    name: &'a str,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (address, rest) = line.split_once(' ')?;
        let (kind, name) = rest.split_once(' ')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        Some(Self { address, is_function: matches!(kind, "t" | "T" | "w" | "W"), name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &str = "0000000000000000 A fixed_percpu_data\n\
                        ffffffff81000000 T _text\n\
                        ffffffff81000000 T _stext\n\
                        ffffffff81000c60 T asm_exc_page_fault\n\
                        ffffffff81001000 t helper\n\
                        ffffffff81001000 W helper_alias\n\
                        ffffffff82000000 T _etext\n\
                        ffffffff82000000 D data\n\
                        ffffffffc0201000 t nf_hook_slow\t[nf_tables]\n\
                        ffffffffc0202000 d its_data\t[nf_tables]\n\
                        a line that is none\n\
                        ffffffffc0200000 t init\t[earlier]\n";

    #[test]
    fn addresses_are_of_the_function_before_them() {
        let kernel = Kernel::read(SOME.as_bytes()).unwrap();
        assert_eq!(kernel.text_bytes(), 0x100_0000);
        for (address, function, own) in [
            (0x1000, None, None),
            (0xffff_ffff_8100_0000, Some("_text"), Some(0)),
            (0xffff_ffff_8100_0c5f, Some("_text"), Some(0xc5f)),
            (0xffff_ffff_8100_0c60, Some("asm_exc_page_fault"), Some(0xc60)),
            (0xffff_ffff_8100_1234, Some("helper"), Some(0x1234)),
            (0xffff_ffff_c020_0fff, Some("init [earlier]"), None),
            (0xffff_ffff_c020_1000, Some("nf_hook_slow [nf_tables]"), None),
            (0xffff_ffff_c020_2000, None, None),
            (u64::MAX, None, None),
        ] {
            let address_after_text = own.map(ElfVaddr);
            assert_eq!(
                kernel.place(RuntimeAddr(address)),
                KernelPlace { function, address: address_after_text },
                "{address:#x}"
            );
        }
        let nothing = Kernel::default();
        assert_eq!(nothing.place(RuntimeAddr(5)), KernelPlace { function: None, address: None });
    }

    #[test]
    fn hidden_addresses_are_distinguished_from_data_at_zero() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kallsyms");
        assert!(matches!(check_symbols_in(&file), Err(KernelSymbolsError::File(_))));
        for (text, is_shown) in
            [(SOME, true), ("0000000000000000 A data\n0000000000000000 T _text\n", false), ("", false)]
        {
            std::fs::write(&file, text).unwrap();
            assert_eq!(check_symbols_in(&file).is_ok(), is_shown, "{text}");
        }
        let printed = KernelSymbolsError::Hidden.to_string();
        assert!(printed.contains("CAP_SYSLOG") && printed.contains("kernel.kptr_restrict=0"), "{printed}");
    }

    #[test]
    fn the_running_kernel_knows_itself() {
        if check_symbols().is_err() {
            assert!(Kernel::running().symbols.iter().all(|symbol| symbol.name.0 == symbol.name.1));
            return;
        }
        let kernel = Kernel::running();
        let named = |name: &str| kernel.names.contains(name);
        assert!(kernel.text_bytes() > 1 << 20 && named("schedule") && named("vfs_read"));
        assert!(kernel.place(RuntimeAddr(kernel.text.0)).function.is_some());
    }
}

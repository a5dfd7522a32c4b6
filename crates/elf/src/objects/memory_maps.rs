//! Parses `/proc/self/maps` (proc_pid_maps(5)): the mapped files, their addresses and protections.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use otlpprof_core::address::RuntimeAddr;

/// The text of `/proc/self/maps` at one time.
#[derive(Debug, Default)]
pub struct MemoryMaps {
    text: Vec<u8>,
}

/// The file of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedFile<'a> {
    /// The file's path when it was mapped. A newline in it is written as `\012`.
    pub path: &'a Path,
    /// Whether the path has been deleted or replaced since.
    pub is_deleted: bool,
    /// `st_dev` and `st_ino`. Some file systems report other values here than in stat(2).
    pub device_and_inode: (u64, u64),
}

impl MemoryMaps {
    /// Reads the text; empty if there is no `/proc`.
    pub fn read() -> Self {
        Self { text: std::fs::read("/proc/self/maps").unwrap_or_default() }
    }

    /// The protection of the memory at `address`, as a sum of `PROT_READ` and similar bits; `None` if it is
    /// unmapped.
    pub fn protection_at(&self, address: RuntimeAddr) -> Option<libc::c_int> {
        self.text.split(|&byte| byte == b'\n').find_map(|line| {
            let mut fields = line.splitn(3, |&byte| byte == b' ');
            let (start, end) = split_pair(fields.next()?, b'-')?;
            if !(start..end).contains(&address.0) {
                return None;
            }
            let letters = fields.next()?;
            let bits = [(b'r', libc::PROT_READ), (b'w', libc::PROT_WRITE), (b'x', libc::PROT_EXEC)];
            Some(bits.iter().filter(|(letter, _)| letters.contains(letter)).map(|(_, bit)| bit).sum())
        })
    }

    /// The memory to which the kernel gives this name, such as `[vdso]`: the first address, and the one after
    /// the last.
    pub fn memory_called(&self, name: &str) -> Option<Range<u64>> {
        self.text.split(|&byte| byte == b'\n').find_map(|line| {
            let mut fields = line.splitn(6, |&byte| byte == b' ');
            let (start, end) = split_pair(fields.next()?, b'-')?;
            let found = fields.nth(4)?.trim_ascii_start();
            (found == name.as_bytes() && start < end).then_some(start..end)
        })
    }

    /// The file that is mapped at `address`.
    pub fn file_at(&self, address: RuntimeAddr) -> Option<MappedFile<'_>> {
        self.text.split(|&byte| byte == b'\n').find_map(|line| {
            let mut fields = line.splitn(6, |&byte| byte == b' ');
            let (start, end) = split_pair(fields.next()?, b'-')?;
            if !(start..end).contains(&address.0) {
                return None;
            }
            let (major, minor) = split_pair(fields.nth(2)?, b':')?;
            let inode = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
            let path = fields.next()?.trim_ascii_start();
            let (path, is_deleted) =
                path.strip_suffix(b" (deleted)").map_or((path, false), |path| (path, true));
            let device = libc::makedev(u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
            path.starts_with(b"/").then(|| MappedFile {
                path: Path::new(OsStr::from_bytes(path)),
                is_deleted,
                device_and_inode: (device, inode),
            })
        })
    }
}

/// Parses two hexadecimal numbers.
fn split_pair(text: &[u8], separator: u8) -> Option<(u64, u64)> {
    let (first, second) = std::str::from_utf8(text).ok()?.split_once(char::from(separator))?;
    Some((u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(second, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_kernel_writes_them() {
        let maps = MemoryMaps {
            text: b"1000-2000 r--p 00000000 fe:01 123                        /usr/lib/with space.so\n\
                2000-3000 r-xp 00001000 fe:01 124                        /tmp/x.so (deleted)\n\
                3000-4000 rw-p 00000000 00:00 0 \n\
                4000-5000 r-xp 00000000 00:00 0                          [vdso]\n"
                .to_vec(),
        };
        let first = maps.file_at(RuntimeAddr(0x1fff)).unwrap();
        assert_eq!(first.path, Path::new("/usr/lib/with space.so"));
        assert_eq!((first.is_deleted, first.device_and_inode), (false, (libc::makedev(0xfe, 1), 123)));
        let second = maps.file_at(RuntimeAddr(0x2000)).unwrap();
        assert_eq!((second.path, second.is_deleted), (Path::new("/tmp/x.so"), true));
        for address in [0xfff, 0x3000, 0x4000, 0x5000] {
            assert_eq!(maps.file_at(RuntimeAddr(address)), None);
        }
        assert_eq!(maps.memory_called("[vdso]"), Some(0x4000..0x5000));
        assert_eq!(maps.memory_called("[vvar]"), None);
        let protections = [
            (0x1000, Some(libc::PROT_READ)),
            (0x2fff, Some(libc::PROT_READ | libc::PROT_EXEC)),
            (0x3000, Some(libc::PROT_READ | libc::PROT_WRITE)),
            (0x5000, None),
        ];
        for (address, protection) in protections {
            assert_eq!(maps.protection_at(RuntimeAddr(address)), protection, "{address:x}");
        }
    }

    #[test]
    fn the_file_of_this_program_is_found() {
        let here = RuntimeAddr(split_pair as *const () as u64);
        assert_eq!(MemoryMaps::read().file_at(here).unwrap().path, std::env::current_exe().unwrap());
    }
}

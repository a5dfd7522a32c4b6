//! The end of a file of messages: a process that is killed while it writes leaves a part of a message there.

use std::fs::{OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Number of attempts to take the file's lock while another process writes, and the wait between two of them.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_WAIT: Duration = Duration::from_millis(10);
/// Bytes of a length prefix.
const PREFIX: u64 = 4;
/// Bytes that are read at once.
const CHUNK: usize = 1 << 16;

/// Removes a part of a message from the end of a file of the agent. Returns the number of removed bytes.
pub(super) fn cut(path: &Path) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    for _ in 0..LOCK_ATTEMPTS {
        match file.try_lock() {
            // The agent holds the lock while it writes a message.
            Err(TryLockError::WouldBlock) => thread::sleep(LOCK_WAIT),
            // A file system without locks has no other way.
            Ok(()) | Err(TryLockError::Error(_)) => {
                let length = file.metadata()?.len();
                let whole = whole_length(&mut file, length)?;
                if whole < length {
                    file.set_len(whole)?;
                }
                return Ok(length - whole);
            }
        }
    }
    Ok(0)
}

/// The length of the whole messages in a file of `length` bytes: lines of JSON, or protobuf with length
/// prefixes.
pub(super) fn whole_length(file: &mut (impl Read + Seek), length: u64) -> io::Result<u64> {
    let mut first = [0];
    if length == 0 {
        return Ok(0);
    }
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut first)?;
    if first == *b"{" {
        return length_of_lines(file, length);
    }
    let mut whole = 0;
    while length - whole >= PREFIX {
        let mut prefix = [0; PREFIX as usize];
        file.seek(SeekFrom::Start(whole))?;
        file.read_exact(&mut prefix)?;
        let message = PREFIX + u64::from(u32::from_be_bytes(prefix));
        if message > length - whole {
            break;
        }
        whole += message;
    }
    Ok(whole)
}

/// The length up to the end of the last whole line.
fn length_of_lines(file: &mut (impl Read + Seek), length: u64) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK];
    let mut end = length;
    while end > 0 {
        let part = usize::try_from(end).map_or(CHUNK, |left| left.min(CHUNK));
        let start = end - part as u64;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut chunk[..part])?;
        if let Some(at) = chunk[..part].iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Cuts a file of these bytes, and returns the bytes that are left.
    fn left_of(bytes: &[u8]) -> Vec<u8> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        let removed = cut(file.path()).unwrap();
        let left = fs::read(file.path()).unwrap();
        assert_eq!(removed as usize + left.len(), bytes.len());
        left
    }

    #[test]
    fn a_message_that_is_cut_off_anywhere_is_removed() {
        let whole = [&[0, 0, 0, 3][..], b"abc", &[0, 0, 0, 0], &[0, 0, 0, 1], b"d"].concat();
        let ends = [0, 7, 11, 16];
        for length in 0..=whole.len() {
            let end = ends.into_iter().rfind(|&end| end <= length).unwrap();
            assert_eq!(left_of(&whole[..length]), whole[..end], "{length}");
        }
    }

    #[test]
    fn a_message_that_is_cut_is_left_out() {
        let bytes = b"\0\0\0\x03abc\0\0\0\0\0\0\0\x02de";
        // The ends of the messages.
        let ends = [7, 11, 17];
        for length in 0..=bytes.len() {
            let whole = ends.into_iter().rfind(|end| *end <= length).unwrap_or(0);
            let mut file = io::Cursor::new(&bytes[..length]);
            assert_eq!(whole_length(&mut file, length as u64).unwrap(), whole as u64, "{length}");
        }
    }

    #[test]
    fn a_line_that_is_cut_off_is_removed() {
        let long = format!("{{\"a\":\"{}", "x".repeat(2 * CHUNK));
        for (bytes, left) in [
            ("{}\n{}\n", "{}\n{}\n"),
            ("{}\n{\"a\"", "{}\n"),
            ("{}", ""),
            (&long, ""),
            (&format!("{{}}\n{long}"), "{}\n"),
        ] {
            assert_eq!(left_of(bytes.as_bytes()), left.as_bytes());
        }
    }
}

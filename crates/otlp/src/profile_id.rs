//! Random profile ids.

use std::hash::{BuildHasher, RandomState};

/// Sixteen random bytes, not all zero.
pub fn new_profile_id() -> [u8; 16] {
    let mut id = [0u8; 16];
    // The system call is made directly: glibc before 2.25 has no function getrandom.
    // SAFETY: `id` is a live local buffer of `id.len()` bytes. GRND_NONBLOCK makes the call return at once;
    // without this flag the call could wait early in a machine's boot.
    let filled =
        unsafe { libc::syscall(libc::SYS_getrandom, id.as_mut_ptr(), id.len(), libc::GRND_NONBLOCK) };
    if usize::try_from(filled) != Ok(id.len()) || id == [0; 16] {
        // The standard library's hash keys are random for each process and differ for each RandomState.
        let halves = [RandomState::new().hash_one(0), RandomState::new().hash_one(1) | 1];
        id[..8].copy_from_slice(&halves[0].to_le_bytes());
        id[8..].copy_from_slice(&halves[1].to_le_bytes());
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_differ_and_are_not_zero() {
        let ids: HashSet<_> = (0..1000).map(|_| new_profile_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(!ids.contains(&[0; 16]));
    }
}

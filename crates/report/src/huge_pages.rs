//! Huge pages for large tables that are read at random places.
//!
//! With pages of 4 KiB nearly each access to such a table also misses the processor's cache of addresses.

/// The bytes of a huge page.
const HUGE: usize = 2 << 20;

/// Asks the kernel to back memory that has not been written yet with huge pages, as far as it has whole ones
/// (madvise(2), `MADV_HUGEPAGE`).
pub(super) fn advise<T>(memory: &mut [T]) {
    let bytes = size_of_val(memory);
    let skipped = memory.as_mut_ptr().cast::<u8>().align_offset(HUGE);
    if bytes < 2 * HUGE || skipped > bytes - HUGE {
        return;
    }
    let whole = (bytes - skipped) / HUGE * HUGE;
    // SAFETY: the range is within the slice, and the advice changes no content.
    unsafe {
        let start = memory.as_mut_ptr().cast::<u8>().add(skipped);
        // Without huge pages, accesses are slower.
        libc::madvise(start.cast(), whole, libc::MADV_HUGEPAGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_any_size_keeps_its_content() {
        for count in [0, 1, HUGE, 5 * HUGE / 8] {
            let mut memory = vec![0_u64; count];
            advise(&mut memory);
            assert!(memory.iter().all(|&number| number == 0));
        }
    }
}

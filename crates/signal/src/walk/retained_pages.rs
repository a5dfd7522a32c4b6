//! ZGC: the pages that must not change until a walk has read all objects that it needs.

use std::cell::Cell;

/// The most pages that are remembered: more than the chunks of a usual continuation are on.
const MAX_PAGES: usize = 8;

/// A page from which objects were read while its objects were being moved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RetainedPage {
    /// The address of the slot in the forwarding table that holds the page's ZForwarding.
    pub(super) slot: u64,
    pub(super) forwarding: u64,
}

/// The pages that must not change until a walk has read all objects that it needs.
#[derive(Debug, Default)]
pub(super) struct RetainedPages {
    pub(super) pages: Cell<[RetainedPage; MAX_PAGES]>,
    /// The mask of bits that references must not have; 0 if no reference has been followed.
    pub(super) bad_mask: Cell<u64>,
}

impl RetainedPages {
    /// Remembers `page`. Returns whether there was room for it.
    pub(super) fn remember(&self, page: RetainedPage) -> bool {
        let mut pages = self.pages.get();
        let is_free = |known: &&mut RetainedPage| known.forwarding == 0 || known.slot == page.slot;
        let Some(free) = pages.iter_mut().find(is_free) else { return false };
        let is_same = free.forwarding == 0 || free.forwarding == page.forwarding;
        *free = page;
        self.pages.set(pages);
        is_same
    }
}

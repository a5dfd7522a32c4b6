//! Build-id records that live for ever, each build-id once.

use std::collections::HashSet;

use parking_lot::Mutex;

use crate::core::build_id::BuildId;

static RECORDS: Mutex<Option<HashSet<&'static BuildId>>> = Mutex::new(None);

/// The record of `id`. A handler may name an object by its address at any later time, so it is never freed;
/// loading the same files again and again takes no more memory, because equal build-ids share a record.
pub fn record_of(id: BuildId) -> &'static BuildId {
    let mut records = RECORDS.lock();
    let records = records.get_or_insert_default();
    if let Some(&record) = records.get(&id) {
        return record;
    }
    let record: &'static BuildId = Box::leak(Box::new(id));
    records.insert(record);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_build_ids_share_one_record() {
        let id = |byte| BuildId::new(&[byte; 20]).unwrap();
        assert!(std::ptr::eq(record_of(id(0xa1)), record_of(id(0xa1))));
        assert_ne!(record_of(id(0xa1)), record_of(id(0xa2)));
    }
}

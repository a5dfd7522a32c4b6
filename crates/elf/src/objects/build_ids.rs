//! Build-id records that are never freed, one for each distinct build-id.

use std::collections::HashSet;

use parking_lot::Mutex;

use otlpprof_core::build_id::BuildId;

static RECORDS: Mutex<Option<HashSet<&'static BuildId>>> = Mutex::new(None);

/// The record of `id`. It is never freed, because a handler may refer to it at any later time. Equal
/// build-ids share a record, so loading the same files repeatedly takes no more memory.
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

//! Fuzzes the decoders of the vector index's log and edge rows.
#![no_main]

use insert_diskann::compact::record::{Record, ids_from_bytes, ids_to_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(record) = Record::from_bytes(bytes) {
        assert_eq!(Record::from_bytes(&record.to_bytes()).as_ref(), Some(&record));
    }
    if let Some(ids) = ids_from_bytes(bytes) {
        assert_eq!(ids_to_bytes(&ids), bytes);
    }
});

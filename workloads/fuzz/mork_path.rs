//! What bytes may be taken for a path: what decodes has bytes that decode to the same.
#![no_main]

use insert_mork::encoding::{MAX_PATH, decode, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|path: &[u8]| {
    if let Ok(value) = decode(path) {
        let mut bytes = Vec::new();
        let written = encode(&value, &mut bytes);
        if path.len() <= MAX_PATH {
            written.expect("what reads back can be written");
            // A symbol may escape what needs no escape.
            assert!(bytes == path || path.contains(&b'\\'));
            assert_eq!(decode(&bytes), Ok(value));
        }
    }
});

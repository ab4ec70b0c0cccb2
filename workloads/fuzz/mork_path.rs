//! Fuzzes the path decoder. A decoded value re-encodes to a path that decodes to the same value.
#![no_main]

use insert_mork::encoding::{MAX_PATH, decode, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|path: &[u8]| {
    if let Ok(value) = decode(path) {
        let mut bytes = Vec::new();
        let written = encode(&value, &mut bytes);
        if path.len() <= MAX_PATH {
            written.expect("decoded values can be encoded");
            // A symbol may have redundant escapes.
            assert!(bytes == path || path.contains(&b'\\'));
            assert_eq!(decode(&bytes), Ok(value));
        }
    }
});

//! What a file of MeTTa may hold: every expression that parses has bytes that read back, and a text that parses to the same bytes.
#![no_main]

use insert_mork::encoding::{MAX_PATH, Parser, decode, encode};
use insert_mork::text::to_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (mut parser, mut path) = (Parser::new(text), Vec::new());
    while let Ok(true) = parser.next_expression(&mut path) {
        assert!(!path.is_empty() && path.len() <= MAX_PATH);
        let value = decode(&path).expect("what was parsed reads back");
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        encode(&value, &mut bytes).expect("what reads back can be written");
        // A text may escape what needs no escape, and is otherwise kept as it is.
        assert!(bytes == path || path.contains(&b'\\'));
        assert_eq!(decode(&bytes), Ok(value.clone()));
        assert_eq!(Parser::new(&to_text(&value)).next_expression(&mut again), Ok(true));
        assert_eq!(again, bytes);
        path.clear();
    }
});

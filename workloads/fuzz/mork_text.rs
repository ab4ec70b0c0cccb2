//! Fuzzes the MeTTa parser. Every parsed expression encodes to a path that decodes again, and prints as a text with the
//! same path.
#![no_main]

use insert_mork::encoding::{MAX_PATH, Parser, decode, encode};
use insert_mork::text::to_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (mut parser, mut path) = (Parser::new(text), Vec::new());
    while let Ok(true) = parser.next_expression(&mut path) {
        assert!(!path.is_empty() && path.len() <= MAX_PATH);
        let value = decode(&path).expect("an encoded expression can be decoded");
        let (mut bytes, mut again) = (Vec::new(), Vec::new());
        encode(&value, &mut bytes).expect("decoded values can be encoded");
        // A text may have redundant escapes; otherwise it is unchanged.
        assert!(bytes == path || path.contains(&b'\\'));
        assert_eq!(decode(&bytes), Ok(value.clone()));
        assert_eq!(Parser::new(&to_text(&value)).next_expression(&mut again), Ok(true));
        assert_eq!(again, bytes);
        path.clear();
    }
});

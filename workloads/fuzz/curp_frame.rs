//! Fuzzes the CURP-HO frame decoder. Frames respect the size limit, and every message has one encoding.
#![no_main]

use batch_curp_ho::process::replica::Settings;
use batch_curp_ho::wire::{HEADER, MAX_FRAME, Message, split};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut left = bytes;
    while let Ok(Some((body, rest))) = split(left) {
        assert!(!body.is_empty() && body.len() <= MAX_FRAME);
        let frame = &left[..HEADER + body.len()];
        if let Ok(message) = Message::decode(body) {
            let mut again = Vec::new();
            message.append(&mut again);
            assert_eq!(again, frame, "a message has one form");
        }
        left = rest;
    }
    // Mutations find no lengths: the same without them.
    if let Ok(message) = Message::decode(bytes) {
        if let Message::Begin { settings, .. } = message {
            let _ = Settings::from_json(settings);
        }
        let mut again = Vec::new();
        message.append(&mut again);
        assert_eq!(&again[HEADER..], bytes, "a message has one form");
    }
});

//! Fuzzes the RMS24 client's reply decoder.
#![no_main]

use batch_rms24::wire::Reply;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|message: &[u8]| {
    if let Ok(reply) = Reply::decode(message) {
        let mut again = Vec::new();
        reply.encode(&mut again);
        assert_eq!(again, message, "a message has one form");
    }
});

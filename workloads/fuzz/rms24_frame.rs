//! Fuzzes the RMS24 framing. Frames respect the size limit and contain only received bytes.
#![no_main]

use batch_rms24::wire::framing::{self, HEADER, Incoming};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let (mut left, mut message) = (bytes, Vec::new());
    loop {
        let before = left.len();
        match framing::read(&mut left, LIMIT, &mut message) {
            Ok(Incoming::Message) => {
                assert!(message.len() <= LIMIT && before - left.len() == HEADER + message.len());
            }
            Ok(Incoming::TooLong(length)) => {
                assert!(length as usize > LIMIT);
                break;
            }
            Ok(Incoming::End) => {
                assert!(left.is_empty());
                break;
            }
            Err(_) => break,
        }
    }
});

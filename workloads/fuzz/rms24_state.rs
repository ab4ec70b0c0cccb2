//! Fuzzes the decoder of the RMS24 client's cached state, with the original digest and with a corrected one.
#![no_main]

use std::sync::LazyLock;

use batch_rms24::database::Entries;
use batch_rms24::geometry::Geometry;
use batch_rms24::prf::{PrfKind, Secret};
use batch_rms24::state::Owner;
use libfuzzer_sys::fuzz_target;

static SECRET: LazyLock<Secret> = LazyLock::new(|| Secret::from_seed(1));

fuzz_target!(|bytes: &[u8]| {
    let entries = Entries::new(3, Geometry::new(4, 8, 1));
    let owner = Owner { prf: PrfKind::Aes, secret: &SECRET, entries, backups: 1 };
    let mut whole = bytes.to_vec();
    whole.extend(blake3::hash(bytes).as_bytes());
    for file in [bytes, &whole[..]] {
        if owner.read(file).is_ok() {
            assert_eq!(file.len() as u64, owner.bytes());
        }
    }
});

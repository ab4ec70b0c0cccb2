//! Fuzzes the PIR server's key decoder. A valid key gives one bit per row, and all expansion paths agree.
#![no_main]

use assay_harness::simd::Isa;
use libfuzzer_sys::fuzz_target;
use scan_pir::keys::dpf::DpfKey;
use scan_pir::keys::{KeyKind, Keys, Prg};
use scan_pir::selection::Selection;

/// Rows of the largest matrix.
const ROWS: usize = 5000;

fuzz_target!(|bytes: &[u8]| {
    let Some((rows, key)) = bytes.split_first_chunk::<2>() else { return };
    let rows = 1 + usize::from(u16::from_le_bytes(*rows)) % ROWS;
    // Mutations find no lengths either: one key is cut or filled up to its own.
    let mut fitting = key.to_vec();
    fitting.resize(DpfKey::bytes(rows), 0);
    for (kind, key) in [(KeyKind::Toy, key), (KeyKind::Dpf, key), (KeyKind::Dpf, &fitting)] {
        let Ok(keys) = Keys::parse(kind, rows, [key].into_iter()) else { continue };
        let expanded = |isa, prg| {
            let mut selection = Selection::new(1, rows);
            keys.expand(0, isa, prg, rows, selection.keys_mut().next().expect("there is a key"));
            selection
        };
        let isas = Isa::available();
        let expected = expanded(isas[0], Prg::Portable);
        for isa in isas {
            for prg in Prg::available() {
                assert_eq!(expanded(isa, prg).key(0), expected.key(0), "{} and {}", isa.name(), prg.name());
            }
        }
        for row in [0, rows / 2, rows - 1] {
            let bit = match &keys {
                Keys::Toy(keys) => keys[0].bit(row),
                Keys::Dpf(keys) => keys[0].bit(row),
            };
            assert_eq!(expected.bit(0, row), bit, "row {row} of {rows}");
        }
    }
});

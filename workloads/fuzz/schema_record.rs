//! Fuzzes the record parsers for results, waves and attempts. A parsed record serializes to an equal one.
#![no_main]

use std::fmt::Debug;

use assay_schema::{Attempt, Check, Result, Wave, read};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

fn whole<T: DeserializeOwned + Serialize + Check + PartialEq + Debug>(text: &[u8]) {
    if let Ok(record) = read::<T>(text) {
        let again = serde_json::to_vec(&record).expect("a record is only strings, numbers and maps with string keys");
        assert_eq!(read::<T>(&again).as_ref(), Ok(&record));
    }
}

fuzz_target!(|text: &[u8]| {
    whole::<Result>(text);
    whole::<Wave>(text);
    whole::<Attempt>(text);
});

//! Fuzzes all adapters with arbitrary tool output. Each input gives a valid result or an error.
#![no_main]

use assay_adapters::{Source, convert};
use assay_schema::Check;
use assay_schema::output::{Format, MetricSource, Output};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let time = MetricSource { name: "time".to_owned(), unit: "s".to_owned(), ..MetricSource::default() };
    for &format in Format::ALL {
        for name in ["standard output", "group/benchmark/new/sample.json"] {
            let sources = [Source { name: name.to_owned(), bytes: bytes.to_vec() }];
            for metrics in [None, Some(vec![time.clone()])] {
                let output = Output { format, path: None, metrics, csv: None, json: None };
                if let Ok(result) = convert(&output, &sources) {
                    result.check().expect("adapter results are valid");
                }
            }
        }
    }
});

//! Compact storage for many samples of a metric, from which percentiles can be merged across trials.

use assay_schema::result::{Histogram as Encoded, HistogramEncoding};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

/// An `HdrHistogram` of values in a metric's unit.
///
/// Values are recorded as integer multiples of `scale` with three significant digits. With a scale of 1e-9, a metric in
/// seconds has nanosecond resolution.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    scale: f64,
}

impl Histogram {
    /// Creates an empty histogram with the unit `scale`.
    ///
    /// # Panics
    ///
    /// If `scale` is not a positive number.
    #[must_use]
    pub fn new(scale: f64) -> Self {
        assert!(scale.is_finite() && scale > 0.0, "a histogram's scale is positive");
        let counts = hdrhistogram::Histogram::new(3).expect("three significant digits are allowed");
        Self { counts, scale }
    }

    /// Adds one observation, clamped to the largest value that can be represented.
    ///
    /// # Panics
    ///
    /// If `value` is negative or NaN.
    pub fn record(&mut self, value: f64) {
        assert!(value >= 0.0, "a histogram holds values from zero upwards, not {value}");
        let multiple = ((value / self.scale).round() as u64).min(i64::MAX.cast_unsigned());
        self.counts.record(multiple).expect("an auto-resizing histogram takes every value up to 2^63");
    }

    /// Number of observations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Returns the reported form.
    pub(crate) fn encode(&self) -> Encoded {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.counts, &mut bytes).expect("writing to memory does not fail");
        Encoded {
            encoding: HistogramEncoding::HdrV2DeflateBase64,
            scale: self.scale,
            count: self.count(),
            data: STANDARD.encode(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    #[test]
    fn encoded_histogram_decodes_to_the_same_percentiles() {
        let mut histogram = Histogram::new(1e-9);
        for i in 1..=1000 {
            histogram.record(f64::from(i) * 1e-6);
        }
        let encoded = histogram.encode();
        let bytes = STANDARD.decode(encoded.data).unwrap();
        let read: hdrhistogram::Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!((read.len(), encoded.count), (1000, 1000));
        let p95 = read.value_at_quantile(0.95) as f64 * encoded.scale;
        assert!((p95 / 950e-6 - 1.0).abs() < 2e-3, "p95 is {p95}");
    }
}

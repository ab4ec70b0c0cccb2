//! Many samples of one metric, in little space, so that percentiles merge across trials.

use assay_schema::result::{Histogram as Encoded, HistogramEncoding};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

/// An `HdrHistogram` of values in a metric's unit.
///
/// Values are recorded as whole multiples of `scale` with three significant digits: with a scale of 1e-9 a metric in seconds keeps
/// nanoseconds.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: hdrhistogram::Histogram<u64>,
    scale: f64,
}

impl Histogram {
    /// An empty histogram that counts in units of `scale`.
    ///
    /// # Panics
    ///
    /// When `scale` is not a positive number.
    #[must_use]
    pub fn new(scale: f64) -> Self {
        assert!(scale.is_finite() && scale > 0.0, "a histogram's scale is positive");
        let counts = hdrhistogram::Histogram::new(3).expect("three significant digits are allowed");
        Self { counts, scale }
    }

    /// Adds one observation. What is too large to be represented counts as the largest that is.
    ///
    /// # Panics
    ///
    /// When `value` is negative or not a number.
    pub fn record(&mut self, value: f64) {
        assert!(value >= 0.0, "a histogram holds values from zero upwards, not {value}");
        let multiple = ((value / self.scale).round() as u64).min(i64::MAX.cast_unsigned());
        self.counts.record(multiple).expect("an auto-resizing histogram takes every value up to 2^63");
    }

    /// How many observations it holds.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The form in which it is reported.
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
    fn what_is_encoded_reads_back_with_the_same_percentiles() {
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

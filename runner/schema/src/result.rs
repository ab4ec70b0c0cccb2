//! The result record: the report of one workload process about one trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::check::{self, Check, Violation};
use crate::read::records;

records! {
    /// The report of one workload process about one trial. Times are in seconds and sizes in bytes unless a unit is
    /// given. Figures that the process does not have are omitted, never written as zero.
    pub struct Result {
        /// The schema id of the format.
        pub schema: SchemaId,
        /// The program that ran.
        pub workload: Workload,
        /// The effective value of each parameter.
        pub effective: Option<BTreeMap<String, Scalar>>,
        /// The measured metrics.
        pub metrics: BTreeMap<String, Metric>,
        /// Named phases of the measured region, in order.
        pub phases: Option<Vec<Phase>>,
        /// Amount of work per trial.
        pub counters: Option<BTreeMap<String, Quantity>>,
        /// Digest of the outputs, which must be equal for all arms of a point.
        pub parity: Option<Parity>,
        /// Hardware limits measured by the same process.
        pub ceilings: Option<Vec<Ceiling>>,
    }

    /// The program that ran.
    pub struct Workload {
        /// Its name.
        pub name: String,
        /// Its version.
        pub version: String,
        /// Build settings: compiler, profile, target features.
        pub build: Option<BTreeMap<String, String>>,
    }

    /// Serialized form of [`Metric`], before the check that exactly one reading is present.
    struct LooseMetric {
        unit: String,
        samples: Option<Vec<f64>>,
        histogram: Option<Histogram>,
        value: Option<f64>,
        bin: Option<f64>,
    }

    /// An `HdrHistogram`, which can be merged across trials, so that percentiles are never averaged.
    pub struct Histogram {
        /// How `data` is encoded.
        pub encoding: HistogramEncoding,
        /// The metric's unit per recorded integer, e.g. 1e-9.
        pub scale: f64,
        /// Number of observations.
        pub count: u64,
        /// The encoded histogram.
        pub data: String,
    }

    /// A named phase of the measured region.
    pub struct Phase {
        /// Its name.
        pub name: String,
        /// Seconds per iteration.
        pub samples: Vec<f64>,
    }

    /// A value with a unit.
    pub struct Quantity {
        /// The unit.
        pub unit: String,
        /// The value.
        pub value: f64,
    }

    /// A cryptographic digest of the outputs.
    pub struct Parity {
        /// The digest algorithm.
        pub algorithm: ParityAlgorithm,
        /// Lower-case hexadecimal digits.
        pub digest: String,
        /// Number of outputs that the digest covers.
        pub items: u64,
    }

    /// A hardware limit and the figure that the workload achieved against it.
    pub struct Ceiling {
        /// Name of the limited quantity, e.g. `readBandwidth`.
        pub name: String,
        /// The unit of both figures.
        pub unit: String,
        /// The measured limit of the machine.
        pub limit: f64,
        /// The figure that the workload achieved.
        pub achieved: Option<f64>,
        /// Instruction set used to measure the limit.
        pub instructions: Option<String>,
        /// Number of concurrent threads used to measure the limit.
        pub threads: Option<u64>,
    }
}

/// The `schema` field of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchemaId {
    /// The only version.
    #[default]
    #[serde(rename = "assay.dev/result/v1alpha1")]
    V1Alpha1,
}

/// A string, a number or a Boolean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A Boolean.
    Bool(bool),
    /// A number with its original digits.
    Number(serde_json::Number),
    /// A string.
    Text(String),
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Scalar {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Scalar {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<u64> for Scalar {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl TryFrom<f64> for Scalar {
    type Error = f64;

    /// Returns the number as the error if it is not finite.
    fn try_from(number: f64) -> std::result::Result<Self, f64> {
        serde_json::Number::from_f64(number).map(Self::Number).ok_or(number)
    }
}

/// One measured metric of the trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "LooseMetric", into = "LooseMetric")]
pub struct Metric {
    /// Unit in a UCUM-like notation: `s`, `By`, `By/s`, `1/s`, `queries/s`.
    pub unit: String,
    /// The measured values.
    pub reading: Reading,
    /// Width of the bins of the histogram that the values were taken from, relative to the values; absent: none.
    pub bin: Option<f64>,
}

/// The measured values in exactly one of three forms.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// All observations, in order.
    Samples(Vec<f64>),
    /// Histogram of the observations.
    Histogram(Histogram),
    /// A single value.
    Value(f64),
}

impl TryFrom<LooseMetric> for Metric {
    type Error = &'static str;

    fn try_from(metric: LooseMetric) -> std::result::Result<Self, Self::Error> {
        let reading = match (metric.samples, metric.histogram, metric.value) {
            (Some(samples), None, None) => Reading::Samples(samples),
            (None, Some(histogram), None) => Reading::Histogram(histogram),
            (None, None, Some(value)) => Reading::Value(value),
            _ => return Err("a metric has exactly one of samples, histogram and value"),
        };
        Ok(Self { unit: metric.unit, reading, bin: metric.bin })
    }
}

impl From<Metric> for LooseMetric {
    fn from(metric: Metric) -> Self {
        let mut loose = Self { unit: metric.unit, samples: None, histogram: None, value: None, bin: metric.bin };
        match metric.reading {
            Reading::Samples(samples) => loose.samples = Some(samples),
            Reading::Histogram(histogram) => loose.histogram = Some(histogram),
            Reading::Value(value) => loose.value = Some(value),
        }
        loose
    }
}

/// Encoding of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum HistogramEncoding {
    /// `HdrHistogram` V2, deflated, in base64.
    #[serde(rename = "hdr-v2-deflate-base64")]
    HdrV2DeflateBase64,
}

/// Parity digest algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParityAlgorithm {
    /// BLAKE3.
    Blake3,
    /// SHA-256.
    Sha256,
}

impl Check for Result {
    fn check(&self) -> std::result::Result<(), Violation> {
        check::length("workload.name", &self.workload.name, 1, 63)?;
        check::length("workload.version", &self.workload.version, 1, 63)?;
        for (key, value) in self.workload.build.iter().flatten() {
            check::length(&format!("workload.build.{key}"), value, 0, 1024)?;
        }
        check::count("workload.build", self.workload.build.as_ref().map_or(0, BTreeMap::len), 0, 32)?;
        check::count("effective", self.effective.as_ref().map_or(0, BTreeMap::len), 0, 128)?;

        check::count("metrics", self.metrics.len(), 1, 64)?;
        for (name, metric) in &self.metrics {
            check::name("metrics", name)?;
            check::record(&format!("metrics.{name}"), metric)?;
        }
        check::count("phases", self.phases.as_ref().map_or(0, Vec::len), 0, 64)?;
        for (i, phase) in self.phases.iter().flatten().enumerate() {
            check::name(&format!("phases[{i}].name"), &phase.name)?;
            samples(&format!("phases[{i}].samples"), &phase.samples)?;
        }
        check::count("counters", self.counters.as_ref().map_or(0, BTreeMap::len), 0, 64)?;
        for (name, counter) in self.counters.iter().flatten() {
            check::length(&format!("counters.{name}.unit"), &counter.unit, 1, 32)?;
        }
        if let Some(parity) = &self.parity {
            check::digest("parity.digest", &parity.digest)?;
            check::exact("parity.items", parity.items)?;
        }
        check::count("ceilings", self.ceilings.as_ref().map_or(0, Vec::len), 0, 16)?;
        for (i, ceiling) in self.ceilings.iter().flatten().enumerate() {
            check::name(&format!("ceilings[{i}].name"), &ceiling.name)?;
            check::length(&format!("ceilings[{i}].unit"), &ceiling.unit, 1, 32)?;
            check::positive(&format!("ceilings[{i}].limit"), ceiling.limit)?;
            check::not_negative(&format!("ceilings[{i}].achieved"), ceiling.achieved.unwrap_or(0.0))?;
            let instructions = ceiling.instructions.as_deref().unwrap_or("-");
            check::length(&format!("ceilings[{i}].instructions"), instructions, 1, 32)?;
            check::require(ceiling.threads != Some(0), &format!("ceilings[{i}].threads"), || {
                "0, but at least 1 is required".to_owned()
            })?;
            check::exact(&format!("ceilings[{i}].threads"), ceiling.threads.unwrap_or(0))?;
        }
        Ok(())
    }
}

impl Check for Metric {
    fn check(&self) -> std::result::Result<(), Violation> {
        check::length("unit", &self.unit, 1, 32)?;
        if let Some(bin) = self.bin {
            check::positive("bin", bin)?;
        }
        match &self.reading {
            Reading::Samples(values) => samples("samples", values),
            Reading::Histogram(histogram) => {
                check::positive("histogram.scale", histogram.scale)?;
                check::require(histogram.count >= 1, "histogram.count", || "an empty histogram".to_owned())?;
                check::exact("histogram.count", histogram.count)?;
                check::length("histogram.data", &histogram.data, 0, 1 << 20)
            }
            Reading::Value(_) => Ok(()),
        }
    }
}

fn samples(field: &str, values: &[f64]) -> std::result::Result<(), Violation> {
    check::count(field, values.len(), 1, 100_000)
}

//! The JSON object that a trial prints.

use std::collections::BTreeMap;
use std::io::{self, Write};

use assay_schema::result::{
    Ceiling, Metric, Parity, ParityAlgorithm, Phase, Quantity as Written, Reading, Result as Record, SchemaId, Workload,
};
use assay_schema::{Check, Violation};

pub use assay_schema::result::Scalar as Fact;

use crate::ceiling::Limit;
use crate::{Digest, Histogram, Phases, Quantity, Unit};

/// Builder of a result. Only added fields are reported.
#[derive(Debug, Clone)]
pub struct Report(Record);

impl Report {
    /// Creates a report of the workload `name` at `version`.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self(Record {
            schema: SchemaId::V1Alpha1,
            workload: Workload { name: name.to_owned(), version: version.to_owned(), build: None },
            effective: None,
            metrics: BTreeMap::new(),
            phases: None,
            counters: None,
            parity: None,
            ceilings: None,
        })
    }

    /// Adds a property of the build.
    pub fn build(&mut self, key: &str, value: impl Into<String>) -> &mut Self {
        self.0.workload.build.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    /// Adds the build properties that all Rust kernels have.
    pub fn built(&mut self) -> &mut Self {
        self.build("profile", if cfg!(debug_assertions) { "debug" } else { "release" })
            .build("targetArch", std::env::consts::ARCH)
            .build("linkage", if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" })
    }

    /// Adds the effective value of a parameter.
    pub fn effective(&mut self, key: &str, value: impl Into<Fact>) -> &mut Self {
        self.0.effective.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    /// Adds a metric with all observations, in order.
    pub fn samples(&mut self, name: &str, unit: Unit, samples: &[f64]) -> &mut Self {
        self.metric(name, unit, Reading::Samples(samples.to_vec()))
    }

    /// Adds a metric with a histogram of its observations.
    pub fn histogram(&mut self, name: &str, unit: Unit, histogram: &Histogram) -> &mut Self {
        self.metric(name, unit, Reading::Histogram(histogram.encode()))
    }

    /// Adds a metric with one value.
    pub fn value(&mut self, name: &str, quantity: Quantity) -> &mut Self {
        self.metric(name, quantity.unit, Reading::Value(quantity.value))
    }

    fn metric(&mut self, name: &str, unit: Unit, reading: Reading) -> &mut Self {
        self.0.metrics.insert(name.to_owned(), Metric { unit: unit.name().to_owned(), reading, bin: None });
        self
    }

    /// Adds the phases of the measured region.
    pub fn phases(&mut self, phases: &Phases) -> &mut Self {
        let all = phases.iter().filter(|(_, samples)| !samples.is_empty());
        let all: Vec<_> =
            all.map(|(name, samples)| Phase { name: name.to_owned(), samples: samples.to_vec() }).collect();
        self.0.phases = (!all.is_empty()).then_some(all);
        self
    }

    /// Adds an amount of work per trial.
    pub fn counter(&mut self, name: &str, quantity: Quantity) -> &mut Self {
        let written = Written { unit: quantity.unit.name().to_owned(), value: quantity.value };
        self.0.counters.get_or_insert_default().insert(name.to_owned(), written);
        self
    }

    /// Adds the digest of the outputs.
    pub fn parity(&mut self, digest: &Digest) -> &mut Self {
        let (digest, items) = (digest.hex(), digest.items());
        self.0.parity = Some(Parity { algorithm: ParityAlgorithm::Blake3, digest, items });
        self
    }

    /// Adds a hardware limit and, if measured, the figure that the workload achieved against it, in the same unit. The
    /// ratio is also added as a metric, `aesRateShare` of `aesRate`, so that a template can request its interval and
    /// gate on it.
    pub fn ceiling(&mut self, name: &str, limit: impl Into<Limit>, achieved: Option<f64>) -> &mut Self {
        let limit = limit.into();
        if let Some(achieved) = achieved {
            self.value(&format!("{name}Share"), Quantity::new(achieved / limit.value, Unit::ONE));
        }
        let ceiling = Ceiling {
            name: name.to_owned(),
            unit: limit.unit.name().to_owned(),
            limit: limit.value,
            achieved,
            instructions: limit.instructions.map(str::to_owned),
            threads: limit.threads.map(|threads| threads as u64),
        };
        self.0.ceilings.get_or_insert_default().push(ceiling);
        self
    }

    /// Encodes the result as one line of JSON.
    ///
    /// # Errors
    ///
    /// If it violates the schema, e.g. by a NaN metric.
    pub fn to_json(&self) -> Result<String, Violation> {
        self.finite()?;
        self.0.check()?;
        Ok(serde_json::to_string(&self.0).expect("a result is only strings, numbers and maps with string keys"))
    }

    /// Prints the result on standard output.
    ///
    /// # Errors
    ///
    /// If it violates the schema or standard output is closed.
    pub fn print(&self) -> io::Result<()> {
        let json = self.to_json().map_err(|v| io::Error::other(format!("the result's {}: {}", v.field, v.problem)))?;
        let mut out = io::stdout().lock();
        writeln!(out, "{json}")?;
        out.flush()
    }

    /// JSON cannot represent infinities and NaN. Such a figure is an error and is not omitted.
    fn finite(&self) -> Result<(), Violation> {
        let mut figures: Vec<(String, f64)> = Vec::new();
        for (name, metric) in &self.0.metrics {
            let field = format!("metrics.{name}");
            match &metric.reading {
                Reading::Samples(samples) => figures.extend(samples.iter().map(|s| (field.clone(), *s))),
                Reading::Value(value) => figures.push((field, *value)),
                Reading::Histogram(histogram) => figures.push((field, histogram.scale)),
            }
        }
        for phase in self.0.phases.iter().flatten() {
            figures.extend(phase.samples.iter().map(|s| (format!("phases.{}", phase.name), *s)));
        }
        for (name, counter) in self.0.counters.iter().flatten() {
            figures.push((format!("counters.{name}"), counter.value));
        }
        for ceiling in self.0.ceilings.iter().flatten() {
            let both = [Some(ceiling.limit), ceiling.achieved];
            figures.extend(both.into_iter().flatten().map(|value| (format!("ceilings.{}", ceiling.name), value)));
        }
        match figures.into_iter().find(|(_, value)| !value.is_finite()) {
            None => Ok(()),
            Some((field, value)) => Err(Violation { field, problem: format!("{value} is not a finite number") }),
        }
    }
}

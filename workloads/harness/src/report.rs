//! The one JSON object that a trial prints.

use std::collections::BTreeMap;
use std::io::{self, Write};

use assay_schema::result::{
    Ceiling, Metric, Parity, ParityAlgorithm, Phase, Quantity as Written, Reading, Result as Record, SchemaId, Workload,
};
use assay_schema::{Check, Violation};

pub use assay_schema::result::Scalar as Fact;

use crate::ceiling::Limit;
use crate::{Digest, Histogram, Phases, Quantity, Unit};

/// A result under construction. What is not added is not reported.
#[derive(Debug, Clone)]
pub struct Report(Record);

impl Report {
    /// A report of the workload `name`, built from `version`.
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

    /// A fact about how the program was built.
    pub fn build(&mut self, key: &str, value: impl Into<String>) -> &mut Self {
        self.0.workload.build.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    /// The facts that every Rust kernel has about how it was built.
    pub fn built(&mut self) -> &mut Self {
        self.build("profile", if cfg!(debug_assertions) { "debug" } else { "release" })
            .build("targetArch", std::env::consts::ARCH)
            .build("linkage", if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" })
    }

    /// What a knob really did.
    pub fn effective(&mut self, key: &str, value: impl Into<Fact>) -> &mut Self {
        self.0.effective.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    /// A metric with every observation, in order.
    pub fn samples(&mut self, name: &str, unit: Unit, samples: &[f64]) -> &mut Self {
        self.metric(name, unit, Reading::Samples(samples.to_vec()))
    }

    /// A metric with a histogram of its observations.
    pub fn histogram(&mut self, name: &str, unit: Unit, histogram: &Histogram) -> &mut Self {
        self.metric(name, unit, Reading::Histogram(histogram.encode()))
    }

    /// A metric with one value.
    pub fn value(&mut self, name: &str, quantity: Quantity) -> &mut Self {
        self.metric(name, quantity.unit, Reading::Value(quantity.value))
    }

    fn metric(&mut self, name: &str, unit: Unit, reading: Reading) -> &mut Self {
        self.0.metrics.insert(name.to_owned(), Metric { unit: unit.name().to_owned(), reading });
        self
    }

    /// The named parts of the measured region.
    pub fn phases(&mut self, phases: &Phases) -> &mut Self {
        let all = phases.iter().filter(|(_, samples)| !samples.is_empty());
        let all: Vec<_> =
            all.map(|(name, samples)| Phase { name: name.to_owned(), samples: samples.to_vec() }).collect();
        self.0.phases = (!all.is_empty()).then_some(all);
        self
    }

    /// Work done per trial.
    pub fn counter(&mut self, name: &str, quantity: Quantity) -> &mut Self {
        let written = Written { unit: quantity.unit.name().to_owned(), value: quantity.value };
        self.0.counters.get_or_insert_default().insert(name.to_owned(), written);
        self
    }

    /// The digest of the outputs.
    pub fn parity(&mut self, digest: &Digest) -> &mut Self {
        let (digest, items) = (digest.hex(), digest.items());
        self.0.parity = Some(Parity { algorithm: ParityAlgorithm::Blake3, digest, items });
        self
    }

    /// A physical limit, and what the workload achieved against it in the same unit, if it did. The share is a metric too, `aesRateShare`
    /// of `aesRate`: a template that names it can ask for its interval and judge it.
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

    /// The result as one line of JSON.
    ///
    /// # Errors
    ///
    /// When it breaks a rule of the schema, e.g. a metric that is not a number.
    pub fn to_json(&self) -> Result<String, Violation> {
        self.finite()?;
        self.0.check()?;
        Ok(serde_json::to_string(&self.0).expect("a result is only strings, numbers and maps with string keys"))
    }

    /// Prints the result on standard output.
    ///
    /// # Errors
    ///
    /// When it breaks a rule of the schema or standard output is gone.
    pub fn print(&self) -> io::Result<()> {
        let json = self.to_json().map_err(|v| io::Error::other(format!("the result's {}: {}", v.field, v.problem)))?;
        let mut out = io::stdout().lock();
        writeln!(out, "{json}")?;
        out.flush()
    }

    /// JSON has no infinities and no NaN; a figure that is one of them is a mistake, not an absence.
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

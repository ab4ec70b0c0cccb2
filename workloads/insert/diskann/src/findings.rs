//! Result of an index check: a summary, or the inconsistencies.

use serde::Serialize;

use crate::error::{Error, Result};

/// Summary of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Which index it is.
    pub layout: &'static str,
    /// Vectors.
    pub nodes: u64,
    /// Edges, each direction for itself.
    pub edges: u64,
    /// Edges that a node may have.
    pub most_edges: u64,
    /// Inserts whose edges are in the log only.
    pub log_records: u64,
}

/// Inconsistencies of an index.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    first: Vec<String>,
    count: u64,
}

impl Findings {
    /// Maximum number of reported inconsistencies; the others are counted.
    const TOLD: usize = 10;

    /// Adds one.
    pub fn add(&mut self, finding: String) {
        self.count += 1;
        if self.first.len() < Self::TOLD {
            self.first.push(finding);
        }
    }

    /// Adds one unless `sound`.
    pub fn check(&mut self, sound: bool, finding: impl FnOnce() -> String) {
        if !sound {
            self.add(finding());
        }
    }

    /// Nothing, or an error that names the first of them.
    ///
    /// # Errors
    ///
    /// When there are any.
    pub fn into_result(self) -> Result<()> {
        match self.count {
            0 => Ok(()),
            count => {
                let told = self.first.join("; ");
                let rest = count - self.first.len() as u64;
                Err(Error::Damaged(if rest == 0 { told } else { format!("{told}; and {rest} more") }))
            }
        }
    }
}

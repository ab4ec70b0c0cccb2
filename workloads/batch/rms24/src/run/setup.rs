//! Constant objects of a trial, and its initial hints.

use assay_harness::Failure;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use super::parameters::{Complete, Parameters};
use crate::offline::{self, State};
use crate::prf::{AesPath, AnyPrf, Secret};
use crate::query::Builder;
use crate::state::{Owner, Unusable};

/// Where the hints came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Computed; no cache was asked for.
    Computed,
    /// Read from the cache.
    Loaded,
    /// Computed, because the cache could not be used.
    Rebuilt(Unusable),
    /// Computed, and the cache could not be written.
    Unsaved(String),
}

/// Constant objects of a trial.
pub(crate) struct Setup {
    pub(crate) path: AesPath,
    pub(crate) secret: Secret,
    pub(crate) prf: AnyPrf,
}

impl Setup {
    /// Creates those of one client; each client has its own secret.
    pub(crate) fn new(p: &Parameters, client: u32) -> Result<Self, Failure> {
        let path = AesPath::select(p.path)?;
        let secret = Secret::from_seed(p.seed_of(client));
        let prf = AnyPrf::new(p.plan.strategy.prf(), &secret, p.geometry.block_size(), path);
        Ok(Self { path, secret, prf })
    }

    pub(crate) fn builder(&self, p: &Parameters) -> Builder {
        Builder::new(p.plan, p.geometry, ChaCha12Rng::from_seed(self.secret.key("online choices")))
    }

    /// The offline phase for queries for these entries, or its outcome from the cache.
    pub(crate) fn state(&self, p: &Parameters, indices: &[u32]) -> (State, Source) {
        if p.complete == Complete::Wanted {
            let state = offline::wanted(&self.prf, &self.secret, p.entries(), p.backup_hints, indices);
            return (state, Source::Computed);
        }
        let compute = || {
            let way = offline::Way::of(&self.prf);
            offline::generate(&self.prf, &self.secret, p.entries(), p.backup_hints, way, p.setup_threads)
        };
        let Some(folder) = &p.state else { return (compute(), Source::Computed) };
        let owner = Owner { prf: self.prf.kind(), secret: &self.secret, entries: p.entries(), backups: p.backup_hints };
        let path = folder.join(owner.file_name());
        let problem = match owner.load(&path) {
            Ok(state) => return (state, Source::Loaded),
            Err(problem) => problem,
        };
        if problem != Unusable::Absent {
            eprintln!("batch-rms24: the cached state {} is {problem}; it is computed anew", path.display());
        }
        let state = compute();
        let source = match owner.save(&path, &state) {
            Ok(()) => Source::Rebuilt(problem),
            Err(error) => {
                eprintln!("batch-rms24: the state cannot be cached in {}: {error}", path.display());
                Source::Unsaved(error.to_string())
            }
        };
        (state, source)
    }
}

//! The flags that several commands share.

use std::ops::RangeInclusive;

use assay_harness::path::Unavailable;
use assay_harness::{FlagError, Flags};

use crate::blocks::layout::Layout;
use crate::compact;
use crate::dataset::{self, Kind};
use crate::distance::{Distance, Path};
use crate::index::{BackEdges, NodeCache};
use crate::sqlite::{Journal, Locking, Synchronous, Tuning};
use crate::start::Start;
use crate::strategy::{Factors, LayoutKind, Strategy};

/// Bounds that several commands share.
pub const SIZE: RangeInclusive<u64> = 0..=1_000_000;
pub(crate) const TRANSACTION_SIZE: RangeInclusive<u64> = 1..=10_000;
pub(crate) const FOLD_EVERY: RangeInclusive<u64> = 1..=10_000;
/// Sizes of a page that SQLite knows.
const PAGE_SIZES: [(&str, u32); 8] = [
    ("512", 512),
    ("1024", 1024),
    ("2048", 2048),
    ("4096", 4096),
    ("8192", 8192),
    ("16384", 16_384),
    ("32768", 32_768),
    ("65536", 65_536),
];

/// Layout and settings of an index.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Which set of factors it starts from.
    pub strategy: Strategy,
    /// The factors.
    pub factors: Factors,
    /// How vectors are distributed.
    pub dataset: Kind,
    /// Dimensions of a vector.
    pub dims: usize,
    /// Bytes of a block of the document's index.
    pub block_size: usize,
    /// Candidates that the walk of an insert keeps.
    pub insert_list: usize,
    /// Inserts per transaction.
    pub transaction_size: u64,
    /// Records of our index's log after which it is folded.
    pub fold_every: u64,
    /// Kibibytes of memory that our index may take, SQLite's page cache included; zero sets no limit.
    pub memory_budget_kib: u64,
    /// Deleted vectors are taken out of our graph when they are more than this share, in per cent, of those that are there.
    pub consolidate_percent: u64,
    /// SQLite's knobs.
    pub tuning: Tuning,
    /// Seed of everything.
    pub seed: u64,
}

impl Options {
    /// Takes the flags that say it.
    ///
    /// # Errors
    ///
    /// When one is of the wrong form or out of bounds.
    pub fn take(flags: &mut Flags) -> Result<Self, FlagError> {
        let strategy = flags.choice("strategy", Strategy::Baseline, &Strategy::CHOICES)?;
        let set = strategy.factors();
        let options = Self {
            strategy,
            factors: Factors {
                start: flags.choice_or("random-start", "preset", set.start, &Start::CHOICES)?,
                node_cache: flags.choice_or("node-cache", "preset", set.node_cache, &NodeCache::CHOICES)?,
                back_edges: flags.choice_or("back-edges", "preset", set.back_edges, &BackEdges::CHOICES)?,
                path: flags.choice_or("path", "preset", set.path, &Path::CHOICES)?,
            },
            dataset: flags.choice("dataset", Kind::Uniform, &Kind::CHOICES)?,
            dims: flags.integer("dims", 128, 2..=4096)? as usize,
            block_size: flags.integer("block-size", 16_384, 64..=1 << 20)? as usize,
            insert_list: flags.integer("insert-list", 128, 10..=2000)? as usize,
            transaction_size: flags.integer("transaction-size", 1, TRANSACTION_SIZE)?,
            fold_every: flags.integer("fold-every", 128, FOLD_EVERY)?,
            memory_budget_kib: flags.integer("memory-budget-kib", 0, 0..=1 << 22)?,
            consolidate_percent: flags.integer("consolidate-percent", 10, 1..=100)?,
            tuning: Tuning {
                page_size: flags.choice("page-size", 4096, &PAGE_SIZES)?,
                mmap_bytes: flags.integer("mmap-mib", 0, 0..=2047)? << 20,
                cache_kib: flags.integer("cache-kib", 2000, 64..=1 << 22)? as u32,
                synchronous: flags.choice("synchronous", Synchronous::Normal, &Synchronous::CHOICES)?,
                journal: flags.choice("journal-mode", Journal::Wal, &Journal::CHOICES)?,
                locking: flags.choice("locking-mode", Locking::Normal, &Locking::CHOICES)?,
            },
            seed: flags.integer("seed", dataset::SEED, 0..=u64::MAX)?,
        };
        if Layout::new(options.dims, options.block_size).is_none() {
            let allowed = format!("a multiple of 8 with room for one edge of --dims={} is allowed", options.dims);
            return Err(FlagError::new("block-size", options.block_size, allowed));
        }
        if options.memory_budget_kib > 0 {
            let refused = |allowed: &str| Err(FlagError::new("memory-budget-kib", options.memory_budget_kib, allowed));
            if options.strategy.layout() != LayoutKind::Compact {
                return refused("0 is allowed, or --strategy=ours: the other strategies keep nothing in memory");
            }
            if options.factors.node_cache == NodeCache::None {
                return refused("0 is allowed with --node-cache=none, which keeps nothing in memory");
            }
            if options.memory_budget_kib <= u64::from(options.tuning.cache_kib) {
                return refused("more than --cache-kib is allowed, and 0 for no limit");
            }
        }
        Ok(options)
    }

    /// Bytes of the memory budget that SQLite's page cache leaves.
    pub(crate) fn nodes_budget(&self) -> Option<u64> {
        (self.memory_budget_kib > 0).then(|| (self.memory_budget_kib - u64::from(self.tuning.cache_kib)) << 10)
    }

    /// The sizes of the document's block.
    pub(crate) fn block(&self) -> Layout {
        Layout::new(self.dims, self.block_size).expect("options are taken with room for an edge")
    }

    /// Bytes of the file that a node takes, roughly.
    #[must_use]
    pub fn node_bytes(&self) -> u64 {
        let page = u64::from(self.tuning.page_size);
        match self.strategy.layout() {
            // A blob larger than a page lies in a chain of whole pages, each with a pointer.
            LayoutKind::Blocks => (self.block_size as u64).div_ceil(page - 4) * page + 64,
            LayoutKind::Compact => 2 * (4 * (self.dims + compact::MOST_EDGES) as u64 + 64),
        }
    }

    /// How distances are computed.
    ///
    /// # Errors
    ///
    /// When the CPU lacks the path that was asked for.
    pub fn distance(&self) -> Result<Distance, Unavailable> {
        Distance::select(self.factors.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> Result<Options, FlagError> {
        Options::take(&mut Flags::parse(arguments.iter().map(|&a| a.to_owned()))?)
    }

    #[test]
    fn a_strategy_sets_the_factors_that_no_flag_sets() {
        let ours = options(&["--strategy=ours", "--random-start=seek", "--path=preset"]).unwrap();
        assert_eq!(ours.factors, Factors { start: Start::Seek, ..Strategy::Ours.factors() });
        let baseline = options(&[]).unwrap();
        assert_eq!((baseline.factors, baseline.block().slots()), (Strategy::Baseline.factors(), 30));
    }

    #[test]
    fn every_invalid_parameter_is_reported() {
        for (bad, message) in [
            ("--dims=1", "--dims=1: allowed are integers from 2 to 4096"),
            ("--block-size=600", "--block-size=600: a multiple of 8 with room for one edge of --dims=128 is allowed"),
            ("--page-size=5000", "--page-size=5000: allowed are 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536"),
            ("--random-start=here", "--random-start=here: allowed are preset, count, seek, medoid"),
            ("--synchronous=extra", "--synchronous=extra: allowed are off, normal, full"),
            (
                "--memory-budget-kib=3000",
                "--memory-budget-kib=3000: 0 is allowed, or --strategy=ours: the other strategies keep nothing in memory",
            ),
        ] {
            assert_eq!(options(&[bad]).unwrap_err().to_string(), message);
        }
    }
}

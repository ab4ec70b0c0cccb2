//! Strategies to answer a batch of queries from one matrix.
//!
//! Every query has three keys, and every key an answer, the XOR of the rows whose bit is one.
//!
//! | strategy | reads the matrix | bits | XOR |
//! |---|---|---|---|
//! | [`per_query`], `loop` | once per query | one PRF call per key and row, between the XORs | masked, sums in memory |
//! | [`fused_naive`] | once | the same | the same |
//! | [`tiled`], `fused-tiled` | once | all keys expanded beforehand | masked, sums in registers |
//! | [`m4r`], `fused-m4r` | once | all keys expanded beforehand | looked up four rows at a time; few keys by [`by_pattern`] or [`tiled`] |
//! | `gfni`, `fused-gfni` | once | all keys expanded beforehand | eight rows and eight keys at a time, as a product of bit matrices |
//!
//! `loop` is the baseline measured by the document, and `fused-naive` its planned prototype; the others are optimised
//! for the hardware. All are tested against [`reference`](mod@reference).

mod answers;
mod bits;
pub mod by_pattern;
mod cpu;
pub mod fused_naive;
#[cfg(target_arch = "x86_64")]
pub mod gfni;
pub mod m4r;
pub mod per_query;
pub mod reference;
pub mod tiled;

use std::ops::Range;

use assay_harness::prefetch::InOrder;
use assay_harness::simd::{Isa, Portable};
use assay_harness::{Failure, Phases};

use crate::keys::{Keys, Prg, ToyKey};
use crate::matrix::Matrix;
use crate::selection::Selection;

pub(crate) use answers::xor_into;
pub use answers::{Answers, KEYS_PER_QUERY};
pub use bits::{Expanded, RowBits};
pub use cpu::Cpu;

/// How a batch is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// One scan per query.
    Loop,
    /// One scan per batch, written as the document's plan describes it.
    FusedNaive,
    /// One scan per batch over expanded bits, with the sums in registers.
    FusedTiled,
    /// One scan per batch over expanded bits, with tables of sums of four rows.
    FusedM4r,
    /// One scan per batch over expanded bits, by products of bit matrices. Needs the `avx512` path on a CPU with GFNI.
    FusedGfni,
}

assay_harness::choices!(Strategy {
    "loop" => Loop,
    "fused-naive" => FusedNaive,
    "fused-tiled" => FusedTiled,
    "fused-m4r" => FusedM4r,
    "fused-gfni" => FusedGfni,
});

impl Strategy {
    /// How often it reads the matrix to answer `queries` queries.
    #[must_use]
    pub fn matrix_reads(self, queries: usize) -> usize {
        if self == Self::Loop { queries } else { 1 }
    }

    /// Whether it asks the keys for bits row by row while it scans. The others expand them beforehand, and so do these where a key
    /// has no cheap single bit.
    #[must_use]
    pub fn evaluates_in_scan(self) -> bool {
        matches!(self, Self::Loop | Self::FusedNaive)
    }
}

/// Strategy, instruction set and number of threads for a batch. A plan can only be created if the CPU supports it.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    strategy: Strategy,
    cpu: Cpu,
    prg: Prg,
    threads: usize,
    #[cfg(target_arch = "x86_64")]
    gfni: Option<gfni::Gfni>,
}

impl Plan {
    /// A plan. `loop` and `fused-naive` are plain code: they use no instructions of `isa`, except to expand keys beforehand.
    ///
    /// # Errors
    ///
    /// When the strategy needs instructions that this CPU or `isa` does not have.
    ///
    /// # Panics
    ///
    /// When there are no threads.
    pub fn new(strategy: Strategy, isa: Isa, threads: usize) -> Result<Self, Failure> {
        assert!(threads > 0, "at least one thread is required");
        #[cfg(target_arch = "x86_64")]
        let (gfni, has_gfni) = (gfni::Gfni::detect(isa), gfni::Gfni::detect(isa).is_some());
        #[cfg(not(target_arch = "x86_64"))]
        let has_gfni = false;
        if strategy == Strategy::FusedGfni && !has_gfni {
            let (strategy, path) = (strategy.name(), isa.name());
            return Err(Failure::usage(format_args!(
                "--strategy={strategy}: needs the path avx512 and a CPU with GFNI and AVX512-VBMI; the path is {path}"
            )));
        }
        Ok(Self {
            strategy,
            cpu: Cpu { isa, in_order: InOrder::Auto.selected() },
            prg: Prg::of(isa),
            threads,
            #[cfg(target_arch = "x86_64")]
            gfni,
        })
    }

    /// The same with another generator for distributed point functions than goes with the instructions.
    #[must_use]
    pub fn with_generator(self, prg: Prg) -> Self {
        Self { prg, ..self }
    }

    /// The same with another one who has rows ready that few keys read in order.
    #[must_use]
    pub fn with_prefetch(self, in_order: InOrder) -> Self {
        Self { cpu: Cpu { in_order: in_order.selected(), ..self.cpu }, ..self }
    }

    /// How.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// With which instructions.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.cpu.isa
    }

    /// The method for a number of keys and a row size. Methods for many keys do not pay off for few, and a batch of one
    /// query must not be slower than a single query.
    #[must_use]
    pub fn method(&self, keys: usize, row_size: usize) -> Method {
        match self.strategy {
            Strategy::Loop | Strategy::FusedNaive | Strategy::FusedTiled => Method::MaskedXor,
            _ if tiled::reads_in_order(self.cpu.isa, keys, row_size) => Method::MaskedXor,
            _ if keys < m4r::fewest_keys(self.cpu.isa) => Method::ByPattern,
            Strategy::FusedM4r => Method::FourRussians,
            #[cfg(target_arch = "x86_64")]
            Strategy::FusedGfni => Method::BitMatrices,
            #[cfg(not(target_arch = "x86_64"))]
            Strategy::FusedGfni => unreachable!("no plan is made with it"),
        }
    }

    /// Instruction set of the XORs; `loop` and `fused-naive` are plain code compiled for the baseline.
    #[must_use]
    pub fn scan_isa(&self) -> Isa {
        if self.strategy.evaluates_in_scan() { Isa::Portable(Portable) } else { self.cpu.isa }
    }

    /// With which generator of distributed point functions.
    #[must_use]
    pub fn generator(&self) -> Prg {
        self.prg
    }

    /// The prefetcher for a number of keys and a row size; None if rows are not read in order.
    #[must_use]
    pub fn prefetch(&self, keys: usize, row_size: usize) -> Option<InOrder> {
        let in_order = match self.method(keys, row_size) {
            Method::ByPattern => keys <= KEYS_PER_QUERY,
            Method::MaskedXor => {
                !self.strategy.evaluates_in_scan() && tiled::reads_in_order(self.cpu.isa, keys, row_size)
            }
            _ => false,
        };
        in_order.then_some(self.cpu.in_order)
    }

    /// The products of bit matrices, where they can be carried out.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn gfni(&self) -> Option<gfni::Gfni> {
        self.gfni
    }

    /// The plan with strategy `loop`, which needs no special instructions.
    pub(crate) fn by_loop(self) -> Self {
        Self { strategy: Strategy::Loop, ..self }
    }
}

/// How rows are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Every row is masked for every key: [`per_query`], [`fused_naive`] and [`tiled`].
    MaskedXor,
    /// Every row is added to the sum of its pattern of bits: [`by_pattern`].
    ByPattern,
    /// Every key looks up the sums of four rows: [`m4r`].
    FourRussians,
    /// Eight rows and eight keys are a product: `gfni`.
    #[cfg(target_arch = "x86_64")]
    BitMatrices,
}

impl Method {
    /// Its name in a result.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MaskedXor => "masked-xor",
            Self::ByPattern => "by-pattern",
            Self::FourRussians => "four-russians",
            #[cfg(target_arch = "x86_64")]
            Self::BitMatrices => "bit-matrices",
        }
    }
}

/// Where a batch's bits come from.
#[derive(Debug, Clone, Copy)]
pub enum Bits<'a> {
    /// From keys; expanding or evaluating them is part of the answer.
    Keys(&'a Keys),
    /// Given.
    Given(&'a Selection),
}

impl Bits<'_> {
    fn keys(&self) -> usize {
        match self {
            Self::Keys(keys) => keys.len(),
            Self::Given(selection) => selection.keys(),
        }
    }
}

/// The answers, and the bits if they were expanded on the way: pending updates need them again.
#[derive(Debug)]
pub struct Scanned {
    /// One per key.
    pub answers: Answers,
    /// The bits of all keys.
    pub selection: Option<Selection>,
}

/// Phase: keys are turned into bits.
pub const MASK_GENERATION: &str = "maskGeneration";
/// Phase: rows are read and added up. For strategies that evaluate keys row by row it holds that too.
pub const SCAN: &str = "scan";

/// Answers a batch.
pub fn scan(matrix: &Matrix, bits: Bits<'_>, plan: Plan, phases: &mut Phases) -> Scanned {
    let mut answers = Answers::new(bits.keys(), matrix.row_size());
    let in_scan = plan.strategy.evaluates_in_scan();
    match bits {
        Bits::Keys(Keys::Toy(keys)) if in_scan => {
            scan_row_by_row(matrix, keys, plan, &mut answers, phases);
            Scanned { answers, selection: None }
        }
        // A single bit of a distributed point function costs a walk down its tree. A real server would expand it, so
        // that strategies that work row by row use expanded bits here.
        Bits::Keys(keys) => {
            let selection = phases.time(MASK_GENERATION, || expand(keys, matrix.rows(), plan));
            scan_expanded(matrix, &selection, plan, &mut answers, phases);
            Scanned { answers, selection: Some(selection) }
        }
        Bits::Given(selection) => {
            scan_expanded(matrix, selection, plan, &mut answers, phases);
            Scanned { answers, selection: None }
        }
    }
}

/// The bits of all keys for all rows.
#[must_use]
pub fn expand(keys: &Keys, rows: usize, plan: Plan) -> Selection {
    let mut selection = Selection::new(keys.len(), rows);
    expand_into(keys, plan, &mut selection);
    selection
}

fn expand_into(keys: &Keys, plan: Plan, selection: &mut Selection) {
    let rows = selection.rows();
    let mut all: Vec<_> = selection.keys_mut().enumerate().collect();
    let share = all.len().div_ceil(plan.threads).max(1);
    in_threads(all.chunks_mut(share), |some| {
        for (key, words) in some {
            keys.expand(*key, plan.cpu.isa, plan.prg, rows, words);
        }
    });
}

fn scan_expanded(matrix: &Matrix, selection: &Selection, plan: Plan, answers: &mut Answers, phases: &mut Phases) {
    if plan.strategy.evaluates_in_scan() {
        let keys: Vec<_> = (0..selection.keys()).map(|key| Expanded::of(selection, key)).collect();
        return scan_row_by_row(matrix, &keys, plan, answers, phases);
    }
    phases.time(SCAN, || {
        over_rows(matrix, plan.threads, answers, |rows, answers| {
            match plan.method(selection.keys(), matrix.row_size()) {
                Method::MaskedXor => tiled::scan(matrix, rows, selection, plan.cpu, answers.bytes_mut()),
                Method::ByPattern => by_pattern::scan(matrix, rows, selection, plan.cpu, answers.bytes_mut()),
                Method::FourRussians => m4r::scan(matrix, rows, selection, plan.cpu.isa, answers.bytes_mut()),
                #[cfg(target_arch = "x86_64")]
                Method::BitMatrices => {
                    let gfni = plan.gfni.expect("a plan for this strategy is only made with it");
                    gfni.scan(matrix, rows, selection, plan.cpu.isa, answers.bytes_mut());
                }
            }
        });
    });
}

fn scan_row_by_row<B: RowBits>(matrix: &Matrix, keys: &[B], plan: Plan, answers: &mut Answers, phases: &mut Phases) {
    phases.time(SCAN, || {
        over_rows(matrix, plan.threads, answers, |rows, answers| match plan.strategy {
            Strategy::FusedNaive => fused_naive::scan(matrix, rows, keys, answers),
            _ => per_query::scan(matrix, rows, keys, answers),
        });
    });
}

/// The part of `loop` that evaluates keys, without its part that reads rows: an answer begins with the XOR of the numbers of the rows whose
/// bit is one, and reads none of them.
pub fn bits_alone(matrix: &Matrix, keys: &[ToyKey], plan: Plan, phases: &mut Phases) -> Answers {
    let mut answers = Answers::new(keys.len(), matrix.row_size());
    phases.time(SCAN, || {
        over_rows(matrix, plan.threads, &mut answers, |rows, answers| per_query::bits_alone(rows, keys, answers));
    });
    answers
}

/// The part of `loop` that reads rows, without its part that evaluates keys: every row is in the sum of every one of `keys` keys.
pub fn sums_alone(matrix: &Matrix, keys: usize, plan: Plan, phases: &mut Phases) -> Answers {
    let mut answers = Answers::new(keys, matrix.row_size());
    phases.time(SCAN, || {
        over_rows(matrix, plan.threads, &mut answers, |rows, answers| {
            per_query::scan(matrix, rows, &vec![bits::EveryRow; keys], answers);
        });
    });
    answers
}

/// The part that expands keys, into memory that is there: no row is read, and nothing is answered.
pub fn expand_alone(keys: &Keys, plan: Plan, selection: &mut Selection, phases: &mut Phases) {
    phases.time(MASK_GENERATION, || expand_into(keys, plan, selection));
}

/// Runs `work` on one range of rows per thread, each with separate sums, and adds the sums.
fn over_rows(matrix: &Matrix, threads: usize, answers: &mut Answers, work: impl Fn(Range<usize>, &mut Answers) + Sync) {
    if threads == 1 {
        return work(0..matrix.rows(), answers);
    }
    let mut sums: Vec<_> = matrix.split(threads).into_iter().map(|rows| (rows, answers.clone())).collect();
    in_threads(sums.iter_mut(), |(rows, answers)| work(rows.clone(), answers));
    for (_, sum) in &sums {
        answers.add(sum);
    }
}

/// Runs `work` on all items concurrently: the first on this thread, the others on new threads.
fn in_threads<T: Send>(items: impl Iterator<Item = T>, work: impl Fn(T) + Sync) {
    let work = &work;
    std::thread::scope(|scope| {
        let mut items = items;
        let first = items.next();
        for item in items {
            scope.spawn(move || work(item));
        }
        first.map(work);
    });
}

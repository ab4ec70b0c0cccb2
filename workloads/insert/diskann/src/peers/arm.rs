//! `insert-diskann arm`: an index that answers line by line.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use assay_harness::machine::PeakMemory;
use assay_harness::{Failure, FlagError, Flags, Phases, Stopwatch};

use super::data::{self, Given};
use crate::crash::Crash;
use crate::exact::recall;
use crate::index::Index;
use crate::options::Options;
use crate::prepare::Cache;
use crate::sqlite;

/// Which index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One of this kernel's strategies, on a file.
    Ours,
    /// `hnsw_rs`, in memory.
    #[cfg(feature = "peer")]
    HnswRs,
}

const KINDS: &[(&str, Kind)] = &[
    ("ours", Kind::Ours),
    #[cfg(feature = "peer")]
    ("hnsw-rs", Kind::HnswRs),
];

/// Parameters of an arm.
#[derive(Debug, Clone)]
pub struct Parameters {
    kind: Kind,
    pub(super) options: Options,
    data: PathBuf,
    cache: Option<PathBuf>,
}

impl Parameters {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// When one is missing, unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let kind = flags.choice("arm", Kind::Ours, KINDS)?;
        let options = Options::take(&mut flags)?;
        let data = flags.optional("data").map(PathBuf::from);
        let cache = flags.optional("cache").map(PathBuf::from);
        flags.finish()?;
        let data = data.ok_or_else(|| FlagError::new("data", "", "the folder with the vectors is needed"))?;
        Ok(Self { kind, options, data, cache })
    }
}

/// An index, as far as an arm uses it.
trait Served {
    fn insert(&mut self, vector: &[f32]) -> Result<(), Failure>;
    /// Commits pending changes, if the index supports it.
    fn commit(&mut self) -> Result<(), Failure> {
        Ok(())
    }
    fn search(&mut self, query: &[f32], k: usize, list: usize) -> Result<Vec<u64>, Failure>;
}

impl Served for Box<dyn Index + '_> {
    fn insert(&mut self, vector: &[f32]) -> Result<(), Failure> {
        Index::insert(self.as_mut(), vector, &mut Phases::new())?;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        Ok(Index::commit(self.as_mut(), &mut Phases::new())?)
    }

    fn search(&mut self, query: &[f32], k: usize, list: usize) -> Result<Vec<u64>, Failure> {
        Ok(Index::search(self.as_mut(), query, k, list)?)
    }
}

#[cfg(feature = "peer")]
impl Served for super::hnsw::Peer {
    fn insert(&mut self, vector: &[f32]) -> Result<(), Failure> {
        self.insert(vector);
        Ok(())
    }

    fn search(&mut self, query: &[f32], k: usize, list: usize) -> Result<Vec<u64>, Failure> {
        Ok(Self::search(self, query, k, list))
    }
}

/// Builds the index and answers until the end of `lines`.
///
/// # Errors
///
/// If a line is invalid, the index fails, or a pipe is closed.
pub fn serve(p: &Parameters, lines: impl BufRead, out: &mut impl Write) -> Result<(), Failure> {
    let given = data::read(&p.data)?;
    let size = given.sizes.size;
    match p.kind {
        Kind::Ours => {
            let distance = p.options.distance()?;
            let cache = Cache::open(p.cache.clone())?;
            let (prepared, _) = cache.prepare(&p.options, size, &given.data.vectors, || Ok(()))?;
            let copy = cache.copy(&prepared)?;
            let connection = sqlite::open(&copy.index(), &p.options.tuning, false)?;
            let memory = PeakMemory::start();
            let mut index = p.options.open(&connection, distance, Crash::default())?;
            answer(&mut index, &given, memory, lines, out)
        }
        #[cfg(feature = "peer")]
        Kind::HnswRs => {
            let memory = PeakMemory::start();
            let mut peer = super::hnsw::Peer::new(given.data.len(), p.options.insert_list);
            (0..size).for_each(|at| peer.insert(given.data.vector(at)));
            answer(&mut peer, &given, memory, lines, out)
        }
    }
}

fn answer(
    index: &mut impl Served,
    given: &Given,
    memory: Option<PeakMemory>,
    lines: impl BufRead,
    out: &mut impl Write,
) -> Result<(), Failure> {
    writeln!(out, "ready")?;
    out.flush()?;
    let mut next = given.sizes.size;
    for line in lines.lines() {
        let line = line?;
        let unknown = || Failure::error(format_args!("{line}: insert N, search L and memory are known"));
        let (word, number) = line.split_once(' ').unwrap_or((&line, ""));
        let number = || number.parse::<usize>().map_err(|_| unknown());
        match word {
            "insert" => {
                let count = number()?;
                if count > given.data.len() - next {
                    return Err(Failure::error(format_args!("{line}: {} vectors are left", given.data.len() - next)));
                }
                let watch = Stopwatch::start();
                for at in next..next + count {
                    index.insert(given.data.vector(at))?;
                }
                index.commit()?;
                writeln!(out, "{}", watch.seconds())?;
                next += count;
            }
            "search" => {
                let list = number()?;
                let mut found = Vec::with_capacity(given.truth.len());
                let watch = Stopwatch::start();
                for query in given.data.queries() {
                    found.push(index.search(query, given.sizes.k, list)?);
                }
                let seconds = watch.seconds();
                let one = |(truth, found)| recall(std::slice::from_ref(truth), std::slice::from_ref(found));
                let recalls = given.truth.iter().zip(&found).filter_map(one);
                let recalls: Vec<String> = recalls.map(|recall| format!(" {recall}")).collect();
                writeln!(out, "{seconds}{}", recalls.concat())?;
            }
            "memory" => {
                let grown = memory.and_then(PeakMemory::growth);
                let grown = grown.ok_or_else(|| Failure::error("this system does not tell a process its memory"))?;
                writeln!(out, "{grown}")?;
            }
            _ => return Err(unknown()),
        }
        out.flush()?;
    }
    Ok(())
}

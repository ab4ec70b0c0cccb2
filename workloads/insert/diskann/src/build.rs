//! `insert-diskann build`: builds an index file by single inserts, continuing an existing one.

use std::io::{self, Write};
use std::path::PathBuf;

use assay_harness::{Failure, FlagError, Flags, Phases, machine};

use crate::crash::{Crash, Moment};
use crate::dataset::Data;
use crate::error::Error;
use crate::index::Index;
use crate::options::{Options, SIZE};
use crate::run::SIZES;
use crate::strategy::LayoutKind;
use crate::{sqlite, verify};

/// Parameters of a build.
#[derive(Debug, Clone)]
pub struct Parameters {
    options: Options,
    index: PathBuf,
    size: usize,
    delete_every: u64,
    crash: Crash,
}

impl Parameters {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// When one is missing, unknown, of the wrong form or out of bounds.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Flags::parse(arguments)?;
        let index = flags.optional("index").map(PathBuf::from);
        let index = index.ok_or_else(|| FlagError::new("index", "", "the file to build is needed"))?;
        let moments = Moment::CHOICES.map(|(name, moment)| (name, Some(moment)));
        let options = Options::take(&mut flags)?;
        let size = flags.integer("size", 1000, SIZE)? as usize;
        let delete_every = flags.integer("delete-every", 0, 0..=*SIZE.end())?;
        if delete_every > 0 && options.strategy.layout() != LayoutKind::Compact {
            let allowed = "0 is allowed, or --strategy=ours: from the other strategies nothing can be deleted";
            return Err(FlagError::new("delete-every", delete_every, allowed));
        }
        if delete_every % 2 == 1 {
            return Err(FlagError::new("delete-every", delete_every, "an even number is allowed"));
        }
        let moment = flags.choice_or("crash", "never", None, &moments)?;
        let id = flags.integer("crash-id", 1, 1..=*SIZE.end())?;
        flags.finish()?;
        let crash = Crash(moment.map(|moment| (id, moment)));
        Ok(Self { options, index, size, delete_every, crash })
    }
}

/// Inserts until the index has its size, and with `--delete-every` deletes half the id after each multiple. Writes the
/// id of every committed insert to `out`, followed by the deleted id, one per line. Deleting a deleted vector has no
/// effect, so that a killed build can be continued.
///
/// # Errors
///
/// If the parameters do not fit the machine, SQLite fails, or the file is a different index.
pub fn build(p: &Parameters, out: &mut impl Write) -> Result<(), Failure> {
    let distance = p.options.distance()?;
    let vector = 4 * p.options.dims as u64;
    let needed = p.size as u64 * (2 * vector + 200) + 64 * p.options.block_size as u64 + (64 << 20);
    machine::check_memory(needed, SIZES)?;
    let data = Data::generate(p.options.dataset, p.options.dims, p.options.seed, p.size, 0, 0);
    let is_new = !p.index.exists();
    let named = |error: Error| match error {
        Error::Damaged(problem) => Error::Damaged(format!("{}: {problem}", p.index.display())),
        other => other,
    };
    let connection = sqlite::open(&p.index, &p.options.tuning, true)?;
    if is_new {
        p.options.create(&connection)?;
    }
    let kind = verify::kind(&connection).map_err(named)?;
    if kind != p.options.strategy.layout() {
        let (found, wanted) = (kind.name(), p.options.strategy.layout().name());
        return Err(named(Error::Damaged(format!("it is an index of layout {found} and not {wanted}"))).into());
    }
    let mut index = p.options.open(&connection, distance, p.crash).map_err(named)?;
    let mut other = None;
    index.each_stored(&mut |stored| {
        let at = stored.id as usize - 1;
        if other.is_none() && (at >= data.len() || data.vector(at) != stored.vector) {
            other = Some(stored.id);
        }
    })?;
    if let Some(id) = other {
        return Err(named(Error::Damaged(format!("its vector {id} is not one of these parameters"))).into());
    }

    let mut acknowledged = index.last_id();
    let mut acknowledge = |committed: u64| -> io::Result<()> {
        for id in acknowledged + 1..=committed {
            writeln!(out, "{id}")?;
        }
        acknowledged = committed;
        out.flush()
    };
    let mut phases = Phases::new();
    let delete_after = |index: &mut dyn Index, id: u64, phases: &mut Phases| -> Result<(), Error> {
        if p.delete_every > 0 && id.is_multiple_of(p.delete_every) {
            index.editable().map_or(Ok(false), |index| index.delete(id / 2, phases))?;
        }
        Ok(())
    };
    for id in 1..=index.last_id() {
        delete_after(index.as_mut(), id, &mut phases)?;
    }
    for at in index.last_id() as usize..data.len() {
        let id = index.insert(data.vector(at), &mut phases)?;
        delete_after(index.as_mut(), id, &mut phases)?;
        phases.clear();
        if connection.is_autocommit() {
            acknowledge(id)?;
        }
    }
    index.commit(&mut phases)?;
    acknowledge(index.last_id())?;
    Ok(())
}

//! Cached index files that many trials use.
//!
//! A file is named by the digest of its inputs. A note next to it has the inputs and the digest of the file's contents.
//! Both are verified before a trial uses the file; an invalid file is rebuilt, and the trial reports this. Trials work
//! on copies.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use assay_harness::Failure;
use serde::{Deserialize, Serialize};

use crate::options::Options;

/// Changes whenever the same options give another file.
const VERSION: u32 = 5;

/// Where a prepared index came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It was there, and it was right.
    Cached,
    /// It was not there.
    Made,
    /// It was there, and this was wrong with it.
    Remade(&'static str),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cached => f.write_str("cached"),
            Self::Made => f.write_str("made"),
            Self::Remade(why) => write!(f, "made anew: {why}"),
        }
    }
}

/// Note next to a prepared file.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    recipe: String,
    digest: String,
}

/// All that the file for `options` and `size` vectors depends on.
fn recipe(options: &Options, size: usize) -> String {
    let o = options;
    let layout = o.strategy.layout().name();
    let block = if layout == "blocks" { o.block_size } else { 0 };
    format!(
        "version={VERSION} layout={layout} dataset={} dims={} seed={} size={size} block={block} insertList={} page={}",
        o.dataset.base().name(),
        o.dims,
        o.seed,
        o.insert_list,
        o.tuning.page_size,
    )
}

/// A folder of prepared index files.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// Opens the folder, creating it if necessary, and removes leftovers of killed trials. Without a folder it uses the
    /// arm's prepared folder, or one for temporary files.
    ///
    /// # Errors
    ///
    /// If the system fails.
    pub fn open(folder: Option<PathBuf>) -> io::Result<Self> {
        let folder = folder.unwrap_or_else(|| {
            std::env::var_os("ASSAY_PREPARED").map_or_else(std::env::temp_dir, PathBuf::from).join("insert-diskann")
        });
        let named = |error: io::Error| io::Error::new(error.kind(), format!("--cache={}: {error}", folder.display()));
        fs::create_dir_all(&folder).map_err(named)?;
        for entry in fs::read_dir(&folder).map_err(named)?.flatten() {
            let is_copy = entry.file_name().to_str().is_some_and(|name| name.starts_with("work-"));
            let lock = entry.path().join("lock");
            // Its lock goes with the process that worked there.
            if is_copy && File::open(&lock).is_ok_and(|lock| lock.try_lock().is_ok()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Ok(Self(folder))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The file for `options` with the first `size` of `vectors`, which is made unless it is there and right. `before_making` may refuse.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn prepare(
        &self,
        options: &Options,
        size: usize,
        vectors: &[f32],
        before_making: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(PathBuf, Origin), Failure> {
        let recipe = recipe(options, size);
        let hash = blake3::hash(recipe.as_bytes()).to_hex();
        let name = format!("{}-{size}-{}", options.strategy.layout().name(), &hash[..16]);
        let path = self.0.join(format!("{name}.db"));
        let note = self.0.join(format!("{name}.json"));
        // One process makes it; others wait and find it.
        let _lock = locked(&self.0.join("lock"))?;
        let Err(origin) = examine(&path, &note, &recipe) else { return Ok((path, Origin::Cached)) };
        before_making()?;
        let folder = self.work_folder()?;
        options.make(&folder.index(), &vectors[..size * options.dims])?;
        let digest = digest(&folder.index())?;
        let json = serde_json::to_string(&Note { recipe, digest }).expect("a note is two strings");
        let draft = folder.folder.join("note");
        fs::write(&draft, json)?;
        fs::rename(folder.index(), &path)?;
        fs::rename(draft, note)?;
        Ok((path, origin))
    }

    fn work_folder(&self) -> io::Result<WorkFolder> {
        // A process may work on several copies.
        for number in 0.. {
            let folder = self.0.join(format!("work-{}-{number}", std::process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(WorkFolder { _lock: locked(&folder.join("lock"))?, folder }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("some number is free")
    }

    /// Makes a copy of `file` to work on, synced to disk, so that write-back does not disturb the timed part.
    ///
    /// # Errors
    ///
    /// If the system fails.
    pub fn copy(&self, file: &Path) -> io::Result<WorkFolder> {
        let folder = self.work_folder()?;
        fs::copy(file, folder.index())?;
        File::open(folder.index())?.sync_all()?;
        Ok(folder)
    }
}

/// Opens a file with an exclusive lock.
fn locked(path: &Path) -> io::Result<File> {
    let file = File::create(path)?;
    file.lock()?;
    Ok(file)
}

/// Verifies the file against its note and the recipe; the error is the origin of a rebuilt file.
fn examine(path: &Path, note: &Path, recipe: &str) -> Result<(), Origin> {
    if !path.exists() {
        return Err(Origin::Made);
    }
    let wrong = Origin::Remade;
    let text = fs::read(note).map_err(|_| wrong("the cached file had no note"))?;
    let note: Note = serde_json::from_slice(&text).map_err(|_| wrong("the cached file's note was not readable"))?;
    if note.recipe != recipe {
        return Err(wrong("the cached file was made for something else"));
    }
    let digest = digest(path).map_err(|_| wrong("the cached file was not readable"))?;
    if digest == note.digest { Ok(()) } else { Err(wrong("the cached file did not have its digest")) }
}

fn digest(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// A folder with one index file, which goes when this does.
#[derive(Debug)]
pub struct WorkFolder {
    folder: PathBuf,
    _lock: File,
}

impl WorkFolder {
    /// The index file.
    #[must_use]
    pub fn index(&self) -> PathBuf {
        self.folder.join("index.db")
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Data;
    use assay_harness::Flags;

    #[test]
    fn a_file_is_used_only_if_it_is_the_one_that_was_made_for_this() {
        let folder = std::env::temp_dir().join(format!("insert-diskann-cache-{}", std::process::id()));
        let cache = Cache::open(Some(folder.clone())).unwrap();
        for strategy in ["baseline", "ours"] {
            let flags = ["--dims=4", "--block-size=512"].map(str::to_owned);
            let flags = flags.into_iter().chain([format!("--strategy={strategy}")]);
            let options = Options::take(&mut Flags::parse(flags).unwrap()).unwrap();
            let data = Data::generate(options.dataset, 4, 42, 30, 0, 0);
            let prepare = || cache.prepare(&options, 30, &data.vectors, || Ok(())).unwrap();
            let (path, origin) = prepare();
            assert_eq!(origin, Origin::Made);
            assert_eq!(prepare().1, Origin::Cached);

            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(prepare().1, Origin::Remade("the cached file did not have its digest"));

            let note = path.with_extension("json");
            let text = fs::read_to_string(&note).unwrap();
            fs::write(&note, text.replace("seed=42", "seed=43")).unwrap();
            assert_eq!(prepare().1, Origin::Remade("the cached file was made for something else"));
            fs::write(&note, "{").unwrap();
            assert_eq!(prepare().1, Origin::Remade("the cached file's note was not readable"));
            fs::remove_file(&note).unwrap();
            assert_eq!(prepare().1, Origin::Remade("the cached file had no note"));
            assert_eq!(prepare().1, Origin::Cached);
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn copy_is_removed_on_drop_and_a_leftover_by_the_next_trial() {
        let root = std::env::temp_dir().join(format!("insert-diskann-copy-{}", std::process::id()));
        let cache = Cache::open(Some(root.clone())).unwrap();
        fs::write(root.join("some.db"), "bytes").unwrap();
        let copy = cache.copy(&root.join("some.db")).unwrap();
        assert_eq!(fs::read_to_string(copy.index()).unwrap(), "bytes");
        Cache::open(Some(root.clone())).unwrap();
        assert!(copy.index().exists(), "it is in use");
        let left = root.join("work-0-0");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("lock"), "").unwrap();
        let path = copy.index();
        drop(copy);
        Cache::open(Some(root.clone())).unwrap();
        assert!(!path.exists() && !left.exists());
        fs::remove_dir_all(&root).unwrap();
    }
}

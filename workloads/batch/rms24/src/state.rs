//! Cache file of the hints, so that the offline phase runs once.
//!
//! ```text
//! magic 8 bytes | function, entries, entry size, lambda, backups u32 | contents u64 | fingerprint of the secret 32 bytes
//! cutoffs u32, of backups too | extras u32 | sums u64: of hints, low halves, high halves | BLAKE3 of all before
//! ```
//!
//! A file is written to a temporary name and renamed, so that it appears atomically. It contains the state *before* the first
//! query: a cached state that had queries behind it would make runs depend on each other. The secret itself is not in it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::database::Entries;
use crate::hints::{Backups, Hints};
use crate::offline::State;
use crate::prf::{PrfKind, Secret};

const MAGIC: [u8; 8] = *b"rms24st1";
const HEADER: usize = 8 + 5 * 4 + 8 + 32;
const DIGEST: usize = 32;

/// The context to which a state belongs.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The function behind the hints.
    pub prf: PrfKind,
    /// Its secret.
    pub secret: &'a Secret,
    /// The database.
    pub entries: Entries,
    /// How many backup hints there are.
    pub backups: u32,
}

/// Why a file was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// The file does not exist.
    Absent,
    /// It could not be read.
    Unreadable(String),
    /// It belongs to something else.
    Foreign,
    /// The digest does not match.
    Corrupt,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("absent"),
            Self::Unreadable(error) => write!(f, "unreadable: {error}"),
            Self::Foreign => f.write_str("foreign: it belongs to another database, secret or function"),
            Self::Corrupt => f.write_str("corrupt: its digest or length is wrong"),
        }
    }
}

impl Owner<'_> {
    /// The name of the file within a folder of states.
    #[must_use]
    pub fn file_name(&self) -> String {
        let geometry = self.entries.geometry();
        let fingerprint = u32::from_le_bytes(*self.fingerprint().first_chunk().expect("32 bytes start with four"));
        format!(
            "{}-{}x{}-lambda{}-backups{}-{fingerprint:08x}.state",
            self.function().0,
            geometry.entries(),
            geometry.entry_size(),
            geometry.lambda(),
            self.backups
        )
    }

    fn function(&self) -> (&'static str, u32) {
        match self.prf {
            PrfKind::ChaCha => ("chacha", 0),
            PrfKind::Aes => ("aes", 1),
        }
    }

    fn fingerprint(&self) -> [u8; 32] {
        self.secret.key("fingerprint")
    }

    fn header(&self) -> Vec<u8> {
        let geometry = self.entries.geometry();
        let mut header = MAGIC.to_vec();
        let numbers =
            [self.function().1, geometry.entries(), geometry.entry_size() as u32, geometry.lambda(), self.backups];
        header.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        header.extend(self.entries.seed().to_le_bytes());
        header.extend(self.fingerprint());
        header
    }

    /// Bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let geometry = self.entries.geometry();
        let (hints, backups) = (u64::from(geometry.hints()), u64::from(self.backups));
        let sums = (hints + 2 * backups) * geometry.entry_size() as u64;
        (HEADER + DIGEST) as u64 + 4 * (2 * hints + backups) + sums
    }

    /// Reads a state.
    ///
    /// # Errors
    ///
    /// When the file cannot be used.
    pub fn load(&self, path: &Path) -> Result<State, Unusable> {
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Unusable::Absent,
            _ => Unusable::Unreadable(error.to_string()),
        };
        // The length is checked first, so that foreign files of any size are not read into memory.
        let length = fs::metadata(path).map_err(unreadable)?.len();
        if length != self.bytes() {
            let mut start = vec![0; HEADER];
            let read = File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut start));
            let mine = read.is_ok() && start == self.header();
            let a_state = start.starts_with(&MAGIC);
            return Err(if a_state && !mine { Unusable::Foreign } else { Unusable::Corrupt });
        }
        self.read(&fs::read(path).map_err(unreadable)?)
    }

    /// Decodes a state.
    ///
    /// # Errors
    ///
    /// If the bytes are invalid or belong to another context.
    pub fn read(&self, bytes: &[u8]) -> Result<State, Unusable> {
        let Some((content, digest)) = bytes.split_last_chunk::<DIGEST>() else { return Err(Unusable::Corrupt) };
        if blake3::hash(content) != *digest {
            return Err(Unusable::Corrupt);
        }
        let Some((header, arrays)) = content.split_at_checked(HEADER) else { return Err(Unusable::Corrupt) };
        if header != self.header() {
            return Err(Unusable::Foreign);
        }
        if bytes.len() as u64 != self.bytes() {
            return Err(Unusable::Corrupt);
        }
        Ok(self.decode(arrays))
    }

    /// The arrays of a file whose length and digest are right.
    fn decode(&self, arrays: &[u8]) -> State {
        let geometry = self.entries.geometry();
        let (hints, backups, words) = (geometry.hints() as usize, self.backups as usize, geometry.entry_words());
        let mut left = arrays;
        let mut take = |bytes: usize| {
            let (taken, rest) = left.split_at(bytes);
            left = rest;
            taken
        };
        let mut cutoffs = numbers(take(4 * (hints + backups)), u32::from_le_bytes);
        let backup_cutoffs = cutoffs.split_off(hints);
        let extras = numbers(take(4 * hints), u32::from_le_bytes);
        let parities = numbers(take(8 * hints * words), u64::from_le_bytes);
        let [low, high] = [(); 2].map(|()| numbers(take(8 * backups * words), u64::from_le_bytes));
        State {
            hints: Hints::new(geometry, cutoffs, extras, parities),
            backups: Backups::new(geometry, backup_cutoffs, low, high),
        }
    }

    /// Writes a state that no query has touched.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn save(&self, path: &Path, state: &State) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(self.bytes() as usize);
        bytes.extend(self.header());
        let (backup_cutoffs, low, high) = state.backups.parts();
        for numbers in [state.hints.cutoffs(), backup_cutoffs, state.hints.extras()] {
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        for words in [state.hints.parities(), low, high] {
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        let digest = blake3::hash(&bytes);
        bytes.extend(digest.as_bytes());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let beside = beside(path);
        let mut file = File::create(&beside)?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&beside, path));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }
}

/// A name in the same folder that no other process uses.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

fn numbers<const BYTES: usize, T>(bytes: &[u8], number: impl Fn([u8; BYTES]) -> T) -> Vec<T> {
    let chunk = |bytes: &[u8]| number(*bytes.first_chunk().expect("chunks have that many bytes"));
    bytes.chunks_exact(BYTES).map(chunk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::offline::{self, Way};
    use crate::prf::{AesPath, AnyPrf, Wish};

    /// A folder that is gone after the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("rms24-state-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn owner(secret: &Secret, entries: u64) -> Owner<'_> {
        let entries = Entries::new(3, Geometry::new(entries, 40, 10));
        Owner { prf: PrfKind::Aes, secret, entries, backups: 7 }
    }

    fn state(owner: &Owner<'_>) -> State {
        let path = AesPath::select(Wish::Portable).unwrap();
        let prf = AnyPrf::new(owner.prf, owner.secret, owner.entries.geometry().block_size(), path);
        offline::generate(&prf, owner.secret, owner.entries, owner.backups, Way::BlockMajor, 1)
    }

    #[test]
    fn saved_state_is_loaded() {
        let (folder, secret) = (Folder::new("same"), Secret::from_seed(1));
        let owner = owner(&secret, 900);
        let path = folder.0.join("deep").join(owner.file_name());
        assert_eq!(owner.load(&path), Err(Unusable::Absent));
        let state = state(&owner);
        owner.save(&path, &state).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), owner.bytes());
        assert_eq!(owner.load(&path), Ok(state));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_changed_bit_anywhere_and_a_missing_end_are_found() {
        let (folder, secret) = (Folder::new("bits"), Secret::from_seed(1));
        let owner = owner(&secret, 100);
        let path = folder.0.join("state");
        owner.save(&path, &state(&owner)).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(61).chain([whole.len() - 1]) {
            let mut changed = whole.clone();
            changed[at] ^= 4;
            fs::write(&path, changed).unwrap();
            assert_eq!(owner.load(&path), Err(Unusable::Corrupt), "byte {at}");
        }
        for length in [0, 5, HEADER, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(owner.load(&path), Err(Unusable::Corrupt), "{length} bytes");
        }
    }

    /// A digest is no secret: a file with the right one may still be of any length.
    #[test]
    fn a_file_of_another_length_is_corrupt_though_its_digest_is_right() {
        let secret = Secret::from_seed(1);
        let owner = owner(&secret, 100);
        let header = owner.header();
        for length in
            [0, 5, HEADER - 1, HEADER, HEADER + 1, owner.bytes() as usize - DIGEST - 1, owner.bytes() as usize]
        {
            let mut bytes = header.clone();
            bytes.resize(length, 0);
            let digest = blake3::hash(&bytes);
            bytes.extend(digest.as_bytes());
            assert_eq!(owner.read(&bytes), Err(Unusable::Corrupt), "{length} bytes before the digest");
        }
    }

    #[test]
    fn the_state_of_another_database_or_secret_is_foreign() {
        let folder = Folder::new("foreign");
        let (secret, other) = (Secret::from_seed(1), Secret::from_seed(2));
        let path = folder.0.join("state");
        let mine = owner(&secret, 900);
        mine.save(&path, &state(&mine)).unwrap();
        let function = Owner { prf: PrfKind::ChaCha, ..mine };
        let contents = Owner { entries: Entries::new(4, mine.entries.geometry()), ..mine };
        for foreign in [owner(&other, 900), owner(&secret, 800), Owner { backups: 8, ..mine }, function, contents] {
            assert_eq!(foreign.load(&path), Err(Unusable::Foreign), "{foreign:?}");
        }
    }
}

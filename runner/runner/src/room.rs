//! Isolates the files of trials from each other.
//!
//! Files left by one trial could affect the next one, of any arm: a warm cache, or a planted answer. Every trial
//! therefore gets its own folder for temporary files, home and caches, which is removed before the next trial. In a
//! container that runs nothing but the block, files left elsewhere are removed too. On a shared machine only files made
//! by the runner are removed, and HOME is unchanged, because toolchains are installed there. Data that a workload
//! declares as prepared is retained for the arm that prepared it, and for no other.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::ensure;
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use crate::output::own_name;
use crate::programs::{contents, times_show_changes};
use crate::segments::Segments;

/// Paths excluded from the cleanup: the kernel's, Assay's, and Argo's, which writes there during trials.
const NOT_OURS: [&str; 6] = ["/proc", "/sys", "/assay", "/argo", "/run/argo", "/var/run/argo"];

/// Variables that direct programs to writable locations, with the location below the trial's folder. Other defaults
/// derive from them. The first is set everywhere, the others only in containers that run nothing but the block.
const VARIABLES: [(&str, &str); 7] = [
    ("TMPDIR", "tmp"),
    ("HOME", "home"),
    ("XDG_CACHE_HOME", "home/.cache"),
    ("XDG_CONFIG_HOME", "home/.config"),
    ("XDG_DATA_HOME", "home/.local/share"),
    ("XDG_STATE_HOME", "home/.local/state"),
    ("XDG_RUNTIME_DIR", "run"),
];

/// The folders of a block's trials.
#[derive(Debug)]
pub(crate) struct Rooms {
    /// Candidate parent folders, in order of preference.
    places: Vec<PathBuf>,
    /// Prepared data by arm and build; None if nothing is declared.
    prepared: Option<BTreeMap<String, Prepared>>,
    litter: Option<Litter>,
    /// The reason why no further trial may start.
    stained: Option<String>,
}

/// One trial's folder, removed on drop.
#[derive(Debug)]
pub(crate) struct Room {
    folder: PathBuf,
    variables: &'static [(&'static str, &'static str)],
    prepared: Option<PathBuf>,
}

/// Data prepared by an arm and its state afterwards, to detect changes by other arms.
#[derive(Debug)]
struct Prepared {
    folder: PathBuf,
    left: Vec<Seen>,
}

/// State of a file or folder. Programs cannot set the change time. On file systems that do not record every change, the
/// contents are compared.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    path: PathBuf,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
    contents: Option<String>,
}

impl Rooms {
    /// Uses the temporary folder, or the folder of the attempts if the container has no temporary one.
    pub(crate) fn new(attempts: Option<&Path>, prepares: bool) -> Self {
        Self {
            places: std::iter::once(std::env::temp_dir()).chain(attempts.map(Path::to_owned)).collect(),
            prepared: prepares.then(BTreeMap::new),
            litter: None,
            stained: None,
        }
    }

    /// Records the contents of the container, which runs nothing but the block. Files that appear later, except
    /// attempts, are removed.
    pub(crate) fn note_what_is_there(&mut self, attempts: Option<&Path>) {
        self.litter = Some(Litter::before(Path::new("/"), attempts));
    }

    /// Makes an empty folder for a trial of an arm. The error is the reason why the trial cannot start.
    pub(crate) fn enter(&mut self, trial: &str, arm: &str) -> Result<Room, String> {
        if let Some(stain) = &self.stained {
            return Err(stain.clone());
        }
        let folder = own_folder(&self.places, &format!("trial-{trial}"))?;
        let variables = if self.litter.is_some() { &VARIABLES[..] } else { &VARIABLES[..1] };
        let room = Room { folder, variables, prepared: self.prepared_by(arm)? };
        for (_, below) in variables {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(room.folder.join(below));
            made.map_err(|error| format!("cannot make {below} in the trial's folder: {error}"))?;
        }
        Ok(room)
    }

    /// Returns the data prepared earlier by the arm, or an empty folder.
    fn prepared_by(&mut self, arm: &str) -> Result<Option<PathBuf>, String> {
        let Some(prepared) = &mut self.prepared else { return Ok(None) };
        if let Some(known) = prepared.get(arm) {
            return Ok(Some(known.folder.clone()));
        }
        let folder = own_folder(&self.places, "prepared")?;
        prepared.insert(arm.to_owned(), Prepared { left: seen(&folder), folder: folder.clone() });
        Ok(Some(folder))
    }

    /// Removes a trial's files except data prepared by its arm. Fails if the trial modified another arm's data, because
    /// preparing it again would take that arm's time.
    pub(crate) fn leave(&mut self, room: Room, trial: &str, arm: &str) -> anyhow::Result<()> {
        let folder = room.folder.clone();
        drop(room);
        let mut left = if folder.exists() { Some(folder) } else { None };
        let kept: Vec<&Path> = self.prepared.iter().flatten().map(|(_, known)| known.folder.as_path()).collect();
        left = left.or_else(|| self.litter.as_ref()?.sweep(&kept));
        self.stained = left.map(|left| {
            format!(
                "trial {trial} left {}, which cannot be removed and would be visible to later trials",
                left.display()
            )
        });
        for (other, known) in self.prepared.iter_mut().flatten() {
            let now = seen(&known.folder);
            ensure!(
                other == arm || now == known.left,
                "trial {trial} of arm {arm} modified the prepared data of arm {other}"
            );
            known.left = now;
        }
        Ok(())
    }
}

impl Drop for Rooms {
    fn drop(&mut self) {
        for known in self.prepared.iter().flatten().map(|(_, known)| known) {
            let _ = remove(&known.folder);
        }
    }
}

impl Room {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The variables with the folder's paths.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let below = |(name, below): &(&str, &str)| ((*name).to_owned(), self.folder.join(below).display().to_string());
        let prepared = self.prepared.as_ref().map(|path| ("ASSAY_PREPARED".to_owned(), path.display().to_string()));
        self.variables.iter().map(below).chain(prepared)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = remove(&self.folder);
    }
}

/// Contents of all writable folders before a block's first trial. Later additions come from trials.
#[derive(Debug)]
struct Litter {
    folders: BTreeMap<PathBuf, Before>,
    segments: Segments,
}

/// A folder before a block's first trial.
#[derive(Debug)]
struct Before {
    permissions: Option<Permissions>,
    names: BTreeMap<OsString, u64>,
}

impl Litter {
    fn before(root: &Path, attempts: Option<&Path>) -> Self {
        let mut folders = BTreeMap::new();
        let mut open = vec![root.to_owned()];
        while let Some(folder) = open.pop() {
            if NOT_OURS.iter().any(|other| folder == Path::new(other)) || Some(folder.as_path()) == attempts {
                continue;
            }
            // Additions to an unreadable folder cannot be detected.
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let entries: Vec<fs::DirEntry> = entries.flatten().collect();
            let subfolders = entries.iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            open.extend(subfolders.map(fs::DirEntry::path));
            let facts = fs::symlink_metadata(&folder).ok();
            // The owner of a folder can always make it writable.
            let own = facts.as_ref().is_some_and(|facts| facts.uid() == geteuid().as_raw());
            if own || access(&folder, Access::WRITE_OK).is_ok() {
                let permissions = facts.map(|facts| facts.permissions());
                folders.insert(folder, Before { permissions, names: entries.iter().filter_map(named).collect() });
            }
        }
        Self { folders, segments: Segments::read() }
    }

    /// Removes additions; returns the first path that cannot be removed.
    fn sweep(&self, kept: &[&Path]) -> Option<PathBuf> {
        let mut stubborn = self.segments.sweep().map(PathBuf::from);
        for (folder, before) in &self.folders {
            if access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
                open_up(folder);
            }
            let entries = match fs::read_dir(folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // Its contents are unknown.
                Err(_) => {
                    stubborn = Some(folder.clone());
                    continue;
                }
            };
            for entry in entries.flatten() {
                let path = entry.path();
                // A file of the same name may be a different file.
                let known = named(&entry).is_none_or(|(name, inode)| before.names.get(&name) == Some(&inode));
                if !known && !kept.contains(&path.as_path()) && remove(&path).is_err() {
                    stubborn = Some(path);
                }
            }
            let now = fs::symlink_metadata(folder).ok().map(|facts| facts.permissions());
            if let Some(permissions) = before.permissions.clone().filter(|_| now != before.permissions) {
                let _ = fs::set_permissions(folder, permissions);
            }
        }
        stubborn
    }
}

fn named(entry: &fs::DirEntry) -> Option<(OsString, u64)> {
    Some((entry.file_name(), entry.metadata().ok()?.ino()))
}

/// Returns the state of a folder and all its contents.
fn seen(folder: &Path) -> Vec<Seen> {
    let (mut open, mut out) = (vec![folder.to_owned()], Vec::new());
    let by_times = times_show_changes(folder);
    while let Some(path) = open.pop() {
        let Ok(file) = fs::symlink_metadata(&path) else { continue };
        if file.is_dir() {
            open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
        let contents = if by_times || !file.is_file() { None } else { contents(&path) };
        let changed = (file.ctime(), file.ctime_nsec());
        out.push(Seen { path, inode: file.ino(), bytes: file.size(), changed, contents });
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

/// Removes a file or a folder, including write-protected and arbitrarily deep ones. Subfolders are moved to the top
/// before they are emptied, because recursion would need a name, a descriptor or a stack frame per level, and a program
/// can create more levels than available.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(file) if file.is_dir() => {
            let mut moved = 0;
            while empty(path, path, &mut moved)? {}
            fs::remove_dir(path)
        }
        _ => fs::remove_file(path),
    }
}

/// Empties a folder. Its subfolders are moved to the top, or emptied if it is the top. Returns whether one was moved.
fn empty(folder: &Path, top: &Path, moved: &mut u64) -> io::Result<bool> {
    open_up(folder);
    let mut up = false;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if !entry.file_type()?.is_dir() {
            fs::remove_file(&path)?;
        } else if folder == top {
            up |= empty(&path, top, moved)?;
            fs::remove_dir(&path)?;
        } else {
            // Moving a folder writes to it, because of its parent entry.
            open_up(&path);
            *moved += 1;
            fs::rename(&path, top.join(format!("{}-{moved}", own_name())))?;
            up = true;
        }
    }
    Ok(up)
}

/// Gives the owner read, write and search permission on a folder.
fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
}

/// Makes a new folder in the first candidate that permits it.
fn own_folder(places: &[PathBuf], what: &str) -> Result<PathBuf, String> {
    let mut problems = Vec::new();
    for place in places {
        let folder = place.join(format!(".assay-{what}-{}", own_name()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => problems.push(format!("in {}: {error}", place.display())),
        }
    }
    Err(format!("cannot make the trial's folder ({})", problems.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(place: &Path, prepares: bool) -> Rooms {
        Rooms { places: vec![place.to_owned()], prepared: prepares.then(BTreeMap::new), litter: None, stained: None }
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).expect("list").flatten().map(|e| e.file_name().display().to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn trial_folders_are_removed_before_the_next_trial() {
        let place = tempfile::tempdir().expect("a folder");
        let mut rooms = rooms(place.path(), false);
        assert_eq!(rooms.enter("s", "new").expect("a room").variables().count(), 1, "the home is the user's");
        rooms.litter = Some(Litter::before(place.path(), None));
        let room = rooms.enter("t", "new").expect("a room");
        assert_eq!(room.variables().count(), VARIABLES.len());
        for (name, path) in room.variables() {
            fs::write(Path::new(&path).join("planted"), name).expect("it can be written to");
        }
        rooms.leave(room, "t", "new").expect("nothing is prepared");
        assert_eq!(entries(place.path()), Vec::<String>::new());
        let next = rooms.enter("u", "old").expect("nothing is left");
        assert!(
            next.prepared.is_none() && next.variables().all(|(_, path)| !Path::new(&path).join("planted").exists())
        );
    }

    #[test]
    fn folder_falls_back_to_the_next_candidate() {
        let (nowhere, place) = (PathBuf::from("/proc/nowhere"), tempfile::tempdir().expect("a folder"));
        let folder = own_folder(&[nowhere.clone(), place.path().to_owned()], "t").expect("made");
        assert!(folder.starts_with(place.path()));
        assert_ne!(folder, own_folder(&[place.path().to_owned()], "t").expect("made"), "names are unpredictable");
        let problem = own_folder(&[nowhere], "t").expect_err("no place");
        assert!(problem.contains("/proc/nowhere"), "{problem}");
    }

    #[test]
    fn deep_folders_are_removed() {
        for depth in [1, 100, 3_000, 20_000] {
            let place = tempfile::tempdir().expect("a folder");
            let top = place.path().join("left");
            fs::create_dir(&top).expect("a folder");
            // The path exceeds PATH_MAX, so that it is created level by level.
            let mut folder = fs::File::open(&top).expect("there");
            for _ in 0..depth {
                rustix::fs::mkdirat(&folder, "a", rustix::fs::Mode::RWXU).expect("a folder");
                rustix::fs::mkdirat(&folder, "b", rustix::fs::Mode::RUSR).expect("a folder that is closed");
                let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
                folder = rustix::fs::openat(&folder, "a", flags, rustix::fs::Mode::empty()).expect("there").into();
            }
            drop(folder);
            let removed = remove(&top);
            assert!(removed.is_ok() && !top.exists(), "{depth}: {removed:?}");
        }
    }

    #[test]
    fn prepared_data_is_retained_for_its_arm_only() {
        let place = tempfile::tempdir().expect("a folder");
        let mut rooms = rooms(place.path(), true);
        let trial = |rooms: &mut Rooms, arm: &str, act: &dyn Fn(&Path)| {
            let room = rooms.enter("t", arm).expect("a room");
            act(&room.prepared.clone().expect("declared"));
            rooms.leave(room, "t", arm).map_err(|changed| changed.to_string())
        };
        let is_well = |ended: Result<(), String>| assert_eq!(ended, Ok(()));
        is_well(trial(&mut rooms, "new", &|folder| fs::write(folder.join("index"), "new's").expect("written")));
        is_well(trial(&mut rooms, "old", &|folder| assert!(entries(folder).is_empty(), "another arm has its own")));
        is_well(trial(&mut rooms, "new", &|folder| {
            assert_eq!(fs::read_to_string(folder.join("index")).expect("kept"), "new's");
        }));
        // A trial of another arm overwrites it with the same size and modification time.
        let ended = trial(&mut rooms, "old", &|folder| {
            let others = fs::read_dir(folder.parent().expect("a place")).expect("list").flatten();
            let index =
                others.map(|other| other.path().join("index")).find(|index| index.exists()).expect("it is there");
            let time = fs::metadata(&index).expect("there").modified().expect("a time");
            fs::write(&index, "forge").expect("written");
            fs::File::options().write(true).open(&index).expect("there").set_modified(time).expect("set");
        });
        assert_eq!(ended, Err("trial t of arm old modified the prepared data of arm new".to_owned()));
        drop(rooms);
        assert_eq!(entries(place.path()), Vec::<String>::new());
    }

    #[test]
    fn change_through_a_mapping_is_detected() {
        for place in [std::env::temp_dir(), "/dev/shm".into()] {
            let Ok(place) = tempfile::tempdir_in(place) else { continue };
            let mut rooms = rooms(place.path(), true);
            let room = rooms.enter("t", "new").expect("a room");
            let index = room.prepared.clone().expect("declared").join("index");
            fs::write(&index, "new's").expect("written");
            rooms.leave(room, "t", "new").expect("it is its own");
            for (text, well) in [("new's", true), ("forge", false)] {
                std::thread::sleep(std::time::Duration::from_millis(50));
                let room = rooms.enter("t", "old").expect("a room");
                if !well {
                    crate::programs::tests::write_mapped(&index, text.as_bytes());
                }
                let ended = rooms.leave(room, "t", "old").map_err(|changed| changed.to_string());
                assert_eq!(ended.is_ok(), well, "{}: {ended:?}", place.path().display());
            }
        }
    }

    #[test]
    fn files_left_elsewhere_are_removed_and_others_stay() {
        let root = tempfile::tempdir().expect("a folder");
        let path = |name: &str| root.path().join(name);
        for folder in ["tmp", "data/deep", "attempts"] {
            fs::create_dir_all(path(folder)).expect("made");
        }
        for file in ["data/known", "data/deep/known", "data/replaced"] {
            fs::write(path(file), file).expect("written");
        }
        let litter = Litter::before(root.path(), Some(&path("attempts")));
        let kept = path("tmp/prepared");
        for folder in ["tmp/prepared", "tmp/planted.d/below", "tmp/.assay-prepared-forged"] {
            fs::create_dir_all(path(folder)).expect("made");
        }
        for file in ["tmp/planted", "data/deep/planted", "attempts/of-a-trial.json", "tmp/planted.d/below/planted"] {
            fs::write(path(file), "").expect("written");
        }
        std::os::unix::fs::symlink(path("data"), path("tmp/link")).expect("linked");
        fs::write(path("other"), "another file").expect("written");
        fs::rename(path("other"), path("data/replaced")).expect("replaced");
        assert_eq!(litter.sweep(&[&kept]), None);
        assert_eq!(entries(&path("tmp")), ["prepared"]);
        assert_eq!(entries(&path("data")), ["deep", "known"]);
        assert_eq!(entries(&path("data/deep")), ["known"]);
        assert_eq!(entries(&path("attempts")), ["of-a-trial.json"]);
    }

    /// Runs `act` in a folder of an unprivileged user. Without root it runs as the current user.
    fn as_unprivileged(act: impl FnOnce(&Path) + Send) {
        const NOBODY: u32 = 65_532;
        let folder = tempfile::tempdir().expect("a folder");
        let _ = std::os::unix::fs::chown(folder.path(), Some(NOBODY), None);
        std::thread::scope(|scope| {
            let done = scope.spawn(|| {
                // SAFETY: the call takes three numbers, and changes this thread only, since the C library does not know of it.
                unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
                act(folder.path());
            });
            done.join().expect("it holds");
        });
    }

    #[test]
    fn files_in_a_write_protected_folder_are_removed() {
        as_unprivileged(|root| {
            let set = |folder: &Path, mode| fs::set_permissions(folder, Permissions::from_mode(mode)).expect("set");
            let mode = |folder: &Path| fs::metadata(folder).expect("there").permissions().mode() & 0o777;
            // A folder that the image makes writable for its user, and one that the user owns but may not write to.
            for before in [0o755, 0o555] {
                let home = root.join(format!("home-{before:o}"));
                fs::create_dir(&home).expect("made");
                fs::write(home.join("known"), "").expect("written");
                set(&home, before);
                let litter = Litter::before(root, None);
                for closed in [0o700, 0o300, 0o400, 0o500, 0o000] {
                    set(&home, 0o700);
                    fs::write(home.join("planted"), "an answer").expect("written");
                    set(&home, closed);
                    assert_eq!(litter.sweep(&[]), None);
                    assert_eq!(mode(&home), before, "closed with {closed:o}");
                    assert_eq!(entries(&home), ["known"], "closed with {closed:o}");
                }
                set(&home, 0o700);
            }
        });
    }

    #[test]
    fn system_v_ipc_objects_are_removed() {
        as_unprivileged(|root| {
            let litter = Litter::before(root, None);
            let before = Segments::read();
            // SAFETY: these calls take numbers only.
            unsafe {
                assert!(libc::shmget(libc::IPC_PRIVATE, 1 << 20, 0o600) >= 0, "a segment");
                assert!(libc::semget(libc::IPC_PRIVATE, 1, 0o600) >= 0, "a semaphore");
                assert!(libc::msgget(libc::IPC_PRIVATE, 0o600) >= 0, "a queue");
            }
            assert_ne!(Segments::read(), before);
            assert_eq!(litter.sweep(&[]), None);
            assert_eq!(Segments::read(), before);
        });
    }

    #[test]
    fn unremovable_file_ends_the_block() {
        let place = tempfile::tempdir().expect("a folder");
        let mut rooms = rooms(place.path(), false);
        // Files of /proc cannot be removed.
        let before = Before { permissions: None, names: BTreeMap::new() };
        let folders = BTreeMap::from([("/proc/self/fdinfo".into(), before)]);
        rooms.litter = Some(Litter { folders, segments: Segments::read() });
        let room = rooms.enter("t-1", "new").expect("a room");
        rooms.leave(room, "t-1", "new").expect("nothing is prepared");
        let problem = rooms.enter("t-2", "old").expect_err("refused");
        assert!(problem.starts_with("trial t-1 left /proc/self/fdinfo/"), "{problem}");
    }
}

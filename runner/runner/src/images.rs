//! Programs from other images, copied into the block's pod before its first trial.
//!
//! An init container runs in the image with this program injected. It copies the files listed in the wave to a folder
//! that the block's container mounts. The image needs no shell and no tool. Copy errors are recorded in the folder, so
//! that only the trials of the affected arm fail.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use assay_schema::roles::Image;
use assay_schema::wave::Wave;
use serde::{Deserialize, Serialize};

use crate::ended::How;
use crate::log::log;
use crate::plan;

/// File with the copy's record, in its root.
const RECORD: &str = ".assay-image.json";

/// The result of a copy.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    reference: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Copies the files that the wave lists for this container's image, which is mounted at `from`.
pub(crate) fn copy(wave: &Path, reference: &str, from: &Path, most_bytes: u64) -> Result<()> {
    let wave: Wave = plan::read_record(wave)?;
    let images = wave.images.unwrap_or_default();
    let Some(image) = images.iter().find(|image| image.reference == reference) else {
        bail!("images: no entry for {reference}");
    };
    let root = Path::new(&image.root);
    fs::create_dir_all(root).with_context(|| format!("cannot make the folder {}", image.root))?;
    let mut copier =
        Copier { from, root, mounts: mounts(), digest: blake3::Hasher::new(), files: 0, bytes: 0, most_bytes };
    let copied = image.files.iter().try_for_each(|file| copier.named(file));
    let mut record = Record { reference: reference.to_owned(), ..Record::default() };
    match copied {
        Ok(()) => {
            // Flushed now, so that write-back does not disturb a trial.
            let _ = File::open(root).map(rustix::fs::syncfs);
            record.digest = Some(format!("blake3:{}", copier.digest.finalize().to_hex()));
            log(format_args!(
                "copied {} files, {} bytes, of {reference} to {}",
                copier.files, copier.bytes, image.root
            ));
        }
        Err(problem) => {
            log(format_args!("cannot copy from {reference}: {problem}"));
            record.problem = Some(problem);
        }
    }
    let text = serde_json::to_vec(&record).context("cannot express the record as JSON")?;
    fs::write(root.join(RECORD), text).with_context(|| format!("cannot write to {}", image.root))
}

/// State of a copy.
struct Copier<'a> {
    from: &'a Path,
    root: &'a Path,
    /// Mounts inside a folder are not part of the image.
    mounts: BTreeSet<PathBuf>,
    digest: blake3::Hasher,
    files: usize,
    bytes: u64,
    /// Limit of `bytes`, because a sparse file takes no room in an image and all of it in a copy.
    most_bytes: u64,
}

impl Copier<'_> {
    /// Copies one listed file or folder recursively.
    fn named(&mut self, file: &str) -> Result<(), String> {
        let inside = Path::new(file.trim_start_matches('/'));
        let source = self.from.join(inside);
        let at = |error: io::Error| format!("{file}: {error}");
        // A listed link is resolved, because its target is executed.
        let metadata = fs::metadata(&source).map_err(at)?;
        let target = self.root.join(inside);
        fs::create_dir_all(target.parent().unwrap_or(self.root)).map_err(at)?;
        if metadata.is_dir() { self.folder(inside) } else { self.file(inside).map_err(at) }
    }

    fn folder(&mut self, inside: &Path) -> Result<(), String> {
        let source = self.from.join(inside);
        let at = |error: io::Error| format!("/{}: {error}", inside.display());
        fs::create_dir_all(self.root.join(inside)).map_err(at)?;
        let mut names = fs::read_dir(&source).map_err(at)?.collect::<io::Result<Vec<_>>>().map_err(at)?;
        // Sorted, so that the digest depends only on the contents.
        names.sort_by_key(fs::DirEntry::file_name);
        for name in names {
            let inside = inside.join(name.file_name());
            let at = |error: io::Error| format!("/{}: {error}", inside.display());
            if self.mounts.contains(&name.path()) {
                continue;
            }
            let metadata = fs::symlink_metadata(name.path()).map_err(at)?;
            if metadata.is_dir() {
                self.folder(&inside)?;
            } else if metadata.is_symlink() {
                self.link(&inside).map_err(at)?;
            } else if metadata.is_file() {
                self.file(&inside).map_err(at)?;
            }
        }
        Ok(())
    }

    /// Redirects an absolute link to the copy of its target.
    fn link(&mut self, inside: &Path) -> io::Result<()> {
        let to = fs::read_link(self.from.join(inside))?;
        self.describe("link", inside, 0, to.as_os_str().len() as u64);
        self.digest.update(to.as_os_str().as_encoded_bytes());
        let to = to.strip_prefix("/").map_or(to.clone(), |to| self.root.join(to));
        let target = self.root.join(inside);
        // If listed twice, it exists already.
        match symlink(to, &target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    fn file(&mut self, inside: &Path) -> io::Result<()> {
        let mut source = File::open(self.from.join(inside))?;
        let metadata = source.metadata()?;
        let mode = metadata.permissions().mode() & 0o777;
        self.describe("file", inside, mode & 0o111, metadata.len());
        let target = self.root.join(inside);
        // The copy of a file listed twice may be write-protected.
        let _ = fs::remove_file(&target);
        let mut copy = File::create_new(&target)?;
        let mut read = Hashed { source: &mut source, digest: &mut self.digest };
        let room = self.most_bytes - self.bytes;
        let copied = io::copy(&mut (&mut read).take(room.saturating_add(1)), &mut copy)?;
        if copied > room {
            return Err(io::Error::other(format!(
                "the copied files are more than {} bytes: list fewer files",
                self.most_bytes
            )));
        }
        self.bytes += copied;
        self.files += 1;
        copy.set_permissions(Permissions::from_mode(mode | 0o400))?;
        // Some programs compare modification times.
        copy.set_modified(metadata.modified()?)
    }

    fn describe(&mut self, kind: &str, inside: &Path, mode: u32, length: u64) {
        self.digest.update(format!("{kind} {:?} {mode:o} {length}\n", inside.display().to_string()).as_bytes());
    }
}

/// Returns the mount points of this container.
fn mounts() -> BTreeSet<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from).collect()
}

/// A reader that hashes its input.
struct Hashed<'a> {
    source: &'a mut File,
    digest: &'a mut blake3::Hasher,
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.digest.update(&buffer[..read]);
        Ok(read)
    }
}

/// Images of a block, as found in its pod.
#[derive(Debug, Default)]
pub(crate) struct Images {
    found: Vec<Found>,
}

#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) reference: String,
    pub(crate) root: PathBuf,
    /// Digest of all copied files, or the reason why they are missing.
    pub(crate) copied: Result<String, How>,
}

impl Images {
    /// Reads the records of the copies.
    pub(crate) fn read(images: &[Image]) -> Self {
        let found = |image: &Image| Found {
            reference: image.reference.clone(),
            root: PathBuf::from(&image.root),
            copied: read_copy(image),
        };
        Self { found: images.iter().map(found).collect() }
    }

    /// Returns the path of a program in an image, or the reason why its trial cannot start.
    pub(crate) fn program(&self, image: Option<usize>, program: &str) -> Result<String, How> {
        let Some(image) = self.get(image) else { return Ok(program.to_owned()) };
        if let Err(problem) = &image.copied {
            return Err(problem.clone().of(&format!("image {}", image.reference)));
        }
        if !program.starts_with('/') {
            let reason = format!("image {}: program {program:?} must be an absolute path", image.reference);
            return Err(How::CannotStart(reason));
        }
        Ok(format!("{}{program}", image.root.display()))
    }

    /// Returns an image by its index in the plan.
    pub(crate) fn get(&self, image: Option<usize>) -> Option<&Found> {
        self.found.get(image?)
    }
}

fn read_copy(image: &Image) -> Result<String, How> {
    let file = Path::new(&image.root).join(RECORD);
    let text = fs::read(&file).map_err(|error| format!("missing copy: {}: {error}", file.display()))?;
    let record: Record = serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    match (record.problem, record.digest) {
        (Some(problem), _) => Err(How::CannotStart(format!(
            "{problem}; the image must contain all files and commands of the template, readable by all users"
        ))),
        (None, Some(digest)) if record.reference == image.reference => Ok(digest),
        _ => Err(How::NotStarted(format!("{} is the copy of {}", file.display(), record.reference))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A folder that simulates an image's file system, with a wave that lists parts of it.
    struct Scene {
        folder: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let scene = Self { folder };
            scene.file("image/app/bin/kv", "program", 0o755);
            scene.file("image/app/data/rows", "rows", 0o644);
            symlink("rows", scene.path("image/app/data/relative")).expect("a link");
            symlink("/app/bin/kv", scene.path("image/app/data/absolute")).expect("a link");
            symlink("/app/data/relative", scene.path("image/entry")).expect("a link");
            scene
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn file(&self, name: &str, text: &str, mode: u32) {
            let file = self.path(name);
            fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            fs::write(&file, text).expect("written");
            fs::set_permissions(&file, Permissions::from_mode(mode)).expect("set");
        }

        /// Copies the files to `root` and returns the images as a block finds them.
        fn copy(&self, root: &str, files: &[&str]) -> Images {
            let mut wave: serde_json::Value =
                serde_json::from_str(include_str!("../../schema/fixtures/valid/wave-roles-and-images.json"))
                    .expect("JSON");
            let root = self.path(root).display().to_string();
            wave["images"] = json!([{"reference": "lab/kv:1", "root": root, "files": files}]);
            fs::write(self.path("wave.json"), wave.to_string()).expect("written");
            copy(&self.path("wave.json"), "lab/kv:1", &self.path("image"), 1 << 20).expect("it ran");
            Images::read(&[Image { reference: "lab/kv:1".into(), root, files: vec![] }])
        }
    }

    #[test]
    fn copy_preserves_paths_modes_times_and_links() {
        let scene = Scene::new();
        let images = scene.copy("copy", &["/app/data", "/app/bin/kv"]);
        let program = images.program(Some(0), "/app/bin/kv").expect("copied");
        assert_eq!(program, scene.path("copy/app/bin/kv").display().to_string());
        let (copy, original) = (fs::metadata(&program).expect("there"), fs::metadata(scene.path("image/app/bin/kv")));
        assert_eq!(copy.permissions().mode() & 0o777, 0o755);
        assert_eq!(copy.modified().ok(), original.expect("there").modified().ok());
        assert_eq!(fs::read_to_string(scene.path("copy/app/data/relative")).expect("followed"), "rows");
        assert_eq!(
            fs::read_link(scene.path("copy/app/data/absolute")).expect("a link"),
            scene.path("copy/app/bin/kv"),
            "the link points into the copy, not into the container"
        );
        assert_eq!(images.program(None, "/app/bin/kv").as_deref(), Ok("/app/bin/kv"), "no image, no other place");
    }

    #[test]
    fn listed_link_is_resolved() {
        let scene = Scene::new();
        // The link is absolute, and this folder is not a root.
        fs::remove_file(scene.path("image/entry")).expect("removed");
        symlink("app/bin/kv", scene.path("image/entry")).expect("a link");
        scene.copy("copy", &["/entry"]);
        assert!(fs::symlink_metadata(scene.path("copy/entry")).expect("there").is_file());
    }

    #[test]
    fn digest_covers_contents_modes_and_names() {
        let scene = Scene::new();
        let digest =
            |root: &str| scene.copy(root, &["/app"]).get(Some(0)).expect("found").copied.clone().expect("a digest");
        let first = digest("one");
        assert_eq!(first, digest("two"), "the same files");
        scene.file("image/app/data/rows", "row2", 0o644);
        let changed = digest("three");
        assert_ne!(first, changed);
        scene.file("image/app/data/rows", "row2", 0o755);
        assert_ne!(changed, digest("four"));
    }

    #[test]
    fn missing_file_is_reported_by_every_trial_of_the_arm() {
        let scene = Scene::new();
        let images = scene.copy("copy", &["/app/bin/kv", "/lib/none.so"]);
        let How::CannotStart(reason) = images.program(Some(0), "/app/bin/kv").expect_err("not complete") else {
            panic!("a repetition does not add the file to the image");
        };
        assert!(reason.contains("image lab/kv:1: /lib/none.so: No such file"), "{reason}");
        assert!(reason.contains("commands of the template"), "{reason}");
        let root = scene.path("nowhere").display().to_string();
        let images = Images::read(&[Image { reference: "lab/kv:2".into(), root, files: vec![] }]);
        let How::NotStarted(reason) = images.program(Some(0), "/kv").expect_err("nothing there") else {
            panic!("the copy may be there in another pod");
        };
        assert!(reason.contains("missing copy"), "{reason}");
    }

    #[test]
    fn copy_of_a_sparse_file_ends_at_the_limit() {
        let scene = Scene::new();
        let sparse = File::create(scene.path("image/app/data/sparse")).expect("a file");
        sparse.set_len(1 << 40).expect("it takes no room");
        let images = scene.copy("copy", &["/app"]);
        let How::CannotStart(reason) = images.program(Some(0), "/app/bin/kv").expect_err("not complete") else {
            panic!("a repetition does not make the file smaller");
        };
        assert!(reason.contains("more than 1048576 bytes"), "{reason}");
        assert!(fs::metadata(scene.path("copy/app/data/sparse")).expect("begun").len() <= (1 << 20) + 1);
    }

    #[test]
    fn mounts_are_not_copied() {
        assert!(mounts().contains(Path::new("/proc")), "{:?}", mounts());
        let scene = Scene::new();
        let (from, root) = (scene.path("image"), scene.path("copy"));
        let mounts = BTreeSet::from([scene.path("image/app/data")]);
        let mut copier = Copier {
            from: &from,
            root: &root,
            mounts,
            digest: blake3::Hasher::new(),
            files: 0,
            bytes: 0,
            most_bytes: 99,
        };
        copier.named("/app").expect("copied");
        assert_eq!(copier.files, 1);
        assert!(scene.path("copy/app/bin/kv").exists() && !scene.path("copy/app/data").exists());
    }
}

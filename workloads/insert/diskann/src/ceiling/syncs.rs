//! How many times per second the file system can make a few pages durable, one after the other.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use assay_harness::{Quantity, Stopwatch, Unit};

/// Writes of three pages and a wait for the disk, per second, in `folder`: at most twenty, in about a fifth of a second, after one that
/// does not count.
///
/// # Errors
///
/// When the system refuses.
pub fn syncs(folder: &Path) -> io::Result<Quantity> {
    const PAGES: [u8; 3 * 4096] = [0x5a; 3 * 4096];
    const MOST: usize = 20;
    const SECONDS: f64 = 0.2;
    let path = folder.join("syncs");
    let file = File::create(&path)?;
    let write = || -> io::Result<()> {
        // Over and over the same place, as a log that was reset: the file does not grow.
        file.write_all_at(&PAGES, 0)?;
        file.sync_data()
    };
    write()?;
    let (mut count, watch) = (0, Stopwatch::start());
    while count == 0 || count < MOST && watch.seconds() < SECONDS {
        write()?;
        count += 1;
    }
    let rate = count as f64 / watch.seconds();
    drop(file);
    std::fs::remove_file(path)?;
    Ok(Quantity::new(rate, Unit::new("syncs/s")))
}

#[cfg(test)]
mod tests {
    use super::syncs;

    #[test]
    fn rate_is_positive_and_all_data_is_read() {
        let folder = std::env::temp_dir().join(format!("insert-diskann-syncs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let rate = syncs(&folder).unwrap();
        assert!(rate.value > 0.1 && rate.value.is_finite(), "{rate:?}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

//! Properties of the machine. Values that the machine does not report are `None`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Size of CPU 0's last-level cache in bytes.
#[must_use]
pub fn last_level_cache_bytes() -> Option<u64> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let data_or_unified = |folder: &Path| read(folder.join("type")).is_some_and(|kind| kind != "Instruction");
    caches
        .flatten()
        .map(|entry| entry.path())
        .filter(|folder| folder.join("level").exists() && data_or_unified(folder))
        .filter_map(|folder| {
            let level: u64 = read(folder.join("level"))?.parse().ok()?;
            Some((level, size(&read(folder.join("size"))?)?))
        })
        .max()
        .map(|(_, bytes)| bytes)
}

/// Bytes that this process may still allocate: the smaller of the system's available memory and the remainder of its
/// control groups.
#[must_use]
pub fn available_memory_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let system = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map(|kibibytes| kibibytes * 1024);
    system.into_iter().chain(control_groups().iter().filter_map(|group| left_in(group))).min()
}

/// Bytes of `memory`, including other parts of the same mappings, on huge pages.
#[must_use]
pub fn huge_page_bytes<T>(memory: &[T]) -> Option<u64> {
    on_huge_pages(&fs::read_to_string("/proc/self/smaps").ok()?, memory.as_ptr().addr(), size_of_val(memory))
}

/// Parses the figure from smaps: a header line with the range of each mapping, followed by its fields.
fn on_huge_pages(smaps: &str, start: usize, length: usize) -> Option<u64> {
    let range = |line: &str| {
        let (low, high) = line.split(' ').next()?.split_once('-')?;
        Some(usize::from_str_radix(low, 16).ok()?..usize::from_str_radix(high, 16).ok()?)
    };
    let (mut inside, mut found) = (false, None);
    for line in smaps.lines() {
        if let Some(mapping) = range(line) {
            inside = mapping.start < start + length && start < mapping.end;
        } else if let Some(kibibytes) = line.strip_prefix("AnonHugePages:").filter(|_| inside) {
            let bytes = kibibytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10;
            found = Some(found.unwrap_or(0) + bytes);
        }
    }
    found
}

/// Growth of this process's peak memory.
#[derive(Debug, Clone, Copy)]
pub struct PeakMemory {
    before: u64,
}

impl PeakMemory {
    /// Starts the measurement. `None` if the system does not report the peak or cannot reset it.
    #[must_use]
    pub fn start() -> Option<Self> {
        // 5 resets the peak to the current resident size (proc(5)).
        fs::write("/proc/self/clear_refs", "5").ok()?;
        Some(Self { before: status("VmRSS:")? })
    }

    /// Peak resident bytes beyond those at the start.
    #[must_use]
    pub fn growth(self) -> Option<u64> {
        Some(status("VmHWM:")?.saturating_sub(self.before))
    }
}

/// A field of /proc/self/status in bytes.
fn status(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = text.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix("kB")?.trim();
    Some(kibibytes.parse::<u64>().ok()? * 1024)
}

/// Rejects a trial that does not fit into memory. `flags` names the flags that reduce its size.
///
/// # Errors
///
/// If it does not fit.
pub fn check_memory(needed: u64, flags: &str) -> Result<(), Failure> {
    check_room(needed, available_memory_bytes(), "memory", flags)
}

/// Rejects a trial that needs more than `available` bytes; accepts any if the available size is unknown.
///
/// # Errors
///
/// If `available` is too small.
pub fn check_room(needed: u64, available: Option<u64>, of: &str, flags: &str) -> Result<(), Failure> {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    match available.filter(|available| needed > *available) {
        None => Ok(()),
        Some(available) => Err(Failure::usage(format_args!(
            "{flags}: the trial needs {} MiB, but only {} MiB of {of} are available",
            mib(needed),
            mib(available)
        ))),
    }
}

/// Parses a cache size of sysfs: `32K`, `32768K`, `1M`.
fn size(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let factor = match unit {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// The memory control groups of this process, innermost first, version 1 or 2.
fn control_groups() -> Vec<PathBuf> {
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut groups = Vec::new();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup"),
            list if list.split(',').any(|name| name == "memory") => Path::new("/sys/fs/cgroup/memory"),
            _ => continue,
        };
        // In a container the path may be the host's, with only the root mounted.
        groups.extend(Path::new(group.trim_start_matches('/')).ancestors().map(|group| root.join(group)));
    }
    groups
}

/// Remainder of a control group: its limit minus the usage that cannot be reclaimed.
fn left_in(group: &Path) -> Option<u64> {
    let number = |file: &str| read(group.join(file))?.parse::<u64>().ok();
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let reclaimable = stat
        .lines()
        .find_map(|line| line.strip_prefix("inactive_file "))
        .and_then(|value| value.parse::<u64>().ok())
        .unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(reclaimable)))
}

fn read(file: PathBuf) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{PeakMemory, check_memory, check_room, huge_page_bytes, on_huge_pages, size};

    #[test]
    fn peak_covers_only_the_time_since_the_start() {
        const BYTES: usize = 64 << 20;
        let touched = |bytes: usize| drop(std::hint::black_box(vec![1_u8; bytes]));
        touched(4 * BYTES);
        let Some(peak) = PeakMemory::start() else { return };
        touched(BYTES);
        let growth = peak.growth().unwrap() as usize;
        // Resident pages are counted in batches, and other tests of this process allocate too.
        assert!((BYTES / 10 * 9..3 * BYTES).contains(&growth), "{growth}");
    }

    #[test]
    fn oversized_trial_is_rejected_with_both_sizes_and_the_flags() {
        assert!(
            check_room(9, Some(9), "disk", "--size").is_ok() && check_room(u64::MAX, None, "disk", "--size").is_ok()
        );
        let refused = check_room(3 << 20, Some((2 << 20) - 1), "disk", "--size").unwrap_err();
        assert!(refused.is_usage());
        assert_eq!(refused.to_string(), "--size: the trial needs 3 MiB, but only 2 MiB of disk are available");
        assert!(check_memory(1, "--size").is_ok());
    }

    #[test]
    fn huge_pages_are_counted_in_the_mappings_of_the_memory() {
        let smaps = "7f0000000000-7f0000400000 rw-p 00000000 00:00 0\nRss: 4096 kB\nAnonHugePages:      4096 kB\n\
                     7f0000400000-7f0000600000 rw-p 00000000 00:00 0 [heap]\nAnonHugePages:      2048 kB\n\
                     7f0000600000-7f0000601000 rw-p 00000000 00:00 0\nAnonHugePages:         0 kB\n";
        for (start, length, expected) in [
            (0x7f00_0000_0000, 1, Some(4 << 20)),
            (0x7f00_003f_ffff, 2, Some(6 << 20)),
            (0x7f00_0060_0000, 4096, Some(0)),
            (0x7f00_0060_1000, 1, None),
        ] {
            assert_eq!(on_huge_pages(smaps, start, length), expected, "{start:x} {length}");
        }
        assert!(huge_page_bytes(&[1_u8]).is_some() || !std::path::Path::new("/proc/self/smaps").exists());
    }

    #[test]
    fn size_parses_the_format_of_sysfs() {
        assert_eq!(size("48K"), Some(48 << 10));
        assert_eq!(size("32768K"), Some(32 << 20));
        assert_eq!(size("1M"), Some(1 << 20));
        assert_eq!(size("512"), Some(512));
        assert_eq!(size("much"), None);
    }
}

//! Counters of the processor and energy of its packages, for a program and all processes that it starts.
//!
//! The counters are opened in the thread that forks, disabled, inherited, and enabled by exec, so that they count the
//! program from its first instruction and the runner never (`perf_event_open(2)`: `inherit`, `enable_on_exec`). They
//! count user mode only, which needs no privilege at the default `perf_event_paranoid` of 2 and is the same quantity on
//! every machine. A counter that a machine does not have, or had to share with another one, is absent: never zero, and
//! never scaled.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, RawFd};

use anyhow::{Context, Result};
use assay_schema::attempt::Resources;

use crate::host::Host;

/// An event that the processor counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Instructions,
    Cycles,
    CacheMisses,
    BranchMisses,
}

impl Event {
    const ALL: [Self; 4] = [Self::Instructions, Self::Cycles, Self::CacheMisses, Self::BranchMisses];

    /// Its name, that of the quantity process.NAME.
    fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Cycles => "cycles",
            Self::CacheMisses => "cacheMisses",
            Self::BranchMisses => "branchMisses",
        }
    }

    /// Its number among the generic hardware events (`enum perf_hw_id` of linux/perf_event.h).
    fn number(self) -> u64 {
        match self {
            Self::Cycles => 0,
            Self::Instructions => 1,
            Self::CacheMisses => 3,
            Self::BranchMisses => 5,
        }
    }
}

/// A reading of a counter: the count, and the nanoseconds for which it was enabled and for which it really counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    count: u64,
    enabled: u64,
    running: u64,
}

impl Reading {
    /// The count; absent if the program never ran with the counter, or shared it with other counters for a part of the time.
    fn whole(self) -> Option<u64> {
        (self.running > 0 && self.running == self.enabled).then_some(self.count)
    }
}

/// A machine's counters. Tests replace it by recorded readings.
pub(crate) trait Pmu: std::fmt::Debug {
    /// Opens a counter for the programs that this thread starts.
    fn open(&self, event: Event) -> io::Result<Box<dyn Counter>>;
}

/// An open counter.
pub(crate) trait Counter: std::fmt::Debug {
    fn read(&mut self) -> io::Result<Reading>;
}

/// The counters of this machine.
#[derive(Debug)]
pub(crate) struct Kernel;

impl Pmu for Kernel {
    fn open(&self, event: Event) -> io::Result<Box<dyn Counter>> {
        const HARDWARE: u32 = 0;
        open(HARDWARE, event.number())
    }
}

/// The first 64 bytes of `struct perf_event_attr` (`PERF_ATTR_SIZE_VER0`), which all kernels know.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// Bits of the flags of `struct perf_event_attr`.
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const ENABLE_ON_EXEC: u64 = 1 << 12;

fn open(kind: u32, config: u64) -> io::Result<Box<dyn Counter>> {
    const BOTH_TIMES: u64 = 0b11;
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        read_format: BOTH_TIMES,
        flags: DISABLED | INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | ENABLE_ON_EXEC,
        ..Attributes::default()
    };
    let (this_thread, any_cpu, no_group): (libc::pid_t, libc::c_int, libc::c_int) = (0, -1, -1);
    // SAFETY: the pointer is to a live structure of the size that it states.
    let file = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, this_thread, any_cpu, no_group, CLOSE_ON_EXEC)
    };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system call returned a new descriptor, which nothing else owns.
    Ok(Box::new(unsafe { File::from_raw_fd(file as RawFd) }))
}

impl Counter for File {
    fn read(&mut self) -> io::Result<Reading> {
        let mut bytes = [0; 24];
        self.read_exact(&mut bytes)?;
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Ok(Reading { count: word(0), enabled: word(8), running: word(16) })
    }
}

/// The counters of one program, from before its start.
#[derive(Debug)]
pub(crate) struct Counted {
    counters: [Option<Box<dyn Counter>>; 4],
    energy: Vec<Package>,
}

impl Counted {
    /// Opens the counters that the machine has.
    pub(crate) fn begin(pmu: &dyn Pmu, host: &Host) -> Self {
        Self { counters: Event::ALL.map(|event| pmu.open(event).ok()), energy: packages(host) }
    }

    /// Reads the counters of the program, which has ended.
    pub(crate) fn end(mut self, host: &Host) -> Counts {
        let joules = joules(&self.energy, &packages(host));
        let mut read = self.counters.iter_mut().map(|of| of.as_mut()?.read().ok()?.whole());
        let mut next = || read.next().flatten();
        Counts { instructions: next(), cycles: next(), cache_misses: next(), branch_misses: next(), joules }
    }
}

/// The counts of one program; all absent by default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    instructions: Option<u64>,
    cycles: Option<u64>,
    cache_misses: Option<u64>,
    branch_misses: Option<u64>,
    joules: Option<f64>,
}

impl Counts {
    /// Adds the counts to the resources of the program.
    pub(crate) fn with(self, resources: Resources) -> Resources {
        Resources {
            instructions: self.instructions,
            cycles: self.cycles,
            cache_misses: self.cache_misses,
            branch_misses: self.branch_misses,
            package_joules: self.joules,
            ..resources
        }
    }
}

/// The energy counter of a processor package (RAPL, Documentation/power/powercap in the kernel's tree).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Package {
    folder: String,
    microjoules: u64,
    /// The value at which the counter wraps.
    range: u64,
}

/// Reads the packages' energy; empty without RAPL or without the right to read it (root since Linux 5.10).
fn packages(host: &Host) -> Vec<Package> {
    const CLASS: &str = "/sys/class/powercap";
    let read = |folder: String| {
        let file = |name: &str| format!("{CLASS}/{folder}/{name}");
        host.word(file("name"))?.starts_with("package").then_some(())?;
        Some(Package {
            microjoules: host.number(file("energy_uj"))?,
            range: host.number(file("max_energy_range_uj"))?,
            folder,
        })
    };
    host.names(CLASS).into_iter().filter_map(read).collect()
}

/// Energy of all packages between two readings. Absent if a package is in one of them only.
fn joules(before: &[Package], after: &[Package]) -> Option<f64> {
    if before.is_empty() || before.len() != after.len() {
        return None;
    }
    let mut sum = 0;
    for (before, after) in before.iter().zip(after) {
        let wrapped = if after.microjoules < before.microjoules { after.range } else { 0 };
        let same = before.folder == after.folder && before.range == after.range;
        sum += same.then(|| (after.microjoules + wrapped).checked_sub(before.microjoules)).flatten()?;
    }
    Some(sum as f64 / 1e6)
}

/// The quantities that this machine can count, with the reason for each that it cannot; empty otherwise.
fn available(pmu: &dyn Pmu, host: &Host) -> BTreeMap<&'static str, String> {
    let reason = |event| pmu.open(event).err().map(explain).unwrap_or_default();
    let mut all: BTreeMap<_, _> = Event::ALL.map(|event| (event.name(), reason(event))).into();
    let energy =
        if packages(host).is_empty() { "no readable energy counter (RAPL) in /sys/class/powercap" } else { "" };
    all.insert("packageEnergy", energy.to_owned());
    all
}

/// Explains why a counter cannot be opened.
fn explain(error: io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            "the kernel knows no such counter of this processor, as in most virtual machines".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "no permission: set kernel.perf_event_paranoid to 2, or run outside of the container".to_owned()
        }
        _ => format!("perf_event_open: {error}"),
    }
}

/// `assay-runner counters`: prints the counters of this machine as one line of JSON.
pub(crate) fn print() -> Result<()> {
    let mut line =
        serde_json::to_vec(&available(&Kernel, &Host::real())).context("cannot encode the counters as JSON")?;
    line.push(b'\n');
    io::stdout().write_all(&line).context("cannot write to standard output")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with recorded readings; an error number where it has no counter.
    #[derive(Debug)]
    struct Recorded([Result<Reading, i32>; 4]);

    impl Pmu for Recorded {
        fn open(&self, event: Event) -> io::Result<Box<dyn Counter>> {
            let at = Event::ALL.iter().position(|of| *of == event).expect("an event");
            self.0[at].map(|reading| Box::new(reading) as Box<dyn Counter>).map_err(io::Error::from_raw_os_error)
        }
    }

    impl Counter for Reading {
        fn read(&mut self) -> io::Result<Reading> {
            Ok(*self)
        }
    }

    fn resources(pmu: &dyn Pmu, host: &Host) -> Resources {
        Counted::begin(pmu, host).end(host).with(Resources::default())
    }

    #[test]
    fn counters_of_a_machine_are_absent_where_it_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let host = Host::fake(folder.path());
        let full = |count| Ok(Reading { count, enabled: 1_000_000, running: 1_000_000 });
        let all = resources(&Recorded([full(2_000_000_000), full(1_000_000_000), full(42), full(0)]), &host);
        assert_eq!(
            (all.instructions, all.cycles, all.cache_misses, all.branch_misses, all.package_joules),
            (Some(2_000_000_000), Some(1_000_000_000), Some(42), Some(0), None)
        );
        // A virtual machine without a PMU, a container without the right, and counters that were shared or never ran.
        let shared = Ok(Reading { count: 7, enabled: 1_000_000, running: 999_999 });
        let idle = Ok(Reading { count: 0, enabled: 0, running: 0 });
        let none = resources(&Recorded([Err(libc::ENOENT), Err(libc::EACCES), shared, idle]), &host);
        assert_eq!(none, Resources::default());
        let listed = available(&Recorded([full(1), Err(libc::EACCES), full(1), Err(libc::ENOENT)]), &host);
        let names: Vec<_> = listed.iter().filter(|(_, reason)| reason.is_empty()).map(|(name, _)| *name).collect();
        assert_eq!(names, ["cacheMisses", "instructions"]);
        assert!(listed["cycles"].contains("kernel.perf_event_paranoid"), "{listed:?}");
    }

    #[test]
    fn energy_is_the_sum_of_the_packages_and_wraps() {
        let of = |folder: &str, microjoules| Package { folder: folder.into(), microjoules, range: 262_143_328_850 };
        let before = [of("intel-rapl:0", 262_143_000_000), of("intel-rapl:1", 5_000_000)];
        let after = [of("intel-rapl:0", 671_150), of("intel-rapl:1", 7_500_000)];
        assert_eq!(joules(&before, &after), Some(1.0 + 2.5));
        assert_eq!(joules(&[], &[]), None, "no RAPL");
        assert_eq!(joules(&before, &after[..1]), None, "a package that went offline");
        assert_eq!(joules(&before[..1], &after[1..]), None, "another package");
    }

    #[test]
    fn energy_is_read_of_packages_only() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, domain, energy) in
            [("intel-rapl:0", "package-0", "1000"), ("intel-rapl:0:0", "core", "400"), ("intel-rapl:1", "psys", "9000")]
        {
            let at = folder.path().join("sys/class/powercap").join(name);
            std::fs::create_dir_all(&at).expect("a folder");
            for (file, text) in [("name", domain), ("energy_uj", energy), ("max_energy_range_uj", "262143328850")] {
                std::fs::write(at.join(file), format!("{text}\n")).expect("written");
            }
        }
        let host = Host::fake(folder.path());
        let want = Package { folder: "intel-rapl:0".into(), microjoules: 1000, range: 262_143_328_850 };
        assert_eq!(packages(&host), [want]);
    }

    /// The kernel's CPU clock is opened like a counter of the processor, and exists on every machine.
    #[test]
    fn counter_counts_the_started_program_and_not_the_runner() {
        const SOFTWARE: u32 = 1;
        const TASK_CLOCK: u64 = 1;
        let mut clock = match open(SOFTWARE, TASK_CLOCK) {
            Ok(clock) => clock,
            Err(error) => return eprintln!("not tested, because this machine refuses perf_event_open: {error}"),
        };
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 50 {
            std::hint::black_box(begun);
        }
        assert_eq!(clock.read().expect("a reading").count, 0, "the runner's own work");
        let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let status = std::process::Command::new("sh").args(["-c", &format!("({work}) & wait; {work}")]).status();
        assert!(status.expect("a shell").success());
        let reading = clock.read().expect("a reading");
        let used = reading.whole().expect("a clock is not shared");
        assert!(used > 1_000_000, "the program and its child used {used} ns");
    }
}

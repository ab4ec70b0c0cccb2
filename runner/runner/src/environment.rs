//! The fingerprint of the machine.
//!
//! Hard keys decide whether attempts are comparable, and are therefore stable across reboots. Soft keys help to explain
//! a difference.

use std::collections::{BTreeMap, BTreeSet};

use assay_schema::attempt::Environment;
use assay_schema::result::Scalar;

use crate::cgroup::Cgroups;
use crate::cpus::CpuSet;
use crate::host::Host;

/// Kernel command line words that identify the machine or its boot method and do not affect performance.
const IDENTITY_WORDS: &[&str] = &[
    "BOOT_IMAGE",
    "initrd",
    "root",
    "rootflags",
    "rootfstype",
    "ro",
    "rw",
    "resume",
    "resume_offset",
    "ip",
    "hostname",
    "console",
    "quiet",
    "splash",
    "earlyprintk",
    "systemd.machine_id",
    "rdinit",
    "init",
    "cryptdevice",
    "LABEL",
];
/// CPU features by which kernels select their code path.
const ISA_FEATURES: &[&str] = &[
    "aes",
    "avx",
    "avx2",
    "avx512bw",
    "avx512dq",
    "avx512f",
    "avx512vl",
    "bmi2",
    "fma",
    "gfni",
    "pclmulqdq",
    "sha_ni",
    "sse4_2",
    "vaes",
    "vpclmulqdq",
    "asimd",
    "sve",
    "sve2",
];
/// Longer command lines are recorded as a digest.
const COMMAND_LINE_LENGTH: usize = 512;

/// The soft key of the padding added to a trial's environment.
pub(crate) const LAYOUT_PAD_BYTES: &str = "layoutPadBytes";
/// The soft key of the executed copy, in attempts of the null arm.
pub(crate) const NULL_PROGRAM: &str = "nullProgram";

/// The soft key of the digest of the variables that trials inherit.
pub(crate) const INHERITED_ENVIRONMENT: &str = "inheritedEnvironment";
/// The soft key of the executed file's digest.
pub(crate) const PROGRAM_DIGEST: &str = "programDigest";
/// The soft key of the digest of all files copied from an arm's image.
pub(crate) const IMAGE_FILES_DIGEST: &str = "imageFilesDigest";
/// The soft key of the image with an arm's programs.
pub(crate) const IMAGE: &str = "image";
/// The soft key of the CPUs to which roles are pinned.
pub(crate) const ROLE_CPUS: &str = "roleCpus";

/// Properties of the place that the plan provides.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) image: Option<String>,
    pub(crate) node: Option<String>,
}

/// Reads the fingerprint. Keys that the machine does not report are omitted.
///
/// `schema/fixtures/environment-keys.json` lists all keys that a template may require.
pub(crate) fn read(host: &Host, cgroups: &Cgroups, allowed: Option<&CpuSet>, planned: Planned) -> Environment {
    Environment { hard: hard(host, cgroups, allowed), soft: soft(host, cgroups, planned) }
}

/// Collects the available keys.
#[derive(Default)]
struct Keys(BTreeMap<String, Scalar>);

impl Keys {
    fn add(&mut self, key: &str, value: Option<impl Into<Scalar>>) {
        self.0.extend(value.map(|value| (key.to_owned(), value.into())));
    }

    fn text(&mut self, key: &str, value: Option<String>) {
        self.add(key, value.filter(|value| !value.is_empty()));
    }
}

fn hard(host: &Host, cgroups: &Cgroups, allowed: Option<&CpuSet>) -> BTreeMap<String, Scalar> {
    let mut keys = Keys::default();
    let cpu = allowed.and_then(CpuSet::first).unwrap_or(0);
    let of_cpu = |file: &str| format!("/sys/devices/system/cpu/cpu{cpu}/{file}");

    keys.text("architecture", Some(std::env::consts::ARCH.into()));
    let info = cpu_info(host, cpu);
    let field = |name: &str| info.get(name).cloned();
    keys.text("cpuVendor", field("vendor_id").or_else(|| field("CPU implementer")));
    keys.text("cpuModel", field("model name").or_else(|| field("CPU part")));
    keys.add("cpuFamily", field("cpu family").and_then(|v| v.parse::<u64>().ok()));
    keys.add("cpuModelNumber", field("model").and_then(|v| v.parse::<u64>().ok()));
    keys.add("cpuStepping", field("stepping").and_then(|v| v.parse::<u64>().ok()));
    keys.text("microcode", field("microcode"));
    let features: Option<BTreeSet<String>> =
        field("flags").or_else(|| field("Features")).map(|flags| flags.split_whitespace().map(str::to_owned).collect());
    if let Some(features) = &features {
        let all: Vec<&str> = features.iter().map(String::as_str).collect();
        keys.text("cpuFeatures", Some(digest(&all.join(" "))));
        let isa: Vec<&str> = all.iter().copied().filter(|feature| ISA_FEATURES.contains(feature)).collect();
        keys.text("isa", Some(isa.join(",")));
        keys.add("virtualMachine", Some(features.contains("hypervisor")));
    }
    keys.add("cpuMaxHertz", host.number(of_cpu("cpufreq/cpuinfo_max_freq")).map(|kilohertz| kilohertz * 1000));
    keys.text("governor", shared_by_cpus(host, allowed, "cpufreq/scaling_governor"));
    keys.text("energyPreference", shared_by_cpus(host, allowed, "cpufreq/energy_performance_preference"));
    keys.add("turbo", turbo(host));
    keys.add("smt", host.number("/sys/devices/system/cpu/smt/active").map(|active| active == 1));
    keys.text("idleDriver", host.word("/sys/devices/system/cpu/cpuidle/current_driver"));
    keys.add("onlineCpus", host.online().map(|cpus| cpus.len() as u64));
    keys.add("numaNodes", numa_nodes(host));
    keys.add("llcBytes", last_level_cache(host, cpu));

    let machine = ["sys_vendor", "product_name"].map(|file| host.word(format!("/sys/class/dmi/id/{file}")));
    keys.text("machine", Some(machine.into_iter().flatten().collect::<Vec<_>>().join(" ")));
    keys.add("memoryTotalRounded", host.memory("MemTotal").map(nominal_memory));
    keys.text("transparentHugepages", chosen(host, "/sys/kernel/mm/transparent_hugepage/enabled"));
    keys.text("transparentHugepageDefrag", chosen(host, "/sys/kernel/mm/transparent_hugepage/defrag"));
    keys.add("numaBalancing", host.number("/proc/sys/kernel/numa_balancing"));
    keys.text("aslr", host.word("/proc/sys/kernel/randomize_va_space"));

    keys.text("kernelRelease", host.word("/proc/sys/kernel/osrelease"));
    keys.text("kernelCommandLine", host.word("/proc/cmdline").map(|line| performance_words(&line)));
    keys.text("vulnerabilities", vulnerabilities(host));
    keys.text("clocksource", host.word("/sys/devices/system/clocksource/clocksource0/current_clocksource"));
    keys.add("cgroupVersion", cgroups.version().map(|version| version.choose(1_u64, 2)));
    keys.0
}

fn soft(host: &Host, cgroups: &Cgroups, planned: Planned) -> BTreeMap<String, Scalar> {
    let mut keys = Keys::default();
    keys.text("runnerVersion", Some(assay_schema::VERSION.into()));
    keys.text(IMAGE, planned.image);
    keys.text("hostname", host.word("/proc/sys/kernel/hostname"));
    keys.text("nodeName", planned.node);
    keys.text("bootId", host.word("/proc/sys/kernel/random/boot_id"));
    keys.text("kernelVersion", host.word("/proc/sys/kernel/version"));
    // The bandwidth probe's buffer is adjusted to a large last-level cache.
    keys.add("bandwidthProbeBytes", crate::probe::buffer_bytes(host, cgroups).map(|bytes| bytes as u64));
    keys.text("pressureOf", pressure_scope(host, cgroups).map(str::to_owned));
    let first = |path: &str| Scalar::try_from(host.text(path)?.split_whitespace().next()?.parse::<f64>().ok()?).ok();
    keys.add("uptimeSeconds", first("/proc/uptime"));
    keys.add("loadAverage1", first("/proc/loadavg"));
    keys.add("memoryAvailableBytes", host.memory("MemAvailable"));
    keys.add("hugepagesTotal", host.number("/proc/sys/vm/nr_hugepages"));
    keys.add("swapTotalBytes", host.memory("SwapTotal"));
    keys.add("swapUsedBytes", swap_used(host));
    keys.0
}

/// The cgroup or machine to which pressure readings refer.
fn pressure_scope(host: &Host, cgroups: &Cgroups) -> Option<&'static str> {
    if cgroups.pressure("cpu").is_some() { Some("cgroup") } else { host.text("/proc/pressure/cpu").map(|_| "node") }
}

/// Returns the fields of one CPU in /proc/cpuinfo.
fn cpu_info(host: &Host, cpu: usize) -> BTreeMap<String, String> {
    let text = host.text("/proc/cpuinfo").unwrap_or_default();
    let blocks: Vec<BTreeMap<String, String>> = text
        .split("\n\n")
        .map(|block| {
            let pairs = block.lines().filter_map(|line| line.split_once(':'));
            pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
        })
        .collect();
    let number = cpu.to_string();
    let own = blocks.iter().position(|block| block.get("processor") == Some(&number)).unwrap_or(0);
    blocks.into_iter().nth(own).unwrap_or_default()
}

/// Returns the value of a per-CPU file over all allowed CPUs; distinct values are joined by commas.
fn shared_by_cpus(host: &Host, allowed: Option<&CpuSet>, file: &str) -> Option<String> {
    let read = |cpu| host.word(format!("/sys/devices/system/cpu/cpu{cpu}/{file}"));
    let values: BTreeSet<String> = allowed?.iter().filter_map(read).collect();
    (!values.is_empty()).then(|| values.into_iter().collect::<Vec<_>>().join(","))
}

fn turbo(host: &Host) -> Option<bool> {
    let intel = host.number("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| off == 0);
    intel.or_else(|| host.number("/sys/devices/system/cpu/cpufreq/boost").map(|on| on == 1))
}

fn numa_nodes(host: &Host) -> Option<u64> {
    let nodes = host.names("/sys/devices/system/node");
    let is_node = |name: &&String| {
        name.strip_prefix("node").is_some_and(|n| !n.is_empty() && n.bytes().all(|digit| digit.is_ascii_digit()))
    };
    Some(nodes.iter().filter(is_node).count() as u64).filter(|&count| count > 0)
}

/// Size of the last-level data cache.
pub(crate) fn last_level_cache(host: &Host, cpu: usize) -> Option<u64> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let caches = host.names(&folder).into_iter().filter(|name| name.starts_with("index"));
    let cache = |name: String| {
        let file = |file: &str| host.word(format!("{folder}/{name}/{file}"));
        (file("type")? != "Instruction").then_some(())?;
        Some((file("level")?.parse::<u64>().ok()?, with_suffix(&file("size")?)?))
    };
    caches.filter_map(cache).max().map(|(_, bytes)| bytes)
}

/// Parses a size such as 32768K.
fn with_suffix(size: &str) -> Option<u64> {
    let digits = size.trim_end_matches(char::is_alphabetic);
    let factor = match &size[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * factor)
}

/// Returns the installed memory. The kernel's total is slightly smaller and varies by kernel version.
fn nominal_memory(total: u64) -> u64 {
    let step = (1 << (63 - total.max(4).leading_zeros())) / 4;
    total.div_ceil(step) * step
}

fn swap_used(host: &Host) -> Option<u64> {
    Some(host.memory("SwapTotal")?.saturating_sub(host.memory("SwapFree")?))
}

/// Returns the bracketed choice, as in `always [madvise] never`.
fn chosen(host: &Host, path: &str) -> Option<String> {
    let text = host.word(path)?;
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// Removes identifying words from the command line; long lines are replaced by a digest.
fn performance_words(line: &str) -> String {
    let words = line.split_whitespace().take_while(|&word| word != "--");
    let kept: Vec<&str> = words
        .filter(|word| {
            let name = word.split('=').next().unwrap_or(word);
            !IDENTITY_WORDS.contains(&name) && !name.starts_with("rd.") && !word.contains("UUID")
        })
        .collect();
    let kept = kept.join(" ");
    if kept.len() > COMMAND_LINE_LENGTH { digest(&kept) } else { kept }
}

/// Digest of the mitigation states of all known CPU vulnerabilities.
fn vulnerabilities(host: &Host) -> Option<String> {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let names = host.names(folder);
    let states: Vec<String> =
        names.iter().filter_map(|name| Some(format!("{name}: {}", host.word(format!("{folder}/{name}"))?))).collect();
    (!states.is_empty()).then(|| digest(&states.join("\n")))
}

/// A truncated cryptographic digest, long enough to distinguish values.
fn digest(text: &str) -> String {
    format!("blake3:{}", &blake3::hash(text.as_bytes()).to_hex()[..32])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn machine() -> FakeHost {
        FakeHost::new(&[
            (
                "/proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: Other\n\nprocessor\t: 1\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\n\
                 model\t\t: 2\nmodel name\t: AMD EPYC\nstepping\t: 1\nmicrocode\t: 0x1000065\nbogomips\t: 5192.24\n\
                 flags\t\t: fpu avx2 hypervisor gfni\n\n",
            ),
            (
                "/proc/meminfo",
                "MemTotal:       32573548 kB\nMemAvailable:   1024 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
            ),
            ("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=1 ro mitigations=off quiet isolcpus=1 -- --secret\n"),
            ("/proc/loadavg", "0.42 0.1 0.1 1/99 1\n"),
            ("/sys/devices/system/cpu/online", "0-1\n"),
            ("/sys/devices/system/cpu/smt/active", "0\n"),
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
            ("/sys/devices/system/cpu/cpu1/cache/index0/type", "Data\n"),
            ("/sys/devices/system/cpu/cpu1/cache/index0/level", "1\n"),
            ("/sys/devices/system/cpu/cpu1/cache/index0/size", "48K\n"),
            ("/sys/devices/system/cpu/cpu1/cache/index3/type", "Unified\n"),
            ("/sys/devices/system/cpu/cpu1/cache/index3/level", "3\n"),
            ("/sys/devices/system/cpu/cpu1/cache/index3/size", "32M\n"),
            ("/sys/devices/system/node/node0/x", ""),
            ("/sys/devices/system/node/node1/x", ""),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ])
    }

    fn hard_of(fake: &FakeHost) -> BTreeMap<String, Scalar> {
        let host = fake.host();
        hard(&host, &Cgroups::find(&host), CpuSet::parse("1").as_ref())
    }

    #[test]
    fn reads_the_allowed_cpus() {
        let keys = hard_of(&machine());
        let text = |key: &str| match &keys[key] {
            Scalar::Text(text) => text.clone(),
            Scalar::Number(number) => number.to_string(),
            Scalar::Bool(flag) => flag.to_string(),
        };
        assert_eq!(text("cpuVendor"), "AuthenticAMD");
        assert_eq!(text("cpuModelNumber"), "2");
        assert_eq!(text("isa"), "avx2,gfni");
        assert_eq!(text("virtualMachine"), "true");
        assert_eq!(text("governor"), "performance");
        assert_eq!(text("turbo"), "false");
        assert_eq!(text("smt"), "false");
        assert_eq!(text("llcBytes"), (32 << 20).to_string());
        assert_eq!(text("numaNodes"), "2");
        assert_eq!(text("transparentHugepages"), "madvise");
        assert_eq!(text("memoryTotalRounded"), (32_u64 << 30).to_string());
        assert_eq!(text("kernelCommandLine"), "mitigations=off isolcpus=1");
        assert!(!keys.contains_key("clocksource"), "keys that the machine does not report are omitted");
    }

    #[test]
    fn the_list_of_keys_is_complete() {
        let fake = machine();
        for (path, text) in [
            ("/sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "3000000\n"),
            ("/sys/devices/system/cpu/cpu1/cpufreq/energy_performance_preference", "performance\n"),
            ("/sys/devices/system/cpu/cpuidle/current_driver", "acpi_idle\n"),
            ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
            ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ("/sys/class/dmi/id/sys_vendor", "Vendor\n"),
            ("/sys/kernel/mm/transparent_hugepage/defrag", "always [madvise] never\n"),
            ("/proc/sys/kernel/numa_balancing", "0\n"),
            ("/proc/sys/kernel/randomize_va_space", "2\n"),
            ("/proc/sys/kernel/osrelease", "6.18.44\n"),
            ("/proc/sys/kernel/hostname", "node-a\n"),
            ("/proc/sys/kernel/random/boot_id", "one\n"),
            ("/proc/sys/kernel/version", "#1 SMP\n"),
            ("/proc/sys/vm/nr_hugepages", "0\n"),
            ("/proc/uptime", "1 1\n"),
            ("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
            ("/proc/self/cgroup", "0::/p\n"),
            ("/proc/self/mountinfo", "30 20 0:26 / /cg rw - cgroup2 cgroup2 rw\n"),
            ("/cg/p/cgroup.controllers", "cpu memory\n"),
        ] {
            fake.write(path, text);
        }
        fake.write(
            "/proc/meminfo",
            "MemTotal: 32573548 kB\nMemAvailable: 9999999 kB\nSwapTotal: 8 kB\nSwapFree: 4 kB\n",
        );
        let planned = Planned { image: Some("image".into()), node: Some("node-a".into()) };
        let host = fake.host();
        let found = read(&host, &Cgroups::find(&host), CpuSet::parse("1").as_ref(), planned);
        let keys = |keys: &BTreeMap<String, Scalar>| keys.keys().cloned().collect::<BTreeSet<String>>();
        let listed: BTreeMap<String, BTreeSet<String>> =
            serde_json::from_str(include_str!("../../schema/fixtures/environment-keys.json")).expect("a list");
        assert_eq!(keys(&found.hard), listed["hard"]);
        let mut soft = keys(&found.soft);
        // Keys that a trial adds.
        soft.extend(
            [LAYOUT_PAD_BYTES, INHERITED_ENVIRONMENT, NULL_PROGRAM, PROGRAM_DIGEST, IMAGE_FILES_DIGEST, ROLE_CPUS]
                .map(str::to_owned),
        );
        assert_eq!(soft, listed["soft"]);
    }

    #[test]
    fn volatile_values_are_not_hard_keys() {
        let before = hard_of(&machine());
        let after = machine();
        after.write("/proc/meminfo", "MemTotal:       32569999 kB\nMemAvailable:   9 kB\n");
        after.write("/proc/loadavg", "7 7 7 1/99 1\n");
        after.write("/proc/uptime", "1 1\n");
        after.write("/proc/sys/kernel/random/boot_id", "other\n");
        let info = after.host().text("/proc/cpuinfo").expect("written").replace("5192.24", "5192.99");
        after.write("/proc/cpuinfo", &info);
        assert_eq!(before, hard_of(&after));
    }

    #[test]
    fn empty_machine_has_only_compiled_in_keys() {
        let keys = hard_of(&FakeHost::new(&[]));
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["architecture"]);
    }

    #[test]
    fn memory_is_rounded_up_to_the_installed_size() {
        for (total_kib, gib) in [(16_303_124_u64, 16), (8_039_264, 8), (64_842_112, 64), (131_000_000, 128)] {
            assert_eq!(nominal_memory(total_kib * 1024), gib << 30);
        }
    }
}

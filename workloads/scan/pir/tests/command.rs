//! The command line is the contract with the platform.

use std::process::{Command, Output};

use serde_json::Value;

const SMALL: [&str; 4] = ["--rows=3000", "--row-size=128", "--iterations=3", "--warmup-iterations=1"];

fn scan_pir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scan-pir")).args(arguments).output().unwrap()
}

fn result(arguments: &[&str]) -> Value {
    let output = scan_pir(&[&["run"], &SMALL[..], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn result_conforms_to_the_schema_and_reports_the_work() {
    let schema: Value = serde_json::from_str(assay_schema::RESULT_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for strategy in ["loop", "fused-naive", "fused-tiled", "fused-m4r"] {
        for key in ["toy", "dpf"] {
            for scope in ["end-to-end", "scan-only"] {
                let [a, b, c] =
                    [("strategy", strategy), ("key", key), ("scope", scope)].map(|(n, v)| format!("--{n}={v}"));
                let flags = [&a, &b, &c, "--batch-size=5", "--delta-entries=2", "--threads=2"];
                let result = result(&flags);
                let problems: Vec<String> = validator.iter_errors(&result).map(|e| e.to_string()).collect();
                assert!(problems.is_empty(), "{problems:#?}");
                assert_eq!(result["metrics"]["latency"]["samples"].as_array().unwrap().len(), 3);
                assert_eq!(result["effective"]["strategy"], strategy);
                assert_eq!(result["effective"]["threads"], 2);
                assert_eq!(result["parity"]["items"], 15);
                let phases: Vec<&str> =
                    result["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
                let expands =
                    scope == "end-to-end" && (key == "dpf" || strategy.ends_with("tiled") || strategy.ends_with("m4r"));
                let expected: &[&str] = if expands { &["maskGeneration", "scan", "delta"] } else { &["scan", "delta"] };
                assert_eq!(phases, expected, "{flags:?}");
            }
        }
    }
}

#[test]
fn all_strategies_paths_and_scopes_have_one_digest_per_key() {
    for key in ["--key=toy", "--key=dpf"] {
        for delta in ["--delta-entries=0", "--delta-entries=1", "--delta-entries=50"] {
            let mut digests = Vec::new();
            for strategy in ["loop", "fused-naive", "fused-tiled", "fused-m4r"] {
                for rest in [["--path=portable", "--scope=end-to-end"], ["--path=auto", "--scope=scan-only"]] {
                    let strategy = format!("--strategy={strategy}");
                    let result = result(&[&[key, delta, "--batch-size=6", &strategy], &rest[..]].concat());
                    digests.push(result["parity"]["digest"].as_str().unwrap().to_owned());
                }
            }
            digests.dedup();
            assert_eq!(digests.len(), 1, "{key} {delta}: {digests:?}");
        }
    }
}

#[test]
fn forced_path_is_reported_and_an_unavailable_one_is_an_error() {
    for path in ["portable", "avx2", "avx512", "neon"] {
        let output = scan_pir(&[&["run"], &SMALL[..], &["--strategy=fused-m4r", &format!("--path={path}")]].concat());
        if output.status.success() {
            let result: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(result["effective"]["path"], path);
        } else {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2));
            assert!(message.contains(&format!("--path: this CPU does not support {path}")), "{message}");
        }
    }
}

#[test]
fn bad_parameters_exit_with_2_and_print_nothing() {
    for (bad, part) in [
        (&["run", "--rows=0"][..], "--rows=0"),
        (&["run", "--row-size=65"], "--row-size=65"),
        (&["run", "--batch-size=33"], "1 to 32"),
        (&["run", "--iterations=0"], "1 to 100000"),
        (&["run", "--threads=65"], "1 to 64"),
        (&["run", "--strategy=$(reboot)"], "fused-m4r"),
        (&["run", "--strategy=fused-gfni", "--path=portable"], "needs the path avx512"),
        (&["run", "--scope=bits-only", "--strategy=fused-m4r"], "only --strategy=loop with --key=toy"),
        (&["run", "--scope=xor-only", "--key=dpf"], "only --strategy=loop with --key=toy"),
        (&["run", "--scope=xor-only", "--delta-entries=1"], "only --strategy=loop with --key=toy"),
        (
            &["run", "--scope=expand-only", "--strategy=loop", "--key=dpf"],
            "only the strategies that expand keys beforehand",
        ),
        (&["run", "--scope=expand-only", "--strategy=fused-m4r", "--delta-entries=1"], "with --delta-entries=0"),
        (&["run", "--unknown=1"], "unknown flag --unknown"),
        (&["run", "rows"], "--name=value"),
        (&["walk"], "usage"),
        (&[], "usage"),
    ] {
        let output = scan_pir(bad);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{bad:?}: {message}");
        assert!(output.stdout.is_empty() && message.contains(part), "{bad:?}: {message}");
    }
}

/// Every part of the loop can be measured separately, and reports only its own figures.
#[test]
fn the_loop_is_measured_in_parts() {
    let phases = |result: &Value| result["phases"].as_array().unwrap().len();
    let names = |result: &Value| {
        let ceilings = result["ceilings"].as_array().into_iter().flatten();
        ceilings.map(|ceiling| ceiling["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (scope, reads, bounded) in [
        ("end-to-end", true, &["readBandwidth", "maskedXor"][..]),
        ("scan-only", true, &["readBandwidth", "maskedXor"]),
        ("bits-only", false, &[]),
        ("xor-only", true, &["readBandwidth"]),
    ] {
        let result = result(&["--batch-size=2", &format!("--scope={scope}")]);
        assert_eq!((result["effective"]["scope"].as_str(), phases(&result)), (Some(scope), 1));
        assert_eq!(result["counters"]["bytesRead"]["value"].as_f64().unwrap() > 0.0, reads, "{scope}");
        assert_eq!(names(&result), bounded, "{scope}");
    }
}

/// Key expansion costs the same work as in a batch with every AES implementation, and reads no row.
#[test]
fn expanding_keys_is_measured_alone() {
    let expand = |more: &[&str]| {
        result(&[&["--strategy=fused-m4r", "--batch-size=2", "--scope=expand-only"][..], more].concat())
    };
    let [toy, dpf, portable] = [&["--key=toy"][..], &["--key=dpf"], &["--key=dpf", "--aes=portable"]].map(expand);
    assert_eq!(dpf["parity"], portable["parity"]);
    assert_ne!(dpf["parity"], toy["parity"]);
    for result in [&toy, &dpf] {
        assert_eq!(result["counters"]["bytesRead"]["value"], 0.0);
        assert_eq!((&result["phases"][0]["name"], &result["parity"]["items"]), (&"maskGeneration".into(), &6.into()));
    }
    assert!(toy.get("ceilings").is_none());
    // A CPU without AES instructions has no such limit.
    for ceiling in dpf["ceilings"].as_array().into_iter().flatten() {
        assert_eq!(ceiling["name"], "aesRate");
        let share = ceiling["achieved"].as_f64().unwrap() / ceiling["limit"].as_f64().unwrap();
        assert_eq!(dpf["metrics"]["aesRateShare"]["value"], share);
    }
}

/// A share of a limit names quantity, instructions and number of threads, which are those of the trial.
#[test]
fn every_ceiling_says_how_it_was_measured() {
    for (threads, strategy, key) in
        [(1, "loop", "toy"), (2, "fused-m4r", "dpf"), (2, "fused-tiled", "toy"), (1, "fused-m4r", "dpf")]
    {
        for size in [1, 8] {
            let [threads, strategy, key, size] = [
                format!("--threads={threads}"),
                format!("--strategy={strategy}"),
                format!("--key={key}"),
                format!("--batch-size={size}"),
            ];
            let result = result(&[&threads, &strategy, &key, &size]);
            let ceilings = result["ceilings"].as_array().unwrap();
            assert!(ceilings.len() >= 2, "{ceilings:?}");
            for ceiling in ceilings {
                assert_eq!(ceiling["threads"], result["effective"]["threads"], "{ceiling}");
                assert!(!ceiling["instructions"].as_str().unwrap().is_empty(), "{ceiling}");
                assert!(ceiling["achieved"].as_f64().unwrap() > 0.0, "{ceiling}");
            }
        }
    }
}

#[test]
fn forced_generator_is_reported_and_an_unavailable_one_is_an_error() {
    for aes in ["portable", "aes-ni", "vaes256", "vaes512"] {
        let output = scan_pir(&[&["run"], &SMALL[..], &["--key=dpf", &format!("--aes={aes}")]].concat());
        if output.status.success() {
            let result: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(result["effective"]["aes"], aes);
        } else {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2));
            assert!(message.contains(&format!("--aes: this CPU does not support {aes}")), "{message}");
        }
    }
}

#[test]
fn prefetcher_is_reported_for_ordered_reads_and_does_not_change_answers() {
    let one = |more: &[&str]| result(&[&["--strategy=fused-m4r", "--path=portable"], more].concat());
    let [auto, software, hardware] =
        ["auto", "software", "hardware"].map(|prefetch| one(&[&format!("--prefetch={prefetch}")]));
    let given = |result: &Value| result["effective"]["prefetch"].clone();
    assert_eq!([given(&software), given(&hardware)], ["software", "hardware"]);
    assert!([given(&software), given(&hardware)].contains(&given(&auto)), "{}", given(&auto));
    assert_eq!((&software["parity"], &auto["parity"]), (&hardware["parity"], &hardware["parity"]));
    assert_eq!(given(&one(&["--batch-size=2"])), Value::Null);
    assert_eq!(given(&result(&["--strategy=loop"])), Value::Null);
}

#[test]
fn small_pages_change_nothing_but_the_pages() {
    let [huge, small] = ["true", "false"].map(|huge| result(&[&format!("--huge-pages={huge}")]));
    assert_eq!(huge["parity"], small["parity"]);
    assert_eq!(small["effective"]["hugePageBytes"].as_u64().unwrap_or(0), 0);
}

#[test]
fn ceilings_are_optional() {
    assert!(result(&["--ceilings=false"]).get("ceilings").is_none());
    let ceilings = &result(&["--key=dpf"])["ceilings"];
    assert_eq!(ceilings[0]["name"], "readBandwidth");
    assert!(ceilings[0]["achieved"].as_f64().unwrap() > 0.0);
}

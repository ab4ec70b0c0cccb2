//! The command line is the contract with the platform.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use serde_json::Value;

const SMALL: [&str; 3] = ["--items=40", "--iterations=3", "--warmup-iterations=1"];

fn insert_mork(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_insert-mork")).args(arguments).output().unwrap()
}

/// Result of a small trial; `arguments` override its defaults.
fn result(arguments: &[&str]) -> Value {
    let name = |flag: &str| flag.split('=').next().map(str::to_owned);
    let small = SMALL.into_iter().filter(|flag| arguments.iter().all(|given| name(given) != name(flag)));
    let output = insert_mork(&["run"].into_iter().chain(small).chain(arguments.iter().copied()).collect::<Vec<_>>());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn phases(result: &Value) -> Vec<&str> {
    let phases = result["phases"].as_array().map(Vec::as_slice).unwrap_or_default();
    phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect()
}

#[test]
fn result_conforms_to_the_schema_and_reports_the_work() {
    let schema: Value = serde_json::from_str(assay_schema::RESULT_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (variant, scratch, store, parts) in [
        ("baseline", "4gib", "pathmap", &["construct", "serialise", "scratch", "parse", "insert", "index"][..]),
        ("cache", "4gib", "pathmap", &["construct", "cache", "serialise", "scratch", "parse", "insert", "index"]),
        ("no-text", "reused", "pathmap", &["construct", "serialise", "scratch", "insert", "index"]),
        ("direct", "reused", "trie", &["construct", "serialise", "insert"]),
    ] {
        for insertion in ["individual", "bulk"] {
            for kind in ["facts", "rules"] {
                let [a, b, c] =
                    [("variant", variant), ("insertion", insertion), ("kind", kind)].map(|(n, v)| format!("--{n}={v}"));
                let result = result(&[&a, &b, &c, "--phases=inside", "--repeated-share=20"]);
                let problems: Vec<String> = validator.iter_errors(&result).map(|e| e.to_string()).collect();
                assert!(problems.is_empty(), "{problems:#?}");
                assert_eq!(result["metrics"]["latency"]["samples"].as_array().unwrap().len(), 3);
                let effective = &result["effective"];
                assert_eq!([&effective["variant"], &effective["insertion"]], [variant, insertion]);
                assert_eq!([&effective["scratch"], &effective["store"]], [scratch, store]);
                assert_eq!(phases(&result), parts, "{a} {b} {c}");
                assert_eq!(result["counters"]["items"]["value"], 120.0);
                // The program counts with its own allocator: everything but the direct way allocates for each item.
                let allocations = result["counters"]["allocationsPerItem"]["value"].as_f64().unwrap();
                assert_eq!(allocations > 1.0, variant != "direct", "{a}: {allocations}");
                assert_eq!(effective.get("cacheHitShare").is_some(), variant == "cache");
                assert_eq!(result["counters"].get("storeBytes").is_some(), variant == "direct");
            }
        }
    }
}

#[test]
fn the_original_buffer_costs_a_page_fault_for_each_item_and_the_others_none() {
    for (scratch, faults) in [("4gib", 1.0), ("4kib", 0.0), ("reused", 0.0)] {
        let result = result(&[&format!("--scratch={scratch}"), "--iterations=50"]);
        let per_item = result["metrics"]["pageFaultsPerItem"]["value"].as_f64().unwrap();
        assert!((faults..faults + 0.5).contains(&per_item), "{scratch}: {per_item}");
        assert_eq!(result["effective"]["scratch"], scratch);
    }
}

#[test]
fn all_variants_and_parts_of_a_workload_have_one_digest() {
    for workload in [
        &["--kind=facts"][..],
        &["--kind=rules", "--repeated-share=50"],
        &["--shape=variables", "--repeated-share=99", "--order=shuffled"],
        &["--shape=nested", "--kind=rules"],
        &["--shape=prefix"],
    ] {
        let mut digests = Vec::new();
        for arm in [
            &["--variant=baseline"][..],
            &["--variant=baseline", "--insertion=bulk", "--scratch=4kib"],
            &["--variant=baseline", "--scope=serialise"],
            &["--variant=baseline", "--scope=parse"],
            &["--variant=baseline", "--scope=scratch"],
            &["--variant=baseline", "--scope=insert"],
            &["--variant=baseline", "--phases=document"],
            &["--variant=cache"],
            &["--variant=no-text"],
            &["--variant=direct"],
            &["--variant=direct", "--insertion=bulk"],
            &["--variant=direct", "--scope=insert", "--construction=excluded"],
            &["--variant=direct", "--scope=query"],
            &["--variant=direct", "--symbols=interned"],
            &["--variant=direct", "--symbols=interned", "--scope=query", "--insertion=bulk"],
            &["--variant=direct", "--threads=3"],
            &["--variant=direct", "--threads=3", "--insertion=bulk"],
            &["--variant=baseline", "--scope=query"],
            &["--variant=direct", "--store=pathmap"],
            &["--variant=direct", "--store=btree"],
        ] {
            let result = result(&[workload, arm, &["--ceilings=false"]].concat());
            digests.push(result["parity"]["digest"].as_str().unwrap().to_owned());
        }
        digests.dedup();
        assert_eq!(digests.len(), 1, "{workload:?}: {digests:?}");
    }
    // And different items have different ones.
    let [a, b] =
        ["--items=40", "--items=41"].map(|items| result(&[items, "--variant=direct"])["parity"]["digest"].clone());
    assert_ne!(a, b);
}

#[test]
fn the_documents_rows_are_phases_of_their_own_and_do_not_add_up() {
    let result = result(&["--phases=document", "--iterations=20"]);
    assert_eq!(phases(&result), ["serialisation", "lock", "pathMapInsertion", "indexUpdates"]);
    let sum = |values: &Value| values.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).sum::<f64>();
    let total = sum(&result["metrics"]["latency"]["samples"]);
    let rows: f64 = result["phases"].as_array().unwrap().iter().map(|phase| sum(&phase["samples"])).sum();
    assert!(rows < 0.8 * total, "{rows} of {total}");
    let share = |name: &str| result["counters"][name]["value"].as_f64().unwrap();
    assert!(share("serialisationShareByResidue") > share("serialisationShareAlone"));
}

#[test]
fn single_part_has_no_phases_and_only_applicable_ceilings() {
    let result = result(&["--scope=scratch"]);
    assert!(phases(&result).is_empty());
    let copies = &result["ceilings"][0];
    assert_eq!(copies["name"], "itemCopies");
    assert!(copies.get("achieved").is_none());
}

#[test]
fn ceilings_are_optional() {
    assert!(result(&["--ceilings=false", "--variant=direct"]).get("ceilings").is_none());
    let ceilings = &result(&["--variant=direct"])["ceilings"];
    assert!(ceilings[0]["achieved"].as_f64().unwrap() > 0.0);
    assert_eq!(ceilings[1]["name"], "randomRead");
}

#[test]
fn bad_parameters_exit_with_2_and_print_nothing() {
    for (bad, part) in [
        (&["run", "--items=0"][..], "--items=0"),
        (&["run", "--items=1000001"], "1 to 1000000"),
        (&["run", "--iterations=0"], "1 to 100000"),
        (&["run", "--repeated-share=100"], "0 to 99"),
        (&["run", "--shape=round"], "flat, nested, variables, prefix"),
        (&["run", "--variant=$(reboot)"], "no-text"),
        (
            &["run", "--variant=no-text", "--scope=parse"],
            "the variant no-text has all, serialise, scratch, insert, query",
        ),
        (&["run", "--variant=cache", "--store=trie"], "auto or pathmap is allowed"),
        (&["run", "--variant=direct", "--scratch=4gib"], "auto or reused is allowed"),
        (&["run", "--symbols=interned"], "inline is allowed"),
        (&["run", "--variant=no-text", "--threads=2"], "1 is allowed"),
        (&["run", "--variant=direct", "--threads=2", "--phases=inside"], "1 is allowed"),
        (&["run", "--unknown=1"], "unknown flag --unknown"),
        (&["run", "items"], "--name=value"),
        (&["bench"], "usage"),
        (&["walk"], "usage"),
        (&[], "usage"),
    ] {
        let output = insert_mork(bad);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{bad:?}: {message}");
        assert!(output.stdout.is_empty() && message.contains(part), "{bad:?}: {message}");
    }
}

/// Runs the program with a limit on its addresses.
fn with_address_limit(bytes: u64, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_insert-mork"));
    command.args(arguments);
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: between fork and exec only `setrlimit` is called, which is allowed there, with a limit that was made before.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &raw const limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    command.output().unwrap()
}

#[test]
fn unavailable_scratch_buffer_is_rejected_with_the_reason() {
    let run = [&["run", "--ceilings=false"], &SMALL[..]].concat();
    let output = with_address_limit(2 << 30, &run);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    for part in ["--scratch=4gib", "4096 MiB", "ulimit -v", "--scratch=reused"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(output.stdout.is_empty());
    // Arms without such a buffer run within the same limit.
    for arm in [&["--scratch=reused"][..], &["--variant=direct"]] {
        assert!(with_address_limit(2 << 30, &[&run, arm].concat()).status.success(), "{arm:?}");
    }
}

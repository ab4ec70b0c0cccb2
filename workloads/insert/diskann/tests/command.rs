//! The command line is the contract with the platform.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use assay_harness::machine::PeakMemory;
use serde_json::Value;

const SMALL: [&str; 6] =
    ["--size=150", "--dims=8", "--block-size=1024", "--inserts=5", "--warmup-inserts=2", "--queries=10"];

/// A folder of a test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("insert-diskann-command-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn cache(&self) -> String {
        format!("--cache={}", self.0.display())
    }

    fn file(&self, name: &str) -> String {
        format!("--index={}", self.0.join(name).display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_insert-diskann")).args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Result of a small trial; `arguments` override its defaults.
fn result(folder: &Folder, arguments: &[&str]) -> Value {
    let name = |argument: &str| argument.split_once('=').unwrap().0.to_owned();
    let small = SMALL.into_iter().filter(|small| arguments.iter().all(|argument| name(argument) != name(small)));
    let all = ["run"].into_iter().chain(small).chain(arguments.iter().copied()).map(str::to_owned);
    let all: Vec<String> = all.chain([folder.cache()]).collect();
    let output = program(&all.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn result_conforms_to_the_schema_and_reports_the_work() {
    let schema: Value = serde_json::from_str(assay_schema::RESULT_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let folder = Folder::new("schema");
    for (strategy, layout, start, path) in [
        ("baseline", "blocks", "count", Some("scalar")),
        ("seek", "blocks", "seek", Some("scalar")),
        ("ours", "compact", "medoid", None),
    ] {
        for dataset in ["uniform", "clustered", "uneven", "similar"] {
            let result = result(&folder, &[&format!("--strategy={strategy}"), &format!("--dataset={dataset}")]);
            let problems: Vec<String> = validator.iter_errors(&result).map(|e| e.to_string()).collect();
            assert!(problems.is_empty(), "{problems:#?}");
            let effective = &result["effective"];
            assert_eq!(effective["strategy"], strategy);
            assert_eq!(effective["layout"], layout);
            assert_eq!(effective["randomStart"], start);
            assert!(path.is_none_or(|path| effective["path"] == path), "{effective}");
            assert_eq!(effective["journalMode"], "wal");
            assert_eq!(effective["synchronous"], "normal");
            assert_eq!(effective["insertsPerCommit"], 1.0);
            assert_eq!(effective["controlRecall"], 1.0);
            let metrics = &result["metrics"];
            assert_eq!(metrics["latency"]["samples"].as_array().unwrap().len(), 5);
            assert_eq!(metrics["queryLatency"]["samples"].as_array().unwrap().len(), 10);
            let bytes = |name: &str| metrics[name]["value"].as_f64().unwrap();
            assert!(bytes("indexFile") > 150.0 * 64.0 && bytes("indexMemory") > 0.0, "{metrics}");
            assert_eq!(metrics.get("peakMemory").is_some(), PeakMemory::start().is_some());
            let recall = metrics["recall"]["value"].as_f64().unwrap();
            assert!((0.5..=1.0).contains(&recall), "{strategy} {dataset}: {recall}");
            let least = metrics["recallAtLeast"]["value"].as_f64().unwrap();
            // Ten queries: a recall below one is known to some tenths.
            assert!(least <= recall && (least < recall || recall == 1.0), "{strategy} {dataset}: {least} {recall}");
            let phases: Vec<&str> =
                result["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
            let expected =
                ["randomStart", "savepoint", "search", "shadowRow", "phase1", "phase2", "flushNew", "cleanup"];
            assert_eq!(phases, expected);
            assert_eq!(result["counters"]["inserts"]["value"], 5.0);
            assert_eq!(result["counters"]["commits"]["value"], 5.0);
            assert_eq!(result["parity"]["items"], 150 + 2 + 5 + 10);
        }
    }
}

#[test]
fn phases_add_up_to_the_whole() {
    let folder = Folder::new("sum");
    for strategy in ["--strategy=baseline", "--strategy=ours"] {
        let result = result(&folder, &[strategy, "--inserts=200"]);
        let sum = |samples: &Value| samples.as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).sum::<f64>();
        let phases: f64 = result["phases"].as_array().unwrap().iter().map(|phase| sum(&phase["samples"])).sum();
        let whole = sum(&result["metrics"]["latency"]["samples"]);
        assert!(phases <= whole && phases > 0.8 * whole, "{strategy}: {phases} of {whole}");
    }
}

#[test]
fn all_strategies_factors_and_paths_store_the_same() {
    let folder = Folder::new("parity");
    let mut digests = Vec::new();
    for strategy in ["baseline", "seek", "ours"] {
        for factors in [
            &[][..],
            &["--path=portable", "--transaction-size=3"],
            &["--node-cache=none", "--random-start=seek", "--synchronous=off"],
            &["--node-cache=per-batch", "--back-edges=deferred", "--random-start=medoid"],
            &["--back-edges=eager", "--journal-mode=delete", "--synchronous=full"],
            &["--page-size=16384", "--mmap-mib=64", "--fold-every=2"],
            &["--cache-kib=64", "--memory-budget-kib=90"],
        ] {
            // Only ours keeps nodes in memory.
            if strategy != "ours" && factors.iter().any(|factor| factor.contains("budget")) {
                continue;
            }
            let result = result(&folder, &[&[&format!("--strategy={strategy}")[..]], factors].concat());
            digests.push(result["parity"]["digest"].as_str().unwrap().to_owned());
        }
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "{digests:?}");
    let other = result(&folder, &["--seed=43"]);
    assert_ne!(other["parity"]["digest"], *digests[0], "other vectors have another digest");
}

#[test]
fn effective_parameters_are_reported() {
    let folder = Folder::new("knobs");
    let flags = [
        "--strategy=ours",
        "--synchronous=full",
        "--journal-mode=delete",
        "--page-size=8192",
        "--mmap-mib=1",
        "--cache-kib=512",
        "--transaction-size=4",
        "--node-cache=none",
        "--path=scalar",
    ];
    let result = result(&folder, &flags);
    for (key, value) in [
        ("synchronous", Value::from("full")),
        ("journalMode", "delete".into()),
        ("pageSize", 8192.into()),
        ("mmapBytes", (1 << 20).into()),
        ("cacheKib", 512.into()),
        ("nodeCache", "none".into()),
        ("path", "scalar".into()),
        ("insertsPerCommit", 2.5.into()),
    ] {
        assert_eq!(result["effective"][key], value, "{key}");
    }
    assert!(result["counters"]["nodeReads"]["value"].as_f64().unwrap() > 5.0 * 100.0, "nothing but the log is kept");
    // The last transaction holds one insert; its commit is not left out.
    assert_eq!(result["counters"]["commits"]["value"], 2.0);
}

#[test]
fn memory_budget_is_respected_and_a_too_small_one_is_rejected() {
    let folder = Folder::new("budget");
    let flags = ["--strategy=ours", "--cache-kib=64", "--size=2000", "--dims=32"];
    let within = result(&folder, &[&flags[..], &["--memory-budget-kib=300"]].concat());
    let bytes = |result: &Value, name: &str| result["metrics"][name]["value"].as_f64().unwrap();
    // SQLite's cache may hold a page or two more than it should, while a statement needs them.
    assert!(bytes(&within, "indexMemory") <= f64::from((300 + 16) << 10), "{}", bytes(&within, "indexMemory"));
    assert_eq!(within["effective"]["memoryBudgetKib"], 300);
    let whole = result(&folder, &flags);
    assert!(bytes(&whole, "indexMemory") > 2.0 * bytes(&within, "indexMemory"));
    assert!(whole["effective"].get("memoryBudgetKib").is_none());
    assert_eq!(whole["parity"], within["parity"]);

    let cache = folder.cache();
    let small = [&["run", &cache, "--memory-budget-kib=100", "--inserts=5"], &flags[..]].concat();
    let output = program(&small);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("invalid --memory-budget-kib"), "{}", stderr(&output));
}

#[test]
fn vectors_are_replaced_and_deleted_and_the_rest_is_found() {
    let folder = Folder::new("operations");
    let flags = ["--strategy=ours", "--size=400", "--inserts=150", "--warmup-inserts=10"];
    for (operation, left, others) in
        [("update", 400, &[][..]), ("delete", 240, &[]), ("update", 400, &["--transaction-size=4"])]
    {
        for budget in [&[][..], &["--cache-kib=64", "--memory-budget-kib=120"]] {
            let operation = format!("--operation={operation}");
            let result = result(&folder, &[&flags[..], &[&operation], others, budget].concat());
            assert_eq!(result["effective"]["operation"], operation["--operation=".len()..]);
            assert_eq!(result["counters"]["deletes"]["value"], 150.0);
            assert!(result["counters"]["consolidations"]["value"].as_f64().unwrap() >= 1.0, "{}", result["counters"]);
            assert_eq!(result["effective"]["controlRecall"], 1.0);
            assert!(result["metrics"]["recall"]["value"].as_f64().unwrap() > 0.9, "{}", result["metrics"]["recall"]);
            // Every vector that is left, and the true neighbours of ten queries.
            assert_eq!(result["parity"]["items"], left + 10);
            let phases = result["phases"].as_array().unwrap();
            let sum = |samples: &Value| samples.as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).sum::<f64>();
            let timed: f64 = phases.iter().map(|phase| sum(&phase["samples"])).sum();
            let whole = sum(&result["metrics"]["latency"]["samples"]);
            assert!(timed <= whole && timed > 0.8 * whole, "{operation}: {timed} of {whole}");
            for name in ["mark", "consolidate"] {
                assert!(phases.iter().any(|phase| phase["name"] == name), "{operation} has no phase {name}");
            }
        }
    }
}

#[test]
fn an_index_is_searched_while_it_is_written() {
    let folder = Folder::new("searchers");
    let flags = ["--strategy=ours", "--inserts=100"];
    let alone = result(&folder, &flags);
    assert!(alone["metrics"].get("searchThroughput").is_none());
    assert_eq!(alone["effective"]["searchers"], 0);
    for operation in ["insert", "update"] {
        let operated = format!("--operation={operation}");
        let searched = result(&folder, &[&flags[..], &["--searchers=2", &operated]].concat());
        assert_eq!(searched["effective"]["searchers"], 2);
        let bytes = |result: &Value| result["metrics"]["indexMemory"]["value"].as_f64().unwrap();
        assert!(bytes(&searched) > bytes(&alone), "the copy is memory as well");
        assert!(searched["metrics"]["searchThroughput"]["value"].as_f64().is_some());
        assert_eq!(searched["parity"] == alone["parity"], operation == "insert");
    }
    for operation in ["insert", "update", "delete"] {
        // A search ends beside them, and one when they are over.
        let is_searched = |operations: usize| {
            let operated = [
                format!("--operation={operation}"),
                format!("--inserts={operations}"),
                // Enough vectors for the deletions.
                format!("--size={}", operations + 150),
            ];
            let flags = [&["--strategy=ours", "--searchers=2"][..], &operated.each_ref().map(String::as_str)].concat();
            let metrics = &result(&folder, &flags)["metrics"];
            let value = |name: &str| metrics.get(name).map_or(0.0, |metric| metric["value"].as_f64().unwrap());
            value("searchThroughput") > 0.0 && value("searchesKept") > 0.0
        };
        // On a busy machine none may end beside a few operations; beside enough of them one does.
        let mut operations = 100;
        while !is_searched(operations) {
            operations *= 2;
            assert!(operations <= 6400, "no search ended beside {} times {operation}, or after them", operations / 2);
        }
    }
}

#[test]
fn forced_path_is_reported_and_an_unavailable_one_is_an_error() {
    let folder = Folder::new("path");
    for path in ["scalar", "portable", "avx2", "avx512", "neon"] {
        let output = program(&[&["run", &folder.cache(), &format!("--path={path}")], &SMALL[..]].concat());
        if output.status.success() {
            let result: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(result["effective"]["path"], path);
        } else {
            assert_eq!(output.status.code(), Some(2));
            let message = stderr(&output);
            assert!(message.contains(&format!("--path: this CPU does not support {path}")), "{message}");
        }
    }
}

#[test]
fn bad_parameters_exit_with_2_and_print_nothing() {
    for (bad, part) in [
        (&["run", "--size=1000001"][..], "0 to 1000000"),
        (&["run", "--inserts=0"], "1 to 100000"),
        (&["run", "--queries=9"], "10 to 10000"),
        (&["run", "--search-list=9"], "10 to 2000"),
        (&["run", "--insert-list=9"], "10 to 2000"),
        (&["run", "--warmup-inserts=-1"], "0 to 10000"),
        (&["run", "--dims=1"], "2 to 4096"),
        (&["run", "--block-size=512"], "room for one edge of --dims=128"),
        (&["run", "--transaction-size=0"], "1 to 10000"),
        (&["run", "--fold-every=0"], "1 to 10000"),
        (&["run", "--mmap-mib=2048"], "0 to 2047"),
        (&["run", "--memory-budget-kib=9000000"], "0 to 4194304"),
        (&["run", "--memory-budget-kib=9000"], "or --strategy=ours"),
        (
            &["run", "--strategy=ours", "--memory-budget-kib=9000", "--node-cache=none"],
            "0 is allowed with --node-cache=none",
        ),
        (&["run", "--strategy=ours", "--memory-budget-kib=2000"], "more than --cache-kib is allowed"),
        (&["run", "--cache-kib=1"], "64 to 4194304"),
        (&["run", "--page-size=4000"], "allowed are 512, 1024"),
        (&["run", "--strategy=$(reboot)"], "allowed are baseline, seek, ours"),
        (&["run", "--dataset=none"], "allowed are uniform, clustered, uneven, similar"),
        (&["run", "--random-start=best"], "allowed are preset, count, seek, medoid"),
        (&["run", "--node-cache=all"], "allowed are preset, none, per-batch"),
        (&["run", "--back-edges=lazy"], "allowed are preset, eager, deferred"),
        (&["run", "--journal-mode=memory"], "allowed are wal, delete"),
        (&["run", "--cache=a", "--cache=b"], "--cache is repeated"),
        (&["run", "--unknown=1"], "unknown flag --unknown"),
        (&["run", "size"], "--name=value"),
        (&["bench"], "usage"),
        (&["peers"], "usage"),
        (&["peer", "--passes=0"], "1 to 1000"),
        (&["peer", "--fold-every=0"], "1 to 10000"),
        (&["run", "--locking-mode=none"], "allowed are normal, exclusive"),
        (&["peer", "--peer=annoy"], "allowed are ours, faiss-hnsw, usearch, sqlite-vec, hnsw-rs"),
        (&["run", "--consolidate-percent=0"], "1 to 100"),
        (&["run", "--operation=sort"], "allowed are insert, update, delete"),
        (&["run", "--operation=update"], "insert is allowed, or --strategy=ours"),
        (&["run", "--operation=update", "--strategy=ours", "--size=0"], "1 or more is allowed"),
        (&["run", "--operation=delete", "--strategy=ours", "--size=119"], "120 or more is allowed"),
        (&["run", "--searchers=65"], "0 to 64"),
        (&["run", "--searchers=1"], "0 is allowed, or --strategy=ours"),
        (&["run", "--searchers=1", "--strategy=ours", "--size=0"], "1 or more is allowed"),
        (&["run", "--searchers=1", "--strategy=ours", "--node-cache=none"], "searches need the whole graph in memory"),
        (
            &["run", "--searchers=1", "--strategy=ours", "--memory-budget-kib=9000"],
            "searches need the whole graph in memory",
        ),
        (&["run", "--searchers=1", "--strategy=ours", "--random-start=seek"], "or --random-start=medoid"),
        (&["arm"], "the folder with the vectors is needed"),
        (&["build", "--size=10"], "the file to build is needed"),
        (&["build", "--index=x", "--delete-every=2"], "0 is allowed, or --strategy=ours"),
        (&["build", "--index=x", "--strategy=ours", "--delete-every=3"], "an even number is allowed"),
        (&["build", "--index=x", "--crash=now"], "allowed are never, search"),
        (&["verify"], "the file to verify is needed"),
        (&["verify", "--index=x", "--deep=true"], "unknown flag --deep; known flags are --index"),
        (&["walk"], "usage"),
        (&[], "usage"),
    ] {
        let output = program(bad);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{bad:?}: {message}");
        assert!(output.stdout.is_empty() && message.contains(part), "{bad:?}: {message}");
    }
}

#[test]
fn oversized_trial_is_rejected_before_any_file_is_made() {
    let folder = Folder::new("large");
    let flags = ["--size=1000000", "--dims=4096", "--block-size=1048576", "--node-cache=per-batch"];
    let output = program(&[&["run", &folder.cache()], &flags[..]].concat());
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("the trial needs") && message.contains("MiB of memory are available"), "{message}");
    // This one fits into memory: its blocks are read one by one. They would take terabytes of disk.
    let flags = ["--size=1000000", "--dims=2", "--block-size=1048576"];
    let output = program(&[&["run", &folder.cache()], &flags[..]].concat());
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("MiB of disk in --cache="), "{message}");
    let left: Vec<_> = fs::read_dir(&folder.0).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_cache_is_used_checked_and_repaired() {
    let folder = Folder::new("cache");
    let origin = |result: &Value| result["effective"]["preparedIndex"].as_str().unwrap().to_owned();
    let first = result(&folder, &[]);
    assert_eq!(origin(&first), "made");
    // The proposal changes nothing that the prepared index depends on.
    let second = result(&folder, &["--strategy=seek"]);
    assert_eq!(origin(&second), "cached");
    let database = fs::read_dir(&folder.0).unwrap().flatten().map(|entry| entry.path());
    let database: Vec<PathBuf> = database.filter(|path| path.extension().is_some_and(|end| end == "db")).collect();
    assert_eq!(database.len(), 1);
    fs::write(&database[0], "something else").unwrap();
    let output = program(&[&["run", &folder.cache()], &SMALL[..]].concat());
    assert!(stderr(&output).contains("the cached file did not have its digest; it was made anew"));
    let third: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(origin(&third), "made anew: the cached file did not have its digest");
    assert_eq!(first["parity"], third["parity"]);
    // Only the cache is left: no copies.
    let names: Vec<String> =
        fs::read_dir(&folder.0).unwrap().flatten().map(|e| e.file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.starts_with("work-")), "{names:?}");
}

#[test]
fn cache_path_that_is_not_a_folder_is_reported() {
    let folder = Folder::new("file");
    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    let output = program(&[&["run", &format!("--cache={}", file.display())], &SMALL[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("--cache="), "{}", stderr(&output));
}

#[test]
fn ceilings_are_optional() {
    let folder = Folder::new("ceilings");
    assert!(result(&folder, &["--ceilings=false"]).get("ceilings").is_none());
    let result = result(&folder, &["--synchronous=full"]);
    let ceilings = result["ceilings"].as_array().unwrap();
    let names: Vec<&str> = ceilings.iter().map(|ceiling| ceiling["name"].as_str().unwrap()).collect();
    let arithmetic = assay_harness::ceiling::arithmetic_rate().map(|_| "arithmetic");
    assert_eq!(names, ["pointReads"].into_iter().chain(arithmetic).chain(["syncs"]).collect::<Vec<_>>());
    for ceiling in ceilings {
        assert!(ceiling["limit"].as_f64().unwrap() > 0.0 && ceiling["achieved"].as_f64().unwrap() > 0.0, "{ceiling}");
    }
}

#[test]
fn building_goes_on_where_it_was_and_refuses_another_index() {
    let folder = Folder::new("build");
    let small = ["--dims=8", "--block-size=1024"];
    for strategy in ["--strategy=baseline", "--strategy=ours"] {
        let file = folder.file(&strategy[11..]);
        let build = |rest: &[&str]| program(&[&["build", &file, strategy], &small[..], rest].concat());
        let ids = |output: &Output| -> Vec<u64> {
            String::from_utf8_lossy(&output.stdout).lines().map(|line| line.parse().unwrap()).collect()
        };
        assert_eq!(ids(&build(&["--size=30"])), (1..=30).collect::<Vec<_>>());
        // In transactions of four: every id is reported, and after its commit.
        assert_eq!(ids(&build(&["--size=45", "--transaction-size=4"])), (31..=45).collect::<Vec<_>>());
        let verified = program(&["verify", &file]);
        assert!(verified.status.success(), "{}", stderr(&verified));
        let summary: Value = serde_json::from_slice(&verified.stdout).unwrap();
        assert_eq!(summary["nodes"], 45);

        let other = build(&["--size=60", "--seed=43"]);
        assert_eq!(other.status.code(), Some(1));
        assert!(stderr(&other).contains("its vector 1 is not one of these parameters"), "{}", stderr(&other));
        let wrong = if strategy.ends_with("ours") { "--strategy=seek" } else { "--strategy=ours" };
        let other = program(&["build", &file, wrong, "--dims=8", "--block-size=1024"]);
        assert!(stderr(&other).contains("it is an index of layout"), "{}", stderr(&other));
    }
}

#[test]
fn verify_reports_inconsistencies() {
    let folder = Folder::new("verify");
    let missing = program(&["verify", &folder.file("missing.db")]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("is not a file"), "{}", stderr(&missing));
    fs::write(folder.0.join("text.db"), "not a database, but long enough to be looked at as if it were one".repeat(20))
        .unwrap();
    let text = program(&["verify", &folder.file("text.db")]);
    assert_eq!(text.status.code(), Some(1));
    assert!(stderr(&text).contains("not a database"), "{}", stderr(&text));
    rusqlite::Connection::open(folder.0.join("empty.db")).unwrap().execute("CREATE TABLE t(x)", []).unwrap();
    let empty = program(&["verify", &folder.file("empty.db")]);
    assert!(stderr(&empty).contains("none of the tables of an index"), "{}", stderr(&empty));

    for (strategy, damages) in [
        (
            "baseline",
            &[
                ("UPDATE vectors_shadow SET data = zeroblob(1024) WHERE id = 7", "the id in node 7 is 0"),
                ("DELETE FROM vectors_shadow WHERE id = 7", "node 8 stands where 7 should"),
                ("DELETE FROM vectors_shadow WHERE id = 40", "has an edge to 40, which is not there"),
                (
                    "UPDATE vectors_shadow SET data = CAST(substr(data, 1, 8) || x'ffff' || substr(data, 11) AS BLOB) WHERE id = 7",
                    "65535 edges",
                ),
                (
                    "UPDATE vectors_shadow SET data = CAST(substr(data, 1, 16) || x'0000003f' || substr(data, 21) AS BLOB) WHERE id = 7",
                    "another vector for 7",
                ),
                ("UPDATE vectors_shadow SET data = x'00' WHERE id = 7", "node 7 has 1 bytes"),
                ("UPDATE vectors_metadata SET value = 9 WHERE key = 'format'", "format is 9"),
                ("UPDATE vectors_metadata SET value = 9000 WHERE key = 'dims'", "hold no edge of 9000 dimensions"),
            ][..],
        ),
        (
            "ours",
            &[
                (
                    "UPDATE vector SET data = zeroblob(32) WHERE id = 7",
                    "row 7 of table vector does not have its checksum",
                ),
                ("DELETE FROM vector WHERE id = 7", "vector 8 stands where 7 should"),
                ("DELETE FROM vector WHERE id = 40", "which is not there"),
                ("UPDATE edge SET data = x'' WHERE id = 7", "row 7 of table edge"),
                ("DELETE FROM edge WHERE id = 7", "the edges of 8 stand where those of 7 should"),
                ("UPDATE log SET sum = sum + 1 WHERE id = 40", "row 40 of table log"),
                ("DELETE FROM log WHERE id = 40", "40 vectors, but edges of"),
                ("UPDATE setting SET value = 41 WHERE name = 'medoid'", "the start 41 is not there"),
                ("UPDATE setting SET value = 9 WHERE name = 'format'", "format Some(9)"),
            ],
        ),
    ] {
        let name = format!("{strategy}.db");
        let flags = ["--dims=8", "--block-size=1024", "--size=40", "--fold-every=16"];
        let (file, strategy) = (folder.file(&name), format!("--strategy={strategy}"));
        let flags = [&["build", &file, &strategy], &flags[..]].concat();
        assert!(program(&flags).status.success());
        assert!(program(&["verify", &folder.file(&name)]).status.success());
        for (damage, message) in damages {
            let damaged = folder.0.join("damaged.db");
            fs::copy(folder.0.join(&name), &damaged).unwrap();
            let changed = rusqlite::Connection::open(&damaged).unwrap().execute(damage, []).unwrap();
            assert_eq!(changed, 1, "{damage}");
            let output = program(&["verify", &folder.file("damaged.db")]);
            assert_eq!(output.status.code(), Some(1), "{damage}");
            assert!(stderr(&output).contains(message), "{damage}: {}", stderr(&output));
            fs::remove_file(&damaged).unwrap();
        }
    }
}

/// A server of our own making: its index is nothing, and its answers are always the same.
fn server(folder: &Folder, name: &str, script: &str) -> String {
    let path = folder.0.join(name);
    fs::write(&path, script).unwrap();
    format!("--server=sh {}", path.display())
}

#[test]
fn peers_run_the_same_trial_and_invalid_answers_are_reported() {
    let folder = Folder::new("peers");
    let flags = ["--size=200", "--warmup-inserts=2", "--inserts=4", "--queries=10", "--dims=8", "--passes=3"];
    let trial = |peer: &str, server: &str| {
        let peer = format!("--peer={peer}");
        program(&[&["peer", &peer, server, &folder.cache()], &flags[..]].concat())
    };
    let ones = " 1".repeat(10);
    let script = format!(
        "echo ready; while read -r word number; do \
         case $word in insert) echo 1000;; search) echo 1000{ones};; memory) echo 4096;; esac; done"
    );
    let good = server(&folder, "good", &script);
    let schema: Value = serde_json::from_str(assay_schema::RESULT_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let result = |peer: &str| -> Value {
        let output = trial(peer, &good);
        assert!(output.status.success(), "{peer}: {}", stderr(&output));
        let result = serde_json::from_slice(&output.stdout).unwrap();
        assert!(validator.is_valid(&result), "{result}");
        result
    };
    let ours = result("ours");
    let value = |result: &Value, metric: &str| result["metrics"][metric]["value"].as_f64().unwrap();
    for peer in ["faiss-hnsw", "usearch", "sqlite-vec"] {
        let found = result(peer);
        assert_eq!(found["parity"], ours["parity"], "{peer} has other vectors");
        assert_eq!(found["effective"]["peer"], peer);
        // Four inserts and ten queries of a thousand seconds each, and every neighbour found with the shortest list.
        for (metric, expected) in [
            ("timePerInsert", 250.0),
            ("processMemory", 4096.0),
            ("recall", 1.0),
            ("recallAtLeast", 1.0),
            ("searchList", 10.0),
        ] {
            assert_eq!(value(&found, metric), expected, "{peer}: {metric}");
        }
        assert_eq!(found["metrics"]["timePerQuery"]["samples"], serde_json::json!([100.0, 100.0, 100.0]));
    }
    let others: &[&str] = if cfg!(feature = "peer") { &["hnsw-rs"] } else { &[] };
    for own in others.iter().map(|peer| result(peer)).chain([ours.clone()]) {
        assert_eq!(own["parity"], ours["parity"]);
        assert!((0.9..=1.0).contains(&value(&own, "recall")) && value(&own, "searchRecall") >= 0.95, "{own}");
        assert!((1e-9..1.0).contains(&value(&own, "timePerInsert")) && value(&own, "processMemory") >= 0.0, "{own}");
    }

    for (name, script, message) in [
        ("silent", "exit 0", "usearch ended"),
        ("early", "echo hello", "usearch says \"hello\" and not that it is ready"),
        ("odd", "echo ready; while read -r line; do echo soon; done", "usearch: insert 2: \"soon\" are not numbers"),
        ("negative", "echo ready; while read -r line; do echo -1; done", "usearch: insert 2: \"-1\" are not numbers"),
        ("short", "echo ready; while read -r line; do echo 1 1; done", "usearch: 1 recalls for 10 queries"),
    ] {
        let output = trial("usearch", &server(&folder, name, script));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{name}");
        assert!(stderr(&output).contains(message), "{name}: {}", stderr(&output));
    }
    let output = trial("usearch", "--server=/nowhere/at/all");
    // An emulator starts it first and finds that it is not there then.
    let not_there = ["usearch: ", "usearch ended"].iter().any(|says| stderr(&output).contains(says));
    assert!(not_there && !output.status.success(), "{}", stderr(&output));

    // One that never finds enough has no time of a query.
    let half = format!(
        "echo ready; while read -r word number; do \
         case $word in search) echo 1000{};; *) echo 1;; esac; done",
        " 0.5".repeat(10)
    );
    let output = trial("usearch", &server(&folder, "half", &half));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value(&found, "recall"), 0.5);
    assert!(found["metrics"].get("timePerQuery").is_none() && found["metrics"].get("searchList").is_none(), "{found}");
}

#[test]
fn an_arm_answers_its_lines_and_refuses_others() {
    use insert_diskann::dataset::{Data, Kind};
    use std::io::Write;

    let folder = Folder::new("arm");
    let data = Data::generate(Kind::Clustered, 8, 42, 100, 10, 10);
    insert_diskann::peers::data::write(&folder.0, &data, 100).unwrap();
    let given = format!("--data={}", folder.0.display());
    let answers = |lines: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_insert-diskann"));
        command.args(["arm", "--strategy=ours", "--dims=8", "--dataset=clustered", &given, &folder.cache()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = answers("insert 4\nsearch 32\ninsert 6\nmemory\n");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let counts: Vec<usize> = text.lines().map(|line| line.split(' ').count()).collect();
    assert_eq!((counts, text.lines().next()), (vec![1, 1, 11, 1, 1], Some("ready")));
    for (lines, message) in [
        ("insert 11\n", "insert 11: 10 vectors are left"),
        ("insert all\n", "insert all: insert N, search L and memory are known"),
        ("walk\n", "walk: insert N, search L and memory are known"),
    ] {
        let output = answers(lines);
        assert!(!output.status.success() && stderr(&output).contains(message), "{}", stderr(&output));
    }
}

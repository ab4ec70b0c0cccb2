//! The command line is the contract with the platform.

use std::process::{Command, Output};
use std::time::Duration;

use assay_harness::machine;
use batch_curp_ho::parameters::Parameters;
use batch_curp_ho::process::control;
use batch_curp_ho::process::replica::Settings;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

const SMALL: [&str; 4] =
    ["--operations=2000", "--warmup-operations=200", "--script-operations=60", "--operation-timeout-millis=20000"];

fn curp(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_batch-curp-ho")).args(arguments).output().unwrap()
}

fn run(arguments: &[&str]) -> Output {
    // A flag may be given once only.
    let name = |flag: &str| flag.split('=').next().unwrap().to_owned();
    let small = SMALL.into_iter().filter(|flag| arguments.iter().all(|given| name(given) != name(flag)));
    curp(&["run"].into_iter().chain(small).chain(arguments.iter().copied()).collect::<Vec<_>>())
}

fn result(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The ways in which batches and messages can be sent.
const VARIANTS: [&[&str]; 9] = [
    &["--flush=natural"],
    &["--flush=immediate", "--message-writes=each"],
    &["--flush=timed", "--message-writes=each"],
    &["--flush=timed", "--batch-delay-micros=150", "--timer=precise"],
    &["--flush=timed", "--batch-delay-micros=150", "--timer=go-like", "--message-writes=each"],
    &["--message-writes=each", "--descriptor-routines=500"],
    &["--message-writes=each", "--descriptor-routines=2", "--write-lock=replica"],
    &["--write-lock=replica"],
    &["--idle=yield"],
];

#[test]
fn result_conforms_to_the_schema_and_variants_have_equal_digests() {
    let schema: Value = serde_json::from_str(assay_schema::RESULT_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut digests = Vec::new();
    for variant in VARIANTS {
        for bound in ["follower", "leader"] {
            let bound_flag = format!("--bound-replica={bound}");
            let result = result(&[variant, &[&bound_flag, "--ceilings=false"]].concat());
            let problems: Vec<String> = validator.iter_errors(&result).map(|e| e.to_string()).collect();
            assert!(problems.is_empty(), "{problems:#?}");
            let effective = &result["effective"];
            assert_eq!(effective["boundReplica"], u64::from(bound == "follower"));
            // The analysis holds latencies that overlap against it.
            let under_way = effective["streams"].as_u64().unwrap() * effective["window"].as_u64().unwrap();
            assert_eq!(effective["threads"], under_way);
            assert_eq!(result["counters"]["commands"]["value"], 2260.0);
            assert_eq!(result["parity"]["items"], 61);
            assert!(result["metrics"]["throughput"]["value"].as_f64().unwrap() > 0.0);
            for name in ["weakLatency", "strongLatency", "batchDelay", "batchSize"] {
                assert!(result["metrics"][name]["histogram"]["count"].as_u64().unwrap() > 0, "{name}");
            }
            assert!(result["metrics"].get("relayLate").is_none(), "no relay is between replicas of one machine");
            if variant.contains(&"--batch-delay-micros=150") {
                assert_eq!(effective["flush"], "timed");
                // No batch goes before its time.
                assert!(effective["batchDelayMicrosMedian"].as_f64().unwrap() >= 145.0, "{effective}");
            }
            let phases: Vec<&str> =
                result["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
            assert_eq!(phases, ["startup", "script", "connectAndWarmup", "measured", "tail", "verify"]);
            digests.push(result["parity"]["digest"].as_str().unwrap().to_owned());
        }
    }
    digests.dedup();
    assert_eq!(digests.len(), 1, "{digests:?}");
    let other = result(&["--seed=32", "--ceilings=false"]);
    assert_ne!(other["parity"]["digest"], digests[0], "another script has another digest");
}

#[test]
fn effective_parameters_match_the_requested_ones() {
    let result = result(&["--weak-ratio=0", "--write-ratio=100", "--keys=1"]);
    assert_eq!((&result["effective"]["weakShare"], &result["effective"]["writeShare"]), (&0.0.into(), &1.0.into()));
    assert_eq!(result["effective"]["hottestKeyShare"], 1.0);
    assert!(result["metrics"].get("weakLatency").is_none(), "a figure that is not there is left out");
    assert!(result["counters"]["slowPath"]["value"].as_f64().unwrap() > 0.0, "all commands conflict");
    let names: Vec<&str> =
        result["ceilings"].as_array().unwrap().iter().map(|ceiling| ceiling["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["socketCalls", "loopbackRoundTrips"]);
}

#[test]
fn an_open_loop_reports_what_was_offered_and_ends_although_it_cannot_keep_up() {
    let slow = result(&["--mode=open", "--rate=2000", "--operations=1000", "--arrivals=fixed", "--ceilings=false"]);
    assert_eq!(slow["metrics"]["offeredRate"]["value"], 2000.0);
    assert_eq!(slow["effective"]["allSent"], true);
    let flags = ["--mode=open", "--rate=1000000", "--operations=3000000", "--time-limit-seconds=1", "--ceilings=false"];
    let overloaded = result(&flags);
    assert_eq!(overloaded["effective"]["allSent"], false);
    assert!(overloaded["metrics"]["achievedShare"]["value"].as_f64().unwrap() < 0.9);
}

#[test]
fn a_dead_follower_costs_the_fast_path_and_nothing_else() {
    for replica in ["1", "2"] {
        let flag = format!("--fault-replica={replica}");
        let result = result(&["--fault=kill", &flag, "--fault-after=500", "--operations=20000", "--ceilings=false"]);
        assert_eq!(result["counters"]["commands"]["value"], 20260.0);
        assert!(result["counters"]["syncedPath"]["value"].as_f64().unwrap() > 0.0);
        assert_eq!(result["effective"]["fault"], format!("kill of replica {replica} after 500 commands"));
    }
}

#[test]
fn silent_replica_delays_only_the_first_commands() {
    for (replica, bound) in [("0", "follower"), ("1", "follower"), ("2", "follower"), ("0", "leader")] {
        let (replica, bound) = (format!("--fault-replica={replica}"), format!("--bound-replica={bound}"));
        let flags = [&*replica, &*bound, "--fault=stop", "--fault-after=500", "--operations=60000", "--ceilings=false"];
        let result = result(&[&flags[..], &["--suspect-after-millis=200"]].concat());
        assert_eq!(result["counters"]["commands"]["value"], 60_260.0, "{replica} {bound}");
        // Of 60 in flight some wait for the moment in which it is found; half of all commands are strong.
        let synced = result["counters"]["syncedPath"]["value"].as_f64().unwrap();
        assert!(synced > 1000.0, "{replica} {bound}: {synced} commands had the leader's last word");
        let throughput = result["metrics"]["throughput"]["value"].as_f64().unwrap();
        // Were each strong command to wait for 100 ms, 60 in flight would make 1,200 of both kinds a second.
        assert!(throughput > 5000.0, "{replica} {bound}: {throughput} commands a second");
    }
}

#[test]
fn leader_failures_lose_no_command() {
    for (fault, flags) in [
        ("kill", &["--bound-replica=follower"][..]),
        ("kill", &["--bound-replica=leader", "--flush=timed", "--batch-delay-micros=150"]),
        ("stop", &["--suspect-after-millis=200"]),
        ("restart", &["--fault-millis=50", "--operations=60000"]),
        ("restart", &["--fault-millis=1", "--operations=60000", "--message-writes=each"]),
        (
            "restart",
            &["--operations=60000", "--message-writes=each", "--descriptor-routines=20", "--write-lock=replica"],
        ),
    ] {
        assert!(without_its_leader(fault, flags) > 0, "{fault} {flags:?}");
    }
    at_last(500, |millis| {
        let lasts = format!("--fault-millis={millis}");
        without_its_leader("pause", &["--suspect-after-millis=100", &lasts, "--operations=60000"]) > 0
    });
}

/// The ballot that a trial ends with after something happened to its first leader.
fn without_its_leader(fault: &str, flags: &[&str]) -> u64 {
    let fault_flag = format!("--fault={fault}");
    let common = [&*fault_flag, "--fault-replica=0", "--fault-after=500", "--ceilings=false"];
    let given =
        [flags, if flags.iter().any(|flag| flag.starts_with("--operations")) { &[] } else { &["--operations=20000"] }];
    let result = result(&[&common[..], &given.concat()].concat());
    assert!(result["metrics"]["unavailable"]["value"].as_f64().unwrap() > 0.0, "{fault}");
    assert_eq!(result["metrics"]["lost"]["value"], 0.0, "{fault}");
    assert_eq!(result["metrics"].get("rejoin").is_some(), fault == "restart");
    result["effective"]["ballot"].as_u64().unwrap()
}

/// Retries with doubled amounts until an effect is visible above the noise of a busy machine; the program's own limits
/// end the retries.
fn at_last(mut amount: u64, shows: impl Fn(u64) -> bool) {
    while !shows(amount) {
        amount *= 2;
    }
}

#[test]
fn a_follower_that_comes_back_takes_part_again() {
    for (replica, fault) in [("1", "restart"), ("2", "restart"), ("2", "pause")] {
        let (replica, fault) = (format!("--fault-replica={replica}"), format!("--fault={fault}"));
        let flags = [&*replica, &*fault, "--fault-after=500", "--fault-millis=20", "--operations=100000"];
        let result = result(&[&flags[..], &["--ceilings=false", "--suspect-after-millis=60000"]].concat());
        assert_eq!(result["effective"]["ballot"], 0, "{replica} {fault}: the leader is the first one still");
        assert_eq!(result["counters"]["commands"]["value"], 100_260.0);
    }
}

#[test]
fn properties_of_the_documents_program_can_be_enabled() {
    let flags = ["--heap=collected", "--client-log=each", "--operations=4000", "--ceilings=false"];
    let result = result(&flags);
    let counter = |name: &str| result["counters"][name]["value"].as_f64().unwrap();
    // 4,260 commands at each of three replicas, visited at 1024, 2048 and 4096 of them.
    assert_eq!((counter("commands"), counter("descriptors"), counter("collections")), (4260.0, 12_780.0, 9.0));
    assert_eq!(result["effective"]["clientLog"], "each");
}

#[test]
fn commands_have_a_routine_up_to_the_bound() {
    let answers = |flags: &[&str]| {
        let result = result(&[flags, &["--message-writes=each", "--ceilings=false"]].concat());
        ["routineAnswers", "answersBeyondBound"].map(|name| result["counters"][name]["value"].as_f64().unwrap())
    };
    assert_eq!(answers(&[]), [0.0, 0.0]);
    let [by_routines, beyond] = answers(&["--descriptor-routines=100000"]);
    // Each of 2,260 commands has at least the answer of the replica that it is bound to, or of all three.
    assert!(by_routines >= 2260.0 && beyond == 0.0, "{by_routines} and {beyond}");
    let [by_routines, beyond] = answers(&["--descriptor-routines=1", "--write-lock=replica"]);
    assert!(by_routines > 0.0 && beyond > 0.0, "{by_routines} and {beyond}");
}

/// On one CPU, where a process that has nothing to do always has others to let go first.
#[test]
fn processes_that_yield_sleep_less_often() {
    // Of this thread, and of the processes that it starts.
    let (allowed, mut one) = (sched_getaffinity(None).unwrap(), CpuSet::new());
    one.set((0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).unwrap());
    sched_setaffinity(None, &one).unwrap();
    let sleeps = |idle: &str| {
        let result = result(&[idle, "--operations=20000", "--ceilings=false"]);
        assert_eq!(format!("--idle={}", result["effective"]["idle"].as_str().unwrap()), idle);
        result["metrics"]["sleepsPerCommand"]["value"].as_f64().unwrap()
    };
    let (sleeping, yielding) = (sleeps("--idle=sleep"), sleeps("--idle=yield"));
    sched_setaffinity(None, &allowed).unwrap();
    assert!(yielding < sleeping / 2.0, "{yielding} sleeps per command, and {sleeping} without yielding");
}

#[test]
fn slow_replica_costs_mainly_the_fast_path() {
    at_last(2000, |micros| {
        let slow = format!("--slow-micros={micros}");
        let result = result(&["--slow-replica=2", &slow, "--ceilings=false", "--suspect-after-millis=60000"]);
        result["metrics"]["fastPathShare"]["value"].as_f64().unwrap() < 0.9
    });
}

#[test]
fn replicas_that_are_far_from_each_other_take_a_round_trip_to_agree() {
    let result = result(&["--rtt-micros=4000", "--ceilings=false", "--keys=1", "--weak-ratio=0", "--write-ratio=100"]);
    let effective = &result["effective"];
    assert_eq!(effective["rttMicrosAsked"], 4000);
    assert!(result["metrics"]["relayLate"]["histogram"]["count"].as_u64().unwrap() > 0, "{result}");
    // All commands conflict: each but the first waits until the leader's accept has gone to a follower, 2 ms away.
    let middle = result["metrics"]["throughput"]["value"].as_f64().unwrap();
    assert!(middle < 60.0 / 0.002, "{middle} commands per second with 60 in flight and 2 ms each way");
}

#[test]
fn reads_of_a_key_conflict_only_as_in_the_documents_program() {
    let share = |conflicts: &str| {
        let conflicts = format!("--conflicts={conflicts}");
        let result = result(&["--weak-ratio=0", "--write-ratio=0", "--keys=1", &conflicts, "--ceilings=false"]);
        let share = |name: &str| result["metrics"][name]["value"].as_f64().unwrap();
        share("fastPathShare") + share("overtakenShare")
    };
    assert_eq!(share("writes"), 1.0, "reads commute");
    assert!(share("any") < 0.9);
}

#[test]
fn trials_use_replicas_that_others_have_started_one_after_another() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    // Ports that are free now; the replicas call each other until all are there.
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let addresses = [free(), free(), free()];
    // By a name, as pods find each other.
    let all = format!("--replicas={}", addresses.join(",").replace("127.0.0.1", "localhost"));
    let mut replicas: Vec<_> = (0..3)
        .map(|id| {
            let arguments = [format!("--id={id}"), format!("--listen={}", addresses[id]), all.clone()];
            let mut command = Command::new(env!("CARGO_BIN_EXE_batch-curp-ho"));
            command.arg("replica").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for replica in &mut replicas {
        let lines: Vec<String> =
            BufReader::new(replica.stdout.take().unwrap()).lines().take(2).map(Result::unwrap).collect();
        assert!(lines[0].starts_with("listens ") && lines[1] == "ready", "{lines:?}");
    }
    // Each begins with nothing of the one before, and the replicas do their work as it wants it done.
    let alone = result(&["--ceilings=false"]);
    for (flags, batches) in [
        (&["--flush=natural"][..], false),
        (&["--flush=timed", "--batch-delay-micros=3000", "--suspect-after-millis=5000"], true),
        (&["--flush=immediate", "--message-writes=each", "--conflicts=any", "--slow-micros=100"], false),
        (&["--heap=growing", "--operations=3000"], false),
    ] {
        let found = result(&[&[&*all, "--ceilings=false"], flags].concat());
        assert_eq!(found["parity"], alone["parity"], "{flags:?}");
        let counter = |name: &str| found["counters"][name]["value"].as_f64().unwrap();
        let commands = if flags.contains(&"--operations=3000") { 3260.0 } else { 2260.0 };
        let kept = if flags.contains(&"--heap=growing") { 3.0 * commands } else { 0.0 };
        assert_eq!((counter("commands"), counter("descriptors")), (commands, kept), "{flags:?}");
        assert_eq!(found["effective"]["batchDelayMicrosMedian"].as_f64().unwrap() >= 2900.0, batches, "{flags:?}");
        // Counters of an earlier trial are not included.
        assert!(counter("framesSent") < 20.0 * commands, "{flags:?}: {}", found["counters"]);
    }
    for mut replica in replicas {
        replica.kill().unwrap();
        replica.wait().unwrap();
    }
}

#[test]
fn unreachable_replica_is_reported() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = control::begin(
        &[nobody.to_string(), nobody.to_string(), nobody.to_string()],
        Duration::from_millis(30),
        |_| Settings::default(),
    );
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with(&nobody.to_string()), "{error}");
}

#[test]
fn a_client_that_hangs_or_is_too_slow_is_a_failed_trial_with_a_message() {
    let long = "--operations=2000000";
    for (flags, part) in [
        (
            &["--fault=stop", "--fault-replica=1", "--fault-after=500", long, "--operation-timeout-millis=300"][..],
            "a command got no answer for 0.3 s",
        ),
        (&["--time-limit-seconds=1", long, "--window=1", "--flush=timed", "--batch-delay-micros=100000"], "time limit"),
    ] {
        let output = run(flags);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{flags:?}: {message}");
        assert!(output.stdout.is_empty() && message.contains(part), "{flags:?}: {message}");
    }
}

#[test]
fn a_history_has_a_line_for_every_command() {
    let file = std::env::temp_dir().join(format!("curp-history-{}.jsonl", std::process::id()));
    result(&[&format!("--history={}", file.display()), "--ceilings=false"]);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(text.lines().count(), 2260);
    let nowhere = run(&["--history=/nowhere/at/all"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("--history=/nowhere/at/all"));
    for line in text.lines() {
        let command: Value = serde_json::from_str(line).unwrap();
        assert!(command["invoke"].as_u64() < command["return"].as_u64(), "{line}");
        if command["op"] == "put" {
            assert_eq!(command["value"], format!("{}:{}", command["client"], command["seq"]));
        }
    }
}

#[test]
fn bad_parameters_exit_with_2_and_print_nothing() {
    for (bad, part) in [
        (&["run", "--operations=0"][..], "--operations=0: allowed are integers from 1 to 4000000"),
        (&["run", "--operations=3"], "--operations=3: 4 streams need at least one command each"),
        (&["run", "--warmup-operations=1000001"], "from 0 to 1000000"),
        (&["run", "--clients=0"], "from 1 to 16"),
        (&["run", "--threads=17"], "from 1 to 16"),
        (&["run", "--window=1025"], "from 1 to 1024"),
        (&["run", "--rate=0"], "from 1 to 1000000"),
        (&["run", "--weak-ratio=101"], "from 0 to 100"),
        (&["run", "--write-ratio=-1"], "from 0 to 100"),
        (&["run", "--skew-percent=0.9"], "--skew-percent=0.9: allowed are integers from 0 to 300"),
        (&["run", "--keys=0"], "from 1 to 16000000"),
        (&["run", "--value-size=15"], "from 16 to 4096"),
        (&["run", "--bound-replica=2"], "allowed are leader, follower"),
        (&["run", "--flush=$(reboot)"], "allowed are immediate, natural, timed"),
        (&["run", "--batch-delay-micros=150"], "--batch-delay-micros=150: a delay needs --flush=timed"),
        (&["run", "--flush=timed", "--batch-delay-micros=100001"], "from 0 to 100000"),
        (&["run", "--timer=rust"], "allowed are go-like, precise"),
        (&["run", "--message-writes=some"], "allowed are each, coalesced"),
        (&["run", "--mode=half"], "allowed are closed, open"),
        (&["run", "--arrivals=random"], "allowed are poisson, fixed"),
        (&["run", "--fault=nap"], "allowed are none, kill, stop, pause, restart"),
        (&["run", "--fault-millis=0"], "from 1 to 60000"),
        (&["run", "--conflicts=few"], "allowed are writes, any"),
        (&["run", "--heap=full"], "allowed are bounded, growing, collected"),
        (&["run", "--client-log=all"], "allowed are none, each"),
        (&["run", "--suspect-after-millis=9"], "from 10 to 60000"),
        (&["run", "--slow-replica=3"], "from 0 to 2"),
        (&["run", "--replica-cpus=64"], "3 replicas and the load generators need 193 CPUs, and"),
        (&["run", "--replicas=a:1,b:2"], "3 addresses such as host:7000, with commas between them"),
        (&["run", "--replicas=a:1,b:2,c"], "3 addresses such as host:7000"),
        (&["run", "--replicas=a:1,b:2,c:0"], "3 addresses such as host:7000"),
        (
            &["run", "--replicas=a:1,b:2,c:3", "--fault=kill"],
            "--fault=kill: that needs replicas that the trial starts itself",
        ),
        (&["run", "--replicas=a:1,b:2,c:3", "--replica-cpus=1"], "--replica-cpus=1: that needs replicas"),
        (&["replica", "--settings=fast"], "--settings=fast: settings as JSON"),
        (&["run", "--fault-replica=3"], "from 0 to 2"),
        (&["run", "--fault=kill", "--fault-after=40000"], "a fault comes before the last of --operations"),
        (&["run", "--time-limit-seconds=0"], "from 1 to 600"),
        (&["run", "--operation-timeout-millis=9"], "from 10 to 60000"),
        (&["run", "--script-operations=0"], "from 1 to 100000"),
        (&["run", "--history="], "--history=\"\": the name of a file is needed"),
        (&["run", "--history=a", "--history=b"], "--history is repeated"),
        (&["run", "--unknown=1"], "unknown flag --unknown"),
        (&["run", "rows"], "--name=value"),
        (&["replica", "--id=3"], "from 0 to 2"),
        (&["run", "--rtt-micros=1000001"], "from 0 to 1000000"),
        (&["run", "--replicas=a:1,b:2,c:3", "--rtt-micros=1"], "--rtt-micros=1: that needs replicas"),
        (&["relay"], "--to=nothing: an address such as host:7000 is needed"),
        (&["load", "now"], "standard input"),
        (&["bench"], "usage"),
        (&["run", "--descriptor-routines=5"], "--descriptor-routines=5: routines write answers one by one"),
        (&["run", "--write-lock=none"], "allowed are connection, replica"),
        (&["run", "--idle=spin"], "allowed are sleep, yield"),
        (&["walk"], "usage"),
        (&[], "usage"),
    ] {
        let output = curp(bad);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{bad:?}: {message}");
        assert!(output.stdout.is_empty() && message.contains(part), "{bad:?}: {message}");
    }
}

#[test]
fn a_trial_that_does_not_fit_into_memory_is_refused_before_anything_is_started() {
    // 16 million values of 4 KiB in three replicas would be 200 GB; with only 4.4 million commands it is still more than 50.
    let flags = ["--operations=4000000", "--keys=16000000", "--value-size=4096", "--write-ratio=100"];
    let needed = Parameters::parse(flags.map(str::to_owned)).unwrap().memory_bytes();
    if machine::available_memory_bytes().is_none_or(|available| available >= needed) {
        // Such a machine would do it; `run.rs` has the rule itself under test.
        return;
    }
    let output = run(&flags);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("the trial needs") && message.contains("MiB of memory are available"), "{message}");
}

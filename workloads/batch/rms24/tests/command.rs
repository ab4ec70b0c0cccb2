//! The command line and the socket are the contracts with the platform: the built program, used the way a user does.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use batch_rms24::child::ServerProcess;
use batch_rms24::geometry::{Geometry, Place};
use batch_rms24::query::Question;
use batch_rms24::wire::framing::{self, Framing, Incoming};
use batch_rms24::wire::{Answering, Hello, Item, Ready, Reply, Request, Wishes};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_batch-rms24");
const SMALL: [&str; 5] = ["--entries=1024", "--queries=6", "--warmup-queries=1", "--backup-hints=16", "--nodelay=true"];
/// Required by an encoding with both halves.
const COMPLEMENT: &str = "--dummy=complement";

fn program(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).env_remove("ASSAY_ROLE_SERVER").output().unwrap()
}

fn result(arguments: &[&str]) -> Value {
    let output = program(&[&["run"], &SMALL[..], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn samples(result: &Value, metric: &str) -> Vec<f64> {
    let samples = result["metrics"][metric]["samples"].as_array().unwrap();
    samples.iter().map(|sample| sample.as_f64().unwrap()).collect()
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

#[test]
fn result_conforms_to_the_schema_and_reports_the_work() {
    let schema: Value = serde_json::from_str(assay_schema::RESULT_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for strategy in ["chacha-double", "chacha-offset-first", "chacha-early-exit", "aes-uniform", "aes-packed"] {
        for (encoding, questions) in [("pairs", 2), ("halves", 1)] {
            for transport in ["tcp", "memory"] {
                let [a, b, c] = [("strategy", strategy), ("encoding", encoding), ("transport", transport)]
                    .map(|(name, value)| format!("--{name}={value}"));
                let result = result(&[&a, &b, &c, COMPLEMENT, "--ceilings=false", "--entry-size=32"]);
                let problems: Vec<String> = validator.iter_errors(&result).map(|error| error.to_string()).collect();
                assert!(problems.is_empty(), "{problems:#?}");
                assert_eq!(samples(&result, "latency").len(), 6);
                assert_eq!(samples(&result, "exchange").len(), 6 * questions);
                assert_eq!(result["effective"]["strategy"], strategy);
                assert_eq!(result["effective"]["transport"], transport);
                assert_eq!(result["effective"]["batchSizes"], format!("1:{}", 6 * questions));
                assert_eq!(result["effective"]["serverNodelay"].as_bool(), (transport == "tcp").then_some(true));
                assert_eq!(result["effective"].get("path").is_some(), strategy.starts_with("aes"));
                assert_eq!(result["parity"]["items"], 6);
                let phases: Vec<&str> =
                    result["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
                assert_eq!(phases, ["buildQuery", "serialize", "writeFrame", "readFrame", "deserialize", "decode"]);
                let iterations = result["phases"][0]["samples"].as_array().unwrap().len();
                assert_eq!(iterations, 6, "every query is an iteration, and nothing else is");
            }
        }
    }
}

#[test]
fn answers_are_independent_of_settings() {
    let digests = [
        &["--indices=uniform"][..],
        &["--indices=uniform", "--strategy=chacha-early-exit", "--batch-size=4", "--flush=full"],
        &["--indices=uniform", "--strategy=aes-packed", "--framing=single-write", "--answering=prefetch"],
        &["--indices=uniform", "--strategy=aes-packed", "--path=portable", COMPLEMENT, "--encoding=halves"],
        &["--indices=uniform", "--strategy=aes-uniform", "--transport=memory", "--batch-size=16"],
        &[
            "--indices=uniform",
            "--strategy=aes-packed",
            "--setup-threads=3",
            "--server-batch-limit=2",
            "--batch-size=5",
        ],
        &["--indices=uniform", "--scope=build-query"],
        &["--indices=uniform", "--scope=build-query", "--strategy=aes-packed", COMPLEMENT, "--encoding=halves"],
    ]
    .map(|flags| result(&[flags, &["--ceilings=false"]].concat())["parity"]["digest"].as_str().unwrap().to_owned());
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    let other = result(&["--indices=sequential", "--ceilings=false"])["parity"]["digest"].as_str().unwrap().to_owned();
    assert_ne!(other, digests[0]);
}

#[test]
fn a_batch_is_as_large_as_client_and_server_both_allow() {
    for (wanted, allowed, sizes) in
        [("4", "16", "4:3"), ("16", "5", "2:1,5:2"), ("1", "16", "1:12"), ("12", "16", "12:1")]
    {
        let result = result(&[
            &format!("--batch-size={wanted}"),
            &format!("--server-batch-limit={allowed}"),
            "--flush=full",
            "--ceilings=false",
        ]);
        assert_eq!(result["effective"]["batchSizes"], sizes, "{wanted} wanted, {allowed} allowed");
        assert_eq!(
            result["effective"]["batchSize"].as_u64().unwrap(),
            wanted.parse::<u64>().unwrap().min(allowed.parse().unwrap())
        );
    }
}

/// Two writes and Nagle's algorithm: the peer's delayed acknowledgement holds every other write for 40 ms. A busy machine can make an
/// exchange slow, but not most of them fast.
#[test]
fn the_documents_sockets_stall_and_either_repair_ends_it() {
    let run = |flags: &[&str]| {
        let common = ["--nodelay=false", "--strategy=aes-packed", "--flush=full", "--queries=8", "--ceilings=false"];
        let output = program(&[&["run", "--entries=1024", "--warmup-queries=4"], &common[..], flags].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let stalled = run(&["--framing=two-writes"]);
    assert_eq!(stalled["effective"]["clientNodelay"], false);
    let stalls = stalled["counters"]["delayedAckStalls"]["value"].as_f64().unwrap();
    assert!(stalls >= 8.0, "{stalls} of 16 exchanges stalled");
    assert!(median(samples(&stalled, "exchange")) > 0.02);
    assert_eq!(stalled["metrics"]["stallShare"]["value"].as_f64().unwrap(), stalls / 16.0);
    let single = run(&["--framing=single-write"]);
    assert!(median(samples(&single, "exchange")) < 0.02, "{single}");
    let nodelay = result(&["--framing=two-writes", "--strategy=aes-packed", "--flush=full", "--ceilings=false"]);
    assert_eq!(nodelay["effective"]["clientNodelay"], true);
    assert!(median(samples(&nodelay, "exchange")) < 0.02, "{nodelay}");
}

/// The document's effect at its original size: a client that thinks before each query and then sends at most one of its
/// two questions. The remaining ones follow each other at the end, and these are the ones that wait. Delays of a busy
/// machine can only increase their number.
#[test]
fn half_of_the_documents_frames_stall_at_batch_1_and_none_from_batch_4_on() {
    let run = |flags: &[&str]| {
        let size = ["--entries=1834095877", "--database=computed", "--hints=wanted", "--backup-hints=8"];
        let rest =
            ["--queries=4", "--warmup-queries=2", "--think-time=650", "--strategy=aes-packed", "--ceilings=false"];
        let output = program(&[&["run"], &size[..], &rest, flags].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let stalls = |result: &Value| result["counters"]["delayedAckStalls"]["value"].as_f64().unwrap();
    let one = run(&["--batch-size=1"]);
    assert_eq!(one["effective"]["batchSizes"], "1:8");
    assert!((4.0..8.0).contains(&stalls(&one)), "{one}");
    let four = run(&["--batch-size=4"]);
    assert_eq!(four["effective"]["batchSizes"], "4:2");
    assert!(stalls(&four) < 2.0, "{four}");
    let repaired = run(&["--batch-size=1", "--framing=single-write", "--ends=server"]);
    assert_eq!(repaired["effective"]["framing"], "two-writes");
    assert_eq!(repaired["effective"]["serverFraming"], "single-write");
    assert!(stalls(&repaired) < 4.0, "{repaired}");
    for result in [&one, &four, &repaired] {
        assert_eq!(result["parity"], one["parity"]);
        assert!(samples(result, "latency").iter().all(|seconds| *seconds >= 0.65), "thinking is a part of a query");
        assert!(result["phases"].as_array().unwrap().iter().any(|phase| phase["name"] == "think"));
    }
}

#[test]
fn a_computed_database_and_hints_for_the_wanted_entries_give_the_same_answers() {
    for strategy in ["aes-packed", "chacha-early-exit"] {
        for dummy in ["hint", "complement"] {
            let plan = [format!("--strategy={strategy}"), format!("--dummy={dummy}")];
            let digest = |flags: &[&str]| {
                let common = ["--ceilings=false", "--indices=uniform", &plan[0], &plan[1]];
                let result = result(&[&common[..], flags].concat());
                result["parity"]["digest"].as_str().unwrap().to_owned()
            };
            let laid_out = digest(&[]);
            assert_eq!(digest(&["--database=computed"]), laid_out, "{plan:?}");
            assert_eq!(digest(&["--hints=wanted"]), laid_out, "{plan:?}");
            assert_eq!(digest(&["--database=computed", "--hints=wanted", "--transport=memory"]), laid_out, "{plan:?}");
        }
    }
}

#[test]
fn several_clients_ask_at_the_same_time_each_over_a_connection_of_its_own() {
    for transport in ["tcp", "memory"] {
        let flags = ["--strategy=aes-packed", "--indices=uniform", "--ceilings=false", "--batch-size=4"];
        let transport = format!("--transport={transport}");
        let run = |more: &[&str]| result(&[&flags[..], &[&transport], more].concat());
        let (one, three) = (run(&[]), run(&["--clients=3"]));
        assert_eq!(three["effective"]["clients"], 3);
        // The number of queries is independent of the number of clients.
        assert_eq!([&one, &three].map(|result| samples(result, "latency").len()), [6, 6]);
        assert_eq!(three["counters"]["queries"]["value"].as_f64(), Some(6.0));
        assert_eq!(three["parity"]["items"], 6);
        assert_eq!(three["phases"][0]["samples"].as_array().unwrap().len(), 6);
        // Clients query different entries, each with its own secret.
        assert_ne!(three["parity"]["digest"], one["parity"]["digest"]);
        assert_eq!(run(&["--clients=3"])["parity"], three["parity"]);
        let (wall, queries) =
            (three["metrics"]["timePerQuery"]["value"].as_f64().unwrap() * 6.0, samples(&three, "latency"));
        assert!(wall < queries.iter().sum::<f64>() + 0.5, "the wall time is that of all clients together");
    }
}

/// The server's work lies between the first byte written and the last byte read, and nowhere else.
#[test]
fn the_servers_work_is_found_in_the_calls_that_it_happened_in() {
    let at = |result: &Value, metric: &str| result["metrics"][metric]["value"].as_f64().unwrap();
    for transport in ["tcp", "memory"] {
        // A database that takes some time to be asked.
        let flags = [
            "run",
            "--entries=4194304",
            "--database=computed",
            "--hints=wanted",
            "--strategy=aes-packed",
            "--queries=20",
        ];
        let transport = format!("--transport={transport}");
        let output = program(&[&flags[..], &["--framing=single-write", "--ceilings=false", &transport]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let work = at(&result, "serverInWriteFrame") + at(&result, "serverInReadFrame");
        let (exchanges, queries) = (samples(&result, "exchange"), samples(&result, "latency").len() as f64);
        let answers = result["counters"]["serverTime"]["value"].as_f64().unwrap() / queries;
        assert!(work >= answers, "{work} s of work, {answers} s of it for answers");
        assert!(work <= exchanges.iter().sum::<f64>() / queries, "{work} s of work is more than there was");
        if transport.ends_with("memory") {
            assert_eq!(at(&result, "serverInWriteFrame"), 0.0, "a call in the same thread happens in the read");
        }
    }
}

#[test]
fn forced_path_is_reported_and_an_unavailable_one_is_an_error() {
    for path in ["portable", "aes-ni", "vaes256", "vaes512"] {
        let flags = ["--strategy=aes-packed", "--transport=memory", &format!("--path={path}")];
        let output = program(&[&["run"], &SMALL[..], &flags].concat());
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
        (&["run", "--entries=255"][..], "--entries=255: allowed are integers from 256 to 2147483648"),
        (&["run", "--entry-size=36"], "--entry-size=36: an entry is a multiple of 8 bytes"),
        (&["run", "--batch-size=0"], "1 to 1024"),
        (&["run", "--server-batch-limit=2000"], "1 to 1024"),
        (&["run", "--lambda=300"], "1 to 256"),
        (&["run", "--strategy=$(reboot)"], "aes-packed"),
        (&["run", "--framing=three-writes"], "--framing=three-writes: allowed are two-writes, single-write"),
        (&["run", "--indices=random"], "allowed are sequential, uniform"),
        (&["run", "--nodelay=1"], "allowed are true, false"),
        (&["run", "--backup-hints=3"], "--backup-hints=3: 11 queries use up as many hints"),
        (&["run", "--encoding=halves"], "--dummy=complement is needed"),
        (&["run", "--ends=neither"], "allowed are both, client, server"),
        (&["run", "--think-time=a"], "0 to 10000"),
        (&["run", "--clients=0"], "1 to 64"),
        (
            &["run", "--clients=4", "--queries=10"],
            "--queries=10: 4 clients ask as many each: a multiple of 4 is needed",
        ),
        (&["run", "--clients=2", "--scope=build-query"], "--scope=build-query has one client"),
        (&["run", "--database=disk"], "allowed are memory, computed"),
        (&["run", "--hints=wanted", "--state=x"], "it needs --hints=all"),
        (&["serve", "--database=disk"], "allowed are memory, computed"),
        (&["run", "--server=here"], "--server=\"here\": an address and a port are needed"),
        (&["run", "--unknown=1"], "unknown flag --unknown"),
        (&["run", "entries"], "--name=value"),
        (&["serve", "--listen=there"], "--listen=\"there\": an address and a port are needed"),
        (&["serve", "--entries=1"], "256 to 2147483648"),
        (&["bench"], "usage"),
        (&["walk"], "usage"),
        (&[], "usage"),
    ] {
        let output = program(bad);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{bad:?}: {message}");
        assert!(output.stdout.is_empty() && message.contains(part), "{bad:?}: {message}");
    }
}

#[test]
fn oversized_trial_is_rejected_before_allocation() {
    // 512 GiB.
    for command in ["run", "serve"] {
        let output = program(&[command, "--entries=2147483648", "--entry-size=256"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("--entries, --entry-size: the trial needs") && message.contains("MiB"), "{message}");
    }
}

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn only_file(&self) -> PathBuf {
        let mut files = fs::read_dir(&self.0).unwrap();
        let file = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none(), "nothing is left beside the state");
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn cached_state_is_used_and_an_invalid_one_is_rebuilt_and_reported() {
    let folder = Folder::new("states");
    let state = format!("--state={}", folder.0.display());
    let run = |seed: &str| {
        let flags = [&state, seed, "--transport=memory", "--ceilings=false"];
        let output = program(&[&["run"], &SMALL[..], &flags].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let cache = result["effective"]["stateCache"].as_str().unwrap().to_owned();
        let digest = result["parity"]["digest"].as_str().unwrap().to_owned();
        (cache, digest, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (cache, digest, _) = run("--seed=1");
    assert_eq!(cache, "computed and written; before, it was absent");
    assert_eq!(run("--seed=1"), ("loaded".to_owned(), digest.clone(), String::new()));

    let file = folder.only_file();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let (cache, rebuilt, message) = run("--seed=1");
    assert_eq!(rebuilt, digest);
    assert!(cache.contains("corrupt") && message.contains("corrupt"), "{cache} {message}");
    assert_eq!(run("--seed=1").0, "loaded");

    // The state of another secret, under this one's name.
    let mine = folder.only_file();
    fs::rename(&mine, mine.with_extension("aside")).unwrap();
    run("--seed=2");
    fs::remove_file(mine.with_extension("aside")).unwrap();
    fs::rename(folder.only_file(), &mine).unwrap();
    let (cache, rebuilt, message) = run("--seed=1");
    assert_eq!(rebuilt, digest);
    assert!(cache.contains("foreign") && message.contains("foreign"), "{cache} {message}");

    // A folder that cannot be written to is said, and the trial goes on.
    let blocked = format!("--state={}/not-a-folder", mine.display());
    let result = result(&[&blocked, "--transport=memory", "--ceilings=false"]);
    assert!(result["effective"]["stateCache"].as_str().unwrap().contains("not written"), "{result}");
}

/// A separate server for a test.
fn server() -> ServerProcess {
    let flags = ["--entries=1024", "--seed=1", "--batch-limit=4"].map(str::to_owned);
    ServerProcess::start(Path::new(PROGRAM), &flags).unwrap()
}

struct Connection {
    stream: TcpStream,
    message: Vec<u8>,
}

impl Connection {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self { stream, message: Vec::new() }
    }

    fn ready(address: SocketAddr) -> Self {
        let mut connection = Self::open(address);
        // Whether so few entries got huge pages is the system's choice.
        let answer = connection.ask(&Request::RunConfig(hello()));
        assert!(matches!(answer, Reply::Ready(Ready { batch_limit: 4, nodelay: true, .. })), "{answer:?}");
        connection
    }

    fn ask(&mut self, request: &Request) -> Reply {
        let mut message = Vec::new();
        request.encode(&mut message);
        self.ask_bytes(&message)
    }

    fn ask_bytes(&mut self, message: &[u8]) -> Reply {
        let mut frame = framing::empty();
        frame.extend_from_slice(message);
        framing::write(&mut self.stream, &mut frame, Framing::SingleWrite).unwrap();
        self.reply()
    }

    fn reply(&mut self) -> Reply {
        assert_eq!(framing::read(&mut self.stream, 1 << 20, &mut self.message).unwrap(), Incoming::Message);
        Reply::decode(&self.message).unwrap()
    }

    fn error(&mut self, message: &[u8]) -> String {
        match self.ask_bytes(message) {
            Reply::Error(text) => text,
            other => panic!("{other:?} is no error"),
        }
    }
}

fn hello() -> Hello {
    let wishes = Wishes { nodelay: true, framing: Framing::SingleWrite, answering: Answering::Prefetch };
    Hello { entries: 1024, entry_size: 40, seed: 1, batch_limit: 1000, wishes }
}

fn encoded(request: &Request) -> Vec<u8> {
    let mut message = Vec::new();
    request.encode(&mut message);
    message
}

fn pair(block: u32, offset: u32) -> Question {
    Question::Pairs(vec![Place { block, offset }])
}

fn is_served(connection: &mut Connection) {
    let reply = connection.ask(&Request::Query(9, pair(0, 0)));
    assert!(matches!(reply, Reply::Item(Item { id: 9, outcome: Ok(ref sum), .. }, _) if sum.len() == 40), "{reply:?}");
}

#[test]
fn invalid_messages_get_an_error_and_the_connection_stays_open() {
    let server = server();
    let mut c = Connection::open(server.address());
    assert!(c.error(&encoded(&Request::Query(1, pair(0, 0)))).contains("the first message must be RunConfig"));
    for other in [Hello { entries: 2048, ..hello() }, Hello { entry_size: 32, ..hello() }, Hello { seed: 2, ..hello() }]
    {
        let text = c.error(&encoded(&Request::RunConfig(other)));
        assert!(text.starts_with("this server has 1024 entries of 40 bytes, seed 1, not "), "{text}");
    }
    assert!(c.error(&encoded(&Request::RunConfig(Hello { batch_limit: 0, ..hello() }))).contains("batch limit of 0"));
    let mut c = Connection::ready(server.address());
    assert!(c.error(&encoded(&Request::RunConfig(hello()))).contains("comes once"));
    for noise in [&b""[..], b"abc", &[0xff; 40], &encoded(&Request::Query(1, pair(0, 0)))[..20]] {
        let text = c.error(noise);
        assert!(text.starts_with("malformed message: "), "{text}");
    }
    let batch = Request::Batch((0..5).map(|id| (id, pair(0, 0))).collect());
    assert_eq!(c.error(&encoded(&batch)), "a batch of 5 questions; at most 4 are allowed");
    is_served(&mut c);
}

#[test]
fn invalid_question_of_a_batch_does_not_affect_others() {
    let server = server();
    let mut c = Connection::ready(server.address());
    let geometry = Geometry::new(1024, 40, 1);
    let half = geometry.half();
    let ones = vec![0xff; 4];
    let bad = vec![
        (0, pair(0, 0)),
        (1, pair(32, 0)),
        (2, pair(0, 32)),
        (3, Question::Pairs(vec![Place { block: 0, offset: 0 }; 33])),
    ];
    let more = vec![
        (4, Question::Halves { mask: ones, offsets: vec![0; half] }),
        (5, Question::Halves { mask: vec![0xff, 0xff, 0, 0], offsets: vec![99; half] }),
        (6, Question::Halves { mask: vec![0xff], offsets: vec![0; 4] }),
        (7, Question::Halves { mask: vec![0xff, 0xff, 0, 0], offsets: vec![0; half] }),
    ];
    for batch in [bad, more] {
        let Reply::Batch(items, _) = c.ask(&Request::Batch(batch.clone())) else {
            panic!("a batch is answered by a batch")
        };
        for ((id, _), item) in batch.iter().zip(&items) {
            assert_eq!(*id, item.id);
            let served = item.outcome.is_ok();
            assert_eq!(served, [0, 7].contains(id), "{item:?}");
        }
    }
    is_served(&mut c);
}

#[test]
fn oversized_frame_gets_an_error_and_the_server_continues() {
    let server = server();
    let mut c = Connection::ready(server.address());
    // The length, and more of the frame than fits into the socket's buffers at once.
    c.stream.write_all(&0x00ff_ffff_u32.to_le_bytes()).unwrap();
    c.stream.write_all(&vec![7; 100_000]).unwrap();
    let Reply::Error(text) = c.reply() else { panic!("an error was expected") };
    assert!(text.starts_with("a message of 16777215 bytes; at most "), "{text}");
    let mut rest = Vec::new();
    assert_eq!(c.stream.read_to_end(&mut rest).unwrap(), 0, "the connection ends, and nothing else comes");

    // A torn frame, a client that leaves, and one that says nothing.
    for start in [&b""[..], b"\x10", b"\x10\0\0\0ab"] {
        let mut torn = Connection::ready(server.address());
        torn.stream.write_all(start).unwrap();
    }
    let _silent = Connection::open(server.address());
    is_served(&mut Connection::ready(server.address()));
}

#[test]
fn connection_beyond_the_limit_gets_an_error() {
    let server = server();
    let mut open: Vec<Connection> =
        (0..batch_rms24::server::tcp::MAX_CONNECTIONS).map(|_| Connection::ready(server.address())).collect();
    let Reply::Error(text) = Connection::open(server.address()).reply() else { panic!("an error was expected") };
    assert_eq!(text, "64 connections are open already");
    is_served(&mut open[63]);
}

#[test]
fn a_run_uses_the_server_that_is_given_and_refuses_another_database() {
    let server = server();
    let address = server.address().to_string();
    let given = result(&[&format!("--server={address}"), "--ceilings=false"]);
    assert_eq!(given["effective"]["server"], "given");
    let role = Command::new(PROGRAM)
        .args([&["run"], &SMALL[..], &["--ceilings=false"]].concat())
        .env("ASSAY_ROLE_SERVER", &address)
        .output()
        .unwrap();
    let role: Value = serde_json::from_slice(&role.stdout).unwrap();
    assert_eq!(role["effective"]["server"], "given");
    assert_eq!(role["parity"], given["parity"]);

    let other = program(&["run", "--entries=2048", &format!("--server={address}")]);
    assert_eq!(other.status.code(), Some(1));
    let message = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(message.contains("this server has 1024 entries of 40 bytes, seed 1, not 2048"), "{message}");
}

/// Whether a process is there and not only waiting to be collected.
fn is_alive(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "timed out: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn server_exits_with_its_parent() {
    let server = server();
    let id = server.id();
    assert!(is_alive(id));
    drop(server);
    assert!(!is_alive(id));

    // A killed run cannot clean up; its server exits anyway.
    let mut run = Command::new(PROGRAM)
        .args(["run", "--entries=1024", "--queries=5000", "--backup-hints=6000", "--strategy=aes-packed"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let child = || fs::read_to_string(&children).ok()?.split_whitespace().next()?.parse::<u32>().ok();
    wait_until("the server's start", || child().is_some());
    let child = child().unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("the server's end", || !is_alive(child));
}

#[test]
fn server_prints_its_address() {
    let mut process = Command::new(PROGRAM)
        .args(["serve", "--entries=4096", "--entry-size=32", "--batch-limit=9"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let address: SocketAddr = said["address"].as_str().unwrap().parse().unwrap();
    assert!(address.ip().is_loopback() && address.port() != 0);
    assert_eq!(
        (said["entries"].as_u64(), said["entrySize"].as_u64(), said["batchLimit"].as_u64()),
        (Some(4096), Some(32), Some(9))
    );
}

#[test]
fn ceilings_are_optional() {
    assert!(result(&["--ceilings=false"]).get("ceilings").is_none());
    let result = result(&["--strategy=aes-packed"]);
    let ceilings = result["ceilings"].as_array().unwrap();
    let names: Vec<&str> = ceilings.iter().map(|ceiling| ceiling["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"randomEntries") && names.contains(&"loopbackRoundTrips"), "{names:?}");
    assert!(ceilings.iter().all(|ceiling| ceiling["achieved"].as_f64().unwrap() > 0.0));
}

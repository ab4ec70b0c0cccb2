//! Multi-process trials and arms with programs from different images.

use std::os::unix::fs::symlink;

use super::*;

/// A trial with a server and a client that queries it. The second list has the client's arguments.
fn served(server: &[&str], client: &[&str]) -> Bench {
    with_roles(Bench::new(&[client]), server, json!({"on": "Port", "timeoutSeconds": 10}))
}

/// Adds a server to every cell; its last argument, the notes file, is placed in the bench's folder.
pub(crate) fn with_roles(mut bench: Bench, server: &[&str], readiness: Value) -> Bench {
    let own = std::env::current_exe().expect("own path").display().to_string();
    let argv: Vec<&str> = [own.as_str(), "testee"].into_iter().chain(server.iter().copied()).collect();
    let ports = |argv: &[&str]| -> Vec<usize> { (0..argv.len()).filter(|&i| argv[i].contains("$(port.")).collect() };
    bench.wave["workload"]["roles"] = json!([
        {"name": "server", "readiness": readiness, "stopGraceSeconds": 1.5},
        {"name": "client", "result": true},
    ]);
    for cell in bench.wave["cells"].as_array_mut().expect("cells") {
        let client: Vec<String> = serde_json::from_value(cell["argv"].clone()).expect("text");
        cell["ports"] = json!(ports(&client.iter().map(String::as_str).collect::<Vec<_>>()));
        cell["roles"] = json!([{"argv": argv, "ports": ports(&argv)}]);
    }
    bench
}

fn role<'a>(attempt: &'a Attempt, name: &str) -> &'a assay_schema::roles::RoleSeen {
    let roles = attempt.roles.as_ref().expect("roles are recorded");
    roles.iter().find(|role| role.name == name).expect("the role is recorded")
}

const SERVER: &str = "127.0.0.1:$(port.server)";

pub(crate) fn a_server_is_ready_before_its_client_and_ended_after_it() {
    let mut bench = served(&["serve", SERVER], &["ask", SERVER]);
    bench.wave["blocks"][0]["order"] = json!([0, 0]);
    let notes = bench.folder.path().display().to_string();
    bench.wave["cells"][0]["roles"][0]["argv"].as_array_mut().expect("a list").push(json!(notes));
    let (attempts, _) = bench.run();
    for attempt in &attempts {
        assert_message(attempt, Outcome::Succeeded, &[]);
        let server = role(attempt, "server");
        assert_eq!((server.signal, server.killed), (Some(15), None), "it was asked to end, and did");
        assert!(server.ready_seconds.is_some_and(|seconds| seconds < 10.0));
        assert!(server.resources.as_ref().is_some_and(|resources| resources.minor_faults > Some(0)));
        assert!(server.program_digest.as_ref().is_some_and(|digest| digest.starts_with("blake3:")));
        assert_eq!(server.output_tail, None, "a successful trial does not need it");
        assert_eq!((role(attempt, "client").result, role(attempt, "client").resources.is_none()), (Some(true), true));
        assert_eq!(attempt.argv[3], SERVER, "the record has the plan's arguments");
        assert_ne!(server.port, role(attempt, "client").port);
    }
    let pids = noted_pids(bench.folder.path());
    assert_eq!(pids.len(), 2, "a fresh server for every trial");
    assert!(pids.iter().all(|&pid| !is_running(pid)));
}

pub(crate) fn roles_find_each_other_by_variables() {
    let mut bench = served(&["serve", SERVER], &["dump"]);
    let dump = bench.text("dump.json");
    bench.wave["cells"][0]["argv"].as_array_mut().expect("a list").extend([json!(dump), json!("$(port.server)")]);
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    let seen: (Vec<String>, BTreeMap<String, String>) =
        serde_json::from_slice(&fs::read(&dump).expect("the dump")).expect("JSON");
    let port = role(&attempts[0], "server").port.expect("a port").to_string();
    assert_eq!(seen.1["ASSAY_PORT_SERVER"], port);
    assert_eq!(seen.1["ASSAY_ROLE_SERVER"], format!("127.0.0.1:{port}"));
    assert_eq!(seen.0[1], "$(port.server)", "an element that the plan does not name stays as it is");
}

pub(crate) fn readiness_can_be_a_line_or_a_file() {
    let line = json!({"on": "Line", "text": "now serving", "timeoutSeconds": 10});
    let (attempts, _) = with_roles(Bench::new(&[&["ok"]]), &["say", "warming up, then now serving"], line).run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);

    let mut bench = Bench::new(&[&["touched"], &["touched"]]);
    let file = bench.text("ready");
    fs::write(&file, "of an earlier trial").expect("written");
    for cell in 0..2 {
        bench.wave["cells"][cell]["argv"].as_array_mut().expect("a list").push(json!(file));
    }
    let on_file = json!({"on": "File", "text": file, "timeoutSeconds": 10});
    let (attempts, _) = with_roles(bench, &["touch", &file], on_file).run();
    for attempt in &attempts {
        assert_message(attempt, Outcome::Succeeded, &[]);
    }
}

pub(crate) fn a_server_that_never_becomes_ready_fails_its_trial() {
    let cases = [
        (json!({"on": "Port", "timeoutSeconds": 0.5}), "nothing listens on its port"),
        (json!({"on": "Line", "text": "up", "timeoutSeconds": 0.5}), "no line of its output has the text \"up\""),
        (json!({"on": "File", "text": "/none/ready", "timeoutSeconds": 0.5}), "file /none/ready does not exist"),
    ];
    for (readiness, sign) in cases {
        let (attempts, _) = with_roles(Bench::new(&[&["ok"]]), &["say", "still loading"], readiness).run();
        let words = ["role server is not ready after 0.5 s", sign, "the end of its output: still loading"];
        assert_message(&attempts[0], Outcome::Failed, &words);
        assert_eq!(role(&attempts[0], "server").output_tail.as_deref(), Some("still loading\n"));
        assert_eq!(role(&attempts[0], "server").ready_seconds, None);
    }
}

pub(crate) fn a_server_that_ends_early_fails_its_trial_and_not_the_block() {
    let (attempts, _) = served(&["fail", "3", "no such table"], &["ok"]).run();
    assert_message(
        &attempts[0],
        Outcome::Failed,
        &["role server exited with code 3 before it was ready; the end of its output: no such table"],
    );
    let (in_background, _) = served(&["ok"], &["ok"]).run();
    assert_message(&in_background[0], Outcome::Failed, &["code 0 before it was ready", "must stay in the foreground"]);
    assert_eq!(role(&attempts[0], "server").exit_code, Some(3));

    // The server answers once and exits while the client still queries it.
    let mut bench = served(&["serve-once", SERVER, "7"], &["ask-for-ever", SERVER]);
    bench.wave["blocks"][0]["order"] = json!([0, 0]);
    let (attempts, _) = bench.run();
    assert_eq!(attempts.len(), 2);
    for attempt in &attempts {
        assert_message(attempt, Outcome::Failed, &["role server exited with code 7 while the trial ran", "enough"]);
        assert!(attempt.duration_seconds < 20.0, "the client was not left waiting for its time limit");
    }
}

pub(crate) fn server_may_exit_with_code_0_after_readiness() {
    let (attempts, _) = served(&["serve-once", SERVER, "0"], &["ask-until-gone", SERVER]).run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    assert_eq!(role(&attempts[0], "server").exit_code, Some(0));
}

pub(crate) fn a_server_that_crashes_at_its_end_fails_the_trial() {
    let (attempts, _) = served(&["serve-and-crash", SERVER], &["ask", SERVER]).run();
    assert_message(&attempts[0], Outcome::Failed, &["(\"server\")", "signal 6 (SIGABRT)", "which does not count"]);
    assert_eq!(role(&attempts[0], "server").signal, Some(6));
}

pub(crate) fn processes_of_an_ended_server_are_killed_by_the_runner() {
    let (attempts, _) = served(&["serve-and-leave", SERVER], &["ask-until-gone", SERVER]).run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    assert_eq!(attempts[0].left_behind, Some(1));
}

pub(crate) fn a_server_that_cannot_be_started_is_named() {
    let mut bench = served(&["serve", SERVER], &["ok"]);
    bench.wave["cells"][0]["roles"][0]["argv"] = json!(["/no/such/server"]);
    bench.wave["cells"][0]["roles"][0]["ports"] = json!([]);
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::Failed, &["role server: cannot start /no/such/server", "the image contains"]);
}

pub(crate) fn a_server_that_ignores_sigterm_is_killed_with_its_descendants() {
    // It leaves one process in its group and two outside, all of which ignore SIGTERM.
    let line = json!({"on": "Line", "text": "stubborn", "timeoutSeconds": 10});
    let mut bench = with_roles(Bench::new(&[&["ok"], &["ok"]]), &["stubborn-server"], line);
    let notes = bench.folder.path().display().to_string();
    for cell in 0..2 {
        bench.wave["cells"][cell]["roles"][0]["argv"].as_array_mut().expect("a list").push(json!(notes));
    }
    let (attempts, _) = bench.run();
    for attempt in &attempts {
        assert_message(attempt, Outcome::Succeeded, &[]);
        let server = role(attempt, "server");
        assert_eq!((server.signal, server.killed), (Some(9), Some(true)));
        assert!(attempt.duration_seconds < 1.5, "the time to end is no part of the trial");
    }
    let pids = noted_pids(bench.folder.path());
    assert_eq!(pids.len(), 8);
    assert!(pids.iter().all(|&pid| !is_running(pid)), "one escaped");
}

pub(crate) fn sigterm_while_a_server_gets_ready_stops_at_once() {
    let mut bench =
        with_roles(Bench::new(&[&["ok"]]), &["hang"], json!({"on": "Line", "text": "never", "timeoutSeconds": 600}));
    let notes = bench.folder.path().display().to_string();
    bench.wave["cells"][0]["roles"][0]["argv"].as_array_mut().expect("a list").push(json!(notes));
    let runner = bench.command(&["--finish-seconds", "0"]).spawn().expect("the runner starts");
    let pids = wait_for("the server", || Some(noted_pids(bench.folder.path())).filter(|pids| pids.len() == 4));
    let asked = Instant::now();
    rustix::process::kill_process(rustix::process::Pid::from_child(&runner), rustix::process::Signal::TERM)
        .expect("sent");
    let output = runner.wait_with_output().expect("the runner ends");
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    assert!(asked.elapsed() < Duration::from_secs(5));
    assert!(bench.attempts().is_empty());
    assert!(pids.iter().all(|&pid| !is_running(pid)), "one escaped");
}

pub(crate) fn roles_have_exclusive_cpus_if_available() {
    let mut bench = with_roles(Bench::new(&[&["affinity"]]), &["affinity"], Value::Null);
    let (server, client) = (bench.text("server"), bench.text("client"));
    let wave = &mut bench.wave;
    wave["workload"]["roles"] = json!([
        {"name": "server", "cpus": 1, "readiness": {"on": "File", "text": server, "timeoutSeconds": 10}},
        {"name": "client", "cpus": 1, "result": true},
    ]);
    wave["cells"][0]["roles"][0]["argv"].as_array_mut().expect("a list").extend([json!(server), json!("stay")]);
    wave["cells"][0]["argv"].as_array_mut().expect("a list").push(json!(client));
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::Succeeded, &[]);
    let read = |file: &str| fs::read_to_string(file).expect("noted");
    for name in ["server", "client"] {
        let noted = read(if name == "server" { &server } else { &client });
        assert_eq!(
            role(&attempts[0], name).cpus.as_deref(),
            Some(noted.as_str()),
            "the record has the actual affinity"
        );
    }
    let allowed = attempts[0].isolation.cpus_allowed.clone().expect("readable");
    let shared = role(&attempts[0], "server").shared == Some(true);
    assert_eq!(shared, !allowed.contains([',', '-']), "CPUs are shared only where there is one: {allowed}");
    assert_eq!(shared, read(&server) == read(&client));
    assert!(attempts[0].environment.soft.contains_key("roleCpus"));
}

/// Two arms with programs from two images, copied as by an init container.
pub(crate) fn arms_run_the_programs_of_their_images() {
    let mut bench = with_null_arm(Bench::new(&[&["place"], &["place"], &["place"]]));
    let own = std::env::current_exe().expect("own path");
    let images: Vec<Value> = ["old", "new"]
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let from = bench.path(name).join("bin");
            fs::create_dir_all(&from).expect("a folder");
            // A link represents a copy of a large file; its target is copied.
            symlink(&own, from.join("testee")).expect("a link");
            json!({"reference": format!("lab/{name}:1"), "root": bench.text(&format!("images/{i}")), "files": ["/bin"]})
        })
        .collect();
    bench.wave["images"] = json!(images);
    for image in bench.wave["images"].as_array_mut().expect("images") {
        image["files"] = json!(["/bin/testee"]);
    }
    bench.wave["arms"] = json!([
        {"name": "old", "baseline": true, "image": "lab/old:1"},
        {"name": "new", "baseline": false, "image": "lab/new:1"},
        {"name": "null", "baseline": false, "null": true, "image": "lab/old:1"},
    ]);
    for cell in 0..3 {
        let file = bench.text(&format!("place-{cell}.json"));
        bench.wave["cells"][cell]["arm"] = json!(cell);
        bench.wave["cells"][cell]["argv"] = json!(["/bin/testee", "testee", "place", file]);
    }
    // Without the copies every trial reports the reason.
    let (attempts, _) = bench.run();
    assert_message(&attempts[0], Outcome::NotStarted, &["arm old: image lab/old:1", "missing copy"]);
    fs::remove_dir_all(bench.path("out")).expect("removed");

    for name in ["old", "new"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay-runner"));
        command.args(["copy", "--image", &format!("lab/{name}:1"), "--wave"]).arg(bench.path("wave.json"));
        let output = command.arg("--from").arg(bench.path(name)).output().expect("the runner starts");
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("copied 1 files"), "{}", stderr(&output));
    }
    let (attempts, _) = bench.run();
    for (i, attempt) in attempts.iter().enumerate() {
        assert_message(attempt, Outcome::Succeeded, &[]);
        let (program, called): (String, String) =
            serde_json::from_slice(&fs::read(bench.path(&format!("place-{i}.json"))).expect("noted")).expect("JSON");
        assert_eq!(called, "/bin/testee", "argv[0] is unchanged");
        let soft = &attempt.environment.soft;
        let key = |name: &str| soft.get(name).and_then(|value| serde_json::to_value(value).ok());
        let root = bench.text(&format!("images/{}", i % 2));
        assert_eq!(
            program.starts_with(&root),
            i < 2,
            "{program}: the null arm runs a second copy, the others the image's copy"
        );
        assert_eq!(key("image"), Some(json!(["lab/old:1", "lab/new:1"][i % 2])));
        assert!(key("programDigest").is_some() && key("imageFilesDigest").is_some(), "{soft:?}");
    }
}

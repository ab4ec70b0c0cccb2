//! The workload of the tests. Its arguments select its behaviour, including misbehaviour.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use assay_neighbour::{attacks, killed};
use rustix::process::Resource;

const RESULT: &str = r#"{"schema": "assay.dev/result/v1alpha1", "workload": {"name": "testee", "version": "1"}, "metrics": {"latency": {"unit": "s", "samples": [0.25, 0.5]}}, "parity": {"algorithm": "blake3", "digest": "0123456789abcdef0123456789abcdef", "items": 1}}"#;

/// Writes in one of the ways in which a program takes storage.
fn write_much(place: &str, mebibytes: usize, way: &str) -> std::io::Result<()> {
    let text = vec![7_u8; 1 << 20];
    let open = |name: String| fs::OpenOptions::new().create(true).append(true).open(name);
    match way {
        "one file" | "deleted" => {
            let mut file = open(place.to_owned())?;
            if way == "deleted" {
                fs::remove_file(place)?;
            }
            (0..mebibytes).try_for_each(|_| file.write_all(&text))
        }
        "many files" => (0..mebibytes).try_for_each(|i| open(format!("{place}-{i}"))?.write_all(&text)),
        "mapped" => {
            let file = fs::OpenOptions::new().create(true).truncate(true).read(true).write(true).open(place)?;
            file.set_len((mebibytes as u64) << 20)?;
            let (length, all) = (mebibytes << 20, rustix::mm::ProtFlags::WRITE);
            // SAFETY: the mapping is new, and of the length of the file.
            let memory =
                unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, all, rustix::mm::MapFlags::SHARED, &file, 0)? };
            for page in (0..length).step_by(4096) {
                // SAFETY: the byte is inside of the mapping.
                unsafe { memory.cast::<u8>().add(page).write_volatile(7) };
            }
            Ok(())
        }
        "reserved" => {
            let file = open(place.to_owned())?;
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, (mebibytes as u64) << 20)?;
            Ok(())
        }
        _ => panic!("no such way: {way}"),
    }
}

/// `<program> testee <action> <argument>…`
pub(crate) fn main() {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["ok"] => println!("{RESULT}"),
        ["print", text] => println!("{text}"),
        ["partial"] => print!("{}", &RESULT[..120]),
        ["invalid"] => println!("{}", RESULT.replace("0.5]", "\"fast\"]")),
        ["twice"] => println!("{RESULT}\n{RESULT}"),
        ["no-parity"] => println!("{}}}", RESULT.split(", \"parity\"").next().unwrap_or_default()),
        ["fail", code, words] => {
            println!("{RESULT}");
            eprintln!("{words}");
            exit(code.parse().expect("a code"));
        }
        ["abort"] => std::process::abort(),
        ["killed", way] => {
            let way = killed::ALL.iter().find(|known| known.name == way).expect("a known way");
            (way.run)().expect("done");
            println!("{RESULT}");
        }
        // Leaves an orphan, or ends it by a signal.
        ["orphan-by", signal] => {
            let pid = killed::leave_orphan("stay").expect("an orphan");
            if let Ok(signal) = signal.parse() {
                // SAFETY: kill takes two numbers.
                assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "it is there");
            }
            println!("{RESULT}");
        }
        ["endless"] => loop {
            if std::io::stdout().write_all(&[b' '; 4096]).is_err() {
                exit(1);
            }
        },
        // Rewriting dirties three times as many bytes.
        ["grow"] => {
            let samples = "1e15,".repeat(99_999);
            let metric = |i| format!(r#""m{i}": {{"unit": "s", "samples": [{samples}1]}}, "#);
            let metrics: String = (0..15).map(metric).collect();
            println!("{}", RESULT.replace(r#""latency""#, &(metrics + r#""latency""#)));
        }
        ["flood"] => {
            let lines: String = (0..100_000).map(|i| format!("line {i}\n")).collect();
            std::io::stderr().write_all(lines.as_bytes()).expect("written");
            exit(1);
        }
        ["memory", mebibytes] => {
            let bytes = mebibytes.parse::<usize>().expect("a number") << 20;
            black_box(vec![1_u8; bytes]);
            println!("{RESULT}");
        }
        ["leader"] => {
            let own = rustix::process::getpid();
            assert_eq!(rustix::process::getpgid(None).expect("a group"), own);
            assert_eq!(std::io::stdin().read(&mut [0]).expect("readable"), 0);
            println!("{RESULT}");
        }
        ["file", path] => {
            println!("chatter on standard output");
            fs::write(path, RESULT).expect("written");
        }
        // Creates a file in every writable location and reports earlier ones.
        ["plant", name] => {
            let variables = std::env::vars().filter(|(name, _)| name == "TMPDIR" || name.starts_with("XDG_"));
            for (variable, folder) in variables {
                let file = Path::new(&folder).join("planted");
                if file.exists() {
                    eprintln!("found {} in {variable}", fs::read_to_string(&file).expect("readable"));
                }
                fs::write(file, name).expect("written");
            }
            println!("{RESULT}");
        }
        ["close"] => {
            let closed = Path::new(&std::env::var("TMPDIR").expect("a folder")).join("closed");
            fs::create_dir(&closed).expect("made");
            fs::write(closed.join("planted"), "").expect("written");
            fs::set_permissions(&closed, fs::Permissions::from_mode(0o0)).expect("closed");
            eprintln!("{}", closed.display());
            println!("{RESULT}");
        }
        ["prepare", name] => {
            let file = Path::new(&std::env::var("ASSAY_PREPARED").expect("declared")).join("index");
            match fs::read_to_string(&file) {
                Ok(found) => eprintln!("found {found}"),
                Err(_) => fs::write(&file, name).expect("written"),
            }
            println!("{RESULT}");
        }
        ["remove", folder] => {
            fs::remove_dir_all(folder).expect("removed");
            println!("{RESULT}");
        }
        // Writes to a place until it is refused, or has written the mebibytes, and succeeds in either case.
        ["write", place, mebibytes, way] => {
            let place = place.replace("TMPDIR", &std::env::var("TMPDIR").unwrap_or_default());
            if let Err(error) = write_much(&place, mebibytes.parse().expect("a number"), way) {
                eprintln!("refused: {error}");
            }
            println!("{RESULT}");
        }
        ["dump", path, ..] => {
            let environment: BTreeMap<String, String> = std::env::vars().collect();
            let seen = serde_json::to_vec(&(&arguments[1..], environment)).expect("JSON");
            fs::write(path, seen).expect("written");
            println!("{RESULT}");
        }
        ["reveal", ref names @ ..] => {
            for name in names {
                eprintln!("{name}={}", std::env::var(name).unwrap_or_default());
            }
            println!("{RESULT}");
        }
        ["layout", path] => {
            fs::copy("/proc/self/personality", path).expect("copied");
            println!("{RESULT}");
        }
        ["place", path] => {
            let own = std::env::current_exe().expect("own path").display().to_string();
            let called = std::env::args().next().expect("a name");
            fs::write(path, serde_json::to_vec(&(own, called)).expect("JSON")).expect("written");
            println!("{RESULT}");
        }
        ["attack", "kill", _] => {
            rustix::process::kill_process(rustix::process::getppid().expect("a parent"), rustix::process::Signal::KILL)
                .expect("it may be killed")
        }
        // Changes attributes of the parent that other trials inherit.
        ["handicap", what] => {
            let others = rustix::process::getppid();
            let (pid, none) = (others.expect("a parent").as_raw_nonzero().get(), 0);
            // SAFETY: the calls take numbers, and a number that outlives them.
            let done = unsafe {
                match what {
                    "batch" => libc::syscall(libc::SYS_sched_setscheduler, pid, libc::SCHED_BATCH, &raw const none),
                    "idle" => libc::syscall(libc::SYS_sched_setscheduler, pid, libc::SCHED_IDLE, &raw const none),
                    // The idle I/O class.
                    "disk" => libc::syscall(libc::SYS_ioprio_set, 1, pid, 3 << 13),
                    _ => 0,
                }
            };
            assert_eq!(done, 0, "it may be changed");
            let limit = |limit, most| {
                let new = rustix::process::Rlimit { current: Some(32), maximum: most };
                rustix::process::prlimit(others, limit, new).expect("it may be changed");
            };
            match what {
                "files" => limit(Resource::Nofile, rustix::process::getrlimit(Resource::Nofile).maximum),
                "all files" => limit(Resource::Nofile, Some(32)),
                "cpus" => {
                    let mine = rustix::thread::sched_getaffinity(None).expect("readable");
                    let mut one = rustix::thread::CpuSet::new();
                    one.set((0..1024).find(|&cpu| mine.is_set(cpu)).expect("one"));
                    rustix::thread::sched_setaffinity(others, &one).expect("it may be changed");
                }
                _ => {}
            }
            println!("{RESULT}");
        }
        // Prints the inherited attributes.
        ["inherited"] => {
            let limits = fs::read_to_string("/proc/self/limits").expect("readable");
            let status = fs::read_to_string("/proc/self/status").expect("readable");
            let list = status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).expect("a list");
            // SAFETY: the calls take numbers.
            let (policy, io) = unsafe { (libc::sched_getscheduler(0), libc::syscall(libc::SYS_ioprio_get, 1, 0)) };
            eprintln!("{limits}{list}\npolicy {policy}, I/O priority {io}");
            println!("{RESULT}");
        }
        ["attack", name, at] => {
            let at = || Some(PathBuf::from(at));
            let target = attacks::Target { socket: at(), attempts: at(), program: at(), output: at() };
            match attacks::attack(name, &target) {
                Ok(got) => eprintln!("{name}: got {got}"),
                Err(refused) => eprintln!("{name}: refused: {refused}"),
            }
            println!("{RESULT}");
        }
        ["hang", notes] => {
            start_stubborn(notes);
            note(notes);
            stay();
        }
        ["leave", notes] => {
            start_stubborn(notes);
            println!("{RESULT}");
        }
        ["stubborn", notes, kind] => {
            if kind != "grouped" {
                rustix::process::setsid().expect("a session");
            }
            if kind == "headless" {
                lose_the_first_thread(notes);
            }
            note(notes);
            stay();
        }
        ["serve", address, ref notes @ ..] => {
            let listener = TcpListener::bind(address).expect("a free port");
            if let [notes] = notes {
                fs::write(Path::new(notes).join(format!("pid-{}", std::process::id())), "").expect("noted");
            }
            for stream in listener.incoming() {
                stream.expect("a connection").write_all(b"!").expect("written");
            }
        }
        ["serve-once", address, code] => {
            let listener = TcpListener::bind(address).expect("a free port");
            listener.accept().expect("a connection").0.write_all(b"!").expect("written");
            eprintln!("that is enough");
            exit(code.parse().expect("a code"));
        }
        ["ask", address] => {
            ask(address);
            println!("{RESULT}");
        }
        ["ask-until-gone", address] => {
            ask(address);
            // The server stops listening only after its exit code is determined.
            while TcpStream::connect(address).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            println!("{RESULT}");
        }
        ["ask-for-ever", address] => {
            ask(address);
            stay();
        }
        // Serves once, and crashes when it is asked to end.
        ["serve-and-crash", address] => {
            // SAFETY: the handler only calls abort, which is async-signal-safe.
            unsafe { signal_hook::low_level::register(15, || std::process::abort()) }.expect("SIGTERM is taken over");
            let listener = TcpListener::bind(address).expect("a free port");
            for stream in listener.incoming() {
                stream.expect("a connection").write_all(b"!").expect("written");
            }
        }
        // Serves once, and ends before a process of its group.
        ["serve-and-leave", address] => {
            let listener = TcpListener::bind(address).expect("a free port");
            listener.accept().expect("a connection").0.write_all(b"!").expect("written");
            // The runner may stop the group before the server is dead, and the orphan inherits that SIGTERM is ignored.
            // SAFETY: SIG_IGN runs no code.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
            killed::leave_orphan("stay").expect("an orphan");
        }
        ["say", words] => {
            println!("{words}");
            stay();
        }
        ["touch", file] => {
            assert!(!Path::new(file).exists(), "the file of an earlier trial is still there");
            // Renamed into place, so that readers find it complete.
            fs::write(format!("{file}.new"), "touched").expect("written");
            fs::rename(format!("{file}.new"), file).expect("renamed");
            stay();
        }
        ["touched", file] => {
            assert_eq!(fs::read_to_string(file).expect("readable"), "touched");
            println!("{RESULT}");
        }
        ["stubborn-server", notes] => {
            start_stubborn(notes);
            note(notes);
            println!("a stubborn server");
            stay();
        }
        ["affinity", file, ref then @ ..] => {
            let status = fs::read_to_string("/proc/self/status").expect("readable");
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list");
            // Renamed into place, so that readers find it complete.
            fs::write(format!("{file}.new"), list.trim()).expect("written");
            fs::rename(format!("{file}.new"), file).expect("renamed");
            println!("{RESULT}");
            if *then == ["stay"] {
                stay();
            }
        }
        _ => panic!("a testee does not know {arguments:?}"),
    }
}

/// Starts three processes that hold standard output open. Two leave the process group, and the main thread of one of
/// these exits.
#[expect(
    clippy::zombie_processes,
    reason = "the runner has to cope with workloads that do not wait for their children"
)]
fn start_stubborn(notes: &str) {
    for kind in ["grouped", "escaped", "headless"] {
        let own = std::env::current_exe().expect("own path");
        let child = Command::new(own).args(["testee", "stubborn", notes, kind]).spawn().expect("a child");
        let noted = Path::new(notes).join(format!("pid-{}", child.id()));
        while !noted.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Exits the main thread, after which the process is shown as a zombie, and continues in another.
fn lose_the_first_thread(notes: &str) -> ! {
    let notes = notes.to_owned();
    std::thread::spawn(move || {
        while !fs::read_to_string("/proc/self/stat").is_ok_and(|stat| stat.contains(") Z ")) {
            std::thread::sleep(Duration::from_millis(1));
        }
        note(&notes);
        stay()
    });
    // SAFETY: only this thread ends, and the other one borrows nothing of it.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("this thread has ended")
}

fn ask(address: &str) {
    let mut answer = [0];
    TcpStream::connect(address).expect("a server").read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, *b"!");
}

/// Writes this process's id to the notes file once SIGTERM is ignored.
fn note(notes: &str) {
    signal_hook::flag::register(15, Arc::new(AtomicBool::new(false))).expect("SIGTERM is taken over");
    fs::write(Path::new(notes).join(format!("pid-{}", std::process::id())), "").expect("noted");
}

fn stay() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

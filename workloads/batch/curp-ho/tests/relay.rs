//! A relay adds the requested delay, on the loopback device and between network namespaces, and reports its error.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use batch_curp_ho::process::relay::Kept;

const DELAY: Duration = Duration::from_micros(3000);
const TRIPS: usize = 40;

struct Relay {
    child: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
    address: String,
}

impl Relay {
    fn start(listen: &str, to: &str) -> Self {
        let delay = format!("--delay-micros={}", DELAY.as_micros());
        let mut child = Command::new(env!("CARGO_BIN_EXE_batch-curp-ho"))
            .args(["relay", &format!("--listen={listen}"), &format!("--to={to}"), &delay])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listens ").unwrap().to_owned();
        Self { input: child.stdin.take().unwrap(), child, output, address }
    }

    fn kept(&mut self) -> Kept {
        writeln!(self.input, "report").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Echoes data until the connection ends.
fn echo(listener: TcpListener) {
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.set_nodelay(true).unwrap();
            let mut room = [0; 1000];
            while let Ok(length @ 1..) = stream.read(&mut room) {
                stream.write_all(&room[..length]).unwrap();
            }
        }
    });
}

/// The times of round trips, shortest first.
fn round_trips(address: &str) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut times: Vec<Duration> = (0..TRIPS)
        .map(|_| {
            let begun = Instant::now();
            stream.write_all(&[7; 100]).unwrap();
            stream.read_exact(&mut [0; 100]).unwrap();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

fn check(times: &[Duration], mut relay: Relay) {
    assert!(times[0] >= 2 * DELAY, "a round trip of {:?} although each way takes {DELAY:?}", times[0]);
    let late = relay.kept().late;
    assert_eq!(late.count(), 2 * TRIPS as u64, "each way of each trip is a piece");
    // The excess delay of a round trip is that of both directions plus noise outside of the relay; a tally is accurate
    // to 3.5 %.
    let own = Duration::from_nanos((2.0 * late.quantile(0.0).unwrap() / 1.035) as u64);
    assert!(times[0] >= 2 * DELAY + own, "{:?} {own:?}", times[0]);
}

#[test]
fn on_the_loopback_a_round_trip_takes_twice_the_delay_longer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    echo(listener);
    let relay = Relay::start("127.0.0.1:0", &to);
    let times = round_trips(&relay.address);
    check(&times, relay);
}

#[test]
fn absent_peer_is_absent_through_a_relay() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let relay = Relay::start("127.0.0.1:0", &free);
    let mut stream = TcpStream::connect(&relay.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert!(matches!(stream.read(&mut [0; 10]), Ok(0) | Err(_)));
}

/// Two network namespaces with a cable between them; they are gone when this is.
struct Namespaces([String; 2]);

impl Namespaces {
    /// `None` where this user may not make them.
    fn new() -> Option<Self> {
        let names = ["a", "b"].map(|end| format!("curp-{}-{end}", std::process::id()));
        let own = Self(names.clone());
        let ip = |arguments: &str| {
            let output = Command::new("ip").args(arguments.split_whitespace()).output().ok()?;
            output.status.success().then_some(())
        };
        let [a, b] = &names;
        let id = std::process::id();
        ip(&format!("netns add {a}"))?;
        ip(&format!("netns add {b}"))?;
        ip(&format!("link add ca{id} netns {a} type veth peer name cb{id} netns {b}"))?;
        for (name, link, address) in [(a, format!("ca{id}"), "10.231.7.1/24"), (b, format!("cb{id}"), "10.231.7.2/24")]
        {
            ip(&format!("-n {name} addr add {address} dev {link}"))?;
            ip(&format!("-n {name} link set {link} up"))?;
            // Traffic to the namespace's own address uses this device.
            ip(&format!("-n {name} link set lo up"))?;
        }
        Some(own)
    }

    /// Runs `work` on a new thread in a namespace, which child processes inherit.
    fn within<T: Send>(&self, which: usize, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/var/run/netns/{}", self.0[which])).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // SAFETY: no pointers are passed, and the descriptor is open; only this thread changes its namespace.
                assert_eq!(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
                work()
            });
            thread.join().unwrap()
        })
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
        }
    }
}

#[test]
fn relay_delays_between_network_namespaces() {
    let Some(namespaces) = Namespaces::new() else {
        eprintln!("this user may not make network namespaces");
        return;
    };
    namespaces.within(1, || echo(TcpListener::bind("10.231.7.2:7000").unwrap()));
    let (times, relay) = namespaces.within(0, || {
        let relay = Relay::start("10.231.7.1:7001", "10.231.7.2:7000");
        (round_trips(&relay.address), relay)
    });
    check(&times, relay);
}

//! Service processes of a trial: started before it, monitored during it, stopped after it.
//!
//! A trial may need a server, or a server and a cache. The role with the result starts last, and its exit ends the
//! trial. The other roles start sequentially, each after the readiness of the previous one.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use assay_schema::roles::{ReadyOn, Role, RoleSeen};
use rustix::process::{Pid, Signal};

use crate::capture::{Capture, Keep, Search};
use crate::cpus::CpuSet;
use crate::deaths::Deaths;
use crate::ended::{How, Served};
use crate::exec::Program;
use crate::host::Host;
use crate::log::log;
use crate::process::{self, Prepared, SWEEP_TIME, Started};
use crate::scratch::Scratch;
use crate::signals::Signals;
use crate::usage::{self, Exit, Reap, Reaped};
use crate::words;

/// Maximum amount of a role's output in an attempt.
const TAIL_LIMIT: usize = 4096;
/// Minimum and maximum polling interval for a port or a file.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// One role without the result, ready to start.
#[derive(Debug)]
pub(crate) struct Service<'a> {
    pub(crate) role: &'a Role,
    pub(crate) program: String,
    pub(crate) argv: Vec<String>,
    pub(crate) seat: Seat,
}

/// A role's share of the block's resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) port: u16,
    /// CPU affinity; absent if no role reserves CPUs.
    pub(crate) cpus: Option<CpuSet>,
    /// Whether it requested CPUs and the block has too few.
    pub(crate) shared: bool,
}

/// Assigns a port and CPUs to every role. Ports are free ones of the loopback interface, new for each trial.
pub(crate) fn seats(roles: &[Role], allowed: Option<&CpuSet>) -> Result<Vec<Seat>, String> {
    // All sockets stay open until all ports are known, so that ports are distinct.
    let free = |role: &Role| {
        let listener = TcpListener::bind(("127.0.0.1", 0));
        listener
            .and_then(|l| Ok((l.local_addr()?.port(), l)))
            .map_err(|error| format!("role {}: no free port on the loopback interface: {error}", role.name))
    };
    let ports = roles.iter().map(free).collect::<Result<Vec<_>, _>>()?;
    let shares = shares(allowed, &roles.iter().map(|role| role.cpus.unwrap_or(0) as usize).collect::<Vec<_>>());
    Ok(ports.iter().zip(shares).map(|((port, _), (cpus, shared))| Seat { port: *port, cpus, shared }).collect())
}

/// Partitions the block's CPUs in order. Each role gets the number it requests, and roles without a request share the
/// rest. With too few CPUs all roles share all of them, and the attempts record it for the roles with a request.
fn shares(allowed: Option<&CpuSet>, asked: &[usize]) -> Vec<(Option<CpuSet>, bool)> {
    let total: usize = asked.iter().sum();
    let Some(allowed) = allowed.filter(|_| total > 0) else { return vec![(None, false); asked.len()] };
    let needed = total + usize::from(asked.contains(&0));
    if needed > allowed.len() {
        return asked.iter().map(|&count| (Some(allowed.clone()), count > 0)).collect();
    }
    let rest: CpuSet = allowed.iter().skip(total).collect();
    let mut own = allowed.iter();
    let share = |&count: &usize| if count == 0 { rest.clone() } else { own.by_ref().take(count).collect() };
    asked.iter().map(share).map(|cpus| (Some(cpus), false)).collect()
}

/// Describes the assignment for the soft key `roleCpus`.
pub(crate) fn describe(roles: &[Role], seats: &[Seat]) -> Option<String> {
    let parts = roles.iter().zip(seats).map(|(role, seat)| {
        let cpus = seat.cpus.as_ref()?;
        Some(format!("{} {cpus}{}", role.name, if seat.shared { " (shared)" } else { "" }))
    });
    parts.collect::<Option<Vec<_>>>().filter(|parts| !parts.is_empty()).map(|parts| parts.join(", "))
}

/// The variables by which roles find each other: `ASSAY_PORT_<ROLE>` with the port and `ASSAY_ROLE_<ROLE>` with the
/// address.
pub(crate) fn variables<'a>(roles: &'a [Role], seats: &'a [Seat]) -> impl Iterator<Item = (String, String)> + 'a {
    roles.iter().zip(seats).flat_map(|(role, seat)| {
        let name = role.name.to_uppercase().replace('-', "_");
        [
            (format!("ASSAY_PORT_{name}"), seat.port.to_string()),
            (format!("ASSAY_ROLE_{name}"), format!("127.0.0.1:{}", seat.port)),
        ]
    })
}

/// Replaces `$(port.ROLE)` in the given elements of `argv` only.
pub(crate) fn with_ports(argv: &[String], elements: &[usize], roles: &[Role], seats: &[Seat]) -> Vec<String> {
    let mut argv = argv.to_vec();
    for &element in elements {
        for (role, seat) in roles.iter().zip(seats) {
            argv[element] = argv[element].replace(&format!("$(port.{})", role.name), &seat.port.to_string());
        }
    }
    argv
}

/// The records of all roles, the one with the result last. `served` has the started ones.
pub(crate) fn record(
    roles: &[Role],
    seats: &[Seat],
    digests: &[Option<String>],
    served: &[Served],
    succeeded: bool,
) -> Vec<RoleSeen> {
    let seen = |(i, (role, seat)): (usize, (&Role, &Seat))| {
        let mut seen = RoleSeen {
            name: role.name.clone(),
            result: role.result.filter(|&result| result),
            cpus: seat.cpus.as_ref().map(CpuSet::listed),
            shared: seat.shared.then_some(true),
            port: Some(u64::from(seat.port)),
            program_digest: digests.get(i).cloned().flatten(),
            ..RoleSeen::default()
        };
        let Some(served) = served.get(i) else { return seen };
        seen.ready_seconds = served.ready.map(|ready| ready.as_secs_f64());
        seen.killed = served.killed.then_some(true);
        let tail = String::from_utf8_lossy(&served.output);
        seen.output_tail = (!succeeded && !tail.is_empty()).then(|| tail.into_owned());
        if let Some(ended) = &served.ended {
            match ended.exit() {
                Exit::Code(code) => seen.exit_code = Some(i64::from(code)),
                Exit::Signal(signal) => seen.signal = Some(i64::from(signal)),
            }
            seen.resources = Some(ended.usage.resources());
        }
        seen
    };
    roles.iter().zip(seats).enumerate().map(seen).collect()
}

/// Peak memory of all services together.
pub(crate) fn memory(served: &[Served]) -> u64 {
    served.iter().filter_map(|served| Some(served.ended.as_ref()?.usage.resident())).sum()
}

/// The started services of a trial.
#[derive(Debug, Default)]
pub(crate) struct Company<'a>(Vec<Member<'a>>);

#[derive(Debug)]
struct Member<'a> {
    service: &'a Service<'a>,
    pid: Pid,
    floor: Option<u64>,
    output: Capture,
    search: Option<Search>,
    start: Instant,
    ready: Option<Duration>,
    ended: Option<Reaped>,
    killed: bool,
}

/// Result of starting the services.
#[derive(Debug)]
pub(crate) enum Start {
    /// All are ready.
    Ready,
    /// A service could not be launched.
    NotStarted(How),
    /// A service was launched and did not become ready.
    Failed(String),
    /// The services reached a limit of storage.
    ReachedLimit(String),
    /// The runner was asked to stop.
    Stopped,
}

impl<'a> Company<'a> {
    /// Starts the services in order, each after the readiness of the previous one.
    pub(crate) fn start(
        &mut self,
        (signals, scratch): (&Signals, &Scratch),
        services: &'a [Service<'a>],
        env: (&BTreeMap<String, String>, &[Vec<u8>]),
        deaths: &mut Deaths,
    ) -> Result<Start> {
        for service in services {
            match Member::launch(service, env)? {
                Ok(member) => self.0.push(member),
                Err(how) => return Ok(Start::NotStarted(how.of(&format!("role {}", service.role.name)))),
            }
            match self.until_ready(signals, scratch, deaths)? {
                Start::Ready => {}
                other => return Ok(other),
            }
        }
        Ok(Start::Ready)
    }

    /// Waits until the last member is ready.
    fn until_ready(&mut self, signals: &Signals, scratch: &Scratch, deaths: &mut Deaths) -> Result<Start> {
        let mut pause = PAUSES.0;
        loop {
            signals.clear();
            if signals.must_stop().is_some() {
                return Ok(Start::Stopped);
            }
            if let Some(reason) = scratch.reached_by_now() {
                return Ok(Start::ReachedLimit(reason));
            }
            self.drain()?;
            let Some(member) = self.0.last_mut() else { return Ok(Start::Ready) };
            if member.is_ready() {
                member.ready = Some(member.start.elapsed());
                return Ok(Start::Ready);
            }
            if let Some(reason) = self.gone(deaths)? {
                return Ok(Start::Failed(reason));
            }
            let Some(member) = self.0.last() else { return Ok(Start::Ready) };
            let (waited, limit) = (member.start.elapsed(), member.patience());
            if waited >= limit {
                return Ok(Start::Failed(member.not_ready_in_time()));
            }
            process::wait(signals, &self.captures(), scratch.pause(pause.min(limit - waited)))?;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Returns the reason why the trial cannot continue: a required service has exited. A service that exits with code
    /// 0 after it was ready has completed its work.
    pub(crate) fn gone(&mut self, deaths: &mut Deaths) -> Result<Option<String>> {
        for member in &mut self.0 {
            if member.ended.is_none() && process::has_ended(member.pid)? {
                member.reap(deaths)?;
                member.output.drain().context("cannot read a role's output")?;
                if let Some(reason) = member.why_gone() {
                    return Ok(Some(reason));
                }
            }
        }
        Ok(None)
    }

    /// Reads the members' output without blocking.
    pub(crate) fn drain(&mut self) -> Result<()> {
        for member in &mut self.0 {
            let search = &mut member.search;
            let look = |new: &[u8]| search.iter_mut().for_each(|search| search.look_at(new));
            member.output.drain_with(look).context("cannot read a role's output")?;
        }
        Ok(())
    }

    /// Returns the descriptors to poll.
    pub(crate) fn captures(&self) -> Vec<Option<&Capture>> {
        self.0.iter().map(|member| Some(&member.output)).collect()
    }

    /// Stops the members in reverse order, with SIGTERM and, after the grace period, SIGKILL. A runner that was asked
    /// to stop does not wait.
    pub(crate) fn stop(mut self, (signals, scratch): (&Signals, &Scratch), deaths: &mut Deaths) -> Result<Vec<Served>> {
        for i in (0..self.0.len()).rev() {
            if self.0[i].ended.is_none() {
                self.stop_one(i, signals, scratch, deaths)?;
            }
        }
        self.drain()?;
        let served = |member: Member<'_>| Served {
            ready: member.ready,
            ended: member.ended,
            killed: member.killed,
            output: member.output.into_bytes(),
        };
        Ok(self.0.into_iter().map(served).collect())
    }

    fn stop_one(&mut self, i: usize, signals: &Signals, scratch: &Scratch, deaths: &mut Deaths) -> Result<()> {
        let pid = self.0[i].pid;
        // The process has not been reaped, so that its process group id cannot have been reused.
        let _ = rustix::process::kill_process_group(pid, Signal::TERM);
        let asked = Instant::now();
        let mut limit = self.0[i].grace();
        loop {
            signals.clear();
            self.drain()?;
            if process::has_ended(pid)? {
                return self.0[i].reap(deaths);
            }
            if asked.elapsed() >= limit
                || signals.must_stop().is_some()
                || !self.0[i].killed && scratch.reached_by_now().is_some()
            {
                if self.0[i].killed {
                    log(format_args!("warning: role {} survived SIGKILL", self.0[i].service.role.name));
                    return Ok(());
                }
                deaths.before_kill(Some(pid));
                let _ = rustix::process::kill_process_group(pid, Signal::KILL);
                (self.0[i].killed, limit) = (true, asked.elapsed() + SWEEP_TIME);
            }
            // SIGCHLD wakes the runner.
            process::wait(signals, &self.captures(), scratch.pause(limit.saturating_sub(asked.elapsed())))?;
        }
    }
}

impl<'a> Member<'a> {
    /// Launches a service; the inner error is a launch failure of the program.
    fn launch(service: &'a Service<'a>, env: (&BTreeMap<String, String>, &[Vec<u8>])) -> Result<Result<Self, How>> {
        if let Some((ReadyOn::File, file)) = service.waits_for()
            && let Err(reason) = words::clear_output(Path::new(file))
        {
            return Ok(Err(reason.into()));
        }
        let program = match Program::find(&service.program, &service.argv, env.0, env.1) {
            Ok(program) => program,
            Err(error) => return Ok(Err(process::cannot_start(&service.program, &error))),
        };
        let (reader, writer) = io::pipe().context("cannot make a pipe")?;
        let output = Capture::new(reader.into(), Keep::Tail, TAIL_LIMIT)?;
        let mut launch = Prepared::new(program, service.seat.cpus.as_ref())?;
        launch.command.stdout(writer.try_clone().context("cannot share a pipe")?).stderr(writer);
        let start = Instant::now();
        let Started { pid, floor } = match launch.spawn() {
            Ok(started) => started,
            Err(error) => return Ok(Err(process::cannot_start(&service.program, &error))),
        };
        let search = match service.waits_for() {
            Some((ReadyOn::Line, text)) => Some(Search::new(text)),
            _ => None,
        };
        Ok(Ok(Self { service, pid, floor, output, search, start, ready: None, ended: None, killed: false }))
    }

    fn is_ready(&self) -> bool {
        match self.service.waits_for() {
            None => true,
            Some((ReadyOn::Port, _)) => listens(&Host::real(), self.service.seat.port),
            Some((ReadyOn::Line, _)) => self.search.as_ref().is_some_and(Search::found),
            Some((ReadyOn::File, file)) => Path::new(file).exists(),
        }
    }

    fn patience(&self) -> Duration {
        self.service.role.readiness.as_ref().map_or(Duration::ZERO, |readiness| seconds(readiness.timeout_seconds))
    }

    fn grace(&self) -> Duration {
        self.service.role.stop_grace_seconds.map_or(DEFAULT_GRACE, seconds)
    }

    fn not_ready_in_time(&self) -> String {
        let sign = match self.service.waits_for() {
            Some((ReadyOn::Port, _)) => format!("nothing listens on its port {}", self.service.seat.port),
            Some((ReadyOn::Line, text)) => format!("no line of its output has the text {text:?}"),
            Some((ReadyOn::File, file)) => format!("file {file} does not exist"),
            None => "nothing to wait for".to_owned(),
        };
        let (name, limit) = (&self.service.role.name, self.patience().as_secs_f64());
        format!("role {name} is not ready after {limit} s: {sign}{}", words::last_words(self.output.bytes()))
    }

    /// Reaps a member that has exited and kills its remaining process group.
    fn reap(&mut self, deaths: &mut Deaths) -> Result<()> {
        deaths.before_kill(Some(self.pid));
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
        if let Reap::Done(ended) = usage::reap(Some(self.pid)).context("cannot reap a role")? {
            deaths.service(&ended, &self.service.role.name, self.killed);
            self.ended = Some(ended.above(self.floor));
        }
        Ok(())
    }

    fn why_gone(&self) -> Option<String> {
        let exit = self.ended.as_ref()?.exit();
        let how = match exit {
            Exit::Code(0) if self.ready.is_some() => return None,
            Exit::Code(code) => format!("exited with code {code}"),
            Exit::Signal(signal) => format!("was terminated by signal {signal} ({})", usage::signal_name(signal)),
        };
        let when = match (self.ready, exit) {
            (Some(_), _) => "while the trial ran",
            // The program may have daemonized itself.
            (None, Exit::Code(0)) => "before it was ready; a role must stay in the foreground",
            (None, _) => "before it was ready",
        };
        let words = words::last_words(self.output.bytes());
        Some(format!("role {} {how} {when}{words}", self.service.role.name))
    }
}

impl Service<'_> {
    fn waits_for(&self) -> Option<(ReadyOn, &str)> {
        let readiness = self.role.readiness.as_ref()?;
        Some((readiness.on, readiness.text.as_deref().unwrap_or("")))
    }
}

fn seconds(seconds: f64) -> Duration {
    const LONGEST: Duration = Duration::from_secs(24 * 3600);
    Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST)
}

/// Whether a socket of this network namespace listens on a port. A connection attempt would be visible to the server.
fn listens(host: &Host, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].iter().any(|file| {
        let text = host.text(file).unwrap_or_default();
        text.lines().skip(1).any(|line| {
            let mut words = line.split_ascii_whitespace().skip(1);
            let (local, state) = (words.next(), words.nth(1));
            local.is_some_and(|local| local.ends_with(&suffix)) && state == Some(LISTEN)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn role(name: &str, cpus: u64) -> Role {
        Role {
            name: name.into(),
            result: None,
            cpus: Some(cpus).filter(|&cpus| cpus > 0),
            readiness: None,
            stop_grace_seconds: None,
        }
    }

    fn said(allowed: &str, asked: &[u64]) -> Option<String> {
        let roles: Vec<Role> = asked.iter().enumerate().map(|(i, &cpus)| role(["a", "b", "c"][i], cpus)).collect();
        let seats = seats(&roles, CpuSet::parse(allowed).as_ref()).expect("ports");
        describe(&roles, &seats)
    }

    #[test]
    fn cpus_are_partitioned_in_order_and_shared_if_too_few() {
        assert_eq!(said("4-7", &[1, 2]).as_deref(), Some("a 4, b 5-6"));
        assert_eq!(said("4-7", &[1, 0, 1]).as_deref(), Some("a 4, b 6-7, c 5"), "who asks for none gets the rest");
        assert_eq!(said("1", &[1, 1]).as_deref(), Some("a 1 (shared), b 1 (shared)"));
        assert_eq!(said("2-3", &[2, 0]).as_deref(), Some("a 2-3 (shared), b 2-3"), "nothing would be left for b");
        assert_eq!(said("0-3", &[0, 0]), None, "without a request no role is pinned");
    }

    #[test]
    fn roles_have_distinct_ports() {
        let roles = [role("server", 0), role("side-car", 0)];
        let seats = seats(&roles, None).expect("ports");
        assert_ne!(seats[0].port, seats[1].port);
        let variables: BTreeMap<_, _> = variables(&roles, &seats).collect();
        assert_eq!(variables["ASSAY_PORT_SIDE_CAR"], seats[1].port.to_string());
        assert_eq!(variables["ASSAY_ROLE_SERVER"], format!("127.0.0.1:{}", seats[0].port));
    }

    #[test]
    fn ports_are_replaced_in_the_given_elements_only() {
        let roles = [role("server", 0), role("client", 0)];
        let seat = |port| Seat { port, cpus: None, shared: false };
        let argv = ["/c", "--at=h:$(port.server)/$(port.client)", "$(port.server)"].map(String::from);
        let expected = ["/c", "--at=h:4000/4001", "$(port.server)"];
        assert_eq!(with_ports(&argv, &[1], &roles, &[seat(4000), seat(4001)]), expected);
    }

    #[test]
    fn listens_distinguishes_listening_from_connected() {
        let head = "  sl  local_address rem_address   st tx_queue\n";
        let fake = FakeHost::new(&[
            ("/proc/self/net/tcp", &format!("{head}   0: 0100007F:1F90 00000000:0000 0A 00000000\n")),
            (
                "/proc/self/net/tcp6",
                &format!(
                    "{head}   0: 0000000000000000FFFF00000100007F:1F91 0000:1F92 01 0\n   1: 00:1F93 00:0000 0A 0\n"
                ),
            ),
        ]);
        let listening: Vec<u16> = (8079..8085).filter(|&port| listens(&fake.host(), port)).collect();
        assert_eq!(listening, [8080, 8083]);
    }

    #[test]
    fn listens_finds_a_real_listener() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert!(listens(&Host::real(), port));
        drop(listener);
        assert!(!listens(&Host::real(), port));
    }
}

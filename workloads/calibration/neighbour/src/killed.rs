//! Ways in which a process of a workload is killed, for tests that such a trial is no success.
//!
//! The workload is careless: as long as it lives itself, it overlooks the deaths of its helpers, prints a figure and exits
//! with code 0.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};

/// Memory that a way allocates beyond the limit of its cgroup, in bytes.
const MUCH: usize = 600 << 20;
/// Time for an orphan to die.
const PATIENCE: Duration = Duration::from_secs(20);

/// A requirement of a way on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A cgroup with a memory limit below the allocation.
    MemoryCgroup,
    /// A cgroup with a limit of processes.
    PidsCgroup,
}

/// A way to be killed.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// Its name.
    pub name: &'static str,
    /// The requirement on the machine.
    pub needs: Needs,
    /// Does it. It returns if this process survives.
    pub run: fn() -> io::Result<()>,
}

const fn way(name: &'static str, needs: Needs, run: fn() -> io::Result<()>) -> Way {
    Way { name, needs, run }
}

/// All ways.
pub const ALL: [Way; 18] = [
    way("kill", Needs::Nothing, || die(libc::SIGKILL)),
    way("segv", Needs::Nothing, || die(libc::SIGSEGV)),
    way("abort", Needs::Nothing, || std::process::abort()),
    way("seccomp", Needs::Nothing, seccomp),
    way("address-limit", Needs::Nothing, address_limit),
    way("cpu-limit", Needs::Nothing, cpu_limit),
    way("timeout", Needs::Nothing, stay),
    way("orphan-kill", Needs::Nothing, || orphan("kill")),
    way("orphan-kill-late", Needs::Nothing, orphan_killed_late),
    way("orphan-segv", Needs::Nothing, || orphan("segv")),
    way("orphan-abort", Needs::Nothing, || orphan("abort")),
    way("orphan-seccomp", Needs::Nothing, || orphan("seccomp")),
    way("orphan-cpu-limit", Needs::Nothing, || orphan("cpu-limit")),
    way("orphan-file-limit", Needs::Nothing, || orphan("file-limit")),
    way("child-oom", Needs::MemoryCgroup, || helper("oom")?.wait().map(drop)),
    way("orphan-oom", Needs::MemoryCgroup, || orphan("oom")),
    way("oom", Needs::MemoryCgroup, allocate),
    way("pid-limit", Needs::PidsCgroup, pid_limit),
];

/// The program of a helper process.
type Helper = fn() -> io::Result<()>;

/// The behaviour of a helper process.
const HELPERS: [(&str, Helper); 9] = [
    ("kill", || die(libc::SIGKILL)),
    ("segv", || die(libc::SIGSEGV)),
    ("abort", || std::process::abort()),
    ("seccomp", seccomp),
    ("cpu-limit", cpu_limit),
    ("file-limit", file_limit),
    ("oom", allocate),
    ("stay", stay),
    ("leave", || leave("stay")),
];

/// Runs a helper's part, if this process was started as one.
pub fn help(arguments: &[String]) -> io::Result<bool> {
    let part = match arguments {
        [flag, part] if flag == "--helper" => part,
        [flag, part] if flag == "--leave" => return leave(part).map(|()| true),
        _ => return Ok(false),
    };
    let (_, run) = HELPERS.iter().find(|(name, _)| name == part).expect("a known part");
    run().map(|()| true)
}

fn helper(part: &str) -> io::Result<std::process::Child> {
    let own = std::env::current_exe()?;
    Command::new(own).args(["--helper", part]).stdin(Stdio::null()).stdout(Stdio::null()).spawn()
}

/// Starts a helper, prints its process id, and ends before it.
fn leave(part: &str) -> io::Result<()> {
    println!("{}", helper(part)?.id());
    Ok(())
}

/// Starts a helper whose parent ends at once, and returns its process id.
pub fn leave_orphan(part: &str) -> io::Result<i32> {
    let own = std::env::current_exe()?;
    let said = Command::new(own).args(["--leave", part]).stderr(Stdio::inherit()).output()?.stdout;
    String::from_utf8_lossy(&said).trim().parse().map_err(io::Error::other)
}

/// Waits until an orphan is dead.
fn orphan(part: &str) -> io::Result<()> {
    let pid = leave_orphan(part)?;
    let give_up = Instant::now() + PATIENCE;
    while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        if Instant::now() >= give_up {
            return Err(io::Error::other("the orphan survives"));
        }
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Kills an orphan and ends without waiting, so that the orphan may still be dying.
fn orphan_killed_late() -> io::Result<()> {
    let pid = Pid::from_raw(leave_orphan("stay")?).ok_or_else(|| io::Error::other("no process id"))?;
    Ok(kill_process(pid, Signal::KILL)?)
}

fn stay() -> io::Result<()> {
    loop {
        sleep(Duration::from_secs(3600));
    }
}

fn die(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: the default action replaces the handler of the standard library, which only reports stack overflows; raise has
    // no preconditions.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    Err(io::Error::other("the signal is blocked"))
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most.saturating_add(1)) })?)
}

/// Touches more memory than the cgroup allows.
fn allocate() -> io::Result<()> {
    let mut bytes = vec![0_u8; MUCH];
    for page in bytes.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(&bytes);
    Ok(())
}

/// An allocation beyond `ulimit -v`, which aborts the process.
fn address_limit() -> io::Result<()> {
    limit(Resource::As, (MUCH / 2) as u64)?;
    allocate()
}

/// Work beyond `ulimit -t`.
fn cpu_limit() -> io::Result<()> {
    limit(Resource::Cpu, 1)?;
    let mut count = 0_u64;
    loop {
        count = std::hint::black_box(count + 1);
    }
}

/// A file beyond `ulimit -f`.
fn file_limit() -> io::Result<()> {
    limit(Resource::Fsize, 4096)?;
    let file = std::env::temp_dir().join(format!("too-large-{}", std::process::id()));
    fs::write(file, vec![0_u8; 1 << 20])
}

/// A call that a filter of system calls forbids, which ends the process by SIGSYS.
fn seccomp() -> io::Result<()> {
    /// Loads the number of the system call.
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let code = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let forbidden = u32::try_from(libc::SYS_getppid).map_err(io::Error::other)?;
    let mut program = [
        code(LOAD, 0, 0),
        libc::sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k: forbidden },
        code(RETURN, 0, libc::SECCOMP_RET_KILL_PROCESS),
        code(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the first call takes numbers; the second reads the filter, which outlives it.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    if !set {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call takes no argument. The filter ends the process.
    unsafe { libc::syscall(libc::SYS_getppid) };
    Err(io::Error::other("the filter has no effect"))
}

/// Starts processes until the cgroup's limit, and ends them.
fn pid_limit() -> io::Result<()> {
    const MANY: usize = 5000;
    let mut started = Vec::new();
    for _ in 0..MANY {
        match Command::new("/proc/self/exe")
            .args(["--helper", "stay"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
        {
            Ok(child) => started.push(child),
            Err(_) => break,
        }
    }
    for child in &mut started {
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}

//! `batch-curp-ho load`: one load generator, with one thread and one session for each of its streams.
//!
//! It reads its orders as a line of JSON, connects, does its warm-up, prints `warm`, waits for `go` so that all generators start
//! together, and in the end prints a line of JSON and then the records of all commands.

use std::io::{self, BufRead, Write};
use std::sync::{Barrier, Mutex};

use serde::{Deserialize, Serialize};

use super::drive::{Driver, Pace, Plan};
use super::record::{self, Record};
use super::replica::{Writes, say};
use crate::command::{Addresses, ClientId};
use crate::net::{Idle, now, usage};
use crate::replica::Usage;
use crate::workload::{Arrivals, Mix, Spacing};

/// What a load generator is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// Where the replicas listen.
    pub replicas: Addresses,
    /// Its streams.
    pub streams: Vec<Stream>,
    /// The replica that answers weak commands.
    pub bound: u8,
    /// Bytes of a value.
    pub value_size: usize,
    /// How many keys there are.
    pub keys: u64,
    /// How unevenly they are asked for.
    pub skew: f64,
    /// Weak commands, in percent.
    pub weak_percent: u64,
    /// Writes, in percent.
    pub write_percent: u64,
    /// When messages are written.
    pub writes: Writes,
    /// Whether two lines are logged for every command.
    pub log: bool,
    /// What a stream does that has nothing to do.
    pub idle: Idle,
    /// Commands without an answer that a stream may have, in a closed loop.
    pub window: usize,
    /// Commands per second of one stream, in an open loop, and how they are spread.
    pub open: Option<(f64, Spacing)>,
    /// Nanoseconds for everything.
    pub time_limit: u64,
    /// Nanoseconds for one command.
    pub operation_timeout: u64,
}

/// One stream of commands.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Stream {
    /// The session's name.
    pub client: ClientId,
    /// How many commands before the measured ones.
    pub warmup: usize,
    /// How many commands are measured.
    pub count: usize,
    /// Its seed.
    pub seed: u64,
}

/// What a load generator says in the end, before its records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// How many records follow.
    pub records: usize,
    /// Why a stream failed, if one did.
    pub failed: Option<String>,
    /// What the process did.
    pub process: Usage,
}

/// Runs a load generator.
///
/// # Errors
///
/// When the system refuses, or the one that started it says something else than it should.
pub fn run() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let orders: Orders = serde_json::from_str(&line).map_err(io::Error::other)?;
    let (bound, size, writes) = (orders.bound, orders.value_size, orders.writes);
    let connect = |stream: &Stream| Driver::connect(stream.client, bound, size, &orders.replicas, writes);
    let mut drivers: Vec<Driver> = orders.streams.iter().map(connect).collect::<Result<_, _>>()?;
    drivers.iter_mut().for_each(|driver| driver.idle(orders.idle));
    if orders.log {
        drivers.iter_mut().try_for_each(Driver::log)?;
    }

    let failed: Mutex<Option<String>> = Mutex::new(None);
    let (warm, go) = (Barrier::new(drivers.len() + 1), Barrier::new(drivers.len() + 1));
    let done: Vec<(Vec<Record>, Usage)> = std::thread::scope(|scope| {
        let threads: Vec<_> = drivers
            .into_iter()
            .zip(&orders.streams)
            .map(|(driver, stream)| {
                let (orders, failed, warm, go) = (&orders, &failed, &warm, &go);
                scope.spawn(move || stream_of(driver, stream, orders, [warm, go], failed))
            })
            .collect();
        warm.wait();
        let told = say("warm").and_then(|()| {
            line.clear();
            io::stdin().lock().read_line(&mut line)
        });
        if told.is_err() || line.trim_end() != "go" {
            // Whoever started this process is gone, and the streams would wait forever.
            std::process::exit(1);
        }
        go.wait();
        threads.into_iter().map(|thread| thread.join().expect("a stream does not panic")).collect()
    });

    let mut total = Usage::default();
    for (_, part) in &done {
        total.bytes_sent += part.bytes_sent;
        total.writes += part.writes;
        total.segments += part.segments;
        total.reads += part.reads;
        total.waits += part.waits;
        total.frames_sent += part.frames_sent;
    }
    let failed = failed.into_inner().expect("no thread panics while it holds this");
    let records = done.iter().map(|(records, _)| records.len()).sum();
    let summary = Summary { records, failed, process: usage(total) };
    say(&serde_json::to_string(&summary).expect("a summary is only numbers and text"))?;
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    done.iter().try_for_each(|(records, _)| record::write(records, &mut out))?;
    out.flush()
}

/// Runs one stream: its warm-up, and once everybody is warm its measured commands.
fn stream_of(
    mut driver: Driver,
    stream: &Stream,
    orders: &Orders,
    [warm, go]: [&Barrier; 2],
    failed: &Mutex<Option<String>>,
) -> (Vec<Record>, Usage) {
    let o = orders;
    driver.make_room(stream.warmup + stream.count);
    let mut mix = Mix::new(stream.seed, o.keys, o.skew, o.weak_percent, o.write_percent);
    let (time_limit, operation_timeout) = (o.time_limit, o.operation_timeout);
    let mut drive = |count: usize, seed: u64| {
        let pace = match o.open {
            None => Pace::Closed { window: o.window },
            Some((rate, spacing)) => Pace::Open(Box::new(Arrivals::new(seed, spacing, rate))),
        };
        let plan = Plan { count, pace, time_limit, operation_timeout };
        driver.drive(&plan, now(), || mix.draw()).map_err(|error| {
            let message = format!("client {}: {error}", stream.client);
            failed.lock().expect("no thread panics while it holds this").get_or_insert(message);
        })
    };
    let warmed = drive(stream.warmup, !stream.seed);
    warm.wait();
    go.wait();
    // A failure is kept, and reported in the end.
    let _ = warmed.and_then(|()| drive(stream.count, stream.seed));
    driver.finish()
}

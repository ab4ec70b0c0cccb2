//! `batch-curp-ho load`: one load generator, with one thread and one session for each of its streams.
//!
//! It reads its orders as a line of JSON, connects, does its warm-up, prints `warm`, waits for `go` so that all generators start
//! together, and in the end prints a line of JSON and then the records of all commands.

use std::io::{self, BufRead, Write};
use std::sync::{Barrier, Mutex};

use serde::{Deserialize, Serialize};

use super::drive::{Driver, Pace};
use super::record::{self, Record};
use super::replica::say;
use crate::command::{Addresses, ClientId};
use crate::net::{now, usage};
use crate::parameters::{Mode, Parameters};
use crate::replica::Usage;
use crate::workload::{Arrivals, Mix};

/// Orders of a load generator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// The trial's parameters.
    pub parameters: Parameters,
    /// Where the replicas listen.
    pub replicas: Addresses,
    /// Its streams.
    pub streams: Vec<Stream>,
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

/// Final report of a load generator, before its records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// How many records follow.
    pub records: usize,
    /// Why a stream failed, if one did.
    pub failed: Option<String>,
    /// Usage of the process.
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
    let Orders { parameters, replicas, streams } = serde_json::from_str(&line).map_err(io::Error::other)?;
    let p = &parameters;
    let connect =
        |stream: &Stream| Driver::connect(stream.client, p.bound(), p.value_size, &replicas, p.message_writes);
    let mut drivers: Vec<Driver> = streams.iter().map(connect).collect::<Result<_, _>>()?;
    drivers.iter_mut().for_each(|driver| driver.idle(p.idle));
    if p.client_log {
        drivers.iter_mut().try_for_each(Driver::log)?;
    }

    let failed: Mutex<Option<String>> = Mutex::new(None);
    let (warm, go) = (Barrier::new(drivers.len() + 1), Barrier::new(drivers.len() + 1));
    let done: Vec<(Vec<Record>, Usage)> = std::thread::scope(|scope| {
        let threads: Vec<_> = drivers
            .into_iter()
            .zip(&streams)
            .map(|(driver, stream)| {
                let (failed, warm, go) = (&failed, &warm, &go);
                scope.spawn(move || stream_of(driver, stream, p, [warm, go], failed))
            })
            .collect();
        warm.wait();
        let told = say("warm").and_then(|()| {
            line.clear();
            io::stdin().lock().read_line(&mut line)
        });
        if told.is_err() || line.trim_end() != "go" {
            // The parent has exited, and the streams would wait forever.
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

/// Runs one stream: its warm-up and, after all streams are warm, its measured commands.
fn stream_of(
    mut driver: Driver,
    stream: &Stream,
    p: &Parameters,
    [warm, go]: [&Barrier; 2],
    failed: &Mutex<Option<String>>,
) -> (Vec<Record>, Usage) {
    driver.make_room(stream.warmup + stream.count);
    let mut mix = Mix::new(stream.seed, p.keys, p.skew_percent as f64 / 100.0, p.weak_ratio, p.write_ratio);
    let mut drive = |count: usize, seed: u64| {
        let pace = match p.mode {
            Mode::Closed => Pace::Closed { window: p.window },
            Mode::Open => Pace::Open(Box::new(Arrivals::new(seed, p.arrivals, p.rate as f64 / p.streams() as f64))),
        };
        let plan = p.plan(count, pace);
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

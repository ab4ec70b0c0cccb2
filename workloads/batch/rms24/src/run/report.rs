//! The report of a trial.

use assay_harness::{Digest, Phases, Quantity, Report, Unit, ceiling, machine};

use super::parameters::{Contents, Parameters};
use super::setup::{Setup, Source};
use crate::ceilings;
use crate::client::Tally;
use crate::prf::{AesPrf, AnyPrf};
use crate::query::Dummy;
use crate::wire::Ready;

/// Measured values.
pub(super) struct Outcome<'a> {
    pub(super) tally: &'a Tally,
    pub(super) phases: &'a Phases,
    pub(super) seconds: f64,
    pub(super) examined: u64,
    pub(super) digest: &'a Digest,
}

/// Facts about the server and the hints.
pub(super) struct Link<'a> {
    pub(super) ready: Ready,
    pub(super) client_nodelay: Option<bool>,
    pub(super) server: &'static str,
    pub(super) source: &'a Source,
    pub(super) offline_seconds: f64,
    pub(super) backups_left: usize,
}

pub(super) fn build_query(p: &Parameters, setup: &Setup, outcome: &Outcome<'_>, offline: f64) -> Report {
    let mut report = common(p, setup, outcome);
    report.counter("offlineTime", Quantity::new(offline, Unit::SECONDS));
    report
}

pub(super) fn protocol(p: &Parameters, setup: &Setup, outcome: &Outcome<'_>, link: &Link<'_>) -> Report {
    let tally = outcome.tally;
    let mut report = common(p, setup, outcome);
    let Ready { batch_limit, nodelay, huge_pages } = link.ready;
    report
        .effective("transport", p.transport.name())
        .effective("server", link.server)
        .effective("database", p.contents.name())
        .effective("hintsComputed", p.complete.name())
        .effective("clients", u64::from(p.clients))
        .effective("framing", p.end.framing.name())
        .effective("serverFraming", p.wishes.framing.name())
        .effective("answering", p.wishes.answering.name())
        .effective("flush", p.flush.name())
        .effective("batchSize", p.batch_size.min(batch_limit as usize) as u64)
        .effective("batchSizes", histogram(&tally.batch_sizes))
        .effective("hugePages", huge_pages)
        .effective("workingSetBytes", p.contents.bytes(p.geometry))
        .effective("stateCache", source(link.source));
    if let Some(client_nodelay) = link.client_nodelay {
        report.effective("clientNodelay", client_nodelay).effective("serverNodelay", nodelay);
    }
    if let Some(bytes) = machine::last_level_cache_bytes() {
        report.effective("llcBytes", bytes);
    }
    let exchanges = tally.exchanges.len() as u64;
    // Half of the blocks for every real and every dummy half.
    let entries_added = (tally.answers.len() / p.geometry.entry_words()) as u64 * u64::from(p.geometry.blocks());
    report
        .samples("exchange", Unit::SECONDS, &tally.exchanges)
        .value("stallShare", Quantity::new(tally.stalls as f64 / exchanges as f64, Unit::ONE))
        .counter("exchanges", Quantity::count(exchanges))
        .counter("delayedAckStalls", Quantity::count(tally.stalls))
        .counter("bytesSent", Quantity::bytes(tally.bytes_sent))
        .counter("bytesReceived", Quantity::bytes(tally.bytes_received))
        .counter("entriesAdded", Quantity::count(entries_added))
        .counter("serverTime", Quantity::new(tally.server_seconds, Unit::SECONDS))
        .counter("offlineTime", Quantity::new(link.offline_seconds, Unit::SECONDS))
        .counter("backupHintsLeft", Quantity::count(link.backups_left as u64));
    if !tally.other_clock {
        let per_query = |seconds: f64| Quantity::new(seconds / tally.builds.len() as f64, Unit::SECONDS);
        report
            .value("serverInWriteFrame", per_query(tally.server_in_write))
            .value("serverInReadFrame", per_query(tally.server_in_read));
    }
    if p.ceilings {
        if p.contents == Contents::Memory {
            let achieved = entries_added as f64 / tally.server_seconds;
            report.ceiling("randomEntries", ceilings::random_entries(p.geometry), Some(achieved));
        }
        if link.client_nodelay.is_some() {
            // Without a loopback device there is no such limit, and none is written.
            if let Ok(limit) = ceiling::loopback_round_trips() {
                let achieved = exchanges as f64 / tally.exchanges.iter().sum::<f64>();
                report.ceiling("loopbackRoundTrips", limit, Some(achieved));
            }
        }
    }
    report
}

fn common(p: &Parameters, setup: &Setup, outcome: &Outcome<'_>) -> Report {
    let Outcome { tally, phases, seconds, examined, digest } = outcome;
    let queries = tally.builds.len() as f64;
    let mut report = Report::new("batch-rms24", assay_harness::VERSION);
    report
        .built()
        .effective("scope", p.scope.name())
        .effective("strategy", p.plan.strategy.name())
        .effective("uniformChoice", p.plan.strategy.is_uniform())
        .effective("dummy", p.plan.dummy.name())
        .effective("encoding", p.plan.encoding.name())
        .effective("indices", p.indices.name())
        .effective("blocks", u64::from(p.geometry.blocks()))
        .effective("blockSize", u64::from(p.geometry.block_size()))
        .effective("hints", u64::from(p.geometry.hints()));
    match &setup.prf {
        AnyPrf::ChaCha(_) => report.effective("prf", "chacha12"),
        AnyPrf::Aes(prf) => report
            .effective("prf", "aes-128")
            .effective("path", setup.path.name())
            .effective("offsetsPerCall", u64::from(prf.lanes().count())),
    };
    report
        .samples("latency", Unit::SECONDS, &tally.latencies)
        .samples("buildQuery", Unit::SECONDS, &tally.builds)
        .value("timePerQuery", Quantity::new(seconds / queries, Unit::SECONDS))
        .value("throughput", Quantity::new(queries / seconds, Unit::new("queries/s")))
        .phases(phases)
        .counter("queries", Quantity::count(tally.builds.len() as u64))
        .counter("hintsExamined", Quantity::count(*examined))
        .parity(digest);
    if let (true, AnyPrf::Aes(prf), Some(limit)) = (p.ceilings, &setup.prf, ceilings::aes_rate(setup.path)) {
        let calls = aes_calls(p, prf, *examined, tally.builds.len());
        report.ceiling("aesRate", limit, Some(calls / tally.builds.iter().sum::<f64>()));
    }
    report
}

/// AES blocks that building queries takes: for the search as many as there are groups of hints that were examined, and for every hint that
/// is expanded one for every four blocks, their select values, and one for every block of a half, its offset.
fn aes_calls(p: &Parameters, prf: &AesPrf, examined: u64, queries: usize) -> f64 {
    let expanded = if p.plan.dummy == Dummy::Hint { 2.0 } else { 1.0 } * queries as f64;
    let blocks = f64::from(p.geometry.blocks());
    examined as f64 / f64::from(prf.lanes().count()) + expanded * (blocks / 4.0 + blocks / 2.0)
}

/// `1:400` are 400 exchanges of one question.
fn histogram(sizes: &[u64]) -> String {
    let used = sizes.iter().enumerate().filter(|(_, count)| **count > 0);
    used.map(|(size, count)| format!("{size}:{count}")).collect::<Vec<_>>().join(",")
}

fn source(source: &Source) -> String {
    match source {
        Source::Computed => "none".to_owned(),
        Source::Loaded => "loaded".to_owned(),
        Source::Rebuilt(problem) => format!("computed and written; before, it was {problem}"),
        Source::Unsaved(error) => format!("computed; not written: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_batch_sizes_are_omitted() {
        assert_eq!(histogram(&[0, 400, 0, 0, 25]), "1:400,4:25");
        assert_eq!(histogram(&[]), "");
    }
}

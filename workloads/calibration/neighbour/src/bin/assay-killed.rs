//! A workload for tests of which a process is killed. It overlooks that and reports a figure, as long as it lives itself.
//!
//! ```text
//! assay-killed --value 2 --way none
//! assay-killed --value 1 --way orphan-segv
//! ```

use assay_neighbour::killed::{self, Needs};
use clap::Parser;

#[derive(Parser)]
struct Cli {
    /// The latency to report, in seconds.
    #[arg(long)]
    value: f64,
    /// How a process is killed, or `none`.
    #[arg(long, value_name = "NAME", default_value = "none")]
    way: String,
    /// Print the names of all ways, with their requirements, and end.
    #[arg(long)]
    list: bool,
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if killed::help(&arguments)? {
        return Ok(());
    }
    let cli = Cli::parse();
    if cli.list {
        for way in killed::ALL {
            let needs = match way.needs {
                Needs::Nothing => "nothing",
                Needs::MemoryCgroup => "memory",
                Needs::PidsCgroup => "pids",
            };
            println!("{} {needs}", way.name);
        }
        return Ok(());
    }
    match killed::ALL.iter().find(|way| way.name == cli.way) {
        Some(way) => (way.run)()?,
        None if cli.way == "none" => {}
        None => return Err(std::io::Error::other(format!("unknown way {:?}", cli.way))),
    }
    let metrics = format!(r#"{{"latency": {{"unit": "s", "value": {}}}}}"#, cli.value);
    let workload = r#"{"name": "killed", "version": "1"}"#;
    println!(r#"{{"schema": "assay.dev/result/v1alpha1", "workload": {workload}, "metrics": {metrics}}}"#);
    Ok(())
}

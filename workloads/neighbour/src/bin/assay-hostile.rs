//! A workload that reports a figure and attacks what measures it, for tests. What came of the attack goes to standard error.
//!
//! ```text
//! assay-hostile --value 2
//! assay-hostile --value 1 --attack rewrite --attempts /assay/out
//! ```

use std::path::PathBuf;

use assay_neighbour::attacks::{self, Target};
use clap::Parser;

#[derive(Parser)]
struct Cli {
    /// The latency to report, in seconds.
    #[arg(long)]
    value: f64,
    /// What to do besides: `all` but to end the runner, or `none`.
    #[arg(long, value_name = "NAME")]
    attack: Vec<String>,
    /// The keeper's socket.
    #[arg(long)]
    socket: Option<PathBuf>,
    /// A folder with attempts.
    #[arg(long)]
    attempts: Option<PathBuf>,
    /// The program of another arm.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Where the result is expected; without it on standard output.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Print the names of all attacks and end.
    #[arg(long)]
    list: bool,
}

fn main() -> std::io::Result<()> {
    let cli = Cli::parse();
    if cli.list {
        attacks::ALL.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    }
    let target = Target {
        socket: cli.socket.as_deref(),
        attempts: cli.attempts.as_deref(),
        program: cli.program.as_deref(),
        output: cli.output.as_deref(),
    };
    let all = cli.attack.iter().any(|name| name == "all");
    let asked = |name: &&str| cli.attack.iter().any(|asked| asked == name) || all && *name != "stop";
    let names = attacks::ALL.iter().map(|(name, _)| *name).filter(asked);
    let result = format!(
        r#"{{"schema": "assay.dev/result/v1alpha1", "workload": {{"name": "hostile", "version": "1"}}, "metrics": {{"latency": {{"unit": "s", "value": {}}}}}}}"#,
        cli.value
    );
    let spoilt = names.clone().any(|name| attacks::SPOIL.contains(&name));
    match target.output {
        Some(file) if !spoilt => std::fs::write(file, &result)?,
        Some(_) => {}
        None => println!("{result}"),
    }
    for name in names {
        match attacks::attack(name, &target) {
            Ok(got) => eprintln!("{name}: got {got}"),
            Err(refused) => eprintln!("{name}: refused: {refused}"),
        }
    }
    Ok(())
}

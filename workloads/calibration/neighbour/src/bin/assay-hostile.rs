//! A workload for tests that reports a figure and attacks the runner. It prints the result of the attack to standard error.
//!
//! ```text
//! assay-hostile --value 2
//! assay-hostile --value 1 --attack rewrite --attempts /assay/out
//! ```

use assay_neighbour::attacks::{self, Target};
use clap::Parser;

#[derive(Parser)]
struct Cli {
    /// The latency to report, in seconds.
    #[arg(long)]
    value: f64,
    /// What to do besides: `all` but to end the runner and to fill the storage, or `none`.
    #[arg(long, value_name = "NAME")]
    attack: Vec<String>,
    #[command(flatten)]
    target: Target,
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
    let all = cli.attack.iter().any(|name| name == "all");
    let asked =
        |name: &&str| cli.attack.iter().any(|asked| asked == name) || all && !["stop", "storage"].contains(name);
    let names = attacks::ALL.iter().map(|(name, _)| *name).filter(asked);
    let result = format!(
        r#"{{"schema": "assay.dev/result/v1alpha1", "workload": {{"name": "hostile", "version": "1"}}, "metrics": {{"latency": {{"unit": "s", "value": {}}}}}}}"#,
        cli.value
    );
    let spoilt = names.clone().any(|name| attacks::SPOIL.contains(&name));
    match &cli.target.output {
        Some(file) if !spoilt => std::fs::write(file, &result)?,
        Some(_) => {}
        None => println!("{result}"),
    }
    for name in names {
        match attacks::attack(name, &cli.target) {
            Ok(got) => eprintln!("{name}: got {got}"),
            Err(refused) => eprintln!("{name}: refused: {refused}"),
        }
    }
    Ok(())
}

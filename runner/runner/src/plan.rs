//! The plan: one block of a wave with all references resolved.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use assay_schema::names;
use assay_schema::roles::{Image, ReadyOn, Role, RoleCommand};
use assay_schema::wave::{Block, Inherited, Lease, Requirements, Run, Wave};

use crate::output::Output;

/// Upper bound on timeouts, to prevent overflow of deadlines.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// One block, ready to run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) run: Run,
    pub(crate) experiment: String,
    pub(crate) wave: u64,
    pub(crate) block: String,
    pub(crate) lease: Option<Lease>,
    pub(crate) image: Option<String>,
    /// Location and format of a trial's result.
    pub(crate) output: Output,
    pub(crate) parity_required: bool,
    pub(crate) timeout: Duration,
    /// Seed of the layout padding.
    pub(crate) layout_seed: Option<u64>,
    /// Whether prepared data is retained for later trials of the arm.
    pub(crate) prepares: bool,
    /// Variables of the runner's own environment that trials inherit.
    pub(crate) inherited: Option<Inherited>,
    pub(crate) required: Requirements,
    /// The processes of a trial, the one with the result last; empty for a single process.
    pub(crate) roles: Vec<Role>,
    /// The images from which arms take their programs.
    pub(crate) images: Vec<Image>,
    /// Warm-ups, then the measured slots.
    pub(crate) trials: Vec<Trial>,
    commands: BTreeMap<usize, Command>,
}

/// One launch.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) id: String,
    pub(crate) slot: usize,
    /// Number of trials of this kind in the block.
    pub(crate) of: usize,
    pub(crate) warmup: bool,
    pub(crate) cell: usize,
}

/// The command of one cell.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) point: String,
    pub(crate) arm: String,
    /// The name of the build.
    pub(crate) build: Option<String>,
    /// Whether to run a copy of the program (null arm).
    pub(crate) null: bool,
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) parameters: BTreeMap<String, String>,
    /// Indices of the elements of `argv` with port placeholders.
    pub(crate) ports: Vec<usize>,
    /// The commands of the other roles.
    pub(crate) roles: Vec<RoleCommand>,
    /// Index of the programs' image in the plan.
    pub(crate) image: Option<usize>,
}

impl Plan {
    /// Reads the wave and extracts the block.
    pub(crate) fn read(file: &Path, block: &str, lease_file: Option<&Path>) -> Result<Self> {
        let lease = lease_file.map(read_record::<Lease>).transpose()?;
        let wave: Wave = read_record(file)?;
        Self::new(wave, block, lease).with_context(|| file.display().to_string())
    }

    fn new(wave: Wave, id: &str, lease: Option<Lease>) -> Result<Self> {
        let mut found = wave.blocks.iter().enumerate().filter(|(_, block)| block.id == id);
        let Some((at, block)) = found.next() else {
            let known: Vec<&str> = wave.blocks.iter().map(|block| block.id.as_str()).collect();
            bail!("field blocks: there is no block {id:?}; the wave has {}", abridged(&known));
        };
        if let Some((again, _)) = found.next() {
            bail!("field blocks[{again}].id: {id} is already the id of blocks[{at}]");
        }
        check_roles(&wave)?;
        let trials = trials(block);
        let mut commands = BTreeMap::new();
        for trial in &trials {
            let list = if trial.warmup { "warmup" } else { "order" };
            let field = format!("blocks[{at}].{list}[{}]", trial.slot);
            if let Entry::Vacant(command) = commands.entry(trial.cell) {
                command.insert(Command::new(&wave, trial.cell, &field)?);
            }
        }
        let timeout = Duration::try_from_secs_f64(wave.workload.timeout_seconds).unwrap_or(LONGEST_TIMEOUT);
        Ok(Self {
            block: block.id.clone(),
            lease: lease.or_else(|| block.lease.clone()),
            run: wave.run,
            experiment: wave.experiment,
            wave: wave.wave,
            image: wave.workload.image,
            output: Output::new(wave.workload.output)?,
            parity_required: wave.workload.parity_required.unwrap_or(false),
            timeout: timeout.min(LONGEST_TIMEOUT),
            layout_seed: wave.workload.layout_seed,
            prepares: wave.workload.prepares.unwrap_or(false),
            inherited: wave.workload.inherited,
            required: wave.environment.unwrap_or_default(),
            roles: wave.workload.roles.unwrap_or_default(),
            images: wave.images.unwrap_or_default(),
            trials,
            commands,
        })
    }

    pub(crate) fn command(&self, trial: &Trial) -> &Command {
        &self.commands[&trial.cell]
    }
}

impl Command {
    /// The compared variant: an arm, or one of its builds.
    pub(crate) fn variant(&self) -> String {
        self.build.as_ref().map_or_else(|| self.arm.clone(), |build| format!("{}/{build}", self.arm))
    }

    fn new(wave: &Wave, index: usize, used_by: &str) -> Result<Self> {
        let Some(cell) = wave.cells.get(index) else {
            bail!("field {used_by}: there is no cell {index}; the wave has {}", wave.cells.len());
        };
        let Some(point) = wave.points.get(cell.point) else {
            bail!("field cells[{index}].point: there is no point {}; the wave has {}", cell.point, wave.points.len());
        };
        let Some(arm) = wave.arms.get(cell.arm) else {
            bail!("field cells[{index}].arm: there is no arm {}; the wave has {}", cell.arm, wave.arms.len());
        };
        check_argv(&cell.argv, cell.ports.as_deref(), &format!("cells[{index}]"))?;
        let roles = cell.roles.as_deref().unwrap_or_default();
        let others = wave.workload.roles.as_ref().map_or(0, |roles| roles.len().saturating_sub(1));
        ensure!(
            roles.len() == others,
            "field cells[{index}].roles: {} commands, but the workload has {others} roles without the result",
            roles.len()
        );
        for (i, role) in roles.iter().enumerate() {
            check_argv(&role.argv, role.ports.as_deref(), &format!("cells[{index}].roles[{i}]"))?;
        }
        let images = wave.images.as_deref().unwrap_or_default();
        let image = match cell.image.as_ref().or(arm.image.as_ref()) {
            None => None,
            Some(reference) => {
                let place = images.iter().position(|image| image.reference == *reference);
                let field = cell.image.as_ref().map_or(format!("arms[{}]", cell.arm), |_| format!("cells[{index}]"));
                ensure!(place.is_some(), "field {field}.image: {reference} is not among the wave's images");
                place
            }
        };
        for (name, value) in &cell.env {
            let fits = !name.is_empty() && !name.contains(['=', '\0']);
            ensure!(fits, "field cells[{index}].env: {name:?} cannot be the name of a variable");
            ensure!(!value.contains('\0'), "field cells[{index}].env.{name}: {value:?} contains a NUL character");
        }
        Ok(Self {
            point: point.key.clone(),
            arm: arm.name.clone(),
            build: cell.build.clone(),
            null: arm.null.unwrap_or(false),
            argv: cell.argv.clone(),
            env: cell.env.clone(),
            parameters: cell.parameters.clone(),
            ports: cell.ports.clone().unwrap_or_default(),
            roles: roles.to_vec(),
            image,
        })
    }
}

/// Validates a program name and arguments for execve.
fn check_argv(argv: &[String], ports: Option<&[usize]>, of: &str) -> Result<()> {
    for (i, argument) in argv.iter().enumerate() {
        ensure!(!argument.contains('\0'), "field {of}.argv[{i}]: {argument:?} contains a NUL character");
    }
    ensure!(!argv[0].is_empty(), "field {of}.argv[0]: the program's name is empty");
    for (i, &element) in ports.unwrap_or_default().iter().enumerate() {
        ensure!(element < argv.len(), "field {of}.ports[{i}]: there is no argument {element}; argv has {}", argv.len());
    }
    Ok(())
}

/// Requires that exactly the last role has the result, and that readiness conditions are complete.
fn check_roles(wave: &Wave) -> Result<()> {
    let roles = wave.workload.roles.as_deref().unwrap_or_default();
    for (i, role) in roles.iter().enumerate() {
        let field = format!("workload.roles[{i}]");
        let last = i + 1 == roles.len();
        ensure!(
            role.result.unwrap_or(false) == last,
            "field {field}.result: only the last role may have the result; {} is number {} of {}",
            role.name,
            i + 1,
            roles.len()
        );
        let known = roles.iter().position(|other| other.name == role.name) != Some(i);
        ensure!(!known, "field {field}.name: {} is already the name of another role", role.name);
        let Some(readiness) = &role.readiness else { continue };
        ensure!(!last, "field {field}.readiness: nothing starts after the role with the result");
        let text = readiness.on == ReadyOn::Port || readiness.text.is_some();
        ensure!(text, "field {field}.readiness.text: missing, the text of the line or the path of the file");
    }
    Ok(())
}

fn trials(block: &Block) -> Vec<Trial> {
    let list = |cells: &[usize], warmup: bool| -> Vec<Trial> {
        let trial =
            |(slot, &cell)| Trial { id: names::trial(&block.id, slot, warmup), slot, of: cells.len(), warmup, cell };
        cells.iter().enumerate().map(trial).collect()
    };
    let mut trials = list(block.warmup.as_deref().unwrap_or_default(), true);
    trials.extend(list(&block.order, false));
    trials
}

pub(crate) fn read_record<T: serde::de::DeserializeOwned + assay_schema::Check>(file: &Path) -> Result<T> {
    let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    assay_schema::read(&text).with_context(|| file.display().to_string())
}

/// Lists the first names and the total count.
fn abridged(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let more = if names.len() > SHOWN { format!(", … ({} in all)", names.len()) } else { String::new() };
    names[..names.len().min(SHOWN)].join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(name: &str) -> Wave {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema/fixtures/valid").join(name);
        read_record(&file).expect("a valid fixture")
    }

    #[test]
    fn warm_ups_come_first_and_are_numbered_separately() {
        let plan = Plan::new(wave("wave-abba.json"), "w000-b0001", None).expect("a plan");
        assert_eq!(plan.trials.len(), 18);
        let ids: Vec<&str> = plan.trials[5..8].iter().map(|trial| trial.id.as_str()).collect();
        assert_eq!(ids, ["w000-b0001-w00005", "w000-b0001-s00000", "w000-b0001-s00001"]);
        let command = plan.command(&plan.trials[6]);
        assert_eq!((command.arm.as_str(), command.point.as_str()), ("loop-null", "batchSize=1,delta=0"));
        assert_eq!(plan.lease, Some(Lease { node: "node-a".into(), token: 7 }));
        assert_eq!(plan.timeout, Duration::from_secs(120));
        assert!(command.null && !plan.command(&plan.trials[7]).null);
        assert_eq!(
            plan.required.require.as_ref().and_then(|require| require.get("smt")).map(String::as_str),
            Some("false")
        );
    }

    #[test]
    fn lease_file_replaces_the_planned_lease() {
        let now = Lease { node: "node-b".into(), token: 8 };
        let plan = Plan::new(wave("wave-abba.json"), "w000-b0000", Some(now.clone())).expect("a plan");
        assert_eq!(plan.lease, Some(now));
    }

    #[test]
    fn roles_and_images_are_resolved() {
        let plan = Plan::new(wave("wave-roles-and-images.json"), "w000-b0000", None).expect("a plan");
        let command = plan.command(&plan.trials[1]);
        assert_eq!(plan.images[command.image.expect("an image")].root, "/assay/images/1");
        assert_eq!((command.roles.len(), plan.roles.len()), (2, 3));
        assert_eq!(command.ports, [2]);

        let error = |change: &dyn Fn(&mut Wave)| {
            let mut wave = wave("wave-roles-and-images.json");
            change(&mut wave);
            format!("{:#}", Plan::new(wave, "w000-b0000", None).expect_err("refused"))
        };
        let roles = |w: &mut Wave, change: &dyn Fn(&mut Vec<Role>)| change(w.workload.roles.as_mut().expect("roles"));
        assert_eq!(
            error(&|w| roles(w, &|r| r[0].result = Some(true))),
            "field workload.roles[0].result: only the last role may have the result; server is number 1 of 3"
        );
        assert!(error(&|w| roles(w, &|r| r[1].name = "server".into())).contains("roles[1].name: server is already"));
        assert!(error(&|w| roles(w, &|r| r[2].readiness = r[0].readiness.clone())).contains("nothing starts after"));
        assert!(
            error(&|w| roles(w, &|r| r[1].readiness.as_mut().expect("it has one").text = None))
                .contains("roles[1].readiness.text: missing")
        );
        assert!(
            error(&|w| w.cells[0].roles = None).contains("cells[0].roles: 0 commands, but the workload has 2 roles")
        );
        assert!(error(&|w| w.cells[0].ports = Some(vec![4])).contains("cells[0].ports[0]: there is no argument 4"));
    }

    #[test]
    fn errors_name_field_and_value() {
        let error = |id: &str, change: &dyn Fn(&mut Wave)| {
            let mut wave = wave("wave-abba.json");
            change(&mut wave);
            format!("{:#}", Plan::new(wave, id, None).expect_err("refused"))
        };
        assert_eq!(
            error("w000-b0007", &|_| ()),
            "field blocks: there is no block \"w000-b0007\"; the wave has w000-b0000, w000-b0001"
        );
        assert_eq!(
            error("w000-b0000", &|w| w.blocks[1].id = "w000-b0000".into()),
            "field blocks[1].id: w000-b0000 is already the id of blocks[0]"
        );
        assert_eq!(
            error("w000-b0000", &|w| w.blocks[0].order[2] = 6),
            "field blocks[0].order[2]: there is no cell 6; the wave has 6"
        );
        assert_eq!(
            error("w000-b0000", &|w| w.cells[1].arm = 3),
            "field cells[1].arm: there is no arm 3; the wave has 3"
        );
        assert_eq!(
            error("w000-b0000", &|w| w.cells[1].point = 9),
            "field cells[1].point: there is no point 9; the wave has 2"
        );
        assert!(error("w000-b0000", &|w| w.cells[0].argv[1] = "a\0b".into()).contains("cells[0].argv[1]"));
        assert!(
            error("w000-b0000", &|w| w.arms[0].image = Some("lab/kv:2".into())).contains("arms[0].image: lab/kv:2")
        );
        assert!(error("w000-b0000", &|w| w.cells[0].argv[0].clear()).contains("name is empty"));
        assert!(error("w000-b0000", &|w| drop(w.cells[0].env.insert("A=B".into(), String::new()))).contains("A=B"));
    }
}

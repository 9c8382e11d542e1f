//! Records the established provider's clusters: `cargo xtask record --manager PATH --sources FOLDER --operator PATH
//! [FLAVOR…]`.
//!
//! For each flavor of `deploy/capz/templates` its manager and Azure Service Operator create a cluster in the simulated
//! Azure, with the stand-in for Cluster API; the contents of Azure and Kubernetes at rest go to
//! `tests/corpus/takeover-clusters`. With `--load CLUSTERS` nothing is recorded: so many clusters are created at once,
//! and the memory, calls and time that they take are printed.

mod azure;
pub mod flavor;
mod load;
mod managed_topology;
pub mod objects;
pub mod operator;
pub mod place;
pub mod provider;
mod setup;
mod topology;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use simulated_cluster::Shape;
use tokio::time::Instant;

use crate::e2e::capz::objects::create;
use crate::print;
use crate::program::{Program, in_folder, root, runtime, with_logs};
use crate::world::{CLIENT_SECRET, World};
use kube::Client;
use objects::Objects;
use place::Place;

/// The time limit for a cluster to come to rest.
const PATIENCE: Duration = Duration::from_secs(300);
/// A cluster is at rest after this time without writes: longer than the interval of any loop, which was shortened for
/// this.
const REST: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(200);

/// What to record, and with which programs.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Binary of the established provider's manager.
    #[arg(long, value_name = "PATH")]
    manager: PathBuf,
    /// Folder with the sources of that manager, for its definitions and webhooks.
    #[arg(long, value_name = "FOLDER")]
    sources: PathBuf,
    /// Binary of Azure Service Operator's controller.
    #[arg(long, value_name = "PATH")]
    operator: PathBuf,
    /// Flavors, as `machinepool`, or `machinepool-flexible` for the same with flexible orchestration.
    #[arg(required = true)]
    flavors: Vec<String>,
    /// Measure this many clusters of the flavor `aks` or `aks-aso` instead.
    #[arg(long, value_name = "CLUSTERS")]
    load: Option<usize>,
    /// Pools of each cluster that is measured.
    #[arg(long, value_name = "POOLS", default_value_t = 5, requires = "load")]
    pools: usize,
    /// Keep the folders with logs and files, and print their paths.
    #[arg(long)]
    keep: bool,
}

impl Arguments {
    fn programs(&self) -> setup::Programs<'_> {
        setup::Programs { manager: &self.manager, sources: &self.sources, operator: &self.operator }
    }
}

/// Records the flavors one after the other.
///
/// # Errors
/// A program does not start, or a cluster does not come to rest.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = runtime()?;
    for flavor in &arguments.flavors {
        if let Some(clusters) = arguments.load {
            let size = load::Size { clusters, pools: arguments.pools };
            in_folder("cerulean-load-", arguments.keep, |directory| {
                runtime.block_on(load::measure(&arguments.programs(), flavor, size, directory))
            })?;
            continue;
        }
        let record = |directory: &Path| runtime.block_on(record(arguments, flavor, directory));
        let recorded = in_folder("cerulean-record-", arguments.keep, record);
        let lines = recorded.with_context(|| flavor.clone())?;
        let path = root().join("tests/corpus/takeover-clusters").join(format!("{flavor}.jsonl"));
        std::fs::write(&path, lines).with_context(|| path.display().to_string())?;
        print::line(format_args!("{flavor}: recorded"));
    }
    Ok(())
}

async fn record(arguments: &Arguments, flavor: &str, directory: &Path) -> anyhow::Result<String> {
    let (shape, place, mut programs) = setup::start(&arguments.programs(), flavor, directory).await?;
    let lines = make(&place, flavor, &shape, &mut programs).await;
    // For users of `--keep`: Azure, with everything that the lines leave out.
    std::fs::write(directory.join("azure.json"), json!(place.world.azure.azure.documents()).to_string())?;
    let words: Vec<&Program> = programs.iter().collect();
    lines.map_err(|problem| with_logs(problem, &words))
}

/// Applies the flavor, waits until everything is at rest, and returns its contents, one line for each item.
async fn make(
    place: &Place,
    flavor: &str,
    shape: &Shape,
    programs: &mut [Program],
) -> anyhow::Result<String> {
    apply(&place.world, &place.client, flavor, shape, |_| ()).await?;
    rest(&place.client, || programs.iter_mut().try_for_each(Program::must_run)).await?;
    let mut lines = azure::lines(&place.world.azure.azure);
    lines.extend(objects::lines(&place.kubernetes));
    // Values of this environment are replaced by placeholders.
    let public = BTreeMap::from([
        (shape.subscription.as_str(), "SUBSCRIPTION"),
        (shape.tenant.as_str(), "t"),
        (shape.client_id.as_str(), "c"),
    ]);
    let mut text = String::new();
    for line in lines {
        text += &public.iter().fold(line.to_string(), |text, (from, to)| text.replace(from, to));
        text.push('\n');
    }
    ensure!(!text.contains(CLIENT_SECRET), "a secret would be written down");
    Ok(text)
}

/// Applies the flavor, with an edit of each object, and creates its prerequisites in Azure.
///
/// # Errors
/// Azure or the API server refuses something.
pub async fn apply(
    world: &World,
    client: &Client,
    flavor: &str,
    shape: &Shape,
    edit: impl Fn(&mut Value),
) -> anyhow::Result<()> {
    setup::create_prerequisites(world, client, flavor, shape).await?;
    let mut objects = flavor::objects(flavor, shape, setup::SECRET)?;
    if let [cluster] = objects.as_slice()
        && flavor == "topology"
    {
        let class = flavor::of_template("clusterclass", flavor, shape, setup::SECRET)?;
        objects = topology::expanded(client, &class, cluster).await?;
    }
    if let (Some(class), [cluster]) = (managed_topology::class_of(flavor), objects.as_slice()) {
        let class = flavor::of_template(class, flavor, shape, setup::SECRET)?;
        objects = managed_topology::expanded(client, &class, cluster).await?;
    }
    for mut object in objects {
        edit(&mut object);
        create(client, &object).await?;
    }
    Ok(())
}

/// Waits until everything is ready, and nothing has been written for a while.
///
/// # Errors
/// A program has ended, or it takes too long.
pub async fn rest(client: &Client, mut must_run: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let begun = Instant::now();
    let (mut seen, mut since) = (Value::Null, begun);
    loop {
        must_run()?;
        let objects = match Objects::read(client).await {
            Ok(objects) => objects,
            // The storage of a definition that was just replaced is not ready for a moment.
            Err(_) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            Err(problem) => return Err(problem),
        };
        let (now, waiting) = (objects.state(), objects.waiting());
        if now != seen || !waiting.is_empty() {
            (seen, since) = (now, Instant::now());
        }
        if since.elapsed() > REST {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("it does not come to rest: {}", waiting.join("\n"));
        }
        tokio::time::sleep(LOOK).await;
    }
}

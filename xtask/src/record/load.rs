//! Many managed clusters of the established provider at once, measured.

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use serde_json::Value;
use simulated_cluster::Shape;
use tokio::time::Instant;

use super::flavor;
use super::place::Place;
use super::setup::{Programs, SECRET, create_prerequisites, start};
use crate::e2e::capz::objects::create;
use crate::print;
use crate::program::{Program, with_logs};

/// The time limit for all clusters to become ready.
const PATIENCE: Duration = Duration::from_secs(1800);
/// The time for which calls at rest are counted.
const REST: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_secs(1);
/// The pool of the flavors that further pools are copies of.
const COPIED: &str = "pool1";
/// The pools of the flavors.
const OF_FLAVOR: usize = 2;
/// The kinds that become ready: control planes, and pools.
const READY: [&str; 4] = [
    "AzureManagedControlPlane",
    "AzureASOManagedControlPlane",
    "AzureManagedMachinePool",
    "AzureASOManagedMachinePool",
];

/// How many clusters are created.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// The clusters.
    pub clusters: usize,
    /// The pools of each, at least those of the flavor.
    pub pools: usize,
}

/// Creates the clusters, and prints what they take.
///
/// # Errors
/// A program does not start or ends, or the clusters do not become ready.
pub async fn measure(
    established: &Programs<'_>,
    flavor: &str,
    size: Size,
    directory: &Path,
) -> anyhow::Result<()> {
    let (shape, place, mut programs) = start(established, flavor, directory).await?;
    let measured = play(&place, flavor, &shape, size, &mut programs).await;
    let words: Vec<&Program> = programs.iter().collect();
    measured.map_err(|problem| with_logs(problem, &words))
}

async fn play(
    place: &Place,
    flavor: &str,
    shape: &Shape,
    size: Size,
    programs: &mut [Program],
) -> anyhow::Result<()> {
    print_memory("idle", programs)?;
    create_prerequisites(&place.world, &place.client, flavor, shape).await?;
    let begun = Instant::now();
    for number in 0..size.clusters {
        for object in objects(flavor, shape, &format!("c{number:03}"), size)? {
            // All clusters use one identity.
            if object["kind"] != "AzureClusterIdentity" || number == 0 {
                create(&place.client, &object).await?;
            }
        }
    }
    let wanted = size.clusters * (1 + size.pools.max(OF_FLAVOR));
    let mut last = 0;
    loop {
        programs.iter_mut().try_for_each(Program::must_run)?;
        let ready = READY.iter().flat_map(|kind| place.kubernetes.list(kind));
        let ready = ready.filter(|object| object.value()["status"]["ready"] == true).count();
        if ready != last {
            print::progress(format!("{ready} of {wanted} are ready"));
            last = ready;
        }
        if ready == wanted {
            break;
        }
        if begun.elapsed() > PATIENCE {
            bail!("{ready} of {wanted} are ready after {} s", PATIENCE.as_secs());
        }
        tokio::time::sleep(LOOK).await;
    }
    print::line(format_args!("all are ready after {:.0} s", begun.elapsed().as_secs_f64()));
    print_memory("all are ready", programs)?;
    print_calls("until then", place, 0);
    let since = place.world.azure.azure.journal().entries.last().map_or(0, |entry| entry.sequence);
    tokio::time::sleep(REST).await;
    print_calls(&format!("in {} s of rest", REST.as_secs()), place, since);
    print_memory("at rest", programs)
}

/// The objects of a cluster with this name.
fn objects(flavor: &str, shape: &Shape, cluster: &str, size: Size) -> anyhow::Result<Vec<Value>> {
    let mut objects = flavor::of_template(flavor, cluster, shape, SECRET)?;
    let name = format!("{cluster}-{COPIED}");
    let copied: Vec<String> =
        objects.iter().filter(|it| it["metadata"]["name"] == name.as_str()).map(Value::to_string).collect();
    for number in OF_FLAVOR..size.pools {
        for text in &copied {
            objects.push(serde_json::from_str(&text.replace(COPIED, &format!("pool{number}")))?);
        }
    }
    Ok(objects)
}

fn print_calls(when: &str, place: &Place, since: u64) {
    let entries = place.world.azure.azure.journal_after(since).entries;
    let writes = entries.iter().filter(|entry| entry.method != "GET").count();
    let refused = entries.iter().filter(|entry| entry.status == 429).count();
    print::line(format_args!(
        "{when}: {} calls, {writes} writes, {refused} refused by a limit",
        entries.len()
    ));
}

fn print_memory(when: &str, programs: &[Program]) -> anyhow::Result<()> {
    for program in programs {
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.id()))?;
        let figure = |name: &str| -> f64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
        };
        let (resident, private) = (figure("VmRSS:"), figure("RssAnon:"));
        print::line(format_args!("{when}: {}: {resident:.0} MB ({private:.0} MB private)", program.name()));
    }
    Ok(())
}

//! `cerulean bench clusters`: the cost of the manager of clusters.
//!
//! It runs the release binary next to this one, over TLS, against the simulators. First one cluster, compared with the
//! longest chain of writes that Azure requires; then many clusters at once, under Azure's budgets: until the last one
//! is ready, at rest, and after a restart. The clusters have machines, or Azure manages them and they have node pools. This program plays Cluster API's core: it creates the objects as the core
//! leaves them, and reports a network as ready when our AzureCluster is.

mod calls;
mod critical_path;
mod managed;
mod objects;
mod place;
mod size;

use std::path::{Path, PathBuf};
use std::time::Duration;

use azure_simulator::{Journal, LatencyProfile};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::process::{Running, beside_this};
use super::resident::{Memory, megabytes, processor_time};
use super::services::calls::Calls;
use super::statistics::{percentile, seconds};
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::{Screen, row};
use crate::simulate::latency;
use calls::{Round, by_minute, refusals};
use critical_path::CriticalPath;
use place::Place;
use size::Size;

/// The sizes of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Binary of the manager; by default the one next to this program.
    #[arg(long, value_name = "PATH")]
    manager: Option<PathBuf>,
    /// Number of clusters that are created at the same time; 0 to measure only a single one.
    #[arg(long, value_name = "N", default_value_t = 100)]
    clusters: usize,
    /// Number of control plane machines of each cluster.
    #[arg(long, value_name = "N", default_value_t = 3)]
    control_planes: usize,
    /// Number of workers of each cluster.
    #[arg(long, value_name = "N", default_value_t = 7)]
    workers: usize,
    /// Measure clusters that Azure manages, with this number of node pools each, instead of clusters of machines.
    #[arg(long, value_name = "N", conflicts_with_all = ["control_planes", "workers"])]
    pools: Option<usize>,
    /// Do not measure a single cluster.
    #[arg(long)]
    no_pace: bool,
    /// Duration of Azure's operations: instant, quick (0.8 s for networks), typical or a JSON file.
    #[arg(long, default_value = "typical", value_parser = latency::parse)]
    latency: LatencyProfile,
    /// Interval in seconds at which the manager reconciles unchanged objects, in the measurement of clusters at rest.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(10..))]
    sync_period: u64,
}

/// The cluster whose pace is measured.
const ONE: Size = Size::Machines { control_planes: 3, workers: 3 };
/// The same if Azure manages it.
const ONE_MANAGED: Size = Size::Pools(2);
/// The idle time before the program's memory is read.
const REST: Duration = Duration::from_secs(5);
/// The manager's sync period while the pace is measured: only events should wake it.
const NEVER: Duration = Duration::from_secs(3600);
/// The number of kinds of calls in the table.
const KINDS: usize = 16;

/// Measures and prints tables.
///
/// # Errors
/// The binary is missing or fails.
pub fn run(screen: Screen, arguments: &Arguments) -> anyhow::Result<()> {
    let binary = beside_this(arguments.manager.clone(), "capz-controller-manager", "--manager")?;
    runtime(TWO_THREADS)?.block_on(async {
        if !arguments.no_pace {
            pace(screen, &binary, arguments).await?;
        }
        if arguments.clusters > 0 {
            scale(screen, &binary, arguments).await?;
        }
        Ok(())
    })
}

/// Measures one cluster and compares it with its critical path.
async fn pace(screen: Screen, binary: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("cerulean-bench-").tempdir()?;
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let bar = screen.waiting("one cluster");
    let place = Place::start(directory.path(), arguments.latency.clone(), &stop).await?;
    let mut program = place.start_manager(binary, NEVER)?;
    let one = if arguments.pools.is_some() { ONE_MANAGED } else { ONE };
    let times = place.create(&["one".to_owned()], one, &mut program, &bar).await?;
    let journal = place.take_journal();
    let azure = &place.azure.azure;
    let path = CriticalPath::of(&journal.entries, |id| azure.document(id));
    drop(program);
    bar.finish_and_clear();
    let took = times.first().copied().unwrap_or_default();
    let [base, members] = one.words();
    screen.heading(match one {
        Size::Machines { control_planes, workers } => {
            format!("One public cluster, {control_planes} control planes and {workers} workers")
        }
        Size::Pools(pools) => format!("One cluster that Azure manages, with {pools} node pools"),
    });
    let rows = [
        row![format!("its {base} is there after"), seconds(took.base), ""],
        row![format!("all its {members} are there after"), seconds(took.members), ""],
        row!["the critical path", seconds(path.length()), ""],
        row!["time by critical path", ratio(took.members, path.length()), "1.15"],
    ];
    screen.table(["WHAT", "MEASURED", "GOAL"], &rows);
    screen.line(format_args!("  critical path: {path}"));
    print_kinds(screen, &journal);
    Ok(())
}

/// What the manager held and did up to a point in time.
struct Phase {
    name: String,
    memory: Memory,
    worked: Duration,
}

impl Phase {
    fn of(program: &Running, name: String) -> anyhow::Result<Self> {
        Ok(Self { name, memory: Memory::of(program.id())?, worked: processor_time(program.id())? })
    }

    fn row(&self, goal: &str) -> [String; 6] {
        let Memory { resident, private, peak, .. } = self.memory;
        let [resident, private, peak] = [resident, private, peak].map(megabytes);
        [self.name.clone(), goal.to_owned(), resident, private, peak, seconds(self.worked)]
    }
}

/// Many clusters at once.
async fn scale(screen: Screen, binary: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("cerulean-bench-").tempdir()?;
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let bar = screen.waiting("many clusters");
    let Arguments { control_planes, workers, .. } = *arguments;
    let size = arguments.pools.map_or(Size::Machines { control_planes, workers }, Size::Pools);
    let [base, members] = size.words();
    let all_members = arguments.clusters * size.members();
    let names: Vec<String> = (0..arguments.clusters).map(|number| format!("cluster-{number:03}")).collect();
    let sync_period = Duration::from_secs(arguments.sync_period);
    let place = Place::start(directory.path(), arguments.latency.clone(), &stop).await?;
    let mut program = place.start_manager(binary, sync_period)?;
    sleep(REST).await;
    let mut phases = vec![Phase::of(&program, "idle".to_owned())?];

    let times = place.create(&names, size, &mut program, &bar).await?;
    phases.push(Phase::of(&program, format!("{} clusters have come", arguments.clusters))?);
    let come = place.take_journal();

    // Reconciles caused by events end within one period; those of the next one are caused only by time.
    bar.set_message("at rest");
    sleep(sync_period).await;
    program.must_run()?;
    place.take_journal();
    place.take_kubernetes_writes();
    phases.push(Phase::of(&program, format!("after {} s at rest", arguments.sync_period))?);
    sleep(sync_period).await;
    program.must_run()?;
    let (rest, written) = (place.take_journal(), place.take_kubernetes_writes());
    phases.push(Phase::of(&program, format!("after {} s more", arguments.sync_period))?);

    bar.set_message("restart");
    drop(program);
    place.take_journal();
    place.take_kubernetes_writes();
    let mut program = place.start_manager(binary, NEVER)?;
    let looked = place.rest(&mut program).await?;
    let (again, written_again) = (place.take_journal(), place.take_kubernetes_writes());
    phases.push(Phase::of(&program, format!("after a restart and {} of reconciling", seconds(looked)))?);
    drop(program);
    bar.finish_and_clear();

    screen.heading(format!("{} clusters with {all_members} {members} at once", arguments.clusters));
    let bases: Vec<Duration> = times.iter().map(|it| it.base).collect();
    let all: Vec<Duration> = times.iter().map(|it| it.members).collect();
    let own: Vec<Duration> = times.iter().map(|it| it.members.saturating_sub(it.base)).collect();
    let rows = [
        spread(&format!("its {base}"), bases),
        spread(&format!("its {members}"), all),
        spread(&format!("from its {base} to its {members}"), own),
    ];
    screen.table(["A CLUSTER HAS", "FIRST", "MEDIAN", "P95", "LAST"], &rows);

    screen.heading("Calls to Azure by time");
    let rows: Vec<_> = by_minute(&come)
        .iter()
        .enumerate()
        .map(|(index, it)| {
            let numbers = [index + 1, it.calls, it.writes, it.throttled, it.refused];
            numbers.map(|number| number.to_string())
        })
        .collect();
    screen.table(["MINUTE", "CALLS", "WRITES", "THROTTLED", "REFUSED"], &rows);
    for (what, count) in refusals(&come) {
        screen.line(format_args!("  refused: {what}: {count}"));
    }
    print_kinds(screen, &come);

    screen.heading("At rest");
    let round = |what: &str, journal: &Journal, objects: usize| {
        let round = Round::of(journal);
        let mean = round.reads as f64 / arguments.clusters as f64;
        row![what, format!("{mean:.1}"), round.most_reads, round.writes, objects]
    };
    let rows = [
        round(&format!("a period of {} s", arguments.sync_period), &rest, written.values().sum()),
        round("a restart", &again, written_again.values().sum()),
        row!["goal", size.reads_goal(), size.reads_goal(), "0", "0"],
    ];
    screen.table(["WHILE", "READS OF A CLUSTER", "AT MOST", "WRITES", "WRITES TO KUBERNETES"], &rows);
    print_kinds(screen, &again);
    for (what, count) in written.iter().chain(&written_again) {
        screen.line(format_args!("  written to Kubernetes: {what}: {count}"));
    }

    screen.heading("Memory");
    let rows: Vec<_> = phases.iter().map(|phase| phase.row(size.memory_goal())).collect();
    screen.table(["THE MANAGER", "GOAL", "RESIDENT", "PRIVATE", "PEAK", "PROCESSOR TIME"], &rows);
    let private = |phase: Option<&Phase>| phase.map_or(0, |phase| phase.memory.private);
    let held = private(phases.last()).saturating_sub(private(phases.first()));
    let each = held.checked_div(all_members as u64).unwrap_or_default();
    screen.line(format_args!("  each of the {members}, with its share of its cluster: {} kB", each / 1_000));
    Ok(())
}

/// The distribution of clusters' times as a table row.
fn spread(what: &str, mut times: Vec<Duration>) -> [String; 5] {
    times.sort();
    let at = |hundredths| seconds(percentile(&times, hundredths));
    [what.to_owned(), at(0), at(50), at(95), at(100)]
}

fn print_kinds(screen: Screen, journal: &Journal) {
    let calls = Calls::of(journal);
    let mut kinds: Vec<(String, u64)> = calls.by_kind.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rest: u64 = kinds.iter().skip(KINDS).map(|(_, count)| count).sum();
    kinds.truncate(KINDS);
    kinds.push(("others".to_owned(), rest));
    kinds.push(("all".to_owned(), calls.all));
    let rows: Vec<_> = kinds.into_iter().map(|(kind, count)| [kind, count.to_string()]).collect();
    screen.heading("Calls to Azure by kind");
    screen.table(["CALL", "COUNT"], &rows);
}

fn ratio(time: Duration, path: Duration) -> String {
    if path.is_zero() { "-".to_owned() } else { format!("{:.2}", time.as_secs_f64() / path.as_secs_f64()) }
}

//! `cerulean demo`: ordinary manifests become load balancers that pass traffic, and with `clusters` whole clusters.
//!
//! Both simulators are served over TLS, and the controller manager and one machine's node manager run as they do in
//! production: the same code from their command lines on, over real HTTP.

mod acts;
mod clusters;
mod mishaps;
mod programs;
mod report;
mod running;
mod spot;
mod stage;

use simulated_cluster::Shape;
use tokio_util::sync::CancellationToken;

use crate::manifests::{Manifest, ManifestArguments};
use crate::screen::Screen;
use crate::watch_writes::Writes;
use stage::Stage;

/// The default manifests of the demo.
const EXAMPLES: [(&str, &str); 3] = [
    ("examples/shop.yaml", include_str!("../../../examples/shop.yaml")),
    ("examples/resolver.yaml", include_str!("../../../examples/resolver.yaml")),
    ("examples/orders.yaml", include_str!("../../../examples/orders.yaml")),
];

/// How to run the demo.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    other: Option<Other>,
    /// Leave everything running afterwards, for kubectl and a browser.
    #[arg(long)]
    keep: bool,
    /// Without -f, the demo applies its own examples, then loses a machine and a spot machine, moves a port, loses a
    /// load balancer, has one of three Services refused, and deletes a Service.
    #[command(flatten)]
    manifests: ManifestArguments,
}

/// Other demos.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Turn examples/clusters/ into two clusters with ready nodes, one of them AKS, change them, and delete them.
    Clusters(clusters::Arguments),
}

/// Runs the demo.
///
/// # Errors
/// A Service got no address, or a packet went where it should not.
pub fn run(screen: Screen, arguments: Arguments) -> anyhow::Result<()> {
    if let Some(Other::Clusters(arguments)) = &arguments.other {
        return clusters::run(screen, arguments);
    }
    let own_examples = arguments.manifests.files.is_empty();
    let manifests =
        if own_examples { Manifest::read_all(&EXAMPLES)? } else { arguments.manifests.load(screen)? };
    let dual_stack = manifests.iter().any(acts::needs_ipv6);
    let shape = spot::prepare(Shape { dual_stack, ..Shape::default() });
    running::run(arguments.keep, async |directory, stop| {
        acts::rehearse(&shape, &manifests).await?;
        let mut stage = Stage::set(screen, shape, directory, Writes::listen()).await?;
        let outcomes = acts::apply(&mut stage, &manifests).await?;
        let mut lost = 0;
        if own_examples {
            acts::send_example_packets(&mut stage).await?;
            acts::lose_a_node(&mut stage).await?;
            spot::take_back(&mut stage).await?;
            acts::change_a_port(&mut stage).await?;
            mishaps::delete_a_load_balancer(&mut stage).await?;
            mishaps::refuse_one_of_three(&mut stage).await?;
            acts::delete_a_service(&mut stage).await?;
        } else {
            lost = acts::send_packets(&mut stage, &outcomes).await?;
        }
        report::calls(&stage);
        if arguments.keep {
            keep(&stage, stop).await;
        }
        stage.clear().await?;
        let refused = outcomes.iter().filter(|outcome| outcome.warning.is_some()).count();
        verdict(outcomes.len(), refused, lost)
    })?;
    running::passed(screen);
    Ok(())
}

fn verdict(services: usize, refused: usize, lost: usize) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    if refused > 0 {
        let services = if services == 1 { "1 Service".to_owned() } else { format!("{services} Services") };
        problems.push(format!("{refused} of {services} got no address"));
    }
    if lost > 0 {
        let packets = if lost == 1 { "1 test packet".to_owned() } else { format!("{lost} test packets") };
        problems.push(format!("{packets} did not arrive"));
    }
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("; "));
    Ok(())
}

async fn keep(stage: &Stage, stop: &CancellationToken) {
    let screen = stage.screen;
    screen.heading("The cluster keeps running");
    screen.line(format_args!("  export KUBECONFIG={}", stage.cluster.files.kubeconfig.display()));
    screen.line("  kubectl get services --all-namespaces --watch");
    screen.line(format_args!("  page: {}", stage.cluster.page()));
    screen.line("  Stop with Ctrl-C.");
    stop.cancelled().await;
}

//! `cerulean demo`: ordinary manifests become load balancers that pass traffic.
//!
//! Both simulators are served over TLS, and the controller manager runs as it does in production: the same
//! code from its command line on, over real HTTP.

mod acts;
mod report;
mod stage;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

use crate::screen::{Screen, Tone};
use crate::watch_writes::Writes;
use crate::{TWO_THREADS, runtime, signals};
use stage::Stage;

/// The manifests that the demo applies unless it is given others.
const EXAMPLES: [(&str, &str); 3] = [
    ("examples/shop.yaml", include_str!("../../../../examples/shop.yaml")),
    ("examples/resolver.yaml", include_str!("../../../../examples/resolver.yaml")),
    ("examples/orders.yaml", include_str!("../../../../examples/orders.yaml")),
];

/// How to run the demo.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Leave everything running afterwards, for kubectl and a browser.
    #[arg(long)]
    keep: bool,
    /// Apply this file instead of the examples; may be given several times.
    #[arg(long = "manifest")]
    manifests: Vec<PathBuf>,
}

/// Runs the demo.
///
/// # Errors
/// Something did not come true.
pub fn run(screen: Screen, arguments: Arguments) -> anyhow::Result<()> {
    let manifests = if arguments.manifests.is_empty() {
        EXAMPLES.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec()
    } else {
        read(&arguments.manifests)?
    };
    let writes = Writes::listen();
    let directory = tempfile::Builder::new().prefix("cerulean-demo-").tempdir()?;
    let runtime = runtime(TWO_THREADS)?;
    let done = runtime.block_on(async {
        let stop = signals::stop_token()?;
        let play = async {
            let mut stage = Stage::set(screen, directory.path(), writes).await?;
            let services = acts::apply(&mut stage, &manifests).await?;
            if arguments.manifests.is_empty() {
                acts::lose_a_node(&mut stage).await?;
                acts::change_a_port(&mut stage).await?;
                acts::delete_a_service(&mut stage).await?;
            } else {
                acts::send_packets(&stage, &services).await?;
            }
            report::calls(&stage);
            if arguments.keep {
                keep(&stage, &stop).await;
            }
            stage.clear().await
        };
        tokio::select! {
            done = play => done,
            () = interrupted(&stop, arguments.keep) => anyhow::bail!("interrupted"),
        }
    });
    // Whatever still waits for a closed connection need not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(200));
    done?;
    screen.line(format_args!("\n{}", screen.paint(Tone::Good, "All of it came true.")));
    Ok(())
}

/// Ends when told to stop; with `--keep` that is the ordinary end, and the play sees to it.
async fn interrupted(stop: &tokio_util::sync::CancellationToken, keep: bool) {
    if keep {
        std::future::pending::<()>().await;
    }
    stop.cancelled().await;
}

fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<(String, String)>> {
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("--manifest {name}"))?;
        Ok((name, text))
    };
    paths.iter().map(read).collect()
}

async fn keep(stage: &Stage, stop: &tokio_util::sync::CancellationToken) {
    let screen = stage.screen;
    screen.heading("It stays up");
    screen.line(format_args!("  export KUBECONFIG={}", stage.cluster.files.kubeconfig.display()));
    screen.line("  kubectl get services --all-namespaces --watch");
    screen.line(format_args!("  page: {}", stage.cluster.page()));
    screen.line("  Stop with Ctrl-C.");
    stop.cancelled().await;
}

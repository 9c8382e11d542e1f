//! From a command line to a running manager: wiring, nothing else.

use std::sync::Arc;
use std::time::Duration;

use command_line::StartRefusal;
use controllers::leader_election::{self, Elector};
use kube::Client;
use manager::DelegatedAuthorizer;
use program::environment::ProcessEnvironment;
use program::kubernetes::{self, Address, RequestObserver};
use telemetry::health::{Check, Health};
use telemetry::metrics::controllers::WebhookMetrics;
use telemetry::metrics::{Build, HealthMetrics, Metrics};
use telemetry::server::{self, Listening, Readers, metrics_router};
use telemetry::tls::Certificate;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::flags::CommandLine;
use crate::lead::{Meter, USER_AGENT, azure, lead, workloads};
use crate::webhooks::{Lookups, Webhooks};

/// How long webhooks are served after the stop. Services need a moment to stop routing to a pod, and requests in that
/// time would fail.
const LINGER: Duration = Duration::from_secs(2);

/// Runs the manager until `stop`.
///
/// # Errors
/// One line that names the flag or address and the remedy, or [`StartRefusal`] with a line for each; the process should exit
/// with 1.
pub async fn run(
    line: CommandLine,
    environment: ProcessEnvironment,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    for (flags, reason) in &line.without_effect {
        tracing::warn!(flags = flags.join(","), reason, "Flags accepted without effect");
    }
    let problems: Vec<String> = line.problems().iter().map(ToString::to_string).collect();
    if !problems.is_empty() {
        return Err(StartRefusal::one("the command line", problems).into());
    }
    tracing::info!(version = %version::Version, "Starting capz-controller-manager");
    // No lease is held and nothing was written yet: the program may be stopped at any point here.
    let metrics = metrics();
    let meter = Meter::of(&metrics);
    let connecting = connect(&line, &environment, Arc::new(meter.clone()));
    let Some(client) = stop.run_until_cancelled(connecting).await else { return Ok(()) };
    let client = client?;
    let settings = line.settings(&environment);
    let azure = azure(&settings, &environment, &metrics)?;
    let workloads = workloads(&environment)?;
    let serving = CancellationToken::new();
    let _stops_serving = serving.clone().drop_guard();
    let webhooks = Webhooks {
        gates: settings.gates.of_admission(),
        lookups: Lookups::new(client.clone(), settings.subscription.clone()),
        metrics: WebhookMetrics::of(&metrics),
    };
    let webhooks = Arc::new(serve_webhooks(&line, &webhooks, &serving).await?);
    serve_diagnostics(&line, &client, &metrics, &serving).await?;
    let elector = match line.flags.leader_elect {
        false => None,
        true => {
            let namespace = environment.variable("POD_NAMESPACE");
            let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
            let election = line.election(namespace, leader_election::identity(&environment.host_name()));
            let clock = controllers::Clock::system();
            Some(Elector::new(client.clone(), election, clock, Arc::new(meter.clone()))?)
        }
    };
    serve_health(&line, &webhooks, elector.as_ref(), &metrics, &serving).await?;

    // Counted from the stop, while the controllers end their work.
    let lingers = tokio::spawn({
        let stop = stop.clone();
        async move {
            stop.cancelled().await;
            sleep(LINGER).await;
        }
    });
    let led = async {
        match elector {
            None => lead(client, azure, settings, workloads, meter, stop.clone()).await,
            Some(elector) => {
                let led = elector
                    .run(stop.clone(), async move |stop| {
                        lead(client, azure, settings, workloads, meter, stop).await
                    })
                    .await?;
                led.unwrap_or(Ok(()))
            }
        }
    };
    let outcome = led.await;
    // After the lease is lost the process ends at once.
    if outcome.is_ok() && stop.is_cancelled() {
        lingers.await?;
    }
    serving.cancel();
    webhooks.ended().await;
    outcome
}

/// The metrics of this program.
pub(crate) fn metrics() -> Metrics {
    let (version, commit) = (version::RELEASE, version::COMMIT);
    Metrics::of_program(Build { program: "capz-controller-manager", version, commit })
}

async fn connect(
    line: &CommandLine,
    environment: &ProcessEnvironment,
    observer: Arc<dyn RequestObserver>,
) -> anyhow::Result<Client> {
    let kubeconfig = line.kubeconfig(environment);
    let address = Address {
        kubeconfig: &kubeconfig,
        master: "",
        agent: USER_AGENT,
        waits: true,
        observer: Some(&observer),
    };
    kubernetes::connect(&address, &environment.proxy()?).await
}

async fn serve_webhooks(
    line: &CommandLine,
    webhooks: &Webhooks,
    stop: &CancellationToken,
) -> anyhow::Result<Listening> {
    let folder = &line.flags.webhook_cert_dir;
    let certificate = Certificate::Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key") };
    let tls = line.tls(certificate);
    if !tls.suites.left_out.is_empty() {
        let suites = tls.suites.left_out.join(",");
        tracing::warn!(
            suites,
            "Cipher suites without forward secrecy or authenticated encryption are not offered"
        );
    }
    let asked = (line.webhook_address(), "--webhook-port");
    let listening = server::serve(webhooks.router(), asked, Some(&tls), stop.clone()).await?;
    tracing::info!(address = %listening.address, "Serving webhooks");
    Ok(listening)
}

async fn serve_diagnostics(
    line: &CommandLine,
    client: &Client,
    metrics: &Metrics,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    // Validated before.
    let Ok(Some(address)) = line.diagnostics_address() else { return Ok(()) };
    let (readers, tls) = match line.flags.insecure_diagnostics {
        true => (Readers::Everyone, None),
        false => (
            Readers::Authorized(Arc::new(DelegatedAuthorizer::new(client))),
            Some(line.tls(Certificate::SelfSigned)),
        ),
    };
    let router = metrics_router(metrics.clone(), readers);
    let asked = (address, "--diagnostics-address");
    let listening = server::serve(router, asked, tls.as_ref(), stop.clone()).await?;
    tracing::info!(address = %listening.address, "Serving metrics");
    Ok(())
}

async fn serve_health(
    line: &CommandLine,
    webhooks: &Arc<Listening>,
    elector: Option<&Elector>,
    metrics: &Metrics,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let Ok(Some(address)) = line.health_address() else { return Ok(()) };
    let webhooks = Arc::clone(webhooks);
    let mut checks = vec![Check {
        name: "webhook".to_owned(),
        run: Arc::new(move || match webhooks.is_open() {
            true => Ok(()),
            false => Err("the webhook server has stopped".to_owned()),
        }),
    }];
    if let Some(check) = elector.map(Elector::health_check) {
        checks.push(Check { name: check.name().to_owned(), run: Arc::new(move || check.check()) });
    }
    let health = Health::new(move || checks.clone(), &["webhook"]).counted(HealthMetrics::of(metrics));
    let asked = (address, "--health-addr");
    let listening = server::serve(health.router(), asked, None, stop.clone()).await?;
    tracing::info!(address = %listening.address, "Serving health checks");
    Ok(())
}

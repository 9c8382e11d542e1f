//! From a command line to a running manager: wiring, nothing else.

use std::sync::Arc;
use std::time::Duration;

use capz::Settings;
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
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::flags::CommandLine;
use crate::lead::{Meter, USER_AGENT, azure, lead, workloads};
use crate::webhooks::{Lookups, Webhooks};

/// How many objects of unserved kinds a message names.
const NAMED: usize = 5;

/// How long the API server may take to serve a version that it lists.
const LISTED_BEFORE_SERVED: Duration = Duration::from_secs(30);

/// The pause before it is asked again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

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
    let unserved = check_unserved(&client, &settings);
    let Some(all_served) = stop.run_until_cancelled(unserved).await else { return Ok(()) };
    all_served?;
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

/// Retries while the API server does not serve what it lists: it lists the version of a new definition a moment before it serves
/// it, and answers 404 meanwhile.
async fn once_served<T, F>(mut ask: impl FnMut() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    let deadline = Instant::now() + LISTED_BEFORE_SERVED;
    loop {
        match ask().await {
            Err(kube::Error::Api(status))
                if matches!(status.code, 404 | 429 | 500..) && Instant::now() < deadline =>
            {
                tracing::info!(answer = %status.message, "waiting for the API server to serve what it lists");
                sleep(RETRY_PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// Checks that there are no objects of unserved kinds: as long as this program does not start, the program that serves
/// them goes on.
async fn check_unserved(client: &Client, settings: &Settings) -> anyhow::Result<()> {
    let unserved = once_served(|| capz::unserved(client, settings)).await;
    let unserved = unserved.map_err(|error| {
        let remedy = match &error {
            kube::Error::Api(status) if status.is_forbidden() => {
                "give capz-manager the rights of deploy/capz/parts/40-rights.yaml"
            }
            _ => "check that the API server serves all versions of infrastructure.cluster.x-k8s.io that it lists",
        };
        anyhow::anyhow!(
            "cannot see whether there are clusters that Azure manages (AKS), which are not served: {}; {remedy}",
            controllers::answer(&error)
        )
    })?;
    if unserved.is_empty() {
        return Ok(());
    }
    let more = unserved.len().saturating_sub(NAMED);
    let named: Vec<String> = unserved.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    anyhow::bail!(
        "clusters that Azure manages (AKS) are not served, and nothing would look after these objects: {}{more}; keep the established provider, \
         or give it the ones that are to stay with it by --watch-filter or --namespace",
        named.join(", ")
    )
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::future::ready;

    use kube::core::Status;

    use super::*;

    fn refused(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(Status { code, message: "404 page not found".into(), ..Status::default() }))
    }

    /// Found with clusterctl at kube-apiserver 1.36.3: the pod of a new provider starts a moment after its definitions.
    #[tokio::test(start_paused = true)]
    async fn what_is_listed_and_not_served_yet_is_waited_for() {
        let begun = Instant::now();
        let mut answers = vec![Ok(7), Err(refused(503)), Err(refused(404))];
        assert_eq!(once_served(|| ready(answers.pop().unwrap())).await.unwrap(), 7);
        assert_eq!(begun.elapsed(), 2 * RETRY_PAUSE);
        // A refusal is not waited for, and what does not pass ends.
        let begun = Instant::now();
        assert!(once_served(|| ready(Err::<u8, _>(refused(403)))).await.is_err());
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(once_served(|| ready(Err::<u8, _>(refused(404)))).await.is_err());
        assert_eq!(begun.elapsed(), LISTED_BEFORE_SERVED);
    }
}

//! From a command line to running controllers: wiring, nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use controllers::leader_election::{self, Elector};
use k8s::{Node, Service};
use kube::api::ListParams;
use kube::{Api, Client};
use planner::Cluster;
use provider::{ClusterState, Provider};
use telemetry::health::Health;
use telemetry::metrics::Metrics;
use telemetry::server::{self, Certificate, Endpoints};
use tokio_util::sync::CancellationToken;

use crate::flags::{CommandLine, Flags};
use crate::observe::Meter;
use crate::surroundings::Surroundings;
use crate::{azure, kubernetes, settings};

/// Runs the program until `stop`, or, with `--dry-run`, returns the plan as text.
///
/// # Errors
/// One line that names the flag, key or address and the remedy; the process should exit with 1.
pub async fn run(
    line: CommandLine,
    surroundings: Surroundings,
    stop: CancellationToken,
) -> anyhow::Result<Option<String>> {
    let problems = line.problems();
    if !problems.is_empty() {
        bail!("{}", problems.join("; "));
    }
    for (flag, reason) in &line.without_effect {
        tracing::warn!(flag, reason, "Flag accepted without effect");
    }
    let config = settings::read(&line.flags.cloud_config, &surroundings)?;
    let client = kubernetes::connect(&line.flags).await?;
    let metrics = Metrics::default();
    let meter = Arc::new(Meter(metrics.clone()));

    // Before any election: a replica with wrong credentials says so at once, not when it is needed.
    let azure = azure::connect(&config, &surroundings, meter.clone()).await?;

    let prepare = {
        let (name, stop) = (line.flags.cluster_name.clone(), stop.clone());
        async move || -> anyhow::Result<Provider> {
            let region_zones = azure::region_zones(&azure, &config).await?;
            let cluster = Cluster { config, name, region_zones };
            let options = provider::Options { stop, ..provider::Options::default() };
            Ok(Provider::new(cluster, azure, ClusterState::default(), options))
        }
    };
    if line.flags.dry_run {
        let provider = prepare().await?;
        list_everything(&client, provider.state()).await?;
        let plan = provider.dry_run().await?;
        return Ok(Some(plan.to_string()));
    }

    let health = Health::default();
    serve(&line.flags, &client, &health, metrics, &stop).await?;
    let host = surroundings.host_name();
    let options = options(&line, &health, meter.clone(), &host);
    let lead = {
        let client = client.clone();
        async move |stop: CancellationToken| -> anyhow::Result<()> {
            let provider = prepare().await?;
            let state = provider.state().clone();
            controllers::run(client, controllers::Cloud::of(provider, state), options, stop).await?;
            Ok(())
        }
    };
    if !line.flags.leader_elect {
        lead(stop).await?;
        return Ok(None);
    }
    let flags = &line.flags;
    let config = leader_election::Config {
        namespace: flags.leader_elect_resource_namespace.clone(),
        name: flags.leader_elect_resource_name.clone(),
        lease_duration: flags.leader_elect_lease_duration,
        renew_deadline: flags.leader_elect_renew_deadline,
        retry_period: flags.leader_elect_retry_period,
        seed: u64::from(std::process::id()),
        ..leader_election::Config::new(leader_election::identity(&host))
    };
    let elector = Elector::new(client, config, controllers::Clock::system(), meter)?;
    let check = elector.health_check();
    let name = check.name().to_owned();
    health.add_to_readiness(&name, Arc::new(move || check.check()));
    elector.run(stop, lead).await?.transpose()?;
    Ok(None)
}

/// How the controllers run, by the flags.
fn options(line: &CommandLine, health: &Health, meter: Arc<Meter>, host: &str) -> controllers::Options {
    let flags = &line.flags;
    let controllers = controllers::Controllers {
        service: line.enabled("service-lb-controller"),
        cloud_node: line.enabled("cloud-node-controller"),
        cloud_node_lifecycle: line.enabled("cloud-node-lifecycle-controller"),
    };
    let checks = controllers::HealthChecks::default();
    let watched = checks.clone();
    // Controllers add their checks as they start; one check here asks all that there are by then.
    health.add(
        "controllers",
        Arc::new(move || {
            let failing = watched
                .all()
                .into_iter()
                .filter_map(|check| check.check().err().map(|reason| format!("{}: {reason}", check.name())));
            let failing: Vec<String> = failing.collect();
            if failing.is_empty() { Ok(()) } else { Err(failing.join("; ")) }
        }),
    );
    controllers::Options {
        controllers,
        node_monitor_period: flags.node_monitor_period,
        node_status_update_frequency: flags.node_status_update_frequency,
        node_selector: Some(flags.node_filter_requirements.clone()).filter(|selector| !selector.is_empty()),
        host: host.to_owned(),
        health: checks,
        observer: meter,
        ..controllers::Options::default()
    }
}

/// Serves health checks and metrics, unless the port is 0.
async fn serve(
    flags: &Flags,
    client: &Client,
    health: &Health,
    metrics: Metrics,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    if flags.secure_port == 0 {
        return Ok(());
    }
    let certificate = if flags.tls_cert_file.is_empty() {
        Certificate::SelfSigned
    } else {
        Certificate::Files {
            certificate: flags.tls_cert_file.clone().into(),
            key: flags.tls_private_key_file.clone().into(),
        }
    };
    let authorizer = Some(Arc::new(kubernetes::DelegatedAuthorizer::new(client)) as _);
    let router = Endpoints { health: health.clone(), metrics, authorizer }.router();
    let address = SocketAddr::new(flags.bind_address, flags.secure_port);
    let bound = server::serve(router, address, &certificate, stop.clone()).await?;
    tracing::info!(address = %bound, "Serving health checks and metrics");
    Ok(())
}

/// Lists Services and Nodes once: what a plan needs.
async fn list_everything(client: &Client, state: &ClusterState) -> anyhow::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let list = async {
        let everything = ListParams::default();
        let services = Api::<Service>::all(client.clone()).list(&everything).await?;
        let nodes = Api::<Node>::all(client.clone()).list(&everything).await?;
        services.items.into_iter().for_each(|service| state.apply_service(Arc::new(service)));
        nodes.items.into_iter().for_each(|node| state.apply_node(Arc::new(node)));
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, list)
        .await
        .context("the Kubernetes API did not list Services and Nodes within a minute")?
        .context("cannot list Services and Nodes")?;
    state.services_are_synced();
    state.nodes_are_synced();
    Ok(())
}

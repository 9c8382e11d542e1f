//! The established programs, beside the simulators, and the prerequisites of their clusters.

use std::path::Path;

use azure_simulator::packet::Source;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use serde_json::json;
use simulated_cluster::{Shape, WorkloadOptions};

use super::flavor;
use super::operator::Operator;
use super::place::Place;
use super::provider::Provider;
use crate::e2e::capz::objects::create;
use crate::program::Program;
use crate::world::{CLIENT_SECRET, World};

/// The Secret of the cluster's identity.
pub const SECRET: &str = "cluster-identity-secret";

/// What is started.
pub struct Programs<'a> {
    /// Binary of the established provider's manager.
    pub manager: &'a Path,
    /// Folder with the sources of that manager.
    pub sources: &'a Path,
    /// Binary of Azure Service Operator's controller.
    pub operator: &'a Path,
}

/// Starts the simulators, the operator and the provider, in this order.
///
/// # Errors
/// Something does not start.
pub async fn start(
    programs: &Programs<'_>,
    flavor: &str,
    directory: &Path,
) -> anyhow::Result<(Shape, Place, Vec<Program>)> {
    // The region of the templates' machines.
    let shape = Shape { region: "eastus".to_owned(), ..Shape::default() };
    let management = match flavor {
        // Its API server is only reachable from its network.
        "private" => Source::VirtualNetwork {
            network: format!("{flavor}-vnet"),
            address: std::net::Ipv4Addr::new(10, 1, 255, 4).into(),
        },
        _ => WorkloadOptions::default().management,
    };
    let place = Place::start(directory, &shape, management).await?;
    if flavor::is_managed(flavor) {
        place.serve_managed_clusters(directory).await?;
    }
    let operator = Operator::install(programs.operator, directory, &place).await?;
    let mut running = vec![operator.start(&place).await?];
    let provider = Provider::install(programs.manager, programs.sources, directory, &place).await?;
    running.push(provider.start(&place).await?);
    provider.register(&place).await?;
    Ok((shape, place, running))
}

/// Creates the identity of machines in Azure, and the Secrets with credentials.
///
/// # Errors
/// Azure or the API server refuses something.
pub async fn create_prerequisites(
    world: &World,
    client: &Client,
    flavor: &str,
    shape: &Shape,
) -> anyhow::Result<()> {
    world.create_identity_for_machines()?;
    // With the label clusterctl moves it with the identity.
    let labels = json!({ "clusterctl.cluster.x-k8s.io/move-hierarchy": "true" });
    let secret = json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": SECRET, "namespace": "default", "labels": labels },
        "data": { "clientSecret": STANDARD.encode(CLIENT_SECRET) } });
    create(client, &secret).await?;
    if flavor::is_managed(flavor) {
        create(client, &flavor::credential_of_operator(shape, CLIENT_SECRET)).await?;
    }
    Ok(())
}

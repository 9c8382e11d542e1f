//! Simulates Cluster API beside an API server, the simulated one or a real one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use azure_simulator::serve;
use certificate_authority::CertificateAuthority;
use cluster_api_stand_in::{
    ClusterApi, ConversionWebhook, Part, WallClock, conversion_router, install_parts,
};
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::files::{HostError, certificates, listen};
use crate::workload::WorkloadClusters;

/// Installs the kinds of these parts, converts between their versions on a socket of its own, and runs their simulated
/// controllers, until `stop`. Kinds of the other parts may be installed later: the controllers start once they know all
/// kinds.
///
/// # Errors
/// No socket can be opened, or the API server refuses the kinds.
pub async fn play_cluster_api(
    parts: &[Part],
    client: &Client,
    workloads: &WorkloadClusters,
    clock: WallClock,
    seed: u64,
    stop: &CancellationToken,
) -> Result<(), HostError> {
    if parts.is_empty() {
        return Ok(());
    }
    let authority = CertificateAuthority::generate().map_err(certificates)?;
    let tls = authority.server_config(&["127.0.0.1"]).map_err(certificates)?;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = serve::serve(any, conversion_router(), Some(tls), stop.clone()).await.map_err(listen)?;
    let webhook = ConversionWebhook {
        url: format!("https://{}/convert", server.address()),
        authority: authority.certificate_pem().to_owned(),
    };
    let installed = install_parts(parts, client, &webhook).await;
    installed.map_err(|error| HostError::Kubernetes(error.to_string()))?;
    // Dropping the handle does not end it; the token does.
    let _controllers = ClusterApi::start_parts(
        parts,
        client.clone(),
        Arc::new(workloads.clone()),
        clock,
        seed,
        stop.clone(),
    );
    Ok(())
}

//! The metadata service of the machine on which a manager of clusters would run, as far as it issues tokens. It proves
//! identities of the type `UserAssignedMSI`. It listens at an address of this machine, for programs whose requests can
//! be redirected there.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use azure_simulator::entra::Entra;
use azure_simulator::imds::{MachineIdentities, ManagedIdentity, router};
use azure_simulator::serve;
use azure_types::ResourceId;
use kubernetes_simulator::Kubernetes;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::files::{HostError, listen};

#[derive(Clone)]
struct Host {
    kubernetes: Kubernetes,
    entra: Entra,
}

/// Serves it for the identities of a management cluster. Returns its URL.
pub(crate) async fn serve(
    kubernetes: &Kubernetes,
    entra: &Entra,
    stop: &CancellationToken,
) -> Result<String, HostError> {
    let host = Host { kubernetes: kubernetes.clone(), entra: entra.clone() };
    let routes = Router::new().fallback(answer).with_state(host);
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = serve::serve(any, routes, None, stop.clone()).await.map_err(listen)?;
    Ok(server.url())
}

/// Answers as a machine that has all currently declared identities.
async fn answer(State(host): State<Host>, request: Request) -> Response {
    let identities = host.kubernetes.list("AzureClusterIdentity");
    let identities = identities.iter().filter_map(|identity| {
        let spec = &identity.value()["spec"];
        let text = |member: &str| spec[member].as_str().unwrap_or_default().trim().to_owned();
        (spec["type"] == "UserAssignedMSI" && !text("clientID").is_empty()).then(|| ManagedIdentity {
            client_id: text("clientID"),
            object_id: text("clientID").to_lowercase(),
            resource_id: ResourceId::parse(&text("resourceID")).ok(),
        })
    });
    let machine = MachineIdentities { entra: host.entra, identities: identities.collect() };
    let Ok(response) = router(machine).oneshot(request).await;
    response
}

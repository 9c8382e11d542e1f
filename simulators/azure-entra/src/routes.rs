//! The HTTP routes of a directory.

use axum::Router;
use axum::routing::{get, post};

use super::directory::Entra;
use super::{discovery, graph, token_endpoint};

/// The text that a browser shows for the authority.
const ABOUT: &str = "This is a simulated Microsoft Entra ID. Tokens: POST /{tenant}/oauth2/v2.0/token; its description: \
     /{tenant}/v2.0/.well-known/openid-configuration; tenant, client ID and secret are in credentials.json or azure.json in \
     the folder of the simulation.\n";

impl Entra {
    /// The HTTP endpoints: the directory's under `/{tenant}/`, Microsoft Graph's under `/v1.0/`.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/{tenant}/discovery/instance", get(discovery::instance))
            .route("/{tenant}/v2.0/.well-known/openid-configuration", get(discovery::openid_v2))
            .route("/{tenant}/.well-known/openid-configuration", get(discovery::openid_v1))
            .route("/{tenant}/discovery/v2.0/keys", get(discovery::keys))
            .route("/{tenant}/discovery/keys", get(discovery::keys))
            .route("/{tenant}/oauth2/v2.0/token", post(token_endpoint::token))
            .route("/{tenant}/oauth2/token", post(token_endpoint::token))
            .merge(graph::routes())
            .with_state(self.clone())
    }

    /// The same on a listener of its own, where `/` describes it.
    pub fn authority_router(&self) -> Router {
        self.router().route("/", get(|| async { ABOUT }))
    }

    /// The endpoint of a cluster's identity binding: it exchanges tokens of service accounts in the home tenant.
    pub fn binding_router(&self) -> Router {
        Router::new().route("/", post(token_endpoint::binding)).with_state(self.clone())
    }
}

//! The HTTP routes of registries.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use http::StatusCode;
use http::header::HOST;

use super::answers::errors;
use super::registries::{Registries, RegistryRequest, host};
use super::{images, pushes, token_service};
use crate::host_routes::HostRoutes;

/// The largest part of a blob that is taken at once, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

impl Registries {
    /// The HTTP surface of all registries: the `Host` of a request selects the registry.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/v2/", get(images::base))
            .route(
                "/v2/{*below}",
                get(images::pull).post(pushes::begin).patch(pushes::append).put(pushes::finish),
            )
            .route("/oauth2/exchange", post(token_service::exchange))
            .route("/oauth2/token", post(token_service::token_by_form).get(token_service::token_by_query))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .layer(axum::middleware::from_fn_with_state(self.clone(), note))
            .with_state(self.clone())
    }

    /// The same as a data plane of Azure, for [`crate::Azure::serve_hosts`].
    pub fn hosts(&self) -> HostRoutes {
        HostRoutes {
            suffix: "azurecr.io".to_owned(),
            resource_type: "Microsoft.ContainerRegistry/registries".to_owned(),
            max_body_bytes: u64::try_from(MAX_BODY_BYTES).ok(),
            routes: self.router(),
            refuse: |refusal| {
                let status =
                    StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                errors(status, &refusal.code, &refusal.message)
            },
        }
    }
}

/// Writes each request into the journal. HTTP/2 names the host in the URI.
async fn note(
    axum::extract::State(registries): axum::extract::State<Registries>,
    mut request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    let authority =
        request.uri().authority().and_then(|host| http::HeaderValue::from_str(host.as_str()).ok());
    if let Some(authority) = authority {
        request.headers_mut().entry(HOST).or_insert(authority);
    }
    let agent = request.headers().get(http::header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let mut noted = RegistryRequest {
        method: request.method().to_string(),
        host: host(request.headers()),
        path: request.uri().path().to_owned(),
        user_agent: agent.unwrap_or_default().to_owned(),
        status: 0,
    };
    let fault = registries.shared.faults.lock().pop_front();
    let response = match fault.and_then(|status| StatusCode::from_u16(status).ok()) {
        Some(status) => errors(status, "UNAVAILABLE", "a test makes the registry fail"),
        None => next.run(request).await,
    };
    noted.status = response.status().as_u16();
    registries.shared.note(noted);
    response
}

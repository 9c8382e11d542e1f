//! The base URL of links in answers.

use axum::extract::Request;
use http::header::HOST;

use crate::azure::Azure;
use crate::serve::Scheme;

/// The base URL under which a request arrived.
pub(crate) fn base_url(azure: &Azure, request: &Request) -> String {
    if let Some(url) = azure.external_url() {
        return url.trim_end_matches('/').to_owned();
    }
    let uri = request.uri();
    let scheme = request.extensions().get::<Scheme>().map(|scheme| scheme.as_str());
    let scheme = scheme.or_else(|| uri.scheme_str()).unwrap_or("http");
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| uri.authority().map(|authority| authority.as_str())).unwrap_or("localhost");
    format!("{scheme}://{host}")
}

//! A tap on the transport to Azure: it sees each call of the controllers before Azure does, and may answer in its
//! place.

use std::convert::Infallible;
use std::fmt;

use axum::body::Body;
use azure_types::ResourceId;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tower::ServiceExt as _;

/// A call to Azure.
#[derive(Debug, Clone)]
pub struct Call {
    /// HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The resource; for an action, the one that acts. Absent for lists and polls.
    pub resource: Option<ResourceId>,
    /// The request body.
    pub body: Bytes,
}

impl Call {
    fn new(parts: &http::request::Parts, body: Bytes) -> Self {
        let (method, path) = (parts.method.to_string(), parts.uri.path().to_owned());
        let of_resource =
            if method == "POST" { path.rsplit_once('/').map(|(id, _)| id) } else { Some(&*path) };
        let resource = of_resource.and_then(|id| ResourceId::parse(id).ok());
        Self { method, path, resource, body }
    }

    /// Whether it may change something.
    pub fn is_write(&self) -> bool {
        matches!(self.method.as_str(), "PUT" | "PATCH" | "POST" | "DELETE")
    }

    /// The request body as JSON; null if it is empty.
    pub fn document(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// An answer in Azure's place.
#[derive(Debug, Clone)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Its body.
    pub body: Value,
}

/// Sees calls before and after Azure does.
pub trait Tap: fmt::Debug + Send + Sync {
    /// Called before a call is carried out; may return an answer instead.
    fn before(&self, call: &Call) -> Option<Reply> {
        let _ = call;
        None
    }

    /// Called after Azure has answered a call with this status.
    fn after(&self, call: &Call, status: u16) {
        let _ = (call, status);
    }
}

/// Carries out a request through a tap.
pub(crate) async fn call(
    tap: &dyn Tap,
    router: axum::Router,
    request: http::Request<Full<Bytes>>,
) -> Result<http::Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes)?;
    let call = Call::new(&parts, body.clone());
    if let Some(reply) = tap.before(&call) {
        let answer = http::Response::builder()
            .status(reply.status)
            .header("content-type", "application/json")
            .body(Body::from(reply.body.to_string()));
        return Ok(answer.expect("the answer is sound"));
    }
    let answer = router.oneshot(http::Request::from_parts(parts, Full::new(body))).await?;
    tap.after(&call, answer.status().as_u16());
    Ok(answer)
}

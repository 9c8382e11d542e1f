//! Service account tokens, as in pods.

use anyhow::Context as _;
use kube::Client;
use serde_json::{Value, json};

/// Requests a service account token from a real API server.
///
/// # Errors
/// The server's error.
pub async fn token(client: &Client, namespace: &str, name: &str) -> anyhow::Result<String> {
    let wanted = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let request = http::Request::post(path).header("Content-Type", "application/json");
    let answer: Value = client.request(request.body(wanted.to_string().into_bytes())?).await?;
    let token = answer["status"]["token"].as_str();
    token.map(str::to_owned).with_context(|| format!("there is no token for {namespace}/{name} in {answer}"))
}

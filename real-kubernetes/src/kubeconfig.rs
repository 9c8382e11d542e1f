//! Kubeconfigs.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;

/// A kubeconfig with a bearer token; `authority` is the file with the server's certificate.
pub(crate) fn text(server: SocketAddr, authority: &Path, token: &str) -> String {
    let cluster = json!({"server": format!("https://{server}"), "certificate-authority": authority});
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "run",
        "clusters": [{"name": "run", "cluster": cluster}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "run", "context": {"cluster": "run", "user": "user"}}],
    });
    // JSON is YAML.
    format!("{config:#}\n")
}

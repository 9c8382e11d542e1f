//! Kubeconfig files.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::kubernetes::Token;

/// Name of the cluster, user and context in the file.
const NAME: &str = "cerulean";

/// The text of the file. Every value is plain ASCII or quoted, so that no YAML rule can change its meaning.
pub(crate) fn render(url: &str, authority_pem: &str, token: Option<&Token>) -> String {
    let authority = STANDARD.encode(authority_pem);
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let user = match token {
        Some(token) => format!("\n    token: {}", quote(token.reveal())),
        None => " {}".to_owned(),
    };
    let url = quote(url);
    format!(
        "apiVersion: v1
kind: Config
current-context: {NAME}
clusters:
- name: {NAME}
  cluster:
    server: {url}
    certificate-authority-data: {authority}
contexts:
- name: {NAME}
  context:
    cluster: {NAME}
    user: {NAME}
    namespace: default
users:
- name: {NAME}
  user:{user}
"
    )
}

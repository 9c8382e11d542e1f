//! Kubeconfig files.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use certificate_authority::TlsError;

use crate::server::handle::Kubernetes;
use crate::server::options::Token;

/// Name of the cluster, user and context in the file.
const NAME: &str = "cerulean";

/// The text of the file. Every value is plain ASCII or quoted, so that no YAML rule can change its meaning.
fn render(url: &str, authority_pem: &str, token: Option<&Token>) -> String {
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

impl Kubernetes {
    /// A kubeconfig (YAML) for the server at `url`, with the authority's certificate and the first token inside, for
    /// kubectl and other clients. The result is a secret if there are tokens.
    ///
    /// # Errors
    /// The authority cannot be created.
    pub fn kubeconfig(&self, url: &str) -> Result<String, TlsError> {
        let authority = self.authority()?;
        Ok(render(url, authority.certificate_pem(), self.shared.options.tokens.first()))
    }
}

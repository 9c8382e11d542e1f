//! Kubeconfigs of clusters that Azure manages: what is read from them, and what is made of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Why a kubeconfig cannot be used. Its content is secret, and not part of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KubeconfigError {
    /// It is no YAML, or no mapping.
    #[error("the kubeconfig that Azure gave is not YAML")]
    NotYaml,
    /// Its current context leads to no cluster.
    #[error("the kubeconfig that Azure gave has no cluster in its current context")]
    NoCluster,
    /// Its cluster has no certificate authority.
    #[error("the kubeconfig that Azure gave has no certificate authority")]
    NoAuthority,
    /// It cannot be written as YAML.
    #[error("the kubeconfig cannot be written as YAML")]
    Unwritten,
}

/// A kubeconfig as Azure gives it. It cannot be printed.
#[derive(Clone, PartialEq)]
pub(crate) struct Kubeconfig {
    text: Vec<u8>,
    content: Value,
}

impl Kubeconfig {
    /// Reads the text of a kubeconfig.
    ///
    /// # Errors
    /// It is no YAML.
    pub fn read(text: Vec<u8>) -> Result<Self, KubeconfigError> {
        let content = std::str::from_utf8(&text).ok().and_then(|text| serde_saphyr::from_str(text).ok());
        let content: Value = content.filter(Value::is_object).ok_or(KubeconfigError::NotYaml)?;
        Ok(Self { text, content })
    }

    /// Its text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The cluster of its current context.
    fn cluster(&self) -> Result<&Value, KubeconfigError> {
        let named = |list: &str, name: &Value| {
            let items = self.content[list].as_array();
            items.into_iter().flatten().find(|item| item["name"] == *name)
        };
        let context = named("contexts", &self.content["current-context"]);
        let cluster = context.and_then(|context| named("clusters", &context["context"]["cluster"]));
        cluster.map(|cluster| &cluster["cluster"]).ok_or(KubeconfigError::NoCluster)
    }

    /// The certificate authority of its cluster, as PEM.
    ///
    /// # Errors
    /// There is none.
    pub fn authority(&self) -> Result<Vec<u8>, KubeconfigError> {
        let encoded = self.cluster()?["certificate-authority-data"].as_str();
        let decoded = encoded.and_then(|text| STANDARD.decode(text).ok());
        decoded.ok_or(KubeconfigError::NoAuthority)
    }

    /// The kubeconfig for anyone who wants to find the cluster, with its certificate authority and without users: the
    /// content of the ConfigMap `kube-public/cluster-info`.
    ///
    /// # Errors
    /// It has no certificate authority.
    pub fn cluster_info(&self, host: &str, port: i32) -> Result<String, KubeconfigError> {
        let authority = self.cluster()?["certificate-authority-data"].as_str();
        let authority = authority.ok_or(KubeconfigError::NoAuthority)?;
        let cluster =
            json!({ "server": format!("https://{host}:{port}"), "certificate-authority-data": authority });
        let info = json!({
            "apiVersion": "v1", "kind": "Config", "clusters": [{ "name": "", "cluster": cluster }],
            "contexts": [], "current-context": "", "users": [],
        });
        serde_saphyr::to_string(&info).map_err(|_| KubeconfigError::Unwritten)
    }

    /// This kubeconfig with a bearer token instead of the command with which its users sign in.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn with_token(mut self, token: &str) -> Result<Self, KubeconfigError> {
        for user in self.content["users"].as_array_mut().into_iter().flatten() {
            if !user["user"].is_object() {
                user["user"] = json!({});
            }
            if let Some(user) = user["user"].as_object_mut() {
                user.remove("exec");
                user.insert("token".to_owned(), json!(token));
            }
        }
        let text = serde_saphyr::to_string(&self.content).map_err(|_| KubeconfigError::Unwritten)?;
        Ok(Self { text: text.into_bytes(), content: self.content })
    }
}

impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubeconfig").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str = "
apiVersion: v1
kind: Config
current-context: c
clusters:
- name: a
  cluster: { server: 'https://a:443', certificate-authority-data: Yw== }
- name: b
  cluster: { server: 'https://b:443', certificate-authority-data: Y2E= }
contexts:
- name: c
  context: { cluster: b, user: u }
users:
- name: u
  user:
    exec: { apiVersion: client.authentication.k8s.io/v1beta1, command: kubelogin, args: [get-token] }
";

    fn config(text: &str) -> Result<Kubeconfig, KubeconfigError> {
        Kubeconfig::read(text.as_bytes().to_vec())
    }

    fn yaml(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn the_cluster_is_that_of_the_current_context() {
        let config = config(USER).unwrap();
        assert_eq!(config.authority().unwrap(), b"ca");
        let info = yaml(&config.cluster_info("b.example", 443).unwrap());
        assert_eq!(info["clusters"][0]["cluster"]["server"], "https://b.example:443");
        assert_eq!(info["clusters"][0]["name"], "");
        assert_eq!(info["clusters"][0]["cluster"]["certificate-authority-data"], "Y2E=");
        assert_eq!(info["users"], json!([]));
    }

    /// CAPZ-187: the command is replaced by the token, and the rest stays.
    #[test]
    fn a_token_takes_the_place_of_the_command() {
        let with_token = config(USER).unwrap().with_token("t").unwrap();
        let mut expected = yaml(USER);
        expected["users"][0]["user"] = json!({ "token": "t" });
        assert_eq!(yaml(std::str::from_utf8(with_token.text()).unwrap()), expected);
        assert!(!format!("{with_token:?}").contains("token:"));
    }

    #[test]
    fn what_is_missing_is_named_and_nothing_is_shown() {
        assert_eq!(config("[").unwrap_err(), KubeconfigError::NotYaml);
        assert_eq!(config("text").unwrap_err(), KubeconfigError::NotYaml);
        assert_eq!(config("a: b").unwrap().authority(), Err(KubeconfigError::NoCluster));
        let bare = USER.replace(", certificate-authority-data: Y2E=", "");
        assert_eq!(config(&bare).unwrap().authority(), Err(KubeconfigError::NoAuthority));
        assert_eq!(config(&bare).unwrap().cluster_info("h", 1), Err(KubeconfigError::NoAuthority));
    }
}

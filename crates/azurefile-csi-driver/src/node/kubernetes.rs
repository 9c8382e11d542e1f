//! Kubernetes: Secrets, rights of service accounts, runtime classes, and the labels of this node.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use k8s::api::ByteString;
use k8s::api::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s::api::api::core::v1::{Node, Pod, Secret};
use k8s::api::api::node::v1::RuntimeClass;
use kube::{Api, Client};
use secrecy::SecretString;
use tokio::time::timeout;

use super::outside::{Cluster, Reader, StoredSecret};
use super::plan::login::SecretName;

/// How long a call may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The Kubernetes that this program is in.
#[derive(Clone)]
pub struct Kubernetes {
    client: Client,
    node: String,
}

impl std::fmt::Debug for Kubernetes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubernetes").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Kubernetes {
    /// Kubernetes at this client, for the program on this node.
    pub fn new(client: Client, node: impl Into<String>) -> Self {
        Self { client, node: node.into() }
    }
}

/// Waits for an answer; an error names what was asked.
async fn call<T>(what: String, request: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match timeout(LIMIT, request).await {
        Err(_) => Err(format!("cannot {what}: no answer within {} s", LIMIT.as_secs())),
        Ok(answer) => answer.map_err(|error| format!("cannot {what}: {error}")),
    }
}

fn text(data: &BTreeMap<String, ByteString>, key: &str) -> String {
    data.get(key).map(|value| String::from_utf8_lossy(&value.0).trim().to_owned()).unwrap_or_default()
}

#[async_trait]
impl Cluster for Kubernetes {
    async fn secret(&self, name: &SecretName) -> Result<Option<StoredSecret>, String> {
        let api = Api::<Secret>::namespaced(self.client.clone(), &name.namespace);
        let what = format!("read Secret {}/{}", name.namespace, name.name);
        let Some(secret) = call(what, api.get_opt(&name.name)).await? else { return Ok(None) };
        let data = secret.data.unwrap_or_default();
        let value = |key| Some(text(&data, key)).filter(|value| !value.is_empty()).map(SecretString::from);
        Ok(Some(StoredSecret {
            account: text(&data, "azurestorageaccountname"),
            key: value("azurestorageaccountkey"),
            token: value("oauthtoken"),
        }))
    }

    async fn reader(
        &self,
        (namespace, pod): &(String, String),
        secret: &SecretName,
    ) -> Result<Reader, String> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let found = call(format!("read Pod {namespace}/{pod}"), pods.get(pod)).await?;
        let account = found.spec.and_then(|spec| spec.service_account_name).filter(|name| !name.is_empty());
        let account = account.unwrap_or_else(|| "default".to_owned());
        let user = format!("system:serviceaccount:{namespace}:{account}");
        let groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ];
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.clone()),
                groups: Some(groups),
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(secret.namespace.clone()),
                    verb: Some("get".to_owned()),
                    resource: Some("secrets".to_owned()),
                    name: Some(secret.name.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        let what = format!("review the rights of {user}");
        let answer = call(what, reviews.create(&Default::default(), &review)).await?;
        Ok(Reader { user, may_read: answer.status.is_some_and(|status| status.allowed) })
    }

    async fn runtime_handler(&self, (namespace, pod): &(String, String)) -> Result<String, String> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let found = call(format!("read Pod {namespace}/{pod}"), pods.get(pod)).await?;
        let Some(class) = found.spec.and_then(|spec| spec.runtime_class_name) else {
            return Ok(String::new());
        };
        let classes = Api::<RuntimeClass>::all(self.client.clone());
        Ok(call(format!("read RuntimeClass {class}"), classes.get(&class)).await?.handler)
    }

    async fn has_label(&self, label: &str) -> Result<bool, String> {
        let nodes = Api::<Node>::all(self.client.clone());
        let node = call(format!("read Node {}", self.node), nodes.get(&self.node)).await?;
        Ok(node.metadata.labels.is_some_and(|labels| labels.contains_key(label)))
    }
}

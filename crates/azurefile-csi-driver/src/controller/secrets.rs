//! The key of an account in a Secret, for the nodes that mount its shares.
//!
//! A Secret that the driver has made carries its label, and is kept equal to the account's key. One without the label belongs to
//! others, and stays as it is.

use std::collections::BTreeMap;

use k8s::api::ByteString;
use k8s::api::api::core::v1::Secret;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client};
use secrecy::{ExposeSecret as _, SecretString};
use tonic::Status;

const ACCOUNT: &str = "azurestorageaccountname";
const KEY: &str = "azurestorageaccountkey";
/// The label of Secrets that a driver has made; its value is the driver's name.
const OWNER: &str = "app.kubernetes.io/managed-by";

/// How often a Secret is written while others change it.
const MAX_WRITES: u32 = 3;

/// The Secrets of the cluster.
#[derive(Clone)]
pub struct Secrets {
    client: Option<Client>,
    driver: String,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("driver", &self.driver).finish_non_exhaustive()
    }
}

impl Secrets {
    /// The Secrets of this Kubernetes, for the driver of this name. Without Kubernetes none can be written.
    pub fn new(client: Option<Client>, driver: impl Into<String>) -> Self {
        Self { client, driver: driver.into() }
    }

    /// Writes a key, unless the Secret has it.
    pub(crate) async fn store(
        &self,
        (namespace, name): (&str, &str),
        account: &str,
        key: &SecretString,
    ) -> Result<(), Status> {
        let client = self.client.clone().ok_or_else(|| {
            Status::failed_precondition(
                "the account's key cannot be stored, because there is no Kubernetes: set storeAccountKey to false",
            )
        })?;
        let api = Api::<Secret>::namespaced(client, namespace);
        for _ in 0..MAX_WRITES {
            let found = api.get_opt(name).await.map_err(|error| failed("read", namespace, name, &error))?;
            let written = match found {
                None => api.create(&PostParams::default(), &self.secret(namespace, name, account, key)).await,
                Some(found) if has(&found, account, key) => return Ok(()),
                Some(found) if !self.owns(&found) => {
                    tracing::warn!(
                        namespace,
                        name,
                        account,
                        "a Secret of another owner does not have the account's key: it stays as it is"
                    );
                    return Ok(());
                }
                Some(found) => {
                    let mut secret = self.secret(namespace, name, account, key);
                    secret.metadata = found.metadata;
                    api.replace(name, &PostParams::default(), &secret).await
                }
            };
            match written {
                Ok(_) => {
                    tracing::info!(namespace, name, account, "stored the account's key");
                    return Ok(());
                }
                // Another call, or another replica, has written it.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(failed("write", namespace, name, &error)),
            }
        }
        Err(Status::aborted(format!("Secret {namespace}/{name} is being changed by others; retry")))
    }

    fn owns(&self, secret: &Secret) -> bool {
        let labels = secret.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(OWNER)).is_some_and(|owner| *owner == self.driver)
    }

    fn secret(&self, namespace: &str, name: &str, account: &str, key: &SecretString) -> Secret {
        let data = [(ACCOUNT, account), (KEY, key.expose_secret())];
        let data = data.map(|(name, value)| (name.to_owned(), ByteString(value.as_bytes().to_vec())));
        Secret {
            metadata: ObjectMeta {
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                labels: Some(BTreeMap::from([(OWNER.to_owned(), self.driver.clone())])),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".to_owned()),
            data: Some(BTreeMap::from(data)),
            ..Secret::default()
        }
    }
}

fn has(secret: &Secret, account: &str, key: &SecretString) -> bool {
    let is = |name: &str, value: &str| {
        let found = secret.data.as_ref().and_then(|data| data.get(name));
        found.is_some_and(|found| found.0 == value.as_bytes())
    };
    is(ACCOUNT, account) && is(KEY, key.expose_secret())
}

fn failed(action: &str, namespace: &str, name: &str, error: &kube::Error) -> Status {
    let message = format!("cannot {action} Secret {namespace}/{name}: {error}");
    match error {
        kube::Error::Api(status) if status.code == 403 => Status::permission_denied(format!(
            "{message}; name the namespace in accountKeys.namespaces of the chart, or set storeAccountKey to false"
        )),
        kube::Error::Api(status) if status.code == 404 => Status::invalid_argument(message),
        _ => Status::unavailable(message),
    }
}

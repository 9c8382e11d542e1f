//! What raw resources refer to: other raw resources, Secrets, ConfigMaps, and the credential with which they are made.

use std::collections::{BTreeMap, HashMap, HashSet};

use capz_api::azure_aso_managed::ResourceStatus;
use capz_api::azure_cluster_identity::AzureClusterIdentitySpec;
use capz_planner::raw::Record;
use cloud_config::Secret;
use k8s::api::api::core::v1::{ConfigMap, Secret as KubernetesSecret};
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use operator_resources::{Awaited, Lookup, ObjectName};
use serde_json::{Value, json};

use crate::azure::clients::{AzureAccess, IdentitySecret};
use crate::context::identity::IdentityError;
use crate::context::manager::Manager;
use crate::kubernetes::core;
use crate::kubernetes::kinds::NO_ENTRIES;
use crate::kubernetes::store::{Key, Store};
use crate::raw::kinds::{RawKind, RawStatus as _};

/// The Secret with the credential of a namespace, for resources that name none.
const OF_NAMESPACE: &str = "aso-credential";

/// What is known of the objects in a namespace that raw resources refer to.
#[derive(Default)]
pub(crate) struct KnownObjects {
    ids: HashMap<ObjectName, String>,
    /// The objects that the own Cluster declares: names of other Clusters' objects do not stand for them.
    own: HashSet<ObjectName>,
    secrets: HashMap<String, Option<BTreeMap<String, String>>>,
    versions: HashMap<String, String>,
    config_maps: HashMap<String, Option<BTreeMap<String, String>>>,
}

impl Lookup for KnownObjects {
    fn id(&self, object: &ObjectName) -> Option<String> {
        self.ids.get(object).cloned()
    }

    fn secret(&self, name: &str, key: &str) -> Option<String> {
        self.secrets.get(name)?.as_ref()?.get(key).cloned()
    }

    fn whole_secret(&self, name: &str) -> Option<Vec<(String, String)>> {
        let all = self.secrets.get(name)?.as_ref()?;
        Some(all.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn secret_version(&self, name: &str) -> Option<String> {
        self.versions.get(name).cloned()
    }

    fn config_map(&self, name: &str, key: &str) -> Option<String> {
        self.config_maps.get(name)?.as_ref()?.get(key).cloned()
    }
}

impl KnownObjects {
    /// Adds the names that objects of this Cluster declare, whether or not they exist in Azure yet.
    pub fn add_declared<K: RawKind>(&mut self, store: &Store<K>, cluster: &Key) {
        for object in store.all().iter().filter(|object| is_of(&object.metadata, cluster)) {
            let declared = object.spec.resources().iter();
            self.own.extend(declared.filter_map(|resource| name_of(&json!(resource))));
        }
    }

    /// Adds the resources of other objects in this namespace, as far as these exist in Azure. A resource in which one of
    /// `made` lies exists, even if Azure is at work on it: what lies in it does not wait for that.
    pub fn add_ready<K: RawKind>(&mut self, store: &Store<K>, cluster: &Key, except: &str, made: &Record) {
        for object in store.all() {
            let ObjectMeta { namespace, uid, annotations, .. } = &object.metadata;
            if namespace.as_deref() != Some(&cluster.namespace) || uid.as_deref() == Some(except) {
                continue;
            }
            let is_own = is_of(&object.metadata, cluster);
            let none = Vec::new();
            let status = object.status.as_ref();
            let statuses = status.and_then(|status| status.resources().as_ref()).unwrap_or(&none);
            for (id, recorded) in Record::of(annotations.as_ref().unwrap_or(&NO_ENTRIES)).0 {
                let object = ObjectName { group: recorded.group, kind: recorded.kind, name: recorded.name };
                if !is_own && self.own.contains(&object) {
                    continue;
                }
                let is_around = made.0.keys().any(|own| *own != id && own.is_within(&id));
                if is_around || statuses.iter().any(|status| is_ready(status, &object)) {
                    self.ids.insert(object, id.to_string());
                }
            }
        }
    }
}

fn is_of(object: &ObjectMeta, cluster: &Key) -> bool {
    object.namespace.as_deref() == Some(&cluster.namespace)
        && core::cluster_name(object) == Some(&cluster.name)
}

/// The name of a raw resource as references give it.
fn name_of(resource: &Value) -> Option<ObjectName> {
    let (group, _) = resource["apiVersion"].as_str()?.split_once('/')?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (kind, name) = (text(&resource["kind"])?, text(&resource["metadata"]["name"])?);
    Some(ObjectName { group: group.to_owned(), kind, name })
}

fn is_ready(status: &ResourceStatus, object: &ObjectName) -> bool {
    let Some(handle) = &status.resource else { return false };
    status.ready == Some(true)
        && handle.group.as_ref() == Some(&object.group)
        && handle.kind.as_ref() == Some(&object.kind)
        && handle.name.as_ref() == Some(&object.name)
}

impl Manager {
    /// Reads the Secrets and ConfigMaps among these. Returns whether any was read.
    pub(crate) async fn read_awaited(
        &self,
        known: &mut KnownObjects,
        namespace: &str,
        awaited: &[Awaited],
    ) -> Result<bool, kube::Error> {
        let mut is_new = false;
        for what in awaited {
            match what {
                Awaited::Object(_) => {}
                Awaited::Secret { name, .. } => {
                    if !known.secrets.contains_key(name) {
                        let found = self.secret_of(namespace, name).await?;
                        let (version, data) = found.unzip();
                        known.versions.extend(version.map(|version| (name.clone(), version)));
                        known.secrets.insert(name.clone(), data);
                        is_new = true;
                    }
                }
                Awaited::ConfigMap { name, .. } => {
                    if !known.config_maps.contains_key(name) {
                        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
                        let found = maps.get_opt(name).await?.map(|map| map.data.unwrap_or_default());
                        known.config_maps.insert(name.clone(), found);
                        is_new = true;
                    }
                }
            }
        }
        Ok(is_new)
    }

    /// The version and the content of a Secret.
    async fn secret_of(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<(String, BTreeMap<String, String>)>, kube::Error> {
        let secrets: Api<KubernetesSecret> = Api::namespaced(self.client.clone(), namespace);
        let found = secrets.get_opt(name).await?;
        Ok(found.map(|secret| {
            let data = secret.data.unwrap_or_default().into_iter();
            let data = data.filter_map(|(key, bytes)| Some((key, String::from_utf8(bytes.0).ok()?)));
            (secret.metadata.resource_version.unwrap_or_default(), data.collect())
        }))
    }

    /// Azure, with the credential that raw resources of a namespace name, and its subscription.
    pub(crate) async fn raw_access(
        &self,
        namespace: &str,
        credential: Option<&str>,
    ) -> Result<(AzureAccess, String), IdentityError> {
        let name = credential.unwrap_or(OF_NAMESPACE);
        let secret = self.secret_of(namespace, name).await.map_err(|error| IdentityError::Kubernetes {
            what: format!("Secret {namespace}/{name}"),
            source: Box::new(error),
        })?;
        let Some((_, mut data)) = secret else {
            return Err(IdentityError::Missing(format!(
                "there is no Secret {namespace}/{name} with a credential: create it, or name another one in the annotation \
                 serviceoperator.azure.com/credential-from of the resources"
            )));
        };
        let mut text =
            |key: &str| data.remove(key).map(|text| text.trim().to_owned()).filter(|it| !it.is_empty());
        let subscription = text("AZURE_SUBSCRIPTION_ID").or_else(|| self.settings.subscription.clone());
        let subscription = subscription.ok_or_else(|| {
            IdentityError::Missing(format!("Secret {namespace}/{name} has no AZURE_SUBSCRIPTION_ID: add it"))
        })?;
        let mut identity = AzureClusterIdentitySpec {
            tenant_id: text("AZURE_TENANT_ID"),
            client_id: text("AZURE_CLIENT_ID"),
            ..AzureClusterIdentitySpec::default()
        };
        let mode = text("AUTH_MODE");
        let client_secret = text("AZURE_CLIENT_SECRET").map(String::into_bytes);
        let certificate = text("AZURE_CLIENT_CERTIFICATE").map(String::into_bytes);
        let password = text("AZURE_CLIENT_CERTIFICATE_PASSWORD").map(|password| Secret::new(&password));
        let kind = if client_secret.is_some() {
            "ServicePrincipal"
        } else if certificate.is_some() {
            "ServicePrincipalCertificate"
        } else if mode.as_deref().is_some_and(|mode| mode.eq_ignore_ascii_case("podidentity")) {
            "UserAssignedMSI"
        } else {
            "WorkloadIdentity"
        };
        identity.kind = Some(kind.to_owned());
        let material = IdentitySecret { client_secret, certificate, password };
        Ok((self.azure.access("", &identity, &material)?, subscription))
    }
}

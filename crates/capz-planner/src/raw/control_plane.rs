//! The ManagedCluster in an AzureASOManagedControlPlane, and what it reports.

use capz_api::ApiEndpoint;
use capz_api::azure_aso_managed::RawResource;
use serde_json::{Map, Value, json};

use super::mutation::{is_of, put, set};
use crate::terminal::Terminal;

/// The kind of managed clusters.
const KIND: &str = "ManagedCluster";
/// The port of API servers.
const PORT: i32 = 443;

/// What other objects decide about a managed cluster.
#[derive(Debug, Clone, Default)]
pub struct ControlPlane<'a> {
    /// The name of the Cluster.
    pub cluster: &'a str,
    /// `spec.version` of the AzureASOManagedControlPlane.
    pub version: Option<&'a str>,
    /// `clusterNetwork.services.cidrBlocks` of the Cluster.
    pub service_ranges: &'a [String],
    /// `clusterNetwork.pods.cidrBlocks` of the Cluster.
    pub pod_ranges: &'a [String],
    /// The ManagedClustersAgentPools of the Cluster's pools, with what decides about them, sorted by the names of their
    /// AzureASOManagedMachinePools: a cluster is created with them. Empty if one of them is not complete, or once Azure
    /// reports pools.
    pub pools: Vec<Map<String, Value>>,
}

impl ControlPlane<'_> {
    /// The resources, with the managed cluster as it is to be.
    ///
    /// # Errors
    /// There is no managed cluster, or it states another value for a member that other objects decide.
    pub fn mutated(&self, resources: &[RawResource]) -> Result<Vec<Value>, Terminal> {
        let mut all: Vec<Map<String, Value>> = resources.iter().map(|it| it.0.clone()).collect();
        let cluster = all.iter_mut().find(|object| is_of(object, KIND)).ok_or_else(|| {
            Terminal::configuration(
                "spec.resources has no ManagedCluster of containerservice.azure.com: add the cluster itself",
            )
        })?;
        if let Some(version) = self.version.filter(|version| !version.is_empty()) {
            let version = json!(version.trim_start_matches('v'));
            set(
                cluster,
                &["spec", "kubernetesVersion"],
                version,
                "spec.version of the AzureASOManagedControlPlane",
            )?;
        }
        for (member, ranges, from) in [
            ("serviceCidr", self.service_ranges, "spec.clusterNetwork.services.cidrBlocks of the Cluster"),
            ("podCidr", self.pod_ranges, "spec.clusterNetwork.pods.cidrBlocks of the Cluster"),
        ] {
            if let Some(range) = ranges.first() {
                set(cluster, &["spec", "networkProfile", member], json!(range), from)?;
            }
        }
        let profiles: Vec<Value> = self.pools.iter().map(profile).collect();
        // Any value of the user's, also an empty list, would compete with the pools.
        if let Some(stated) = cluster.get("spec").and_then(|spec| spec.get("agentPoolProfiles")) {
            return Err(Terminal::configuration(format!(
                "spec.agentPoolProfiles of {} is {}, which is incompatible with the cluster's AzureASOManagedMachinePools: remove it",
                super::mutation::name_of(cluster),
                if stated.is_array() { "a list" } else { "set" }
            )));
        }
        if !profiles.is_empty() {
            put(cluster, &["spec", "agentPoolProfiles"], profiles.into());
        }
        let secrets = |name: &str| {
            let path = ["spec", "operatorSpec", "secrets", name];
            path.iter()
                .try_fold(&Value::Object(cluster.clone()), |value, name| value.get(*name))
                .is_some_and(|it| !it.is_null())
        };
        if !secrets("adminCredentials") && !secrets("userCredentials") {
            let destination = json!({ "name": format!("{}-kubeconfig", self.cluster), "key": "value" });
            put(cluster, &["spec", "operatorSpec", "secrets", "adminCredentials"], destination);
        }
        Ok(all.into_iter().map(Value::Object).collect())
    }
}

/// A node pool as a managed cluster has it: named, and without what only an object of its own has.
fn profile(pool: &Map<String, Value>) -> Value {
    let mut profile = pool.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let object_name = pool.get("metadata").and_then(|metadata| metadata.get("name")).cloned();
    let name = profile.remove("azureName").filter(|name| !name.is_null()).or(object_name);
    for taken in ["owner", "operatorSpec"] {
        profile.remove(taken);
    }
    profile.insert("name".to_owned(), name.unwrap_or_default());
    Value::Object(profile)
}

/// What a managed cluster in Azure says about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawReported {
    /// The endpoint: the private name if there is one.
    pub endpoint: Option<ApiEndpoint>,
    /// The version that runs, with `v`.
    pub version: Option<String>,
    /// Whether people sign in with Microsoft Entra ID, and there are no other accounts.
    pub is_without_local_accounts: bool,
    /// The resource group of the nodes.
    pub node_group: Option<String>,
}

/// Reads the document of the managed cluster.
pub fn read_back(held: &Value) -> RawReported {
    let properties = &held["properties"];
    let text = |member: &str| properties[member].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let host = text("privateFQDN").or_else(|| text("fqdn"));
    RawReported {
        endpoint: host.map(|host| ApiEndpoint {
            host: Some(host),
            port: Some(PORT),
            ..ApiEndpoint::default()
        }),
        version: text("currentKubernetesVersion").map(|version| format!("v{version}")),
        is_without_local_accounts: properties["aadProfile"]["managed"] == true
            && properties["disableLocalAccounts"] == true,
        node_group: text("nodeResourceGroup"),
    }
}

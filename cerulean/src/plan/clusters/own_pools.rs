//! Pools of self-managed machines: of a cluster on such machines, or of one that Azure manages.

use std::collections::BTreeMap;

use serde_json::Value;

use super::finder::Finder;
use crate::plan::values::{beside_each_other, optional, text, texts};

/// A pool.
#[derive(Debug)]
pub struct Pool {
    /// The AzureMachinePool, as it is after admission.
    pub object: Value,
    /// Its MachinePool's version of Kubernetes.
    pub version: Option<String>,
    /// Its MachinePool's replicas.
    pub replicas: u32,
    /// Its MachinePool's failure domains.
    pub zones: Vec<String>,
    /// Its MachinePool's annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Finder<'_> {
    /// The AzureMachinePools of this Cluster, which is in the namespace of `beside`.
    pub fn pools_of(&mut self, beside: &Value, cluster: &str) -> Vec<Pool> {
        let mut pools = Vec::new();
        for owner in self.of("MachinePool") {
            if text(owner, "/spec/clusterName") != cluster || !beside_each_other(owner, beside) {
                continue;
            }
            let reference =
                |member: &str| text(owner, &format!("/spec/template/spec/infrastructureRef/{member}"));
            let object = self.beside(owner, "AzureMachinePool", reference("name"));
            let Some(object) = object.filter(|_| reference("kind") == "AzureMachinePool") else { continue };
            let version = optional(owner, "/spec/template/spec/version");
            let Some(object) = self.admit(object.clone(), version.as_deref()) else { continue };
            let replicas = owner.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
            let zones = owner.pointer("/spec/failureDomains").and_then(Value::as_array);
            pools.push(Pool {
                object,
                version,
                replicas: replicas.try_into().unwrap_or(u32::MAX),
                zones: zones.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect(),
                annotations: texts(owner, "/metadata/annotations"),
            });
        }
        pools
    }
}

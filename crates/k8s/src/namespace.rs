//! Namespaces: their labels, which may decide the load balancer of a Service.

use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{self, ObjectMeta};

/// A Namespace, with the members that are used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Name and labels.
    #[serde(deserialize_with = "meta::slim")]
    pub metadata: ObjectMeta,
}

impl Namespace {
    /// The namespace's name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

kind!(Namespace, "v1", "", "namespaces", ClusterResourceScope);

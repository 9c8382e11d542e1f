//! The object that a resource belongs to.

use std::fmt;

use serde::Serialize;

/// An object of one cluster. Two clusters may have the same name, so the namespace is part of the identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Owner {
    /// Its kind, such as `Service` or `AzureCluster`.
    pub kind: &'static str,
    /// Its namespace; empty for a cluster-scoped object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The name of its cluster; empty if the object is the cluster itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
}

impl fmt::Display for Owner {
    /// `Service shop/web of cluster demo`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)?;
        if !self.cluster.is_empty() {
            write!(f, " of cluster {}", self.cluster)?;
        }
        Ok(())
    }
}

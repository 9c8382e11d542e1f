//! EndpointSlices: the nodes on which a Service has endpoints.

use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{self, ObjectKey, ObjectMeta};
use crate::names;

/// Some of a Service's endpoints, with the members that load balancers need: their nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointSlice {
    /// Name, namespace, labels.
    #[serde(deserialize_with = "meta::slim")]
    pub metadata: ObjectMeta,
    /// The endpoints, ready or not.
    #[serde(deserialize_with = "none_as_empty")]
    pub endpoints: Vec<Endpoint>,
}

/// One endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Endpoint {
    /// The node of the endpoint; absent if it is on none of the cluster's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
}

/// Kubernetes writes `null` for a slice without endpoints.
fn none_as_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Endpoint>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl EndpointSlice {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of(&self.metadata)
    }

    /// The Service of the endpoints, by the slice's label; absent if it has none.
    pub fn service(&self) -> Option<ObjectKey> {
        let name =
            self.metadata.labels.as_ref()?.get(names::LABEL_SERVICE_NAME).filter(|name| !name.is_empty())?;
        Some(ObjectKey::new(self.metadata.namespace.clone().unwrap_or_default(), name.as_str()))
    }
}

kind!(EndpointSlice, "discovery.k8s.io/v1", "discovery.k8s.io", "endpointslices", NamespaceResourceScope);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_tells_its_service_and_nodes() {
        let slice: EndpointSlice = serde_json::from_value(serde_json::json!({
            "metadata": {"namespace": "shop", "name": "web-abcde", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "ports": [],
            "endpoints": [
                {"addresses": ["10.244.0.1"], "nodeName": "n1", "conditions": {"ready": false}},
                {"addresses": ["192.0.2.1"]},
            ],
        }))
        .unwrap();
        assert_eq!(slice.service(), Some(ObjectKey::new("shop", "web")));
        let nodes: Vec<_> = slice.endpoints.iter().map(|endpoint| endpoint.node_name.as_deref()).collect();
        assert_eq!(nodes, [Some("n1"), None]);
        let empty: EndpointSlice = serde_json::from_value(serde_json::json!({"endpoints": null})).unwrap();
        assert_eq!((empty.endpoints.len(), empty.service()), (0, None));
    }
}

//! Services: the members that decide about load balancers.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{self, ObjectKey, ObjectMeta, is_deleting};
use crate::names;

/// A Service, with the members that load balancers need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Name, namespace, UID, annotations, finalizers.
    #[serde(deserialize_with = "meta::slim")]
    pub metadata: ObjectMeta,
    /// The desired state.
    pub spec: ServiceSpec,
    /// The achieved state.
    pub status: ServiceStatus,
}

/// The desired state of a Service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceSpec {
    /// `ClusterIP`, `NodePort`, `LoadBalancer` or `ExternalName`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The class of another implementation: such a Service is not ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer_class: Option<String>,
    /// The requested address, in the older form.
    #[serde(rename = "loadBalancerIP", skip_serializing_if = "String::is_empty")]
    pub load_balancer_ip: String,
    /// The source prefixes that may reach the Service.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_balancer_source_ranges: Vec<String>,
    /// The ports.
    pub ports: Vec<ServicePort>,
    /// `None` or `ClientIP`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session_affinity: String,
    /// Addresses that route to the nodes by other means.
    #[serde(rename = "externalIPs", skip_serializing_if = "Vec::is_empty")]
    pub external_ips: Vec<String>,
    /// `Cluster` or `Local`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub external_traffic_policy: String,
    /// The port on which nodes report whether they have endpoints, for policy `Local`; 0 for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub health_check_node_port: i32,
    /// The address families, first the primary one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ip_families: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(port: &i32) -> bool {
    *port == 0
}

/// One port of a Service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServicePort {
    /// The port's name; may be empty where there is only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `TCP`, `UDP` or `SCTP`; empty means TCP.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// The port that clients use.
    pub port: i32,
    /// The port on every node; 0 until allocated.
    #[serde(skip_serializing_if = "is_zero")]
    pub node_port: i32,
    /// The port on the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port: Option<IntOrString>,
    /// The application protocol, such as `http`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,
}

/// The achieved state of a Service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceStatus {
    /// The addresses that clients may use.
    pub load_balancer: LoadBalancerStatus,
}

/// The addresses that clients may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadBalancerStatus {
    /// One entry for each address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ingress: Vec<LoadBalancerIngress>,
}

/// One address that clients may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadBalancerIngress {
    /// The address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
}

impl Service {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of(&self.metadata)
    }

    /// The UID, from which Azure names are derived; empty before the API server has set it.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// An annotation's value by its full key.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Whether the Service needs a load balancer from this program: it has that type and no other class (Kubernetes,
    /// "Service", load balancer class).
    pub fn wants_load_balancer(&self) -> bool {
        self.spec.kind == "LoadBalancer" && self.spec.load_balancer_class.is_none()
    }

    /// Whether a load balancer has to be created or kept up for it: it needs one and is not being deleted.
    pub fn is_to_be_served(&self) -> bool {
        self.wants_load_balancer() && !is_deleting(&self.metadata)
    }

    /// Whether its resources have to be deleted: it is not to be served, and it bears our finalizer or is a load
    /// balancer that is being deleted.
    pub fn is_to_be_cleaned_up(&self) -> bool {
        !self.is_to_be_served() && (self.wants_load_balancer() || self.has_finalizer())
    }

    /// Whether it bears the finalizer of load balancers: a controller has begun to create one for it.
    pub fn has_finalizer(&self) -> bool {
        let mut finalizers = self.metadata.finalizers.iter().flatten();
        finalizers.any(|name| name == names::LOAD_BALANCER_FINALIZER)
    }

    /// Whether traffic stays on the node at which it arrives.
    pub fn is_local(&self) -> bool {
        self.spec.external_traffic_policy == "Local"
    }
}

kind!(Service, "v1", "", "services", NamespaceResourceScope);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_parts_of_metadata_are_not_kept() {
        let service: Service = serde_json::from_value(serde_json::json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "1",
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{...}", "a": "b"},
                "managedFields": [{"manager": "kubectl"}],
            },
            "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.9", "ports": [{"port": 80, "targetPort": "http"}]},
        }))
        .unwrap();
        assert_eq!(service.key().to_string(), "shop/web");
        assert_eq!(service.metadata.managed_fields, None);
        assert_eq!(service.metadata.annotations.as_ref().unwrap().len(), 1);
        assert!(service.wants_load_balancer());
    }

    #[test]
    fn a_service_of_another_class_is_not_ours() {
        let service: Service = serde_json::from_value(
            serde_json::json!({"spec": {"type": "LoadBalancer", "loadBalancerClass": "x/y"}}),
        )
        .unwrap();
        assert!(!service.wants_load_balancer());
    }
}

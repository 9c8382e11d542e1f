//! `multipleStandardLoadBalancerConfigurations` (cloud-provider-azure, "Multiple Standard LoadBalancers").

use serde_json::Value;

use crate::document::Keys;
use crate::{Problem, Remedy};

/// One load balancer of several that share a cluster's Services.
#[derive(Debug, Clone, PartialEq)]
pub struct MultipleStandardLoadBalancerConfiguration {
    /// The load balancer's name, without the suffix of internal ones.
    pub name: String,
    /// Whether Services may be placed on it; true unless set.
    pub allow_service_placement: bool,
    /// The machine set whose nodes are its backends.
    pub primary_vm_set: String,
    /// Label selector over Services, as written.
    pub service_label_selector: Option<Value>,
    /// Label selector over the Services' namespaces, as written.
    pub service_namespace_selector: Option<Value>,
    /// Label selector over nodes that do not belong to a primary machine set, as written.
    pub node_selector: Option<Value>,
}

impl MultipleStandardLoadBalancerConfiguration {
    pub(crate) fn read_list(list: Vec<Value>, problems: &mut Vec<Problem>) -> Vec<Self> {
        let mut entries = Vec::new();
        for (index, item) in list.into_iter().enumerate() {
            let path = format!("multipleStandardLoadBalancerConfigurations[{index}]");
            let Value::Object(object) = item else {
                let remedy = Remedy::remove("multipleStandardLoadBalancerConfigurations");
                problems.push(Problem::new(path, "", "an entry must be a mapping", remedy));
                continue;
            };
            let mut keys = Keys::new(object, Some(path), problems);
            entries.push(Self {
                name: keys.string("name"),
                allow_service_placement: keys.optional_boolean("allowServicePlacement").unwrap_or(true),
                primary_vm_set: keys.string("primaryVMSet"),
                service_label_selector: keys.object("serviceLabelSelector").map(Value::Object),
                service_namespace_selector: keys.object("serviceNamespaceSelector").map(Value::Object),
                node_selector: keys.object("nodeSelector").map(Value::Object),
            });
        }
        entries
    }
}

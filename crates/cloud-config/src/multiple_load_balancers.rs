//! `multipleStandardLoadBalancerConfigurations` (cloud-provider-azure, "Multiple Standard LoadBalancers").

use serde_json::Value;

use crate::document::Keys;
use crate::{LabelSelector, Problem, Remedy};

/// One load balancer of several that share a cluster's Services.
#[derive(Debug, Clone, PartialEq)]
pub struct MultipleStandardLoadBalancerConfiguration {
    /// The load balancer's name, without the suffix of internal ones.
    pub name: String,
    /// Whether new Services may be placed on it; true unless set. Existing ones stay.
    pub allow_service_placement: bool,
    /// The machine set whose nodes are backends of this load balancer only.
    pub primary_vm_set: String,
    /// The Services that may use it; absent if it has no selector, or an empty one.
    pub service_label_selector: Option<LabelSelector>,
    /// The namespaces of the Services that may use it.
    pub service_namespace_selector: Option<LabelSelector>,
    /// The nodes that it uses, among those that do not belong to a primary machine set.
    pub node_selector: Option<LabelSelector>,
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
            let mut keys = Keys::new(object, Some(path.clone()), problems);
            entries.push(Self {
                name: keys.string("name").trim().to_owned(),
                allow_service_placement: keys.optional_boolean("allowServicePlacement").unwrap_or(true),
                primary_vm_set: keys.string("primaryVMSet").trim().to_owned(),
                service_label_selector: selector(&mut keys, &path, "serviceLabelSelector"),
                service_namespace_selector: selector(&mut keys, &path, "serviceNamespaceSelector"),
                node_selector: selector(&mut keys, &path, "nodeSelector"),
            });
        }
        entries
    }
}

fn selector(keys: &mut Keys<'_>, path: &str, key: &str) -> Option<LabelSelector> {
    let object = keys.object(key)?;
    LabelSelector::read(object, &format!("{path}.{key}"), keys.problems())
}

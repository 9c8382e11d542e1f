//! Derived settings: defaults that are other settings, and questions that several settings answer.

use crate::cloud::AZURE_STACK;
use crate::{CloudConfig, CloudEndpoints, LoadBalancerSku, VmType, Warning};

/// A setting, or its default if it is empty.
fn or<'a>(setting: &'a str, default: &'a str) -> &'a str {
    if setting.is_empty() { default } else { setting }
}

impl CloudConfig {
    /// The virtual network's resource group.
    pub fn vnet_resource_group(&self) -> &str {
        or(&self.vnet_resource_group, &self.resource_group)
    }

    /// The security group's resource group.
    pub fn security_group_resource_group(&self) -> &str {
        or(&self.security_group_resource_group, &self.resource_group)
    }

    /// The route table's resource group.
    pub fn route_table_resource_group(&self) -> &str {
        or(&self.route_table_resource_group, &self.resource_group)
    }

    /// The resource group of private link services.
    pub fn private_link_service_resource_group(&self) -> &str {
        or(&self.private_link_service_resource_group, &self.resource_group)
    }

    /// The load balancers' resource group.
    pub fn load_balancer_resource_group(&self) -> &str {
        or(&self.load_balancer_resource_group, &self.resource_group)
    }

    /// The subscription of network resources: load balancers, public IPs, security groups, subnets,
    /// route tables.
    pub fn network_subscription_id(&self) -> &str {
        or(&self.network_resource_subscription_id, &self.subscription_id)
    }

    /// The tenant of network resources.
    pub fn network_tenant_id(&self) -> &str {
        or(&self.network_resource_tenant_id, &self.tenant_id)
    }

    /// Whether network resources live in another tenant than the machines.
    pub fn uses_network_tenant(&self) -> bool {
        !self.network_tenant_id().eq_ignore_ascii_case(&self.tenant_id)
    }

    /// The built-in endpoints of the configured cloud; those of the public cloud for unknown names.
    pub fn endpoints(&self) -> CloudEndpoints {
        CloudEndpoints::named(&self.cloud).0
    }

    /// Whether the configured cloud is named Azure Stack, whose endpoints come from the environment file.
    pub fn names_azure_stack(&self) -> bool {
        self.cloud.trim().eq_ignore_ascii_case(AZURE_STACK)
    }

    /// Whether Azure Stack's own API versions and limits apply.
    pub fn is_azure_stack(&self) -> bool {
        self.names_azure_stack() && !self.disable_azure_stack_cloud
    }

    /// Whether load balancers are of the standard SKU.
    pub fn uses_standard_load_balancer(&self) -> bool {
        self.load_balancer_sku == LoadBalancerSku::Standard
    }

    /// Whether load balancers are of SKU Basic: each of them serves one set of machines.
    pub fn uses_basic_load_balancer(&self) -> bool {
        self.load_balancer_sku == LoadBalancerSku::Basic
    }

    /// The set of machines whose load balancer of SKU Basic bears the cluster's name; empty where none is configured.
    pub fn primary_machine_set(&self) -> &str {
        match self.vm_type {
            VmType::Standard => &self.primary_availability_set_name,
            _ => &self.primary_scale_set_name,
        }
    }

    /// Whether Services are spread over several load balancers.
    pub fn uses_multiple_standard_load_balancers(&self) -> bool {
        self.uses_standard_load_balancer() && !self.multiple_standard_load_balancer_configurations.is_empty()
    }

    /// Whether the labels of a Service's namespace select its load balancer among several.
    pub fn follows_namespace_labels(&self) -> bool {
        let mut entries = self.multiple_standard_load_balancer_configurations.iter();
        self.uses_standard_load_balancer() && entries.any(|entry| entry.service_namespace_selector.is_some())
    }

    /// Name and type of the edge zone, if both are set.
    pub fn extended_location(&self) -> Option<(&str, &str)> {
        let set = !self.extended_location_name.is_empty() && !self.extended_location_type.is_empty();
        set.then_some((self.extended_location_name.as_str(), self.extended_location_type.as_str()))
    }

    /// Whether `cloud` is a known name, so that its endpoints are known, too. Credentials of an unknown cloud would be
    /// sent to the public cloud.
    pub fn names_known_cloud(&self) -> bool {
        CloudEndpoints::named(&self.cloud).1
    }

    /// Harmless but probably unintended settings: unknown keys, invalid tags, settings without effect. The program logs
    /// each once.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.remarks.clone();
        if let VmType::Other(value) = &self.vm_type {
            let reason = "none of vmss, vmssflex and standard; standard is used (correct it)";
            warnings.push(Warning::Instead { key: "vmType", value: value.clone(), reason });
        }
        warnings
    }
}

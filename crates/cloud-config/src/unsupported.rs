//! What is valid and not carried out by this release: a program refuses to start on it.

use crate::{BackendPoolType, CloudConfig, LoadBalancerSku, PreConfiguredBackendPools, Unsupported, VmType};

impl CloudConfig {
    /// Every setting that asks for what this release does not do.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        let mut found = Vec::new();
        let mut add = |applies: bool, key: &'static str, value: String, remedy: &'static str| {
            if applies {
                found.push(Unsupported { key, value, remedy });
            }
        };
        add(
            self.vm_type != VmType::Vmss,
            "vmType",
            self.vm_type.to_string(),
            "use vmss with uniform scale sets, or stay with the present controller manager",
        );
        add(
            self.enable_vmss_flex_nodes,
            "enableVmssFlexNodes",
            "true".into(),
            "set it to false when no node is an instance of a flexible scale set",
        );
        add(
            self.load_balancer_sku != LoadBalancerSku::Standard,
            "loadBalancerSku",
            self.load_balancer_sku.to_string(),
            "use standard",
        );
        add(
            self.load_balancer_backend_pool_configuration_type != BackendPoolType::NodeIpConfiguration,
            "loadBalancerBackendPoolConfigurationType",
            self.load_balancer_backend_pool_configuration_type.to_string(),
            "use nodeIPConfiguration",
        );
        let pools = &self.pre_configured_backend_pool_load_balancer_types;
        if let PreConfiguredBackendPools::Other(text) = pools {
            add(
                true,
                "preConfiguredBackendPoolLoadBalancerTypes",
                text.clone(),
                "use internal, external or all, or leave it out",
            );
        }
        add(
            self.uses_multiple_standard_load_balancers(),
            "multipleStandardLoadBalancerConfigurations",
            format!("{} entries", self.multiple_standard_load_balancer_configurations.len()),
            "remove the entries: all Services then share one load balancer",
        );
        add(self.service_gateway_enabled, "serviceGatewayEnabled", "true".into(), "set it to false");
        add(self.is_azure_stack(), "cloud", self.cloud.clone(), "stay with the present controller manager");
        add(
            self.uses_network_tenant(),
            "networkResourceTenantID",
            self.network_resource_tenant_id.clone(),
            "keep network resources in the cluster's tenant",
        );
        let certificate_only = !self.aad_msi_data_plane_identity_path.is_empty()
            && !self.use_federated_workload_identity_extension
            && !self.use_managed_identity_extension
            && self.aad_client_secret.is_empty()
            && self.aad_client_cert_path.is_empty();
        add(
            certificate_only,
            "aadMSIDataPlaneIdentityPath",
            self.aad_msi_data_plane_identity_path.clone(),
            "use useManagedIdentityExtension",
        );
        found
    }
}

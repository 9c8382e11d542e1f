//! Settings that contradict each other. All contradictions are reported at once.
//!
//! Conditions: `spec/config-and-cli.md` 1.4.2 to 1.4.4 and 1.4.10, `spec/load-balancer.md` 0.3.

use std::collections::HashSet;

use crate::{BackendPoolType, CloudConfig, CloudConfigType, LoadBalancerSku, Problem, VmType, tags};

impl CloudConfig {
    /// Every contradiction in the configuration; empty when it is valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.disable_availability_set_nodes && self.vm_type != VmType::Vmss {
            problems.push(Problem::new(
                "disableAvailabilitySetNodes",
                true,
                format!("is only supported when vmType is 'vmss', and vmType is '{}'", self.vm_type),
                "set vmType to vmss or remove disableAvailabilitySetNodes",
            ));
        }
        if self.disable_outbound_snat && !self.uses_standard_load_balancer() {
            problems.push(Problem::new(
                "disableOutboundSNAT",
                true,
                format!(
                    "should only be set when loadBalancerSku is standard, and it is '{}'",
                    self.load_balancer_sku
                ),
                "set loadBalancerSku to standard or remove disableOutboundSNAT",
            ));
        }
        if self.cloud_config_type == CloudConfigType::File
            && !self.has_credentials()
            && !self.use_instance_metadata
        {
            problems.push(Problem::new(
                "useInstanceMetadata",
                false,
                "must be enabled without Azure credentials",
                "configure a credential or set useInstanceMetadata to true",
            ));
        }
        self.service_gateway_problems(&mut problems);
        self.multiple_load_balancer_problems(&mut problems);
        self.identifier_problems(&mut problems);
        problems.extend(tags::limits(&self.tags));
        problems
    }

    fn service_gateway_problems(&self, problems: &mut Vec<Problem>) {
        let pod_pools = self.load_balancer_backend_pool_configuration_type == BackendPoolType::PodIp;
        let service_sku = self.load_balancer_sku == LoadBalancerSku::Service;
        let set = [self.service_gateway_enabled, pod_pools, service_sku];
        if set.contains(&true) && set.contains(&false) {
            problems.push(Problem::new(
                "serviceGatewayEnabled",
                self.service_gateway_enabled,
                format!(
                    "serviceGatewayEnabled, backend pools of pods and the service SKU must be set together, but \
                     loadBalancerBackendPoolConfigurationType is '{}' and loadBalancerSku is '{}'",
                    self.load_balancer_backend_pool_configuration_type, self.load_balancer_sku
                ),
                "set all three (true, podIP, service) or none",
            ));
        } else if self.service_gateway_enabled {
            if !self.multiple_standard_load_balancer_configurations.is_empty() {
                problems.push(Problem::new(
                    "serviceGatewayEnabled",
                    true,
                    "excludes multipleStandardLoadBalancerConfigurations",
                    "remove one of the two",
                ));
            }
            if self.enable_migrate_to_ip_based_backend_pool_api {
                problems.push(Problem::new(
                    "enableMigrateToIPBasedBackendPoolAPI",
                    true,
                    "cannot be used with the service gateway",
                    "remove enableMigrateToIPBasedBackendPoolAPI",
                ));
            }
        }
    }

    fn multiple_load_balancer_problems(&self, problems: &mut Vec<Problem>) {
        if !self.uses_multiple_standard_load_balancers() {
            return;
        }
        const KEY: &str = "multipleStandardLoadBalancerConfigurations";
        if self.load_balancer_backend_pool_configuration_type == BackendPoolType::NodeIpConfiguration {
            problems.push(Problem::new(
                "loadBalancerBackendPoolConfigurationType",
                BackendPoolType::NodeIpConfiguration,
                "multiple standard load balancers cannot be used with backend pool type nodeIPConfiguration",
                "set it to nodeIP",
            ));
        }
        let mut names = HashSet::new();
        let mut sets = HashSet::new();
        for entry in &self.multiple_standard_load_balancer_configurations {
            if !names.insert(entry.name.to_ascii_lowercase()) {
                problems.push(Problem::new(
                    format!("{KEY}.name"),
                    &entry.name,
                    "duplicated multiple standard load balancer configuration name",
                    "give every entry its own name",
                ));
            }
            if entry.primary_vm_set.is_empty() {
                problems.push(Problem::new(
                    format!("{KEY}.primaryVMSet"),
                    "",
                    format!(
                        "multiple standard load balancer configuration {} must have primary VMSet",
                        entry.name
                    ),
                    "name the machine set that it serves",
                ));
            } else if !sets.insert(entry.primary_vm_set.to_ascii_lowercase()) {
                problems.push(Problem::new(
                    format!("{KEY}.primaryVMSet"),
                    &entry.primary_vm_set,
                    "duplicated primary VMSet in multiple standard load balancer configurations",
                    "give every entry its own machine set",
                ));
            }
        }
    }

    /// Texts that become part of request paths and URLs.
    fn identifier_problems(&self, problems: &mut Vec<Problem>) {
        let path_parts = [
            ("subscriptionId", &self.subscription_id),
            ("networkResourceSubscriptionID", &self.network_resource_subscription_id),
            ("resourceGroup", &self.resource_group),
            ("vnetName", &self.vnet_name),
            ("vnetResourceGroup", &self.vnet_resource_group),
            ("subnetName", &self.subnet_name),
            ("securityGroupName", &self.security_group_name),
            ("securityGroupResourceGroup", &self.security_group_resource_group),
            ("routeTableName", &self.route_table_name),
            ("routeTableResourceGroup", &self.route_table_resource_group),
            ("loadBalancerName", &self.load_balancer_name),
            ("loadBalancerResourceGroup", &self.load_balancer_resource_group),
            ("privateLinkServiceResourceGroup", &self.private_link_service_resource_group),
            ("primaryScaleSetName", &self.primary_scale_set_name),
            ("tenantId", &self.tenant_id),
        ];
        for (key, value) in path_parts {
            let bad = |c: char| c.is_control() || c.is_whitespace() || "<>%&:\\?/#".contains(c);
            if value.contains(bad) {
                problems.push(Problem::new(
                    key,
                    format!("{value:?}"),
                    "holds a character that no Azure name may have",
                    "write the bare name or id, without path, spaces or < > % & : \\ ? / #",
                ));
            }
        }
        let endpoint = &self.resource_manager_endpoint;
        let scheme =
            |prefix: &str| endpoint.get(..prefix.len()).is_some_and(|s| s.eq_ignore_ascii_case(prefix));
        if !endpoint.is_empty() && !scheme("https://") && !scheme("http://") {
            problems.push(Problem::new(
                "resourceManagerEndpoint",
                format!("{endpoint:?}"),
                "is no URL",
                "write it with its scheme, such as https://management.azure.com",
            ));
        }
    }

    /// What a program that acts on Azure cannot do without. Not part of [`CloudConfig::problems`],
    /// because the same document serves programs that need less (`spec/config-and-cli.md`, 1.10).
    pub fn missing(&self) -> Vec<Problem> {
        let mut missing = Vec::new();
        let mut need = |key: &str, value: &str, why: &str| {
            if value.is_empty() {
                missing.push(Problem::new(key, "", why, format!("set {key}")));
            }
        };
        need(
            "subscriptionId",
            &self.subscription_id,
            "is not set, and every resource lies in a subscription",
        );
        need("resourceGroup", &self.resource_group, "is not set, and every resource lies in a group");
        need("location", &self.location, "is not set, and new resources need a region");
        let secret = !self.aad_client_secret.is_empty() || !self.aad_client_cert_path.is_empty();
        if self.use_federated_workload_identity_extension || (secret && !self.use_managed_identity_extension)
        {
            need("tenantId", &self.tenant_id, "is not set, and the credential belongs to a tenant");
            need("aadClientId", &self.aad_client_id, "is not set, and the credential belongs to a client");
        }
        if self.use_federated_workload_identity_extension {
            need(
                "aadFederatedTokenFile",
                &self.aad_federated_token_file,
                "is not set, and workload identity reads its token from a file",
            );
        }
        if !self.has_credentials() {
            need(
                "useManagedIdentityExtension",
                "",
                "no credential is configured: neither useManagedIdentityExtension, aadClientSecret, \
                 aadClientCertPath nor useFederatedWorkloadIdentityExtension",
            );
        }
        missing
    }
}

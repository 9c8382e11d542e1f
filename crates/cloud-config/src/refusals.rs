//! Settings with which a controller manager of this release cannot run: contradictory, unsupported, or missing ones.
//!
//! All of them are judged together, so that no remedy leads to the next refusal: an unsupported setting is never
//! proposed. If the replaced program has a text for a refusal, the reason contains it, because tools look for it.

use std::collections::HashSet;

use crate::{
    BackendPoolType, CloudConfig, LoadBalancerSku, PreConfiguredBackendPools, Problem, Remedy, VmType, tags,
};

/// The text for settings that are valid for the replaced program.
const NOT_SUPPORTED: &str = "not supported by this release";

/// The text for an unknown cloud.
const UNKNOWN_CLOUD: &str = "is not a known cloud, and credentials are not sent to another one";

const POOL_TYPE: &str = "loadBalancerBackendPoolConfigurationType";
const SEVERAL: &str = "multipleStandardLoadBalancerConfigurations";

/// Whether names in Azure must not contain a character.
fn is_forbidden(c: char) -> bool {
    c.is_control() || c.is_whitespace() || "<>%&:\\?/#".contains(c)
}

impl CloudConfig {
    /// All reasons why this configuration cannot be run.
    pub fn refusals(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.refuse_machines(&mut problems);
        self.refuse_load_balancers(&mut problems);
        self.refuse_clouds(&mut problems);
        self.refuse_what_is_missing(&mut problems);
        self.refuse_credentials(&mut problems);
        problems
    }

    fn refuse_machines(&self, problems: &mut Vec<Problem>) {
        if self.disable_availability_set_nodes && self.vm_type != VmType::Vmss {
            let reason = format!("is only supported when vmType is 'vmss', and vmType is '{}'", self.vm_type);
            let remedy = Remedy::set("disableAvailabilitySetNodes", false)
                .note("; every machine is served as what it is");
            problems.push(Problem::new("disableAvailabilitySetNodes", true, reason, remedy));
        }
    }

    fn refuse_load_balancers(&self, problems: &mut Vec<Problem>) {
        let pool_type = self.load_balancer_backend_pool_configuration_type;
        let pods = pool_type == BackendPoolType::PodIp;
        let service_sku = self.load_balancer_sku == LoadBalancerSku::Service;
        if self.service_gateway_enabled || pods || service_sku {
            self.refuse_service_gateway(pods, service_sku, problems);
        }
        if !service_sku && !self.uses_standard_load_balancer() && !self.uses_basic_load_balancer() {
            let remedy = Remedy::set("loadBalancerSku", LoadBalancerSku::Standard);
            let reason = "is not one of standard, basic";
            problems.push(Problem::new("loadBalancerSku", &self.load_balancer_sku, reason, remedy));
        }
        if self.uses_basic_load_balancer() && pool_type == BackendPoolType::NodeIp {
            let reason =
                "load balancers of SKU Basic take network interfaces alone, and loadBalancerSku is 'basic'";
            let remedy = Remedy::set(POOL_TYPE, BackendPoolType::NodeIpConfiguration);
            problems.push(Problem::new(POOL_TYPE, pool_type, reason, remedy));
        }
        if self.disable_outbound_snat && !self.uses_standard_load_balancer() {
            let reason = format!(
                "should only be set when loadBalancerSku is standard, and it is '{}'",
                self.load_balancer_sku
            );
            let remedy = Remedy::set("loadBalancerSku", LoadBalancerSku::Standard);
            problems.push(Problem::new("disableOutboundSNAT", true, reason, remedy));
        }
        self.refuse_several(problems);
        if let PreConfiguredBackendPools::Other(text) = &self.pre_configured_backend_pool_load_balancer_types
        {
            let remedy = Remedy::remove("preConfiguredBackendPoolLoadBalancerTypes")
                .note(", as the program replaced reads it, or set it to internal, external or all");
            let reason = "is not one of internal, external, all";
            problems.push(Problem::new("preConfiguredBackendPoolLoadBalancerTypes", text, reason, remedy));
        }
    }

    /// The service gateway consists of three settings that belong together; all that are set must be removed.
    fn refuse_service_gateway(&self, pods: bool, service_sku: bool, problems: &mut Vec<Problem>) {
        let mut reason = NOT_SUPPORTED.to_owned();
        if !(self.service_gateway_enabled && pods && service_sku) {
            reason = format!(
                "serviceGatewayEnabled, backend pools of pods and the service SKU must be set together, but \
                 serviceGatewayEnabled is '{}', {POOL_TYPE} is '{}' and loadBalancerSku is '{}'; together they \
                 are {NOT_SUPPORTED}",
                self.service_gateway_enabled,
                self.load_balancer_backend_pool_configuration_type,
                self.load_balancer_sku,
            );
        }
        let pool_type = self.load_balancer_backend_pool_configuration_type.to_string();
        let (by_interface, standard) = (BackendPoolType::NodeIpConfiguration, LoadBalancerSku::Standard);
        let settings = [
            (self.service_gateway_enabled, "serviceGatewayEnabled", "true".to_owned(), "false".to_owned()),
            (pods, POOL_TYPE, pool_type, by_interface.to_string()),
            (service_sku, "loadBalancerSku", self.load_balancer_sku.to_string(), standard.to_string()),
        ];
        let set = settings.into_iter().filter(|(is_set, ..)| *is_set);
        // The problem names the first setting that the user has set.
        let problem = set
            .map(|(_, key, value, instead)| (key, value, Remedy::set(key, instead)))
            .reduce(|(key, value, remedy), (.., other)| (key, value, remedy.and(other)));
        let Some((key, value, remedy)) = problem else { return };
        problems.push(Problem::new(key, value, reason, remedy));
    }

    /// Several load balancers are distinguished by their names and primary machine sets, and their pools contain
    /// addresses: a network interface can be a member of only one load balancer of a kind (LB-220).
    fn refuse_several(&self, problems: &mut Vec<Problem>) {
        let entries = &self.multiple_standard_load_balancer_configurations;
        if entries.is_empty() {
            return;
        }
        let mut refuse = |reason: String, remedy: Remedy| {
            problems.push(Problem::new(SEVERAL, format!("{} entries", entries.len()), reason, remedy));
        };
        let reasons = self.reasons_against_several();
        let pool_type = self.load_balancer_backend_pool_configuration_type;
        let by_interface = format!(
            "multiple standard load balancers cannot be used with backend pool type {pool_type}, but with nodeIP"
        );
        if reasons.is_empty() && pool_type == BackendPoolType::NodeIpConfiguration {
            let remedy = Remedy::set(POOL_TYPE, BackendPoolType::NodeIp);
            refuse(by_interface, remedy.note("; pools then hold the nodes' addresses"));
            return;
        }
        let by_interface = (pool_type != BackendPoolType::NodeIp).then_some(by_interface);
        let reasons: Vec<String> = by_interface.into_iter().chain(reasons).collect();
        if !reasons.is_empty() {
            let remedy = Remedy::remove(SEVERAL).note("; all Services then share one load balancer");
            refuse(reasons.join(", and "), remedy);
        }
    }

    /// The problems of the entries themselves.
    fn reasons_against_several(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        let (mut names, mut sets) = (HashSet::new(), HashSet::new());
        for entry in &self.multiple_standard_load_balancer_configurations {
            let name = &entry.name;
            if name.is_empty() || name.contains(is_forbidden) {
                reasons.push(format!(
                    "multiple standard load balancer configuration name \"{name}\" is not one that Azure accepts"
                ));
            }
            if name.to_ascii_lowercase().ends_with("-internal") {
                reasons.push(format!(
                    "multiple standard load balancer configuration name {name} ends with -internal, which internal \
                     load balancers get behind their names"
                ));
            }
            if !names.insert(name.to_ascii_lowercase()) {
                reasons.push(format!("duplicated multiple standard load balancer configuration name {name}"));
            }
            if entry.primary_vm_set.is_empty() {
                reasons.push(format!(
                    "multiple standard load balancer configuration {name} must have primary VMSet"
                ));
            } else if !sets.insert(entry.primary_vm_set.to_ascii_lowercase()) {
                reasons.push(format!(
                    "duplicated primary VMSet {} in multiple standard load balancer configurations",
                    entry.primary_vm_set
                ));
            }
        }
        reasons
    }

    fn refuse_clouds(&self, problems: &mut Vec<Problem>) {
        if self.is_azure_stack() {
            let remedy = Remedy::set("disableAzureStackCloud", true).note(
                " if its endpoints speak the public cloud's API versions; otherwise stay with the present controller manager",
            );
            problems.push(Problem::new("cloud", &self.cloud, NOT_SUPPORTED, remedy));
        }
        if !self.names_known_cloud() && self.resource_manager_endpoint.is_empty() {
            let remedy = Remedy::set("cloud", "AzurePublicCloud").note(
                ", AzureUSGovernmentCloud or AzureChinaCloud, or let resourceManagerEndpoint name what describes this cloud",
            );
            problems.push(Problem::new("cloud", &self.cloud, UNKNOWN_CLOUD, remedy));
        }
        if self.uses_network_tenant() {
            let remedy = Remedy::remove("networkResourceTenantID")
                .note(" if the network lies in the cluster's tenant; otherwise stay with the present controller manager");
            problems.push(Problem::new(
                "networkResourceTenantID",
                &self.network_resource_tenant_id,
                NOT_SUPPORTED,
                remedy,
            ));
        }
    }

    fn refuse_what_is_missing(&self, problems: &mut Vec<Problem>) {
        let needed = [
            ("subscriptionId", &self.subscription_id, "every resource lies in one", "the subscription's id"),
            (
                "resourceGroup",
                &self.resource_group,
                "every resource lies in one",
                "the cluster's resource group",
            ),
            ("location", &self.location, "new resources need a region", "the cluster's region"),
        ];
        for (key, value, why, what) in needed {
            if value.is_empty() {
                problems.push(Problem::new(key, "", format!("not set: {why}"), Remedy::give(key, what)));
            }
        }
    }

    fn refuse_credentials(&self, problems: &mut Vec<Problem>) {
        let federated = self.use_federated_workload_identity_extension;
        let managed = self.use_managed_identity_extension;
        let application = !self.aad_client_secret.is_empty() || !self.aad_client_cert_path.is_empty();
        if !federated && !managed && !application {
            let proof = match self.tenant_id.is_empty() || self.aad_client_id.is_empty() {
                true => {
                    " to sign in with the machine's managed identity, or set tenantId and aadClientId to those of an \
                     application and give one proof that it is you: aadClientSecret; aadClientCertPath, the path of \
                     its certificate and key; or useFederatedWorkloadIdentityExtension with aadFederatedTokenFile, the \
                     path of a workload identity's token"
                }
                false => {
                    " to sign in with the machine's managed identity, or add one proof that you are the application of \
                     aadClientId: aadClientSecret; aadClientCertPath, the path of its certificate and key; or \
                     useFederatedWorkloadIdentityExtension with aadFederatedTokenFile, the path of a workload identity's \
                     token"
                }
            };
            let remedy = || Remedy::set("useManagedIdentityExtension", true).note(proof);
            problems.push(if self.aad_msi_data_plane_identity_path.is_empty() {
                let reason = "no credential: nothing says how to sign in to Azure; useInstanceMetadata must be enabled \
                              without Azure credentials, and is not enough for this release";
                Problem::new("useManagedIdentityExtension", false, reason, remedy())
            } else {
                let path = &self.aad_msi_data_plane_identity_path;
                Problem::new("aadMSIDataPlaneIdentityPath", path, NOT_SUPPORTED, remedy())
            });
        }
        if !federated && (managed || !application) {
            return;
        }
        let by_webhook = if federated { "; the workload identity webhook would do it, too" } else { "" };
        let needed = [
            (true, "tenantId", &self.tenant_id, "the credential belongs to one", "the tenant's id"),
            (
                true,
                "aadClientId",
                &self.aad_client_id,
                "the credential is that of an application",
                "its client id",
            ),
            (
                federated,
                "aadFederatedTokenFile",
                &self.aad_federated_token_file,
                "workload identity reads its token there",
                "the path of the token",
            ),
        ];
        for (applies, key, value, why, what) in needed {
            if applies && value.is_empty() {
                let remedy = Remedy::give(key, what);
                problems.push(Problem::new(key, "", format!("not set: {why}{by_webhook}"), remedy));
            }
        }
    }

    /// Values that are invalid for every program: texts that become part of request paths and URLs, and tags that Azure
    /// refuses on every resource.
    pub(crate) fn impossible_values(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
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
            ("tenantId", &self.tenant_id),
        ];
        for (key, value) in path_parts {
            if value.contains(is_forbidden) {
                let remedy =
                    Remedy::give(key, "the bare name or id, without path, spaces or < > % & : \\ ? / #");
                let reason = "holds a character that no Azure name may have";
                problems.push(Problem::new(key, format!("{value:?}"), reason, remedy));
            }
        }
        let endpoint = &self.resource_manager_endpoint;
        let scheme =
            |prefix: &str| endpoint.get(..prefix.len()).is_some_and(|s| s.eq_ignore_ascii_case(prefix));
        if !endpoint.is_empty() && !scheme("https://") && !scheme("http://") {
            let key = "resourceManagerEndpoint";
            let remedy = Remedy::give(key, "a URL with its scheme, such as https://management.azure.com");
            problems.push(Problem::new(key, format!("{endpoint:?}"), "is not a URL", remedy));
        }
        problems.extend(tags::limits(&self.tags));
        problems
    }
}

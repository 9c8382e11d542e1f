//! The configuration: one field for each key, with defaults.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::document::Keys;
use crate::encoding::decode;
use crate::keys::{Effect, KEYS};
use crate::tags::{self, Tags};
use crate::{
    BackendPoolType, ConfigError, ConfigType, Document, HealthProbeMode, LoadBalancerSku,
    MultipleStandardLoadBalancerConfiguration, PreConfiguredBackendPools, Problem, Secret, VmType, Warning,
};

/// Reads one environment variable; the caller decides from where.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// How many times and when a failed call is retried (`cloudProviderBackoff…`).
#[derive(Debug, Clone, PartialEq)]
pub struct Backoff {
    /// `cloudProviderBackoff`: whether the other keys take effect.
    pub enabled: bool,
    /// `cloudProviderBackoffRetries`: attempts; 6 when enabled and not set, 1 when not enabled.
    pub retries: u32,
    /// `cloudProviderBackoffDuration`, in seconds in the document: the first pause; 5 s unless set.
    pub duration: Duration,
}

/// The settings of azure.json that have an effect in this release, with defaults. [`KEYS`] names the keys without a
/// field here, with the reason.
///
/// Field names are the documented keys in snake case. A field whose default is another field is empty if not set and
/// has a method of the same name that returns the effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudConfig {
    // --- the cloud and its client
    /// `cloud`: the cloud's name; empty means the public cloud.
    pub cloud: String,
    /// `resourceManagerEndpoint`: its metadata document overrides the cloud's endpoints.
    pub resource_manager_endpoint: String,
    /// `disableAzureStackCloud`: Azure Stack's environment file with the public cloud's API versions.
    pub disable_azure_stack_cloud: bool,
    /// `userAgent`, trimmed; empty means the program's own.
    pub user_agent: String,
    /// `tenantId`, or `AZURE_TENANT_ID`.
    pub tenant_id: String,
    /// `networkResourceTenantID`: the tenant of network resources; empty means `tenantId`.
    pub network_resource_tenant_id: String,
    /// `subscriptionId` of the cluster's machines.
    pub subscription_id: String,
    /// `networkResourceSubscriptionID`; empty means `subscriptionId`.
    pub network_resource_subscription_id: String,
    /// `enableMinimumRetryAfter`: a `Retry-After` below 5 s of a success is ignored.
    pub enable_minimum_retry_after: bool,

    // --- credentials
    /// `aadClientId`, or `AZURE_CLIENT_ID`.
    pub aad_client_id: String,
    /// `aadClientSecret`, or `AZURE_CLIENT_SECRET`.
    pub aad_client_secret: Secret,
    /// `aadClientCertPath`: a PFX or PEM file with certificate and key.
    pub aad_client_cert_path: String,
    /// `aadClientCertPassword`.
    pub aad_client_cert_password: Secret,
    /// `useManagedIdentityExtension`: a managed identity by the instance metadata service.
    pub use_managed_identity_extension: bool,
    /// `userAssignedIdentityID`: a client id or a resource id; empty means the system-assigned one.
    pub user_assigned_identity_id: String,
    /// `useFederatedWorkloadIdentityExtension`, or forced by `AZURE_FEDERATED_TOKEN_FILE`.
    pub use_federated_workload_identity_extension: bool,
    /// `aadFederatedTokenFile`, or `AZURE_FEDERATED_TOKEN_FILE`.
    pub aad_federated_token_file: String,
    /// `aadMSIDataPlaneIdentityPath`.
    pub aad_msi_data_plane_identity_path: String,

    // --- names and resource groups
    /// `resourceGroup` of the cluster; in lower case when read from a file.
    pub resource_group: String,
    /// `location`: the region.
    pub location: String,
    /// `extendedLocationName`; effective only together with the type.
    pub extended_location_name: String,
    /// `extendedLocationType`; effective only together with the name.
    pub extended_location_type: String,
    /// `vnetName`.
    pub vnet_name: String,
    /// `vnetResourceGroup`; empty means `resourceGroup`.
    pub vnet_resource_group: String,
    /// `subnetName`: the subnet of internal frontends.
    pub subnet_name: String,
    /// `securityGroupName`.
    pub security_group_name: String,
    /// `securityGroupResourceGroup`; empty means `resourceGroup`.
    pub security_group_resource_group: String,
    /// `routeTableName`; empty if the pod network needs no routes in Azure.
    pub route_table_name: String,
    /// `routeTableResourceGroup`; empty means `resourceGroup`.
    pub route_table_resource_group: String,
    /// `privateLinkServiceResourceGroup`; empty means `resourceGroup`.
    pub private_link_service_resource_group: String,
    /// `loadBalancerName`; empty means a name derived from the cluster's.
    pub load_balancer_name: String,
    /// `loadBalancerResourceGroup`; empty means `resourceGroup`.
    pub load_balancer_resource_group: String,

    // --- node topology
    /// `vmType`.
    pub vm_type: VmType,
    /// `disableAvailabilitySetNodes`: no availability set or standalone machine is a node.
    pub disable_availability_set_nodes: bool,
    /// `enableVmssFlexNodes`: there are machines of flexible scale sets, so virtual machines are always listed.
    pub enable_vmss_flex_nodes: bool,
    /// `nodeInstanceNotFoundGracePeriodInSeconds`: a node younger than this counts as existing although its instance is
    /// not found; zero means off.
    pub node_instance_not_found_grace_period: Duration,
    /// `putVMSSVMBatchSize`: scale set instances written at once; at least 1.
    pub put_vmss_vm_batch_size: u32,

    // --- load balancer
    /// `loadBalancerSku`.
    pub load_balancer_sku: LoadBalancerSku,
    /// `primaryAvailabilitySetName`: the set whose load balancer of SKU Basic bears the cluster's name.
    pub primary_availability_set_name: String,
    /// `primaryScaleSetName`: the same where `vmType` is not `standard`.
    pub primary_scale_set_name: String,
    /// `maximumLoadBalancerRuleCount`: how many rules a load balancer of SKU Basic may have before a new Service; 250
    /// unless set.
    pub maximum_load_balancer_rule_count: usize,
    /// `excludeMasterFromStandardLB`: control-plane nodes are no backends; true on standard unless set.
    pub exclude_master_from_standard_lb: bool,
    /// `disableOutboundSNAT`: rules give no outbound connectivity.
    pub disable_outbound_snat: bool,
    /// `preConfiguredBackendPoolLoadBalancerTypes`.
    pub pre_configured_backend_pool_load_balancer_types: PreConfiguredBackendPools,
    /// `loadBalancerBackendPoolConfigurationType`.
    pub load_balancer_backend_pool_configuration_type: BackendPoolType,
    /// `enableLoadBalancerAdminState`: draining nodes get no new connections.
    pub enable_load_balancer_admin_state: bool,
    /// `enableMigrateToIPBasedBackendPoolAPI`: Azure itself turns the interfaces in pools into addresses.
    pub enable_migrate_to_ip_based_backend_pool_api: bool,
    /// `enableIPTagMutationForExistingPublicIP`.
    pub enable_ip_tag_mutation_for_existing_public_ip: bool,
    /// `clusterServiceLoadBalancerHealthProbeMode`.
    pub cluster_service_load_balancer_health_probe_mode: HealthProbeMode,
    /// `clusterServiceSharedLoadBalancerHealthProbePort`; 10256 unless set.
    pub cluster_service_shared_load_balancer_health_probe_port: u16,
    /// `clusterServiceSharedLoadBalancerHealthProbePath`; `/healthz` unless set.
    pub cluster_service_shared_load_balancer_health_probe_path: String,
    /// `loadBalancerBackendPoolUpdateIntervalInSeconds`: how long changes of endpoints are collected before the pools
    /// of Services with policy `Local` follow them; 30 s unless set.
    pub load_balancer_backend_pool_update_interval: Duration,
    /// `multipleStandardLoadBalancerConfigurations`.
    pub multiple_standard_load_balancer_configurations: Vec<MultipleStandardLoadBalancerConfiguration>,
    /// `serviceGatewayEnabled`.
    pub service_gateway_enabled: bool,

    // --- tags
    /// `tags` merged with `tagsMap`: the tags of the resources that we create.
    pub tags: Tags,
    /// `systemTags`: prefixes of keys that are kept; empty means that no tag is ever removed.
    pub system_tags: Vec<String>,

    // --- reads
    /// `listVmssVirtualMachinesWithoutInstanceView`: lists leave out power states.
    pub list_vmss_virtual_machines_without_instance_view: bool,

    // --- back-off
    /// `cloudProviderBackoff…`.
    pub backoff: Backoff,

    // --- the documents themselves
    /// `cloudConfigType`: which documents count where there is a Secret beside the file.
    pub cloud_config_type: ConfigType,
    /// `disableCloudProvider`: whether a program that reloads its configuration rests.
    pub disable_cloud_provider: bool,

    // --- beside the document
    /// `AZURE_ENVIRONMENT_FILEPATH`: the endpoints of an Azure Stack; empty when not set.
    pub environment_file: String,
    /// `IDENTITY_ENDPOINT`, if `IMDS_ENDPOINT` shows that it is that of Azure Arc's agent; otherwise empty.
    pub arc_endpoint: String,
    /// Findings that do not prevent parsing; see [`CloudConfig::warnings`].
    pub(crate) remarks: Vec<Warning>,
}

impl CloudConfig {
    /// Parses the text of a file. Invalid values are refused; whether a program can work with the rest is a separate
    /// question, because programs need different parts: see [`CloudConfig::runnable`].
    pub fn from_file(text: &str, environment: Environment<'_>) -> Result<Self, ConfigError> {
        let (config, problems) = Self::read_document(Document::from_text(text)?, environment);
        if problems.is_empty() { Ok(config) } else { Err(ConfigError::Invalid(problems)) }
    }

    /// Parses the bytes of a file: UTF-8, or UTF-16 with a byte order mark.
    pub fn from_bytes(bytes: &[u8], environment: Environment<'_>) -> Result<Self, ConfigError> {
        Self::from_file(&decode(bytes)?, environment)
    }

    /// Parses a text without an environment, as a file. For tests and for documents without a process.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::from_file(text, &|_| None)
    }

    /// Parses the bytes of a file into a configuration with which a controller manager of this release can run. All
    /// problems are named at once.
    pub fn runnable(bytes: &[u8], environment: Environment<'_>) -> Result<Self, ConfigError> {
        Self::runnable_document(Document::parse(bytes)?, environment)
    }

    /// [`CloudConfig::runnable`] for a document that has been parsed, such as a file with a Secret over it.
    pub fn runnable_document(document: Document, environment: Environment<'_>) -> Result<Self, ConfigError> {
        let (config, mut problems) = Self::read_document(document, environment);
        problems.extend(config.refusals());
        if problems.is_empty() { Ok(config) } else { Err(ConfigError::Invalid(problems)) }
    }

    pub(crate) fn read_document(document: Document, environment: Environment<'_>) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let mut config = Self::read(document.0, &mut problems);
        config.resource_group.make_ascii_lowercase();
        config.apply_environment(environment);
        problems.extend(config.impossible_values());
        (config, problems)
    }

    fn read(map: Map<String, Value>, problems: &mut Vec<Problem>) -> Self {
        let mut keys = Keys::new(map, None, problems);
        let mut remarks = Vec::new();

        let (mut all_tags, ignored) = tags::parse_tags(&keys.string("tags"));
        for piece in ignored {
            remarks.push(Warning::NotAPair { piece });
        }
        for (key, value) in keys.text_map("tagsMap") {
            tags::insert(&mut all_tags, &key, &value);
        }
        let list = keys.list("multipleStandardLoadBalancerConfigurations");
        let multiple_standard_load_balancer_configurations =
            MultipleStandardLoadBalancerConfiguration::read_list(list, keys.problems());
        let load_balancer_sku = LoadBalancerSku::parse(&keys.string("loadBalancerSku"));
        let is_standard = load_balancer_sku == LoadBalancerSku::Standard;
        let exclude_master = keys.optional_boolean("excludeMasterFromStandardLB").unwrap_or(is_standard);

        let mut config = Self {
            cloud: keys.string("cloud"),
            resource_manager_endpoint: keys.string("resourceManagerEndpoint").trim().to_owned(),
            disable_azure_stack_cloud: keys.boolean("disableAzureStackCloud"),
            user_agent: keys.string("userAgent").trim().to_owned(),
            tenant_id: keys.string("tenantId"),
            network_resource_tenant_id: keys.string("networkResourceTenantID"),
            subscription_id: keys.string("subscriptionId"),
            network_resource_subscription_id: keys.string("networkResourceSubscriptionID"),
            enable_minimum_retry_after: keys.boolean("enableMinimumRetryAfter"),
            aad_client_id: keys.string("aadClientId"),
            aad_client_secret: keys.secret("aadClientSecret"),
            aad_client_cert_path: keys.string("aadClientCertPath"),
            aad_client_cert_password: keys.secret("aadClientCertPassword"),
            use_managed_identity_extension: keys.boolean("useManagedIdentityExtension"),
            user_assigned_identity_id: keys.string("userAssignedIdentityID"),
            use_federated_workload_identity_extension: keys.boolean("useFederatedWorkloadIdentityExtension"),
            aad_federated_token_file: keys.string("aadFederatedTokenFile"),
            aad_msi_data_plane_identity_path: keys.string("aadMSIDataPlaneIdentityPath"),
            resource_group: keys.string("resourceGroup"),
            location: keys.string("location"),
            extended_location_name: keys.string("extendedLocationName"),
            extended_location_type: keys.string("extendedLocationType"),
            vnet_name: keys.string("vnetName"),
            vnet_resource_group: keys.string("vnetResourceGroup"),
            subnet_name: keys.string("subnetName"),
            security_group_name: keys.string("securityGroupName"),
            security_group_resource_group: keys.string("securityGroupResourceGroup"),
            route_table_name: keys.string("routeTableName"),
            route_table_resource_group: keys.string("routeTableResourceGroup"),
            private_link_service_resource_group: keys.string("privateLinkServiceResourceGroup"),
            load_balancer_name: keys.string("loadBalancerName"),
            load_balancer_resource_group: keys.string("loadBalancerResourceGroup"),
            vm_type: VmType::parse(&keys.string("vmType")),
            disable_availability_set_nodes: keys.boolean("disableAvailabilitySetNodes"),
            enable_vmss_flex_nodes: keys.boolean("enableVmssFlexNodes"),
            node_instance_not_found_grace_period: keys.seconds("nodeInstanceNotFoundGracePeriodInSeconds", 0),
            put_vmss_vm_batch_size: batch_size(&mut keys, &mut remarks),
            load_balancer_sku,
            primary_availability_set_name: keys.string("primaryAvailabilitySetName").trim().to_owned(),
            primary_scale_set_name: keys.string("primaryScaleSetName").trim().to_owned(),
            maximum_load_balancer_rule_count: keys.count("maximumLoadBalancerRuleCount", 250) as usize,
            exclude_master_from_standard_lb: exclude_master,
            disable_outbound_snat: keys.boolean("disableOutboundSNAT"),
            pre_configured_backend_pool_load_balancer_types: PreConfiguredBackendPools::parse(
                &keys.string("preConfiguredBackendPoolLoadBalancerTypes"),
            ),
            load_balancer_backend_pool_configuration_type: keys
                .word("loadBalancerBackendPoolConfigurationType", BackendPoolType::NodeIpConfiguration),
            enable_load_balancer_admin_state: keys.boolean("enableLoadBalancerAdminState") && is_standard,
            enable_migrate_to_ip_based_backend_pool_api: keys.boolean("enableMigrateToIPBasedBackendPoolAPI"),
            enable_ip_tag_mutation_for_existing_public_ip: keys
                .boolean("enableIPTagMutationForExistingPublicIP"),
            cluster_service_load_balancer_health_probe_mode: keys
                .word("clusterServiceLoadBalancerHealthProbeMode", HealthProbeMode::ServiceNodePort),
            cluster_service_shared_load_balancer_health_probe_port: keys
                .port("clusterServiceSharedLoadBalancerHealthProbePort", 10256),
            cluster_service_shared_load_balancer_health_probe_path: keys
                .string_or("clusterServiceSharedLoadBalancerHealthProbePath", "/healthz"),
            load_balancer_backend_pool_update_interval: keys
                .seconds("loadBalancerBackendPoolUpdateIntervalInSeconds", 30),
            multiple_standard_load_balancer_configurations,
            service_gateway_enabled: keys.boolean("serviceGatewayEnabled"),
            tags: all_tags,
            system_tags: tags::parse_system_tags(&keys.string("systemTags")),
            list_vmss_virtual_machines_without_instance_view: keys
                .boolean("listVmssVirtualMachinesWithoutInstanceView"),
            backoff: read_backoff(&mut keys),
            cloud_config_type: keys.word("cloudConfigType", ConfigType::Merge),
            disable_cloud_provider: keys.boolean("disableCloudProvider"),
            environment_file: String::new(),
            arc_endpoint: String::new(),
            remarks,
        };
        let idle = KEYS.iter().filter(|key| matches!(key.effect, Effect::None(_)));
        let set: Vec<&'static str> = idle
            .filter(|key| keys.judge(key.name, key.value_type, key.default))
            .map(|key| key.name)
            .collect();
        let (unknown, shadowed) = keys.remaining();
        config.remarks.extend(unknown.into_iter().map(Warning::unknown));
        config.remarks.extend(shadowed.into_iter().map(|key| Warning::Shadowed { key }));
        config.remarks.extend(Warning::no_effect(&set));
        config
    }

    /// Applies the environment: a variable that is set and not empty takes precedence.
    fn apply_environment(&mut self, environment: Environment<'_>) {
        let variable = |name: &str| environment(name).filter(|value| !value.is_empty());
        if let Some(tenant) = variable("AZURE_TENANT_ID") {
            self.tenant_id = tenant;
        }
        if let Some(client) = variable("AZURE_CLIENT_ID") {
            self.aad_client_id = client;
        }
        if let Some(secret) = variable("AZURE_CLIENT_SECRET") {
            self.aad_client_secret = Secret::new(secret);
        }
        if let Some(file) = variable("AZURE_FEDERATED_TOKEN_FILE") {
            self.aad_federated_token_file = file;
            self.use_federated_workload_identity_extension = true;
        }
        self.environment_file = variable("AZURE_ENVIRONMENT_FILEPATH").unwrap_or_default();
        let is_arc = variable("IMDS_ENDPOINT").is_some() && variable("IDENTITY_HEADER").is_none();
        self.arc_endpoint = variable("IDENTITY_ENDPOINT").filter(|_| is_arc).unwrap_or_default();
    }
}

impl Default for CloudConfig {
    /// The configuration of an empty document.
    fn default() -> Self {
        Self::read(Map::new(), &mut Vec::new())
    }
}

fn batch_size(keys: &mut Keys<'_>, remarks: &mut Vec<Warning>) -> u32 {
    let key = "putVMSSVMBatchSize";
    let value = keys.integer(key);
    if value < 0 {
        let reason = "no number of instances; 1 is used (give a number from 1 on)";
        remarks.push(Warning::Instead { key, value: value.to_string(), reason });
    }
    if value <= 0 { 1 } else { u32::try_from(value).unwrap_or(u32::MAX) }
}

fn read_backoff(keys: &mut Keys<'_>) -> Backoff {
    let enabled = keys.boolean("cloudProviderBackoff");
    let retries = keys.count("cloudProviderBackoffRetries", 6);
    let duration = keys.seconds("cloudProviderBackoffDuration", 5);
    if enabled {
        Backoff { enabled, retries, duration }
    } else {
        Backoff { enabled, retries: 1, duration: Duration::from_secs(5) }
    }
}

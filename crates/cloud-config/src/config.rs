//! The configuration itself: one field a key, defaults filled in.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::document::{self, Keys};
use crate::tags::{self, Tags};
use crate::{
    BackendPoolType, CloudConfigType, ConfigError, HealthProbeMode, LoadBalancerSku,
    MultipleStandardLoadBalancerConfiguration, PreConfiguredBackendPools, Problem, RateLimit, Secret, VmType,
};

/// Reads one environment variable; the caller decides where from.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where the document came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A file: `resourceGroup` is lower-cased.
    File,
    /// A Kubernetes Secret: `resourceGroup` keeps its spelling.
    Secret,
}

/// Where a second tenant's token is kept (`auxiliaryTokenProvider`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuxiliaryTokenProvider {
    /// `subscriptionID` of the vault.
    pub subscription_id: String,
    /// `resourceGroup` of the vault.
    pub resource_group: String,
    /// `vaultName`.
    pub vault_name: String,
    /// `secretName`: the secret that holds the token.
    pub secret_name: String,
}

/// How often and when a failed call is repeated (`cloudProviderBackoff…`).
#[derive(Debug, Clone, PartialEq)]
pub struct Backoff {
    /// `cloudProviderBackoff`: whether the other keys count.
    pub enabled: bool,
    /// `cloudProviderBackoffRetries`: attempts; 6 when enabled and not set, 1 when not enabled.
    pub retries: u32,
    /// `cloudProviderBackoffExponent`: growth of the pause; 1.5 unless set.
    pub exponent: f64,
    /// `cloudProviderBackoffDuration`, in seconds in the document: the first pause; 5 s unless set.
    pub duration: Duration,
    /// `cloudProviderBackoffJitter`: share of the pause that is random; 1.0 unless set.
    pub jitter: f64,
}

/// Everything that azure.json can say, with defaults filled in.
///
/// Field names are the documented keys in snake case. A field whose default is another field is empty
/// when not set and has a method of the same name that gives the effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudConfig {
    // --- the cloud and its client (1.2)
    /// `cloud`: the cloud's name; empty means the public cloud.
    pub cloud: String,
    /// `resourceManagerEndpoint`: whose metadata document overrides the cloud's endpoints.
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
    /// `identitySystem`: accepted and without effect.
    pub identity_system: String,
    /// `enableMinimumRetryAfter`: on success a `Retry-After` below 5 s is overlooked.
    pub enable_minimum_retry_after: bool,

    // --- credentials (1.3)
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
    /// `auxiliaryTokenProvider`.
    pub auxiliary_token_provider: Option<AuxiliaryTokenProvider>,
    /// `aadMSIDataPlaneIdentityPath`.
    pub aad_msi_data_plane_identity_path: String,

    // --- names and resource groups (1.4.1)
    /// `resourceGroup` of the cluster; in lower case when read from a file.
    pub resource_group: String,
    /// `location`: the region.
    pub location: String,
    /// `extendedLocationName`; counts only together with the type.
    pub extended_location_name: String,
    /// `extendedLocationType`; counts only together with the name.
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
    /// `routeTableName`.
    pub route_table_name: String,
    /// `routeTableResourceGroup`; empty means `resourceGroup`.
    pub route_table_resource_group: String,
    /// `privateLinkServiceResourceGroup`; empty means `resourceGroup`.
    pub private_link_service_resource_group: String,
    /// `loadBalancerName`; empty means a name made of the cluster's.
    pub load_balancer_name: String,
    /// `loadBalancerResourceGroup`; empty means `resourceGroup`.
    pub load_balancer_resource_group: String,
    /// `primaryAvailabilitySetName`.
    pub primary_availability_set_name: String,
    /// `primaryScaleSetName`.
    pub primary_scale_set_name: String,

    // --- node topology (1.4.2)
    /// `vmType`.
    pub vm_type: VmType,
    /// `disableAvailabilitySetNodes`: no availability set or standalone machine is a node.
    pub disable_availability_set_nodes: bool,
    /// `enableVmssFlexNodes`: instances of flexible scale sets may be nodes.
    pub enable_vmss_flex_nodes: bool,
    /// `useInstanceMetadata`: questions about this machine go to the instance metadata service.
    pub use_instance_metadata: bool,
    /// `nodeInstanceNotFoundGracePeriodInSeconds`: a node younger than this is taken to exist although
    /// its instance is not found; zero means off.
    pub node_instance_not_found_grace_period: Duration,
    /// `putVMSSVMBatchSize`: scale set instances written at once; at least 1.
    pub put_vmss_vm_batch_size: u32,

    // --- load balancer (1.4.3)
    /// `loadBalancerSku`.
    pub load_balancer_sku: LoadBalancerSku,
    /// `excludeMasterFromStandardLB`: control-plane nodes are no backends; true on standard unless set.
    pub exclude_master_from_standard_lb: bool,
    /// `disableOutboundSNAT`: rules give no outbound connectivity.
    pub disable_outbound_snat: bool,
    /// `maximumLoadBalancerRuleCount`; 250 unless set.
    pub maximum_load_balancer_rule_count: u32,
    /// `preConfiguredBackendPoolLoadBalancerTypes`.
    pub pre_configured_backend_pool_load_balancer_types: PreConfiguredBackendPools,
    /// `loadBalancerBackendPoolConfigurationType`.
    pub load_balancer_backend_pool_configuration_type: BackendPoolType,
    /// `enableMigrateToIPBasedBackendPoolAPI`.
    pub enable_migrate_to_ip_based_backend_pool_api: bool,
    /// `enableIPTagMutationForExistingPublicIP`.
    pub enable_ip_tag_mutation_for_existing_public_ip: bool,
    /// `clusterServiceLoadBalancerHealthProbeMode`.
    pub cluster_service_load_balancer_health_probe_mode: HealthProbeMode,
    /// `clusterServiceSharedLoadBalancerHealthProbePort`; 10256 unless set.
    pub cluster_service_shared_load_balancer_health_probe_port: u16,
    /// `clusterServiceSharedLoadBalancerHealthProbePath`; `/healthz` unless set.
    pub cluster_service_shared_load_balancer_health_probe_path: String,
    /// `loadBalancerBackendPoolUpdateIntervalInSeconds`; 30 s unless set.
    pub load_balancer_backend_pool_update_interval: Duration,
    /// `multipleStandardLoadBalancerConfigurations`.
    pub multiple_standard_load_balancer_configurations: Vec<MultipleStandardLoadBalancerConfiguration>,
    /// `serviceGatewayEnabled`.
    pub service_gateway_enabled: bool,

    // --- routes (1.4.5)
    /// `routeUpdateIntervalInSeconds`; 30 s unless set.
    pub route_update_interval: Duration,
    /// `routeUpdateWaitingInSeconds`; 30 s unless set.
    pub route_update_waiting: Duration,

    // --- tags (1.4.6)
    /// `tags` with `tagsMap` laid over it: the tags of what we create.
    pub tags: Tags,
    /// `systemTags`: prefixes of keys that survive; empty means that no tag is ever removed.
    pub system_tags: Vec<String>,

    // --- caches (1.4.7)
    /// `disableAPICallCache`: every read goes to Azure.
    pub disable_api_call_cache: bool,
    /// `nonVmssUniformNodesCacheTTLInSeconds`; 900 s unless set.
    pub non_vmss_uniform_nodes_cache_ttl: Duration,
    /// `vmssCacheTTLInSeconds`; 600 s unless set.
    pub vmss_cache_ttl: Duration,
    /// `vmssVirtualMachinesCacheTTLInSeconds`; 600 s unless set.
    pub vmss_virtual_machines_cache_ttl: Duration,
    /// `listVmssVirtualMachinesWithoutInstanceView`: lists leave out power states.
    pub list_vmss_virtual_machines_without_instance_view: bool,
    /// `vmssFlexCacheTTLInSeconds`; 600 s unless set.
    pub vmss_flex_cache_ttl: Duration,
    /// `vmssFlexVMCacheTTLInSeconds`; 600 s unless set.
    pub vmss_flex_vm_cache_ttl: Duration,
    /// `vmCacheTTLInSeconds`; 60 s unless set.
    pub vm_cache_ttl: Duration,
    /// `loadBalancerCacheTTLInSeconds`; 120 s unless set.
    pub load_balancer_cache_ttl: Duration,
    /// `nsgCacheTTLInSeconds`; 120 s unless set.
    pub nsg_cache_ttl: Duration,
    /// `routeTableCacheTTLInSeconds`; 120 s unless set.
    pub route_table_cache_ttl: Duration,
    /// `plsCacheTTLInSeconds`; 120 s unless set.
    pub pls_cache_ttl: Duration,
    /// `availabilitySetsCacheTTLInSeconds`; 600 s unless set.
    pub availability_sets_cache_ttl: Duration,
    /// `publicIPCacheTTLInSeconds`; 120 s unless set.
    pub public_ip_cache_ttl: Duration,

    // --- back-off and rate limits (1.4.8, 1.4.9)
    /// `cloudProviderBackoff…`.
    pub backoff: Backoff,
    /// `cloudProviderRateLimit…`: read and validated, not applied.
    pub rate_limit: RateLimit,
    /// The limits of single clients, by their key: read and validated, not applied.
    pub per_client_rate_limits: BTreeMap<String, RateLimit>,

    // --- where it comes from (1.4.10)
    /// `cloudConfigType`.
    pub cloud_config_type: CloudConfigType,
    /// `disableCloudProvider`: with dynamic reloading, the controllers stay stopped.
    pub disable_cloud_provider: bool,

    // --- beside the document
    /// `AZURE_ENVIRONMENT_FILEPATH`: the endpoints of an Azure Stack; empty when not set.
    pub environment_file: String,
    /// Keys that no setting has: they are ignored, and the program names them once.
    pub unknown_keys: Vec<String>,
    /// What was read and left aside, in plain words; see [`CloudConfig::warnings`].
    pub(crate) remarks: Vec<String>,
}

impl CloudConfig {
    /// Reads the text of a file.
    pub fn from_file(text: &str, environment: Environment<'_>) -> Result<Self, ConfigError> {
        Self::from_documents(&[text], Origin::File, environment)
    }

    /// Reads the value of a Secret.
    pub fn from_secret(text: &str, environment: Environment<'_>) -> Result<Self, ConfigError> {
        Self::from_documents(&[text], Origin::Secret, environment)
    }

    /// Reads a file and lays the keys of a Secret over it.
    pub fn merged(file: &str, secret: &str, environment: Environment<'_>) -> Result<Self, ConfigError> {
        Self::from_documents(&[file, secret], Origin::File, environment)
    }

    /// Reads a text without an environment, as a file. For tests and for documents that stand alone.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::from_file(text, &|_| None)
    }

    fn from_documents(
        texts: &[&str],
        origin: Origin,
        environment: Environment<'_>,
    ) -> Result<Self, ConfigError> {
        let mut map = Map::new();
        for text in texts {
            let layer = document::parse(text)?;
            let set = |key: &String| {
                layer.iter().any(|(over, value)| !value.is_null() && over.eq_ignore_ascii_case(key))
            };
            map.retain(|key, _| !set(key));
            map.extend(layer.into_iter().filter(|(_, value)| !value.is_null()));
        }
        let mut problems = Vec::new();
        let mut config = Self::read(map, &mut problems);
        if origin == Origin::File {
            config.resource_group.make_ascii_lowercase();
        }
        config.apply_environment(environment);
        problems.extend(config.problems());
        if problems.is_empty() { Ok(config) } else { Err(ConfigError::Invalid(problems)) }
    }

    fn read(map: Map<String, Value>, problems: &mut Vec<Problem>) -> Self {
        let mut keys = Keys::new(map, None, problems);
        let mut remarks = Vec::new();

        let (mut all_tags, ignored) = tags::parse_tags(&keys.string("tags"));
        for piece in ignored {
            remarks.push(format!("tags: `{piece}` is no key=value pair and is ignored"));
        }
        for (key, value) in keys.text_map("tagsMap") {
            tags::insert(&mut all_tags, &key, &value);
        }
        let list = keys.list("multipleStandardLoadBalancerConfigurations");
        let multiple_standard_load_balancer_configurations =
            MultipleStandardLoadBalancerConfiguration::read_list(list, keys.problems());
        let load_balancer_sku = LoadBalancerSku::parse(&keys.string("loadBalancerSku"));
        let exclude_master = keys
            .optional_boolean("excludeMasterFromStandardLB")
            .unwrap_or(load_balancer_sku == LoadBalancerSku::Standard);

        let mut config = Self {
            cloud: keys.string("cloud"),
            resource_manager_endpoint: keys.string("resourceManagerEndpoint").trim().to_owned(),
            disable_azure_stack_cloud: keys.boolean("disableAzureStackCloud"),
            user_agent: keys.string("userAgent").trim().to_owned(),
            tenant_id: keys.string("tenantId"),
            network_resource_tenant_id: keys.string("networkResourceTenantID"),
            subscription_id: keys.string("subscriptionId"),
            network_resource_subscription_id: keys.string("networkResourceSubscriptionID"),
            identity_system: keys.string("identitySystem"),
            enable_minimum_retry_after: keys.boolean("enableMinimumRetryAfter"),
            aad_client_id: keys.string("aadClientId"),
            aad_client_secret: keys.secret("aadClientSecret"),
            aad_client_cert_path: keys.string("aadClientCertPath"),
            aad_client_cert_password: keys.secret("aadClientCertPassword"),
            use_managed_identity_extension: keys.boolean("useManagedIdentityExtension"),
            user_assigned_identity_id: keys.string("userAssignedIdentityID"),
            use_federated_workload_identity_extension: keys.boolean("useFederatedWorkloadIdentityExtension"),
            aad_federated_token_file: keys.string("aadFederatedTokenFile"),
            auxiliary_token_provider: read_auxiliary_token_provider(&mut keys),
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
            primary_availability_set_name: keys.string("primaryAvailabilitySetName"),
            primary_scale_set_name: keys.string("primaryScaleSetName"),
            vm_type: VmType::parse(&keys.string("vmType")),
            disable_availability_set_nodes: keys.boolean("disableAvailabilitySetNodes"),
            enable_vmss_flex_nodes: keys.boolean("enableVmssFlexNodes"),
            use_instance_metadata: keys.boolean("useInstanceMetadata"),
            node_instance_not_found_grace_period: seconds(
                &mut keys,
                "nodeInstanceNotFoundGracePeriodInSeconds",
                0,
            ),
            put_vmss_vm_batch_size: count(&mut keys, "putVMSSVMBatchSize", 1),
            load_balancer_sku,
            exclude_master_from_standard_lb: exclude_master,
            disable_outbound_snat: keys.boolean("disableOutboundSNAT"),
            maximum_load_balancer_rule_count: count(&mut keys, "maximumLoadBalancerRuleCount", 250),
            pre_configured_backend_pool_load_balancer_types: PreConfiguredBackendPools::parse(
                &keys.string("preConfiguredBackendPoolLoadBalancerTypes"),
            ),
            load_balancer_backend_pool_configuration_type: word(
                &mut keys,
                "loadBalancerBackendPoolConfigurationType",
                BackendPoolType::parse,
                BackendPoolType::NodeIpConfiguration,
                BackendPoolType::WORDS,
            ),
            enable_migrate_to_ip_based_backend_pool_api: keys.boolean("enableMigrateToIPBasedBackendPoolAPI"),
            enable_ip_tag_mutation_for_existing_public_ip: keys
                .boolean("enableIPTagMutationForExistingPublicIP"),
            cluster_service_load_balancer_health_probe_mode: word(
                &mut keys,
                "clusterServiceLoadBalancerHealthProbeMode",
                HealthProbeMode::parse,
                HealthProbeMode::ServiceNodePort,
                HealthProbeMode::WORDS,
            ),
            cluster_service_shared_load_balancer_health_probe_port: port(
                &mut keys,
                "clusterServiceSharedLoadBalancerHealthProbePort",
                10256,
            ),
            cluster_service_shared_load_balancer_health_probe_path: or(
                keys.string("clusterServiceSharedLoadBalancerHealthProbePath"),
                "/healthz",
            ),
            load_balancer_backend_pool_update_interval: seconds(
                &mut keys,
                "loadBalancerBackendPoolUpdateIntervalInSeconds",
                30,
            ),
            multiple_standard_load_balancer_configurations,
            service_gateway_enabled: keys.boolean("serviceGatewayEnabled"),
            route_update_interval: seconds(&mut keys, "routeUpdateIntervalInSeconds", 30),
            route_update_waiting: seconds(&mut keys, "routeUpdateWaitingInSeconds", 30),
            tags: all_tags,
            system_tags: tags::parse_system_tags(&keys.string("systemTags")),
            disable_api_call_cache: keys.boolean("disableAPICallCache"),
            non_vmss_uniform_nodes_cache_ttl: seconds(&mut keys, "nonVmssUniformNodesCacheTTLInSeconds", 900),
            vmss_cache_ttl: seconds(&mut keys, "vmssCacheTTLInSeconds", 600),
            vmss_virtual_machines_cache_ttl: seconds(&mut keys, "vmssVirtualMachinesCacheTTLInSeconds", 600),
            list_vmss_virtual_machines_without_instance_view: keys
                .boolean("listVmssVirtualMachinesWithoutInstanceView"),
            vmss_flex_cache_ttl: seconds(&mut keys, "vmssFlexCacheTTLInSeconds", 600),
            vmss_flex_vm_cache_ttl: seconds(&mut keys, "vmssFlexVMCacheTTLInSeconds", 600),
            vm_cache_ttl: seconds(&mut keys, "vmCacheTTLInSeconds", 60),
            load_balancer_cache_ttl: seconds(&mut keys, "loadBalancerCacheTTLInSeconds", 120),
            nsg_cache_ttl: seconds(&mut keys, "nsgCacheTTLInSeconds", 120),
            route_table_cache_ttl: seconds(&mut keys, "routeTableCacheTTLInSeconds", 120),
            pls_cache_ttl: seconds(&mut keys, "plsCacheTTLInSeconds", 120),
            availability_sets_cache_ttl: seconds(&mut keys, "availabilitySetsCacheTTLInSeconds", 600),
            public_ip_cache_ttl: seconds(&mut keys, "publicIPCacheTTLInSeconds", 120),
            backoff: read_backoff(&mut keys),
            rate_limit: RateLimit::read(&mut keys),
            per_client_rate_limits: RateLimit::read_per_client(&mut keys),
            cloud_config_type: word(
                &mut keys,
                "cloudConfigType",
                CloudConfigType::parse,
                CloudConfigType::Merge,
                CloudConfigType::WORDS,
            ),
            disable_cloud_provider: keys.boolean("disableCloudProvider"),
            environment_file: String::new(),
            unknown_keys: Vec::new(),
            remarks,
        };
        let (unknown, shadowed) = keys.remaining();
        for key in shadowed {
            config
                .remarks
                .push(format!("{key}: the same key stands there in another spelling, which counts"));
        }
        config.unknown_keys = unknown;
        config
    }

    /// Lays the environment over the document (1.1): a variable that is set and not empty wins.
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
    }
}

impl Default for CloudConfig {
    /// The configuration of an empty document.
    fn default() -> Self {
        Self::read(Map::new(), &mut Vec::new())
    }
}

fn or(text: String, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text }
}

/// Whole seconds; zero and below mean the default.
fn seconds(keys: &mut Keys<'_>, key: &str, default: u64) -> Duration {
    let value = u64::try_from(keys.integer(key)).unwrap_or_default();
    Duration::from_secs(if value == 0 { default } else { value })
}

/// A count; zero and below mean the default.
fn count(keys: &mut Keys<'_>, key: &str, default: u32) -> u32 {
    let value = keys.integer(key);
    if value <= 0 { default } else { u32::try_from(value).unwrap_or(u32::MAX) }
}

fn port(keys: &mut Keys<'_>, key: &str, default: u16) -> u16 {
    match keys.integer(key) {
        0 => default,
        value => u16::try_from(value).unwrap_or_else(|_| {
            keys.problems().push(Problem::new(key, value, "is no port", "use a port from 1 to 65535"));
            default
        }),
    }
}

fn word<T>(
    keys: &mut Keys<'_>,
    key: &str,
    parse: impl Fn(&str) -> Option<T>,
    default: T,
    words: &[&str],
) -> T {
    let text = keys.string(key);
    if text.is_empty() {
        return default;
    }
    parse(&text).unwrap_or_else(|| {
        let remedy = format!("use one of {}", words.join(", "));
        keys.problems().push(Problem::new(key, text, "is not a value that this key takes", remedy));
        default
    })
}

fn read_backoff(keys: &mut Keys<'_>) -> Backoff {
    let enabled = keys.boolean("cloudProviderBackoff");
    let retries = count(keys, "cloudProviderBackoffRetries", 6);
    let duration = seconds(keys, "cloudProviderBackoffDuration", 5);
    let positive = |value: f64, default: f64| if value > 0.0 { value } else { default };
    let exponent = positive(keys.float("cloudProviderBackoffExponent"), 1.5);
    let jitter = positive(keys.float("cloudProviderBackoffJitter"), 1.0);
    if enabled {
        Backoff { enabled, retries, exponent, duration, jitter }
    } else {
        Backoff { enabled, retries: 1, exponent, duration: Duration::from_secs(5), jitter }
    }
}

fn read_auxiliary_token_provider(keys: &mut Keys<'_>) -> Option<AuxiliaryTokenProvider> {
    let object = keys.object("auxiliaryTokenProvider")?;
    let mut inner = Keys::new(object, Some("auxiliaryTokenProvider".to_owned()), keys.problems());
    Some(AuxiliaryTokenProvider {
        subscription_id: inner.string("subscriptionID"),
        resource_group: inner.string("resourceGroup"),
        vault_name: inner.string("vaultName"),
        secret_name: inner.string("secretName"),
    })
}

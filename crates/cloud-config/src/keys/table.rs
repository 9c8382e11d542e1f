//! The table of keys, in the order of the documentation.

use super::ValueType::{self, Boolean, List, MapOf, Mapping, Number, Secret, Text, Whole, Word};
use super::{Effect, Key};
use crate::CloudConfig;

const fn applies(
    name: &'static str,
    value_type: ValueType,
    default: &'static str,
    what: &'static str,
    value: fn(&CloudConfig) -> String,
) -> Key {
    Key { name, value_type, default, effect: Effect::Applies { what, value } }
}

const fn idle(name: &'static str, value_type: ValueType, default: &'static str, reason: &'static str) -> Key {
    Key { name, value_type, default, effect: Effect::None(reason) }
}

const fn limit(name: &'static str) -> Key {
    idle(name, ValueType::Mapping(RATE_LIMIT), "", RATE)
}

const fn foreign(name: &'static str, reason: &'static str) -> Key {
    idle(name, ValueType::Any, "", reason)
}

const ROUTES: &str =
    "routes that are due are written at once, many in one write, and are there when Azure says so";
const CACHE: &str = "there is no cache lifetime to set: every read is as fresh as its use needs";
const RATE: &str = "client-side limits are not applied: call budgets are learned from Azure's answers";
const PAUSES: &str = "pauses double, whatever is set here";
const RELOADING: &str = "this release does not reload its configuration: restart it after a change";
const KMS: &str = "belongs to the KMS plugin";
const RETIRED: &str = "earlier controller managers read it, the one of today does not";

const RATE_LIMIT: &[(&str, ValueType)] = &[
    ("cloudProviderRateLimit", ValueType::Boolean),
    ("cloudProviderRateLimitQPS", ValueType::Number),
    ("cloudProviderRateLimitBucket", ValueType::Whole),
    ("cloudProviderRateLimitQPSWrite", ValueType::Number),
    ("cloudProviderRateLimitBucketWrite", ValueType::Whole),
];

const VAULT: &[(&str, ValueType)] = &[
    ("subscriptionID", ValueType::Text),
    ("resourceGroup", ValueType::Text),
    ("vaultName", ValueType::Text),
    ("secretName", ValueType::Text),
];

/// All keys, in the order of the documentation.
pub const KEYS: &[Key] = &[
    // The cloud and its client.
    applies(
        "cloud",
        Text,
        "AzurePublicCloud",
        "the cloud: AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud; AzureStackCloud is refused unless disableAzureStackCloud is true",
        |c| c.cloud.clone(),
    ),
    applies(
        "resourceManagerEndpoint",
        Text,
        "",
        "the URL whose metadata document overrides the cloud's endpoints",
        |c| c.resource_manager_endpoint.clone(),
    ),
    applies(
        "disableAzureStackCloud",
        Boolean,
        "false",
        "take the endpoints of Azure Stack's environment file, and the API versions of the public cloud",
        |c| c.disable_azure_stack_cloud.to_string(),
    ),
    applies(
        "userAgent",
        Text,
        "kubernetes-cloudprovider/<version>",
        "the User-Agent header of calls to Azure",
        |c| c.user_agent.clone(),
    ),
    applies("tenantId", Text, "", "the tenant; AZURE_TENANT_ID goes before it", |c| c.tenant_id.clone()),
    applies(
        "networkResourceTenantID",
        Text,
        "tenantId",
        "the tenant of network resources; one that differs from tenantId is refused",
        |c| c.network_resource_tenant_id.clone(),
    ),
    applies("subscriptionId", Text, "", "the subscription of the cluster's machines", |c| {
        c.subscription_id.clone()
    }),
    applies(
        "networkResourceSubscriptionID",
        Text,
        "subscriptionId",
        "the subscription of load balancers, addresses, security group and network",
        |c| c.network_resource_subscription_id.clone(),
    ),
    idle("identitySystem", Text, "", "belongs to Azure Stack, which this release does not do"),
    applies(
        "enableMinimumRetryAfter",
        Boolean,
        "false",
        "overlook a Retry-After below 5 s in answers that report success",
        |c| c.enable_minimum_retry_after.to_string(),
    ),
    // Credentials.
    applies("aadClientId", Text, "", "the application that signs in; AZURE_CLIENT_ID goes before it", |c| {
        c.aad_client_id.clone()
    }),
    applies("aadClientSecret", Secret, "", "its secret; AZURE_CLIENT_SECRET goes before it", |c| {
        hidden(c.aad_client_secret.is_empty())
    }),
    applies("aadClientCertPath", Text, "", "its certificate with private key: a PFX or PEM file", |c| {
        c.aad_client_cert_path.clone()
    }),
    applies("aadClientCertPassword", Secret, "", "the password of that file", |c| {
        hidden(c.aad_client_cert_password.is_empty())
    }),
    applies(
        "useManagedIdentityExtension",
        Boolean,
        "false",
        "sign in with a managed identity of the machine",
        |c| c.use_managed_identity_extension.to_string(),
    ),
    applies(
        "userAssignedIdentityID",
        Text,
        "",
        "the user-assigned identity, by client id or resource id; without it the system-assigned one",
        |c| c.user_assigned_identity_id.clone(),
    ),
    applies(
        "useFederatedWorkloadIdentityExtension",
        Boolean,
        "false",
        "sign in with workload identity; AZURE_FEDERATED_TOKEN_FILE switches it on, too",
        |c| c.use_federated_workload_identity_extension.to_string(),
    ),
    applies(
        "aadFederatedTokenFile",
        Text,
        "",
        "the token file of workload identity; AZURE_FEDERATED_TOKEN_FILE goes before it",
        |c| c.aad_federated_token_file.clone(),
    ),
    idle(
        "auxiliaryTokenProvider",
        Mapping(VAULT),
        "",
        "belongs to a network in another tenant, which this release does not do",
    ),
    applies("aadMSIDataPlaneIdentityPath", Text, "", "refused where it is the only credential", |c| {
        c.aad_msi_data_plane_identity_path.clone()
    }),
    // Names and resource groups.
    applies("resourceGroup", Text, "", "the cluster's resource group, in lower case", |c| {
        c.resource_group.clone()
    }),
    applies("location", Text, "", "the region of new resources", |c| c.location.clone()),
    applies(
        "extendedLocationName",
        Text,
        "",
        "the edge zone of new resources; counts together with its type",
        |c| c.extended_location_name.clone(),
    ),
    applies("extendedLocationType", Text, "", "the edge zone's type; counts together with its name", |c| {
        c.extended_location_type.clone()
    }),
    applies("vnetName", Text, "", "the virtual network of internal load balancers", |c| c.vnet_name.clone()),
    applies("vnetResourceGroup", Text, "resourceGroup", "the virtual network's resource group", |c| {
        c.vnet_resource_group.clone()
    }),
    applies("subnetName", Text, "", "the subnet of internal load balancers", |c| c.subnet_name.clone()),
    applies("securityGroupName", Text, "", "the network security group of the nodes", |c| {
        c.security_group_name.clone()
    }),
    applies(
        "securityGroupResourceGroup",
        Text,
        "resourceGroup",
        "the security group's resource group",
        |c| c.security_group_resource_group.clone(),
    ),
    applies(
        "routeTableName",
        Text,
        "",
        "the route table with a route to the pods of each node (--configure-cloud-routes); without it none is written",
        |c| c.route_table_name.clone(),
    ),
    applies("routeTableResourceGroup", Text, "resourceGroup", "the route table's resource group", |c| {
        c.route_table_resource_group.clone()
    }),
    applies(
        "privateLinkServiceResourceGroup",
        Text,
        "resourceGroup",
        "the resource group of private link services; a Service may name another",
        |c| c.private_link_service_resource_group.clone(),
    ),
    applies(
        "loadBalancerName",
        Text,
        "--cluster-name",
        "the name of the load balancer; the internal one has -internal behind it",
        |c| c.load_balancer_name.clone(),
    ),
    applies("loadBalancerResourceGroup", Text, "resourceGroup", "the load balancers' resource group", |c| {
        c.load_balancer_resource_group.clone()
    }),
    applies(
        "primaryAvailabilitySetName",
        Text,
        "",
        "where loadBalancerSku is basic and vmType is standard: the set whose load balancer bears the cluster's name",
        |c| c.primary_availability_set_name.clone(),
    ),
    applies("primaryScaleSetName", Text, "", "the same where vmType is vmss or vmssflex", |c| {
        c.primary_scale_set_name.clone()
    }),
    // Machines.
    applies(
        "vmType",
        Text,
        "vmss",
        "with any type every machine is served by its real kind: standalone, or of an availability set or scale set",
        |c| c.vm_type.to_string(),
    ),
    applies(
        "disableAvailabilitySetNodes",
        Boolean,
        "false",
        "refused with another vmType than vmss; with it, nodes without a provider id are searched only in uniform scale sets",
        |c| c.disable_availability_set_nodes.to_string(),
    ),
    applies(
        "enableVmssFlexNodes",
        Boolean,
        "false",
        "with disableAvailabilitySetNodes, nodes without a provider id are searched among virtual machines all the same",
        |c| c.enable_vmss_flex_nodes.to_string(),
    ),
    idle(
        "useInstanceMetadata",
        Boolean,
        "false",
        "machines are described by Resource Manager; instance metadata serves managed identities alone",
    ),
    applies(
        "nodeInstanceNotFoundGracePeriodInSeconds",
        Whole,
        "0 (off)",
        "a node younger than this counts as existing although Azure does not find its machine",
        |c| seconds(c.node_instance_not_found_grace_period),
    ),
    applies("putVMSSVMBatchSize", Whole, "1", "instances of a scale set that are written at once", |c| {
        c.put_vmss_vm_batch_size.to_string()
    }),
    // Load balancers.
    applies(
        "loadBalancerSku",
        Text,
        "standard",
        "standard (load balancers of SKU Basic are replaced) or basic (guide \"Load balancers of SKU Basic\"); service is refused",
        |c| c.load_balancer_sku.to_string(),
    ),
    applies("excludeMasterFromStandardLB", Boolean, "true", "control-plane nodes are no backends", |c| {
        c.exclude_master_from_standard_lb.to_string()
    }),
    applies("disableOutboundSNAT", Boolean, "false", "rules give no outbound connectivity", |c| {
        c.disable_outbound_snat.to_string()
    }),
    applies(
        "maximumLoadBalancerRuleCount",
        Whole,
        "250",
        "where loadBalancerSku is basic: a load balancer with so many rules takes no more Services. With standard the \
         limit is Azure's, 1,500 rules",
        |c| c.maximum_load_balancer_rule_count.to_string(),
    ),
    applies(
        "preConfiguredBackendPoolLoadBalancerTypes",
        Text,
        "",
        "internal, external or all: load balancers whose pools are filled externally",
        |c| c.pre_configured_backend_pool_load_balancer_types.to_string(),
    ),
    applies(
        "loadBalancerBackendPoolConfigurationType",
        Text,
        "nodeIPConfiguration",
        "how nodes are members of pools: nodeIPConfiguration (by network interface) or nodeIP (by address); podIP is refused",
        |c| c.load_balancer_backend_pool_configuration_type.to_string(),
    ),
    applies(
        "enableLoadBalancerAdminState",
        Boolean,
        "false",
        "nodes that drain take no new connections from load balancers; existing ones continue. With SKU Basic it has no effect",
        |c| c.enable_load_balancer_admin_state.to_string(),
    ),
    applies(
        "enableMigrateToIPBasedBackendPoolAPI",
        Boolean,
        "false",
        "with nodeIP: let Azure convert the interfaces in pools to addresses, so that no traffic is lost meanwhile",
        |c| c.enable_migrate_to_ip_based_backend_pool_api.to_string(),
    ),
    applies(
        "enableIPTagMutationForExistingPublicIP",
        Boolean,
        "false",
        "change the IP tags of public IPs that exist",
        |c| c.enable_ip_tag_mutation_for_existing_public_ip.to_string(),
    ),
    applies(
        "clusterServiceLoadBalancerHealthProbeMode",
        Text,
        "servicenodeport",
        "the target of probes of externalTrafficPolicy: Cluster: servicenodeport (the Service's own port) or shared (one path on every node)",
        |c| c.cluster_service_load_balancer_health_probe_mode.to_string(),
    ),
    applies(
        "clusterServiceSharedLoadBalancerHealthProbePort",
        Whole,
        "10256",
        "the port of the shared probe",
        |c| c.cluster_service_shared_load_balancer_health_probe_port.to_string(),
    ),
    applies(
        "clusterServiceSharedLoadBalancerHealthProbePath",
        Text,
        "/healthz",
        "the path of the shared probe",
        |c| c.cluster_service_shared_load_balancer_health_probe_path.clone(),
    ),
    applies(
        "loadBalancerBackendPoolUpdateIntervalInSeconds",
        Whole,
        "30",
        "with several load balancers: how long changes of endpoints are gathered before the pools of Services with externalTrafficPolicy: Local follow them",
        |c| seconds(c.load_balancer_backend_pool_update_interval),
    ),
    applies(
        "multipleStandardLoadBalancerConfigurations",
        List,
        "",
        "the load balancers that share the Services, each with its primary machine set (guide \"Several load balancers\")",
        |c| c.multiple_standard_load_balancer_configurations.len().to_string(),
    ),
    applies("serviceGatewayEnabled", Boolean, "false", "refused when true", |c| {
        c.service_gateway_enabled.to_string()
    }),
    // Routes.
    idle("routeUpdateIntervalInSeconds", Whole, "30", ROUTES),
    idle("routeUpdateWaitingInSeconds", Whole, "30", ROUTES),
    // Tags.
    applies("tags", Text, "", "tags of the resources that the program writes: a=b,c=d", tags),
    applies(
        "tagsMap",
        MapOf(&Text),
        "",
        "the same as a mapping, for values with , or =; goes before tags",
        tags,
    ),
    applies(
        "systemTags",
        Text,
        "",
        "prefixes of tags that survive, separated by commas; without it no tag is ever removed",
        |c| c.system_tags.join(","),
    ),
    // Reads.
    idle("disableAPICallCache", Boolean, "false", CACHE),
    idle("nonVmssUniformNodesCacheTTLInSeconds", Whole, "900", CACHE),
    idle("vmssCacheTTLInSeconds", Whole, "600", CACHE),
    idle("vmssVirtualMachinesCacheTTLInSeconds", Whole, "600", CACHE),
    applies(
        "listVmssVirtualMachinesWithoutInstanceView",
        Boolean,
        "false",
        "list the instances of scale sets without their power states",
        |c| c.list_vmss_virtual_machines_without_instance_view.to_string(),
    ),
    idle("vmssFlexCacheTTLInSeconds", Whole, "600", CACHE),
    idle("vmssFlexVMCacheTTLInSeconds", Whole, "600", CACHE),
    idle("vmCacheTTLInSeconds", Whole, "60", CACHE),
    idle("loadBalancerCacheTTLInSeconds", Whole, "120", CACHE),
    idle("nsgCacheTTLInSeconds", Whole, "120", CACHE),
    idle("routeTableCacheTTLInSeconds", Whole, "120", CACHE),
    idle("plsCacheTTLInSeconds", Whole, "120", CACHE),
    idle("availabilitySetsCacheTTLInSeconds", Whole, "600", CACHE),
    idle("publicIPCacheTTLInSeconds", Whole, "120", CACHE),
    // Retries of failed calls.
    applies(
        "cloudProviderBackoff",
        Boolean,
        "false",
        "retry failed calls by the two keys below; without it 3 times, from 5 s on",
        |c| c.backoff.enabled.to_string(),
    ),
    applies("cloudProviderBackoffRetries", Whole, "6", "how often, with cloudProviderBackoff", |c| {
        c.backoff.retries.to_string()
    }),
    applies(
        "cloudProviderBackoffDuration",
        Whole,
        "5",
        "the first backoff in seconds, with cloudProviderBackoff",
        |c| seconds(c.backoff.duration),
    ),
    idle("cloudProviderBackoffExponent", Number, "1.5", PAUSES),
    idle("cloudProviderBackoffJitter", Number, "1.0", PAUSES),
    // Client-side limits.
    idle("cloudProviderRateLimit", Boolean, "false", RATE),
    idle("cloudProviderRateLimitQPS", Number, "", RATE),
    idle("cloudProviderRateLimitBucket", Whole, "", RATE),
    idle("cloudProviderRateLimitQPSWrite", Number, "", RATE),
    idle("cloudProviderRateLimitBucketWrite", Whole, "", RATE),
    idle("Entries", MapOf(&Mapping(RATE_LIMIT)), "", RATE),
    limit("storageAccountRateLimit"),
    limit("availabilitySetRateLimit"),
    limit("loadBalancerRateLimit"),
    limit("deploymentRateLimit"),
    limit("diskRateLimit"),
    limit("interfaceRateLimit"),
    limit("ipGroupRateLimit"),
    limit("containerServiceRateLimit"),
    limit("natGatewayRateLimit"),
    limit("privateEndpointRateLimit"),
    limit("privateLinkServiceRateLimit"),
    limit("privateDNSRateLimit"),
    limit("publicIPAddressRateLimit"),
    limit("routeTableRateLimit"),
    limit("securityGroupRateLimit"),
    limit("serviceGatewayRateLimit"),
    limit("snapshotRateLimit"),
    limit("subnetsRateLimit"),
    limit("virtualMachineRateLimit"),
    limit("virtualMachineScaleSetRateLimit"),
    limit("virtualNetworkRateLimit"),
    // The source of the configuration.
    idle(
        "cloudConfigType",
        Word(&["file", "secret", "merge"]),
        "merge",
        "--cloud-config names the file, and nothing else is read",
    ),
    foreign("disableCloudProvider", RELOADING),
    // Keys of other programs and of older versions, which installers still write.
    foreign("providerVaultName", KMS),
    foreign("providerKeyName", KMS),
    foreign("providerKeyVersion", KMS),
    foreign("routeRateLimit", RETIRED),
    foreign("virtualMachineSizesRateLimit", RETIRED),
    foreign("cloudProviderBackoffMode", RETIRED),
    foreign("enableMultipleStandardLoadBalancers", RETIRED),
    foreign("nodePoolsWithoutDedicatedSLB", RETIRED),
    foreign("availabilitySetNodesCacheTTLInSeconds", RETIRED),
];

fn hidden(empty: bool) -> String {
    if empty { String::new() } else { crate::secret::HIDDEN.to_owned() }
}

fn seconds(duration: std::time::Duration) -> String {
    duration.as_secs().to_string()
}

fn tags(config: &CloudConfig) -> String {
    let pairs: Vec<String> = config.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

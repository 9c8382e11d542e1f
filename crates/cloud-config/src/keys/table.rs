//! The table of keys, in the order of the documentation.

use super::key::ValueType::{self, Boolean, List, MapOf, Mapping, Number, Secret, Text, Whole};
use super::key::{Effect, Key};

const fn applies(
    name: &'static str,
    value_type: ValueType,
    default: &'static str,
    what: &'static str,
) -> Key {
    Key { name, value_type, default, effect: Effect::Applies(what) }
}

const fn text(name: &'static str, what: &'static str) -> Key {
    applies(name, Text, "", what)
}

const fn flag(name: &'static str, what: &'static str) -> Key {
    applies(name, Boolean, "false", what)
}

const fn group(name: &'static str, what: &'static str) -> Key {
    applies(name, Text, "resourceGroup", what)
}

const fn idle(name: &'static str, value_type: ValueType, default: &'static str, reason: &'static str) -> Key {
    Key { name, value_type, default, effect: Effect::None(reason) }
}

const fn cache_age(name: &'static str, default: &'static str) -> Key {
    idle(name, Whole, default, CACHE)
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
    ),
    text("resourceManagerEndpoint", "the URL whose metadata document overrides the cloud's endpoints"),
    flag(
        "disableAzureStackCloud",
        "take the endpoints of Azure Stack's environment file, and the API versions of the public cloud",
    ),
    applies(
        "userAgent",
        Text,
        "kubernetes-cloudprovider/<version>",
        "the User-Agent header of calls to Azure",
    ),
    text("tenantId", "the tenant; AZURE_TENANT_ID goes before it"),
    applies(
        "networkResourceTenantID",
        Text,
        "tenantId",
        "the tenant of network resources; one that differs from tenantId is refused",
    ),
    text("subscriptionId", "the subscription of the cluster's machines"),
    applies(
        "networkResourceSubscriptionID",
        Text,
        "subscriptionId",
        "the subscription of load balancers, addresses, security group and network",
    ),
    idle("identitySystem", Text, "", "belongs to Azure Stack, which this release does not do"),
    flag("enableMinimumRetryAfter", "overlook a Retry-After below 5 s in answers that report success"),
    // Credentials.
    text("aadClientId", "the application that signs in; AZURE_CLIENT_ID goes before it"),
    applies("aadClientSecret", Secret, "", "its secret; AZURE_CLIENT_SECRET goes before it"),
    text("aadClientCertPath", "its certificate with private key: a PFX or PEM file"),
    applies("aadClientCertPassword", Secret, "", "the password of that file"),
    flag("useManagedIdentityExtension", "sign in with a managed identity of the machine"),
    text(
        "userAssignedIdentityID",
        "the user-assigned identity, by client id or resource id; without it the system-assigned one",
    ),
    flag(
        "useFederatedWorkloadIdentityExtension",
        "sign in with workload identity; AZURE_FEDERATED_TOKEN_FILE switches it on, too",
    ),
    text(
        "aadFederatedTokenFile",
        "the token file of workload identity; AZURE_FEDERATED_TOKEN_FILE goes before it",
    ),
    idle(
        "auxiliaryTokenProvider",
        Mapping(VAULT),
        "",
        "belongs to a network in another tenant, which this release does not do",
    ),
    text("aadMSIDataPlaneIdentityPath", "refused where it is the only credential"),
    // Names and resource groups.
    text("resourceGroup", "the cluster's resource group, in lower case"),
    text("location", "the region of new resources"),
    text("extendedLocationName", "the edge zone of new resources; counts together with its type"),
    text("extendedLocationType", "the edge zone's type; counts together with its name"),
    text("vnetName", "the virtual network of internal load balancers"),
    group("vnetResourceGroup", "the virtual network's resource group"),
    text("subnetName", "the subnet of internal load balancers"),
    text("securityGroupName", "the network security group of the nodes"),
    group("securityGroupResourceGroup", "the security group's resource group"),
    text(
        "routeTableName",
        "the route table with a route to the pods of each node (--configure-cloud-routes); without it none is written",
    ),
    group("routeTableResourceGroup", "the route table's resource group"),
    group(
        "privateLinkServiceResourceGroup",
        "the resource group of private link services; a Service may name another",
    ),
    applies(
        "loadBalancerName",
        Text,
        "--cluster-name",
        "the name of the load balancer; the internal one has -internal behind it",
    ),
    group("loadBalancerResourceGroup", "the load balancers' resource group"),
    text(
        "primaryAvailabilitySetName",
        "where loadBalancerSku is basic and vmType is standard: the set whose load balancer bears the cluster's name",
    ),
    text("primaryScaleSetName", "the same where vmType is vmss or vmssflex"),
    // Machines.
    applies(
        "vmType",
        Text,
        "vmss",
        "with any type every machine is served by its real kind: standalone, or of an availability set or scale set",
    ),
    flag(
        "disableAvailabilitySetNodes",
        "refused with another vmType than vmss; with it, nodes without a provider id are searched only in uniform scale sets",
    ),
    flag(
        "enableVmssFlexNodes",
        "with disableAvailabilitySetNodes, nodes without a provider id are searched among virtual machines all the same",
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
    ),
    applies("putVMSSVMBatchSize", Whole, "1", "instances of a scale set that are written at once"),
    // Load balancers.
    applies(
        "loadBalancerSku",
        Text,
        "standard",
        "standard (load balancers of SKU Basic are replaced) or basic (guide \"Load balancers of SKU Basic\"); service is refused",
    ),
    applies("excludeMasterFromStandardLB", Boolean, "true", "control-plane nodes are no backends"),
    flag("disableOutboundSNAT", "rules give no outbound connectivity"),
    applies(
        "maximumLoadBalancerRuleCount",
        Whole,
        "250",
        "where loadBalancerSku is basic: a load balancer with so many rules takes no more Services. With standard the \
         limit is Azure's, 1,500 rules",
    ),
    text(
        "preConfiguredBackendPoolLoadBalancerTypes",
        "internal, external or all: load balancers whose pools are filled externally",
    ),
    applies(
        "loadBalancerBackendPoolConfigurationType",
        Text,
        "nodeIPConfiguration",
        "how nodes are members of pools: nodeIPConfiguration (by network interface) or nodeIP (by address); podIP is refused",
    ),
    flag(
        "enableLoadBalancerAdminState",
        "nodes that drain take no new connections from load balancers; existing ones continue. With SKU Basic it has no effect",
    ),
    flag(
        "enableMigrateToIPBasedBackendPoolAPI",
        "with nodeIP: let Azure convert the interfaces in pools to addresses, so that no traffic is lost meanwhile",
    ),
    flag("enableIPTagMutationForExistingPublicIP", "change the IP tags of public IPs that exist"),
    applies(
        "clusterServiceLoadBalancerHealthProbeMode",
        Text,
        "servicenodeport",
        "the target of probes of externalTrafficPolicy: Cluster: servicenodeport (the Service's own port) or shared (one path on every node)",
    ),
    applies(
        "clusterServiceSharedLoadBalancerHealthProbePort",
        Whole,
        "10256",
        "the port of the shared probe",
    ),
    applies(
        "clusterServiceSharedLoadBalancerHealthProbePath",
        Text,
        "/healthz",
        "the path of the shared probe",
    ),
    applies(
        "loadBalancerBackendPoolUpdateIntervalInSeconds",
        Whole,
        "30",
        "with several load balancers: how long changes of endpoints are gathered before the pools of Services with externalTrafficPolicy: Local follow them",
    ),
    applies(
        "multipleStandardLoadBalancerConfigurations",
        List,
        "",
        "the load balancers that share the Services, each with its primary machine set (guide \"Several load balancers\")",
    ),
    flag("serviceGatewayEnabled", "refused when true"),
    // Routes.
    idle("routeUpdateIntervalInSeconds", Whole, "30", ROUTES),
    idle("routeUpdateWaitingInSeconds", Whole, "30", ROUTES),
    // Tags.
    text("tags", "tags of the resources that the program writes: a=b,c=d"),
    applies("tagsMap", MapOf(&Text), "", "the same as a mapping, for values with , or =; goes before tags"),
    text(
        "systemTags",
        "prefixes of tags that survive, separated by commas; without it no tag is ever removed",
    ),
    // Reads.
    idle("disableAPICallCache", Boolean, "false", CACHE),
    cache_age("nonVmssUniformNodesCacheTTLInSeconds", "900"),
    cache_age("vmssCacheTTLInSeconds", "600"),
    cache_age("vmssVirtualMachinesCacheTTLInSeconds", "600"),
    flag(
        "listVmssVirtualMachinesWithoutInstanceView",
        "list the instances of scale sets without their power states",
    ),
    cache_age("vmssFlexCacheTTLInSeconds", "600"),
    cache_age("vmssFlexVMCacheTTLInSeconds", "600"),
    cache_age("vmCacheTTLInSeconds", "60"),
    cache_age("loadBalancerCacheTTLInSeconds", "120"),
    cache_age("nsgCacheTTLInSeconds", "120"),
    cache_age("routeTableCacheTTLInSeconds", "120"),
    cache_age("plsCacheTTLInSeconds", "120"),
    cache_age("availabilitySetsCacheTTLInSeconds", "600"),
    cache_age("publicIPCacheTTLInSeconds", "120"),
    // Retries of failed calls.
    flag("cloudProviderBackoff", "retry failed calls by the two keys below; without it 3 times, from 5 s on"),
    applies("cloudProviderBackoffRetries", Whole, "6", "how often, with cloudProviderBackoff"),
    applies(
        "cloudProviderBackoffDuration",
        Whole,
        "5",
        "the first backoff in seconds, with cloudProviderBackoff",
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
    applies(
        "cloudConfigType",
        Text,
        "merge",
        "with a Secret (--cloud-config-secret-name) beside the file: file or secret alone, or merge, the Secret's keys over the file's",
    ),
    flag(
        "disableCloudProvider",
        "no controller runs while it is true; read where --enable-dynamic-reloading is set",
    ),
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

/// The entry of a key, without regard to case.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_stands_twice_in_the_table() {
        let mut names: Vec<String> = KEYS.iter().map(|key| key.name.to_ascii_lowercase()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }
}

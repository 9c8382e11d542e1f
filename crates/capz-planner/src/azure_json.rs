//! The cloud provider's configuration on machines (azure.json), as Secrets hold it for bootstrap configurations.

use std::collections::BTreeMap;

use capz_api::machine::identity_kinds;
use capz_api::network::roles;
use capz_api::{BackOff, Quantity, RateLimit, RateLimitConfig};
use cloud_config::Secret;
use serde::Serialize;
use serde_json::{Number, Value};

use crate::extension::PUBLIC_CLOUD;
use crate::scope::ClusterScope;
use crate::tags::OWNED;

/// The keys of a Secret: for machines of the control plane, for workers, and for both.
pub const KEYS: [&str; 3] = ["control-plane-azure.json", "worker-node-azure.json", "azure.json"];
/// The annotations that name the template of a Machine, and the kind of templates of AzureMachines there.
const CLONED_FROM: (&str, &str) =
    ("cluster.x-k8s.io/cloned-from-groupkind", "AzureMachineTemplate.infrastructure.cluster.x-k8s.io");
const SCALE_SETS: &str = "vmss";
const INDENTATION: &[u8] = b"    ";
/// The largest number of rules that the cloud provider creates on one load balancer.
const MAX_RULES: u32 = 250;

/// The name of the Secret for the machines of this object.
pub fn secret_name(object: &str) -> String {
    format!("{object}-azure-json")
}

/// The label of Secrets that are ours.
pub fn owner_label(cluster: &str) -> (&str, &'static str) {
    (cluster, OWNED)
}

/// Whether an existing Secret is ours. A Secret that a user created first is not.
pub fn is_ours(labels: &BTreeMap<String, String>, cluster: &str) -> bool {
    labels.get(cluster).is_some_and(|value| value == OWNED)
}

/// Whether an AzureMachine with these annotations has a Secret of its own: one from a template uses the template's.
pub fn machine_has_own(annotations: &BTreeMap<String, String>) -> bool {
    let (key, template) = CLONED_FROM;
    annotations.get(key).is_none_or(|from| from != template)
}

/// Whether machines get a secret of the cluster's identity, because they have no identity of their own.
pub fn carries_secret(vm_identity: Option<&str>, cluster_identity_type: &str) -> bool {
    vm_identity.unwrap_or(identity_kinds::NONE) == identity_kinds::NONE
        && cluster_identity_type == "ServicePrincipal"
}

/// The identity with which the cluster's resources are created.
#[derive(Debug, Clone, Copy)]
pub struct Credentials<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The client, if there is one.
    pub client_id: &'a str,
    /// Its secret, if it has one.
    pub client_secret: Option<&'a Secret>,
}

/// The machines have a user-assigned identity whose client ID is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a non-empty userIdentityID: the client id of the machines' user-assigned identity is not known"
)]
pub struct UnknownIdentity;

/// The content of the Secret for each of [`KEYS`]. `identity_client` is the client ID of the machines' first
/// user-assigned identity.
///
/// # Errors
/// The machines have such an identity, and its client ID is not given.
pub fn contents(
    scope: ClusterScope<'_>,
    credentials: Credentials<'_>,
    vm_identity: Option<&str>,
    identity_client: Option<&str>,
    machine_pools: bool,
) -> Result<Secret, UnknownIdentity> {
    let spec = scope.spec;
    let roles = [roles::NODE, roles::CLUSTER];
    let subnet =
        scope.subnets().iter().find(|subnet| roles.iter().any(|role| subnet.role.as_deref() == Some(role)));
    let group = subnet.and_then(|subnet| subnet.security_group.as_ref()?.name.as_deref());
    let table = subnet.and_then(|subnet| subnet.route_table.as_ref()?.name.as_deref());
    let edge = spec.extended_location.as_ref();
    let balancer = scope.node_outbound_balancer().and_then(|balancer| balancer.name.as_deref());
    let overrides = spec.cloud_provider_config_overrides.as_ref();
    let limits = overrides.and_then(|it| it.rate_limits.as_deref()).unwrap_or_default();
    let secret = credentials.client_secret.map(Secret::reveal).unwrap_or_default();
    let own_identity = vm_identity.filter(|kind| *kind != identity_kinds::NONE);
    let identity_client = match own_identity {
        Some(identity_kinds::USER_ASSIGNED) => {
            Some(identity_client.filter(|id| !id.is_empty()).ok_or(UnknownIdentity)?)
        }
        _ => None,
    };
    let config = AzureJson {
        cloud: spec.azure_environment.as_deref().filter(|cloud| !cloud.is_empty()).unwrap_or(PUBLIC_CLOUD),
        tenant_id: credentials.tenant,
        subscription_id: scope.subscription,
        aad_client_id: if own_identity.is_some() { "" } else { credentials.client_id },
        aad_client_secret: if own_identity.is_some() { "" } else { secret },
        resource_group: scope.group_name(),
        security_group_name: group.unwrap_or_default(),
        security_group_resource_group: scope.network_group_name(),
        location: scope.location(),
        extended_location_type: edge.and_then(|edge| edge.kind.as_deref()).unwrap_or_default(),
        extended_location_name: edge.and_then(|edge| edge.name.as_deref()).unwrap_or_default(),
        vm_type: SCALE_SETS,
        vnet_name: scope.network_name(),
        vnet_resource_group: scope.network_group_name(),
        subnet_name: subnet.and_then(|subnet| subnet.name.as_deref()).unwrap_or_default(),
        route_table_name: table.unwrap_or_default(),
        load_balancer_sku: "Standard",
        load_balancer_name: balancer.unwrap_or_default(),
        maximum_load_balancer_rule_count: MAX_RULES,
        use_managed_identity_extension: own_identity.is_some(),
        use_instance_metadata: true,
        enable_vmss_flex_nodes: machine_pools,
        user_assigned_identity_id: identity_client.unwrap_or_default(),
        default_limit: limit(limits, "defaultRateLimit").unwrap_or_default(),
        limits: Limits::of(limits),
        back_off: overrides.and_then(|it| it.back_offs.as_ref()).map(BackOffs::of).unwrap_or_default(),
    };
    Ok(Secret::new(text(&config)))
}

/// A configuration exactly as the established provider writes it, so that a Secret that it has written is not written
/// again.
fn text(config: &AzureJson<'_>) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(INDENTATION);
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Serialization to memory does not fail for texts and numbers.
    if config.serialize(&mut serializer).is_err() {
        return String::new();
    }
    let mut text = String::from_utf8(bytes).unwrap_or_default();
    // These characters occur in texts only, and Go escapes them there, as for HTML.
    for (plain, escaped) in [('&', "\\u0026"), ('<', "\\u003c"), ('>', "\\u003e")] {
        text = text.replace(plain, escaped);
    }
    text
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AzureJson<'a> {
    cloud: &'a str,
    tenant_id: &'a str,
    subscription_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    aad_client_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    aad_client_secret: &'a str,
    resource_group: &'a str,
    security_group_name: &'a str,
    security_group_resource_group: &'a str,
    location: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    extended_location_type: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    extended_location_name: &'a str,
    vm_type: &'a str,
    vnet_name: &'a str,
    vnet_resource_group: &'a str,
    subnet_name: &'a str,
    route_table_name: &'a str,
    load_balancer_sku: &'a str,
    load_balancer_name: &'a str,
    maximum_load_balancer_rule_count: u32,
    use_managed_identity_extension: bool,
    use_instance_metadata: bool,
    #[serde(skip_serializing_if = "is_false")]
    enable_vmss_flex_nodes: bool,
    #[serde(rename = "userAssignedIdentityID", skip_serializing_if = "str::is_empty")]
    user_assigned_identity_id: &'a str,
    #[serde(flatten)]
    default_limit: Limit,
    #[serde(flatten)]
    limits: Limits,
    #[serde(flatten)]
    back_off: BackOffs,
}

/// A limit for requests of one kind. Zero is not written.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Limit {
    #[serde(skip_serializing_if = "is_false")]
    cloud_provider_rate_limit: bool,
    #[serde(rename = "cloudProviderRateLimitQPS", skip_serializing_if = "Option::is_none")]
    queries: Option<Number>,
    #[serde(rename = "cloudProviderRateLimitBucket", skip_serializing_if = "is_zero")]
    bucket: i64,
    #[serde(rename = "cloudProviderRateLimitQPSWrite", skip_serializing_if = "Option::is_none")]
    queries_write: Option<Number>,
    #[serde(rename = "cloudProviderRateLimitBucketWrite", skip_serializing_if = "is_zero")]
    bucket_write: i64,
}

impl Limit {
    fn of(config: &RateLimitConfig) -> Self {
        let single =
            |quantity: &Option<Quantity>| number(f64::from(approximate(quantity.as_ref()) as f32), true);
        Self {
            cloud_provider_rate_limit: config.cloud_provider_rate_limit.unwrap_or_default(),
            queries: single(&config.cloud_provider_rate_limit_qps),
            bucket: config.cloud_provider_rate_limit_bucket.unwrap_or_default(),
            queries_write: single(&config.cloud_provider_rate_limit_qps_write),
            bucket_write: config.cloud_provider_rate_limit_bucket_write.unwrap_or_default(),
        }
    }
}

/// The limit of this name; the last one, if there are several.
fn limit(limits: &[RateLimit], name: &str) -> Option<Limit> {
    let found = limits.iter().rev().find(|limit| limit.name.as_deref() == Some(name))?;
    Some(found.config.as_ref().map(Limit::of).unwrap_or_default())
}

macro_rules! limits {
    ($($field:ident = $name:literal;)*) => {
        /// Limits of kinds of requests, in the order in which they are written.
        #[derive(Serialize, Default)]
        struct Limits {
            $(#[serde(rename = $name, skip_serializing_if = "Option::is_none")] $field: Option<Limit>,)*
        }

        impl Limits {
            fn of(limits: &[RateLimit]) -> Self {
                Self { $($field: limit(limits, $name),)* }
            }
        }
    };
}

limits! {
    route = "routeRateLimit";
    subnets = "subnetsRateLimit";
    interface = "interfaceRateLimit";
    route_table = "routeTableRateLimit";
    load_balancer = "loadBalancerRateLimit";
    public_ip = "publicIPAddressRateLimit";
    security_group = "securityGroupRateLimit";
    virtual_machine = "virtualMachineRateLimit";
    storage_account = "storageAccountRateLimit";
    disk = "diskRateLimit";
    snapshot = "snapshotRateLimit";
    scale_set = "virtualMachineScaleSetRateLimit";
    sizes = "virtualMachineSizesRateLimit";
    availability_set = "availabilitySetRateLimit";
}

/// The backoff of the cloud provider. Zero is not written.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct BackOffs {
    #[serde(skip_serializing_if = "is_false")]
    cloud_provider_backoff: bool,
    #[serde(skip_serializing_if = "is_zero")]
    cloud_provider_backoff_retries: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cloud_provider_backoff_exponent: Option<Number>,
    #[serde(skip_serializing_if = "is_zero")]
    cloud_provider_backoff_duration: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cloud_provider_backoff_jitter: Option<Number>,
}

impl BackOffs {
    fn of(declared: &BackOff) -> Self {
        let double = |quantity: &Option<Quantity>| number(approximate(quantity.as_ref()), false);
        Self {
            cloud_provider_backoff: declared.cloud_provider_backoff.unwrap_or_default(),
            cloud_provider_backoff_retries: declared.cloud_provider_backoff_retries.unwrap_or_default(),
            cloud_provider_backoff_exponent: double(&declared.cloud_provider_backoff_exponent),
            cloud_provider_backoff_duration: declared.cloud_provider_backoff_duration.unwrap_or_default(),
            cloud_provider_backoff_jitter: double(&declared.cloud_provider_backoff_jitter),
        }
    }
}

/// A number as Go writes it: integers without a decimal point, numbers of single precision with as few digits as
/// distinguish them. Zero is not written.
fn number(value: f64, single: bool) -> Option<Number> {
    if value == 0.0 {
        return None;
    }
    let text = if single { (value as f32).to_string() } else { value.to_string() };
    text.parse().ok()
}

/// A quantity as Go approximates it: its digits, times a power of ten.
fn approximate(quantity: Option<&Quantity>) -> f64 {
    let text = match quantity.map(|quantity| &quantity.0) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return 0.0,
    };
    let (plain, thousandths) = match text.strip_suffix('m') {
        Some(plain) => (plain, -3),
        None => (text.as_str(), 0),
    };
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let digits: f64 = format!("{whole}{fraction}").parse().unwrap_or_default();
    let scale = thousandths - i32::try_from(fraction.len()).unwrap_or_default();
    if scale == 0 { digits } else { digits * 10f64.powi(scale) }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &i64) -> bool {
    *value == 0
}

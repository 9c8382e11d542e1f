//! The cloud provider's configuration on machines (azure.json), as Secrets hold it for bootstrap configurations.

use std::collections::BTreeMap;

use capz_api::machine::identity_kinds;
use capz_api::network::roles;
use capz_api::{BackOff, Quantity, RateLimit, RateLimitConfig};
use cloud_config::Secret;
use serde::{Serialize, Serializer};
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
    let cloud = spec.azure_environment.as_deref().filter(|cloud| !cloud.is_empty()).unwrap_or(PUBLIC_CLOUD);
    let mut members = Members::default();
    members.add("cloud", cloud);
    members.add("tenantId", credentials.tenant);
    members.add("subscriptionId", scope.subscription);
    if own_identity.is_none() {
        members.add_unless_zero("aadClientId", credentials.client_id);
        members.add_unless_zero("aadClientSecret", secret);
    }
    members.add("resourceGroup", scope.group_name());
    members.add("securityGroupName", group.unwrap_or_default());
    members.add("securityGroupResourceGroup", scope.network_group_name());
    members.add("location", scope.location());
    members.add_unless_zero("extendedLocationType", edge.and_then(|edge| edge.kind.as_deref()));
    members.add_unless_zero("extendedLocationName", edge.and_then(|edge| edge.name.as_deref()));
    members.add("vmType", SCALE_SETS);
    members.add("vnetName", scope.network_name());
    members.add("vnetResourceGroup", scope.network_group_name());
    members.add("subnetName", subnet.and_then(|subnet| subnet.name.as_deref()).unwrap_or_default());
    members.add("routeTableName", table.unwrap_or_default());
    members.add("loadBalancerSku", "Standard");
    members.add("loadBalancerName", balancer.unwrap_or_default());
    members.add("maximumLoadBalancerRuleCount", MAX_RULES);
    members.add("useManagedIdentityExtension", own_identity.is_some());
    members.add("useInstanceMetadata", true);
    members.add_unless_zero("enableVmssFlexNodes", machine_pools);
    members.add_unless_zero("userAssignedIdentityID", identity_client);
    members.0.extend(limit(limits, "defaultRateLimit").unwrap_or_default().0);
    let known = LIMITS.into_iter().filter_map(|name| Some((name, Member::Nested(limit(limits, name)?))));
    members.0.extend(known);
    if let Some(back_off) = overrides.and_then(|it| it.back_offs.as_ref()) {
        members.add_back_off(back_off);
    }
    Ok(Secret::new(text(&members)))
}

/// A configuration exactly as the established provider writes it, so that a Secret that it has written is not written
/// again.
fn text(config: &Members) -> String {
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

/// Members in the order in which they are written. They cannot be printed.
#[derive(Default)]
struct Members(Vec<(&'static str, Member)>);

#[derive(Serialize)]
#[serde(untagged)]
enum Member {
    Value(Value),
    Nested(Members),
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, member)| (name, member)))
    }
}

impl Members {
    fn add(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.push((name, Member::Value(value.into())));
    }

    /// Adds a member, unless it is absent, or has the value that Go does not write.
    fn add_unless_zero(&mut self, name: &'static str, value: impl Into<Value>) {
        let value = value.into();
        if !(value.is_null() || value == "" || value == false || value == 0) {
            self.add(name, value);
        }
    }

    fn add_back_off(&mut self, declared: &BackOff) {
        let double = |quantity: &Option<Quantity>| number(approximate(quantity.as_ref()), false);
        self.add_unless_zero("cloudProviderBackoff", declared.cloud_provider_backoff);
        self.add_unless_zero("cloudProviderBackoffRetries", declared.cloud_provider_backoff_retries);
        self.add_unless_zero(
            "cloudProviderBackoffExponent",
            double(&declared.cloud_provider_backoff_exponent),
        );
        self.add_unless_zero("cloudProviderBackoffDuration", declared.cloud_provider_backoff_duration);
        self.add_unless_zero("cloudProviderBackoffJitter", double(&declared.cloud_provider_backoff_jitter));
    }

    /// A limit for requests of one kind.
    fn of_limit(config: &RateLimitConfig) -> Self {
        let single =
            |quantity: &Option<Quantity>| number(f64::from(approximate(quantity.as_ref()) as f32), true);
        let mut limit = Self::default();
        limit.add_unless_zero("cloudProviderRateLimit", config.cloud_provider_rate_limit);
        limit.add_unless_zero("cloudProviderRateLimitQPS", single(&config.cloud_provider_rate_limit_qps));
        limit.add_unless_zero("cloudProviderRateLimitBucket", config.cloud_provider_rate_limit_bucket);
        let writes = single(&config.cloud_provider_rate_limit_qps_write);
        limit.add_unless_zero("cloudProviderRateLimitQPSWrite", writes);
        let bucket = config.cloud_provider_rate_limit_bucket_write;
        limit.add_unless_zero("cloudProviderRateLimitBucketWrite", bucket);
        limit
    }
}

/// The limit of this name; the last one, if there are several.
fn limit(limits: &[RateLimit], name: &str) -> Option<Members> {
    let limit = limits.iter().rev().find(|limit| limit.name.as_deref() == Some(name))?;
    Some(limit.config.as_ref().map(Members::of_limit).unwrap_or_default())
}

/// Limits of kinds of requests, in the order in which they are written.
const LIMITS: [&str; 14] = [
    "routeRateLimit",
    "subnetsRateLimit",
    "interfaceRateLimit",
    "routeTableRateLimit",
    "loadBalancerRateLimit",
    "publicIPAddressRateLimit",
    "securityGroupRateLimit",
    "virtualMachineRateLimit",
    "storageAccountRateLimit",
    "diskRateLimit",
    "snapshotRateLimit",
    "virtualMachineScaleSetRateLimit",
    "virtualMachineSizesRateLimit",
    "availabilitySetRateLimit",
];

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

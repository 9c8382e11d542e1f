//! Checks of clusters.

use std::collections::BTreeSet;

use azure_engine::document::{Object, at, name, text};
use azure_engine::provider::{AzureState, Proposal};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::Value;

use super::members::FIXED;
use crate::container_service::agent_pool::check_name;
use crate::container_service::kubernetes_version::{self, Version};
use crate::container_service::nat_gateway::{MOST_ADDRESSES, USUAL_IDLE};
use crate::container_service::words::{BAD_REQUEST, fixed, invalid, missing};

/// Refuses a change of a member that is fixed at creation.
pub(super) fn check_fixed(proposal: &Proposal<'_>, new: &Value) -> Result<()> {
    let changed = |path: &str| {
        let old = proposal.old_member(&format!("properties/{path}"));
        match (old, at(new, path)) {
            (Some(Value::String(old)), Some(Value::String(new))) => !old.eq_ignore_ascii_case(new),
            (Some(old), Some(new)) => old != new,
            (None, Some(new)) => *new != Value::Bool(false),
            (_, None) => false,
        }
    };
    match FIXED.into_iter().find(|path| proposal.old.is_some() && changed(path)) {
        Some(path) => Err(fixed(&path.replace('/', "."))),
        None => Ok(()),
    }
}

/// A cluster signs in with an identity or with an application.
pub(super) fn check_identity(body: &Object, properties: &Object) -> Result<()> {
    let application = properties.get("servicePrincipalProfile").and_then(|profile| text(profile, "clientId"));
    if body.contains_key("identity") || application.is_some_and(|id| id != "msi") {
        return Ok(());
    }
    Err(missing("servicePrincipalProfile"))
}

/// The DNS names of a cluster: a client uses exactly one of the ways to choose them.
pub(super) fn check_dns(properties: &Object) -> Result<()> {
    let given = |member: &str| properties.get(member).and_then(Value::as_str);
    let (member, value) = match (given("dnsPrefix"), given("fqdnSubdomain")) {
        (Some(prefix), None) => ("dnsPrefix", prefix),
        (None, Some(domain)) => ("fqdnSubdomain", domain),
        (None, None) => {
            return Err(missing("dnsPrefix"));
        }
        (Some(_), Some(_)) => {
            return Err(invalid("dnsPrefix", "dnsPrefix and fqdnSubdomain cannot be set at the same time."));
        }
    };
    let word = |c: char| c.is_ascii_alphanumeric();
    let fits = value.len() <= 54
        && value.starts_with(word)
        && value.ends_with(word)
        && value.chars().all(|c| word(c) || c == '-');
    match fits {
        true => Ok(()),
        false => Err(invalid(
            member,
            "It must contain between 1 and 54 alphanumeric characters or hyphens, and begin and end with an alphanumeric \
             character.",
        )),
    }
}

/// Ranges of pods and Services.
pub(super) fn check_network(properties: &Value) -> Result<()> {
    let profile = at(properties, "networkProfile").cloned().unwrap_or_default();
    let range = |member: &str| -> Result<Option<IpNet>> {
        let Some(given) = text(&profile, member) else { return Ok(None) };
        let wrong =
            |_| invalid(&format!("networkProfile.{member}"), format_args!("'{given}' is no address range."));
        given.parse().map(Some).map_err(wrong)
    };
    let (pods, services) = (range("podCidr")?, range("serviceCidr")?);
    if let (Some(pods), Some(services)) = (pods, services)
        && (pods.contains(&services) || services.contains(&pods))
    {
        let why = format!("The pod range {pods} and the service range {services} overlap.");
        return Err(invalid("networkProfile.serviceCidr", why));
    }
    let dns = text(&profile, "dnsServiceIP").unwrap_or_default();
    let inside = dns.parse::<std::net::IpAddr>().is_ok_and(|dns| {
        services.is_none_or(|services| services.contains(&dns) && services.network() != dns)
    });
    if !inside {
        let why =
            format!("dnsServiceIP '{dns}' must be inside of the service range, and not its first address.");
        return Err(invalid("networkProfile.dnsServiceIP", why));
    }
    for (path, least, most) in
        [("managedOutboundIPProfile/count", 1, MOST_ADDRESSES), ("idleTimeoutInMinutes", USUAL_IDLE, 120)]
    {
        let path = format!("natGatewayProfile/{path}");
        let given =
            at(&profile, &path).and_then(Value::as_i64).filter(|given| !(least..=most).contains(given));
        if let Some(given) = given {
            let why = format!("Value {given} must be in the range of {least} to {most}.");
            return Err(invalid(&format!("networkProfile.{}", path.replace('/', ".")), why));
        }
    }
    for (member, words) in [
        ("networkPlugin", &["azure", "kubenet", "none"] as &[&str]),
        ("networkPolicy", &["none", "azure", "calico", "cilium"]),
        ("networkPluginMode", &["overlay"]),
        (
            "outboundType",
            &[
                "loadBalancer",
                "userDefinedRouting",
                "managedNATGateway",
                "userAssignedNATGateway",
                "none",
                "block",
            ],
        ),
    ] {
        let given = text(&profile, member);
        if given.is_some_and(|given| !words.contains(&given)) {
            let why = format!("'{}' is not one of {}.", given.unwrap_or_default(), words.join(", "));
            return Err(invalid(&format!("networkProfile.{member}"), why));
        }
    }
    Ok(())
}

/// Local accounts can be disabled only for clusters with managed Entra ID.
pub(super) fn check_accounts(properties: &Value) -> Result<()> {
    let without = at(properties, "disableLocalAccounts") == Some(&Value::Bool(true));
    let managed = at(properties, "aadProfile/managed") == Some(&Value::Bool(true));
    BAD_REQUEST.says_when(
        without && !managed,
        "Local accounts can be disabled only for clusters that are enabled for managed AAD.",
    )
}

/// The pools of a new cluster: some, with different names, and one for the cluster's own pods.
pub(super) fn check_pools(profiles: &[Value]) -> Result<()> {
    if profiles.is_empty() {
        return Err(missing("agentPoolProfiles"));
    }
    let mut seen = BTreeSet::new();
    for profile in profiles {
        check_name(name(profile), text(profile, "osType").unwrap_or("Linux"))?;
        if !seen.insert(name(profile)) {
            let why = format!("Agent pool name '{}' is used more than once.", name(profile));
            return Err(invalid("agentPoolProfile.name", why));
        }
    }
    let system =
        |profile: &Value| text(profile, "mode").is_some_and(|mode| mode.eq_ignore_ascii_case("System"));
    match profiles.iter().any(system) {
        true => Ok(()),
        false => Err(Code::azures(400, "MustDefineAtLeastOneSystemPool")
            .says("Must define at least one system pool.")
            .at("agentPoolProfiles")),
    }
}

/// A pool that a cluster's write brings in.
pub(super) fn new_pool() -> Refusal {
    BAD_REQUEST
        .says(
            "A new agent pool was introduced. Adding agent pools to an existing cluster is not allowed through managed \
             cluster operations. For agent pool specific change, please use per agent pool operations: \
             https://aka.ms/agent-pool-rest-api",
        )
        .at("agentPoolProfiles")
}

/// With its cluster, a pool goes to the control plane's version or stays where it is.
pub(super) fn check_pool_version(old: &Value, new: &Object, control: Version) -> Result<()> {
    let Some(asked) = new.get("orchestratorVersion").and_then(Value::as_str) else { return Ok(()) };
    let current = text(old, "currentOrchestratorVersion").and_then(Version::stored);
    let wanted = kubernetes_version::resolve(asked, current)?;
    if Some(wanted) == current || wanted == control {
        return Ok(());
    }
    Err(Code::azures(400, "NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged").says(
        "Using managed cluster api, all Agent pools' OrchestratorVersion must be all specified or all unspecified. If all \
         specified, they must be stay unchanged or the same with control plane. For agent pool specific change, please use \
         per agent pool operations: https://aka.ms/agent-pool-rest-api",
    ))
}

/// The group of the nodes must not exist: the provider creates it.
pub(super) fn check_node_group(azure: &AzureState, id: &ResourceId, group: &str) -> Result<()> {
    let group = ResourceId::group(id.subscription_id(), group);
    match azure.store.get(&group) {
        Some(_) => Err(Code::ours(409, "NodeResourceGroupAlreadyExists").says(format_args!(
            "The node resource group '{}' of managed cluster '{}' exists already.",
            group.group_name().unwrap_or_default(),
            id.name()
        ))),
        None => Ok(()),
    }
}

//! Public IP addresses (Azure REST reference, "Public IP Addresses").

pub(crate) mod prefix;

use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::shared::codes::{INVALID_DOMAIN_NAME_LABEL, PUBLIC_IP_COUNT_LIMIT_REACHED};
use crate::network::shared::{
    addresses::free_public_address,
    checks::count_in_region,
    ip_tag::IP_TAG,
    protocol::protocol,
    sku::sku,
    type_names::PUBLIC_IP_ADDRESSES,
    zones::{check_zones, check_zones_unchanged},
};
use azure_engine::document::{self, at, fill, stored_reference, take_properties, text};
use azure_engine::operation::Completion;
use azure_engine::provider::{
    Acting, AzureState, EndedOperation, Presenting, Proposal, Protocol, Record, Shape, Writing,
};
use azure_engine::refusal::words::Wrong;
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::store::reference::is_of;
use azure_engine::types::member_table::Holds::{
    Anything, Derived, Guid, Names, Number, Object, Objects, Text, User, Uses, Word,
};
use azure_engine::types::member_table::Member;

pub(crate) struct PublicIpAddresses;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("example.json"),
    in_use: Some(|id, user, _| {
        Code::azures(400, "PublicIPAddressCannotBeDeleted").details(format_args!(
            "Public IP address {id} can not be deleted since it is still allocated to resource {user}. In order to delete \
             the public IP, disassociate/detach the Public IP address from the resource."
        ))
    }),
    ..protocol(PUBLIC_IP_ADDRESSES, "PublicIpAddress")
};

static MEMBERS: [Member; 16] = [
    Member::new("ddosSettings", Object(&DDOS_SETTINGS)),
    Member::new("deleteOption", Word(&["Detach", "Delete"], false)),
    Member::new("dnsSettings", Object(&DNS_SETTINGS)),
    Member::new("idleTimeoutInMinutes", Number(4, 30)).or(4),
    Member::new("ipAddress", Derived),
    Member::new("ipConfiguration", User("ipConfigurations")),
    Member::new("ipTags", Objects(&IP_TAG)).or_empty(),
    Member::new("linkedPublicIPAddress", Names("publicIPAddresses")),
    Member::new("migrationPhase", Anything),
    Member::new("natGateway", User("natGateways")),
    Member::new("publicIPAddressVersion", Word(&["IPv4", "IPv6"], true)).fixed_as(version_changed),
    Member::new("publicIPAllocationMethod", Word(&["Dynamic", "Static"], true)),
    Member::new("publicIPPrefix", Uses("publicIPPrefixes")),
    Member::new("resourceGuid", Guid),
    Member::new("servicePublicIPAddress", Names("publicIPAddresses")),
    Member::new("upgradePolicy", Anything),
];

static DDOS_SETTINGS: [Member; 2] = [
    Member::new("ddosProtectionPlan", Uses("ddosProtectionPlans")),
    Member::new("protectionMode", Word(&["VirtualNetworkInherited", "Enabled", "Disabled"], true)),
];

static DNS_SETTINGS: [Member; 4] = [
    Member::new("domainNameLabel", Text),
    Member::new("domainNameLabelScope", Text),
    Member::new("fqdn", Text),
    Member::new("reverseFqdn", Text),
];

fn version_changed(_: &Wrong<'_>) -> Refusal {
    Code::ours(400, "PublicIPAddressVersionCannotBeChanged")
        .details("The IP version of a public IP address cannot be changed.")
}

impl Shape for PublicIpAddresses {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn public_address(&self, record: &Record) -> Option<IpAddr> {
        text(&record.body, "properties/ipAddress")?.parse().ok()
    }
}

impl Writing for PublicIpAddresses {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let mut properties = take_properties(&mut proposal.body);
        let sku = sku(&mut proposal.body, &["Basic", "Standard", "StandardV2"])?;
        check_zones(azure, id, &mut proposal.body)?;
        let is_static = properties.get("publicIPAllocationMethod") == Some(&json!("Static"));
        if sku == "Basic" {
            check_basic(&proposal)?;
        } else if !is_static {
            return Err(Code::ours(400, "StandardSkuPublicIPMustBeStatic").details(format_args!(
                "{sku} sku public IP {id} must have its publicIPAllocationMethod set to Static."
            )));
        }
        if sku != "Basic" {
            fill(&mut properties, "ddosSettings", json!({ "protectionMode": "VirtualNetworkInherited" }));
        }
        dns_settings(azure, &proposal, &mut properties)?;
        check_immutable(azure, &proposal, &sku, &properties)?;
        if proposal.old.is_none() {
            check_count(azure, &proposal, &sku)?;
            if let Some(prefix) = properties.get("publicIPPrefix").and_then(|one| stored_reference(one, "id"))
            {
                check_prefix(azure, &proposal, &sku, &prefix, &properties)?;
            }
        }
        // An allocated address stays, whatever the client sends or leaves out.
        let keeps = is_static || azure.store.referrers(id).next().is_some();
        if let (true, Some(address)) = (keeps, proposal.old_member("properties/ipAddress")) {
            properties.insert("ipAddress".into(), address.clone());
        }
        Ok(proposal.stored(properties))
    }

    fn after_operation(&self, azure: &mut AzureState, id: &ResourceId, ended: EndedOperation<'_>) {
        if !ended.failed && *ended.completion == Completion::Write {
            give_address(azure, id);
        }
    }

    fn after_referrers_changed(&self, azure: &mut AzureState, id: &ResourceId) {
        give_address(azure, id);
    }
}

impl Presenting for PublicIpAddresses {}
impl Acting for PublicIpAddresses {}

/// Allocates an address: a static one when provisioning ends, a dynamic one while something uses it; and releases a
/// dynamic one.
fn give_address(azure: &mut AzureState, id: &ResourceId) {
    let Some(record) = azure.store.get(id) else { return };
    let is_static = text(&record.body, "properties/publicIPAllocationMethod") == Some("Static");
    let has_address = text(&record.body, "properties/ipAddress").is_some();
    let used = azure.store.referrers(id).next().is_some();
    let v6 = text(&record.body, "properties/publicIPAddressVersion") == Some("IPv6");
    let prefix = stored_reference(&record.body, "properties/publicIPPrefix/id")
        .and_then(|prefix| prefix::range(azure, &prefix));
    let address = match (is_static || used, has_address) {
        (true, false) => {
            let free = match prefix {
                Some(range) => prefix::free_address(azure, &range),
                None => free_public_address(azure, id, v6).ok(),
            };
            match free {
                Some(address) => Some(address),
                None => return,
            }
        }
        (false, true) => None,
        _ => return,
    };
    let Some(record) = azure.store.get_mut(id) else { return };
    if let Some(properties) = record.body.get_mut("properties").and_then(Value::as_object_mut) {
        match address {
            Some(address) => properties.insert("ipAddress".into(), address.to_string().into()),
            None => properties.remove("ipAddress"),
        };
    }
    azure.changed(id);
}

fn dns_settings(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    properties: &mut document::Object,
) -> Result<()> {
    let version = properties.get("publicIPAddressVersion").cloned();
    let Some(settings) = properties.get_mut("dnsSettings") else { return Ok(()) };
    let Some(label) = text(settings, "domainNameLabel").filter(|label| !label.is_empty()) else {
        return Ok(());
    };
    let label = domain_name_label(label)?;
    let location = proposal.body.get("location").and_then(Value::as_str).unwrap_or_default();
    let label = match text(settings, "domainNameLabelScope") {
        None => label,
        Some(scope) => format!("{label}.{}", scope_hash(azure, proposal.id, scope)?),
    };
    let full_name = domain_name(&label, location);
    // A name has an A and an AAAA record: one address of each version.
    let mut others = with_domain_name(azure, &full_name).filter(|other| other.id != *proposal.id);
    Code::azures(400, "DnsRecordInUse").details_when(
        others.any(|other| at(&other.body, "properties/publicIPAddressVersion") == version.as_ref()),
        format_args!("DNS record {full_name} is already used by another public IP."),
    )?;
    if let Some(settings) = settings.as_object_mut() {
        let name = label.split('.').next().unwrap_or_default();
        settings.insert("domainNameLabel".into(), name.into());
        settings.insert("fqdn".into(), full_name.as_str().into());
    }
    Ok(())
}

fn domain_name(label: &str, location: &str) -> String {
    format!("{label}.{location}.cloudapp.azure.com")
}

/// Names with a scope hold a hash of it, so that only its owner can reuse them.
fn scope_hash(azure: &AzureState, id: &ResourceId, scope: &str) -> Result<String> {
    let group = ResourceId::group(id.subscription_id(), id.group_name().unwrap_or_default());
    let subject = match scope.to_ascii_lowercase().as_str() {
        "tenantreuse" => azure.options.tenant.clone(),
        "subscriptionreuse" => id.subscription_id().to_lowercase(),
        "resourcegroupreuse" => group.to_lower(),
        "noreuse" => format!("{}#{}", id.to_lower(), azure.store.incarnation(id)),
        _ => {
            return Err(Refusal::bad_format(format!(
                "Error converting value \"{scope}\" to member 'domainNameLabelScope'."
            )));
        }
    };
    let guid = azure.seed.guid("domain name scope", &subject, 0);
    Ok(guid.chars().filter(|c| *c != '-').take(16).collect())
}

/// A domain name label in lower case; refused if it is invalid.
pub(crate) fn domain_name_label(label: &str) -> Result<String> {
    let label = label.to_ascii_lowercase();
    let fits = label.len() >= 3
        && label.len() <= 63
        && label.starts_with(|c: char| c.is_ascii_lowercase())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if fits {
        return Ok(label);
    }
    Err(INVALID_DOMAIN_NAME_LABEL.details(format_args!(
        "The domain name label {label} is invalid. It must conform to the following regular expression: \
             ^[a-z][a-z0-9-]{{1,61}}[a-z0-9]$."
    )))
}

/// Whether no public IP has a label in a region.
pub(crate) fn domain_name_is_free(azure: &AzureState, label: &str, location: &str) -> bool {
    with_domain_name(azure, &domain_name(label, location)).next().is_none()
}

fn with_domain_name<'a>(azure: &'a AzureState, name: &'a str) -> impl Iterator<Item = &'a Record> {
    let all = azure.store.of_type(PUBLIC_IP_ADDRESSES);
    all.filter(move |record| text(&record.body, "properties/dnsSettings/fqdn") == Some(name))
}

/// Checks the restrictions of sku Basic.
fn check_basic(proposal: &Proposal<'_>) -> Result<()> {
    if !proposal.body.contains_key("zones") {
        return Ok(());
    }
    Err(Code::ours(400, "PublicIPAddressPropertyNotSupportedForBasicSku")
        .details(format_args!("Basic sku public IP address {} cannot have availability zones.", proposal.id)))
}

fn check_count(azure: &AzureState, proposal: &Proposal<'_>, sku: &str) -> Result<()> {
    Code::azures(400, "IPv4BasicSkuPublicIpCountLimitReached").details_when(
        sku == "Basic" && azure.options.basic_sku_retired,
        "Cannot create more than 0 IPv4 Basic SKU public IP addresses for this subscription in this region.",
    )?;
    let most = azure.limit("network.publicIpAddressesPerRegion");
    if count_in_region(azure, PUBLIC_IP_ADDRESSES, proposal) < most {
        return Ok(());
    }
    Err(PUBLIC_IP_COUNT_LIMIT_REACHED.details(format_args!(
        "Cannot create more than {most} public IP addresses for this subscription in this region."
    )))
}

/// A public IP of a prefix has the prefix's sku and version, and the prefix has room for it.
fn check_prefix(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    sku: &str,
    prefix: &ResourceId,
    properties: &document::Object,
) -> Result<()> {
    let id = proposal.id;
    let Some(record) = azure.store.get(prefix) else { return Err(Refusal::invalid_reference(prefix, id)) };
    let version = properties.get("publicIPAddressVersion").and_then(Value::as_str);
    for (what, theirs, ours) in [
        ("sku", text(&record.body, "sku/name"), Some(sku)),
        ("IP version", text(&record.body, "properties/publicIPAddressVersion"), version),
    ] {
        Code::ours(400, "PublicIPAddressAndPrefixDoNotMatch").details_when(
            theirs != ours,
            format_args!(
                "The {what} of public IP address {id} and of its public IP prefix {prefix} do not match."
            ),
        )?;
    }
    let held = azure.store.referrers(prefix).filter(|user| is_of(&user.from, "/publicipaddresses/")).count();
    // The reference check reports a prefix that is not provisioned yet.
    let Some(range) = prefix::range(azure, prefix) else { return Ok(()) };
    let size = prefix::size(azure, prefix);
    if i64::try_from(held).is_ok_and(|held| held < size) {
        return Ok(());
    }
    Err(Code::azures(400, "PublicIpPrefixOutOfIpAddresses").details(format_args!(
        "Public IP prefix {prefix} ({range}) has no address left for public IP address {id}."
    )))
}

fn check_immutable(
    azure: &AzureState,
    proposal: &Proposal<'_>,
    sku: &str,
    properties: &document::Object,
) -> Result<()> {
    let Some(old) = proposal.old else { return Ok(()) };
    let id = proposal.id;
    let was = |path: &str| text(&old.body, path);
    let used = azure.store.referrers(id).next().is_some();
    let (old_sku, was_static) =
        (was("sku/name"), was("properties/publicIPAllocationMethod") == Some("Static"));
    // The one upgrade: an unused static address may become a standard one.
    let upgrade = old_sku == Some("Basic") && sku == "Standard" && !used && was_static;
    Code::ours(400, "PublicIPAddressSkuCannotBeChanged").details_when(
        old_sku != Some(sku) && !upgrade,
        format_args!("The sku of public IP address {id} cannot be changed."),
    )?;
    let dynamic = properties.get("publicIPAllocationMethod").is_some_and(|method| method == "Dynamic");
    Code::ours(400, "PublicIPAddressAllocationMethodCannotBeChangedWhileInUse").details_when(
        used && dynamic && was_static,
        format_args!("The allocation method of public IP address {id} cannot be changed."),
    )?;
    let prefix = properties.get("publicIPPrefix").and_then(|prefix| stored_reference(prefix, "id"));
    Code::ours(400, "PublicIPAddressPrefixCannotBeChanged").details_when(
        prefix != stored_reference(&old.body, "properties/publicIPPrefix/id"),
        format_args!("The public IP prefix of public IP address {id} cannot be changed."),
    )?;
    check_zones_unchanged(proposal)
}

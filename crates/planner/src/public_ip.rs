//! Public IPs: whose they are, and what one Service needs of them (4.6 to 4.11).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use azure_types::{
    IpTag, PublicIpAddress, PublicIpAddressProperties, PublicIpDnsSettings, ResourceId, Sku, SubResource,
    Tags, Word,
};
use k8s::ObjectKey;

use crate::cluster::{Cluster, Family, Flavor};
use crate::intent::{ServiceIntent, ServiceRemoval};
use crate::plan::{Action, Document, Notice, Refusal, Step};
use crate::{tags, zone};

/// Which Services use the address, separated by commas; first the key that is written.
const SERVICE_TAGS: [&str; 2] = ["k8s-azure-service", "service"];
/// Which cluster uses the address; first the key that is written.
const CLUSTER_TAGS: [&str; 2] = ["k8s-azure-cluster-name", "kubernetes-cluster-name"];
/// Which Service chose the DNS label; first the key that is written.
const DNS_TAGS: [&str; 2] = ["k8s-azure-dns-label-service", "kubernetes-dns-label-service"];
/// What Azure takes as a tag's value, in characters.
const MAX_TAG_VALUE: usize = 256;

/// What one Service needs of its public IPs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublicIpPlan {
    /// What to write before the load balancer; independent of each other.
    pub ensure: Vec<Step>,
    /// The public IP that each family's frontend uses. A family is missing where the Service has none, and
    /// where the address has to be given up first (see `again`).
    pub use_ids: BTreeMap<Family, ResourceId>,
    /// The addresses; `None` while Azure has not allocated one.
    pub addresses: BTreeMap<Family, Option<IpAddr>>,
    /// What to give up after the load balancer and the security group no longer use it. Letting go changes
    /// a public IP's version: for updates, plan again with what is observed then.
    pub release: Vec<Step>,
    /// A public IP has to be deleted and created again under its name: after `release`, plan again.
    pub again: bool,
    /// What to tell the Service's owner.
    pub notices: Vec<Notice>,
}

/// A public IP's relation to a Service (4.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ownership {
    /// The Service may use and release it.
    owned: bool,
    /// A cluster put its tags on it; otherwise somebody brought it along, and it is never tagged or deleted.
    managed: bool,
}

fn tag<'a>(tags: Option<&'a Tags>, names: [&str; 2]) -> &'a str {
    let find = |name: &str| {
        let mut entries = tags.into_iter().flatten();
        entries.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    };
    names.iter().find_map(|name| find(name)).unwrap_or_default()
}

fn services(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|key| !key.is_empty())
}

fn lists(value: &str, key: &ObjectKey) -> bool {
    let key = key.to_string();
    services(value).any(|listed| listed.eq_ignore_ascii_case(&key))
}

fn name_of(public_ip: &PublicIpAddress) -> &str {
    public_ip.name.as_deref().or_else(|| public_ip.id.as_ref().map(ResourceId::name)).unwrap_or_default()
}

pub(crate) fn address_of(public_ip: &PublicIpAddress) -> Option<IpAddr> {
    public_ip.properties.as_ref()?.ip_address.as_deref()?.parse().ok()
}

/// The family of a public IP; `None` where its document does not say.
fn version_of(public_ip: &PublicIpAddress) -> Option<Family> {
    let word = public_ip.properties.as_ref()?.public_ip_address_version.as_ref()?;
    Some(if word.is("IPv6") { Family::V6 } else { Family::V4 })
}

fn is_in_group(public_ip: &PublicIpAddress, group: &str) -> bool {
    let of = public_ip.id.as_ref().and_then(ResourceId::group_name);
    of.is_some_and(|name| name.eq_ignore_ascii_case(group))
}

/// The public IP that a Service asks for by name or by address, if it exists (4.1, 4.7).
pub(crate) fn find_pinned<'a>(
    owner: &ServiceRemoval,
    family: Family,
    observed: &'a [PublicIpAddress],
) -> Option<&'a PublicIpAddress> {
    let mut candidates = observed.iter().filter(|public_ip| is_in_group(public_ip, &owner.public_ip_group));
    if let Some(name) = owner.public_ip_names.get(&family) {
        return candidates.find(|public_ip| name_of(public_ip).eq_ignore_ascii_case(name));
    }
    let address = owner.requested_addresses.get(&family)?;
    candidates.find(|public_ip| address_of(public_ip) == Some(*address))
}

fn is_pinned(owner: &ServiceRemoval, public_ip: &PublicIpAddress) -> bool {
    let family = version_of(public_ip).unwrap_or(Family::V4);
    let address = address_of(public_ip);
    let by_address = address.is_some() && owner.requested_addresses.get(&family).copied() == address;
    let by_name =
        owner.public_ip_names.get(&family).is_some_and(|name| name_of(public_ip).eq_ignore_ascii_case(name));
    by_address || by_name
}

fn ownership(cluster: &Cluster, owner: &ServiceRemoval, public_ip: &PublicIpAddress) -> Ownership {
    let service_tag = tag(public_ip.tags.as_ref(), SERVICE_TAGS);
    let has_address = address_of(public_ip).is_some();
    if services(service_tag).next().is_none() {
        return Ownership { owned: has_address && is_pinned(owner, public_ip), managed: false };
    }
    if lists(service_tag, &owner.key) {
        let of_cluster = tag(public_ip.tags.as_ref(), CLUSTER_TAGS);
        let ours = of_cluster.is_empty() || of_cluster.eq_ignore_ascii_case(&cluster.name);
        return Ownership { owned: ours, managed: true };
    }
    Ownership { owned: has_address && is_pinned(owner, public_ip), managed: true }
}

/// The public IP that a family should use.
struct Target<'a> {
    id: ResourceId,
    existing: Option<&'a PublicIpAddress>,
}

fn target<'a>(
    cluster: &Cluster,
    intent: &ServiceIntent,
    family: Family,
    observed: &'a [PublicIpAddress],
) -> Result<Target<'a>, Refusal> {
    let owner = intent.removal();
    let group = &owner.public_ip_group;
    let named = |name: &str| {
        let existing = observed
            .iter()
            .find(|public_ip| is_in_group(public_ip, group) && name_of(public_ip).eq_ignore_ascii_case(name));
        let id = existing.and_then(|public_ip| public_ip.id.clone());
        Target { id: id.unwrap_or_else(|| cluster.public_ip_id(group, name)), existing }
    };
    if let Some(name) = owner.public_ip_names.get(&family) {
        let target = named(name);
        return match target.existing {
            Some(_) => Ok(target),
            None => Err(Refusal::PublicIpNotFound {
                name: name.clone(),
                group: group.clone(),
                service: owner.key.clone(),
            }),
        };
    }
    let prefix = intent.public_ip.prefixes.get(&family);
    if prefix.is_none()
        && let Some(address) = owner.requested_addresses.get(&family)
    {
        let Some(existing) = find_pinned(owner, family, observed) else {
            return Err(Refusal::AddressNotFound { address: *address, group: group.clone() });
        };
        let id = existing.id.clone().unwrap_or_else(|| cluster.public_ip_id(group, name_of(existing)));
        return Ok(Target { id, existing: Some(existing) });
    }
    Ok(named(&intent.naming().public_ip(&cluster.name, prefix.map(ResourceId::name), family)))
}

/// Plans the public IPs of one Service. `observed` holds all public IPs of the Service's group for public
/// IPs and, if it is another, of the cluster's group.
///
/// # Errors
///
/// Named or requested public IPs that do not exist or belong to others, and DNS labels that others claim.
pub fn plan(
    cluster: &Cluster,
    intent: &ServiceIntent,
    observed: &[PublicIpAddress],
) -> Result<PublicIpPlan, Refusal> {
    let mut plan = PublicIpPlan::default();
    let mut targets = BTreeSet::new();
    let families: &[Family] = if intent.flavor == Flavor::External { &intent.families } else { &[] };
    for family in families {
        let target = target(cluster, intent, *family, observed)?;
        if !targets.insert(target.id.clone()) {
            return Err(Refusal::OnePublicIpForBothFamilies { name: target.id.name().to_owned() });
        }
        let Some(existing) = target.existing else {
            plan.ensure.push(create(cluster, intent, *family, &target.id));
            plan.addresses.insert(*family, None);
            plan.use_ids.insert(*family, target.id);
            continue;
        };
        match update(cluster, intent, *family, existing)? {
            Outcome::Replace(reason) => {
                plan.again = true;
                plan.release.push(Step::delete(target.id, vec![reason], &intent.key));
                plan.addresses.insert(*family, None);
            }
            Outcome::Keep(step) => {
                plan.ensure.extend(step.map(|step| *step));
                plan.addresses.insert(*family, address_of(existing));
                plan.use_ids.insert(*family, target.id);
            }
        }
    }
    release(cluster, intent.removal(), observed, &targets, &mut plan.release);
    Ok(plan)
}

/// Plans the release of everything that a Service has; `observed` as for [`plan`].
pub fn plan_removal(
    cluster: &Cluster,
    removal: &ServiceRemoval,
    observed: &[PublicIpAddress],
) -> PublicIpPlan {
    let mut plan = PublicIpPlan::default();
    release(cluster, removal, observed, &BTreeSet::new(), &mut plan.release);
    plan
}

/// Gives up what the Service has and does not use: shared ones lose its name, its own are deleted.
fn release(
    cluster: &Cluster,
    owner: &ServiceRemoval,
    observed: &[PublicIpAddress],
    in_use: &BTreeSet<ResourceId>,
    steps: &mut Vec<Step>,
) {
    let mut public_ips: BTreeMap<&ResourceId, &PublicIpAddress> =
        observed.iter().filter_map(|public_ip| Some((public_ip.id.as_ref()?, public_ip))).collect();
    public_ips.retain(|id, _| !in_use.contains(*id));
    for (id, public_ip) in public_ips {
        let ours = ownership(cluster, owner, public_ip);
        let service_tag = tag(public_ip.tags.as_ref(), SERVICE_TAGS);
        if !ours.owned || !ours.managed || !lists(service_tag, &owner.key) {
            continue;
        }
        let key = owner.key.to_string();
        let others: Vec<&str> =
            services(service_tag).filter(|listed| !listed.eq_ignore_ascii_case(&key)).collect();
        if others.is_empty() {
            let reason = format!("{key} no longer uses it, and no other Service does");
            steps.push(Step::delete(id.clone(), vec![reason], &owner.key));
            continue;
        }
        let mut document = public_ip.clone();
        let all = document.tags.get_or_insert_default();
        all.retain(|name, value| {
            let dns = DNS_TAGS.iter().any(|tag| tag.eq_ignore_ascii_case(name));
            !(dns && value.trim().eq_ignore_ascii_case(&key))
        });
        set_tag(all, SERVICE_TAGS[0], others.join(","));
        steps.push(Step {
            action: Action::Update,
            target: id.clone(),
            if_match: public_ip.etag.clone(),
            document: Some(Document::PublicIp(Box::new(document))),
            changes: vec![format!("{key} no longer uses it; {} still does", others.join(", "))],
            on_behalf_of: vec![owner.key.clone()],
        });
    }
}

fn set_tag(tags: &mut Tags, key: &str, value: String) {
    match tags.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(key)) {
        Some((_, old)) => *old = value,
        None => {
            tags.insert(key.to_owned(), value);
        }
    }
}

/// The resource tags of a managed public IP (12.3).
fn desired_tags(cluster: &Cluster, intent: &ServiceIntent, service_tag: &str, dns_owner: &str) -> Tags {
    let mut desired = cluster.config.tags.clone();
    cloud_config::merge_tags(&mut desired, &intent.public_ip.tags);
    set_tag(&mut desired, CLUSTER_TAGS[0], cluster.name.clone());
    set_tag(&mut desired, SERVICE_TAGS[0], service_tag.to_owned());
    if !dns_owner.is_empty() {
        set_tag(&mut desired, DNS_TAGS[0], dns_owner.to_owned());
    }
    desired
}

fn create(cluster: &Cluster, intent: &ServiceIntent, family: Family, id: &ResourceId) -> Step {
    let wanted = &intent.public_ip;
    let label = wanted.dns_label.as_deref().filter(|label| !label.is_empty());
    let key = intent.key.to_string();
    let zones = zone::of_new_address(cluster);
    let place = match &zones {
        Some(zones) => format!(" in zones {}", zones.join(", ")),
        None => String::new(),
    };
    let mut changes = vec![format!("static {family} address{place}")];
    changes.extend(label.map(|label| format!("DNS label {label}")));
    let document = PublicIpAddress {
        name: Some(id.name().to_owned()),
        location: Some(cluster.config.location.clone()),
        extended_location: zone::edge(cluster),
        sku: Some(Sku { name: Some("Standard".to_owned()), ..Default::default() }),
        zones,
        tags: Some(desired_tags(cluster, intent, &key, if label.is_some() { &key } else { "" })),
        properties: Some(PublicIpAddressProperties {
            public_ip_allocation_method: Some(Word::from("Static")),
            public_ip_address_version: Some(Word::from(family.as_str())),
            public_ip_prefix: wanted.prefixes.get(&family).cloned().map(SubResource::to),
            ip_tags: wanted.ip_tags.clone().filter(|tags| !tags.is_empty()),
            dns_settings: label.map(|label| PublicIpDnsSettings {
                domain_name_label: Some(label.to_owned()),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    Step {
        action: Action::Create,
        target: id.clone(),
        if_match: None,
        document: Some(Document::PublicIp(Box::new(document))),
        changes,
        on_behalf_of: vec![intent.key.clone()],
    }
}

/// What becomes of the public IP that a family should use.
enum Outcome {
    /// It stays, with a write where something differs.
    Keep(Option<Box<Step>>),
    /// It has to be deleted and created again.
    Replace(String),
}

fn update(
    cluster: &Cluster,
    intent: &ServiceIntent,
    family: Family,
    existing: &PublicIpAddress,
) -> Result<Outcome, Refusal> {
    let key = intent.key.to_string();
    let name = name_of(existing);
    let wanted = &intent.public_ip;
    let ours = ownership(cluster, intent.removal(), existing);
    let of_cluster = tag(existing.tags.as_ref(), CLUSTER_TAGS);
    if ours.managed && !of_cluster.is_empty() && !of_cluster.eq_ignore_ascii_case(&cluster.name) {
        return Err(Refusal::PublicIpOfOtherCluster {
            name: name.to_owned(),
            cluster: of_cluster.to_owned(),
            tag: CLUSTER_TAGS[0],
        });
    }
    let service_tag = tag(existing.tags.as_ref(), SERVICE_TAGS);
    let sole = services(service_tag).all(|listed| listed.eq_ignore_ascii_case(&key));
    let replaceable = ours.owned && ours.managed && sole;

    let version = version_of(existing);
    if let Some(found) = version.filter(|version| *version != family) {
        if replaceable && !intent.removal().is_pinned() {
            return Ok(Outcome::Replace(format!("will be created again as {family}")));
        }
        return Err(Refusal::PublicIpOfOtherFamily {
            name: name.to_owned(),
            found,
            wanted: family,
            service: intent.key.clone(),
        });
    }
    let mutable = cluster.config.enable_ip_tag_mutation_for_existing_public_ip;
    let ip_tags = wanted.ip_tags.as_ref().filter(|wanted| ours.managed && !same_ip_tags(existing, wanted));
    if ip_tags.is_some() && !mutable && replaceable {
        return Ok(Outcome::Replace("will be created again with the requested IP tags".to_owned()));
    }

    let mut document = existing.clone();
    let mut changes = Vec::new();
    if ours.owned && ours.managed && !lists(service_tag, &intent.key) {
        changes.push(format!("{key} uses it too"));
    }
    let bound = if lists(service_tag, &intent.key) {
        service_tag.to_owned()
    } else if service_tag.trim().is_empty() {
        key.clone()
    } else {
        format!("{service_tag},{key}")
    };
    if bound.chars().count() > MAX_TAG_VALUE {
        return Err(Refusal::PublicIpSharedByTooMany {
            name: name.to_owned(),
            tag: SERVICE_TAGS[0],
            limit: MAX_TAG_VALUE,
        });
    }

    let sku = document.sku.get_or_insert_default();
    let properties = document.properties.get_or_insert_default();
    if !sku.name.as_deref().is_some_and(|name| name.to_ascii_lowercase().starts_with("standard")) {
        changes.push(format!("SKU {} → Standard", sku.name.as_deref().unwrap_or("none")));
        sku.name = Some("Standard".to_owned());
        set_word(&mut properties.public_ip_allocation_method, "Static", "allocation", &mut changes);
    }
    if version.is_none() {
        set_word(&mut properties.public_ip_address_version, family.as_str(), "version", &mut changes);
        set_word(&mut properties.public_ip_allocation_method, "Static", "allocation", &mut changes);
    }
    if family == Family::V6 {
        set_word(&mut properties.public_ip_allocation_method, "Static", "allocation", &mut changes);
    }
    if let Some(ip_tags) = ip_tags.filter(|_| mutable) {
        changes.push("IP tags changed".to_owned());
        properties.ip_tags = Some(ip_tags.clone());
    }

    let mut dns_owner = tag(existing.tags.as_ref(), DNS_TAGS).trim().to_owned();
    if let Some(label) = &wanted.dns_label {
        let claimed = !dns_owner.is_empty() && !dns_owner.eq_ignore_ascii_case(&key);
        let current = properties.dns_settings.as_ref().and_then(|dns| dns.domain_name_label.as_deref());
        if label.is_empty() {
            if !claimed {
                if let Some(current) = current {
                    changes.push(format!("DNS label {current} removed"));
                    properties.dns_settings = None;
                }
                if ours.managed && !dns_owner.is_empty() {
                    dns_owner.clear();
                    changes.push(format!("tag {} removed", DNS_TAGS[0]));
                    document
                        .tags
                        .get_or_insert_default()
                        .retain(|name, _| !DNS_TAGS.iter().any(|tag| tag.eq_ignore_ascii_case(name)));
                }
            }
        } else if claimed {
            return Err(Refusal::DnsLabelClaimed {
                label: label.clone(),
                public_ip: name.to_owned(),
                owner: dns_owner,
            });
        } else {
            if !current.is_some_and(|current| current.eq_ignore_ascii_case(label)) {
                changes.push(format!("DNS label {} → {label}", current.unwrap_or("none")));
                properties.dns_settings.get_or_insert_default().domain_name_label = Some(label.clone());
            }
            if ours.managed {
                dns_owner.clone_from(&key);
            }
        }
    }
    if ours.owned && ours.managed {
        let desired = desired_tags(cluster, intent, &bound, &dns_owner);
        changes.extend(tags::reconcile(&mut document.tags, &desired, &cluster.config.system_tags));
    }
    if changes.is_empty() {
        return Ok(Outcome::Keep(None));
    }
    let target =
        existing.id.clone().unwrap_or_else(|| cluster.public_ip_id(&intent.removal().public_ip_group, name));
    Ok(Outcome::Keep(Some(Box::new(Step {
        action: Action::Update,
        target,
        if_match: existing.etag.clone(),
        document: Some(Document::PublicIp(Box::new(document))),
        changes,
        on_behalf_of: vec![intent.key.clone()],
    }))))
}

fn set_word(member: &mut Option<Word>, value: &str, what: &str, changes: &mut Vec<String>) {
    if !member.as_ref().is_some_and(|word| word.is(value)) {
        let old = member.as_ref().map_or("none", Word::as_str);
        changes.push(format!("{what} {old} → {value}"));
        *member = Some(Word::from(value));
    }
}

fn same_ip_tags(public_ip: &PublicIpAddress, wanted: &[IpTag]) -> bool {
    let set = |tags: &[IpTag]| -> BTreeSet<(String, String)> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        tags.iter().map(|tag| (text(&tag.ip_tag_type), text(&tag.tag))).collect()
    };
    let current = public_ip.properties.as_ref().and_then(|p| p.ip_tags.as_deref()).unwrap_or_default();
    set(current) == set(wanted)
}

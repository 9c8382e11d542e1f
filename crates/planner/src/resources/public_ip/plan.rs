//! What one Service needs of its public IPs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use azure_types::{
    PublicIpAddress, PublicIpAddressProperties, PublicIpDnsSettings, ResourceId, SubResource, Word,
};

use super::change::{self, Outcome, desired_tags, is_basic, is_running, keep_address, update, without_label};
use super::claim::{Claim, claim, find_by_address};
use super::document::{is_in_group, name_of, version_of};
use super::ownership::{
    self, CLUSTER_TAGS, DNS_TAGS, SERVICE_TAGS, is_used_by, ownership, services, set_tag, tag,
};
use crate::model::{Cluster, Family, Flavor, zone};
use crate::outcome::{Action, Change, Document, Purpose, Refusal, Step};
use crate::service::{ServiceIntent, ServiceRemoval};

/// What one Service needs of its public IPs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublicIpPlan {
    /// The steps before everything else, because `ensure` could not be written otherwise: DNS labels are removed from
    /// public IPs that are to be given up, and public IPs that change their SKU get a static address. After that, plan
    /// again.
    pub before: Vec<Step>,
    /// The steps before the load balancer; independent of each other.
    pub ensure: Vec<Step>,
    /// The public IP of each family's frontend. A family is missing if the Service does not have it, or if the address
    /// has to be given up first (see `recreates`).
    pub use_ids: BTreeMap<Family, ResourceId>,
    /// The public IPs among them on which an operation runs: they may not be referred to before it ends.
    pub running: Vec<ResourceId>,
    /// The steps after the load balancer and the security group no longer use the public IPs. Disassociation changes a
    /// public IP's version: plan again with the state observed then.
    pub release: Vec<Step>,
    /// A public IP has to be deleted and created again under its name: after `release`, plan again.
    pub recreates: bool,
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
    observed: &'a [Arc<PublicIpAddress>],
) -> Result<Target<'a>, Refusal> {
    let owner = intent.removal();
    let group = &owner.public_ip_group;
    let named = |name: &str| {
        let existing = observed
            .iter()
            .map(|public_ip| &**public_ip)
            .find(|public_ip| is_in_group(public_ip, group) && name_of(public_ip).eq_ignore_ascii_case(name));
        let id = existing.and_then(|public_ip| public_ip.id.clone());
        Target { id: id.unwrap_or_else(|| cluster.public_ip_id(group, name)), existing }
    };
    let prefix = intent.public_ip.prefixes.get(&family);
    match claim(owner, family) {
        Claim::Named(name) => {
            let target = named(name);
            match target.existing {
                Some(_) => Ok(target),
                None => Err(Refusal::PublicIpNotFound {
                    name: name.to_owned(),
                    group: group.clone(),
                    service: owner.key.clone(),
                }),
            }
        }
        Claim::Address(address) if prefix.is_none() => match find_by_address(owner, address, observed) {
            Some(existing) => {
                let id =
                    existing.id.clone().unwrap_or_else(|| cluster.public_ip_id(group, name_of(existing)));
                Ok(Target { id, existing: Some(existing) })
            }
            None => Err(Refusal::AddressNotFound { address, group: group.clone() }),
        },
        Claim::Address(_) | Claim::Generated => {
            let prefix = prefix.map(ResourceId::name);
            let naming = intent.naming();
            let names = naming.of_family(naming.public_ip(&cluster.name, prefix, family), family);
            let [first, second] = names.map(|name| named(&name));
            // Which of its names a family has depends on the families that the Service had when it got its address.
            let version = |target: &Target<'_>| target.existing.and_then(version_of);
            let is_free = |target: &Target<'_>| version(target).is_none_or(|version| version == family);
            let is_own = |target: &Target<'_>| {
                let used = |existing| is_used_by(cluster, owner, existing);
                version(target) == Some(family) && target.existing.is_some_and(used)
            };
            let takes_second = !is_own(&first) && is_own(&second)
                || !is_free(&first) && second.existing.is_none() && is_needed(intent, family, &first);
            Ok(if takes_second { second } else { first })
        }
    }
}

/// Whether the Service still uses a public IP of another family that has the name which this family should get.
fn is_needed(intent: &ServiceIntent, family: Family, target: &Target<'_>) -> bool {
    let of = target.existing.and_then(version_of);
    of.is_some_and(|other| other != family && intent.families.contains(&other))
}

/// Plans the public IPs of one Service. `observed` holds all public IPs of the Service's group for public IPs and, if
/// that is another, of the cluster's group.
///
/// # Errors
///
/// Named or requested public IPs that do not exist or belong to others, and DNS labels that others claim.
pub fn plan(
    cluster: &Cluster,
    intent: &ServiceIntent,
    observed: &[Arc<PublicIpAddress>],
) -> Result<PublicIpPlan, Refusal> {
    let mut plan = PublicIpPlan::default();
    let mut targets = BTreeSet::new();
    let mut kept = Vec::new();
    let families: &[Family] = if intent.flavor == Flavor::External { &intent.families } else { &[] };
    for family in families {
        let target = target(cluster, intent, *family, observed)?;
        if !targets.insert(target.id.clone()) {
            return Err(Refusal::OnePublicIpForBothFamilies { name: target.id.name().to_owned() });
        }
        let Some(existing) = target.existing else {
            plan.ensure.push(create(cluster, intent, *family, &target.id));
            plan.use_ids.insert(*family, target.id);
            continue;
        };
        match update(cluster, intent, *family, existing)? {
            Outcome::Replace(reason) => {
                plan.recreates = true;
                let (version, changes) = (existing.etag.clone(), vec![Change::PublicIpReplaced(reason)]);
                let proof = ownership::proof(cluster, intent.removal(), existing);
                plan.release.push(Step::delete(target.id, version, changes, &intent.key, proof));
            }
            Outcome::Keep(step) => {
                if is_running(existing) {
                    plan.running.push(target.id.clone());
                }
                if is_basic(existing) && cluster.config.uses_standard_load_balancer() {
                    let proof = ownership::proof(cluster, intent.removal(), existing);
                    kept.extend(keep_address(&target.id, existing, std::slice::from_ref(&intent.key), proof));
                }
                plan.ensure.extend(step.map(|step| *step));
                plan.use_ids.insert(*family, target.id);
            }
        }
    }
    release(cluster, intent.removal(), observed, &targets, &mut plan.release);
    plan.before = moved_label(cluster, intent, observed, &plan);
    plan.before.extend(kept);
    Ok(plan)
}

fn label_of(public_ip: &PublicIpAddress) -> Option<&str> {
    public_ip.properties.as_ref()?.dns_settings.as_ref()?.domain_name_label.as_deref()
}

/// Removes the desired DNS label from public IPs of the Service that are to be given up, if another one gets it: Azure
/// gives a label to one public IP at a time, and a public IP that is given up stays until nothing uses it any more
/// (LB-451).
fn moved_label(
    cluster: &Cluster,
    intent: &ServiceIntent,
    observed: &[Arc<PublicIpAddress>],
    plan: &PublicIpPlan,
) -> Vec<Step> {
    let Some(label) = intent.public_ip.dns_label.as_deref().filter(|label| !label.is_empty()) else {
        return Vec::new();
    };
    let bears_it = |one: &PublicIpAddress| label_of(one).is_some_and(|own| own.eq_ignore_ascii_case(label));
    let bearers = || observed.iter().filter(|one| bears_it(one));
    let gets_it = |step: &Step| {
        matches!(&step.document, Some(Document::PublicIp(document)) if bears_it(document))
            && !bearers().any(|one| one.id.as_ref() == Some(&step.target))
    };
    if !plan.ensure.iter().any(gets_it) {
        return Vec::new();
    }
    let is_given_up =
        |one: &&Arc<PublicIpAddress>| plan.release.iter().any(|step| one.id.as_ref() == Some(&step.target));
    bearers().filter(is_given_up).filter_map(|one| without_label(cluster, intent, one)).collect()
}

/// Plans the release of everything that a Service has; `observed` as for [`plan`].
pub fn plan_removal(
    cluster: &Cluster,
    removal: &ServiceRemoval,
    observed: &[Arc<PublicIpAddress>],
) -> PublicIpPlan {
    let mut plan = PublicIpPlan::default();
    release(cluster, removal, observed, &BTreeSet::new(), &mut plan.release);
    plan
}

/// Gives up the public IPs that the Service has and does not use: shared ones lose its name, the ones created for it
/// are deleted.
fn release(
    cluster: &Cluster,
    owner: &ServiceRemoval,
    observed: &[Arc<PublicIpAddress>],
    in_use: &BTreeSet<ResourceId>,
    steps: &mut Vec<Step>,
) {
    let mut public_ips: BTreeMap<&ResourceId, &PublicIpAddress> =
        observed.iter().filter_map(|public_ip| Some((public_ip.id.as_ref()?, &**public_ip))).collect();
    public_ips.retain(|id, _| !in_use.contains(*id));
    for (id, public_ip) in public_ips {
        if !is_used_by(cluster, owner, public_ip) {
            continue;
        }
        let key = owner.key.to_string();
        let mut users = services(tag(public_ip.tags.as_ref(), SERVICE_TAGS));
        let is_last = users.all(|listed| listed.eq_ignore_ascii_case(&key));
        if is_last && ownership(cluster, owner, public_ip).made {
            let change = Change::PublicIpGivenUp { service: owner.key.clone(), others: Vec::new() };
            let (version, proof) = (public_ip.etag.clone(), ownership::proof(cluster, owner, public_ip));
            steps.push(Step::delete(id.clone(), version, vec![change], &owner.key, proof));
        } else {
            steps.push(leave(cluster, owner, id, public_ip));
        }
    }
}

/// Removes a Service from the tag that lists the users of a public IP. A public IP that the cluster did not create
/// stays when the last user leaves, without the cluster's tags.
pub(crate) fn leave(
    cluster: &Cluster,
    owner: &ServiceRemoval,
    id: &ResourceId,
    public_ip: &PublicIpAddress,
) -> Step {
    let key = owner.key.to_string();
    let users = services(tag(public_ip.tags.as_ref(), SERVICE_TAGS));
    let others: Vec<String> =
        users.filter(|listed| !listed.eq_ignore_ascii_case(&key)).map(str::to_owned).collect();
    let mut document = public_ip.clone();
    let all = document.tags.get_or_insert_default();
    all.retain(|name, value| {
        let is_one_of = |tags: [&str; 2]| tags.iter().any(|tag| tag.eq_ignore_ascii_case(name));
        let is_own_label = is_one_of(DNS_TAGS) && value.trim().eq_ignore_ascii_case(&key);
        let is_useless = others.is_empty() && (is_one_of(SERVICE_TAGS) || is_one_of(CLUSTER_TAGS));
        !is_own_label && !is_useless
    });
    if !others.is_empty() {
        set_tag(all, SERVICE_TAGS[0], others.join(","));
    }
    let service = owner.key.clone();
    let proof = ownership::proof(cluster, owner, public_ip).shared_with(others.iter().cloned());
    Step {
        action: Action::Update,
        target: id.clone(),
        if_match: public_ip.etag.clone(),
        document: Some(Document::PublicIp(Box::new(document))),
        changes: vec![match others.is_empty() {
            true => Change::PublicIpKept { service },
            false => Change::PublicIpGivenUp { service, others },
        }],
        purpose: Purpose::Change,
        on_behalf_of: vec![owner.key.clone()],
        ownership: vec![proof],
    }
}

fn create(cluster: &Cluster, intent: &ServiceIntent, family: Family, id: &ResourceId) -> Step {
    let wanted = &intent.public_ip;
    let label = wanted.dns_label.as_deref().filter(|label| !label.is_empty());
    let key = intent.key.to_string();
    let zones = zone::of_new_address(cluster);
    // Prefixes are of SKU Standard.
    let prefix = wanted.prefixes.get(&family).filter(|_| cluster.config.uses_standard_load_balancer());
    let mut changes = vec![Change::PublicIpCreated { family, zones: zones.clone().unwrap_or_default() }];
    changes.extend(label.map(|label| Change::DnsLabelAdded { label: label.to_owned() }));
    let document = PublicIpAddress {
        name: Some(id.name().to_owned()),
        location: Some(cluster.config.location.clone()),
        extended_location: zone::edge(cluster),
        sku: Some(cluster.sku()),
        zones,
        tags: Some(desired_tags(cluster, intent, &key, if label.is_some() { &key } else { "" })),
        properties: Some(PublicIpAddressProperties {
            public_ip_allocation_method: Some(Word::from(change::allocation(cluster, family))),
            public_ip_address_version: Some(Word::from(family.as_str())),
            public_ip_prefix: prefix.cloned().map(SubResource::to),
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
        purpose: Purpose::Change,
        on_behalf_of: vec![intent.key.clone()],
        ownership: Vec::new(),
    }
}

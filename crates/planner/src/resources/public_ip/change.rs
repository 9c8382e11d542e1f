//! What happens to an existing public IP: kept, changed, repaired, or deleted and created again.

use std::collections::BTreeSet;

use azure_types::{IpTag, PublicIpAddress, PublicIpAddressProperties, ResourceId, Tags, Word};
use k8s::ObjectKey;
use ownership::Proof;

use super::document::{name_of, version_of};
use super::ownership::{
    CLUSTER_TAGS, DNS_TAGS, Ownership, SERVICE_TAGS, is_named_after, is_of_other_cluster, lists, ownership,
    proof, services, set_tag, tag,
};
use crate::model::{Cluster, Family};
use crate::outcome::{
    Action, Change, Difference, Document, Purpose, Refusal, Replacement, Step, Unfinished, rewrite,
};
use crate::resources::tags;
use crate::service::ServiceIntent;

/// Azure's maximum length of a tag's value, in characters.
const MAX_TAG_VALUE: usize = 256;

/// What happens to the public IP that a family should use.
pub(super) enum Outcome {
    /// It is kept, with a write if something differs.
    Keep(Option<Box<Step>>),
    /// It has to be deleted and created again.
    Replace(Replacement),
}

pub(super) fn update(
    cluster: &Cluster,
    intent: &ServiceIntent,
    family: Family,
    existing: &PublicIpAddress,
) -> Result<Outcome, Refusal> {
    let name = name_of(existing);
    let ours = ownership(cluster, intent.removal(), existing);
    let of_cluster = tag(existing.tags.as_ref(), CLUSTER_TAGS);
    let service_tag = tag(existing.tags.as_ref(), SERVICE_TAGS);
    let is_claimed =
        services(service_tag).next().is_some() || is_named_after(cluster, intent.removal(), existing);
    if is_claimed && is_of_other_cluster(cluster, existing) {
        return Err(Refusal::PublicIpOfOtherCluster {
            name: name.to_owned(),
            cluster: of_cluster.to_owned(),
            tag: CLUSTER_TAGS[0],
        });
    }
    if let Some(reason) = must_be_replaced(cluster, intent, family, existing, ours)? {
        return Ok(Outcome::Replace(reason));
    }
    let mut change = Draft { document: existing.clone(), changes: Vec::new(), ours };
    if ours.managed && services(service_tag).next().is_some() && !lists(service_tag, &intent.key) {
        change.changes.push(Change::PublicIpShared { service: intent.key.clone() });
    }
    let users = with_user(name, service_tag, &intent.key)?;
    change.normalise(cluster, family, version_of(existing));
    if let Some(ip_tags) = differing_ip_tags(intent, existing, ours) {
        change.set_ip_tags(ip_tags, cluster);
    }
    let dns_owner = change.set_dns_label(intent, existing)?;
    if ours.managed {
        let desired = desired_tags(cluster, intent, &users, &dns_owner);
        change.changes.extend(tags::reconcile(
            &mut change.document.tags,
            &desired,
            &cluster.config.system_tags,
        ));
    }
    Ok(Outcome::Keep(change.into_step(cluster, intent, existing).map(Box::new)))
}

/// Removes the DNS label from a public IP that a Service gives up, unless another Service chose the label.
pub(super) fn without_label(
    cluster: &Cluster,
    intent: &ServiceIntent,
    existing: &PublicIpAddress,
) -> Option<Step> {
    let ours = ownership(cluster, intent.removal(), existing);
    let owner = tag(existing.tags.as_ref(), DNS_TAGS).trim().to_owned();
    let key = intent.key.to_string();
    let mut users = services(tag(existing.tags.as_ref(), SERVICE_TAGS));
    let is_sole = owner.is_empty() && users.all(|user| user.eq_ignore_ascii_case(&key));
    if !is_sole && !owner.eq_ignore_ascii_case(&key) {
        return None;
    }
    let mut change = Draft { document: existing.clone(), changes: Vec::new(), ours };
    change.remove_dns_label(owner);
    change.into_step(cluster, intent, existing)
}

/// Why a public IP cannot be changed as desired, if it may be deleted and created again.
fn must_be_replaced(
    cluster: &Cluster,
    intent: &ServiceIntent,
    family: Family,
    existing: &PublicIpAddress,
    ours: Ownership,
) -> Result<Option<Replacement>, Refusal> {
    let key = intent.key.to_string();
    let sole =
        services(tag(existing.tags.as_ref(), SERVICE_TAGS)).all(|user| user.eq_ignore_ascii_case(&key));
    let replaceable = ours.used && ours.made && sole;
    let version = version_of(existing);
    if let Some(found) = version.filter(|version| *version != family) {
        if replaceable && !intent.removal().is_pinned() {
            return Ok(Some(Replacement::Family(family)));
        }
        return Err(Refusal::PublicIpOfOtherFamily {
            name: name_of(existing).to_owned(),
            found,
            wanted: family,
            service: intent.key.clone(),
        });
    }
    let mutable = cluster.config.enable_ip_tag_mutation_for_existing_public_ip;
    let retagged = differing_ip_tags(intent, existing, ours).is_some() && !mutable && replaceable;
    Ok(retagged.then_some(Replacement::IpTags))
}

/// The desired IP tags, if they differ from those of a public IP that a cluster manages.
fn differing_ip_tags<'a>(
    intent: &'a ServiceIntent,
    existing: &PublicIpAddress,
    ours: Ownership,
) -> Option<&'a Vec<IpTag>> {
    intent.public_ip.ip_tags.as_ref().filter(|wanted| ours.managed && !same_ip_tags(existing, wanted))
}

/// The value of the tag that lists the users of a public IP, with this Service among them.
fn with_user(name: &str, service_tag: &str, key: &ObjectKey) -> Result<String, Refusal> {
    let users = if lists(service_tag, key) {
        service_tag.to_owned()
    } else if service_tag.trim().is_empty() {
        key.to_string()
    } else {
        format!("{service_tag},{key}")
    };
    if users.chars().count() > MAX_TAG_VALUE {
        return Err(Refusal::PublicIpSharedByTooMany {
            name: name.to_owned(),
            tag: SERVICE_TAGS[0],
            limit: MAX_TAG_VALUE,
        });
    }
    Ok(users)
}

/// A public IP that is being changed to what a Service wants.
struct Draft {
    document: PublicIpAddress,
    changes: Vec<Change>,
    ours: Ownership,
}

impl Draft {
    fn properties(&mut self) -> &mut PublicIpAddressProperties {
        self.document.properties.get_or_insert_default()
    }

    /// Load balancers require addresses of their SKU and of the family of their frontend. An address of SKU Standard
    /// keeps its SKU.
    fn normalise(&mut self, cluster: &Cluster, family: Family, version: Option<Family>) {
        let Self { document, changes, .. } = self;
        let basic = is_basic(document) && cluster.config.uses_standard_load_balancer();
        let sku = document.sku.get_or_insert_default();
        let properties = document.properties.get_or_insert_default();
        if basic {
            let from = sku.name.replace("Standard".to_owned()).unwrap_or_else(|| "none".to_owned());
            changes.push(Change::PublicIp(Difference { member: "SKU", from, to: "Standard".to_owned() }));
        }
        if version.is_none() {
            set_word(&mut properties.public_ip_address_version, family.as_str(), "version", changes);
        }
        if basic || version.is_none() || family == Family::V6 {
            let wanted = allocation(cluster, family);
            set_word(&mut properties.public_ip_allocation_method, wanted, "allocation", changes);
        }
    }

    fn set_ip_tags(&mut self, wanted: &[IpTag], cluster: &Cluster) {
        if cluster.config.enable_ip_tag_mutation_for_existing_public_ip {
            self.changes.push(Change::IpTagsChanged);
            self.properties().ip_tags = Some(wanted.to_vec());
        }
    }

    /// Sets or removes the DNS label; returns the Service that owns the label afterwards.
    fn set_dns_label(
        &mut self,
        intent: &ServiceIntent,
        existing: &PublicIpAddress,
    ) -> Result<String, Refusal> {
        let key = intent.key.to_string();
        let owner = tag(existing.tags.as_ref(), DNS_TAGS).trim().to_owned();
        let Some(label) = &intent.public_ip.dns_label else { return Ok(owner) };
        let claimed = !owner.is_empty() && !owner.eq_ignore_ascii_case(&key);
        if label.is_empty() {
            return Ok(if claimed { owner } else { self.remove_dns_label(owner) });
        }
        if claimed {
            return Err(Refusal::DnsLabelClaimed {
                label: label.clone(),
                public_ip: name_of(existing).to_owned(),
                owner,
            });
        }
        let current = self.dns_label();
        if !current.as_deref().is_some_and(|current| current.eq_ignore_ascii_case(label)) {
            self.changes.push(Change::DnsLabelChanged { from: current, to: label.clone() });
            self.properties().dns_settings.get_or_insert_default().domain_name_label = Some(label.clone());
        }
        Ok(if self.ours.managed { key } else { owner })
    }

    fn dns_label(&mut self) -> Option<String> {
        self.properties().dns_settings.as_ref()?.domain_name_label.clone()
    }

    fn remove_dns_label(&mut self, owner: String) -> String {
        if let Some(current) = self.dns_label() {
            self.changes.push(Change::DnsLabelRemoved { label: current });
            self.properties().dns_settings = None;
        }
        if !self.ours.managed || owner.is_empty() {
            return owner;
        }
        self.changes.push(Change::TagRemoved { name: DNS_TAGS[0].to_owned() });
        let tags = self.document.tags.get_or_insert_default();
        tags.retain(|name, _| !DNS_TAGS.iter().any(|tag| tag.eq_ignore_ascii_case(name)));
        String::new()
    }

    /// The write of the changes; without any, a write that repairs what Azure did not finish.
    fn into_step(
        self,
        cluster: &Cluster,
        intent: &ServiceIntent,
        existing: &PublicIpAddress,
    ) -> Option<Step> {
        let id = existing.id.clone();
        let group = &intent.removal().public_ip_group;
        let target = id.unwrap_or_else(|| cluster.public_ip_id(group, name_of(existing)));
        let on_behalf_of = vec![intent.key.clone()];
        let proof = proof(cluster, intent.removal(), existing);
        if self.changes.is_empty() {
            return is_failed(existing).then(|| Step { on_behalf_of, ..repair(&target, existing, proof) });
        }
        Some(Step {
            action: Action::Update,
            target,
            if_match: existing.etag.clone(),
            document: Some(Document::PublicIp(Box::new(self.document))),
            changes: self.changes,
            purpose: Purpose::Change,
            on_behalf_of,
            ownership: vec![proof],
        })
    }
}

fn provisioning_state(public_ip: &PublicIpAddress) -> Option<&Word> {
    public_ip.properties.as_ref()?.provisioning_state.as_ref()
}

pub(super) fn is_running(public_ip: &PublicIpAddress) -> bool {
    let ended = |state: &Word| ["Succeeded", "Failed", "Canceled"].iter().any(|word| state.is(word));
    provisioning_state(public_ip).is_some_and(|state| !ended(state))
}

fn is_failed(public_ip: &PublicIpAddress) -> bool {
    rewrite::is_failed(provisioning_state(public_ip))
}

/// The allocation of a new address: static, or dynamic for SKU Basic and IPv6 (4.9).
pub(super) fn allocation(cluster: &Cluster, family: Family) -> &'static str {
    if family == Family::V6 && cluster.config.uses_basic_load_balancer() { "Dynamic" } else { "Static" }
}

/// Whether a public IP is of SKU Basic, which standard load balancers do not accept.
pub(super) fn is_basic(public_ip: &PublicIpAddress) -> bool {
    let sku = public_ip.sku.as_ref().and_then(|sku| sku.name.as_deref());
    !sku.is_some_and(|name| name.to_ascii_lowercase().starts_with("standard"))
}

/// Makes an address static so that it is kept when no frontend uses it any more: only then can the public IP become a
/// standard one (SE-22). Absent if the address is static anyway.
pub fn keep_address(
    target: &ResourceId,
    existing: &PublicIpAddress,
    on_behalf_of: &[ObjectKey],
    proof: Proof,
) -> Option<Step> {
    let mut document = existing.clone();
    let method = &mut document.properties.get_or_insert_default().public_ip_allocation_method;
    let mut changes = Vec::new();
    if method.is_some() {
        set_word(method, "Static", "allocation", &mut changes);
    }
    (!changes.is_empty()).then(|| Step {
        action: Action::Update,
        target: target.clone(),
        if_match: existing.etag.clone(),
        document: Some(Document::PublicIp(Box::new(document))),
        changes,
        purpose: Purpose::Change,
        on_behalf_of: on_behalf_of.to_vec(),
        ownership: vec![proof],
    })
}

/// Writes a public IP unchanged, so that Azure completes an unfinished operation.
pub fn repair(target: &ResourceId, existing: &PublicIpAddress, proof: Proof) -> Step {
    Step {
        action: Action::Update,
        target: target.clone(),
        if_match: existing.etag.clone(),
        document: Some(Document::PublicIp(Box::new(existing.clone()))),
        changes: vec![Change::Repaired(Unfinished::Write)],
        purpose: Purpose::Repair,
        on_behalf_of: Vec::new(),
        ownership: vec![proof],
    }
}

fn set_word(member: &mut Option<Word>, value: &str, what: &'static str, changes: &mut Vec<Change>) {
    if !member.as_ref().is_some_and(|word| word.is(value)) {
        let from = member.as_ref().map_or("none", Word::as_str).to_owned();
        changes.push(Change::PublicIp(Difference { member: what, from, to: value.to_owned() }));
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

/// The resource tags of a managed public IP.
pub(super) fn desired_tags(
    cluster: &Cluster,
    intent: &ServiceIntent,
    service_tag: &str,
    dns_owner: &str,
) -> Tags {
    let mut desired = cluster.config.tags.clone();
    cloud_config::merge_tags(&mut desired, &intent.public_ip.tags);
    set_tag(&mut desired, CLUSTER_TAGS[0], cluster.name.clone());
    set_tag(&mut desired, SERVICE_TAGS[0], service_tag.to_owned());
    if !dns_owner.is_empty() {
        set_tag(&mut desired, DNS_TAGS[0], dns_owner.to_owned());
    }
    desired
}

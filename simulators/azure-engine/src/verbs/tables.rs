//! The application of a provider's tables to a document: names, members, versions.

use std::collections::HashSet;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::document::{Object, drop_nulls, into_object, items, merge, name, take_properties};
use crate::provider::{AzureState, Proposal, Record, ResourceType, Source};
use crate::refusal::{Refusal, Result};
use crate::store::reference::{Role, is_of};
use crate::types::member_table::{Holds, Member, Written, conceal, normalise, normalise_below};
use crate::types::version::remove;
use crate::verbs::resolve::Resolved;
use faults::glob::matches;

impl AzureState {
    /// Checks the new names in a write: of the resource, and of new children.
    pub fn check_names(&self, candidate: &Record, old: Option<&Record>) -> Result<()> {
        let resource_type = candidate.resource_type.name();
        if old.is_none() {
            self.check_name(resource_type, candidate.id.name())?;
        }
        for collection in candidate.resource_type.protocol().child_collections {
            let path = format!("properties/{}", collection.name);
            let before = old.map_or(&[][..], |old| items(&old.body, &path));
            let before: HashSet<String> =
                before.iter().map(|child| name(child).to_ascii_lowercase()).collect();
            let child_type = format!("{resource_type}/{}", collection.name);
            for child in items(&candidate.body, &path).iter().map(name) {
                if !before.contains(&child.to_ascii_lowercase()) {
                    self.check_name(&child_type, child)?;
                }
            }
        }
        Ok(())
    }

    fn check_name(&self, resource_type: &str, name: &str) -> Result<()> {
        let provider = self.provider_of(resource_type);
        let rules = provider.map_or(&[][..], |provider| provider.names);
        match rules.iter().find(|rule| matches(rule.of, resource_type)) {
            Some(rule) if !(rule.fits)(name) => Err((rule.refusal)(resource_type, name)),
            _ => Ok(()),
        }
    }
    /// The document that results from a write: the client's document, merged with the stored one if the provider does
    /// so, normalised by the tables, and checked by its type.
    ///
    /// # Errors
    /// A refusal of the tables or of [`crate::provider::Writing::before_write`].
    pub fn judge(&self, resource_type: &dyn ResourceType, mut proposal: Proposal<'_>) -> Result<Value> {
        let protocol = resource_type.protocol();
        if protocol.puts_merge {
            proposal.given = proposal.body.get("properties").cloned().unwrap_or_default();
            proposal.body = merged(&mut proposal);
        }
        if proposal.body.get("properties").is_some_and(|properties| !properties.is_object()) {
            return Err(Refusal::bad_format(
                "Could not convert 'properties' to an object. Path 'properties'.",
            ));
        }
        self.apply_members(resource_type, &mut proposal)?;
        let mut stored = resource_type.before_write(self, proposal)?;
        if let (false, Some(Value::Object(properties))) = (self.outside.listens, stored.get_mut("properties"))
        {
            conceal(resource_type.protocol().members, properties);
        }
        Ok(stored)
    }

    /// Normalises a document by the type's own tables.
    fn apply_members(&self, resource_type: &dyn ResourceType, proposal: &mut Proposal<'_>) -> Result<()> {
        let (members, envelope) = (resource_type.protocol().members, resource_type.protocol().envelope);
        let written = |old| Written {
            id: proposal.id,
            protocol: resource_type.protocol(),
            old,
            used: self.store.referrers(proposal.id).next().is_some(),
        };
        let old = proposal.old.map(|old| &old.body);
        if !envelope.is_empty() {
            normalise_below(envelope, &written(old), "", &mut proposal.body)?;
        }
        if !members.is_empty() {
            let mut properties = take_properties(&mut proposal.body);
            let old = old.and_then(|old| old.get("properties"));
            normalise(members, &written(old), &mut properties)?;
            proposal.body.insert("properties".into(), Value::Object(properties));
        }
        Ok(())
    }

    /// Refuses to delete a referenced resource, if the type's protocol has a refusal for it.
    pub(crate) fn check_unused(&self, record: &Record) -> Result<()> {
        let Some(refusal) = record.resource_type.protocol().in_use else { return Ok(()) };
        let users = self.store.referrers(&record.id).filter(|referrer| referrer.role != Role::Names);
        let users: Vec<&ResourceId> = users.map(|referrer| &referrer.from).collect();
        let Some(first) = users.first() else { return Ok(()) };
        let all: Vec<&str> = users.iter().map(|user| user.as_str()).collect();
        Err(refusal(&record.id, first, &all.join(", ")))
    }

    /// Fills in the referrers of a document that its type's table shows.
    pub(crate) fn present_users(&self, table: &[Member], id: &ResourceId, properties: &mut Object) {
        for member in table {
            let (segment, start) = match member.holds {
                Holds::Users(segment) => (segment, "/"),
                Holds::User(segment) => (segment, ""),
                _ => continue,
            };
            let wanted = format!("{start}{}/", segment.to_ascii_lowercase());
            let users = self.store.referrers(id).map(|referrer| &referrer.from);
            let users = users.filter(|from| segment.is_empty() || is_of(from, &wanted));
            let mut users = users.map(|from| json!({ "id": from }));
            if start.is_empty() {
                if let Some(user) = users.next() {
                    properties.insert(member.name.into(), user);
                }
                continue;
            }
            let users: Vec<Value> = users.collect();
            if member.shown_empty || !users.is_empty() {
                properties.insert(member.name.into(), users.into());
            }
        }
    }

    /// Removes from an answer with one document the members that its version does not have.
    pub(crate) fn shape(&self, resolved: &Resolved, version: &str, answer: &mut Answer) {
        for member in self.newer_members(resolved.resource_type.name(), version) {
            if let Some(document) = answer.body.as_mut() {
                remove(document, member);
            }
            if member == "etag" {
                answer.etag = None;
            }
        }
    }

    /// Members that documents of a type only have in newer versions than this one.
    pub(crate) fn newer_members(&self, resource_type: &str, version: &str) -> Vec<&'static str> {
        let provider = self.provider_of(resource_type);
        let date = version.get(..10).unwrap_or(version);
        let since = provider.map_or(&[][..], |provider| provider.since).iter();
        since
            .filter(|since| date < since.version && matches(since.of, resource_type))
            .map(|since| since.member)
            .collect()
    }
}

/// The document that results from a write if PUTs merge. A PUT of an existing resource updates the given parts, tags
/// and identity as wholes; a PATCH has the whole document.
fn merged(proposal: &mut Proposal<'_>) -> Object {
    let body = std::mem::take(&mut proposal.body);
    let mut whole = match proposal.old {
        Some(old) if proposal.source != Source::Patch => old.body.clone(),
        _ => Value::Object(Object::new()),
    };
    if let Value::Object(whole) = &mut whole {
        for member in ["tags", "identity"] {
            if body.contains_key(member) || proposal.emptied.contains(&member) {
                whole.remove(member);
            }
        }
    }
    merge(&mut whole, Value::Object(body));
    drop_nulls(&mut whole);
    into_object(whole)
}

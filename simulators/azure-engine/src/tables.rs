//! What the tables of a provider say about a document: names, members, versions.

use std::collections::HashSet;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::answer::Answer;
use super::document::{Object, items, name, take_properties};
use super::error::Refusal;
use super::glob::matches;
use super::member_table::{self, Holds, Written};
use super::provider::{AzureState, Record, ResourceType};
use super::reference::is_of;
use super::resolve::Resolved;
use super::version::remove;

impl AzureState {
    /// Checks the names that a write brings in: of the resource, and of children that were not there.
    pub fn check_names(&self, candidate: &Record, old: Option<&Record>) -> Result<(), Refusal> {
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

    fn check_name(&self, resource_type: &str, name: &str) -> Result<(), Refusal> {
        let provider = self.provider_of(resource_type);
        let rules = provider.map_or(&[][..], |provider| provider.names);
        match rules.iter().find(|rule| matches(rule.of, resource_type)) {
            Some(rule) if !(rule.fits)(name) => Err((rule.refusal)(resource_type, name)),
            _ => Ok(()),
        }
    }
    /// Brings the members of a written document into the shapes that their provider declares.
    ///
    /// # Errors
    /// Refuses a value that cannot stand for what its member holds, naming member and value.
    pub(super) fn shape_members(&self, resource_type: &str, document: &mut Value) -> Result<(), Refusal> {
        let Some(provider) = self.provider_of(resource_type) else {
            return Ok(());
        };
        if document.get("properties").is_some_and(|properties| !properties.is_object()) {
            return Err(Refusal::bad_format(
                "Could not convert 'properties' to an object. Path 'properties'.",
            ));
        }
        for members in provider.members.iter().filter(|members| matches(members.of, resource_type)) {
            members.shape_document(document, provider.namespace)?;
        }
        Ok(())
    }
    /// Brings `properties` into the form that the type's own table says.
    ///
    /// # Errors
    /// What [`member_table::normalise`] refuses.
    pub(super) fn apply_members(
        &self,
        resource_type: &dyn ResourceType,
        id: &ResourceId,
        old: Option<&Record>,
        document: &mut Value,
    ) -> Result<(), Refusal> {
        let table = resource_type.members();
        let Some(document) = document.as_object_mut().filter(|_| !table.is_empty()) else { return Ok(()) };
        let mut properties = take_properties(document);
        let written = Written {
            id,
            protocol: resource_type.protocol(),
            old: old.and_then(|old| old.body.get("properties")),
            used: self.store.referrers(id).next().is_some(),
        };
        member_table::normalise(table, &written, &mut properties)?;
        document.insert("properties".into(), Value::Object(properties));
        Ok(())
    }

    /// Who points at a document, as its type's table says that it shows them.
    pub(super) fn present_users(&self, record: &Record, properties: &mut Object) {
        for member in record.resource_type.members() {
            let Holds::Users(segment) = member.holds else { continue };
            let wanted = format!("/{}/", segment.to_ascii_lowercase());
            let users = self.store.referrers(&record.id).map(|referrer| &referrer.from);
            let users = users.filter(|from| segment.is_empty() || is_of(from, &wanted));
            let users: Vec<Value> = users.map(|from| json!({ "id": from })).collect();
            if member.shown_empty || !users.is_empty() {
                properties.insert(member.name.into(), users.into());
            }
        }
    }

    /// Takes out of an answer with one document what its version does not have.
    pub(super) fn shape(&self, resolved: &Resolved, version: &str, answer: &mut Answer) {
        for member in self.newer_members(resolved.resource_type.name(), version) {
            if let Some(document) = answer.body.as_mut() {
                remove(document, member);
            }
            if member == "etag" {
                answer.etag = None;
            }
        }
    }

    /// What documents of a type have only in newer versions than this one.
    pub(super) fn newer_members(&self, resource_type: &str, version: &str) -> Vec<&'static str> {
        let provider = self.provider_of(resource_type);
        let date = version.get(..10).unwrap_or(version);
        let since = provider.map_or(&[][..], |provider| provider.since).iter();
        since
            .filter(|since| date < since.version && matches(since.of, resource_type))
            .map(|since| since.member)
            .collect()
    }
}

//! Checks before a write is read: its group, its conditions, its place.

use azure_types::ResourceId;
use serde_json::Value;

use crate::document::Object;
use crate::document::location::location_of;
use crate::provider::{AzureState, Placement, Protocol, Record, ResourceType};
use crate::refusal::{Code, Refusal, Result};
use crate::request::Conditions;
use crate::store::State;
use crate::types::protocol::GLOBAL;

const PRECONDITION_FAILED: Code = Code::azures(412, "PreconditionFailed");

impl AzureState {
    /// The group must exist and must not be being deleted.
    pub fn require_writable_group(&self, id: &ResourceId) -> Result<()> {
        self.require_group(id)?;
        let Some(group) = id.group_name() else { return Ok(()) };
        match self.store.get(&ResourceId::group(id.subscription_id(), group)) {
            Some(record) if record.state == State::Deleting => {
                Err(Code::azures(409, "ResourceGroupBeingDeleted").says(format_args!(
                    "The resource group '{group}' is in deprovisioning state and cannot perform this \
                 operation."
                )))
            }
            _ => Ok(()),
        }
    }

    /// The conditions of a request about a child of a document: whether the child is there, and the version of the
    /// whole.
    pub(crate) fn check_child_conditions(
        &self,
        child: &ResourceId,
        existed: bool,
        conditions: &Conditions,
    ) -> Result<()> {
        let absent = !existed && conditions.if_match.is_some();
        let present = existed && conditions.if_none_match.as_deref().map(str::trim) == Some("*");
        if absent || present {
            let state = if existed { "exists already" } else { "does not exist" };
            return Err(PRECONDITION_FAILED
                .says(format_args!("Resource {child} {state}, which the request's conditions exclude.")));
        }
        let holder = self.store.holder(child);
        let Some(holder) = holder else { return Ok(()) };
        let of_parent = Conditions { if_none_match: None, ..conditions.clone() };
        self.check_conditions(&holder.id, Some(holder), &of_parent)
    }

    /// A new resource must be of a type that clients create, and its parent must exist.
    pub(crate) fn check_creatable(
        &self,
        id: &ResourceId,
        resource_type: &'static dyn ResourceType,
    ) -> Result<()> {
        let protocol = resource_type.protocol();
        if let (true, Some(absent)) = (protocol.names_absent_parent, self.absent_top(id))
            && absent != *id
        {
            return Err(Refusal::parent_not_found("write", protocol.resource_type, &absent));
        }
        if !protocol.creatable {
            return Err(resource_type.absence_refusal(self, id).unwrap_or_else(|| self.not_found(id)));
        }
        match id.parent().filter(|parent| parent.namespace().is_some()) {
            Some(parent) if self.store.get(&parent).is_none() && self.document(&parent).is_none() => {
                Err(Refusal::parent_not_found("write", protocol.resource_type, &parent))
            }
            _ => Ok(()),
        }
    }

    /// Checks `If-Match` and `If-None-Match` of a request about a resource.
    pub(crate) fn check_conditions(
        &self,
        id: &ResourceId,
        old: Option<&Record>,
        conditions: &Conditions,
    ) -> Result<()> {
        if let (Some("*"), Some(old)) = (conditions.if_none_match.as_deref().map(str::trim), old) {
            return Err(PRECONDITION_FAILED.says(format_args!(
                "Resource {} exists already, and the request asks to create it.",
                old.id
            )));
        }
        let Some(given) = conditions.if_match.as_deref().map(str::trim) else { return Ok(()) };
        let old =
            old.ok_or_else(|| PRECONDITION_FAILED.says(format_args!("Resource {id} does not exist.")))?;
        let current = self.etag(old);
        if given == "*" {
            return Ok(());
        }
        let protocol = old.resource_type.protocol();
        let shown = protocol.etag.read(given);
        if shown == current { Ok(()) } else { Err((protocol.words.mismatch)(&shown, &current, &old.id)) }
    }

    /// Checks the envelope of a tracked resource, and sets its location.
    pub(crate) fn check_envelope(
        &self,
        id: &ResourceId,
        protocol: &Protocol,
        old: Option<&Record>,
        body: &mut Object,
    ) -> Result<()> {
        let location = location_of(body)?;
        match protocol.placement {
            _ if old.is_some() => {}
            Placement::Regional => {
                self.manager.check_region(self, &location, protocol.resource_type)?;
            }
            Placement::Global if location == GLOBAL => {}
            Placement::Global => {
                return Err(Refusal::no_such_location(&location, protocol.resource_type, GLOBAL));
            }
        }
        if let Some(current) = old.and_then(|old| old.body.get("location")).and_then(Value::as_str)
            && current != location
        {
            return Err(Code::azures(409, "InvalidResourceLocation").says(format_args!(
                "The resource '{}' already exists in location '{current}' in resource group '{}'. A \
                 resource with the same name cannot be created in location '{location}'. Please select a new \
                 resource name.",
                id.name(),
                id.group_name().unwrap_or_default()
            )));
        }
        body.insert("location".into(), location.into());
        for member in self.providers.iter().flat_map(|provider| provider.envelope) {
            if body.contains_key(member.name) {
                (member.check)(self, id, body)?;
            }
        }
        self.check_tags(body)
    }
}

//! Writes: PUT, PATCH and POST actions.

use azure_types::ResourceId;
use serde_json::Value;

use super::answer::{Answer, Note, OperationLinks};
use super::code::Code;
use super::document::{Object, drop_nulls, into_object, items, merge, name};
use super::envelope;
use super::error::Refusal;
use super::journal::differences;
use super::latency::CREATE;
use super::location::location_of;
use super::operation::{Completion, Status};
use super::protocol::GLOBAL;
use super::request::Conditions;
use super::store::State;
use super::system_data;
use crate::actors::Write;
use crate::execution::{Execution, Started};
use crate::provider::{
    AzureState, ChildCollection, Concurrency, Expand, Placement, Proposal, Protocol, Record, ResourceType,
    Source,
};
use crate::resolve::Resolved;

const ONLY_TAGS_SUPPORTED_FOR_PATCH: Code = Code::azures(400, "OnlyTagsSupportedForPatch");
const PRECONDITION_FAILED: Code = Code::azures(412, "PreconditionFailed");
const INVALID_RESOURCE_TYPE: Code = Code::azures(404, "InvalidResourceType");
const RESOURCE_GROUP_BEING_DELETED: Code = Code::azures(409, "ResourceGroupBeingDeleted");
const INVALID_RESOURCE_LOCATION: Code = Code::azures(409, "InvalidResourceLocation");

impl AzureState {
    /// PUT of a resource or of a child document.
    pub fn put(
        &mut self,
        resolved: &Resolved,
        body: Value,
        conditions: &Conditions,
        execution: &Execution,
    ) -> Result<Answer, Refusal> {
        if resolved.list {
            return Err(Refusal::method_not_allowed("PUT"));
        }
        self.require_writable_group(&resolved.id)?;
        let Value::Object(mut body) = body else {
            return Err(Refusal::bad_content("the body must be a JSON object"));
        };
        body.retain(|_, value| !value.is_null());
        body.values_mut().for_each(drop_nulls);
        let body = envelope::known(body)?;
        if resolved.below.is_empty() {
            return self.write(
                "PUT",
                resolved.resource_type,
                &resolved.id,
                body,
                conditions,
                execution,
                None,
            );
        }
        let Some((collection, Some(child))) = Self::child_target(resolved.resource_type, &resolved.below)
        else {
            return self.put_view(resolved, &Value::Object(body));
        };
        if !collection.writable {
            return Err(Refusal::method_not_allowed("PUT"));
        }
        let (parent, existed) = {
            let record = self
                .store
                .get(&resolved.id)
                .ok_or_else(|| Refusal::parent_not_found("write", &resolved.full_type, &resolved.id))?;
            let mut parent = record.body.as_object().cloned().unwrap_or_default();
            let existed = put_child(&mut parent, collection, child, body);
            (parent, existed)
        };
        self.write(
            "PUT",
            resolved.resource_type,
            &resolved.id,
            parent,
            conditions,
            execution,
            Some((collection, child, existed)),
        )
    }

    /// PUT of something below a resource that is kept elsewhere.
    fn put_view(&mut self, resolved: &Resolved, body: &Value) -> Result<Answer, Refusal> {
        let id = self.require(resolved)?.id.clone();
        let below: Vec<&str> = resolved.below.iter().map(String::as_str).collect();
        let written = resolved.resource_type.write_view(self, &id, &below, Some(body));
        match written.ok_or_else(|| self.not_writable(resolved, "PUT"))?? {
            true => self.revision += 1,
            false => {
                let child = below
                    .chunks(2)
                    .fold(id, |id, pair| id.child(pair.first().unwrap_or(&""), pair.get(1).unwrap_or(&"")));
                return Err(Refusal::child_not_found(&child));
            }
        }
        let record = self.require(resolved)?;
        let shown = record.resource_type.view(self, record, &below).unwrap_or(Ok(Value::Null))?;
        Ok(Answer {
            note: Note { changes: vec![resolved.below.join("/")], ..Note::default() },
            ..Answer::ok(shown)
        })
    }

    /// What can be read below a resource has other methods; what cannot is unknown.
    pub(super) fn not_writable(&self, resolved: &Resolved, method: &str) -> Refusal {
        let below: Vec<&str> = resolved.below.iter().map(String::as_str).collect();
        let record = self.store.get(&resolved.id);
        match record.and_then(|record| record.resource_type.view(self, record, &below)) {
            Some(_) => Refusal::method_not_allowed(method),
            None => Refusal::unknown_below(&resolved.full_type),
        }
    }

    /// PATCH of a resource: tags as a whole, the rest merged.
    pub fn patch(
        &mut self,
        resolved: &Resolved,
        body: Value,
        conditions: &Conditions,
        execution: &Execution,
    ) -> Result<Answer, Refusal> {
        if resolved.list || !resolved.below.is_empty() {
            return Err(Refusal::method_not_allowed("PATCH"));
        }
        self.require_writable_group(&resolved.id)?;
        let Value::Object(patch) = body else {
            return Err(Refusal::bad_content("the body must be a JSON object"));
        };
        let mut patch = envelope::known(patch)?;
        let record = self.require(resolved)?;
        let protocol = resolved.resource_type.protocol();
        if let (true, Some(member)) = (protocol.only_tags, patch.keys().find(|member| *member != "tags")) {
            return Err(ONLY_TAGS_SUPPORTED_FOR_PATCH.details(format_args!(
                "PATCH request content includes {member} property. Only tags property is currently supported."
            )));
        }
        let mut merged = record.body.clone();
        if let (Some(tags), Some(document)) = (patch.remove("tags"), merged.as_object_mut()) {
            document.insert("tags".into(), tags);
        }
        merge(&mut merged, Value::Object(patch));
        drop_nulls(&mut merged);
        let merged = into_object(merged);
        self.write("PATCH", resolved.resource_type, &resolved.id, merged, conditions, execution, None)
    }

    #[allow(clippy::too_many_arguments, reason = "one write has that many aspects, and two callers")]
    pub(super) fn write(
        &mut self,
        method: &str,
        resource_type: &'static dyn ResourceType,
        id: &ResourceId,
        mut body: Object,
        conditions: &Conditions,
        execution: &Execution,
        child: Option<(&'static ChildCollection, &str, bool)>,
    ) -> Result<Answer, Refusal> {
        let protocol = resource_type.protocol();
        let written = Write {
            id,
            resource_type: protocol.resource_type,
            tagged: protocol.tracked,
            by: execution.by.as_deref(),
        };
        let time = self.now().to_string();
        let old = self.store.get(id);
        match child {
            None => self.check_conditions(id, old, conditions)?,
            Some((collection, name, existed)) => {
                let absent = !existed && conditions.if_match.is_some();
                let present = existed && conditions.if_none_match.as_deref().map(str::trim) == Some("*");
                if absent || present {
                    let child = id.child(collection.name, name);
                    let state = if existed { "exists already" } else { "does not exist" };
                    let text = format!("Resource {child} {state}, which the request's conditions exclude.");
                    return Err(PRECONDITION_FAILED.says(text));
                }
                let of_parent = Conditions { if_none_match: None, ..conditions.clone() };
                self.check_conditions(id, old, &of_parent)?;
            }
        }
        if old.is_none() {
            if let (true, Some(absent)) = (protocol.names_absent_parent, self.absent_top(id))
                && absent != *id
            {
                return Err(Refusal::parent_not_found("write", protocol.resource_type, &absent));
            }
            if !protocol.creatable {
                return Err(resource_type.absent(self, id).unwrap_or_else(|| self.not_found(id)));
            }
            if let Some(parent) = id.parent().filter(|parent| parent.namespace().is_some())
                && self.store.get(&parent).is_none()
                && self.document(&parent).is_none()
            {
                return Err(Refusal::parent_not_found("write", protocol.resource_type, &parent));
            }
        }
        let running = old.and_then(|old| self.operations.running(old.operation.as_ref()));
        let operation_name = resource_type.operation_name("Put");
        if let Some(old) = old {
            self.check_idle(old)?;
        }
        let superseded = running.map(|running| running.key.clone());
        let given = ["tags", "identity"].map(|member| body.contains_key(member).then_some(member));
        if protocol.tracked {
            self.check_envelope(id, protocol, old, &mut body)?;
        }
        let emptied = given.into_iter().flatten().filter(|member| !body.contains_key(*member)).collect();
        let sent = protocol.words_writes.then(|| body.clone());
        let source = if method == "PATCH" { Source::Patch } else { Source::Put };
        self.actors.proposed(&written, &time, &mut body)?;
        let proposal = Proposal { emptied, ..Proposal::new(id, old, body, source) };
        let stored = self.judge(resource_type, proposal).map_err(protocol.words.unreadable)?;
        let before = old.map(|old| old.body.clone());
        let changed = before.as_ref() != Some(&stored);
        let repairs = old.is_some_and(|old| old.state != State::Succeeded);
        let candidate = Record {
            // The spelling of the last write is kept.
            id: id.clone(),
            resource_type,
            body: stored,
            hidden: old.map(|old| old.hidden.clone()).unwrap_or_default(),
            version: old.map_or(1, |old| old.version + u64::from(changed || repairs)),
            state: if old.is_none() { protocol.first_state } else { State::Updating },
            operation: old.and_then(|old| old.operation.clone()),
            created: old.map_or(jiff::Timestamp::UNIX_EPOCH, |old| old.created),
            incarnation: 0,
        };
        let mut candidate = candidate;
        if protocol.system_data {
            let written = system_data::written(candidate.hidden.get(system_data::MEMBER), execution, &time);
            candidate.hidden.insert(system_data::MEMBER.into(), written);
        }
        self.check_names(&candidate, old)?;
        self.check_limits(&candidate, old.is_some())?;
        self.check_references(&candidate)?;
        let synchronous = protocol.synchronous
            || (old.is_some() && protocol.synchronous_update)
            || (protocol.only_tags && method == "PATCH");
        // What is over before it is answered cannot fail later.
        if let (true, Some(Status::Failed(refusal) | Status::Canceled(refusal))) =
            (synchronous, &execution.ending)
        {
            return Err(refusal.clone());
        }
        let existed = old.is_some();
        let unchanged = existed && !changed && !repairs;

        if !existed {
            candidate.created = self.now();
        }
        let note_changes = differences(before.as_ref(), Some(&candidate.body));
        self.insert(candidate);
        resource_type.after_write(self, id, before.as_ref());
        let instant = self.instant();
        self.actors.accepted(&written, instant);
        let mut execution = execution.clone();
        // A write that changes nothing is over at once, where the provider looks.
        if unchanged && protocol.unchanged_at_once && execution.ending.is_none() && !execution.stall {
            execution.at_once = true;
        }
        execution.at_once |= synchronous;
        if protocol.immediate && execution.latency.is_none() && !execution.stall && execution.ending.is_none()
        {
            execution.at_once |= self.latency.of(method, protocol.resource_type, None, 0).is_zero();
        }
        let version = self.store.get(id).map(|record| record.version);
        let verb = if method == "PUT" && !existed { CREATE } else { method };
        let started =
            self.start(id, resource_type, verb, operation_name.clone(), Completion::Write, &execution);
        let word = self.store.get(id).and_then(|record| self.state_of_write(record, before.as_ref()));
        if let Some(word) = word {
            self.show_state(id, word);
        }
        if let Some(superseded) = superseded {
            self.supersede(&superseded, &format!("{operation_name} ({})", started.key));
        }
        if let (true, Some(version), Some(record)) = (unchanged, version, self.store.get_mut(id)) {
            record.version = version;
        }
        let record = self.store.get(id).ok_or_else(|| self.not_found(id))?;
        let (status, shown) = match child {
            None => {
                let status = match (method, existed) {
                    ("PATCH", _) => protocol.patch_status,
                    (_, true) => protocol.update_status,
                    (_, false) => protocol.create_status,
                };
                let mut shown = into_object(self.present(record, Expand::default()));
                if self.operations.running(record.operation.as_ref()).is_some() {
                    resource_type.accepted(self, record, &mut shown);
                }
                if let Some(sent) = &sent {
                    resource_type.written(self, record, sent, &mut shown);
                }
                (status, Value::Object(shown))
            }
            Some((collection, child, existed)) => {
                let shown = items(&record.body, &format!("properties/{}", collection.name))
                    .iter()
                    .find(|item| name(item).eq_ignore_ascii_case(child))
                    .map(|item| self.present_child(record, collection, item))
                    .unwrap_or_default();
                (if existed { 200 } else { 201 }, shown)
            }
        };
        let bare = protocol.bare_acceptance && !synchronous;
        let location = (protocol.located && !existed)
            .then(|| super::document::text(&shown, "id").unwrap_or_default().to_owned());
        Ok(Answer {
            status,
            location,
            body: (!bare).then(|| if protocol.shows_written { shown } else { Object::new().into() }),
            etag: (protocol.etag_on_writes && protocol.etagged).then(|| self.etag(record)),
            operation: (!synchronous)
                .then(|| self.links(id, resource_type, &started, protocol.polling.location_on_writes)),
            note: Note { changes: note_changes, operation_ms: milliseconds(&started) },
            ..Answer::default()
        })
    }

    /// POST of an action.
    pub fn act(
        &mut self,
        resolved: &Resolved,
        body: &Value,
        execution: &Execution,
    ) -> Result<Answer, Refusal> {
        let action = &resolved.below.join("/");
        if action.is_empty() {
            return Err(Refusal::method_not_allowed("POST"));
        }
        self.require_writable_group(&resolved.id)?;
        let record = self.require(resolved)?;
        let (resource_type, id) = (record.resource_type, record.id.clone());
        if !resource_type.never_waits(action) {
            self.check_idle(record)?;
        }
        let superseded =
            self.operations.running(record.operation.as_ref()).map(|running| running.key.clone());
        let may = resource_type.protocol().may_act(action);
        let done =
            may.then(|| resource_type.act(self, &id, action, body)).flatten().unwrap_or_else(|| {
                Err(INVALID_RESOURCE_TYPE
                    .says(format_args!("The action '{action}' is not known for '{id}'.")))
            })?;
        self.revision += 1;
        if let Some(answer) = done.answer {
            return Ok(Answer { note: Note { changes: vec![action.clone()], operation_ms: None }, ..answer });
        }
        let reports = matches!(done.completion, Completion::Report(_));
        let superseded = superseded.filter(|_| !reports);
        let held = self.store.get(&id).and_then(|record| record.operation.clone());
        if let Some(record) =
            self.store.get_mut(&id).filter(|record| !reports && record.state != State::Deleting)
        {
            record.state = State::Updating;
        }
        let started = self.start(
            &id,
            resource_type,
            "POST",
            resource_type.operation_name(action),
            done.completion,
            execution,
        );
        if let (false, Some(word)) = (reports, resource_type.protocol().states.during(action)) {
            self.show_state(&id, word);
        }
        // A write must not take a report for its predecessor.
        if let (true, Concurrency::Supersede, Some(record)) =
            (reports, resource_type.protocol().concurrency, self.store.get_mut(&id))
        {
            record.operation = held;
        }
        if let Some(superseded) = superseded {
            self.supersede(&superseded, action);
        }
        Ok(Answer {
            operation: Some(self.links(&id, resource_type, &started, true)),
            note: Note { changes: vec![action.clone()], operation_ms: milliseconds(&started) },
            ..Answer::empty(202)
        })
    }

    /// The URLs of an operation on a resource.
    pub fn links(
        &self,
        id: &ResourceId,
        resource_type: &'static dyn ResourceType,
        started: &Started,
        result: bool,
    ) -> OperationLinks {
        let due =
            self.operations.get(&started.key).filter(|o| o.ended.is_none()).map(|operation| operation.due);
        OperationLinks {
            key: started.key.clone(),
            urls: resource_type.protocol().polling.urls,
            segment: resource_type.protocol().polling.segment,
            namespace: id.namespace().unwrap_or_default().to_owned(),
            group: id.group_name().map(str::to_owned),
            location: self.location(id),
            result_url: result,
            retry_after: due.and_then(|due| self.poll_pause(due)),
        }
    }

    /// The group must exist and must not be on its way out.
    pub fn require_writable_group(&self, id: &ResourceId) -> Result<(), Refusal> {
        self.require_group(id)?;
        let Some(group) = id.group_name() else { return Ok(()) };
        match self.store.get(&ResourceId::group(id.subscription_id(), group)) {
            Some(record) if record.state == State::Deleting => Err(RESOURCE_GROUP_BEING_DELETED.says(format_args!(
                    "The resource group '{group}' is in deprovisioning state and cannot perform this operation."
                ),
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn check_conditions(
        &self,
        id: &ResourceId,
        old: Option<&Record>,
        conditions: &Conditions,
    ) -> Result<(), Refusal> {
        if let (Some("*"), Some(old)) = (conditions.if_none_match.as_deref().map(str::trim), old) {
            return Err(PRECONDITION_FAILED.says(format_args!(
                "Resource {} exists already, and the request asks to create it.",
                old.id
            )));
        }
        let Some(given) = conditions.if_match.as_deref().map(str::trim) else { return Ok(()) };
        let Some(old) = old else {
            return Err(PRECONDITION_FAILED.says(format_args!("Resource {id} does not exist.")));
        };
        let current = self.etag(old);
        if given == "*" {
            return Ok(());
        }
        let protocol = old.resource_type.protocol();
        let shown = protocol.etag.read(given);
        if shown == current { Ok(()) } else { Err((protocol.words.mismatch)(&shown, &current, &old.id)) }
    }

    fn check_envelope(
        &self,
        id: &ResourceId,
        protocol: &Protocol,
        old: Option<&Record>,
        body: &mut Object,
    ) -> Result<(), Refusal> {
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
            return Err(INVALID_RESOURCE_LOCATION.says(format_args!(
                    "The resource '{}' already exists in location '{current}' in resource group '{}'. A resource \
                         with the same name cannot be created in location '{location}'. Please select a new resource \
                         name.",
                    id.name(),
                    id.group_name().unwrap_or_default()
                ),
            ));
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

pub(super) fn milliseconds(started: &Started) -> Option<u64> {
    started.latency.map(|latency| u64::try_from(latency.as_millis()).unwrap_or(u64::MAX))
}

/// Replaces or adds a child in the parent's document; says whether it was there.
fn put_child(parent: &mut Object, collection: &ChildCollection, child: &str, mut body: Object) -> bool {
    body.insert("name".into(), child.into());
    let Some(properties) = parent.entry("properties").or_insert_with(|| Object::new().into()).as_object_mut()
    else {
        return false;
    };
    let Some(children) =
        properties.entry(collection.name).or_insert_with(|| Value::Array(Vec::new())).as_array_mut()
    else {
        return false;
    };
    match children.iter_mut().find(|item| name(item).eq_ignore_ascii_case(child)) {
        Some(item) => {
            *item = Value::Object(body);
            true
        }
        None => {
            children.push(Value::Object(body));
            false
        }
    }
}

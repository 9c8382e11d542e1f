//! Writes: PUT and PATCH. A document is checked, stored, and answered while its operation runs.

use azure_types::ResourceId;
use jiff::Timestamp;
use serde_json::Value;

use crate::answer::{Answer, Note};
use crate::document::envelope;
use crate::document::{Object, drop_nulls, into_object, items, merge, name, text};
use crate::journal::differences;
use crate::operation::execution::{Execution, Started};
use crate::operation::{Completion, Status};
use crate::provider::{
    AzureState, ChildCollection, Expand, PartWrite, Proposal, Record, ResourceType, Source,
};
use crate::refusal::{Code, Refusal, Result};
use crate::request::Conditions;
use crate::settings::actors::Write;
use crate::settings::latency::CREATE;
use crate::store::State;
use crate::verbs::action::milliseconds;
use crate::verbs::resolve::Resolved;
use crate::verbs::system_data;

/// One write on its way.
pub(crate) struct DocumentWrite<'a> {
    method: &'static str,
    resource_type: &'static dyn ResourceType,
    id: &'a ResourceId,
    conditions: &'a Conditions,
    execution: &'a Execution,
    /// The child that the client wrote; the document is its parent's.
    child: Option<WrittenChild<'a>>,
}

/// A child document that is written by itself.
pub(crate) struct WrittenChild<'a> {
    collection: &'static ChildCollection,
    name: &'a str,
    existed: bool,
}

/// The result of judging a write: the document to be stored, and what it means.
struct Judged {
    record: Record,
    before: Option<Value>,
    /// The client's document, for types whose answer depends on it.
    sent: Option<Object>,
    /// Whether an existing resource is unchanged, and its last operation succeeded.
    unchanged: bool,
}

impl<'a> DocumentWrite<'a> {
    pub(crate) fn of(
        method: &'static str,
        resolved: &'a Resolved,
        conditions: &'a Conditions,
        execution: &'a Execution,
        child: Option<WrittenChild<'a>>,
    ) -> Self {
        Self { method, resource_type: resolved.resource_type, id: &resolved.id, conditions, execution, child }
    }

    /// Whether it is over before it is answered.
    fn synchronous(&self, existed: bool) -> bool {
        let protocol = self.resource_type.protocol();
        protocol.synchronous
            || (existed && protocol.synchronous_update)
            || (protocol.only_tags && self.method == "PATCH")
    }

    /// As policies see it.
    fn seen(&self) -> Write<'_> {
        let protocol = self.resource_type.protocol();
        Write {
            id: self.id,
            resource_type: protocol.resource_type,
            tagged: protocol.tracked,
            by: self.execution.by.as_deref(),
        }
    }

    fn status(&self, existed: bool) -> u16 {
        let protocol = self.resource_type.protocol();
        match (&self.child, self.method, existed) {
            (Some(child), ..) => {
                if child.existed {
                    200
                } else {
                    201
                }
            }
            (None, "PATCH", _) => protocol.patch_status,
            (None, _, true) => protocol.update_status,
            (None, _, false) => protocol.create_status,
        }
    }
}

impl AzureState {
    /// PUT of a resource or of a child document.
    pub fn put(
        &mut self,
        resolved: &Resolved,
        body: Value,
        conditions: &Conditions,
        execution: &Execution,
    ) -> Result<Answer> {
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
            return self.write(&DocumentWrite::of("PUT", resolved, conditions, execution, None), body);
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
        let child = Some(WrittenChild { collection, name: child, existed });
        self.write(&DocumentWrite::of("PUT", resolved, conditions, execution, child), parent)
    }

    /// PUT of a part of a resource that is stored elsewhere.
    fn put_view(&mut self, resolved: &Resolved, body: &Value) -> Result<Answer> {
        let id = self.require(resolved)?.id.clone();
        let below: Vec<&str> = resolved.below.iter().map(String::as_str).collect();
        let written =
            resolved.resource_type.write_below(self, &id, PartWrite { below: &below, body: Some(body) });
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

    /// A readable part of a resource refuses the method; an unreadable one is unknown.
    pub(crate) fn not_writable(&self, resolved: &Resolved, method: &str) -> Refusal {
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
    ) -> Result<Answer> {
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
            return Err(Code::azures(400, "OnlyTagsSupportedForPatch").details(format_args!(
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
        self.write(&DocumentWrite::of("PATCH", resolved, conditions, execution, None), merged)
    }

    /// Performs one write, stage by stage.
    pub(crate) fn write(&mut self, writing: &DocumentWrite<'_>, body: Object) -> Result<Answer> {
        let time = self.now();
        let preempted = self.check_preconditions(writing, &body)?;
        let mut judged = self.judge_write(writing, time, body)?;
        self.admit(writing, &judged)?;
        let superseded = self.running_on(writing.id).map(|key| (key, preempted));
        let (existed, unchanged) = (judged.before.is_some(), judged.unchanged);
        let sent = judged.sent.take();
        let (before, changes) = self.store_write(writing, judged);
        let version = self.store.get(writing.id).map(|record| record.version);
        let started = self.start_write(writing, before.as_ref(), unchanged, superseded);
        if let (true, Some(version), Some(record)) = (unchanged, version, self.store.get_mut(writing.id)) {
            record.version = version;
        }
        let note = Note { changes, operation_ms: milliseconds(&started) };
        let answer = self.answer_write(writing, existed, &started, sent.as_ref())?;
        Ok(Answer { note, ..answer })
    }

    /// Returns why the running operation ends, if the write preempts it.
    fn check_preconditions(&self, writing: &DocumentWrite<'_>, body: &Object) -> Result<Option<Refusal>> {
        let old = self.store.get(writing.id);
        match &writing.child {
            None => self.check_conditions(writing.id, old, writing.conditions)?,
            Some(child) => {
                let id = writing.id.child(child.collection.name, child.name);
                self.check_child_conditions(&id, child.existed, writing.conditions)?;
            }
        }
        match old {
            Some(old) => self.check_idle(old, body.get("properties").unwrap_or(&Value::Null)),
            None => self.check_creatable(writing.id, writing.resource_type).map(|()| None),
        }
    }

    /// Applies policies and the type's rules to what was sent.
    fn judge_write(&self, writing: &DocumentWrite<'_>, time: Timestamp, mut body: Object) -> Result<Judged> {
        let (id, resource_type) = (writing.id, writing.resource_type);
        let protocol = resource_type.protocol();
        let old = self.store.get(id);
        let given = ["tags", "identity"].map(|member| body.contains_key(member).then_some(member));
        if protocol.tracked {
            self.check_envelope(id, protocol, old, &mut body)?;
        }
        let emptied = given.into_iter().flatten().filter(|member| !body.contains_key(*member)).collect();
        let sent = protocol.presents_writes.then(|| body.clone());
        let source = if writing.method == "PATCH" { Source::Patch } else { Source::Put };
        self.actors.proposed(&writing.seen(), &time.to_string(), &mut body)?;
        let proposal = Proposal { emptied, ..Proposal::new(id, old, body, source) };
        let stored = self.judge(resource_type, proposal).map_err(protocol.words.unreadable)?;
        let before = old.map(|old| old.body.clone());
        let changed = before.as_ref() != Some(&stored);
        let repairs = old.is_some_and(|old| old.state != State::Succeeded);
        let mut record = Record {
            // The spelling of the last write is kept.
            id: id.clone(),
            resource_type,
            body: stored,
            hidden: old.map(|old| old.hidden.clone()).unwrap_or_default(),
            version: old.map_or(1, |old| old.version + u64::from(changed || repairs)),
            state: if old.is_none() { protocol.first_state } else { State::Updating },
            operation: old.and_then(|old| old.operation.clone()),
            created: old.map_or(time, |old| old.created),
            incarnation: 0,
        };
        if protocol.system_data {
            let hidden = record.hidden.get(system_data::MEMBER);
            let written = system_data::written(hidden, writing.execution, &time.to_string());
            record.hidden.insert(system_data::MEMBER.into(), written);
        }
        Ok(Judged { record, sent, unchanged: before.is_some() && !changed && !repairs, before })
    }

    /// Checks a judged write against the rest of the state.
    fn admit(&self, writing: &DocumentWrite<'_>, judged: &Judged) -> Result<()> {
        let old = self.store.get(writing.id);
        self.check_names(&judged.record, old)?;
        self.check_limits(&judged.record, old.is_some())?;
        self.check_references(&judged.record)?;
        match &writing.execution.ending {
            // An immediate write cannot fail later.
            Some(Status::Failed(refusal) | Status::Canceled(refusal))
                if writing.synchronous(old.is_some()) =>
            {
                Err(refusal.clone())
            }
            _ => Ok(()),
        }
    }

    fn running_on(&self, id: &ResourceId) -> Option<String> {
        let operation = self.store.get(id)?.operation.as_ref();
        self.operations.running(operation).map(|running| running.key.clone())
    }

    /// Stores it, with its effects on others. Returns the former document, and the changes in words.
    fn store_write(&mut self, writing: &DocumentWrite<'_>, judged: Judged) -> (Option<Value>, Vec<String>) {
        let Judged { record, before, .. } = judged;
        let changes = differences(before.as_ref(), Some(&record.body));
        self.insert(record);
        writing.resource_type.after_write(self, writing.id, before.as_ref());
        let instant = self.instant();
        self.actors.accepted(&writing.seen(), instant);
        (before, changes)
    }

    /// Starts its operation, which supersedes the previous one.
    fn start_write(
        &mut self,
        writing: &DocumentWrite<'_>,
        before: Option<&Value>,
        unchanged: bool,
        superseded: Option<(String, Option<Refusal>)>,
    ) -> Started {
        let (id, resource_type) = (writing.id, writing.resource_type);
        let protocol = resource_type.protocol();
        let mut execution = writing.execution.clone();
        let told = execution.stall || execution.ending.is_some();
        // A write that changes nothing ends at once, if the provider checks that.
        execution.at_once |= unchanged && protocol.unchanged_at_once && !told;
        execution.at_once |= writing.synchronous(before.is_some());
        if protocol.immediate && execution.latency.is_none() && !told {
            let latency = self.latency.of(writing.method, protocol.resource_type, None, 0);
            execution.at_once |= latency.is_zero();
        }
        let verb = if writing.method == "PUT" && before.is_none() { CREATE } else { writing.method };
        let name = resource_type.operation_name("Put");
        let started = self.start(id, resource_type, verb, name.clone(), Completion::Write, &execution);
        let word = self.store.get(id).and_then(|record| self.state_of_write(record, before));
        if let Some(word) = word {
            self.show_state(id, word);
        }
        match superseded {
            Some((superseded, Some(why))) => self.cancel(&superseded, |_| why),
            Some((superseded, None)) => self.supersede(&superseded, &format!("{name} ({})", started.key)),
            None => {}
        }
        started
    }

    fn answer_write(
        &self,
        writing: &DocumentWrite<'_>,
        existed: bool,
        started: &Started,
        sent: Option<&Object>,
    ) -> Result<Answer> {
        let (id, resource_type) = (writing.id, writing.resource_type);
        let protocol = resource_type.protocol();
        let record = self.store.get(id).ok_or_else(|| self.not_found(id))?;
        let shown = match &writing.child {
            None => {
                let mut shown = into_object(self.present(record, Expand::default()));
                if self.operations.running(record.operation.as_ref()).is_some() {
                    resource_type.present_unfinished(self, record, &mut shown);
                }
                if let Some(sent) = sent {
                    resource_type.present_written(self, record, sent, &mut shown);
                }
                Value::Object(shown)
            }
            Some(child) => items(&record.body, &format!("properties/{}", child.collection.name))
                .iter()
                .find(|item| name(item).eq_ignore_ascii_case(child.name))
                .map(|item| self.present_child(record, child.collection, item))
                .unwrap_or_default(),
        };
        let location =
            (protocol.located && !existed).then(|| text(&shown, "id").unwrap_or_default().to_owned());
        let synchronous = writing.synchronous(existed);
        let bare = protocol.bare_acceptance && !synchronous;
        Ok(Answer {
            status: writing.status(existed),
            location,
            body: (!bare).then(|| if protocol.shows_written { shown } else { Object::new().into() }),
            etag: (protocol.etag_on_writes && protocol.etagged).then(|| self.etag(record)),
            operation: (!synchronous)
                .then(|| self.links(id, resource_type, started, protocol.polling.location_on_writes)),
            ..Answer::default()
        })
    }
}

/// Replaces or adds a child in the parent's document; returns whether it existed.
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

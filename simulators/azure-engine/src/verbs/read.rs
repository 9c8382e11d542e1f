//! Reads: resources, lists, children, views and operations.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::answer::paging::{page, page_by_name, sort};
use crate::document::{items, name};
use crate::operation::{Completion, Status};
use crate::provider::{AzureState, Expand, Listing, Record};
use crate::refusal::{Code, Refusal, Result};
use crate::types::protocol::Pages;
use crate::types::version::remove;
use crate::verbs::resolve::Resolved;

/// Longest pause in the `Retry-After` of polls, in seconds.
const MAX_POLL_SECONDS: u64 = 10;

impl AzureState {
    /// GET of anything below a provider namespace.
    pub fn read(&self, resolved: &Resolved, query: &BTreeMap<String, String>) -> Result<Answer> {
        let expand = Expand {
            instance_view: query
                .get("$expand")
                .is_some_and(|what| what.to_ascii_lowercase().contains("instanceview")),
        };
        if resolved.list {
            return self.list(resolved, query, expand);
        }
        let record = self.seen(resolved)?;
        if resolved.below.is_empty() {
            let etag = record.resource_type.protocol().etagged.then(|| self.etag(record));
            return Ok(Answer { etag, ..Answer::ok(self.shown(resolved, record, expand, query)) });
        }
        if let Some((collection, child)) = Self::child_target(record.resource_type, &resolved.below) {
            let children = items(&record.body, &format!("properties/{}", collection.name));
            let Some(child) = child else {
                let shown = children.iter().map(|child| self.present_child(record, collection, child));
                return Ok(Answer::list(shown));
            };
            let found = children
                .iter()
                .find(|item| name(item).eq_ignore_ascii_case(child))
                .ok_or_else(|| Refusal::child_not_found(&record.id.child(collection.name, child)))?;
            let etag = Some(self.etag(record));
            return Ok(Answer { etag, ..Answer::ok(self.present_child(record, collection, found)) });
        }
        let below: Vec<&str> = resolved.below.iter().map(String::as_str).collect();
        match record.resource_type.view_with_options(self, record, &below, query) {
            Some(view) => view.map(|shown| Answer {
                etag: crate::document::text(&shown, "etag").map(str::to_owned),
                ..Answer::ok(shown)
            }),
            None => Err(Refusal::unknown_below(&resolved.full_type)),
        }
    }

    /// A resource as the requested type shows it: an id that stands for another resource is shown as in that type's
    /// lists.
    fn shown(
        &self,
        resolved: &Resolved,
        record: &Record,
        expand: Expand,
        query: &BTreeMap<String, String>,
    ) -> Value {
        let asked = self.resource_type(&resolved.full_type);
        let other = asked.filter(|asked| asked.name() != record.resource_type.name());
        let scope = record.id.parent().unwrap_or_else(|| record.id.clone());
        let listing = Listing { scope: &scope, expand, query };
        let shown = other.and_then(|asked| asked.list_entry(self, record, &listing));
        shown.unwrap_or_else(|| self.present(record, expand))
    }

    /// The record that was resolved, as this read sees it.
    fn seen(&self, resolved: &Resolved) -> Result<&Record> {
        let Some(moment) = self.seen_at(&resolved.id, false) else { return self.require(resolved) };
        match self.store.as_of(&resolved.id, moment) {
            Some(record) => Ok(record),
            None => Err(self.require(resolved).err().unwrap_or_else(|| self.not_found(&resolved.id))),
        }
    }

    fn list(&self, resolved: &Resolved, query: &BTreeMap<String, String>, expand: Expand) -> Result<Answer> {
        self.require_group(&resolved.id)?;
        let of_resource = resolved.id.namespace().is_some();
        if of_resource && self.store.get(&resolved.id).is_none() && self.document(&resolved.id).is_none() {
            let protocol = resolved.resource_type.protocol();
            if let (true, Some(absent)) = (protocol.names_absent_parent, self.absent_top(&resolved.id)) {
                return Err(Refusal::parent_not_found("read", protocol.resource_type, &absent));
            }
            return Err(self.not_found(&resolved.id));
        }
        let listing = Listing { scope: &resolved.id, expand, query };
        resolved.resource_type.before_list(self, &listing)?;
        let resource_type = resolved.resource_type.name();
        let gathered = resolved.resource_type.gather_list(self, &resolved.id);
        let mut records = match (gathered, self.seen_at(&resolved.id, true)) {
            (Some(records), _) => records,
            (None, None) => self.store.of_type_below(resource_type, &resolved.id),
            (None, Some(moment)) => self.store.of_type_as_of(resource_type, &resolved.id, moment),
        };
        let size = resolved.resource_type.page_size(&self.options, &listing);
        sort(&mut records, |record| record.id.as_str());
        let token = query.get("$skiptoken").map(String::as_str);
        let paged = match resolved.resource_type.protocol().pages {
            Pages::Exact => page(records, |record: &&Record| record.id.as_str(), token, size),
            Pages::EmptyLast => page_by_name(records, |record: &&Record| record.id.name(), token, size),
        };
        let (records, next_page) =
            paged.ok_or_else(|| Refusal::invalid_parameter("$skiptoken", "The skip token is invalid."))?;
        let version = query.get("api-version").map(String::as_str).unwrap_or_default();
        let newer = self.newer_members(resource_type, version);
        let shown = records.into_iter().filter_map(|record| {
            let mut document = resolved.resource_type.list_entry(self, record, &listing)?;
            newer.iter().for_each(|member| remove(&mut document, member));
            Some(document)
        });
        Ok(Answer { next_page, ..Answer::list(shown) })
    }

    /// GET of an operation: its status, or (`result`) the final answer of the call that started it.
    pub fn poll(&self, subscription: &str, key: &str, result: bool) -> Result<Answer> {
        let operation = self.operations.readable(key, subscription).ok_or_else(|| {
            Code::ours(404, "OperationNotFound")
                .says(format_args!("The operation '{key}' could not be found or has expired."))
        })?;
        let running = operation.status == Status::InProgress;
        // An overdue operation waits for work outside.
        let pause = running.then(|| self.poll_pause(operation.due).unwrap_or(MAX_POLL_SECONDS));
        let operation_style = operation.operation_style;
        if result {
            return match &operation.status {
                Status::InProgress => Ok(Answer {
                    poll_again: Some(pause.unwrap_or_default()),
                    operation_style,
                    ..Answer::empty(202)
                }),
                Status::Failed(refusal) | Status::Canceled(refusal) => Err(refusal.clone()),
                Status::Succeeded => Ok(match &operation.completion {
                    Completion::Delete if self.store.get(&operation.subject).is_none() => {
                        Answer::empty(operation.protocol.polling.gone_status)
                    }
                    Completion::Write => match self.store.get(&operation.subject) {
                        Some(record) => Answer::ok(self.present(record, Expand::default())),
                        None => Answer::empty(204),
                    },
                    Completion::Report(report) => Answer::ok(report.clone()),
                    _ => Answer::empty(200),
                }),
            };
        }
        let mut body = json!({ "status": operation.status.as_str() });
        if operation.protocol.polling.times {
            body["startTime"] = json!(operation.started.to_string());
            body["name"] = json!(operation.key);
            if let Some(ended) = operation.ended {
                body["endTime"] = json!(ended.to_string());
            }
        }
        if let Status::Failed(refusal) | Status::Canceled(refusal) = &operation.status {
            body["error"] = refusal.error();
        }
        if operation.status == Status::Succeeded
            && operation.completion == Completion::Write
            && let Some(record) = self.store.get(&operation.subject)
            && record.resource_type.protocol().polling.output
        {
            body["properties"] = json!({ "output": self.present(record, Expand::default()) });
        }
        Ok(Answer { poll_again: pause, operation_style, ..Answer::ok(body) })
    }

    /// Seconds until the next poll of an operation: until it ends, but not too long.
    pub fn poll_pause(&self, due: Option<tokio::time::Instant>) -> Option<u64> {
        let Some(due) = due else { return Some(MAX_POLL_SECONDS) };
        let left = due.saturating_duration_since(tokio::time::Instant::now());
        let seconds = left.as_secs_f64().ceil() as u64;
        (seconds > 0).then(|| seconds.min(MAX_POLL_SECONDS))
    }
}

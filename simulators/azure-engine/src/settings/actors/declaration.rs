//! Actors, declared as data.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::edit::Edit;
use faults::glob::matches;

/// Another user of the same Azure. Its writes appear in the journal under the principal `actor:{name}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Actor {
    /// Its name; a second actor of the same name replaces the first.
    pub name: String,
    /// The resources it acts on.
    #[serde(default)]
    pub on: Selection,
    /// When it acts; policies act on writes and need no schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// What it does.
    pub action: ActorAction,
}

/// The resources that an actor acts on. Members that are left out match everything; texts may hold `*` and `?` and are
/// compared ignoring case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Selection {
    /// Full resource type, such as `Microsoft.Network/loadBalancers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    /// Name of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Whole id of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// When an actor acts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Schedule {
    /// Milliseconds between two acts.
    pub every_ms: u64,
    /// Milliseconds from its declaration to the first act; `every_ms` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ms: Option<u64>,
    /// Maximum jitter of each interval in milliseconds, drawn from the seed.
    #[serde(default)]
    pub jitter_ms: u64,
    /// How many times it acts; no number means for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

/// The action of an actor. In texts `{now}` stands for the time and `{count}` for the number of the act, from 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ActorAction {
    /// A policy: adds tags to written resources.
    Tag {
        /// The tags.
        tags: BTreeMap<String, String>,
        /// Overwrite existing tags; otherwise only missing ones are added.
        #[serde(default)]
        replace: bool,
        /// Milliseconds after the write at which the tags are written, by a write of the actor's own.
        /// Without it they are part of the very write, as with a policy of effect `modify`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_ms: Option<u64>,
    },
    /// A policy: writes are refused with `RequestDisallowedByPolicy`.
    Deny {
        /// Conditions on the document, which must all be met; an empty list matches every document.
        #[serde(default)]
        when: Vec<Condition>,
    },
    /// An operator: reads one of the resources, changes it and writes it back.
    Edit {
        /// The change.
        edit: Edit,
    },
    /// An autoscaler: sets the capacity of each of the scale sets.
    Scale {
        /// Smallest capacity.
        min: u64,
        /// Largest capacity.
        max: u64,
        /// The capacities to set, one after the other and again from the first. Without them each is drawn
        /// from the seed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        capacities: Vec<u64>,
    },
    /// A spot market: evicts machines of priority `Spot`, by their eviction policy.
    Evict {
        /// The share of the machines evicted by each act, from 0 to 1; at least one machine, unless it is 0.
        #[serde(default)]
        share: f64,
        /// Notice before a machine is evicted, as a scheduled event, in seconds; Azure promises 30. Without notice it
        /// is evicted at once.
        #[serde(default)]
        notice_seconds: u64,
    },
}

/// A condition of a policy on a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Condition {
    /// Steps joined by `/`; `*` stands for every item of an array, one of which must match.
    pub path: String,
    /// The required value; texts are compared ignoring case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    /// Whether the path must exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
}

impl Actor {
    /// An actor that matches every resource; narrow it with the other methods.
    pub fn new(name: &str, action: ActorAction) -> Self {
        Self { name: name.into(), on: Selection::default(), schedule: None, action }
    }

    /// Matches one resource type only (wildcards allowed).
    #[must_use]
    pub fn on_type(mut self, resource_type: &str) -> Self {
        self.on.resource_type = Some(resource_type.into());
        self
    }

    /// Matches resources of this name only (wildcards allowed).
    #[must_use]
    pub fn on_resource(mut self, name: &str) -> Self {
        self.on.resource = Some(name.into());
        self
    }

    /// Acts repeatedly, at this interval.
    #[must_use]
    pub fn every(mut self, pause: std::time::Duration) -> Self {
        let every_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        self.schedule = Some(Schedule { every_ms, ..self.schedule.unwrap_or_default() });
        self
    }

    /// Acts that many times, then no more.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.schedule = Some(Schedule { times: Some(times), ..self.schedule.unwrap_or_default() });
        self
    }

    /// The principal of its writes in the journal.
    pub fn principal(&self) -> String {
        format!("actor:{}", self.name)
    }
}

impl Selection {
    /// Whether it matches a resource.
    pub fn fits(&self, id: &ResourceId, resource_type: &str) -> bool {
        let fits = |pattern: &Option<String>, text: &str| pattern.as_deref().is_none_or(|p| matches(p, text));
        fits(&self.resource_type, resource_type)
            && fits(&self.resource, id.name())
            && fits(&self.scope, id.as_str())
    }
}

impl Condition {
    pub(super) fn holds(&self, document: &Value) -> bool {
        let found = crate::document::edit::find(document, &self.path);
        let equal = |value: &&Value, wanted: &Value| match (value, wanted) {
            (Value::String(one), Value::String(other)) => one.eq_ignore_ascii_case(other),
            (one, other) => **one == *other,
        };
        self.exists.is_none_or(|exists| exists != found.is_empty())
            && self.equals.as_ref().is_none_or(|wanted| found.iter().any(|value| equal(value, wanted)))
    }
}

//! One secret or key with all its versions.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::soft_delete;
use azure_engine::document::Object;
use azure_engine::provider::Record;

/// What vaults hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Kind {
    Secrets,
    Keys,
}

impl Kind {
    /// The segment of URLs, and of permissions.
    pub(super) fn collection(self) -> &'static str {
        match self {
            Self::Secrets => "secrets",
            Self::Keys => "keys",
        }
    }

    /// The noun for it in refusals.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Secrets => "Secret",
            Self::Keys => "Key",
        }
    }
}

/// A text that is shown only to callers that may read it, and appears in no log and no debug output.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Hidden(String);

impl Hidden {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}

/// What a version is of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Content {
    Secret(Hidden),
    /// The public part, as a JSON Web Key without an id.
    Key(Object),
}

/// Attributes of a version that clients may set. Missing ones keep their values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Said {
    pub(super) enabled: Option<bool>,
    pub(super) not_before: Option<i64>,
    pub(super) expires: Option<i64>,
    pub(super) content_type: Option<String>,
    pub(super) tags: Option<Object>,
    pub(super) operations: Option<Value>,
}

/// One version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Version {
    /// 32 hexadecimal digits.
    pub(super) id: String,
    pub(super) content: Content,
    pub(super) enabled: bool,
    pub(super) not_before: Option<i64>,
    pub(super) expires: Option<i64>,
    pub(super) created: i64,
    pub(super) updated: i64,
    pub(super) content_type: Option<String>,
    pub(super) tags: Object,
}

impl Version {
    pub(super) fn new(id: String, content: Content, now: i64) -> Self {
        Self {
            id,
            content,
            enabled: true,
            not_before: None,
            expires: None,
            created: now,
            updated: now,
            content_type: None,
            tags: Object::new(),
        }
    }

    /// Takes over a client's attributes.
    pub(super) fn say(&mut self, said: Said, now: i64) {
        self.enabled = said.enabled.unwrap_or(self.enabled);
        self.not_before = said.not_before.or(self.not_before);
        self.expires = said.expires.or(self.expires);
        self.content_type = said.content_type.or_else(|| self.content_type.take());
        if let Some(tags) = said.tags {
            self.tags = tags;
        }
        if let (Some(operations), Content::Key(key)) = (said.operations, &mut self.content) {
            key.insert("key_ops".into(), operations);
        }
        self.updated = now;
    }

    /// Its `attributes`, as Resource Manager shows them.
    pub(super) fn attributes(&self) -> Value {
        let mut shown = json!({ "enabled": self.enabled, "created": self.created, "updated": self.updated });
        for (member, time) in [("nbf", self.not_before), ("exp", self.expires)] {
            if let Some(time) = time {
                shown[member] = time.into();
            }
        }
        shown
    }

    /// The same with the recovery level, as the vault's host shows them.
    pub(super) fn attributes_in(&self, vault: &Record) -> Value {
        let (days, protected) = (soft_delete::retention(&vault.body), soft_delete::is_protected(&vault.body));
        // "Deletion recovery level".
        let level = match (days < 90, protected) {
            (false, false) => "Recoverable+Purgeable",
            (false, true) => "Recoverable",
            (true, false) => "CustomizedRecoverable+Purgeable",
            (true, true) => "CustomizedRecoverable",
        };
        let mut shown = self.attributes();
        shown["recoveryLevel"] = level.into();
        shown["recoverableDays"] = days.into();
        shown
    }
}

/// A deletion that can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Deletion {
    /// In seconds since 1970.
    pub(super) at: i64,
    /// When it is final.
    pub(super) over: i64,
}

/// A secret or key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item {
    /// In the spelling of its creation.
    pub(super) name: String,
    /// The oldest first.
    pub(super) versions: Vec<Version>,
    pub(super) deletion: Option<Deletion>,
}

impl Item {
    /// The version of an id, or the latest.
    pub(super) fn version(&self, id: Option<&str>) -> Option<&Version> {
        match id {
            None => self.versions.last(),
            Some(id) => self.versions.iter().find(|version| version.id.eq_ignore_ascii_case(id)),
        }
    }
}

/// Reads `attributes`, `tags`, `contentType` and `key_ops` of what a client sent.
pub(super) fn said(body: &Value) -> Said {
    let attributes = body.get("attributes").unwrap_or(&Value::Null);
    let seconds = |member: &str| attributes.get(member).and_then(Value::as_i64);
    Said {
        enabled: attributes.get("enabled").and_then(Value::as_bool),
        not_before: seconds("nbf"),
        expires: seconds("exp"),
        content_type: body.get("contentType").and_then(Value::as_str).map(str::to_owned),
        tags: body.get("tags").and_then(Value::as_object).cloned(),
        operations: body.get("key_ops").or_else(|| body.get("keyOps")).filter(|ops| ops.is_array()).cloned(),
    }
}

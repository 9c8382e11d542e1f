//! Events about Nodes: the node, the reason, the time.

use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{self, ObjectMeta};

/// An Event, with the members that are used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    /// Name, UID, resource version, creation.
    #[serde(deserialize_with = "meta::slim")]
    pub metadata: ObjectMeta,
    /// The object of the event.
    pub involved_object: InvolvedObject,
    /// The reason, in one word.
    pub reason: String,
}

/// The object of an Event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InvolvedObject {
    /// The object's kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's UID, as the writer gave it: kubelets write the node's name here.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

kind!(Event, "v1", "", "events", NamespaceResourceScope);

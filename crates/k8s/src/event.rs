//! Events about Nodes: the node, the reason, the time.

use serde::{Deserialize, Serialize};

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

impl k8s_openapi::Resource for Event {
    const API_VERSION: &'static str = "v1";
    const GROUP: &'static str = "";
    const KIND: &'static str = "Event";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "events";
    type Scope = k8s_openapi::NamespaceResourceScope;
}

impl k8s_openapi::Metadata for Event {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

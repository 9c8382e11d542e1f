//! Events about Nodes: which one, why, when.

use serde::{Deserialize, Serialize};

use crate::meta::{self, ObjectMeta};

/// An Event, as far as the cloud cares.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    /// Name, UID, resource version, creation.
    #[serde(deserialize_with = "meta::slim")]
    pub metadata: ObjectMeta,
    /// What it is about.
    pub involved_object: InvolvedObject,
    /// Why it was written, in one word.
    pub reason: String,
}

/// What an Event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InvolvedObject {
    /// The object's kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's UID, as the writer knows it: kubelets write the node's name here.
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

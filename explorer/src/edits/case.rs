//! What is edited, when and how.

use serde::{Deserialize, Serialize};

use crate::service_option::ServiceOption;

/// Services at rest, and a third party's edits of their resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Edits {
    /// The seed of everything random.
    pub seed: u64,
    /// Whether pools hold addresses.
    #[serde(default)]
    pub by_address: bool,
    /// What the Services ask for.
    pub services: Vec<Vec<ServiceOption>>,
    /// The time of the edits.
    pub when: When,
    /// The edits.
    pub edits: Vec<Edit>,
}

/// The time of a third party's edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum When {
    /// While there is no other activity.
    AtRest,
    /// Just before this numbered write of the controllers arrives, while another Service is created.
    BeforeWrite(u64),
    /// Whenever it is undone.
    Always,
}

/// An edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// The number of the member among all that the controllers stated, ordered by resource and path.
    pub number: usize,
    /// The kind of edit.
    pub how: How,
}

/// A kind of edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// The member gets another value.
    Change,
    /// The member is removed.
    Remove,
    /// The list item that contains the member is removed.
    RemoveItem,
    /// The list that contains the member is emptied.
    RemoveAll,
    /// The member's resource is deleted.
    Delete,
}

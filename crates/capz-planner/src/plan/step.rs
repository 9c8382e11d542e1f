//! Steps, and the states of goals.

use std::fmt;

use azure_types::ResourceId;
use ownership::{Proof, Rival};
use serde_json::Value;

use crate::compare::Change;

/// The effect of a step on its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// The target does not exist and is created.
    Create,
    /// The target exists and is written.
    Update,
    /// The target is deleted.
    Delete,
}

/// One call to Azure.
#[derive(Clone, PartialEq)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// The target.
    pub target: ResourceId,
    /// The version on which the step is based, for `If-Match`.
    pub if_match: Option<String>,
    /// The document to write; null for deletions.
    pub document: Value,
    /// Whether the document holds only the members that change: Azure merges it (PATCH) and keeps the others.
    pub partial: bool,
    /// The changes, with their reasons.
    pub changes: Vec<Change>,
    /// The proof that the target is the cluster's. `None` for a target that this very step creates, under a condition
    /// that Azure checks.
    pub proof: Option<Proof>,
    /// Whether a deletion does not wait for the target's workload.
    pub forced: bool,
}

impl Step {
    /// A step without a condition, that writes nothing.
    pub(super) fn new(action: Action, target: &ResourceId) -> Self {
        Self {
            action,
            target: target.clone(),
            if_match: None,
            document: Value::Null,
            partial: false,
            changes: Vec::new(),
            proof: None,
            forced: false,
        }
    }
}

/// Documents hold bootstrap data: a step in a log shows its action, and not its document.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("action", &self.action)
            .field("target", &self.target)
            .field("changes", &self.changes)
            .field("proof", &self.proof)
            .finish_non_exhaustive()
    }
}

/// The state of a goal.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It is as desired.
    Reached,
    /// It is not proven to be the cluster's, and is used as it is, or left alone.
    Foreign,
    /// Another cluster owns it: it is neither used nor touched, and the object is refused.
    Disputed(Rival),
    /// It is the cluster's and should be deleted, but this foreign resource uses it, so Azure refuses that: it stays,
    /// too.
    InUse(ResourceId),
    /// It is foreign, and does not exist.
    Missing,
    /// This step can be taken now.
    Now(Step),
    /// It waits for these.
    Waits(Vec<ResourceId>),
    /// An operation runs on it in Azure.
    Running(Action),
    /// Azure refused the last step, with this message.
    Refused(Action, String),
    /// The observed state is unknown.
    Unknown,
}

impl State {
    /// Why it stays as it is, behind a mark; `None` if it does not, or there is nothing to say.
    pub(crate) fn remark(&self, name: &str) -> Option<String> {
        Some(match self {
            Self::InUse(user) => format!("! {name} stays: {} uses it", user.name()),
            Self::Disputed(rival) => format!("! {name} belongs to {rival}: it is left alone"),
            Self::Running(_) => format!("… {name}: an operation is running in Azure"),
            Self::Refused(_, words) => format!("! {name}: {words}"),
            Self::Missing => format!(
                "! {name} does not exist, and this program does not create it: create it, or name another"
            ),
            Self::Unknown => format!("? {name}: its state in Azure is unknown"),
            Self::Reached | Self::Foreign | Self::Now(_) | Self::Waits(_) => return None,
        })
    }

    /// Whether other goals can depend on it.
    pub fn is_there(&self) -> bool {
        matches!(self, Self::Reached | Self::Foreign | Self::InUse(_))
    }
}

//! Plans as JSON, for programs. `docs/plan.md` describes the format; members may be added to it, but a renamed or
//! removed member needs a new [`PLAN_FORMAT_VERSION`].

use azure_types::ResourceId;
use k8s::ObjectKey;
use ownership::Proof;
use serde::Serialize;
use serde_json::{Value, json};

use super::cluster_plan::ClusterPlan;
use super::plan::{Action, Document, Step};

/// The version of the JSON format: a new number means that old readers may misread it.
pub const PLAN_FORMAT_VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StepJson<'a> {
    action: &'static str,
    /// The type without its provider, such as `loadBalancers`.
    resource_type: &'a str,
    resource_id: &'a ResourceId,
    changes: Vec<String>,
    on_behalf_of: Vec<String>,
    /// Empty for creations.
    ownership: &'a [Proof],
    #[serde(skip_serializing_if = "Option::is_none")]
    if_match: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<&'a Document>,
}

impl<'a> From<&'a Step> for StepJson<'a> {
    fn from(step: &'a Step) -> Self {
        Self {
            action: match step.action {
                Action::Create => "create",
                Action::Update => "update",
                Action::Delete => "delete",
            },
            resource_type: step.target.type_and_name_pairs().last().map_or("", |(kind, _)| kind),
            resource_id: &step.target,
            changes: step.changes.iter().map(ToString::to_string).collect(),
            on_behalf_of: step.on_behalf_of.iter().map(ObjectKey::to_string).collect(),
            ownership: &step.ownership,
            if_match: step.if_match.as_deref(),
            document: step.document.as_ref(),
        }
    }
}

impl ClusterPlan {
    /// The plan as JSON in the shape of [`PLAN_FORMAT_VERSION`].
    pub fn to_json(&self) -> Value {
        let steps: Vec<StepJson<'_>> = self.plan.steps.iter().map(StepJson::from).collect();
        let refused = self.refused.iter().map(|(key, refusal)| {
            json!({
                "service": key.to_string(),
                "message": refusal.to_string(),
                "untilServiceChanges": refusal.is_terminal(),
            })
        });
        let waiting = self
            .waiting
            .iter()
            .map(|(key, wait)| json!({ "service": key.to_string(), "message": wait.to_string() }));
        let notices = self.notices.iter().map(|notice| {
            json!({
                "service": notice.service.to_string(),
                "warning": notice.warning,
                "reason": notice.reason,
                "message": notice.message,
            })
        });
        json!({
            "formatVersion": PLAN_FORMAT_VERSION,
            "summary": {
                "create": self.plan.count(Action::Create),
                "update": self.plan.count(Action::Update),
                "delete": self.plan.count(Action::Delete),
                "refused": self.refused.len(),
                "waiting": self.waiting.len(),
                "unrouted": self.unrouted,
            },
            "steps": steps,
            "refused": refused.collect::<Vec<_>>(),
            "waiting": waiting.collect::<Vec<_>>(),
            "notices": notices.collect::<Vec<_>>(),
            "warnings": self.warnings,
        })
    }
}

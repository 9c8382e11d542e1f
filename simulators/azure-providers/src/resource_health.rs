//! `Microsoft.ResourceHealth`: whether resources are available ("Availability Statuses").

use azure_types::ResourceId;
use serde_json::{Value, json};

use azure_engine::answer::Answer;
use azure_engine::document::text;
use azure_engine::provider::{AzureState, ExtensionRequest, Provider, Record};
use azure_engine::refusal::Refusal;
use azure_engine::store::State;

/// Types that have a health, of those that are simulated.
const TYPES: [&str; 6] = [
    "Microsoft.Compute/virtualMachines",
    "Microsoft.Compute/virtualMachineScaleSets",
    "Microsoft.ContainerService/managedClusters",
    "Microsoft.KeyVault/vaults",
    "Microsoft.Network/loadBalancers",
    "Microsoft.Storage/storageAccounts",
];

pub(crate) fn provider() -> Provider {
    Provider { extensions: vec![answer], ..Provider::new("Microsoft.ResourceHealth", Vec::new()) }
}

/// `{scope}/providers/Microsoft.ResourceHealth/availabilityStatuses[/current]`.
fn answer(azure: &mut AzureState, request: &ExtensionRequest<'_>) -> Option<Result<Answer, Refusal>> {
    let current = match request.segments {
        [kind] if kind.eq_ignore_ascii_case("availabilityStatuses") => false,
        [kind, name]
            if kind.eq_ignore_ascii_case("availabilityStatuses") && name.eq_ignore_ascii_case("current") =>
        {
            true
        }
        _ => return None,
    };
    if request.method != "GET" {
        return Some(Err(Refusal::method_not_allowed(request.method)));
    }
    let now = azure.now().to_string();
    let has_health = |record: &&Record| TYPES.contains(&record.resource_type.name());
    if current {
        let record = azure.store.get(request.scope).filter(has_health);
        return Some(match record {
            Some(record) => Ok(Answer::ok(status(record, &now))),
            None => Err(azure.not_found(&status_id(request.scope))),
        });
    }
    let here = azure.store.get(request.scope).into_iter().filter(|record| record.id.namespace().is_some());
    let below = azure.store.below(request.scope);
    let shown: Vec<Value> = here.chain(below).filter(has_health).map(|record| status(record, &now)).collect();
    Some(Ok(Answer::list(shown)))
}

fn status_id(of: &ResourceId) -> ResourceId {
    of.resource("Microsoft.ResourceHealth", "availabilityStatuses", "current")
}

fn status(record: &Record, now: &str) -> Value {
    let power = record.hidden.get("power").and_then(Value::as_str);
    let (state, summary) = match (record.state, power) {
        (State::Failed, _) => ("Degraded", "The last operation on this resource has failed."),
        (_, Some(power)) if power != "running" => {
            ("Unavailable", "This resource was stopped by who uses it.")
        }
        _ => ("Available", "There are no known platform problems that affect this resource."),
    };
    json!({
        "id": status_id(&record.id),
        "name": "current",
        "type": "Microsoft.ResourceHealth/AvailabilityStatuses",
        "location": text(&record.body, "location"),
        "properties": {
            "availabilityState": state,
            "title": state,
            "summary": summary,
            "reasonType": if state == "Unavailable" { "Customer Initiated" } else { "" },
            "reasonChronicity": "Persistent",
            "occuredTime": record.created.to_string(),
            "reportedTime": now,
        },
    })
}

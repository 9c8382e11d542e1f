//! What the preview prints, against what the journal holds afterwards.

use azure_simulator::RequestKind;
use azure_types::ResourceId;
use testkit::World;

/// The bug for which previews and journals differ today; `None` once the preview and the provider walk the
/// same way. Then every entry must agree.
pub const DIFFERS_TODAY: Option<&str> =
    Some("P13: the way of a Service is written twice, once for the preview and once for the provider");

/// One step as both sides say it.
fn step(action: &str, target: &str) -> String {
    let short = target.parse::<ResourceId>().map(|id| {
        let names: Vec<&str> = id.type_and_name_pairs().into_iter().map(|(_, name)| name).collect();
        let kind = id.resource_type();
        format!("{action} {} {}", kind.rsplit('/').next().unwrap_or_default(), names.join("/"))
    });
    short.unwrap_or_else(|_| format!("{action} {target}")).to_lowercase()
}

/// The steps of the preview now.
pub async fn planned(world: &World) -> Vec<String> {
    match world.preview().await {
        Ok(plan) => plan
            .plan
            .steps
            .iter()
            .map(|planned| {
                let delete = planned.action == planner::Action::Delete;
                step(if delete { "delete" } else { "write" }, planned.target.as_str())
            })
            .collect(),
        Err(error) => vec![format!("there is no preview: {error}")],
    }
}

/// The accepted writes and deletions since the journal was cleared.
pub fn done(world: &World) -> Vec<String> {
    let journal = world.azure.journal();
    let accepted = journal.entries.iter().filter(|entry| entry.status < 400 && entry.status != 0);
    accepted
        .filter_map(|entry| {
            let action = match entry.kind {
                RequestKind::Write => "write",
                RequestKind::Delete => "delete",
                _ => return None,
            };
            Some(step(action, entry.resource.as_deref().unwrap_or(&entry.path)))
        })
        .collect()
}

/// In which steps a preview and what was done after it differ; empty where they do not. Steps of one kind
/// that stand side by side have no order among themselves.
pub fn differences(planned: &[String], world: &World) -> Vec<String> {
    let done = done(world);
    let (ours, theirs) = (in_groups(planned), in_groups(&done));
    if ours == theirs {
        return Vec::new();
    }
    vec![format!("previewed {ours:#?}, done {theirs:#?}")]
}

fn in_groups(steps: &[String]) -> Vec<String> {
    let kind = |step: &String| step.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let mut steps = steps.to_vec();
    for group in steps.chunk_by_mut(|a, b| kind(a) == kind(b)) {
        group.sort();
    }
    steps
}

//! What the preview prints, against what the journal holds afterwards.

use azure_simulator::RequestKind;
use azure_types::ResourceId;
use testkit::World;

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

/// In which steps a preview and what was done after it differ; empty where they do not. Steps of one kind that
/// stand side by side have no order among themselves, and neither have the security group and the load balancer with
/// its members: of the security group only counts how many addresses were bought before it. What Azure refuses nobody can preview.
pub fn differences(planned: &[String], world: &World) -> Vec<String> {
    let done = done(world);
    if is_refused(world) || path(planned) == path(&done) {
        return Vec::new();
    }
    vec![format!("previewed {planned:#?}, done {done:#?}")]
}

/// Whether Azure refused a write for good: not because it was busy or somebody else was faster.
fn is_refused(world: &World) -> bool {
    let passing = [409, 412, 429];
    world.azure.journal().entries.iter().any(|entry| {
        matches!(entry.kind, RequestKind::Write | RequestKind::Delete)
            && (400..500).contains(&entry.status)
            && !passing.contains(&entry.status)
    })
}

/// The steps in an order that equal paths share, and for each write of the security group the number of public IPs
/// that were written before it.
fn path(steps: &[String]) -> (Vec<String>, Vec<usize>) {
    let is_group = |step: &&String| step.contains(" networksecuritygroups ");
    let bought = |until: usize| {
        steps.iter().take(until).filter(|step| step.starts_with("write publicipaddresses ")).count()
    };
    let groups = steps.iter().enumerate().filter(|(_, step)| is_group(step)).map(|(at, _)| bought(at));
    let others: Vec<String> = steps.iter().filter(|step| !is_group(step)).cloned().collect();
    (in_groups(&others), groups.collect())
}

fn in_groups(steps: &[String]) -> Vec<String> {
    let kind = |step: &String| step.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let mut steps = steps.to_vec();
    for group in steps.chunk_by_mut(|a, b| kind(a) == kind(b)) {
        group.sort();
    }
    steps
}

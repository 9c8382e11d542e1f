//! Compares the output of the preview with the journal afterwards.

use std::collections::BTreeSet;

use azure_simulator::RequestKind;
use azure_types::ResourceId;
use testkit::World;

/// One step in the notation of both sides.
fn step(action: &str, target: &str) -> String {
    let short = target.parse::<ResourceId>().map(|id| {
        let names: Vec<&str> = id.type_and_name_pairs().into_iter().map(|(_, name)| name).collect();
        let kind = id.resource_type();
        format!("{action} {} {}", kind.rsplit('/').next().unwrap_or_default(), names.join("/"))
    });
    short.unwrap_or_else(|_| format!("{action} {target}")).to_lowercase()
}

/// The steps of the current preview.
pub async fn planned(world: &World) -> Vec<String> {
    match world.preview().await {
        Ok(plan) => plan
            .plan
            .steps
            .iter()
            .map(|planned| {
                let action = match planned.action {
                    planner::Action::Create => "create",
                    planner::Action::Update => "update",
                    planner::Action::Delete => "delete",
                };
                step(action, planned.target.as_str())
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
                RequestKind::Write if entry.status == 201 => "create",
                RequestKind::Write => "update",
                RequestKind::Delete => "delete",
                _ => return None,
            };
            Some(step(action, entry.resource.as_deref().unwrap_or(&entry.path)))
        })
        .collect()
}

/// The steps in which a preview and the following writes differ; empty without any. Parallel steps of one type are
/// unordered, and so are the security group and the load balancer with its members: for the security group only the
/// number of addresses that were bought before it counts. Azure's refusals cannot be previewed, nor their consequences:
/// then only the accepted steps on public IPs are compared.
pub fn differences(planned: &[String], world: &World) -> Vec<String> {
    let done = done(world);
    let refused = refused(world);
    let is_compared = |step: &&String| {
        refused.is_empty()
            || step.contains(" publicipaddresses ") && !refused.iter().any(|target| step.ends_with(target))
    };
    let of = |steps: &[String]| path(&steps.iter().filter(is_compared).cloned().collect::<Vec<_>>());
    if of(planned) == of(&done) {
        return Vec::new();
    }
    vec![format!("previewed {planned:#?}, done {done:#?}")]
}

/// The same for many Services, each at its own pace: which resources are written, whatever the order and the number of
/// writes that they share.
pub fn differences_of_crowd(planned: &[String], world: &World) -> Vec<String> {
    let (planned, done) = (BTreeSet::from_iter(planned.iter().cloned()), BTreeSet::from_iter(done(world)));
    let missing = planned.difference(&done).map(|step| format!("previewed and not done: {step}"));
    let unforeseen = done.difference(&planned).map(|step| format!("done and not previewed: {step}"));
    missing.chain(unforeseen).collect()
}

/// The writes that Azure refused for good: not because it was busy or another write was faster.
fn refused(world: &World) -> Vec<String> {
    let passing = [409, 412, 429];
    let journal = world.azure.journal();
    let entries = journal.entries.iter().filter(|entry| {
        matches!(entry.kind, RequestKind::Write | RequestKind::Delete)
            && (400..500).contains(&entry.status)
            && !passing.contains(&entry.status)
    });
    entries.map(|entry| step("", entry.resource.as_deref().unwrap_or(&entry.path))).collect()
}

fn is_bought(step: &str) -> bool {
    step.contains(" publicipaddresses ") && !step.starts_with("delete ")
}

/// The steps in a normalised order, and for each write of the security group the number of public IPs that were written
/// before it.
fn path(steps: &[String]) -> (Vec<String>, Vec<usize>) {
    let is_group = |step: &&String| step.contains(" networksecuritygroups ");
    let bought = |until: usize| steps.iter().take(until).filter(|step| is_bought(step)).count();
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

//! The output of the demo: Services, load balancers, security rules, writes, calls.

use azure_simulator::view::{RuleView, Topology};
use azure_types::ResourceId;
use k8s::ObjectKey;

use super::stage::Stage;
use crate::screen::Tone;

/// The result for a Service.
pub struct Outcome {
    /// The Service.
    pub key: ObjectKey,
    /// Its latest warning, if it has no address.
    pub warning: Option<String>,
}

/// Each Service with its address, and the events of those that have none.
pub async fn services(stage: &Stage, outcomes: &[Outcome]) -> anyhow::Result<()> {
    stage.screen.heading("Services and their addresses");
    let mut rows = Vec::new();
    for Outcome { key, .. } in outcomes {
        let Some(service) = stage.service(key).await? else { continue };
        let addresses: Vec<&str> =
            service.status.load_balancer.ingress.iter().map(|ingress| ingress.ip.as_str()).collect();
        let ports: Vec<String> = service
            .spec
            .ports
            .iter()
            .map(|port| {
                let protocol = if port.protocol.is_empty() { "TCP" } else { &port.protocol };
                format!("{}/{protocol}", port.port)
            })
            .collect();
        let policy = &service.spec.external_traffic_policy;
        let addresses = if addresses.is_empty() { "none".to_owned() } else { addresses.join(", ") };
        rows.push([key.to_string(), addresses, ports.join(", "), policy.clone()]);
    }
    stage.screen.table(["SERVICE", "ADDRESS", "PORTS", "TRAFFIC"], &rows);
    for Outcome { key, warning } in outcomes {
        if let Some(warning) = warning {
            stage.screen.verdict(false, format_args!("{key} has no address: {warning}"));
        }
    }
    Ok(())
}

/// Each load balancer's rules, probes and pool.
pub fn load_balancers(stage: &Stage, topology: &Topology) {
    stage.screen.heading("Load balancers");
    let mut rows = Vec::new();
    for address in &topology.addresses {
        let Some(balancer) = &address.load_balancer else { continue };
        let shown = address.address.map(|ip| ip.to_string()).unwrap_or_default();
        for rule in &address.rules {
            rows.push([
                balancer.clone(),
                shown.clone(),
                rule_words(rule),
                probe_words(rule),
                pool_words(rule),
            ]);
        }
    }
    stage.screen.table(["LOAD BALANCER", "FRONTEND", "RULE", "PROBE", "POOL"], &rows);
}

fn rule_words(rule: &RuleView) -> String {
    format!("{} {}", rule.protocol, rule.port)
}

fn probe_words(rule: &RuleView) -> String {
    rule.probe.clone().unwrap_or_else(|| "none".to_owned())
}

fn pool_words(rule: &RuleView) -> String {
    let pool = rule.pool.as_deref().unwrap_or("none");
    format!("{pool}: {} of {} nodes healthy", rule.taking, rule.total)
}

/// The written rules, without the default ones of every group.
pub fn security_rules(stage: &Stage, topology: &Topology) {
    stage.screen.heading("Security rules");
    let mut rows = Vec::new();
    for group in &topology.security_groups {
        for rule in group.rules.iter().filter(|rule| !rule.is_default) {
            rows.push([
                rule.priority.to_string(),
                rule.access.clone(),
                rule.protocol.clone(),
                rule.sources.join(", "),
                rule.destinations.join(", "),
                rule.ports.join(", "),
            ]);
        }
    }
    stage.screen.table(["PRIORITY", "ACCESS", "PROTOCOL", "FROM", "TO", "PORTS"], &rows);
}

/// The writes to Azure since the last call, with their reasons.
pub fn writes(stage: &Stage, heading: &str) {
    stage.screen.heading(heading);
    let writes = stage.writes.take();
    if writes.is_empty() {
        stage.screen.line("  none");
    }
    for write in writes {
        let resource = match write.resource.parse::<ResourceId>() {
            Ok(id) => planner::describe_resource(&id),
            Err(_) => write.resource,
        };
        let sign = match write.action.as_str() {
            "create" => '+',
            "delete" => '-',
            _ => '~',
        };
        let owners = if write.owners.is_empty() { String::new() } else { format!(" for {}", write.owners) };
        stage.screen.line(format_args!("  {sign} {resource}{owners}"));
        for change in write.changes.split("; ").filter(|change| !change.is_empty()) {
            stage.screen.line(format_args!("      {}", stage.screen.paint(Tone::Quiet, change)));
        }
    }
}

/// The number of calls to Azure so far.
pub fn calls(stage: &Stage) {
    stage.screen.heading("Calls to Azure");
    let counts = stage.cluster.azure.journal().counts;
    let mut rows = vec![
        ["reads".to_owned(), counts.reads.to_string()],
        ["operation polls".to_owned(), counts.polls.to_string()],
        ["deletions".to_owned(), counts.deletes.to_string()],
        ["writes".to_owned(), counts.writes.to_string()],
    ];
    rows.extend(counts.writes_by_type.iter().map(|(kind, number)| [format!("  {kind}"), number.to_string()]));
    stage.screen.table(["CALLS", "NUMBER"], &rows);
}

//! Plans as text, in the style of Terraform: one block per step, refused Services, and a summary.

use std::fmt;

use azure_types::ResourceId;
use k8s::ObjectKey;

use super::cluster_plan::ClusterPlan;
use super::other_name::OtherClusterName;
use super::plan::{Action, Document, Plan, Step};
use super::refusal::Refusal;
use crate::model::name_some;

/// A resource's kind and name in words: `load balancer kubernetes`.
pub fn describe_resource(target: &ResourceId) -> String {
    let pairs = target.type_and_name_pairs();
    let kind = match pairs.last().map(|(kind, _)| kind.to_ascii_lowercase()).as_deref() {
        Some("loadbalancers") => "load balancer",
        Some("publicipaddresses") => "public IP",
        Some("privatelinkservices") => "private link service",
        Some("privateendpointconnections") => "private endpoint connection",
        Some("subnets") => "subnet",
        Some("networksecuritygroups") => "security group",
        Some("routetables") => "route table",
        Some("virtualmachinescalesets") => "scale set",
        Some("virtualmachines") => "instance",
        Some("networkinterfaces") => "network interface",
        _ => return target.to_string(),
    };
    let names: Vec<&str> = pairs.iter().map(|(_, name)| *name).collect();
    format!("{kind} {}", names.join("/"))
}

/// Writes the steps, one block each; nothing for a plan without steps.
fn write_steps(plan: &Plan, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if plan.is_empty() {
        return Ok(());
    }
    f.write_str("In this order (+ create, ~ change, - delete):\n")?;
    for step in &plan.steps {
        let sign = match step.action {
            Action::Create => '+',
            Action::Update => '~',
            Action::Delete => '-',
        };
        write!(f, "\n  {sign} {}", describe_resource(&step.target))?;
        if let Some(group) = step.target.group_name() {
            write!(f, " (resource group {group})")?;
        }
        f.write_str("\n")?;
        for change in &step.changes {
            writeln!(f, "      {change}")?;
        }
        if !step.on_behalf_of.is_empty() {
            let keys: Vec<String> = step.on_behalf_of.iter().map(ToString::to_string).collect();
            writeln!(f, "      for {}", keys.join(", "))?;
        }
        write_ownership(step, f)?;
    }
    f.write_str("\n")
}

/// Writes the proofs for a step that deletes its target or whose target belongs to one Service alone.
fn write_ownership(step: &Step, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_of_one = matches!(step.document, Some(Document::PublicIp(_) | Document::PrivateLink(_)));
    let whole = step.ownership.iter().filter(|proof| proof.part().is_none());
    for proof in whole.filter(|_| step.action == Action::Delete || is_of_one) {
        let facts: Vec<String> = proof.evidence().iter().map(ToString::to_string).collect();
        writeln!(f, "      ours: {}", facts.join("; "))?;
    }
    Ok(())
}

fn write_counts(plan: &Plan, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "Plan: {} to create, {} to change, {} to delete",
        plan.count(Action::Create),
        plan.count(Action::Update),
        plan.count(Action::Delete)
    )
}

const NO_CHANGES: &str = "No changes: Azure is as the cluster wants it.\n";

impl fmt::Display for Plan {
    /// Writes the steps, then their number by action.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str(NO_CHANGES);
        }
        write_steps(self, f)?;
        write_counts(self, f)?;
        f.write_str(".\n")
    }
}

/// Groups the refused Services by reason. Another name of the cluster is one reason, however many Services it concerns.
fn grouped(refused: &[(ObjectKey, Refusal)]) -> Vec<(Vec<String>, String)> {
    let mut other_name: Option<OtherClusterName> = None;
    for (_, refusal) in refused {
        if let Refusal::OtherClusterName(found) = refusal {
            match &mut other_name {
                Some(all) => all.join(found),
                none => *none = Some(found.clone()),
            }
        }
    }
    let mut groups: Vec<(Vec<String>, String)> = Vec::new();
    for (key, refusal) in refused {
        let words = match (refusal, &other_name) {
            (Refusal::OtherClusterName(_), Some(all)) => all.to_string(),
            _ => refusal.to_string(),
        };
        match groups.iter_mut().find(|(_, known)| *known == words) {
            Some((keys, _)) => keys.push(key.to_string()),
            None => groups.push((vec![key.to_string()], words)),
        }
    }
    groups
}

impl fmt::Display for ClusterPlan {
    /// Writes the steps, the Services that are refused or wait, notices and warnings, and one line that counts them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_steps(&self.plan, f)?;
        let refused = grouped(&self.refused);
        for (keys, words) in &refused {
            let are = if keys.len() == 1 { "is" } else { "are" };
            writeln!(f, "  ! {} {are} refused: {words}\n", name_some(keys))?;
        }
        for (key, wait) in &self.waiting {
            writeln!(f, "  ! {key} waits: {wait}\n")?;
        }
        for notice in &self.notices {
            writeln!(f, "  ! {} ({}): {}\n", notice.service, notice.reason, notice.message)?;
        }
        let is_new = |warning: &&String| !refused.iter().any(|(_, words)| words == *warning);
        for warning in self.warnings.iter().filter(is_new) {
            writeln!(f, "  ! Warning: {warning}\n")?;
        }
        if self.plan.is_empty() && self.refused.is_empty() && self.waiting.is_empty() && self.unrouted == 0 {
            return f.write_str(NO_CHANGES);
        }
        write_counts(&self.plan, f)?;
        let counts = [(self.refused.len(), "refused", "refused"), (self.waiting.len(), "waits", "wait")];
        for (count, one, several) in counts {
            match count {
                0 => {}
                1 => write!(f, "; 1 Service {one}")?,
                count => write!(f, "; {count} Services {several}")?,
            }
        }
        match self.unrouted {
            0 => {}
            1 => f.write_str("; 1 range of pods gets no route")?,
            count => write!(f, "; {count} ranges of pods get no route")?,
        }
        f.write_str(".\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_described_by_kind_and_name() {
        let group = ResourceId::group("s", "rg");
        let network = |kind: &str| group.resource("Microsoft.Network", kind, "one");
        let compute = |kind: &str| group.resource("Microsoft.Compute", kind, "one");
        for (id, expected) in [
            (network("loadBalancers"), "load balancer one"),
            (network("LOADBALANCERS"), "load balancer one"),
            (network("publicIPAddresses"), "public IP one"),
            (network("privateLinkServices"), "private link service one"),
            (
                network("privateLinkServices").child("privateEndpointConnections", "two"),
                "private endpoint connection one/two",
            ),
            (network("virtualNetworks").child("subnets", "two"), "subnet one/two"),
            (network("networkSecurityGroups"), "security group one"),
            (network("routeTables"), "route table one"),
            (network("networkInterfaces"), "network interface one"),
            (compute("virtualMachineScaleSets"), "scale set one"),
            (compute("virtualMachineScaleSets").child("virtualMachines", "2"), "instance one/2"),
        ] {
            assert_eq!(describe_resource(&id), expected);
        }
        let other = network("natGateways");
        assert_eq!(describe_resource(&other), other.to_string());
    }
}

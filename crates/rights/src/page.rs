//! The tables of `docs/rights.md`.

use crate::azure::{GRANTS, Grant};
use crate::kubernetes::{RULES, Reach, Rule};
use crate::{Feature, Program};

/// A page whose tables are written anew: each begins after `<!-- table: NAME -->` and ends before `<!-- end -->`.
///
/// Tables that the page does not have are left out, and unknown names stay as they are.
pub fn with_tables(page: &str) -> String {
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let name = line.strip_prefix("<!-- table: ").and_then(|rest| rest.strip_suffix(" -->"));
        let Some(rows) = name.and_then(table) else { continue };
        rows.iter().for_each(|row| text.push_str(&format!("{row}\n")));
        for line in lines.by_ref() {
            if line == END {
                text.push_str(&format!("{END}\n"));
                break;
            }
        }
    }
    text
}

const END: &str = "<!-- end -->";

fn table(name: &str) -> Option<Vec<String>> {
    match name {
        "calls" => Some(grants(Program::ControllerManager, |grant| !grant.is_join)),
        "joins" => Some(grants(Program::ControllerManager, |grant| grant.is_join)),
        "kubernetes" => Some(rules(Program::ControllerManager)),
        "disk controller calls" => Some(grants(Program::DiskController, |_| true)),
        "disk controller kubernetes" => Some(rules(Program::DiskController)),
        "disk node kubernetes" => Some(rules(Program::DiskNode)),
        "file controller calls" => Some(grants(Program::FileController, |_| true)),
        "file node calls" => Some(grants(Program::FileNode, |_| true)),
        "file controller kubernetes" => Some(rules(Program::FileController)),
        "file node kubernetes" => Some(rules(Program::FileNode)),
        "snapshot controller kubernetes" => Some(rules(Program::SnapshotController)),
        _ => None,
    }
}

fn grants(program: Program, is_in: impl Fn(&Grant) -> bool) -> Vec<String> {
    let of_program = GRANTS.iter().filter(|grant| grant.program == program && is_in(grant));
    let mut rows = vec!["| action | where | feature | for |".to_owned(), "|---|---|---|---|".to_owned()];
    rows.extend(of_program.map(|grant| {
        let features: Vec<&str> =
            grant.features.iter().filter_map(|all| all.last()).map(|feature| feature.name()).collect();
        let features = if grant.features.iter().all(|all| all.last() == Some(&Feature::VirtualMachines)) {
            Feature::VirtualMachines.name().to_owned()
        } else {
            features.join(", ")
        };
        format!("| {} | {} | {features} | {} |", actions(grant.actions), grant.place.words(), grant.purpose)
    }));
    rows
}

/// Actions, the verbs of one type behind one another.
fn actions(actions: &[&str]) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut previous = "";
    for action in actions {
        let (resource, verb) = action.rsplit_once('/').unwrap_or(("", action));
        words.push(if resource == previous { format!("`{verb}`") } else { format!("`{action}`") });
        previous = resource;
    }
    words.join(", ")
}

fn rules(program: Program) -> Vec<String> {
    let mut rows = vec!["| feature | if | rule | for |".to_owned(), "|---|---|---|---|".to_owned()];
    let mut previous = None;
    for feature in Feature::ALL {
        let is_of = |rule: &&Rule| rule.programs.contains(&program) && rule.feature == feature;
        for rule in RULES.iter().filter(is_of) {
            let (name, condition) = match previous.replace(feature) {
                Some(before) if before == feature => ("", ""),
                _ => (feature.name(), feature.condition()),
            };
            rows.push(format!("| {name} | {condition} | {} | {} |", in_words(rule), rule.purpose));
        }
    }
    rows
}

fn in_words(rule: &Rule) -> String {
    let resources: Vec<String> = rule.resources.iter().map(|resource| format!("`{resource}`")).collect();
    let names: Vec<String> = rule.names.iter().map(|name| format!("`{name}`")).collect();
    let names = if names.is_empty() { String::new() } else { format!(" {}", names.join(", ")) };
    let place = match rule.reach {
        Reach::Cluster => "",
        Reach::ElectionNamespace | Reach::SecretNamespace | Reach::KubeSystem => " in kube-system",
        Reach::AccountKeyNamespaces => " in each namespace with account keys",
    };
    format!("{} {}{names}{place}", rule.verbs.join(", "), resources.join(", "))
}

//! Plans as text, in a form that users of Terraform know.

use std::fmt;

use serde_json::Value;

use crate::kind::describe;
use crate::plan::{Action, Plan, State};

impl fmt::Display for Plan {
    /// A line for each goal that is not reached, with what changes below it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_reached() {
            return f.write_str("No changes: Azure is as declared.\n");
        }
        let mut counts = [0usize; 3];
        for (goal, state) in &self.items {
            let name = describe(&goal.id);
            let count = |counts: &mut [usize; 3], action: Action| counts[action as usize] += 1;
            match state {
                State::Now(step) => {
                    count(&mut counts, step.action);
                    writeln!(f, "  {} {name}", sign(step.action))?;
                    for change in &step.changes {
                        writeln!(f, "      {change}")?;
                    }
                    if let (Action::Delete, Some(proof)) = (step.action, &step.proof) {
                        writeln!(f, "      it belongs to {proof}")?;
                    }
                }
                State::Waits(first) => {
                    let action = if goal.wanted { Action::Create } else { Action::Delete };
                    count(&mut counts, action);
                    let names: Vec<String> = first.iter().map(describe).collect();
                    writeln!(f, "  {} {name}\n      after {}", sign(action), names.join(", "))?;
                }
                _ => {
                    if let Some(remark) = state.remark(&name) {
                        writeln!(f, "  {remark}")?;
                    }
                }
            }
        }
        let [create, update, delete] = counts;
        writeln!(f, "Plan: {create} to create, {update} to change, {delete} to delete.")
    }
}

pub(crate) fn sign(action: Action) -> char {
    match action {
        Action::Create => '+',
        Action::Update => '~',
        Action::Delete => '-',
    }
}

/// The facts about a new resource that matter most: the member of its document, and the words before it.
const FACTS: [(&str, &str); 13] = [
    ("/sku/name", ""),
    ("/sku/capacity", "machines "),
    ("/properties/hardwareProfile/vmSize", ""),
    ("/properties/priority", ""),
    ("/properties/virtualMachineProfile/priority", ""),
    ("/properties/addressSpace/addressPrefixes", ""),
    ("/properties/addressPrefixes", ""),
    ("/properties/addressPrefix", ""),
    ("/properties/publicIPAllocationMethod", ""),
    ("/properties/publicIPAddressVersion", ""),
    ("/properties/dnsSettings/domainNameLabel", "name "),
    ("/properties/frontendPort", "port "),
    ("/zones", "zones "),
];

/// A document in a few words; empty if there is nothing to show.
pub(crate) fn facts(document: &Value) -> String {
    let words = FACTS.iter().filter_map(|(pointer, before)| {
        let value = match document.pointer(pointer)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            _ => return None,
        };
        let before = if *before == "zones " && !value.contains(',') { "zone " } else { *before };
        (!value.is_empty()).then(|| format!("{before}{value}"))
    });
    let mut words: Vec<String> = words.collect();
    let names = |list: &str, word: &str| {
        let items = document.pointer(list)?.as_array().filter(|items| !items.is_empty())?;
        let names: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
        Some(format!("{word} {}", names.join(", ")))
    };
    words.extend(names("/properties/securityRules", "rules"));
    words.extend(names("/properties/loadBalancingRules", "rules"));
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_described_by_its_facts() {
        for (document, expected) in [
            (json!({}), ""),
            (json!({ "sku": { "name": "Standard", "capacity": 3 } }), "Standard; machines 3"),
            (json!({ "sku": { "name": "" }, "zones": [] }), ""),
            (json!({ "sku": { "name": true } }), ""),
            (json!({ "zones": ["1"] }), "zone 1"),
            (json!({ "zones": ["1", "2"] }), "zones 1, 2"),
            (json!({ "properties": { "addressPrefixes": ["a", "b"], "frontendPort": 22 } }), "a, b; port 22"),
            (json!({ "properties": { "securityRules": [] } }), ""),
            (json!({ "properties": { "securityRules": [{ "name": "a" }, { "name": "b" }] } }), "rules a, b"),
            (json!({ "properties": { "loadBalancingRules": [{ "name": "a" }] } }), "rules a"),
        ] {
            assert_eq!(facts(&document), expected, "{document}");
        }
    }
}

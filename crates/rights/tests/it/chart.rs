//! The charts give the rights of the tables, all features together, and no others.

use std::collections::BTreeSet;

use rights::Program;
use rights::kubernetes::RULES;
use serde_json::Value;

use crate::root;

/// A right: group, resource and verb.
type Right = (String, String, String);

fn of_table(program: Program) -> BTreeSet<Right> {
    let rules = RULES.iter().filter(|rule| rule.programs.contains(&program));
    rules
        .flat_map(|rule| {
            let each = move |resource: &&'static str| {
                rule.verbs.iter().map(move |verb| (rule.group, *resource, *verb)).collect::<Vec<_>>()
            };
            rule.resources.iter().flat_map(each)
        })
        .map(|(group, resource, verb)| (group.to_owned(), resource.to_owned(), verb.to_owned()))
        .collect()
}

/// The rights in a template, whatever its conditions are.
fn of_template(text: &str) -> BTreeSet<Right> {
    let is_text = |line: &&str| !line.trim_start().starts_with("{{");
    let plain: Vec<String> = text
        .lines()
        .filter(is_text)
        .map(|line| {
            if line.contains("{{") {
                line.replace("{{", "'").replace("}}", "'").replace('"', "")
            } else {
                line.to_owned()
            }
        })
        .collect();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&plain.join("\n")).unwrap();
    let texts = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    let mut rights = BTreeSet::new();
    for rule in documents.iter().flat_map(|it| it["rules"].as_array().into_iter().flatten()) {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    rights.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    rights
}

#[test]
fn the_charts_have_the_rights_of_the_tables() {
    let (cloud_provider, disks) = ("cloud-provider-azure", "azuredisk-csi-driver");
    let files = "azurefile-csi-driver";
    for (program, chart, file) in [
        (Program::ControllerManager, cloud_provider, "controller-manager/rights.yaml"),
        (Program::NodeManager, cloud_provider, "node-manager/rights.yaml"),
        (Program::DiskController, disks, "controller/rights.yaml"),
        (Program::DiskNode, disks, "node/rights.yaml"),
        (Program::SnapshotController, disks, "snapshots/rights.yaml"),
        (Program::FileController, files, "controller/rights.yaml"),
        (Program::FileNode, files, "node/rights.yaml"),
        (Program::SnapshotController, files, "snapshots/rights.yaml"),
    ] {
        let template = root().join("deploy/charts").join(chart).join("templates").join(file);
        let text = std::fs::read_to_string(template).unwrap();
        let (chart, table) = (of_template(&text), of_table(program));
        assert!(!table.is_empty());
        assert_eq!(chart, table, "{program:?}");
    }
}

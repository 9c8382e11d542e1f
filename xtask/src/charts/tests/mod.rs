//! The charts, rendered by helm. Where helm cannot be had the tests say so and do nothing; in CI they fail.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod as_people_have_them;
mod clusterctl;
mod command_lines;
mod disk_driver;
mod file_driver;
mod rights;
mod takeover;

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;

/// Objects by kind, namespace and name.
type Objects = BTreeMap<(String, String, String), Value>;

fn identity(object: &Value) -> (String, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = if object["metadata"].is_null() { object } else { &object["metadata"] };
    (text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

fn objects(text: &str) -> Objects {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let all = all.into_iter().filter(|object| !object.is_null());
    all.map(|object| (identity(&object), object)).collect()
}

/// The objects of a chart with these values.
fn rendered(helm: &Helm, chart: &str, values: &Value) -> Objects {
    let text = helm.template(&folder(chart), values).unwrap_or_else(|error| panic!("{values}: {error}"));
    objects(&text)
}

/// The object of a kind with this name.
fn object<'a>(objects: &'a Objects, kind: &str, name: &str) -> &'a Value {
    let found = objects.iter().find(|((a_kind, _, a_name), _)| a_kind == kind && a_name == name);
    found.unwrap_or_else(|| panic!("there is no {kind} {name}")).1
}

/// A container of a workload.
fn container<'a>(workload: &'a Value, name: &str) -> &'a Value {
    let all = workload["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap()
}

/// The arguments of a container of a workload.
fn arguments<'a>(workload: &'a Value, name: &str) -> Vec<&'a str> {
    container(workload, name)["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

/// `UPDATE_CORPUS=1` prints them, for those who have the tests built.
#[test]
fn tables_and_manifests_are_what_they_are_printed_from() {
    run(&Arguments { check: std::env::var_os("UPDATE_CORPUS").is_none() }).unwrap();
}

#[test]
fn each_chart_has_the_version_of_the_workspace_and_passes_helms_own_judge() {
    let helm = Helm::find().unwrap();
    for chart in CHARTS {
        let text = std::fs::read_to_string(folder(chart).join("Chart.yaml")).unwrap();
        let about: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(about["name"], chart);
        assert_eq!(about["appVersion"], env!("CARGO_PKG_VERSION"), "{chart}");
        assert_eq!(about["version"], env!("CARGO_PKG_VERSION"), "{chart}");
        if let Some(helm) = &helm {
            helm.lint(&folder(chart)).unwrap();
        }
    }
}

/// Each default is of the type that the schema asks for, and no default is missing in the schema.
#[test]
fn the_defaults_are_those_that_the_schema_knows() {
    for chart in CHARTS {
        let read = Chart::read(&folder(chart)).unwrap();
        for (path, key) in read.keys() {
            assert!(!key.description.is_empty(), "{chart}: {path} has no description");
        }
        let Some(helm) = Helm::find().unwrap() else { return };
        helm.template(&folder(chart), &read.defaults).unwrap();
    }
}

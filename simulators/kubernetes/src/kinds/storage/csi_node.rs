//! CSINodes.

use std::collections::BTreeSet;

use k8s_openapi::api::storage::v1::CSINode;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    unconditional_update: false,
    deletion_returns_object: true,
    columns: &[NAME, Column::length("Drivers", "/spec/drivers"), AGE],
    validate,
    example: r#"{"spec": {"drivers": [{"name": "example.com", "nodeID": "n"}]}}"#,
    ..BuiltinKind::cluster::<CSINode>()
};

fn validate(object: &Value, causes: &mut Causes) {
    let mut names = BTreeSet::new();
    for (index, driver) in list_at(object, "/spec/drivers").iter().enumerate() {
        let at = |member: &str| format!("spec.drivers[{index}].{member}");
        let name = text_at(driver, "/name");
        if name.is_empty() {
            causes.push(Invalid::required(at("name"), ""));
        } else if !names.insert(name) {
            causes.push(Invalid::duplicate(at("name"), format!("{name:?}")));
        }
        if text_at(driver, "/nodeID").is_empty() {
            causes.push(Invalid::required(at("nodeID"), ""));
        }
    }
}

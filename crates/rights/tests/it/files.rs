//! The files of `deploy/rights` and the tables of `docs/rights.md` are those of the tables.
//!
//! `UPDATE_RIGHTS=1 cargo test -p rights files` writes them anew.

use std::collections::BTreeSet;
use std::path::Path;

use rights::files::files;
use rights::page;
use serde_json::Value;

use crate::root;

/// Files of the folder that are written by hand.
const BY_HAND: [&str; 2] = ["README.md", "audit-policy.yaml"];

fn is_update() -> bool {
    std::env::var_os("UPDATE_RIGHTS").is_some_and(|value| value == "1")
}

fn is_same(path: &Path, text: &str) -> bool {
    let found = std::fs::read_to_string(path).unwrap_or_default();
    if found != text && is_update() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        return true;
    }
    found == text
}

/// The paths of all files below a folder.
fn below(folder: &Path, prefix: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            found.extend(below(&path, &format!("{name}/")));
        } else {
            found.insert(name);
        }
    }
    found
}

#[test]
fn the_files_are_what_they_are_printed_from() {
    let folder = root().join("deploy/rights");
    let files = files();
    let stale: Vec<&String> = files
        .iter()
        .filter(|(path, text)| !is_same(&folder.join(path), text))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(stale, Vec::<&String>::new(), "run UPDATE_RIGHTS=1 cargo test -p rights files");
    let expected: BTreeSet<String> = files.into_keys().chain(BY_HAND.map(str::to_owned)).collect();
    assert_eq!(below(&folder, ""), expected, "files that are printed no more, or not yet");
}

#[test]
fn the_page_has_the_tables() {
    let path = root().join("docs/rights.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let text = page::with_tables(&page);
    assert!(is_same(&path, &text), "run UPDATE_RIGHTS=1 cargo test -p rights files");
    for name in [
        "calls",
        "joins",
        "kubernetes",
        "disk controller calls",
        "file controller calls",
        "file node kubernetes",
    ] {
        assert!(page.contains(&format!("<!-- table: {name} -->")), "{name}");
    }
    assert_eq!(page.matches("<!-- table: ").count(), page.matches("<!-- end -->").count());
}

#[test]
fn the_text_of_each_manifest_has_the_objects_of_its_role() {
    for program in rights::Program::ALL {
        for feature in rights::Feature::ALL {
            let roles = rights::kubernetes::Role::of(program, feature, rights::kubernetes::USUAL);
            let text = rights::kubernetes::yaml(&roles);
            let read: Vec<Value> =
                if text.is_empty() { Vec::new() } else { serde_saphyr::from_multiple(&text).unwrap() };
            let expected: Vec<Value> = roles.iter().flat_map(|role| role.objects()).collect();
            assert_eq!(read, expected, "{program:?} {feature:?}");
        }
    }
}

/// Each program with a service account is logged, and nothing else.
#[test]
fn the_audit_policy_logs_the_accounts_of_our_programs() {
    let text = std::fs::read_to_string(root().join("deploy/rights/audit-policy.yaml")).unwrap();
    let policy: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(policy["omitStages"], serde_json::json!(["RequestReceived"]));
    let rules = policy["rules"].as_array().unwrap();
    let users = [
        "kube-system:cloud-controller-manager",
        "kube-system:cloud-node-manager",
        "kube-system:csi-azuredisk-controller-sa",
        "kube-system:csi-azuredisk-node-sa",
        "kube-system:csi-azurefile-controller-sa",
        "kube-system:csi-azurefile-node-sa",
        "kube-system:csi-snapshot-controller-sa",
        "capz-system:capz-manager",
    ]
    .map(|account| format!("system:serviceaccount:{account}"));
    assert_eq!(rules[0], serde_json::json!({"level": "Metadata", "users": users}));
    assert_eq!(rules[1], serde_json::json!({"level": "None"}));
    let bound: BTreeSet<String> = files()
        .values()
        .filter(|text| text.contains("kind: ServiceAccount"))
        .flat_map(|text| serde_saphyr::from_multiple::<Value>(text).unwrap())
        .flat_map(|object| object["subjects"].as_array().cloned().unwrap_or_default())
        .map(|subject| {
            format!(
                "system:serviceaccount:{}:{}",
                subject["namespace"].as_str().unwrap(),
                subject["name"].as_str().unwrap()
            )
        })
        .collect();
    assert!(bound.iter().all(|account| users.contains(account)), "{bound:?}");
}

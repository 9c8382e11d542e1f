//! The members that the kinds are known to have.

use std::collections::BTreeSet;
use std::path::Path;

use operator_resources::Kind;
use serde_json::json;

use crate::contract::{Shapes, folder, kinds};
use crate::known::{Table, document, parse};
use crate::paths::an_object;

/// The members of a kind that can be written, as `src/table/members.txt` has them.
fn members(kind: &Kind, shapes: &[(Shapes, serde_json::Value)]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (shapes, root) in shapes {
        shapes.walk(root, "", 0, &mut |path, shape| {
            let path = path.replace("[]", "");
            if path.is_empty() || path == "name" {
                return path.is_empty();
            }
            found.insert(format!("{} {path}", kind.kind));
            // A resource within a resource is stated by its ID, unless it is a part of its own.
            let is_part = kind.nested.iter().any(|list| path == format!("properties.{list}"));
            let is_resource = !shape["o"]["properties"].is_null() && !is_part;
            if is_resource {
                found.insert(format!("{} {path}.id", kind.kind));
            }
            !is_resource
        });
    }
    found
}

/// Azure's contract has no member that the list lacks. `UPDATE_MEMBERS=1` adds what is new.
#[test]
fn all_published_members_are_known() {
    let Some(folder) = folder() else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/table/members.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let listed: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let published: BTreeSet<String> =
        kinds(&folder).flat_map(|(kind, shapes)| members(kind, &shapes)).collect();
    assert!(published.len() > 1000, "{}", published.len());
    if std::env::var_os("UPDATE_MEMBERS").is_some() {
        let all: Vec<&str> = listed.union(&published).map(String::as_str).collect();
        std::fs::write(&path, all.join("\n") + "\n").unwrap();
        return;
    }
    let missing: Vec<_> = published.difference(&listed).collect();
    assert!(missing.is_empty(), "run with UPDATE_MEMBERS=1 to add {missing:?}");
}

/// A member that Azure does not have is written all the same, and reported: at the uppermost level that is unknown.
#[test]
fn an_unknown_member_is_kept_and_reported() {
    let spec = json!({
        "dnsPrefix": "blue",
        "networkProfle": { "networkPlugin": "azure" },
        "tags": { "networkProfle": "free" },
        "addonProfiles": { "omsagent": { "enabled": true, "configs": {} } },
        "agentPoolProfiles": [{ "name": "pool0", "vnetSubnetRefrence": { "armId": "/subscriptions/1" } }],
        "identityProfile": { "kubeletidentity": { "madeUpReference": { "armId": "/subscriptions/1" } } },
    });
    let document = document(&parse(&an_object("ManagedCluster", spec)), &Table::default());
    assert_eq!(
        document.unknown,
        [
            "spec.addonProfiles.omsagent.configs",
            "spec.agentPoolProfiles[0].vnetSubnetRefrence",
            "spec.identityProfile.kubeletidentity.madeUpReference",
            "spec.networkProfle",
        ]
    );
    assert_eq!(document.value["properties"]["networkProfle"], json!({ "networkPlugin": "azure" }));
    let kubelet = &document.value["properties"]["identityProfile"]["kubeletidentity"];
    assert_eq!(kubelet["madeUpId"], json!("/subscriptions/1"));
}

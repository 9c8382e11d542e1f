//! What the established provider has created for an object with raw resources, as its own.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use operator_resources::Policy;

use super::place::Placed;
use super::record::{OWNED_KINDS, Record, Recorded};
use crate::operator::OperatorObject;

/// Records what objects of the operator stand for: their owner has created it, and deletes it.
pub fn record_taken_over(annotations: &mut BTreeMap<String, String>, objects: &[OperatorObject]) {
    let mut record = Record::of(annotations);
    let before = record.0.len();
    let owned = annotations.get(OWNED_KINDS).cloned().unwrap_or_default();
    for object in objects {
        let Some(id) = object.managed().filter(|id| !record.0.contains_key(*id)) else { continue };
        let Some(version) = version_of(object, &owned) else { continue };
        let recorded = Recorded {
            group: object.kind.group.to_owned(),
            version,
            kind: object.kind.kind.to_owned(),
            name: object.name.clone(),
            is_managed: true,
        };
        record.0.insert(id.clone(), recorded);
    }
    if record.0.len() > before {
        annotations.extend(record.annotations());
        // Kinds of objects whose resources do not exist yet stay in use.
        let mut kinds = annotations.get(OWNED_KINDS).cloned().unwrap_or_default();
        for kind in owned.split(';').filter(|kind| !kind.is_empty()) {
            if !kinds.split(';').any(|known| known == kind) {
                kinds = format!("{kinds};{kind}");
            }
        }
        annotations.insert(OWNED_KINDS.to_owned(), kinds);
    }
}

/// The version in which an object is declared, or else the one in which it is stored, if the table has it: what is
/// recorded in another one could not be deleted.
fn version_of(object: &OperatorObject, owned: &str) -> Option<String> {
    let kind = operator_resources::find(object.kind.group, object.kind.kind)?;
    let declared = owned.split(';').filter_map(|owned| {
        let mut parts = owned.splitn(3, '.');
        let (name, version, group) = (parts.next()?, parts.next()?, parts.next()?);
        ((name, group) == (kind.kind, kind.group)).then_some(version)
    });
    let is_known = |version: &&str| {
        let version = operator_resources::api_version(version);
        version.is_some_and(|version| kind.versions.contains(&version.as_str()))
    };
    let found = declared.chain([object.version()]).find(is_known).map(str::to_owned);
    found.or_else(|| {
        Some(format!("v1api{}", kind.versions.last()?.replace("-preview", "preview").replace('-', "")))
    })
}

/// Applies the policies of the operator's objects that the raw resources themselves do not declare.
pub fn keep(placed: &mut [Placed], kept: &BTreeMap<ResourceId, String>) {
    for it in placed.iter_mut().filter(|it| it.is_managed()) {
        let policy = it.id().and_then(|id| kept.get(id)).map(String::as_str);
        let policies = [Policy::Skip, Policy::DetachOnDelete];
        if let Some(policy) = policies.into_iter().find(|known| policy == Some(known.as_str())) {
            it.resource.policy = policy;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::operator::kinds;

    const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";

    fn object(kind: &str, api: &str, name: &str, annotations: Value) -> OperatorObject {
        let kind = kinds().iter().find(|it| it.kind == kind).unwrap();
        let id = format!("/subscriptions/s/resourceGroups/{name}");
        let object = json!({
            "apiVersion": api, "kind": kind.kind,
            "metadata": { "name": name, "annotations": annotations, "ownerReferences": [{
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureASOManagedCluster", "uid": "u",
                "controller": true }] },
            "status": { "id": id, "conditions": [{ "type": "Ready", "status": "True", "reason": "Succeeded" }] },
        });
        OperatorObject::of(kind, &object).unwrap()
    }

    #[test]
    fn what_the_operator_made_is_recorded_in_a_version_in_which_it_can_be_deleted() {
        let group = |name: &str, annotations: Value| {
            object("ResourceGroup", "resources.azure.com/v1api20200601storage", name, annotations)
        };
        let objects = [
            group("made", json!({ POLICY: "manage" })),
            group("kept", json!({ POLICY: "detach-on-delete" })),
            object("NatGateway", "network.azure.com/v1api19990101storage", "odd", json!({})),
            object("BastionHost", "network.azure.com/v1api20240301storage", "unserved", json!({})),
        ];
        let owned =
            "ResourceGroup.v1api20200601.resources.azure.com;Fleet.v1api20250301.containerservice.azure.com";
        let mut annotations = BTreeMap::from([(OWNED_KINDS.to_owned(), owned.to_owned())]);
        record_taken_over(&mut annotations, &objects);
        let id = |name: &str| ResourceId::group("s", name);
        let record = Record::of(&annotations);
        assert_eq!(record.0.keys().cloned().collect::<Vec<_>>(), [id("made"), id("odd")]);
        assert_eq!(record.0[&id("made")].version, "v1api20200601");
        assert_eq!(record.0[&id("odd")].version, "v1api20240301");
        let kinds: Vec<&str> = annotations[OWNED_KINDS].split(';').collect();
        assert!(owned.split(';').all(|kind| kinds.contains(&kind)), "{kinds:?}");
        let before = annotations.clone();
        record_taken_over(&mut annotations, &objects);
        assert_eq!(annotations, before, "once");
    }
}

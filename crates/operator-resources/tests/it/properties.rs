//! What holds for every specification and every patch.

use operator_resources::{Patch, find};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::known::{Table, document, parse};
use crate::paths::{an_object, leaves};

/// A text that occurs once in nearly every specification.
fn text() -> impl Strategy<Value = Value> {
    "[a-z]{6}".prop_map(Value::from)
}

fn reference() -> impl Strategy<Value = Value> {
    "[a-z]{6}".prop_map(|name| json!({ "armId": format!("/subscriptions/1/resourceGroups/{name}") }))
}

/// An object with some of these members; in a patch, some are null.
fn members(patch: bool, of: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let member = move |strategy: BoxedStrategy<Value>| {
        let null = if patch { Just(Some(Value::Null)).boxed() } else { Just(None).boxed() };
        prop_oneof![2 => Just(None), 1 => null, 3 => strategy.prop_map(Some)].boxed()
    };
    let (names, strategies): (Vec<_>, Vec<_>) = of.into_iter().map(|(name, of)| (name, member(of))).unzip();
    let object = move |values: Vec<Option<Value>>| {
        let present = names.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
        Value::Object(present.collect())
    };
    strategies.prop_map(object).boxed()
}

/// An object whose keys are the user's.
fn map(patch: bool, of: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let names = ["omsagent", "aReference", "bFromConfig", "reference", "x/y~z"];
    members(patch, names.into_iter().map(|name| (name, of.clone())).collect())
}

/// A specification of a managed cluster, or a merge patch of one.
fn specification(patch: bool) -> BoxedStrategy<Value> {
    let texts = || map(patch, text().boxed());
    let of = |named| members(patch, named);
    let identities = vec(reference().prop_map(|one| json!({ "reference": one })), 0..3).prop_map(Value::from);
    let addresses = vec(reference().prop_map(|one| json!({ "reference": one })), 0..3).prop_map(Value::from);
    let pool = members(
        // A list is replaced as a whole, and null in it is the same as absent.
        true,
        vec![
            ("name", text().boxed()),
            ("vnetSubnetReference", reference().boxed()),
            ("nodeTaints", vec(text(), 0..3).prop_map(Value::from).boxed()),
            ("upgradeSettings", members(true, vec![("maxSurge", text().boxed())])),
        ],
    );
    let addon = of(vec![("enabled", any::<bool>().prop_map(Value::from).boxed()), ("config", texts())]);
    let kubelet = of(vec![
        ("resourceReference", reference().boxed()),
        ("clientIdFromConfig", Just(json!({ "name": "n", "key": "k" })).boxed()),
    ]);
    of(vec![
        ("dnsPrefix", text().boxed()),
        ("tags", texts()),
        ("sku", of(vec![("name", text().boxed()), ("tier", text().boxed())])),
        ("identity", of(vec![("type", text().boxed()), ("userAssignedIdentities", identities.boxed())])),
        ("diskEncryptionSetReference", reference().boxed()),
        ("addonProfiles", map(patch, addon)),
        ("identityProfile", map(patch, kubelet)),
        ("autoScalerProfile", of(vec![("scan-interval", text().boxed()), ("expander", text().boxed())])),
        ("agentPoolProfiles", vec(pool, 0..3).prop_map(Value::from).boxed()),
        ("windowsProfile", of(vec![("adminPassword", Just(json!({ "name": "n", "key": "k" })).boxed())])),
        ("networkProfile", of(vec![("outboundIPs", of(vec![("publicIPs", addresses.boxed())]))])),
        ("madeUp", of(vec![("deeper", of(vec![("deepest", text().boxed())]))])),
    ])
}

fn known() -> Table {
    let mut known = Table::default();
    known.secrets.insert(("n".into(), "k".into()), "password".into());
    known.config_maps.insert(("n".into(), "k".into()), "client".into());
    known
}

/// JSON merge patch, as RFC 7386 says.
fn merged(target: &Value, patch: &Value) -> Value {
    let Some(patch) = patch.as_object() else { return patch.clone() };
    let mut members = target.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        if value.is_null() {
            members.remove(name);
        } else {
            let present = members.get(name).cloned().unwrap_or_default();
            members.insert(name.clone(), merged(&present, value));
        }
    }
    Value::Object(members)
}

/// What the user wrote, with what references stand for.
fn resolved(value: &Value) -> Value {
    match value {
        Value::Object(members) if members.contains_key("armId") => members["armId"].clone(),
        Value::Object(members) if members.len() == 1 && members.contains_key("reference") => {
            resolved(&members["reference"])
        }
        Value::Object(members) if members.contains_key("key") => json!(""),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), resolved(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(resolved).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

fn sorted_leaves(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    leaves(value, "", &mut found);
    let mut texts: Vec<String> = found.into_iter().map(|(_, value)| value.to_string()).collect();
    texts.retain(|text| text != "null" && text != "\"\"" && text != "\"password\"" && text != "\"client\"");
    texts.sort();
    texts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// It makes no difference whether a patch is applied to the operator's object or, translated, to the document.
    #[test]
    fn a_patch_commutes_with_translation(spec in specification(false), patch in specification(true)) {
        let known = known();
        let kind = find("containerservice.azure.com", "ManagedCluster").unwrap();
        let translated = |spec: &Value| document(&parse(&an_object("ManagedCluster", spec.clone())), &known).value;
        let translated_patch = Patch::of(kind, &json!({ "spec": patch }), &known).unwrap();
        let mut patched = translated(&spec);
        translated_patch.apply(&mut patched);
        prop_assert_eq!(patched, translated(&merged(&spec, &patch)));
    }

    /// Each value that the user wrote is in the document once, whether Azure knows the member or not.
    #[test]
    fn nothing_is_lost(spec in specification(false)) {
        let mut document = document(&parse(&an_object("ManagedCluster", spec.clone())), &known());
        prop_assert!(document.awaited.is_empty());
        let mut expected = spec;
        // The operator's list is an object in Azure: here, the list of its keys.
        if let Some(identities) = document.value.pointer_mut("/identity/userAssignedIdentities") {
            *identities = identities.as_object().unwrap().keys().cloned().collect::<Vec<_>>().into();
            let stated = expected["identity"]["userAssignedIdentities"].as_array_mut().unwrap();
            stated.sort_by_key(ToString::to_string);
            stated.dedup();
        }
        prop_assert_eq!(sorted_leaves(&document.value), sorted_leaves(&resolved(&expected)));
    }

    /// Whatever is written, an answer comes, and it shows no secret.
    #[test]
    fn any_object_gets_an_answer(
        kind in 0..operator_resources::KINDS.len(),
        names in btree_map("[a-zA-Z]{0,4}(Reference|References|FromConfig|reference|identity|secret|)", any_json(), 0..5),
    ) {
        let kind = &operator_resources::KINDS[kind];
        let spec = Value::Object(names.into_iter().collect());
        let known = known();
        let Ok(resource) = operator_resources::Resource::parse(&an_object(kind.kind, spec.clone()), "default") else {
            return Ok(());
        };
        let id = azure_types::ResourceId::group("1", "any");
        let patched = Patch::of(kind, &json!({ "spec": spec }), &known);
        let results = (resource.document(&id, &known), resource.exports(), patched);
        let shown = format!("{resource:?} {results:?}");
        prop_assert!(!shown.contains("password"), "{}", shown);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(json!("text")),
        Just(json!({ "name": "n", "key": "k" })),
        Just(json!({ "armId": "/subscriptions/1" })),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("(reference|name|armId|adminPassword|[a-z]{3})", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

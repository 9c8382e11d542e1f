//! The patches of a ClusterClass: JSON patches with values of their own, of variables, and of templates.

use serde_json::{Value, json};

use super::value_template::render;
use super::variables::find;
use crate::plan::values::{text, title};

/// The part of a topology whose template is patched.
#[derive(Debug, Clone, Copy)]
pub enum Holder<'a> {
    /// `infrastructureRef` of the Cluster.
    InfrastructureCluster,
    /// `controlPlaneRef` of the Cluster, and the machines of its control plane.
    ControlPlane,
    /// A MachineDeployment of this class.
    MachineDeployment(&'a str),
    /// A MachinePool of this class.
    MachinePool(&'a str),
}

impl Holder<'_> {
    /// Whether `matchResources` of a selector contain it.
    fn matches(self, resources: &Value) -> bool {
        let has = |member: &str, class: &str| {
            let names = resources[member]["names"].as_array().into_iter().flatten();
            names.into_iter().filter_map(Value::as_str).any(|name| is_like(name, class))
        };
        match self {
            Self::InfrastructureCluster => resources["infrastructureCluster"] == true,
            Self::ControlPlane => resources["controlPlane"] == true,
            Self::MachineDeployment(class) => has("machineDeploymentClass", class),
            Self::MachinePool(class) => has("machinePoolClass", class),
        }
    }
}

/// Whether a class has a name with a `*` at its beginning or its end.
fn is_like(name: &str, class: &str) -> bool {
    name == class
        || name.strip_prefix('*').is_some_and(|end| class.ends_with(end))
        || name.strip_suffix('*').is_some_and(|begin| class.starts_with(begin))
}

/// Applies the patches of a class to a template. What is not resolved here is noted.
///
/// # Errors
/// A patch does not fit, in words: Cluster API refuses the topology.
pub fn apply(
    class: &Value,
    holder: Holder<'_>,
    template: &mut Value,
    variables: &Value,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let mut note = |words: String| {
        if !notes.contains(&words) {
            notes.push(words);
        }
    };
    for patch in class["spec"]["patches"].as_array().into_iter().flatten() {
        let name = format!("patch {} of {}", text(patch, "/name"), title(class));
        if patch["external"].is_object() {
            note(format!("{name} is external: its program is not asked, and the plan is without it"));
            continue;
        }
        let definitions = patch["definitions"].as_array().into_iter().flatten();
        for definition in definitions {
            if !is_for(&definition["selector"], holder, template) {
                continue;
            }
            match is_enabled(text(patch, "/enabledIf"), variables) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(why) => {
                    note(format!("{name}: enabledIf: {why}; the plan is without this patch"));
                    continue;
                }
            }
            for change in definition["jsonPatches"].as_array().into_iter().flatten() {
                let (operation, path) = (text(change, "/op"), text(change, "/path"));
                let mut entry = json!({ "op": operation, "path": path });
                if operation != "remove" {
                    match value_of(change, variables) {
                        Ok(value) => entry["value"] = value,
                        Err(why) => {
                            note(format!("{name}: {path}: {why}; the plan is without this change"));
                            continue;
                        }
                    }
                }
                let fails = |why: String| format!("{name} does not fit {}: {path}: {why}", title(template));
                let entry: json_patch::PatchOperation =
                    serde_json::from_value(entry).map_err(|error| fails(error.to_string()))?;
                let mut patched = template.clone();
                json_patch::patch(&mut patched, &[entry]).map_err(|error| fails(error.kind.to_string()))?;
                *template = patched;
            }
        }
    }
    Ok(())
}

/// Whether a selector selects this template.
fn is_for(selector: &Value, holder: Holder<'_>, template: &Value) -> bool {
    selector["apiVersion"] == template["apiVersion"]
        && selector["kind"] == template["kind"]
        && holder.matches(&selector["matchResources"])
}

fn is_enabled(condition: &str, variables: &Value) -> Result<bool, String> {
    Ok(condition.is_empty() || render(condition, variables)?.trim() == "true")
}

/// The value of a JSON patch.
fn value_of(change: &Value, variables: &Value) -> Result<Value, String> {
    if let Some(value) = change.get("value") {
        return Ok(value.clone());
    }
    let from = &change["valueFrom"];
    match (text(from, "/variable"), text(from, "/template")) {
        ("", "") => Err("it has neither value nor valueFrom.variable nor valueFrom.template".to_owned()),
        ("", template) => {
            let rendered = render(template, variables)?;
            serde_saphyr::from_str(&rendered).map_err(|error| format!("its template is not YAML: {error}"))
        }
        (path, _) => find(variables, path).cloned().ok_or_else(|| format!("variable {path} has no value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Value {
        json!({
            "apiVersion": "x/v1", "kind": "T", "metadata": { "namespace": "default", "name": "t" },
            "spec": { "template": { "spec": { "location": "old", "list": ["a"] } } },
        })
    }

    fn class(patch: Value) -> Value {
        json!({ "kind": "ClusterClass", "metadata": { "namespace": "default", "name": "c" }, "spec": { "patches": [patch] } })
    }

    fn patch(change: Value) -> Value {
        let selector =
            json!({ "apiVersion": "x/v1", "kind": "T", "matchResources": { "infrastructureCluster": true } });
        json!({ "name": "p", "definitions": [{ "selector": selector, "jsonPatches": [change] }] })
    }

    fn variables() -> Value {
        json!({ "location": "west", "disk": { "gb": 30 }, "builtin": { "cluster": { "name": "quay" } } })
    }

    /// The specification after a patch, or why it does not fit; and the notes.
    fn applied(patch: Value, holder: Holder<'_>) -> (Result<Value, String>, Vec<String>) {
        let (mut template, mut notes) = (template(), Vec::new());
        let fits = apply(&class(patch), holder, &mut template, &variables(), &mut notes);
        (fits.map(|()| template["spec"]["template"]["spec"].clone()), notes)
    }

    #[test]
    fn values_come_from_the_patch_a_variable_or_a_template() {
        const LOCATION: &str = "/spec/template/spec/location";
        for (change, expected) in [
            (
                json!({ "op": "replace", "path": LOCATION, "value": 7 }),
                json!({ "location": 7, "list": ["a"] }),
            ),
            (
                json!({ "op": "add", "path": LOCATION, "valueFrom": { "variable": "location" } }),
                json!({ "location": "west", "list": ["a"] }),
            ),
            (
                json!({ "op": "add", "path": "/spec/template/spec/disk", "valueFrom": { "variable": "disk.gb" } }),
                json!({ "location": "old", "list": ["a"], "disk": 30 }),
            ),
            (
                json!({ "op": "replace", "path": LOCATION, "valueFrom": { "template": "name: \"{{ .builtin.cluster.name }}-x\"\nall: [1]\n" } }),
                json!({ "location": { "name": "quay-x", "all": [1] }, "list": ["a"] }),
            ),
            (
                json!({ "op": "add", "path": "/spec/template/spec/list/-", "value": "b" }),
                json!({ "location": "old", "list": ["a", "b"] }),
            ),
            (json!({ "op": "remove", "path": LOCATION }), json!({ "list": ["a"] })),
        ] {
            let (spec, notes) = applied(patch(change.clone()), Holder::InfrastructureCluster);
            assert_eq!((spec, notes), (Ok(expected), Vec::new()), "{change}");
        }
    }

    #[test]
    fn a_patch_is_for_what_its_selector_and_its_condition_say() {
        let change = json!({ "op": "replace", "path": "/spec/template/spec/location", "value": "new" });
        let with = |resources: Value, kind: &str, enabled: &str| {
            let selector = json!({ "apiVersion": "x/v1", "kind": kind, "matchResources": resources });
            json!({ "name": "p", "enabledIf": enabled, "definitions": [{ "selector": selector, "jsonPatches": [change] }] })
        };
        let names = |member: &str, name: &str| json!({ member: { "names": [name] } });
        for (patch, holder, is_applied) in [
            (with(json!({ "controlPlane": true }), "T", ""), Holder::ControlPlane, true),
            (with(json!({ "controlPlane": true }), "U", ""), Holder::ControlPlane, false),
            (with(json!({ "controlPlane": true }), "T", ""), Holder::InfrastructureCluster, false),
            (
                with(names("machineDeploymentClass", "workers"), "T", ""),
                Holder::MachineDeployment("workers"),
                true,
            ),
            (
                with(names("machineDeploymentClass", "workers"), "T", ""),
                Holder::MachinePool("workers"),
                false,
            ),
            (with(names("machinePoolClass", "*"), "T", ""), Holder::MachinePool("any"), true),
            (with(names("machinePoolClass", "pool-*"), "T", ""), Holder::MachinePool("pool-a"), true),
            (with(names("machinePoolClass", "*-spot"), "T", ""), Holder::MachinePool("pool-a"), false),
            (
                with(json!({ "controlPlane": true }), "T", "{{ if .location }}true{{end}}"),
                Holder::ControlPlane,
                true,
            ),
            (
                with(json!({ "controlPlane": true }), "T", "{{ if .other }}true{{end}}"),
                Holder::ControlPlane,
                false,
            ),
        ] {
            let (spec, notes) = applied(patch.clone(), holder);
            let expected = if is_applied { "new" } else { "old" };
            assert_eq!(
                (&spec.unwrap()["location"], notes.len()),
                (&json!(expected), 0),
                "{patch} {holder:?}"
            );
        }
    }

    #[test]
    fn what_is_not_resolved_here_is_noted_and_left_out() {
        let mut conditional = patch(json!({ "op": "remove", "path": "/spec" }));
        conditional["enabledIf"] = json!("{{ range .x }}{{ end }}");
        for (patch, words) in [
            (
                json!({ "name": "p", "external": { "generatePatchesExtension": "x" } }),
                "patch p of ClusterClass default/c is external",
            ),
            (
                patch(
                    json!({ "op": "add", "path": "/spec/a", "valueFrom": { "variable": "builtin.cluster.uid" } }),
                ),
                "patch p of ClusterClass default/c: /spec/a: variable builtin.cluster.uid has no value",
            ),
            (
                patch(
                    json!({ "op": "add", "path": "/spec/a", "valueFrom": { "template": "{{ range .x }}{{ end }}" } }),
                ),
                "/spec/a: {{ range .x }} is not evaluated here; the plan is without this change",
            ),
            (conditional, "enabledIf: {{ range .x }} is not evaluated here"),
            (patch(json!({ "op": "add", "path": "/spec/a" })), "it has neither value nor"),
        ] {
            let (spec, notes) = applied(patch, Holder::InfrastructureCluster);
            assert_eq!(spec.unwrap()["location"], "old");
            assert!(matches!(&notes[..], [note] if note.contains(words)), "{words}: {notes:?}");
        }
    }

    #[test]
    fn a_patch_that_does_not_fit_is_an_error() {
        for path in ["/spec/template/spec/none/deeper", "/spec/template/spec/list/9"] {
            let (spec, _) = applied(
                patch(json!({ "op": "add", "path": path, "value": 1 })),
                Holder::InfrastructureCluster,
            );
            let said = spec.unwrap_err();
            let words = format!("patch p of ClusterClass default/c does not fit T default/t: {path}: ");
            assert!(said.starts_with(&words), "{said}");
        }
        let (spec, _) = applied(
            patch(json!({ "op": "replace", "path": "/spec/none", "value": 1 })),
            Holder::InfrastructureCluster,
        );
        assert!(spec.is_err());
    }
}

//! Every template of `deploy/capz/templates`, with its variables filled in, and every manifest of `examples/clusters`
//! is accepted: by the schemas, which know each member, and by the webhooks.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::place::Place;
use super::simulated::{World, world};

/// The values that users set; all others have defaults.
const VARIABLES: [(&str, &str); 17] = [
    ("APISERVER_LB_DNS_SUFFIX", "suffix"),
    ("ASO_CREDENTIAL_SECRET_NAME", "aso-credential"),
    ("AZURE_CLIENT_ID", "00000000-0000-0000-0000-000000000001"),
    ("AZURE_CLIENT_ID_USER_ASSIGNED_IDENTITY", "00000000-0000-0000-0000-000000000002"),
    ("AZURE_CLUSTER_IDENTITY_SECRET_NAME", "secret"),
    ("AZURE_CONTROL_PLANE_MACHINE_TYPE", "Standard_D2s_v3"),
    ("AZURE_EXTENDEDLOCATION_NAME", "edge"),
    ("AZURE_EXTENDEDLOCATION_TYPE", "EdgeZone"),
    ("AZURE_LOCATION", "westeurope"),
    ("AZURE_NODE_MACHINE_TYPE", "Standard_D2s_v3"),
    ("AZURE_SERVER_APP_ID", "00000000-0000-0000-0000-000000000003"),
    ("AZURE_SUBSCRIPTION_ID", "00000000-0000-0000-0000-000000000004"),
    ("AZURE_TENANT_ID", "00000000-0000-0000-0000-000000000005"),
    ("CLUSTER_CLASS_NAME", "class"),
    ("FLATCAR_VERSION", "4152.2.0"),
    ("KUBERNETES_VERSION", "v1.33.1"),
    // Variables of the flavor flatcar-sysext without a default.
    ("WORKER_MACHINE_COUNT", "3"),
];

/// Substitutes variables like clusterctl: `${A}`, `${A:=default}`, `${A:-default}` and `${A%.*}`, with variables in
/// defaults.
fn substituted(text: &str, variables: &BTreeMap<&str, String>) -> String {
    let Some((before, rest)) = text.split_once("${") else { return text.to_owned() };
    let mut depth = 1;
    let end = rest.char_indices().find_map(|(at, c)| {
        let opens = rest[at..].starts_with("${");
        depth += i32::from(opens) - i32::from(c == '}');
        (depth == 0).then_some(at)
    });
    let (expression, after) = rest.split_at(end.expect("a variable has an end"));
    let name = expression.split([':', '%']).next().unwrap();
    let value = variables.get(name).cloned();
    let value = match expression.strip_prefix(name).unwrap() {
        "" => value.unwrap_or_else(|| panic!("{name} has no default and is not among the variables")),
        "%.*" => value.unwrap().rsplit_once('.').unwrap().0.to_owned(),
        default => {
            let default = default.strip_prefix(":=").or_else(|| default.strip_prefix(":-")).unwrap();
            value.unwrap_or_else(|| substituted(default, variables))
        }
    };
    format!("{before}{value}{}", substituted(&after[1..], variables))
}

pub fn files() -> Vec<(String, String)> {
    manifests("../../deploy/capz/templates")
}

/// The manifests in a folder, with their names.
pub fn manifests(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// A cluster with a fixed Kubernetes version, named after its template.
pub fn objects(template: &str, cluster: &str) -> Vec<Value> {
    let mut variables: BTreeMap<&str, String> =
        VARIABLES.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    variables.insert("CLUSTER_NAME", cluster.to_owned());
    variables.insert("CLUSTER_IDENTITY_NAME", cluster.to_owned());
    serde_saphyr::from_multiple(&substituted(template, &variables)).unwrap()
}

#[test]
fn variables_are_filled_in_as_clusterctl_fills_them_in() {
    let variables = BTreeMap::from([("A", "x".to_owned()), ("V", "v1.2.3".to_owned())]);
    for (text, filled) in [
        ("a ${A} b", "a x b"),
        ("${B:=${A}-vnet}.", "x-vnet."),
        ("${A:=y}${B:-y}", "xy"),
        ("${V%.*}", "v1.2"),
        ("${B:=\"\"}", "\"\""),
        ("$(curl)", "$(curl)"),
    ] {
        assert_eq!(substituted(text, &variables), filled, "{text}");
    }
}

/// `docs/clusters/getting-started.md` shows a command and its output: the template without a flavor, with the variables
/// and arguments of the page.
#[test]
fn the_page_shows_what_the_command_writes() {
    let page = include_str!("../../../../docs/clusters/getting-started.md");
    let section = |title: &str| {
        let (_, rest) = page.split_once(&format!("\n## {title}\n")).unwrap();
        rest.split("\n## ").next().unwrap()
    };
    let command = section("Making a cluster");
    let mut variables: BTreeMap<&str, String> = command
        .lines()
        .filter_map(|line| line.strip_prefix("$ export "))
        .flat_map(|line| line.split(' '))
        .map(|setting| setting.split_once('=').unwrap())
        .map(|(name, value)| (name, value.to_owned()))
        .collect();
    for (variable, argument) in [
        ("CLUSTER_NAME", "generate cluster "),
        ("KUBERNETES_VERSION", "--kubernetes-version "),
        ("CONTROL_PLANE_MACHINE_COUNT", "--control-plane-machine-count "),
        ("WORKER_MACHINE_COUNT", "--worker-machine-count "),
    ] {
        let (_, value) = command.split_once(argument).unwrap();
        variables.insert(variable, value.split_whitespace().next().unwrap().to_owned());
    }
    let files = files();
    let (_, template) = files.iter().find(|(name, _)| name == "cluster-template").unwrap();
    let written: Vec<Value> = serde_saphyr::from_multiple(&substituted(template, &variables)).unwrap();
    let (_, manifest) = section("What a template holds").split_once("```yaml\n").unwrap();
    let shown: Vec<Value> = serde_saphyr::from_multiple(manifest.split("\n```").next().unwrap()).unwrap();
    assert_eq!(shown, written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_template_is_taken_whole() {
    let gates = "--feature-gates=EdgeZone=true,APIServerILB=true";
    let World { place, manager: _manager, folder: _folder, _stop } = world(&[gates]).await;
    let mut wrong = String::new();
    let (mut flavors, mut taken) = (0, 0);
    for (name, template) in files() {
        flavors += 1;
        let cluster = name.replace("cluster-template", "c-0");
        taken += apply(&place, &name, &objects(&template, &cluster), &mut wrong).await;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(flavors > 30 && taken > 105, "{flavors}, {taken}");
}

/// Applies the objects of our kinds; returns how many are accepted, and the errors of the others.
async fn apply(place: &Place, file: &str, objects: &[Value], wrong: &mut String) -> usize {
    let mut taken = 0;
    for object in objects {
        if object["apiVersion"] != "infrastructure.cluster.x-k8s.io/v1beta1" {
            continue;
        }
        match place.apply(object.clone()).await {
            Ok(made) => {
                taken += 1;
                *wrong += &said_twice(object, &made);
            }
            Err(error) => {
                *wrong += &format!("{file}: {} {}: {error}\n", object["kind"], object["metadata"]["name"]);
            }
        }
    }
    taken
}

/// The manifests that `cerulean demo clusters` applies, and that users copy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_is_taken_whole_and_refers_to_what_is_there() {
    let World { place, manager: _manager, folder: _folder, _stop } = world(&[]).await;
    let (mut wrong, mut taken, mut all) = (String::new(), 0, Vec::new());
    let folders = ["../../examples/clusters", "../../examples/clusters/managed"];
    for (file, text) in folders.into_iter().flat_map(manifests) {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        taken += apply(&place, &file, &objects, &mut wrong).await;
        all.extend(objects);
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(taken >= 8, "{taken}");
    assert_eq!(dangling(&all), []);
}

/// The webhooks add defaults to templates and change no value in them.
fn said_twice(said: &Value, made: &Value) -> String {
    fn changed(said: &Value, made: &Value, path: &str) -> Option<String> {
        match (said, made) {
            (Value::Object(said), made) => said.iter().find_map(|(name, value)| {
                changed(value, made.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"))
            }),
            (Value::Array(said), Value::Array(made)) if said.len() == made.len() => {
                said.iter().zip(made).find_map(|(said, made)| changed(said, made, path))
            }
            // An empty key counts as unset.
            (said, made) => (said != made && said != "").then(|| format!("{path}: {said} became {made}\n")),
        }
    }
    changed(&said["spec"], &made["spec"], "spec").unwrap_or_default()
}

/// References in specs to objects that are not among these.
fn dangling(objects: &[Value]) -> Vec<(String, String)> {
    let mut found = references_of(objects);
    found.retain(|(kind, name)| {
        !objects.iter().any(|object| object["kind"] == **kind && object["metadata"]["name"] == **name)
    });
    found
}

/// Kinds and names that specs refer to.
fn references_of(objects: &[Value]) -> Vec<(String, String)> {
    fn references(value: &Value, found: &mut Vec<(String, String)>) {
        if let (Some(kind), Some(name), None) =
            (value["kind"].as_str(), value["name"].as_str(), value.get("metadata"))
        {
            found.push((kind.to_owned(), name.to_owned()));
        }
        match value {
            Value::Object(members) => members.values().for_each(|value| references(value, found)),
            Value::Array(entries) => entries.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    objects.iter().for_each(|object| references(&object["spec"], &mut found));
    found
}

/// The objects of a template refer only to each other.
#[test]
fn what_templates_refer_to_is_in_them() {
    for (name, template) in files() {
        let objects = objects(&template, "c-1");
        assert_eq!(dangling(&objects), [], "{name}");
        assert_eq!(references_of(&objects).is_empty(), name.ends_with("-topology"), "{name}");
        for object in &objects {
            assert_eq!(object["metadata"]["namespace"], json!("default"), "{name}: {object}");
        }
    }
}

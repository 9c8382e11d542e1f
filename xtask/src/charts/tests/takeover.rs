//! Our chart with the values of each released version of the established one: helm upgrade switches a release, and helm
//! rollback switches it back, because each object has a counterpart with the same immutable fields.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::command_lines::{arguments, refusals};
use super::{CLOUD_PROVIDER, Chart, Helm, Objects, folder, identity, rendered};
use crate::charts::differences::LEFT_OUT;
use crate::charts::established::{Established, all};
use crate::charts::values::nested;

/// Flags of the established chart that ours does not give, with the reason.
const FLAGS_LEFT_OUT: [(&str, &str); 1] = [("--port", "of releases before 1.26: health checks without TLS")];
/// Values that the established chart shows and both programs refuse: an obsolete lock, and a deadline of 15s without the
/// longer lease that belongs to it.
const REFUSED: [&str; 2] = ["--leader-elect-resource-lock=configmap", "--leader-elect-lease-duration=15s"];

/// Values of the established chart that show nowhere: its own repositories mean ours, and its port has no effect.
const SILENT: [&str; 3] = [
    "cloudControllerManager.imageRepository",
    "cloudNodeManager.imageRepository",
    "cloudControllerManager.port",
];

fn assert_accepted(objects: &Objects, about: &str) {
    let refusals = refusals(objects);
    let wrong: Vec<&String> =
        refusals.iter().filter(|text| !REFUSED.iter().any(|known| text.starts_with(known))).collect();
    assert!(wrong.is_empty(), "{about}: {wrong:?}");
}

/// Each object has a counterpart that helm can update, and nothing that selects it changes.
fn assert_counterparts(theirs: &Established, ours: &Objects) {
    let about = &theirs.versions;
    for object in &theirs.objects {
        let name = identity(object);
        if LEFT_OUT.iter().any(|(kind, left_out, _)| (*kind, *left_out) == (name.0.as_str(), name.2.as_str()))
        {
            assert!(!ours.contains_key(&name), "{about:?}: {name:?} is made: correct the table");
            continue;
        }
        let our = ours.get(&name).unwrap_or_else(|| panic!("{about:?}: there is no {name:?}"));
        if let Some(role) = object.get("roleRef") {
            assert_eq!(&our["roleRef"]["name"], role, "{about:?} {name:?}");
        }
        assert_contains(&our["metadata"]["labels"], object.get("labels"), about);
        if object.get("selector").is_some() {
            assert_eq!(our["spec"]["selector"]["matchLabels"], object["selector"], "{about:?} {name:?}");
            let template = &our["spec"]["template"];
            assert_contains(&template["metadata"]["labels"], object.get("podLabels"), about);
            assert_eq!(
                template["spec"]["serviceAccountName"], object["serviceAccount"],
                "{about:?} {name:?}"
            );
            assert_containers(&object["containers"], &template["spec"]["containers"], about);
        }
    }
}

fn assert_contains(ours: &Value, theirs: Option<&Value>, about: &[String]) {
    for (key, value) in theirs.and_then(Value::as_object).into_iter().flatten() {
        assert_eq!(ours.get(key), Some(value), "{about:?}: {key}");
    }
}

/// The same containers, commands and flags.
fn assert_containers(theirs: &Value, ours: &Value, about: &[String]) {
    for (name, their) in theirs.as_object().unwrap() {
        let our = ours.as_array().unwrap().iter().find(|one| one["name"] == name.as_str()).unwrap();
        // Windows before 1.26 started the program without the script.
        if their["command"] != json!(["/cloud-node-manager.exe"]) {
            assert_eq!(our["command"], their["command"], "{about:?} {name}");
        }
        let given: BTreeSet<String> = arguments(our)
            .iter()
            .map(|argument| argument.trim_matches('\'').split('=').next().unwrap().to_owned())
            .collect();
        for flag in their["flags"].as_array().unwrap().iter().map(|flag| flag.as_str().unwrap()) {
            let left_out = FLAGS_LEFT_OUT.iter().any(|(known, _)| *known == flag)
                || (flag == "--node-name" && our["command"] == json!(["powershell.exe"]));
            assert!(left_out || given.contains(flag), "{about:?} {name}: {flag} is missing in {given:?}");
        }
    }
}

#[test]
fn the_defaults_of_each_version_make_counterparts_of_its_objects() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let established = all().unwrap();
    assert!(established.iter().map(|one| one.versions.len()).sum::<usize>() > 50);
    for one in &established {
        let values = nested(one.values.iter().map(|(key, value)| (key.as_str(), value)));
        let ours = rendered(&helm, CLOUD_PROVIDER, &values);
        assert_counterparts(one, &ours);
        assert_accepted(&ours, &one.versions[0]);
    }
}

/// As `helm upgrade --reuse-values` does it: the values are those of the old chart, so none of our keys exists.
#[test]
fn no_key_of_ours_is_needed() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let keys = Chart::read(&folder(CLOUD_PROVIDER)).unwrap().keys();
    for one in all().unwrap() {
        let null = Value::Null;
        let absent = keys.keys().map(String::as_str).filter(|key| !one.values.contains_key(*key));
        let absent = absent.map(|key| (key, &null));
        let given = one.values.iter().map(|(key, value)| (key.as_str(), value));
        let ours = rendered(&helm, CLOUD_PROVIDER, &nested(absent.chain(given)));
        assert_counterparts(&one, &ours);
        assert_accepted(&ours, &one.versions[0]);
        for ((kind, ..), object) in &ours {
            let selector = &object["spec"]["template"]["spec"]["nodeSelector"];
            let control_plane = selector.get("node-role.kubernetes.io/control-plane");
            assert!(kind != "Deployment" || control_plane.is_some(), "{:?}: {selector}", one.versions);
            for container in object["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten()
            {
                let image = container["image"].as_str().unwrap();
                assert!(
                    image.starts_with("registry.example/"),
                    "{:?}: {image} has no image of ours",
                    one.versions
                );
            }
        }
    }
}

/// Each value alone, with what its default or its comment says: it renders, reaches a program, and is accepted there.
#[test]
fn each_value_of_each_version_reaches_a_program() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let chart = Chart::read(&folder(CLOUD_PROVIDER)).unwrap();
    let keys = chart.keys();
    let mut done = BTreeSet::new();
    for one in all().unwrap() {
        for (key, value) in one.values.iter().chain(&one.examples) {
            if !done.insert((key.clone(), value.to_string())) {
                continue;
            }
            // The two parts that only work with another value beside them.
            let beside = json!(true);
            let mut values = vec![(key.as_str(), value)];
            if key.contains("ealthProbeProxy")
                || key.ends_with("healthCheckPort")
                || key.ends_with("targetPort")
            {
                values.insert(0, ("cloudNodeManager.enableHealthProbeProxy", &beside));
            }
            let ours = rendered(&helm, CLOUD_PROVIDER, &nested(values));
            assert_accepted(&ours, key);
            assert!(keys.contains_key(key), "the schema does not know {key}");
            let text = serde_json::to_string(&ours.values().collect::<Vec<_>>()).unwrap();
            let expected = match value {
                Value::String(value) => value.clone(),
                Value::Number(value) => value.to_string(),
                _ => continue,
            };
            assert!(
                SILENT.contains(&key.as_str()) || text.contains(&expected),
                "{key}: {expected} is nowhere"
            );
        }
    }
    assert!(done.len() > 70, "{}", done.len());
}

/// All values at once that comments of a version show.
#[test]
fn all_examples_of_each_version_render_together() {
    let Some(helm) = Helm::find().unwrap() else { return };
    for one in all().unwrap() {
        let values = one.values.iter().chain(&one.examples).map(|(key, value)| (key.as_str(), value));
        let ours = rendered(&helm, CLOUD_PROVIDER, &nested(values));
        assert_counterparts(&one, &ours);
        assert_accepted(&ours, &one.versions[0]);
    }
}

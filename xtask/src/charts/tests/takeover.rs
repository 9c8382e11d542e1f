//! Our chart with the values of each released version of the established one: helm upgrade switches a release, and helm
//! rollback switches it back, because each object has a counterpart with the same immutable fields.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::command_lines::{arguments, refusals};
use super::{Chart, Helm, Objects, folder, identity, rendered};
use crate::charts::differences::{COUNTERPARTS, Counterpart};
use crate::charts::established::{Established, all};
use crate::charts::values::nested;

static ON: Value = Value::Bool(true);

/// What is special about the comparison with one established chart.
struct Special {
    chart: &'static str,
    /// How many versions there are at least.
    versions: usize,
    /// Containers of the established chart that ours does not have, with the reason.
    containers_left_out: &'static [(&'static str, &'static str)],
    /// Flags of the established chart that ours does not give, with the reason.
    flags_left_out: &'static [(&'static str, &'static str)],
    /// Commands that ours starts in another way, with the reason.
    commands: &'static [(&'static [&'static str], &'static str)],
    /// Values that the established chart shows and both programs refuse.
    refused: &'static [&'static str],
    /// Values of the established chart that show nowhere.
    silent: &'static [&'static str],
    /// Parts that the facts about objects have, although they are off by default.
    parts: &'static [&'static str],
    /// Switches without which other values show nowhere.
    beside: &'static [&'static str],
}

const SPECIAL: [Special; 3] = [
    Special {
        chart: super::CLOUD_PROVIDER,
        versions: 50,
        containers_left_out: &[],
        flags_left_out: &[("--port", "of releases before 1.26: health checks without TLS")],
        commands: &[(
            &["/cloud-node-manager.exe"],
            "Windows before 1.26 started the program without the script",
        )],
        // An obsolete lock, and a deadline of 15s without the longer lease that belongs to it.
        refused: &["--leader-elect-resource-lock=configmap", "--leader-elect-lease-duration=15s"],
        // Its own repositories mean ours, and its port has no effect.
        silent: &[
            "cloudControllerManager.imageRepository",
            "cloudNodeManager.imageRepository",
            "cloudControllerManager.port",
        ],
        parts: &[],
        beside: &["cloudNodeManager.enableHealthProbeProxy"],
    },
    Special {
        chart: super::DISK_DRIVER,
        versions: 35,
        containers_left_out: &[("liveness-probe", "of pods on Windows that are no host process containers")],
        flags_left_out: &[(
            "--health-port",
            "open to the network: with the host's network the check is on localhost",
        )],
        commands: &[(
            &[],
            "pods on Windows that were no host process containers started the image's entrypoint",
        )],
        refused: &[],
        silent: &[
            // Its own repositories mean ours.
            "image.azuredisk.repository",
            // Other values of these have an effect.
            "cloud",
            "linux.distro",
            // Its quotation marks are removed.
            "snapshot.VolumeSnapshotClass.parameters.incremental",
        ],
        parts: &["snapshot.enabled"],
        beside: &[
            "snapshot.VolumeSnapshotClass.enabled",
            "controller.otelTracing.enabled",
            "linux.otelTracing.enabled",
            "windows.otelTracing.enabled",
        ],
    },
    Special {
        chart: super::FILE_DRIVER,
        versions: 50,
        containers_left_out: &[
            ("liveness-probe", "of pods on Windows that are no host process containers"),
            ("azfilesrefresh", "a program that is not in the image: it renews what azfilesauthmanager made"),
        ],
        flags_left_out: &[(
            "--health-port",
            "open to the network: with the host's network the check is on localhost",
        )],
        commands: &[(
            &[],
            "pods on Windows that were no host process containers started the image's entrypoint",
        )],
        refused: &[],
        silent: &[
            // Its own repositories mean ours.
            "image.azurefile.repository",
            // Another value has an effect.
            "linux.distro",
        ],
        parts: &["snapshot.enabled", "node.enableKataCCMount"],
        beside: &[],
    },
];

impl Special {
    fn counterpart(&self) -> &'static Counterpart {
        COUNTERPARTS.iter().find(|one| one.chart == self.chart).unwrap()
    }

    /// Our objects with these values, with the parts that the facts have.
    fn rendered<'a>(&self, helm: &Helm, values: impl Iterator<Item = (&'a str, &'a Value)>) -> Objects {
        rendered(helm, self.chart, &nested(values.chain(self.parts.iter().map(|key| (*key, &ON)))))
    }
}

fn assert_accepted(special: &Special, objects: &Objects, about: &str) {
    let refusals = refusals(objects);
    let wrong: Vec<&String> =
        refusals.iter().filter(|text| !special.refused.iter().any(|known| text.starts_with(known))).collect();
    assert!(wrong.is_empty(), "{about}: {wrong:?}");
}

/// Each object has a counterpart that helm can update, and nothing that selects it changes.
fn assert_counterparts(special: &Special, theirs: &Established, ours: &Objects) {
    let about = &theirs.versions;
    for object in &theirs.objects {
        let name = identity(object);
        let left_out = special.counterpart().left_out;
        if left_out.iter().any(|(kind, left_out, _)| (*kind, *left_out) == (name.0.as_str(), name.2.as_str()))
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
            assert_containers(special, &object["containers"], &template["spec"], about);
        }
    }
}

fn assert_contains(ours: &Value, theirs: Option<&Value>, about: &[String]) {
    for (key, value) in theirs.and_then(Value::as_object).into_iter().flatten() {
        assert_eq!(ours.get(key), Some(value), "{about:?}: {key}");
    }
}

/// The same containers, commands and flags.
fn assert_containers(special: &Special, theirs: &Value, ours: &Value, about: &[String]) {
    let on_windows = ours["nodeSelector"]["kubernetes.io/os"] == "windows";
    let ours = ours["containers"].as_array().unwrap();
    for (name, their) in theirs.as_object().unwrap() {
        let Some(our) = ours.iter().find(|one| one["name"] == name.as_str()) else {
            let left_out = special.containers_left_out.iter().any(|(known, _)| known == name);
            let is_windows_alone = name == "liveness-probe";
            assert!(left_out && (on_windows || !is_windows_alone), "{about:?}: there is no container {name}");
            continue;
        };
        let command: Vec<&str> =
            their["command"].as_array().into_iter().flatten().map(|word| word.as_str().unwrap()).collect();
        let is_changed = special.commands.iter().any(|(known, _)| *known == command) && on_windows;
        assert!(is_changed || our.get("command") == their.get("command"), "{about:?} {name}: {command:?}");
        let given: BTreeSet<String> = arguments(our)
            .iter()
            .map(|argument| argument.trim_matches('\'').split('=').next().unwrap().to_owned())
            .collect();
        for flag in their["flags"].as_array().unwrap().iter().map(|flag| flag.as_str().unwrap()) {
            let left_out = special.flags_left_out.iter().any(|(known, _)| *known == flag)
                || (flag == "--node-name" && our["command"] == json!(["powershell.exe"]));
            assert!(left_out || given.contains(flag), "{about:?} {name}: {flag} is missing in {given:?}");
        }
    }
}

fn given(one: &Established) -> impl Iterator<Item = (&str, &Value)> {
    one.values.iter().map(|(key, value)| (key.as_str(), value))
}

#[test]
fn the_defaults_of_each_version_make_counterparts_of_its_objects() {
    let Some(helm) = Helm::find().unwrap() else { return };
    for special in &SPECIAL {
        let established = all(special.chart).unwrap();
        assert!(established.iter().map(|one| one.versions.len()).sum::<usize>() > special.versions);
        for one in &established {
            let ours = special.rendered(&helm, given(one));
            assert_counterparts(special, one, &ours);
            assert_accepted(special, &ours, &one.versions[0]);
        }
    }
}

/// As `helm upgrade --reuse-values` does it: the values are those of the old chart, so none of our keys exists.
#[test]
fn no_key_of_ours_is_needed() {
    let Some(helm) = Helm::find().unwrap() else { return };
    for special in &SPECIAL {
        let keys = Chart::read(&folder(special.chart)).unwrap().keys();
        for one in all(special.chart).unwrap() {
            let null = Value::Null;
            let absent = keys.keys().map(String::as_str).filter(|key| !one.values.contains_key(*key));
            let ours = special.rendered(&helm, absent.map(|key| (key, &null)).chain(given(&one)));
            assert_counterparts(special, &one, &ours);
            assert_accepted(special, &ours, &one.versions[0]);
            for object in ours.values() {
                assert_ours(special, &one, object);
            }
        }
    }
}

/// Our programs run there, and on the nodes of the established chart.
fn assert_ours(special: &Special, one: &Established, object: &Value) {
    let spec = &object["spec"]["template"]["spec"];
    let is_csi_driver = special.chart != super::CLOUD_PROVIDER;
    let selector = &spec["nodeSelector"];
    let control_plane = selector.get("node-role.kubernetes.io/control-plane");
    let expects_control_plane = object["kind"] == "Deployment" && !is_csi_driver;
    assert!(!expects_control_plane || control_plane.is_some(), "{:?}: {selector}", one.versions);
    for container in spec["containers"].as_array().into_iter().flatten() {
        let image = container["image"].as_str().unwrap();
        let is_driver = ["azuredisk", "azurefile"].iter().any(|name| container["name"] == *name);
        let is_of_others = is_csi_driver && (!is_driver || selector["kubernetes.io/os"] == "windows");
        let is_ours = image.starts_with("registry.example/");
        assert_ne!(is_ours, is_of_others, "{:?}: {image}", one.versions);
    }
}

/// Each value alone, with what its default or its comment says: it renders, reaches a program, and is accepted there.
#[test]
fn each_value_of_each_version_reaches_a_program() {
    let Some(helm) = Helm::find().unwrap() else { return };
    for special in &SPECIAL {
        let chart = Chart::read(&folder(special.chart)).unwrap();
        let keys = chart.keys();
        let mut done = BTreeSet::new();
        let text = |objects: &Objects| serde_json::to_string(&objects.values().collect::<Vec<_>>()).unwrap();
        // Of values that are our defaults.
        let usual = special.rendered(&helm, special.beside.iter().map(|key| (*key, &ON)));
        assert_accepted(special, &usual, special.chart);
        let usual = text(&usual);
        for one in all(special.chart).unwrap() {
            for (key, value) in one.values.iter().chain(&one.examples) {
                let known = keys.get(key).unwrap_or_else(|| panic!("the schema does not know {key}"));
                if !done.insert((key.clone(), value.to_string())) {
                    continue;
                }
                let shown = if known.default.as_ref() == Some(value) {
                    usual.clone()
                } else {
                    let beside = special.beside.iter().map(|key| (*key, &ON));
                    let ours = special.rendered(&helm, beside.chain([(key.as_str(), value)]));
                    assert_accepted(special, &ours, key);
                    text(&ours)
                };
                let expected = match value {
                    // As JSON has it, without its quotation marks.
                    Value::String(_) => value.to_string().trim_matches('"').to_owned(),
                    Value::Number(value) => value.to_string(),
                    _ => continue,
                };
                let is_silent = special.silent.contains(&key.as_str()) || known.is_without_effect();
                assert!(is_silent || shown.contains(&expected), "{key}: {expected} is nowhere");
            }
        }
        assert!(done.len() > 70, "{}", done.len());
    }
}

/// All values at once that comments of a version show.
#[test]
fn all_examples_of_each_version_render_together() {
    let Some(helm) = Helm::find().unwrap() else { return };
    for special in &SPECIAL {
        for one in all(special.chart).unwrap().iter().filter(|one| !one.examples.is_empty()) {
            let shown = one.examples.iter().map(|(key, value)| (key.as_str(), value));
            let ours = special.rendered(&helm, given(one).chain(shown));
            assert_counterparts(special, one, &ours);
            assert_accepted(special, &ours, &one.versions[0]);
        }
    }
}

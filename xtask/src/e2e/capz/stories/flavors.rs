//! Every flavor as the API server gives it back, in each version that is served, created again: what `clusterctl move` and a backup do.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use kube::Client;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::e2e::capz::flavor::rendered;
use crate::e2e::capz::objects::{api, create, create_now, get};
use crate::e2e::capz::stage::Stage;
use crate::print;
use crate::program::root;

/// How kinds of a provider begin that is not here.
const FOREIGN: &str = "RKE2";
/// The flavor with a class, and that whose cluster is of it.
const CLASS: &str = "clusterclass";
const OF_CLASS: &str = "topology";
/// Clusters that are called otherwise than their flavor: the class's templates are called after the cluster that is of it.
const NAMES: [(&str, &str); 1] = [(CLASS, OF_CLASS)];

/// Nothing that a flavor says is lost or refused.
///
/// # Errors
/// All that is refused, or comes back otherwise.
pub async fn play(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let client = stage.management.server.client.clone();
    let versions = served(stage).await?;
    let flavors = flavors()?;
    let (mut wrong, mut objects, mut again, mut foreign) = (Vec::new(), 0, 0, 0);
    for flavor in &flavors {
        let first = if flavor.is_empty() { "default-flavor" } else { flavor.as_str() };
        let named = NAMES.iter().find(|(one, _)| one == flavor);
        let cluster = named.map_or(first, |(_, name)| name);
        namespace(&client, first).await?;
        let mut all = Vec::new();
        if flavor == OF_CLASS {
            all = rendered(stage, CLASS, cluster)?;
        }
        all.extend(rendered(stage, flavor, cluster)?);
        let before = all.len();
        all.retain(|object| !text(&object["kind"]).starts_with(FOREIGN));
        foreign += before - all.len();
        let mut made = Vec::new();
        for mut object in all {
            objects += 1;
            object["metadata"]["namespace"] = first.into();
            if object["kind"] == "Cluster" {
                // It is read, and not made.
                object["spec"]["paused"] = true.into();
            }
            match create(&client, &object).await {
                Ok(()) => made.push(object),
                Err(problem) => wrong.push(format!("{flavor}: {}", problem.root_cause())),
            }
        }
        for object in made {
            let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
            let group = text(&object["apiVersion"]).split('/').next().unwrap_or_default().to_owned();
            let of_kind = versions.get(&(group, kind.clone()));
            for version in of_kind.with_context(|| format!("{kind}: there is no definition of it"))? {
                let elsewhere = format!("{first}-{}", version.rsplit('/').next().unwrap_or_default());
                namespace(&client, &elsewhere).await?;
                again += 1;
                let read = get(&client, version, &kind, first, &name).await?;
                let copy = stripped(&read, first, &elsewhere);
                if let Err(problem) = create_now(&client, &copy).await {
                    wrong.push(format!("{flavor}, read as {version}: {}", problem.root_cause()));
                    continue;
                }
                let second = get(&client, version, &kind, &elsewhere, &name).await?;
                if let Some(difference) = difference(&copy["spec"], &second["spec"], "spec") {
                    wrong.push(format!("{flavor}: {kind} {name}, read as {version}: {difference}"));
                }
            }
        }
    }
    ensure!(wrong.is_empty(), "{} of {again} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    print::line(format_args!(
        "  ok    {} flavors, {objects} objects, created again {again} times in the versions that are served; {foreign} of another \
         provider left out",
        flavors.len()
    ));
    Ok(())
}

/// The names of all templates; the one without a name is empty.
fn flavors() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("deploy/capz/templates"))? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let name = file.strip_prefix("cluster-template").and_then(|rest| rest.strip_suffix(".yaml"));
        names.extend(name.map(|name| name.trim_start_matches('-').to_owned()));
    }
    names.sort();
    ensure!(names.len() > 20, "there are {} templates only", names.len());
    Ok(names)
}

/// The versions, with their groups, in which the server gives objects of each group and kind.
async fn served(stage: &Stage<'_>) -> anyhow::Result<BTreeMap<(String, String), Vec<String>>> {
    let client = &stage.management.server.client;
    let definitions = api(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    let mut found = BTreeMap::new();
    for definition in definitions.list(&ListParams::default()).await? {
        let spec = &definition.data["spec"];
        let group = text(&spec["group"]);
        let versions = spec["versions"].as_array().into_iter().flatten();
        let served = versions.filter(|version| version["served"] == true);
        let names = served.map(|version| format!("{group}/{}", text(&version["name"]))).collect();
        found.insert((group.clone(), text(&spec["names"]["kind"])), names);
    }
    Ok(found)
}

async fn namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    match create(client, &object).await {
        Err(problem) if format!("{problem:#}").contains("AlreadyExists") => Ok(()),
        done => done,
    }
}

/// An object without what a server gives it, for another namespace.
fn stripped(object: &Value, from: &str, to: &str) -> Value {
    let mut copy = object.clone();
    if let Some(members) = copy.as_object_mut() {
        members.remove("status");
    }
    let of_user = ["name", "namespace", "labels", "annotations"];
    if let Some(metadata) = copy["metadata"].as_object_mut() {
        metadata.retain(|member, _| of_user.contains(&member.as_str()));
    }
    rename(&mut copy, from, to);
    copy
}

/// Puts one namespace in the place of another, in references, too.
fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                if member == "namespace" && value == from {
                    *value = to.into();
                } else {
                    rename(value, from, to);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        _ => {}
    }
}

/// The first place where two documents differ, in words.
fn difference(one: &Value, other: &Value, at: &str) -> Option<String> {
    match (one, other) {
        (Value::Object(ones), Value::Object(others)) => {
            let names: BTreeSet<&String> = ones.keys().chain(others.keys()).collect();
            names.into_iter().find_map(|name| difference(&one[name], &other[name], &format!("{at}.{name}")))
        }
        (Value::Array(ones), Value::Array(others)) if ones.len() == others.len() => {
            let mut pairs = ones.iter().zip(others).enumerate();
            pairs.find_map(|(place, (one, other))| difference(one, other, &format!("{at}[{place}]")))
        }
        _ => (one != other).then(|| format!("{at}: {one} became {other}")),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

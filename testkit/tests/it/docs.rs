//! Applies every manifest of `docs/` and checks the result that the comment above it names
//! (`docs/resources/examples.md`). Those of `docs/clusters` are for other controllers, and are applied by a test of
//! `capz`.
//!
//! The manifests of one section of a page are applied in one world, whose azure.json has the section's blocks.

use std::fs;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use azure_types::ResourceId;
use cloud_config::CloudConfig;
use serde_json::{Value, json};
use simulated_cluster::manifests;
use testkit::types::LOAD_BALANCERS;
use testkit::{NodePool, World, run};

const EXPECT: &str = "# expect: ";

/// The expected result for a Service.
#[derive(Debug)]
enum Expected {
    Served { outside: bool, at: Option<IpAddr>, on: Option<String> },
    Refused { words: String },
    LeftAlone,
}

impl Expected {
    fn parse(text: &str) -> Self {
        if let Some(words) = text.strip_prefix("refused: ") {
            return Self::Refused { words: words.to_owned() };
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let (outside, more) = match words.as_slice() {
            ["left", "alone"] => return Self::LeftAlone,
            ["served", "outside", more @ ..] => (true, more),
            ["served", "inside", more @ ..] => (false, more),
            _ => panic!("`{EXPECT}{text}` is not one of those in examples.md"),
        };
        let (mut at, mut on) = (None, None);
        for pair in more.chunks(2) {
            match pair {
                ["at", address] => at = Some(address.parse().expect("an address")),
                ["on", name] => on = Some((*name).to_owned()),
                _ => panic!("`{EXPECT}{text}`: what is {pair:?}?"),
            }
        }
        Self::Served { outside, at, on }
    }
}

/// A part of a page below a heading `##`, or above the first.
#[derive(Debug, Default)]
struct Section {
    title: String,
    azure_json: Vec<String>,
    manifests: Vec<String>,
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned());
        match ending.as_deref() {
            _ if path.ends_with("docs/clusters") => {}
            _ if path.is_dir() => pages.extend(self::pages(&path)),
            Some("md") => pages.push(path),
            Some("yaml" | "yml" | "json") => panic!("{}: put it into a page", path.display()),
            _ => {}
        }
    }
    pages.sort();
    pages
}

fn sections(page: &Path) -> Vec<Section> {
    let text = fs::read_to_string(page).unwrap();
    let title = |heading: &str| format!("{}: {heading}", page.display());
    let mut sections = vec![Section { title: title("its beginning"), ..Section::default() }];
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let section = sections.last_mut().unwrap();
        if let Some(heading) = line.strip_prefix("## ") {
            sections.push(Section { title: title(heading), ..Section::default() });
        } else if let Some(kind) = line.trim_start().strip_prefix("```") {
            let block = lines.by_ref().take_while(|line| line.trim() != "```");
            let block = block.collect::<Vec<_>>().join("\n");
            match kind {
                "yaml" => section.manifests.push(block),
                "json azure.json" => section.azure_json.push(block),
                other => {
                    assert!(!other.contains("yaml") && !other.contains("yml"), "{}: {other}", section.title)
                }
            }
        }
    }
    sections.retain(|section| !section.manifests.is_empty() || !section.azure_json.is_empty());
    sections
}

/// The Services of a manifest by `namespace/name`, each with its expected result. Other objects have none.
fn expectations(section: &Section, manifest: &str) -> Vec<(String, Expected)> {
    let mut found = Vec::new();
    for document in manifest.split("\n---\n") {
        let object = match manifests::read(&section.title, document).unwrap().as_slice() {
            [object] => object.clone(),
            others => panic!("{}: {} objects in {document}", section.title, others.len()),
        };
        let expected: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix(EXPECT)).collect();
        match (object["kind"] == "Service", expected.as_slice()) {
            (true, [expected]) => {
                let text = |member: &str| object["metadata"][member].as_str().unwrap().to_owned();
                found.push((format!("{}/{}", text("namespace"), text("name")), Expected::parse(expected)));
            }
            (false, []) => {}
            _ => panic!(
                "{}: a Service has one line `{EXPECT}`, and nothing else has: {document}",
                section.title
            ),
        }
    }
    found
}

/// The environment that `docs/resources/examples.md` describes.
async fn world(azure_json: &Value) -> World {
    let builder = World::builder().nodes(2).pool(NodePool::new("shop-nodes", "shop", 2)).dual_stack();
    let builder = builder.subnet("backend", &["10.241.0.0/16", "fd00:10:240:1::/64"]);
    let mut world = builder.subnet("links", &["10.242.0.0/24"]).config(azure_json).build();
    let addresses = ResourceId::group(&world.shape.subscription, "addresses");
    world.azure.put(&addresses, json!({"location": "westeurope"})).unwrap();
    let standard = |properties: Value| json!({"location": "westeurope", "sku": {"name": "Standard"}, "properties": properties});
    let public_ip = standard(json!({"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"}));
    let kept = addresses.resource("Microsoft.Network", "publicIPAddresses", "kept");
    for id in [world.network("publicIPAddresses", "shared"), kept] {
        world.azure.put(&id, public_ip.clone()).unwrap();
    }
    let prefix = standard(json!({"prefixLength": 28, "publicIPAddressVersion": "IPv4"}));
    world.azure.put(&world.network("publicIPPrefixes", "prefix"), prefix).unwrap();
    world.start();
    // The cluster runs, and its nodes are known.
    world.settle().await;
    world
}

/// The load balancer that has rules of a Service.
fn place(world: &World, key: &str) -> String {
    let uid = world.service(key)["metadata"]["uid"].as_str().unwrap().replace('-', "");
    let base: String = format!("a{uid}").chars().take(32).collect();
    let holds = |document: &Value| {
        let rules = document["properties"]["loadBalancingRules"].as_array().cloned().unwrap_or_default();
        rules.iter().any(|rule| rule["name"].as_str().is_some_and(|name| name.starts_with(&base)))
    };
    let all = world.azure.documents_of_type(LOAD_BALANCERS);
    let names: Vec<&str> =
        all.iter().filter(|one| holds(one)).map(|one| one["name"].as_str().unwrap()).collect();
    names.join(" ")
}

fn judge(world: &World, key: &str, expected: &Expected) {
    let (events, addresses) = (world.events(key), world.addresses(key));
    match expected {
        Expected::Served { outside, at, on } => {
            assert!(!addresses.is_empty(), "{key} has no address: {events:#?}");
            assert!(at.is_none_or(|at| addresses.contains(&at)), "{key}: {addresses:?}");
            let place = place(world, key);
            let name = place.strip_suffix("-internal");
            assert_eq!(name.is_none(), *outside, "{key} is on {place}");
            assert_eq!(name.unwrap_or(&place), on.as_deref().unwrap_or(name.unwrap_or(&place)), "{key}");
            let warnings: Vec<_> = events.iter().filter(|event| event.starts_with("Warning")).collect();
            assert!(warnings.is_empty(), "{key}: {warnings:#?}");
        }
        Expected::Refused { words } => {
            let refusal = events.iter().find(|event| event.starts_with("Warning SyncLoadBalancerFailed:"));
            assert!(refusal.is_some_and(|event| event.contains(words)), "{key}: {events:#?}");
            assert!(addresses.is_empty() && place(world, key).is_empty(), "{key}: {addresses:?}");
        }
        Expected::LeftAlone => {
            assert!(addresses.is_empty() && events.is_empty(), "{key}: {addresses:?}, {events:#?}");
            assert_eq!(world.service(key)["metadata"]["finalizers"], Value::Null, "{key}");
        }
    }
}

#[test]
fn examples_of_the_docs_end_as_they_say() {
    let pages = pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs"));
    let sections: Vec<Section> = pages.iter().flat_map(|page| sections(page)).collect();
    assert!(sections.len() > 10, "{sections:#?}");
    // All of them are run: failures are printed as they occur.
    let fails = |section: &&Section| catch_unwind(AssertUnwindSafe(|| try_out(section))).is_err();
    let failed: Vec<&str> = sections.iter().filter(fails).map(|section| section.title.as_str()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

fn try_out(section: &Section) {
    let mut azure_json = json!({});
    for block in &section.azure_json {
        let config = CloudConfig::parse(block).unwrap();
        assert_eq!(config.warnings(), []);
        json_patch::merge(&mut azure_json, &serde_json::from_str(block).unwrap());
    }
    let expected: Vec<_> =
        section.manifests.iter().flat_map(|manifest| expectations(section, manifest)).collect();
    if expected.is_empty() && section.azure_json.is_empty() {
        // It contains a Deployment and is only parsed: this world cannot run it.
        return;
    }
    run(async || {
        let world = world(&azure_json).await;
        assert_eq!(world.cluster().config.refusals(), []);
        for manifest in &section.manifests {
            world.apply(manifest).await;
        }
        world.settle().await;
        for (key, expected) in &expected {
            judge(&world, key, expected);
        }
    });
}

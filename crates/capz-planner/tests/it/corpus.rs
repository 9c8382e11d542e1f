//! The goals of every object of the corpus (`tests/corpus/cluster-api`), as they are recorded, by a fingerprint of each.
//!
//! `UPDATE_CORPUS=1 cargo test -p capz-planner --test it corpus` records them anew; check what it changed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use admission_corpus::Case;
use capz_api::admission::set_defaults;
use capz_api::azure_machine::AzureMachineSpec;
use capz_api::{Context, Lookup};
use capz_planner::cluster::{Memory, endpoint, remembered};
use capz_planner::{Goal, GoalError, ObservedResources, machine, pool};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::cluster::Cluster;
use super::machine::{Fixed, Machine};
use super::pool::Pool;

/// The kinds whose goals are recorded.
const KINDS: [&str; 3] = ["AzureCluster", "AzureMachine", "AzureMachinePool"];

/// The number of fingerprints in a line of a file.
const IN_LINE: usize = 20;

/// The specification after defaulting; `None` for one that the API server refuses to read.
fn spec<S: DeserializeOwned>(kind: &str, case: &Case) -> Option<S> {
    let context = Context { subscription: Lookup::Found("123".into()), ..Context::default() };
    let mut object = case.new.clone();
    for (member, value) in [("location", "eastus"), ("resourceGroup", "my-rg")] {
        if kind == "AzureCluster" {
            object["spec"].as_object_mut()?.entry(member).or_insert(json!(value));
        }
    }
    let object = set_defaults(kind, object, &context, &mut Fixed).ok()?;
    serde_json::from_value(object["spec"].clone()).ok()
}

/// All that is decided about goals, in words.
fn words(goals: Result<Vec<Goal>, GoalError>) -> String {
    let goal = |goal: &Goal| {
        let Goal { id, service, document, wanted, ownership, upkeep, withdrawn, after, reported, .. } = goal;
        let (name, used) = (service.name, goal.kept_while_used);
        // Much faster than to format them.
        let [document, reported] = [document, reported].map(|value| serde_json::to_string(value).unwrap());
        format!(
            "{id} {name} {document} {wanted} {ownership:?} {upkeep:?} {withdrawn:?} {after:?} {used:?} {reported}"
        )
    };
    match goals {
        Ok(goals) => goals.iter().map(goal).collect::<Vec<_>>().join("\n"),
        Err(error) => error.to_string(),
    }
}

/// The objects that take the specification of each case in turn.
struct Objects {
    cluster: Cluster,
    machines: [Machine; 2],
    pool: Pool,
}

impl Objects {
    fn new() -> Self {
        let mut cluster = Cluster::new(json!({}));
        cluster.zones = ["1", "2", "3"].map(str::to_owned).to_vec();
        let labels = ["cluster.x-k8s.io/deployment-name", machine::CONTROL_PLANE_LABEL];
        let machines = labels.map(|label| Machine::with(Cluster::new(json!({})), json!({}), &[(label, "")]));
        Self { cluster, machines, pool: Pool::new(json!({})) }
    }

    /// All that is decided for a case; `None` if the API server refuses to read it.
    fn decided(&mut self, case: &Case) -> Option<String> {
        Some(match case.kind.as_str() {
            "AzureCluster" => {
                self.cluster.spec = spec("AzureCluster", case)?;
                self.cluster.complete();
                let scope = self.cluster.scope();
                let goals = words(Ok(capz_planner::cluster::goals(scope, &Memory::default())));
                format!("{goals}\n{:?}\n{:?}", endpoint(scope), remembered(scope))
            }
            "AzureMachine" => {
                let spec: AzureMachineSpec = spec("AzureMachine", case)?;
                let goals = self.machines.iter_mut().map(|machine| {
                    machine.spec = spec.clone();
                    let role = machine.scope().role();
                    match machine::complete(&mut machine.spec, machine.cluster.scope(), role) {
                        Ok(()) => words(machine.try_goals(&ObservedResources::default())),
                        Err(error) => error.to_string(),
                    }
                });
                goals.collect()
            }
            _ => {
                self.pool.spec = spec("AzureMachinePool", case)?;
                let completed = pool::complete(&mut self.pool.spec, self.pool.cluster.scope());
                let goals = words(self.pool.try_goals(&ObservedResources::default(), None));
                format!("{goals}\n{:?}", completed.err().map(|error| error.to_string()))
            }
        })
    }

    fn fingerprint(&mut self, case: &Case) -> String {
        let hashed = |text: String| {
            let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
            hash.as_ref().iter().take(2).map(|byte| format!("{byte:02x}")).collect()
        };
        self.decided(case).map_or("----".to_owned(), hashed)
    }
}

fn file(kind: &str) -> PathBuf {
    admission_corpus::folder().join("goals").join(format!("{kind}.txt"))
}

#[test]
fn every_object_of_the_corpus_has_the_goals_that_are_recorded() {
    let cases = admission_corpus::read().unwrap();
    let mut by_kind: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in
        cases.iter().filter(|case| KINDS.contains(&case.kind.as_str()) && case.old.is_none() && !case.gates)
    {
        by_kind.entry(&case.kind).or_default().push(case);
    }
    assert_eq!(by_kind.len(), KINDS.len());
    let mut objects = Objects::new();
    for (kind, cases) in by_kind {
        assert!(cases.len() > 300, "hardly any cases of {kind} were read: correct this test");
        let now: Vec<String> = cases.iter().map(|case| objects.fingerprint(case)).collect();
        if std::env::var_os("UPDATE_CORPUS").is_some() {
            let lines: Vec<String> = now.chunks(IN_LINE).map(|line| line.join(" ") + "\n").collect();
            std::fs::create_dir_all(file(kind).parent().unwrap()).unwrap();
            std::fs::write(file(kind), lines.concat()).unwrap();
        }
        let recorded = std::fs::read_to_string(file(kind)).unwrap_or_default();
        let recorded: Vec<&str> = recorded.split_whitespace().collect();
        let differs = |(now, then): &(&String, &&str)| *now != **then;
        let changed: Vec<&str> = (now.iter().zip(&recorded).zip(&cases))
            .filter(|(pair, _)| differs(pair))
            .map(|(_, case)| case.name.as_str())
            .collect();
        let shown = &changed[..changed.len().min(5)];
        assert!(
            changed.is_empty(),
            "{} goals changed (UPDATE_CORPUS=1 records them): {shown:#?}",
            changed.len()
        );
        assert_eq!(now.len(), recorded.len(), "{kind}: cases were added or removed");
    }
}

/// A fingerprint is only as good as what it is taken of.
#[test]
fn objects_of_the_corpus_differ_in_their_goals() {
    for kind in KINDS {
        let recorded = std::fs::read_to_string(file(kind)).unwrap();
        let all: Vec<&str> = recorded.split_whitespace().collect();
        let distinct: std::collections::BTreeSet<&&str> = all.iter().collect();
        assert!(distinct.len() * 5 > all.len(), "{kind}: {} of {}", distinct.len(), all.len());
    }
}

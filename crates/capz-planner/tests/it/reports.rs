//! What plans, pools and objects of the operator report besides steps.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use capz_api::Condition;
use capz_planner::compare::{Change, differences};
use capz_planner::condition::{Severity, fails, has_reason, holds, project, summary};
use capz_planner::kind::Kind;
use capz_planner::machine::stopped;
use capz_planner::operator::{Definition, OperatorObject, kinds};
use capz_planner::service::{self, Service};
use capz_planner::{Action, Goal, ObservedResources, Plan, State, Step};
use ownership::{Evidence, Rival};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::pool::Pool;

fn id(kind: &str, name: &str) -> ResourceId {
    ResourceId::group("123", "my-rg").resource("Microsoft.Network", kind, name)
}

fn rival() -> Rival {
    Rival { owner: "another cluster".to_owned(), evidence: Evidence::Declared { key: "tag".to_owned() } }
}

fn step(action: Action, target: &ResourceId) -> Step {
    let document = json!({ "secret": "boot" });
    let (target, changes) = (target.clone(), Vec::new());
    Step { action, target, if_match: None, document, partial: false, changes, proof: None, forced: false }
}

/// A foreign resource that uses others, once all its users on behalf of the object are deleted.
#[test]
fn resources_are_left_to_others_once_nothing_of_ours_uses_them() {
    let gone = || Goal {
        kept_while_used: Some("/properties/members"),
        ..Goal::gone(id("natGateways", "one"), &service::NAT_GATEWAYS)
    };
    let user = || Goal::gone(id("publicIPAddresses", "user"), &service::PUBLIC_IPS);
    let uses = || user().after([id("natGateways", "one")]);
    for (number, (goal, state, other, other_state, expected)) in [
        (gone(), State::Foreign, uses(), State::Reached, true),
        (gone(), State::Foreign, uses(), State::Waits(Vec::new()), false),
        (gone(), State::Foreign, user(), State::Waits(Vec::new()), true),
        (gone(), State::Reached, uses(), State::Reached, false),
        (gone(), State::Waits(Vec::new()), uses(), State::Reached, false),
        (Goal { wanted: true, ..gone() }, State::Foreign, uses(), State::Reached, false),
        (Goal { kept_while_used: None, ..gone() }, State::Foreign, uses(), State::Reached, false),
    ]
    .into_iter()
    .enumerate()
    {
        let plan = Plan { items: vec![(goal, state), (other, other_state)] };
        let left: Vec<ResourceId> = plan.left_to_others().cloned().collect();
        assert_eq!(left, Vec::from_iter(expected.then(|| id("natGateways", "one"))), "row {number}");
    }
}

#[test]
fn changes_by_others_to_members_that_are_not_written_again_are_reported() {
    let ip = id("publicIPAddresses", "one");
    let document =
        json!({ "properties": { "idleTimeoutInMinutes": 4, "dnsSettings": { "domainNameLabel": "a" } } });
    let goal = || Goal::new(ip.clone(), &service::PUBLIC_IPS, document.clone());
    let reporting = || goal().reporting(&["/properties/idleTimeoutInMinutes", "/properties/none"]);
    let held = |minutes: u8| {
        Some(
            json!({ "properties": { "idleTimeoutInMinutes": minutes, "dnsSettings": { "domainNameLabel": "b" } } }),
        )
    };
    for (goal, held, expected) in [
        (reporting(), held(4), None),
        (
            reporting(),
            held(9),
            Some(
                "public IP one is not as it was made, and is not written again (idleTimeoutInMinutes: 9 becomes 4)",
            ),
        ),
        (reporting(), Some(json!({})), None),
        (reporting(), None, None),
        (goal(), held(9), None),
    ] {
        let mut observed = ObservedResources::default();
        observed.take(&ip, held.clone());
        assert!(!format!("{observed:?}").contains("idle"), "documents are not shown");
        assert!(format!("{observed:?}").contains("one"));
        let plan = Plan { items: vec![(goal, State::Reached)] };
        let told = plan.changed_by_others(&observed);
        assert_eq!(told.len(), usize::from(expected.is_some()), "{held:?}: {told:?}");
        assert!(told.iter().zip(expected).all(|(words, start)| words.starts_with(start)), "{told:?}");
    }
}

#[test]
fn documents_are_dropped_and_states_stay() {
    let ip = id("publicIPAddresses", "one");
    let goal = Goal::new(ip.clone(), &service::PUBLIC_IPS, json!({ "a": 1 }));
    let mut plan = Plan { items: vec![(goal, State::Now(step(Action::Create, &ip)))] };
    plan.let_documents_go();
    assert_eq!(plan.items[0].0.document, Value::Null);
    assert_eq!(
        plan.steps().map(|step| (step.action, &step.document)).collect::<Vec<_>>(),
        [(Action::Create, &Value::Null)]
    );
}

#[test]
fn words_of_two_documents_are_compared_as_azure_writes_them() {
    let kind = Kind::of(&id("publicIPAddresses", "one"));
    for (wanted, held, is_same) in [
        (json!("eastus"), json!("EastUS"), true),
        (json!("a"), json!("b"), false),
        (json!(4), json!("4"), true),
        (json!(4), json!("5"), false),
        (json!("4"), json!(4), true),
        (json!("5"), json!(4), false),
        (json!(4), json!(4), true),
        (json!(true), json!(false), false),
        (json!([{ "Key": "a" }]), json!([{ "key": "A", "more": 1 }]), true),
        (json!([{ "key": "a", "none": false }]), json!([{ "key": "a" }]), true),
        (json!([{ "key": "a", "some": true }]), json!([{ "key": "a" }]), false),
        (json!([["a", "b"]]), json!([["B", "A"]]), true),
        (json!([["a", "c"]]), json!([["a", "b"]]), false),
    ] {
        let of = |value: &Value| json!({ "properties": { "member": value } });
        let (_, changes) = capz_planner::compare::merge(kind, &of(&wanted), &of(&held), &[]);
        assert_eq!(changes.is_empty(), is_same, "{wanted} {held}: {changes:?}");
        assert_eq!(format!("{changes:?}").contains("member"), !is_same, "a change is shown");
        let changes: Vec<Change> = differences(kind, &of(&wanted), &of(&held));
        // What is missing altogether was never there.
        assert_eq!(changes.iter().any(|change| change.from.is_some()), !changes.is_empty());
    }
}

#[test]
fn conditions_of_every_end_of_a_service() {
    let ip = || id("publicIPAddresses", "one");
    let goal = |wanted: bool| Goal { wanted, ..Goal::new(ip(), &service::PUBLIC_IPS, json!({})) };
    for (wanted, state, reason, part) in [
        (true, State::Reached, None, ""),
        (false, State::Reached, Some("Deleted"), "publicips successfully deleted"),
        (
            true,
            State::Refused(Action::Create, "no".into()),
            Some("Failed"),
            "publicips failed to create or update. err: no",
        ),
        (
            true,
            State::Refused(Action::Update, "no".into()),
            Some("Failed"),
            "publicips failed to create or update. err: no",
        ),
        (
            false,
            State::Refused(Action::Delete, "no".into()),
            Some("DeletionFailed"),
            "publicips failed to delete. err: no",
        ),
        (true, State::Disputed(rival()), Some("Failed"), "err: it belongs to another cluster"),
        (true, State::Missing, Some("Failed"), "err: a resource that is not ours does not exist"),
    ] {
        let plan = Plan { items: vec![(goal(wanted), state.clone())] };
        let services: [&'static Service; 1] = [&service::PUBLIC_IPS];
        let found = project(&services, &plan);
        let [condition] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(condition.reason.as_deref(), reason, "{state:?}");
        assert!(condition.message.clone().unwrap_or_default().contains(part), "{condition:?}");
    }
}

#[test]
fn the_worst_condition_is_the_summary() {
    let failing = |name: &str, severity| fails(name, name, severity, "words");
    let reason = |conditions: &[Condition]| summary(conditions).and_then(|condition| condition.reason);
    let (info, warning, error) =
        (failing("A", Severity::Info), failing("B", Severity::Warning), failing("C", Severity::Error));
    for (conditions, expected) in [
        (vec![info.clone(), warning.clone(), error.clone()], Some("C")),
        (vec![error, info.clone(), warning.clone()], Some("C")),
        (vec![info.clone(), warning.clone()], Some("B")),
        (vec![warning, info.clone()], Some("B")),
        (vec![holds("D"), info], Some("A")),
        (vec![holds("D")], None),
        (Vec::new(), None),
    ] {
        assert_eq!(reason(&conditions).as_deref(), expected, "{conditions:?}");
    }
    let known = vec![fails("A", "Why", Severity::Info, "words"), holds("B")];
    for (condition, reason, expected) in
        [("A", "Why", true), ("A", "Other", false), ("B", "Why", false), ("C", "Why", false)]
    {
        assert_eq!(has_reason(Some(&known), condition, reason), expected, "{condition} {reason}");
    }
    assert!(!has_reason(None, "A", "Why"));
}

#[test]
fn a_machine_that_was_stopped_by_others_is_named() {
    let condition = stopped("Deallocated", "/the/machine");
    assert_eq!(condition.reason.as_deref(), Some("VMDeallocated"));
    assert_eq!(condition.severity.as_deref(), Some("Warning"));
    let words = condition.message.unwrap();
    assert!(
        words.starts_with("the virtual machine is deallocated") && words.contains("--ids /the/machine"),
        "{words}"
    );
}

/// What another cluster has is named with what helps.
#[test]
fn a_dispute_names_what_to_change() {
    let cluster = Cluster::new(json!({}));
    let refers = Rival {
        owner: "another network".to_owned(),
        evidence: Evidence::Refers { resource: "/other".to_owned() },
    };
    for (service, rival, part) in [
        (&service::DNS_RECORD, rival(), "name another zone (spec.networkSpec.privateDNSZoneName)"),
        (&service::PEERINGS, rival(), "give this cluster's network another name"),
        (&service::PUBLIC_IPS, rival(), "give this Cluster another name, or another resource group"),
        (&service::PUBLIC_IPS, refers, "leads to another network, /other"),
    ] {
        let goal = Goal::new(id("publicIPAddresses", "one"), service, json!({}));
        let words = goal.disputed(cluster.scope().claimant(), &rival);
        assert!(words.starts_with("public IP one ") && words.contains(part), "{words}");
    }
}

#[test]
fn objects_of_the_operator() {
    let definitions: BTreeSet<String> = kinds().iter().map(|kind| kind.definition()).collect();
    assert!(definitions.contains("resourcegroups.resources.azure.com"), "{definitions:?}");
    assert!(definitions.contains("virtualnetworks.network.azure.com"), "{definitions:?}");
    assert_eq!(
        Definition::without_converter()["spec"]["conversion"],
        json!({ "strategy": "None", "webhook": null })
    );
    for (more, expected) in
        [(json!({}), false), (json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }), true)]
    {
        let owner = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
            "controller": true, "uid": "o" });
        let mut metadata = json!({ "name": "one", "namespace": "default", "ownerReferences": [owner] });
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let object = OperatorObject::of(&kinds()[0], &json!({ "metadata": metadata })).unwrap();
        assert_eq!(object.is_deleted(), expected);
    }
}

/// Machines of flexible sets are among the others of their group.
#[test]
fn a_pool_reads_its_own_instances() {
    let (uniform, flexible) = (Pool::new(json!({})), {
        let mut pool = Pool::new(json!({}));
        pool.spec.orchestration_mode = Some("Flexible".into());
        pool
    });
    let own = uniform.scope().scale_set();
    let other =
        ResourceId::group("123", "my-rg").resource("Microsoft.Compute", "virtualMachineScaleSets", "other");
    let machine = |name: &str, set: Option<&ResourceId>| {
        let id = ResourceId::group("123", "my-rg").resource("Microsoft.Compute", "virtualMachines", name);
        json!({ "id": id, "name": name, "properties": {
            "virtualMachineScaleSet": set.map(|id| json!({ "id": id.to_string().to_uppercase() })) } })
    };
    let all = [machine("a", Some(&own)), machine("b", Some(&other)), machine("c", None)];
    assert_eq!(flexible.scope().read_instances(&all).len(), 1);
    assert_eq!(uniform.scope().read_instances(&all).len(), 3, "its list shows no others");
    let image = uniform.scope().image().unwrap();
    assert_ne!(image, capz_api::machine::Image::default());
}

#[test]
fn a_pool_remembers_tags_and_owner() {
    let mut pool = Pool::new(json!({}));
    pool.spec.additional_tags = Some(std::collections::BTreeMap::from([("team".to_owned(), "a".to_owned())]));
    assert_eq!(pool.scope().remembered_tags(), r#"{"kubernetes.io_cluster_my-cluster":"owned","team":"a"}"#);
    let goals = pool.try_goals(&ObservedResources::default(), None).unwrap();
    let tags = &goals.iter().find(|goal| goal.id == pool.scope().scale_set()).unwrap().document["tags"];
    let borne = pool.scope().remembered_owner(&json!({ "tags": tags }));
    assert!(borne.is_some_and(|word| !word.is_empty() && word != "xyzzy"), "{borne:?}");
    assert_eq!(pool.scope().remembered_owner(&json!({})), None);
}

#[test]
fn long_values_are_abbreviated_in_changes() {
    let change = |from: Value, to: Value| {
        let change = Change { at: "at".to_owned(), from: Some(from), to: Some(to), secret: false };
        change.to_string()
    };
    for (value, expected) in [
        (json!("text"), "text"),
        (json!("x".repeat(80)), &*"x".repeat(80)),
        (json!({ "name": "one", "more": 1 }), "one"),
        (json!({ "id": "only" }), "only"),
        (json!({ "a": { "b": 1 } }), "1"),
        (json!({ "a": 1, "b": 2 }), "2 members"),
        (json!({}), "0 members"),
        (json!(["a"]), r#"["a"]"#),
        (json!(["x".repeat(56)]), &*format!(r#"["{}"]"#, "x".repeat(56))),
        (json!(["x".repeat(57)]), &*format!(r#"["{}"…"#, "x".repeat(57))),
        (json!(true), "true"),
    ] {
        assert_eq!(change(value.clone(), json!(1)), format!("at: {expected} becomes 1"));
        assert_eq!(change(json!(1), value), format!("at: 1 becomes {expected}"));
    }
    let one = |from, to, secret| Change { at: "at".to_owned(), from, to, secret }.to_string();
    assert_eq!(one(None, Some(json!(1)), false), "at is missing: 1");
    assert_eq!(one(Some(json!(1)), None, false), "at is no longer declared: 1");
    assert_eq!(one(None, None, false), "at");
    assert_eq!(one(Some(json!(1)), Some(json!(2)), true), "at differs");
}

/// An extension that waits for the bootstrap says why that may take long.
#[test]
fn the_likely_cause_of_a_late_extension_is_named() {
    let extension = ResourceId::group("123", "my-rg")
        .resource("Microsoft.Compute", "virtualMachines", "m")
        .child("extensions", "e");
    let goal = || Goal::new(extension.clone(), &service::EXTENSIONS, json!({}));
    for (state, expected) in [
        (
            State::Running(Action::Create),
            Some("vmextensions creating or updating. the extension is still being installed"),
        ),
        (
            State::Refused(Action::Create, "no".into()),
            Some("err: no. the machine has probably not joined its cluster, or not in time"),
        ),
        (State::Reached, None),
    ] {
        let plan = Plan { items: vec![(goal(), state)] };
        let all = capz_planner::machine::conditions(&plan);
        let found = all.iter().find(|one| one.condition.as_deref() == Some("BootstrapSucceeded")).unwrap();
        assert_eq!(found.message.is_some(), expected.is_some(), "{found:?}");
        assert!(expected.is_none_or(|part| found.message.clone().unwrap().contains(part)), "{found:?}");
    }
}

#[test]
fn an_object_elsewhere_says_what_to_set_back() {
    let group = ResourceId::group("123", "my-rg");
    let check = |id: &str| capz_planner::elsewhere::check_provider_id(Some(id), &group);
    let machine = "providers/Microsoft.Compute/virtualMachines/m";
    assert_eq!(check(&format!("azure:///subscriptions/123/resourceGroups/MY-RG/{machine}")), Ok(()));
    assert_eq!(capz_planner::elsewhere::check_provider_id(None, &group), Ok(()));
    let words = check(&format!("azure:///subscriptions/9/resourceGroups/my-rg/{machine}")).unwrap_err();
    assert!(
        words.contains("set spec.subscriptionID of the AzureCluster, ")
            && words.ends_with("back to 9, or, if nothing of it exists yet, remove spec.providerID"),
        "{words}"
    );
    let words = check(&format!("azure:///subscriptions/123/resourceGroups/other/{machine}")).unwrap_err();
    assert!(words.ends_with("set spec.resourceGroup of the AzureCluster back to other"), "{words}");
}

/// A control plane that is managed externally declares its endpoint itself.
#[test]
fn a_declared_endpoint_is_awaited() {
    use capz_planner::cluster::{Endpoint, endpoint};
    for (host, port, expected) in [
        (Some("h"), Some(6443), Ok(("h", 6443))),
        (None, Some(6443), Err("host")),
        (Some(""), Some(6443), Err("host")),
        (Some("h"), None, Err("port")),
        (Some("h"), Some(0), Err("port")),
        (None, None, Err("host")),
    ] {
        let mut cluster = Cluster::new(json!({}));
        cluster.spec.control_plane_enabled = Some(false);
        cluster.spec.control_plane_endpoint =
            serde_json::from_value(json!({ "host": host, "port": port })).unwrap();
        let found = match endpoint(cluster.scope()) {
            Endpoint::Known(found) => Ok((found.host.unwrap(), found.port.unwrap())),
            Endpoint::Awaited(member) => Err(member),
        };
        assert_eq!(found, expected.map(|(host, port)| (host.to_owned(), port)), "{host:?} {port:?}");
    }
}

//! The life of machines: refused, observed, kept up, deleted.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use capz_planner::machine::{self, GoalError};
use capz_planner::plan::Facts;
use capz_planner::sku::{Skus, VIRTUAL_MACHINES};
use capz_planner::{Action, ObservedResources, Plan, State, condition, noun, plan, tags};
use serde_json::json;

use super::azure::Azure;
use super::cluster::Cluster;
use super::machine::{Machine, SIZE};

/// CAPZ-109, CAPZ-115: an invalid declaration is reported before anything is written, but does not affect an existing
/// machine.
#[test]
fn what_will_not_work_is_terminal() {
    let mut machine = Machine::worker(json!({}));
    machine.set_capabilities(&[]);
    let weak = json!({ "name": SIZE, "resourceType": VIRTUAL_MACHINES, "capabilities": [{ "name": "vCPUs", "value": "1" }] });
    machine.skus = Skus::read("eastus", &[weak]);
    machine.labels.clear();
    let vm = machine.scope().vm();
    let mut observed = ObservedResources::default();
    observed.take(&vm, None);
    let GoalError::Terminal(terminal) = machine.try_goals(&observed).unwrap_err() else {
        panic!("not terminal")
    };
    assert_eq!((terminal.reason.as_str(), terminal.reason.event()), ("CreateError", "ReconcileError"));
    observed.take(&vm, Some(json!({ "tags": { tags::owner_key("my-cluster"): "owned" } })));
    assert!(machine.try_goals(&observed).is_ok());

    let mut machine = Machine::worker(json!({}));
    let id = "azure:///subscriptions/123/resourceGroups/my-rg/providers/Microsoft.Compute/virtualMachines/my-machine";
    machine.spec.provider_id = Some(id.into());
    assert!(machine.try_goals(&ObservedResources::default()).is_ok(), "unknown is not absent");
    let mut observed = ObservedResources::default();
    observed.take(&vm, None);
    let GoalError::Terminal(terminal) = machine.try_goals(&observed).unwrap_err() else {
        panic!("not terminal")
    };
    assert_eq!((terminal.reason.as_str(), terminal.reason.event()), ("UpdateError", "VMDeleted"));
    assert_eq!(terminal.message, format!("VM with provider id \"{id}\" has been deleted"));
}

/// A foreign machine of the same name is neither taken over nor deleted.
#[test]
fn a_foreign_machine_stays_foreign() {
    let machine = Machine::worker(json!({}));
    let mut azure = Azure::default();
    azure.put(
        &machine.scope().vm(),
        json!({ "tags": {}, "properties": { "provisioningState": "Succeeded" } }),
    );
    let observed = azure.observed(&machine.goals());
    let error = machine.try_goals(&observed).unwrap_err();
    assert!(matches!(error, GoalError::NotNow(_)), "{error:?}");
    assert!(
        error.to_string().contains("sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster=owned"),
        "{error}"
    );
    assert_eq!(machine::observed_machine(&machine.scope(), &observed), None);
    // Its disks have the names that ours would have, and an interface of ours may have been created before it.
    let group = machine.cluster.scope().group();
    let disk = group.resource("Microsoft.Compute", "disks", "my-machine_OSDisk");
    azure.put(&disk, json!({ "properties": { "diskState": "Attached" } }));
    let before = azure.documents.clone();
    let nic = machine.cluster.scope().in_group("networkInterfaces", "my-machine-nic");
    let owner = tags::owner_key("my-cluster");
    for interface in [None, Some(json!({ "tags": { owner: "owned" }, "properties": {} }))] {
        if let Some(interface) = interface {
            azure.put(&nic, interface);
        }
        let observed = azure.observed(&machine::ends(&machine.scope(), &ObservedResources::default()));
        let plan = azure.settle("my-cluster", &machine::ends(&machine.scope(), &observed));
        assert!(plan.is_reached(), "{plan}");
        assert_eq!(azure.documents, before);
    }
}

/// Disks bear no tags. If the machine is gone, the interface that was created for it proves their owner.
#[test]
fn disks_of_a_machine_that_was_never_made_are_told_by_its_interface() {
    let machine = Machine::worker(json!({}));
    let disk = machine.cluster.scope().group().resource("Microsoft.Compute", "disks", "my-machine_OSDisk");
    let mut azure = machine.settled();
    azure.put(&disk, json!({ "properties": { "diskState": "Unattached" } }));
    azure.documents.remove(&machine.scope().vm());
    azure.rounds.clear();
    let ends = machine::ends(&machine.scope(), &ObservedResources::default());
    assert!(azure.settle("my-cluster", &ends).is_reached());
    assert_eq!(azure.rounds.last().unwrap(), &["my-machine-nic"]);
    assert!(!azure.documents.contains_key(&disk));
    azure.put(&disk, json!({ "properties": { "diskState": "Unattached" } }));
    assert!(azure.settle("my-cluster", &ends).is_reached());
    assert!(azure.documents.contains_key(&disk), "nothing says that it is ours");
}

/// The object's record of its machine counts for less than marks in Azure while another cluster has the same name and
/// group.
#[test]
fn disks_beside_a_cluster_of_the_same_name_are_told_by_the_marked_interface() {
    let provider_id = "azure:///subscriptions/123/resourceGroups/my-rg/providers/Microsoft.Compute/virtualMachines/my-machine";
    let mut machine = Machine::worker(json!({ "providerID": provider_id }));
    let (key, value) = machine::MADE_ANNOTATION;
    machine.annotations.insert(key.to_owned(), value.to_owned());
    let mut scope = machine.scope();
    (scope.cluster.id, scope.cluster.marked_only) = (Some("own"), true);
    let group = scope.cluster.group();
    let disk = group.resource("Microsoft.Compute", "disks", "my-machine_OSDisk");
    let nic = scope.cluster.in_group("networkInterfaces", "my-machine-nic");
    let owner = tags::owner_key("my-cluster");
    for (id, goes) in [("own", true), ("another", false)] {
        let mut azure = Azure::default();
        let tags = json!({ "tags": { &owner: "owned", tags::ID: id }, "properties": {} });
        azure.put(&scope.vm(), tags.clone());
        azure.put(&nic, tags);
        azure.put(&disk, json!({ "properties": { "diskState": "Attached" } }));
        let observed = azure.observed(&machine::ends(&scope, &ObservedResources::default()));
        assert!(azure.settle(scope.cluster.claimant(), &machine::ends(&scope, &observed)).is_reached());
        assert_eq!(azure.documents.is_empty(), goes, "{id}: {:?}", azure.names());
    }
}

/// CAPZ-114: the observed state of an existing machine.
#[test]
fn a_machine_that_is_there_has_addresses() {
    let subnet = json!([{ "name": "n", "role": "cluster" }]);
    let cluster = Cluster::new(json!({ "resourceGroup": "My-RG", "networkSpec": { "subnets": subnet } }));
    let machine = Machine::with(cluster, json!({ "allocatePublicIP": true }), &[]);
    let mut azure = machine.settled();
    let nic = machine.cluster.scope().in_group("networkInterfaces", "my-machine-nic");
    azure.documents.get_mut(&nic).unwrap()["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] =
        json!("10.0.0.4");
    let ip = machine.cluster.scope().public_ip("pip-my-machine");
    azure.documents.get_mut(&ip).unwrap()["properties"]["ipAddress"] = json!("20.1.2.3");
    let observed = azure.observed(&machine.goals());
    let found = machine::observed_machine(&machine.scope(), &observed).unwrap();
    assert_eq!(
        found.provider_id,
        "azure:///subscriptions/123/resourceGroups/my-rg/providers/Microsoft.Compute/virtualMachines/my-machine"
    );
    assert_eq!(found.vm_state, "Succeeded");
    assert_eq!(
        json!(found.addresses),
        json!([
            { "type": "InternalDNS", "address": "my-machine" },
            { "type": "InternalIP", "address": "10.0.0.4" },
            { "type": "ExternalIP", "address": "20.1.2.3" },
        ])
    );
    // While an interface is unknown, the addresses are not reported as fewer.
    let mut observed = azure.observed(&machine.goals());
    observed.forget(&nic);
    assert_eq!(machine::observed_machine(&machine.scope(), &observed).unwrap().addresses, None);
    // A machine that is still being created does not count as existing.
    azure.documents.get_mut(&machine.scope().vm()).unwrap()["properties"]["provisioningState"] =
        json!("Creating");
    assert_eq!(machine::observed_machine(&machine.scope(), &azure.observed(&machine.goals())), None);
}

#[test]
fn identities_that_are_missing_are_named() {
    let id =
        "/subscriptions/123/resourceGroups/r/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i";
    let machine = Machine::worker(
        json!({ "identity": "UserAssigned", "userAssignedIdentities": [{ "providerID": format!("azure://{id}") }] }),
    );
    for (held, missing) in [(id.to_uppercase(), None), ("/other".into(), Some(id.to_owned()))] {
        let mut observed = ObservedResources::default();
        let owner = tags::owner_key("my-cluster");
        observed.take(
            &machine.scope().vm(),
            Some(json!({
                "tags": { owner: "owned" },
                "identity": { "userAssignedIdentities": { held: {} } },
                "properties": { "provisioningState": "Succeeded" },
            })),
        );
        assert_eq!(machine::observed_machine(&machine.scope(), &observed).unwrap().missing_identity, missing);
    }
}

/// CAPZ-117: conditions explain an extension that takes long, or fails.
#[test]
fn conditions_tell_of_a_machine_that_does_not_start() {
    let machine = Machine::worker(json!({ "disableVMBootstrapExtension": false }));
    let mut azure = machine.settled();
    let extension = machine.scope().vm().child("extensions", "CAPZ.Linux.Bootstrapping");
    let said = |azure: &Azure| -> Vec<(String, String, String)> {
        let observed = azure.observed(&machine.goals());
        let plan = azure.plan("my-cluster", machine.try_goals(&observed).unwrap());
        let text = |text: Option<String>| text.unwrap_or_default();
        machine::conditions(&plan)
            .into_iter()
            .map(|it| {
                (text(it.condition), format!("{}{}", text(it.status), text(it.reason)), text(it.message))
            })
            .collect()
    };
    let names = |said: &[(String, String, String)]| -> Vec<String> {
        said.iter().map(|(name, status, _)| format!("{name}={status}")).collect()
    };
    assert_eq!(
        names(&said(&azure)),
        [
            "NetworkInterfacesReady=True",
            "AvailabilitySetReady=True",
            "VMRunning=True",
            "BootstrapSucceeded=True",
            "DisksReady=True"
        ]
    );
    for (state, status, words) in [
        (
            "Creating",
            "FalseCreating",
            "vmextensions creating or updating. the extension is still being installed",
        ),
        (
            "Failed",
            "FalseFailed",
            "vmextensions failed to create or update. err: its provisioning state is Failed",
        ),
    ] {
        azure.documents.get_mut(&extension).unwrap()["properties"]["provisioningState"] = json!(state);
        let said = said(&azure);
        let (_, told, message) = said.iter().find(|(name, ..)| name == "BootstrapSucceeded").unwrap();
        assert_eq!(told, status);
        assert!(message.starts_with(words), "{message}");
    }
    azure.documents.get_mut(&extension).unwrap()["properties"]["provisioningState"] = json!("Succeeded");
    // The disks are created with the machine.
    let plan = azure.plan("my-cluster", machine.goals());
    let mut items = plan.items;
    for (goal, state) in &mut items {
        if noun(&goal.id) == "virtual machine" {
            *state = State::Running(Action::Create);
        }
    }
    let conditions = machine::conditions(&Plan { items });
    for name in ["VMRunning", "DisksReady"] {
        let found = conditions.iter().find(|it| it.condition.as_deref() == Some(name)).unwrap();
        assert_eq!(found.message.as_deref(), Some("virtualmachine creating or updating"), "{name}");
    }
    let summary = condition::summary(&conditions).unwrap();
    assert_eq!(summary.reason.as_deref(), Some("Creating"));
}

/// CAPZ-119.
#[test]
fn tags_of_a_machine_are_kept_up() {
    let mut machine = Machine::worker(json!({ "additionalTags": { "a": "1", "b": "2" } }));
    let mut azure = machine.settled();
    let id = machine.scope().vm();
    azure.documents.get_mut(&id).unwrap()["tags"]["policy"] = json!("theirs");
    let memory = machine::remembered(&machine.scope(), &azure.observed(&machine.goals()));
    machine.annotations.extend(memory);
    assert_eq!(
        machine.annotations[machine::TAGS],
        r#"{"a":"1","b":"2","kubernetes.io_cluster_my-cluster":"owned"}"#
    );
    let found = machine::observed_machine(&machine.scope(), &azure.observed(&machine.goals())).unwrap();
    machine.spec.provider_id = Some(found.provider_id);
    machine.spec.additional_tags = Some([("a".to_owned(), "3".to_owned())].into());
    let step = |machine: &Machine, azure: &Azure| {
        let observed = azure.observed(&machine.goals());
        let plan = azure.plan("my-cluster", machine.try_goals(&observed).unwrap());
        let steps: Vec<_> = plan.steps().cloned().collect();
        assert!(steps.len() < 2, "{plan}");
        steps.into_iter().next()
    };
    // Its interface comes first, because its ID is in the machine's document.
    let written = step(&machine, &azure).unwrap();
    assert!(!written.partial && written.target.name() == "my-machine-nic", "{written:?}");
    azure.documents.get_mut(&written.target).unwrap()["tags"] = written.document["tags"].clone();
    let written = step(&machine, &azure).unwrap();
    assert!(written.partial);
    assert_eq!(written.target, id);
    let words: Vec<String> = written.changes.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["tags.a: 1 becomes 3", "tags.b is no longer declared: 2"]);
    let tags_now = written.document["tags"].as_object().unwrap();
    assert_eq!(
        (&tags_now["a"], tags_now.get("b"), &tags_now["policy"]),
        (&json!("3"), None, &json!("theirs"))
    );
    assert_eq!(written.document.as_object().unwrap().len(), 1, "nothing else is sent");
    // A tag with another value belongs to the writer that changed it.
    azure.documents.get_mut(&id).unwrap()["tags"]["b"] = json!("changed");
    assert_eq!(step(&machine, &azure).unwrap().changes.len(), 1);
    // Removed tags are written again if they were recorded; otherwise the machine is left alone.
    azure.documents.get_mut(&id).unwrap()["tags"] = json!({ "a": "1" });
    let written = step(&machine, &azure).unwrap();
    assert_eq!(
        written.document["tags"]["sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster"],
        "owned"
    );
    machine.annotations.remove(capz_planner::OWNER_TAGS).unwrap();
    assert_eq!(step(&machine, &azure), None);
}

/// CAPZ-120: a machine is deleted first and by force, the resources created for it follow, and shared ones stay.
#[test]
fn machines_end_and_leave_nothing() {
    let machine = Machine::control_plane(
        Cluster::new(json!({})),
        json!({ "allocatePublicIP": true, "dataDisks": [{ "nameSuffix": "etcd", "diskSizeGB": 8 }] }),
    );
    let mut azure = Azure::default();
    assert!(azure.settle("my-cluster", &machine.cluster.goals()).is_reached());
    let before = azure.documents.clone();
    machine.settle(&mut azure);
    let group = machine.cluster.scope().group();
    let disks = ["my-machine_OSDisk", "my-machine_etcd"]
        .map(|name| group.resource("Microsoft.Compute", "disks", name));
    for disk in &disks {
        azure.put(disk, json!({ "properties": { "diskState": "Attached" } }));
    }
    let vm = machine.scope().vm();
    azure.documents.get_mut(&vm).unwrap()["properties"]["storageProfile"]["osDisk"]["managedDisk"] =
        json!({ "id": disks[0].as_str() });
    let set = group.resource("Microsoft.Compute", "availabilitySets", "my-cluster_control-plane-as");
    azure.rounds.clear();
    let ends = machine::ends(&machine.scope(), &ObservedResources::default());
    let first = azure.plan("my-cluster", ends.clone());
    let steps: Vec<_> = first.steps().collect();
    assert_eq!(steps.len(), 1, "{first}");
    assert!(steps[0].forced && steps[0].target == vm);

    // Another machine keeps the availability set of both.
    let other = group.resource("Microsoft.Compute", "virtualMachines", "other");
    let mut shared = Azure::default();
    shared.documents = azure.documents.clone();
    shared.put(&other, json!({ "properties": {} }));
    shared.documents.get_mut(&set).unwrap()["properties"]["virtualMachines"] =
        json!([{ "id": other.as_str() }]);
    assert!(shared.settle("my-cluster", &ends).is_reached());
    assert!(shared.documents.contains_key(&set));

    // The set's document may have been read while the machine existed.
    let mut observed = azure.observed(&ends);
    let mut held = azure.documents[&set].clone();
    held["properties"]["virtualMachines"] = json!([{ "id": vm.as_str() }]);
    observed.take(&set, Some(held));
    let state = |observed: &ObservedResources| {
        let (running, refused) = (BTreeMap::new(), BTreeMap::new());
        let facts = Facts { claimant: "my-cluster".into(), observed, running: &running, refused: &refused };
        plan::plan(ends.clone(), facts).state_of(&set).cloned().unwrap()
    };
    assert_eq!(state(&observed), State::Foreign);
    observed.take(&vm, None);
    assert!(matches!(state(&observed), State::Now(_)));

    let plan = azure.settle("my-cluster", &ends);
    assert!(plan.is_reached(), "{plan}");
    assert_eq!(azure.documents, before);
    assert_eq!(azure.rounds[0], ["my-machine"]);
    assert_eq!(
        azure.settle("my-cluster", &machine.cluster.goals()).to_string(),
        "No changes: Azure is as declared.\n"
    );
}

/// A role assignment needs the machine's identity: its goal exists once Azure has returned it.
#[test]
fn a_role_is_given_to_the_identity_of_the_machine() {
    let machine = Machine::worker(json!({ "identity": "SystemAssigned" }));
    let role = |azure: &Azure| {
        let goals = machine.try_goals(&azure.observed(&machine.goals())).unwrap();
        goals.into_iter().find(|goal| noun(&goal.id) == "role assignment")
    };
    let mut azure = machine.settled();
    assert_eq!(role(&azure), None);
    azure.documents.get_mut(&machine.scope().vm()).unwrap()["identity"]["principalId"] = json!("who");
    let goal = role(&azure).unwrap();
    let id = ResourceId::subscription("123").resource(
        "Microsoft.Authorization",
        "roleAssignments",
        "5e5e5e5e-0000-0000-0000-000000000000",
    );
    assert_eq!(goal.id, id);
    assert_eq!(
        goal.document["properties"],
        json!({
            "principalId": "who",
            "principalType": "ServicePrincipal",
            "roleDefinitionId": "/subscriptions/123/providers/Microsoft.Authorization/roleDefinitions/b24988ac-6180-42a0-ab88-20f7382dd24c",
        })
    );
    azure.put(&ResourceId::subscription("123"), json!({}));
    azure.put(
        &ResourceId::parse(goal.document["properties"]["roleDefinitionId"].as_str().unwrap()).unwrap(),
        json!({}),
    );
    machine.settle(&mut azure);
    assert!(azure.documents.contains_key(&id));
    // It stays when the machine is deleted.
    assert!(!machine::ends(&machine.scope(), &ObservedResources::default()).iter().any(|goal| goal.id == id));
}

/// Order is derived from documents: dependencies of machines exist before them, and independent resources are created
/// in parallel. A second reconcile finds nothing to do.
#[test]
fn machines_are_made_in_as_few_rounds_as_can_be() {
    let machine = Machine::control_plane(
        Cluster::new(json!({})),
        json!({ "allocatePublicIP": true, "disableVMBootstrapExtension": false }),
    );
    let mut azure = Azure::default();
    azure.settle("my-cluster", &machine.cluster.goals());
    azure.rounds.clear();
    let plan = machine.settle(&mut azure);
    assert!(plan.is_reached(), "{plan}");
    let rounds: Vec<Vec<&str>> =
        azure.rounds.iter().map(|round| round.iter().map(String::as_str).collect()).collect();
    assert_eq!(
        rounds,
        [
            // The public IP, the inbound NAT rule and the availability set.
            vec!["pip-my-machine", "my-machine", "my-cluster_control-plane-as"],
            vec!["my-machine-nic"],
            vec!["my-machine"],
            vec!["CAPZ.Linux.Bootstrapping"],
        ]
    );
}

/// Secrets are not in plans and logs.
#[test]
fn secrets_are_not_printed() {
    let machine = Machine::worker(json!({ "osDisk": { "osType": "Windows" } }));
    let mut observed = ObservedResources::default();
    let goals = machine.goals();
    for asked in observed.missing(&goals).into_values() {
        observed.take_list(&asked, &[]);
    }
    let (running, refused) = (BTreeMap::new(), BTreeMap::new());
    let facts =
        Facts { claimant: "my-cluster".into(), observed: &observed, running: &running, refused: &refused };
    let plan = plan::plan(goals, facts);
    for text in [plan.to_string(), format!("{plan:?}")] {
        assert!(text.contains("my-machine-nic"), "{text}");
        assert!(!text.contains("Ym9vdA==") && !text.contains("correct horse"), "{text}");
    }
}

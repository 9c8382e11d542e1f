//! Previews: the steps that will be taken.

use capz_planner::preview::Next;
use capz_planner::{Goal, ObservedResources, Outlook, Preview, Reading};
use serde_json::json;

use super::azure::Azure;
use super::cluster::Cluster;
use super::machine::Machine;

/// Plans to the end, with the state of this Azure.
fn foresee(preview: &mut Preview, azure: &Azure, goals: impl Fn(&ObservedResources) -> Vec<Goal>) -> Outlook {
    loop {
        let goals = goals(&preview.observed);
        match preview.next("my-cluster".into(), goals.clone()) {
            Next::Read(unread) => {
                for (reading, asked) in unread {
                    match reading {
                        Reading::List { group, resource_type, .. } => {
                            preview.observed.take_list(&asked, &azure.list(&group, resource_type));
                        }
                        Reading::Get { id, .. } => preview.observed.take(&id, azure.get(&id)),
                    }
                }
            }
            Next::Again => {}
            Next::Rest(plan) => return preview.end(plan),
        }
    }
}

fn rounds(outlook: &Outlook) -> Vec<Vec<String>> {
    let name = |it: &capz_planner::Foreseen| it.step.target.name().to_owned();
    outlook.rounds.iter().map(|round| round.iter().map(name).collect()).collect()
}

/// The preview matches the execution, round by round, for clusters and machines; and nothing is left to do then.
#[test]
fn what_is_foreseen_is_what_is_done() {
    let cluster = || Cluster::new(json!({}));
    let machine = Machine::control_plane(cluster(), json!({}));
    let (mut azure, mut preview) = (Azure::default(), Preview::default());
    let network = foresee(&mut preview, &Azure::default(), |_| cluster().goals());
    let vm = foresee(&mut preview, &Azure::default(), |observed| machine.try_goals(observed).unwrap());
    assert!(network.rest.is_reached() && vm.rest.is_reached(), "{network}{vm}");

    assert!(azure.settle("my-cluster", &cluster().goals()).is_reached());
    assert_eq!(rounds(&network), azure.rounds);
    azure.rounds.clear();
    let goals = machine.try_goals(&azure.observed(&cluster().goals())).unwrap();
    assert!(azure.settle("my-cluster", &goals).is_reached());
    assert_eq!(rounds(&vm), azure.rounds);

    let again = foresee(&mut Preview::default(), &azure, |_| cluster().goals());
    assert_eq!(again.steps().count(), 0, "{again}");
    assert!(again.rest.is_reached());
}

#[test]
fn it_reads_like_a_plan_of_terraform() {
    let outlook = foresee(&mut Preview::default(), &Azure::default(), |_| Cluster::new(json!({})).goals());
    let lines = "
   1. + resource group my-rg
   2. + public IP pip-my-cluster-node-natgw: Standard; Static; IPv4
        after resource group my-rg
   3. + virtual network my-cluster-vnet: 10.0.0.0/8
        after public IP pip-my-cluster-node-natgw
   3. + security group my-cluster-controlplane-nsg: rules allow_ssh, allow_apiserver
        after public IP pip-my-cluster-node-natgw
   3. + security group my-cluster-node-nsg
        after public IP pip-my-cluster-node-natgw
   3. + route table my-cluster-node-routetable
        after public IP pip-my-cluster-node-natgw
   3. + public IP pip-my-cluster-apiserver: Standard; Static; IPv4; name my-cluster-3f5c6fa8
        after public IP pip-my-cluster-node-natgw
   3. + NAT gateway my-cluster-node-natgw: Standard
        after public IP pip-my-cluster-node-natgw
   4. + subnet my-cluster-vnet/my-cluster-controlplane-subnet: 10.0.0.0/16
        after security group my-cluster-controlplane-nsg, route table my-cluster-node-routetable, virtual network my-cluster-vnet
   4. + load balancer my-cluster-public-lb: Standard; rules LBRuleHTTPS
        after public IP pip-my-cluster-apiserver
   5. + subnet my-cluster-vnet/my-cluster-node-subnet: 10.1.0.0/16
        after NAT gateway my-cluster-node-natgw, security group my-cluster-node-nsg, route table my-cluster-node-routetable, virtual network my-cluster-vnet
";
    assert_eq!(outlook.to_string(), lines.trim_start_matches('\n'));
}

/// Differences are written with their reasons, and foreign resources are left alone.
#[test]
fn what_is_there_is_changed_where_it_differs() {
    let cluster = Cluster::new(json!({}));
    let mut azure = Azure::default();
    azure.settle("my-cluster", &cluster.goals());
    let vnet = cluster.scope().network();
    let group = cluster.scope().in_network_group("networkSecurityGroups", "my-cluster-controlplane-nsg");
    let mut held = azure.documents[&group].clone();
    held["properties"]["securityRules"] = json!([]);
    azure.put(&group, held);
    azure.documents.get_mut(&vnet).unwrap()["tags"] = json!({ "of": "others" });
    let outlook = foresee(&mut Preview::default(), &azure, |_| cluster.goals());
    let lines = "
   1. ~ security group my-cluster-controlplane-nsg
        securityRules[allow_ssh] is missing: allow_ssh
        securityRules[allow_apiserver] is missing: allow_apiserver
";
    assert_eq!(outlook.to_string(), lines.trim_start_matches('\n'));
}

/// Machines of a control plane have ports of their own, though none of them exists yet.
#[test]
fn machines_are_foreseen_one_after_the_other() {
    let mut preview = Preview::default();
    foresee(&mut preview, &Azure::default(), |_| Cluster::new(json!({})).goals());
    let ports: Vec<i64> = ["one", "two"]
        .into_iter()
        .map(|name| {
            let mut machine = Machine::control_plane(Cluster::new(json!({})), json!({}));
            machine.name = name.to_owned();
            let outlook =
                foresee(&mut preview, &Azure::default(), |observed| machine.try_goals(observed).unwrap());
            let rule = outlook.steps().find(|it| it.step.target.to_string().contains("/inboundNatRules/"));
            rule.unwrap().step.document["properties"]["frontendPort"].as_i64().unwrap()
        })
        .collect();
    assert_eq!(ports, [22, 2201]);
}

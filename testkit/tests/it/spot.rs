//! Spot machines, which Azure evicts.

use std::time::Duration;

use azure_simulator::imds::{EventPlan, EventType};
use serde_json::json;
use testkit::{NodePool, World, run, service};
use tokio::time::{Instant, sleep};

const NODE: &str = "spot000000";
const MINUTE: Duration = Duration::from_secs(60);
/// Its node manager polls once a second, and everything after that adds no delay of ours.
const LONGEST: Duration = Duration::from_millis(1_100);

/// NODE-270: from Azure's announcement to traffic that goes elsewhere, and to a deleted Node, for both kinds of pool
/// members.
#[test]
fn node_270_traffic_leaves_a_spot_machine_before_the_machine_goes() {
    for kind in ["nodeIP", "nodeIPConfiguration"] {
        run(async || {
            let config = json!({
                "loadBalancerBackendPoolConfigurationType": kind, "enableLoadBalancerAdminState": true,
            });
            let spot = NodePool::new("spot", "spot", 1).spot();
            let world = World::builder().nodes(2).pool(spot).config(&config).start().await;
            world.create(service("shop/web"));
            world.settle().await;
            let address = world.address("shop/web");
            assert!(world.reached(address, 80).contains(&NODE.to_owned()));
            let node_manager = world.run_node_manager(NODE);
            // Right after a poll.
            sleep(MINUTE + Duration::from_millis(30)).await;

            let before = world.network_now();
            let machine = world.shape.scale_set("spot").child("virtualMachines", "0");
            let plan = EventPlan {
                event_type: EventType::Preempt,
                machines: vec![machine.clone()],
                in_seconds: None,
                duration_seconds: None,
                description: String::new(),
                by_user: false,
            };
            world.azure.plan_event(plan).unwrap();
            let notice = Instant::now();
            while world.reached(address, 80).contains(&NODE.to_owned()) {
                assert!(notice.elapsed() < LONGEST, "{kind}: {:?}", notice.elapsed());
                sleep(Duration::from_millis(20)).await;
            }
            assert_eq!(world.taints(NODE), ["cloudprovider.azure.microsoft.com/draining"], "{kind}");
            let report = world.flows_since(&before, address, 80);
            let change = report.change.as_ref().unwrap();
            assert_eq!((change.broken, change.moved), (0, 0), "{kind}: {}", report.sentence());
            let drained = report.nodes.iter().find(|flows| flows.node.eq_ignore_ascii_case(NODE)).unwrap();
            assert!(drained.kept > 0 && drained.new == 0, "{kind}: {drained:?}");

            // Azure gives half a minute.
            sleep(Duration::from_secs(25)).await;
            assert!(world.azure.document(&machine).is_some(), "{kind}");
            let drained = world.network_now();
            let is_gone = |world: &World| world.azure.document(&machine).is_none();
            world.until("the machine is gone", Duration::from_secs(10), is_gone).await;
            drop(node_manager);
            let has_left = |world: &World| !world.node_names().contains(&NODE.to_owned());
            world.until("its Node is gone", 2 * MINUTE, has_left).await;
            world.settle().await;
            let report = world.flows_since(&drained, address, 80);
            let kept = report.change.as_ref().unwrap().kept;
            assert_eq!((report.established, kept), (1_000, 1_000), "{kind}: {}", report.sentence());
        });
    }
}

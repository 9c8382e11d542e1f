//! Tests over several parts, and the fixtures that all tests share.

mod admin_state_cases;
mod alone;
mod azure;
mod basic_cases;
mod between_tasks_cases;
mod change_cases;
mod elsewhere_cases;
mod family_cases;
mod fixtures;
mod frontend_cases;
mod local_pool_cases;
mod machine_set_cases;
mod member_cases;
mod neighbour_cases;
mod node_placement_cases;
mod placement_cases;
mod plan_cases;
mod plan_output_cases;
mod pool_cases;
mod private_link_cases;
pub(crate) mod properties;
mod public_ip_cases;
mod refusal_cases;
mod route_cases;
mod route_properties;
mod rule_cases;
mod sku_cases;
mod unserved_cases;

use std::sync::Arc;

use azure_types::{
    LoadBalancer, NetworkInterface, PublicIpAddress, ResourceId, ScaleSet, ScaleSetInstance, Subnet,
};
use k8s::{Node, Service};
use serde_json::{Value, json};

use crate::model::{Cluster, names};
use crate::outcome::{Change, Document, Member, Refusal, Step};
use crate::service::ServiceIntent;

pub(crate) use azure::Azure;
pub(crate) use fixtures::*;

#[test]
fn the_fixture_follows_the_conventions() {
    assert_eq!(names::base_name("test1").as_deref(), Some("atest1"));
    assert_eq!(svc("test1").tcp(80).0.spec.ports[0].node_port, 10080);
    assert_eq!(cluster().config.location, "westus");
}

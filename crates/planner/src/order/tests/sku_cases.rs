//! Load balancers of SKU Basic are replaced by those of SKU Standard.

use super::*;
use crate::outcome::{Action, Plan};

/// A cluster with a public and an internal Service, as of the time when its load balancers were of SKU Basic. The
/// public one is on a load balancer that is named after the nodes' scale set, or after the cluster.
fn basic(extra: Value, name: &str) -> (Azure, Vec<Arc<Service>>, Vec<Arc<Node>>) {
    let nodes = nodes([node("alpha", 0), node("beta", 0)]);
    let mut azure = Azure::of(cluster_with(extra));
    let inside = svc("db").tcp(5432).internal();
    azure.converge(&[svc("web").tcp(80).arc(), inside.arc()], &nodes);
    let text = serde_json::to_string(&azure.observed.load_balancers).unwrap();
    let text = text.replace("loadBalancers/testCluster/", &format!("loadBalancers/{name}/"));
    let text = text.replace("loadBalancers/testCluster\"", &format!("loadBalancers/{name}\""));
    azure.observed.load_balancers = serde_json::from_str(&text).unwrap();
    for document in azure.observed.load_balancers.iter_mut().map(Arc::make_mut) {
        document.sku.as_mut().unwrap().name = Some("Basic".into());
    }
    for public_ip in azure.observed.public_ips.iter_mut().map(Arc::make_mut) {
        public_ip.sku.as_mut().unwrap().name = Some("Basic".into());
        public_ip.zones = None;
        let properties = public_ip.properties.as_mut().unwrap();
        properties.public_ip_allocation_method = Some("Dynamic".into());
        let user = properties.ip_configuration.as_mut().unwrap().id.as_mut().unwrap();
        *user = user
            .to_string()
            .replace("loadBalancers/testCluster/", &format!("loadBalancers/{name}/"))
            .parse()
            .unwrap();
    }
    for (_, instances) in &mut azure.observed.machines.scale_sets {
        for instance in instances {
            let text = serde_json::to_string(&**instance).unwrap();
            let text = text.replace("loadBalancers/testCluster/", &format!("loadBalancers/{name}/"));
            *instance = serde_json::from_str(&text).unwrap();
        }
    }
    for (set, _) in &mut azure.observed.machines.scale_sets {
        let text = serde_json::to_string(&**set).unwrap();
        let text = text.replace("loadBalancers/testCluster/", &format!("loadBalancers/{name}/"));
        *set = serde_json::from_str(&text).unwrap();
    }
    let address = azure.load_balancer(crate::model::Flavor::Internal).unwrap();
    let address =
        address.properties.as_ref().unwrap().frontend_ip_configurations.as_ref().unwrap()[0].clone();
    let address =
        crate::resources::load_balancer::frontend::private_address_of(&address).unwrap().to_string();
    let public = azure.observed.public_ips[0].properties.as_ref().unwrap().ip_address.clone().unwrap();
    let services = vec![svc("web").tcp(80).published(&[&public]).arc(), inside.published(&[&address]).arc()];
    (azure, services, nodes)
}

fn in_words(plan: &Plan) -> Vec<String> {
    let words = plan.steps.iter().map(|step| {
        let action = match step.action {
            Action::Create => '+',
            Action::Update => '~',
            Action::Delete => '-',
        };
        format!("{action} {}/{}", step.target.resource_type(), step.target.name())
    });
    words.collect()
}

/// LB-205: public IPs get static addresses, the machines leave, the load balancers are deleted; then the public IPs
/// become standard ones, and everything is created again, with the same addresses. A load balancer that is named after
/// a scale set is identified by the cluster's pool (SE-22).
#[test]
fn lb_205_basic_load_balancers_are_deleted_and_made_again() {
    for (name, extra) in [
        ("testCluster", json!({})),
        ("alpha", json!({})),
        ("testCluster", json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"})),
    ] {
        let (mut azure, services, nodes) = basic(extra, name);
        let address = azure.observed.public_ips[0].properties.as_ref().unwrap().ip_address.clone();
        let planned = azure.plan(&services, &nodes);
        assert!(planned.refused.is_empty(), "{:?}", planned.refused);
        let words = in_words(&planned.plan);
        let at = |text: &str| {
            let found = words.iter().position(|word| word.to_lowercase().ends_with(&text.to_lowercase()));
            found.unwrap_or_else(|| panic!("{text}: {words:#?}"))
        };
        let order = [
            at("publicIPAddresses/testCluster-aweb"),
            words.iter().position(|word| word.starts_with('-')).unwrap(),
            words.iter().rposition(|word| word.starts_with('-')).unwrap(),
            words.iter().rposition(|word| word.ends_with("/testCluster-aweb")).unwrap(),
            words.iter().position(|word| word.starts_with('+')).unwrap(),
        ];
        assert!(order.is_sorted_by(|a, b| a < b), "{name}: {order:?} {words:#?}");
        assert_eq!(words.iter().filter(|word| word.starts_with('-')).count(), 2, "{words:#?}");

        azure.converge(&services, &nodes);
        let now = &azure.observed.public_ips[0];
        assert_eq!(now.sku.as_ref().unwrap().name.as_deref(), Some("Standard"));
        assert_eq!(now.properties.as_ref().unwrap().ip_address, address);
        assert_eq!(azure.observed.load_balancers.len(), 2);
        let inside = azure.load_balancer(crate::model::Flavor::Internal).unwrap();
        let frontend = &inside.properties.as_ref().unwrap().frontend_ip_configurations.as_ref().unwrap()[0];
        let private =
            crate::resources::load_balancer::frontend::private_address_of(frontend).unwrap().to_string();
        assert_eq!(services[1].status.load_balancer.ingress[0].ip, private);
        for document in &azure.observed.load_balancers {
            assert_eq!(document.sku.as_ref().unwrap().name.as_deref(), Some("Standard"));
        }
    }
}

/// LB-455: foreign parts on a load balancer of SKU Basic keep it: nothing is written, and the refusal names the
/// obstacle.
#[test]
fn lb_455_a_basic_load_balancer_that_others_use_stays() {
    // Another cluster of this name has frontends of the same form.
    let unknown = format!("a{}", "0123456789abcdef".repeat(2).split_at(31).0);
    for (kind, name, what) in [
        ("frontendIPConfigurations", "theirs", "frontend"),
        ("frontendIPConfigurations", unknown.as_str(), "frontend"),
        ("backendAddressPools", "theirs", "backend pool"),
        ("inboundNatRules", "theirs", "inbound NAT rule"),
    ] {
        let part = format!("{what} {name}");
        let (mut azure, services, nodes) = basic(json!({}), "testCluster");
        for document in azure.observed.load_balancers.iter_mut().map(Arc::make_mut) {
            let mut changed = serde_json::to_value(&*document).unwrap();
            let parts = &mut changed["properties"][kind];
            let mut all = parts.as_array().cloned().unwrap_or_default();
            all.push(json!({"name": name, "properties": {}}));
            *parts = all.into();
            *document = serde_json::from_value(changed).unwrap();
        }
        let planned = azure.plan(&services, &nodes);
        assert_eq!(planned.plan.steps, []);
        assert_eq!(planned.refused.len(), 2);
        for (_, refusal) in &planned.refused {
            assert!(refusal.to_string().ends_with(&format!("move or delete {part}")), "{refusal}");
        }
    }
}

/// A Service that leaves is removed from a load balancer of SKU Basic as from any other.
#[test]
fn a_service_that_goes_retires_no_load_balancer() {
    let (azure, _, nodes) = basic(json!({}), "testCluster");
    let web = svc("web").tcp(80).deleting().arc();
    let db = svc("db").tcp(5432).internal().deleting().arc();
    let planned = azure.plan(&[web, db], &nodes);
    let retired = |change: &Change| *change == Change::BasicLoadBalancerRetired;
    assert!(planned.plan.steps.iter().all(|step| !step.changes.iter().any(retired)));
}

/// LB-455: just before it is deleted it is read once more. What was there before, and belongs to the cluster, is no
/// obstacle; what was added since is, and so is another SKU.
#[test]
fn lb_455_what_came_since_a_deletion_was_planned_is_an_obstacle() {
    use crate::resources::load_balancer::{Known, deletion_obstacle, known_services};
    let service = svc("test1").tcp(80);
    let mut azure = Azure::new();
    azure.converge(&[service.arc()], &[]);
    let standard = azure.load_balancer(crate::model::Flavor::External).unwrap().clone();
    let edited = |change: &dyn Fn(&mut serde_json::Value)| -> azure_types::LoadBalancer {
        let mut document = serde_json::to_value(&standard).unwrap();
        change(&mut document);
        serde_json::from_value(document).unwrap()
    };
    let basic = edited(&|document| document["sku"]["name"] = json!("Basic"));
    let services = known_services(&[service.arc()]);
    let known = Known { services: Some(&services), ..Known::default() };
    let obstacle = |planned: &azure_types::LoadBalancer, now: &azure_types::LoadBalancer| {
        deletion_obstacle(&azure.cluster, planned, now, known)
    };
    assert_eq!(obstacle(&basic, &basic), None);
    assert_eq!(obstacle(&standard, &standard), None);
    assert_eq!(obstacle(&basic, &standard).as_deref(), Some("another SKU"));
    for (members, part) in [
        ("backendAddressPools", "backend pool theirs"),
        ("frontendIPConfigurations", "frontend theirs"),
        ("inboundNatRules", "inbound NAT rule theirs"),
        ("inboundNatPools", "inbound NAT pool theirs"),
        ("loadBalancingRules", "rule theirs"),
        ("outboundRules", "outbound rule theirs"),
    ] {
        let add = |document: &mut serde_json::Value| {
            let list = &mut document["properties"][members];
            let mut all = list.as_array().cloned().unwrap_or_default();
            all.push(json!({"name": "theirs"}));
            *list = all.into();
        };
        let now = edited(&add);
        assert_eq!(obstacle(&standard, &now).as_deref(), Some(part));
        let now = edited(&|document| {
            add(document);
            document["sku"]["name"] = json!("Basic");
        });
        assert_eq!(obstacle(&basic, &now).as_deref(), Some(part));
    }
}

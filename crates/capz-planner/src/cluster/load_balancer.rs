//! Load balancers: for the API servers, and for outbound traffic.

use azure_types::ResourceId;
use capz_api::network::{FrontendIp, LoadBalancer, roles};
use serde_json::{Value, json};

use crate::goal::Goal;
use crate::scope::{ClusterScope, reference};
use crate::service;

/// The rule for the API server's port.
const API_SERVER_RULE: &str = "LBRuleHTTPS";
const PROBE: &str = "HTTPSProbe";
const OUTBOUND_RULE: &str = "OutboundNATAllProtocols";
/// The default address of the internal load balancer beside the public one.
const TWIN_ADDRESS: &str = "10.0.0.100";
const PROBE_SECONDS: i32 = 15;

/// The name of the backend pool of a load balancer.
pub fn pool_name(balancer: &LoadBalancer) -> String {
    let name = balancer.name.as_deref().unwrap_or_default();
    match balancer.backend_pool.as_ref().and_then(|pool| pool.name.as_deref()) {
        Some(pool) if !pool.is_empty() => pool.to_owned(),
        _ => format!("{name}-backendPool"),
    }
}

/// The name of the backend pool of the internal load balancer beside the public one of the API server.
pub fn internal_pool_name(balancer: &LoadBalancer) -> String {
    format!("{}-internal", pool_name(balancer))
}

/// The name of the backend pool for the control plane's outbound traffic: derived from the load balancer's default
/// name, whatever its name is.
pub fn control_plane_outbound_pool_name(scope: ClusterScope<'_>) -> String {
    format!("{}-outbound-lb-outboundBackendPool", scope.name)
}

pub(super) fn goals(scope: ClusterScope<'_>) -> Vec<Goal> {
    let mut goals = Vec::new();
    if let Some(balancer) = scope.api_server_balancer() {
        goals.push(api_server(scope, balancer));
        if scope.has_internal_twin() {
            goals.push(internal_twin(scope, balancer));
        }
    }
    if let Some(balancer) = scope.node_outbound_balancer() {
        goals.push(outbound(scope, balancer, "nodeOutbound", &pool_name(balancer)));
    }
    if let Some(balancer) = scope.control_plane_outbound_balancer() {
        let pool = control_plane_outbound_pool_name(scope);
        goals.push(outbound(scope, balancer, "controlPlaneOutbound", &pool));
    }
    goals
}

fn api_server(scope: ClusterScope<'_>, balancer: &LoadBalancer) -> Goal {
    let name = balancer.name.as_deref().unwrap_or_default();
    let id = scope.balancer(name);
    let internal = balancer.is_internal();
    let frontends: Vec<Value> = balancer
        .frontend_ips
        .iter()
        .flatten()
        // A private address of a public load balancer belongs to the internal one beside it.
        .filter(|frontend| internal || frontend.public_ip.is_some())
        .take(1)
        .map(|frontend| frontend_of(scope, frontend, internal.then_some(balancer)))
        .collect();
    let pool = pool_name(balancer);
    let outbound = if internal { Vec::new() } else { vec![outbound_rule(&id, &frontends, &pool, balancer)] };
    balancer_goal(
        scope,
        &id,
        "apiserver",
        Parts {
            rules: rules(scope, &id, &frontends, &pool, balancer),
            probes: vec![probe(scope)],
            frontends,
            pools: vec![pool],
            outbound,
        },
    )
}

fn internal_twin(scope: ClusterScope<'_>, balancer: &LoadBalancer) -> Goal {
    let name = format!("{}-internal", balancer.name.as_deref().unwrap_or_default());
    let id = scope.balancer(&name);
    let private = balancer.frontend_ips.iter().flatten().find(|frontend| frontend.private_ip.is_some());
    let default = FrontendIp {
        name: Some(format!("{name}-ip")),
        private_ip: Some(TWIN_ADDRESS.into()),
        ..FrontendIp::default()
    };
    let frontends = vec![frontend_of(scope, private.unwrap_or(&default), Some(balancer))];
    let pool = internal_pool_name(balancer);
    balancer_goal(
        scope,
        &id,
        "apiserver-internal",
        Parts {
            rules: rules(scope, &id, &frontends, &pool, balancer),
            probes: vec![probe(scope)],
            frontends,
            pools: vec![pool],
            outbound: Vec::new(),
        },
    )
}

fn outbound(scope: ClusterScope<'_>, balancer: &LoadBalancer, role: &str, pool: &str) -> Goal {
    let id = scope.balancer(balancer.name.as_deref().unwrap_or_default());
    let frontends: Vec<Value> =
        balancer.frontend_ips.iter().flatten().map(|frontend| frontend_of(scope, frontend, None)).collect();
    let rules = vec![outbound_rule(&id, &frontends, pool, balancer)];
    let outbound = if frontends.is_empty() { Vec::new() } else { rules };
    balancer_goal(
        scope,
        &id,
        role,
        Parts { frontends, pools: vec![pool.to_owned()], outbound, ..Parts::default() },
    )
}

#[derive(Default)]
struct Parts {
    frontends: Vec<Value>,
    pools: Vec<String>,
    rules: Vec<Value>,
    probes: Vec<Value>,
    outbound: Vec<Value>,
}

fn balancer_goal(scope: ClusterScope<'_>, id: &ResourceId, role: &str, parts: Parts) -> Goal {
    let pools: Vec<Value> = parts.pools.iter().map(|name| json!({ "name": name })).collect();
    let mut document = json!({
        "location": scope.location(),
        "sku": { "name": "Standard" },
        "tags": scope.tags(Some(role), None),
        "properties": {
            "frontendIPConfigurations": parts.frontends,
            "backendAddressPools": pools,
            "loadBalancingRules": parts.rules,
            "probes": parts.probes,
            "outboundRules": parts.outbound,
        },
    });
    if let Some(edge) = scope.extended_location() {
        document["extendedLocation"] = edge;
    }
    Goal::new(id.clone(), &service::LOAD_BALANCERS, document)
}

/// A frontend. Zones are set on frontends with private addresses; otherwise they are set on the public IP.
fn frontend_of(scope: ClusterScope<'_>, frontend: &FrontendIp, private_of: Option<&LoadBalancer>) -> Value {
    let name = frontend.name.as_deref().unwrap_or_default();
    let Some(balancer) = private_of else {
        let ip = frontend.public_ip.as_ref().and_then(|ip| ip.name.as_deref()).unwrap_or_default();
        let id = scope.public_ip(ip);
        return json!({ "name": name, "properties": { "publicIPAddress": reference(&id) } });
    };
    let subnets = scope.subnets_for(roles::CONTROL_PLANE);
    let subnet = subnets.first().and_then(|subnet| subnet.name.as_deref()).unwrap_or_default();
    let mut document = json!({
        "name": name,
        "properties": {
            "privateIPAllocationMethod": "Static",
            "privateIPAddress": frontend.private_ip,
            "subnet": reference(&scope.subnet(subnet)),
        },
    });
    if let Some(zones) = balancer.availability_zones.as_deref().filter(|zones| !zones.is_empty()) {
        document["zones"] = json!(zones);
    }
    document
}

fn child_of(id: &ResourceId, kind: &str, name: &str) -> Value {
    reference(&id.child(kind, name))
}

fn frontend_references(id: &ResourceId, frontends: &[Value]) -> Vec<Value> {
    frontends
        .iter()
        .filter_map(|frontend| frontend["name"].as_str())
        .map(|name| child_of(id, "frontendIPConfigurations", name))
        .collect()
}

/// A rule for the API server's port, and one for each further port.
fn rules(
    scope: ClusterScope<'_>,
    id: &ResourceId,
    frontends: &[Value],
    pool: &str,
    balancer: &LoadBalancer,
) -> Vec<Value> {
    let Some(frontend) = frontend_references(id, frontends).into_iter().next() else { return Vec::new() };
    let rule = |name: &str, front: i32, back: i32| {
        json!({
            "name": name,
            "properties": {
                "protocol": "Tcp",
                "frontendPort": front,
                "backendPort": back,
                "idleTimeoutInMinutes": balancer.idle_timeout_in_minutes,
                "enableFloatingIP": false,
                "loadDistribution": "Default",
                "disableOutboundSnat": true,
                "frontendIPConfiguration": frontend,
                "backendAddressPool": child_of(id, "backendAddressPools", pool),
                "probe": child_of(id, "probes", PROBE),
            },
        })
    };
    let endpoint = scope.spec.control_plane_endpoint.as_ref().and_then(|endpoint| endpoint.port);
    let front = endpoint.filter(|port| *port != 0).unwrap_or_else(|| scope.port());
    let network = scope.spec.network_spec.as_ref();
    let further = network.and_then(|network| network.additional_api_server_lb_ports.as_deref());
    std::iter::once(rule(API_SERVER_RULE, front, scope.port()))
        .chain(further.unwrap_or_default().iter().map(|further| {
            let port = further.port.unwrap_or_default();
            rule(further.name.as_deref().unwrap_or_default(), port, port)
        }))
        .collect()
}

fn probe(scope: ClusterScope<'_>) -> Value {
    json!({
        "name": PROBE,
        "properties": {
            "protocol": "Https",
            "port": scope.port(),
            "requestPath": "/readyz",
            "intervalInSeconds": PROBE_SECONDS,
            // Azure reads this member, and shows the other one.
            "probeThreshold": 1,
        },
    })
}

fn outbound_rule(id: &ResourceId, frontends: &[Value], pool: &str, balancer: &LoadBalancer) -> Value {
    json!({
        "name": OUTBOUND_RULE,
        "properties": {
            "protocol": "All",
            "idleTimeoutInMinutes": balancer.idle_timeout_in_minutes,
            "frontendIPConfigurations": frontend_references(id, frontends),
            "backendAddressPool": child_of(id, "backendAddressPools", pool),
        },
    })
}

//! Load balancers: for the API servers, and for outbound traffic.

use capz_api::network::{FrontendIp, LoadBalancer, roles};
use serde_json::{Value, json};

use crate::document::items;
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
    if let Some(declared) = scope.api_server_balancer() {
        let internal = declared.is_internal();
        // A private address of a public load balancer belongs to the internal one beside it.
        let frontend = frontends(declared).find(|frontend| internal || frontend.public_ip.is_some());
        let of = if internal { private_frontend } else { public_frontend };
        let balancer = Balancer {
            declared,
            name: declared.name.clone().unwrap_or_default(),
            role: "apiserver",
            pool: pool_name(declared),
            frontends: frontend.map(|frontend| of(scope, declared, frontend)).into_iter().collect(),
            serves_api: true,
            lets_out: !internal,
        };
        goals.push(balancer.goal(scope));
        if scope.has_internal_twin() {
            let name = format!("{}-internal", balancer.name);
            let default = FrontendIp {
                name: Some(format!("{name}-ip")),
                private_ip: Some(TWIN_ADDRESS.into()),
                ..FrontendIp::default()
            };
            let private = frontends(declared).find(|frontend| frontend.private_ip.is_some());
            let twin = Balancer {
                name,
                role: "apiserver-internal",
                pool: internal_pool_name(declared),
                frontends: vec![private_frontend(scope, declared, private.unwrap_or(&default))],
                lets_out: false,
                ..balancer
            };
            goals.push(twin.goal(scope));
        }
    }
    let nodes = scope.node_outbound_balancer().map(|it| (it, "nodeOutbound", pool_name(it)));
    let control_plane = scope.control_plane_outbound_balancer();
    let control_plane =
        control_plane.map(|it| (it, "controlPlaneOutbound", control_plane_outbound_pool_name(scope)));
    for (declared, role, pool) in nodes.into_iter().chain(control_plane) {
        let frontends: Vec<Value> =
            frontends(declared).map(|frontend| public_frontend(scope, declared, frontend)).collect();
        let balancer = Balancer {
            declared,
            name: declared.name.clone().unwrap_or_default(),
            role,
            pool,
            lets_out: !frontends.is_empty(),
            frontends,
            serves_api: false,
        };
        goals.push(balancer.goal(scope));
    }
    goals
}

fn frontends(balancer: &LoadBalancer) -> impl Iterator<Item = &FrontendIp> {
    balancer.frontend_ips.iter().flatten()
}

/// A load balancer of the cluster.
struct Balancer<'a> {
    declared: &'a LoadBalancer,
    name: String,
    role: &'static str,
    /// The name of its backend pool.
    pool: String,
    frontends: Vec<Value>,
    /// Whether it leads to the API servers.
    serves_api: bool,
    /// Whether its members reach the internet through it.
    lets_out: bool,
}

impl Balancer<'_> {
    fn goal(&self, scope: ClusterScope<'_>) -> Goal {
        let id = scope.balancer(&self.name);
        let child = |kind: &str, name: &str| reference(&id.child(kind, name));
        let pool = child("backendAddressPools", &self.pool);
        let frontends: Vec<Value> = self
            .frontends
            .iter()
            .filter_map(|frontend| frontend["name"].as_str())
            .map(|name| child("frontendIPConfigurations", name))
            .collect();
        let timeout = self.declared.idle_timeout_in_minutes;
        let rule = |(name, front, back): (&str, i32, i32), frontend: &Value| {
            json!({
                "name": name,
                "properties": {
                    "protocol": "Tcp",
                    "frontendPort": front,
                    "backendPort": back,
                    "idleTimeoutInMinutes": timeout,
                    "enableFloatingIP": false,
                    "loadDistribution": "Default",
                    "disableOutboundSnat": true,
                    "frontendIPConfiguration": frontend,
                    "backendAddressPool": pool,
                    "probe": child("probes", PROBE),
                },
            })
        };
        let probe = json!({
            "name": PROBE,
            "properties": {
                "protocol": "Https",
                "port": scope.port(),
                "requestPath": "/readyz",
                "intervalInSeconds": PROBE_SECONDS,
                // Azure reads this member, and shows the other one.
                "probeThreshold": 1,
            },
        });
        let outbound = json!({
            "name": OUTBOUND_RULE,
            "properties": {
                "protocol": "All",
                "idleTimeoutInMinutes": timeout,
                "frontendIPConfigurations": frontends,
                "backendAddressPool": pool,
            },
        });
        let frontend = frontends.first().filter(|_| self.serves_api);
        let rules = frontend.into_iter().flat_map(|it| ports(scope).map(move |ports| rule(ports, it)));
        let document = json!({
            "location": scope.location(),
            "extendedLocation": scope.extended_location(),
            "sku": { "name": "Standard" },
            "tags": scope.tags(Some(self.role), None),
            "properties": {
                "frontendIPConfigurations": self.frontends,
                "backendAddressPools": [{ "name": self.pool }],
                "loadBalancingRules": rules.collect::<Vec<_>>(),
                "probes": Vec::from_iter(self.serves_api.then_some(probe)),
                "outboundRules": Vec::from_iter(self.lets_out.then_some(outbound)),
            },
        });
        Goal::new(id, &service::LOAD_BALANCERS, document)
    }
}

/// The names and ports (of the frontend, of the backend) of the rule for the API server, and of further ones.
fn ports(scope: ClusterScope<'_>) -> impl Iterator<Item = (&str, i32, i32)> {
    let endpoint = scope.spec.control_plane_endpoint.as_ref().and_then(|endpoint| endpoint.port);
    let front = endpoint.filter(|port| *port != 0).unwrap_or_else(|| scope.port());
    let network = scope.spec.network_spec.as_ref();
    let further = network.and_then(|network| network.additional_api_server_lb_ports.as_deref());
    let further = further.unwrap_or_default().iter().map(|further| {
        let port = further.port.unwrap_or_default();
        (further.name.as_deref().unwrap_or_default(), port, port)
    });
    std::iter::once((API_SERVER_RULE, front, scope.port())).chain(further)
}

fn public_frontend(scope: ClusterScope<'_>, _: &LoadBalancer, frontend: &FrontendIp) -> Value {
    let ip = frontend.public_ip.as_ref().and_then(|ip| ip.name.as_deref()).unwrap_or_default();
    let name = frontend.name.as_deref().unwrap_or_default();
    json!({ "name": name, "properties": { "publicIPAddress": reference(&scope.public_ip(ip)) } })
}

/// A frontend with a private address. It has zones itself; otherwise they are set on the public IP.
fn private_frontend(scope: ClusterScope<'_>, balancer: &LoadBalancer, frontend: &FrontendIp) -> Value {
    let subnets = scope.subnets_for(roles::CONTROL_PLANE);
    let subnet = subnets.first().and_then(|subnet| subnet.name.as_deref()).unwrap_or_default();
    json!({
        "name": frontend.name.as_deref().unwrap_or_default(),
        "zones": items(&balancer.availability_zones),
        "properties": {
            "privateIPAllocationMethod": "Static",
            "privateIPAddress": frontend.private_ip,
            "subnet": reference(&scope.subnet(subnet)),
        },
    })
}

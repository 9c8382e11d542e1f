//! The clusters that are handed over: machines, backend pools, address families, load balancers.

use std::fmt;

use serde_json::{Value, json};
use simulated_cluster::{ExtraSubnet, NodePool, Shape, StandaloneMachine};

/// The cluster's name.
pub const CLUSTER: &str = "kubernetes";

/// The machines of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machines {
    Uniform,
    Flexible,
    AvailabilitySet,
    Standalone,
    Mixed,
}

/// How nodes are members of backend pools (`loadBalancerBackendPoolConfigurationType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Members {
    Interfaces,
    Addresses,
}

/// Further members of azure.json.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settings {
    /// Nothing.
    Usual,
    /// One health probe for all Services with policy Cluster.
    SharedProbe,
    /// Load balancers of another name and in another group, tags, rules without outbound connectivity.
    Named,
}

/// One kind of cluster.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub machines: Machines,
    pub members: Members,
    pub dual_stack: bool,
    /// Whether the Services are spread over several load balancers.
    pub several: bool,
    pub settings: Settings,
    /// Whether nodes have pod ranges with routes.
    pub routes: bool,
    /// Whether the whole corpus is applied, or only what depends on the cluster.
    pub whole: bool,
}

/// Every kind of machine with both kinds of pools; clusters of one family; several load balancers; routes to pods.
pub fn all() -> Vec<Kind> {
    let machines = [
        Machines::Uniform,
        Machines::Flexible,
        Machines::AvailabilitySet,
        Machines::Standalone,
        Machines::Mixed,
    ];
    let members = [Members::Interfaces, Members::Addresses];
    let pairs = machines.iter().flat_map(|machines| members.map(|members| (*machines, members)));
    let kind = |(machines, members)| {
        let whole = machines == Machines::Uniform;
        let (settings, several, routes) = (Settings::Usual, false, false);
        Kind { machines, members, dual_stack: true, several, settings, routes, whole }
    };
    let mut all: Vec<Kind> = pairs.map(kind).collect();
    all.extend(members.map(|members| Kind {
        dual_stack: false,
        whole: false,
        ..kind((Machines::Uniform, members))
    }));
    for settings in [Settings::SharedProbe, Settings::Named] {
        all.push(Kind { settings, whole: false, ..kind((Machines::Uniform, Members::Interfaces)) });
    }
    let several = |machines| Kind { several: true, whole: false, ..kind((machines, Members::Addresses)) };
    all.extend([several(Machines::Uniform), several(Machines::Mixed)]);
    all.push(Kind { routes: true, whole: false, ..kind((Machines::Mixed, Members::Interfaces)) });
    all
}

impl Kind {
    /// The initial contents of Azure.
    pub fn shape(self) -> Shape {
        let standalone = |name: &str| StandaloneMachine::new(name);
        let (mut pools, machines) = match self.machines {
            Machines::Uniform => (vec![NodePool::new("workers", "worker", 2)], Vec::new()),
            Machines::Flexible => (vec![NodePool::new("flexible", "flex", 2).flexible()], Vec::new()),
            Machines::AvailabilitySet => (
                Vec::new(),
                vec![
                    standalone("placed-a").in_availability_set("placed"),
                    standalone("placed-b").in_availability_set("placed"),
                ],
            ),
            Machines::Standalone => {
                (Vec::new(), vec![standalone("alone-a"), standalone("alone-b").with_second_interface()])
            }
            Machines::Mixed => (
                vec![NodePool::new("workers", "worker", 2), NodePool::new("flexible", "flex", 1).flexible()],
                vec![
                    standalone("alone-a"),
                    standalone("placed-a").in_availability_set("placed"),
                    StandaloneMachine::control_plane("control-plane-0"),
                ],
            ),
        };
        if self.several {
            pools.push(NodePool::new("others", "other", 2));
        }
        let prefixes = |v4: &str, v6: &str| {
            let families = if self.dual_stack { vec![v4, v6] } else { vec![v4] };
            families.into_iter().map(str::to_owned).collect()
        };
        let subnet = |name: &str, prefixes| ExtraSubnet { name: name.to_owned(), prefixes };
        Shape {
            pools,
            machines,
            dual_stack: self.dual_stack,
            route_table: self.routes.then(|| "routes".to_owned()),
            more_subnets: vec![
                subnet("second", prefixes("10.241.0.0/16", "fd00:10:240:1::/64")),
                subnet("only-ipv4", vec!["10.242.0.0/16".to_owned()]),
            ],
            ..Shape::default()
        }
    }

    /// The corresponding members of azure.json.
    pub fn configuration(self) -> Value {
        let vm_type = match self.machines {
            Machines::AvailabilitySet | Machines::Standalone => "standard",
            Machines::Uniform | Machines::Flexible | Machines::Mixed => "vmss",
        };
        let pools = match self.members {
            Members::Interfaces => "nodeIPConfiguration",
            Members::Addresses => "nodeIP",
        };
        let mut configuration = json!({
            "vmType": vm_type,
            "loadBalancerBackendPoolConfigurationType": pools,
        });
        match self.settings {
            Settings::Usual => {}
            Settings::SharedProbe => {
                configuration["clusterServiceLoadBalancerHealthProbeMode"] = "shared".into();
            }
            Settings::Named => {
                configuration["loadBalancerName"] = "front".into();
                configuration["loadBalancerResourceGroup"] = explorer::stage::OTHER_GROUP.into();
                configuration["tags"] = "team=shops,cost=42".into();
                configuration["systemTags"] = "owner".into();
                configuration["disableOutboundSNAT"] = true.into();
            }
        }
        if self.several {
            configuration["multipleStandardLoadBalancerConfigurations"] = json!([
                {"name": CLUSTER, "primaryVMSet": "workers"},
                {"name": "second", "primaryVMSet": "others"},
            ]);
            // A cluster is at rest when pools have followed their endpoints, and the default of half a minute is long
            // for that.
            configuration["loadBalancerBackendPoolUpdateIntervalInSeconds"] = 1.into();
        }
        configuration
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machines = match self.machines {
            Machines::Uniform => "uniform scale set",
            Machines::Flexible => "flexible scale set",
            Machines::AvailabilitySet => "availability set",
            Machines::Standalone => "standalone machines",
            Machines::Mixed => "all kinds of machines",
        };
        let members = match self.members {
            Members::Interfaces => "interfaces",
            Members::Addresses => "addresses",
        };
        let families = if self.dual_stack { "dual stack" } else { "IPv4" };
        let several = if self.several { ", two load balancers" } else { "" };
        let settings = match self.settings {
            Settings::Usual => "",
            Settings::SharedProbe => ", shared probe",
            Settings::Named => ", named and tagged",
        };
        let routes = if self.routes { ", routes to pods" } else { "" };
        write!(f, "{machines}, {members}, {families}{several}{settings}{routes}")
    }
}

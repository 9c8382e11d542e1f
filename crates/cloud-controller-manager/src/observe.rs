//! Joins what happens inside to the metrics that are served.

use std::time::Duration;

use arm::{CallObserver, CallRecord, Purpose};
use telemetry::metrics::{ArmOutcome, ArmRequest, CloudMetrics, Metrics};

/// Counts calls to Azure and what the controllers report.
pub struct Meter {
    /// All that is served.
    pub metrics: Metrics,
    cloud: CloudMetrics,
}

impl Default for Meter {
    fn default() -> Self {
        let metrics = Metrics::default();
        Self { cloud: CloudMetrics::of(&metrics), metrics }
    }
}

impl CallObserver for Meter {
    fn on_call(&self, call: &CallRecord<'_>) {
        let method = match call.purpose {
            Purpose::Read | Purpose::FinalRead | Purpose::Poll => "get",
            Purpose::List => "list",
            Purpose::Write | Purpose::Action | Purpose::Register => "create_or_update",
            Purpose::Delete => "delete",
        };
        let request = ArmRequest {
            subscription_id: call.subscription.to_owned(),
            resource_group: call.resource_group.unwrap_or_default().to_ascii_lowercase(),
            resource: resource_label(call.resource_type).to_owned(),
            method: method.to_owned(),
        };
        let outcome = match (call.throttled, call.reason) {
            (true, _) => ArmOutcome::Throttled,
            (false, None) => ArmOutcome::Success,
            (false, Some(code)) => {
                ArmOutcome::Failed { status: call.status.unwrap_or_default(), code: code.to_owned() }
            }
        };
        self.metrics.arm_request(&request, call.duration, &outcome);
    }
}

impl controllers::Observer for Meter {
    fn nodes_synced(&self, took: Duration, succeeded: bool) {
        self.cloud.reconcile("UpdateLoadBalancer", took, !succeeded);
    }

    fn draining_updated(&self, took: Duration, succeeded: bool) {
        self.cloud.reconcile("UpdateLoadBalancerAdminState", took, !succeeded);
    }

    fn local_pools_updated(&self, took: Duration, succeeded: bool) {
        self.cloud.reconcile("UpdateLocalBackendPool", took, !succeeded);
    }

    fn routes_synced(&self) {
        self.cloud.routes_synced();
    }

    fn ranges_changed(&self, change: &controllers::RangeTurnover) {
        let controllers::RangeTurnover { cluster, allocated, released, met, used } = change;
        self.cloud.ranges(&cluster.to_string(), *allocated, *released, met, *used);
    }

    fn leading(&self, lease: &str, leads: bool) {
        self.metrics.leading(lease, leads);
    }
}

/// The name that dashboards know a resource type by.
fn resource_label(resource_type: &str) -> &str {
    const LABELS: [(&str, &str); 9] = [
        ("Microsoft.Network/loadBalancers", "LoadBalancer"),
        ("Microsoft.Network/loadBalancers/backendAddressPools", "BackendAddressPool"),
        ("Microsoft.Network/publicIPAddresses", "PublicIPAddress"),
        ("Microsoft.Network/networkSecurityGroups", "SecurityGroup"),
        ("Microsoft.Network/routeTables", "RouteTable"),
        ("Microsoft.Network/virtualNetworks/subnets", "Subnet"),
        ("Microsoft.Network/networkInterfaces", "Interface"),
        ("Microsoft.Compute/virtualMachineScaleSets", "VirtualMachineScaleSet"),
        ("Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "VirtualMachineScaleSetVM"),
    ];
    let known = LABELS.iter().find(|(kind, _)| kind.eq_ignore_ascii_case(resource_type));
    known.map_or_else(|| resource_type.rsplit('/').next().unwrap_or(resource_type), |(_, label)| label)
}

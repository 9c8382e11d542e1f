//! Metrics of the calls to Azure, from the client's records.

use arm::{CallObserver, CallRecord, Purpose};
use telemetry::metrics::{ArmOutcome, ArmRequest, Metrics};

/// Counts calls to Azure.
#[derive(Clone)]
pub struct Calls(pub Metrics);

impl CallObserver for Calls {
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
        self.0.arm_request(&request, call.duration, &outcome);
    }
}

/// The label that dashboards use for a resource type.
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
    let row = LABELS.iter().find(|(kind, _)| kind.eq_ignore_ascii_case(resource_type));
    row.map_or_else(|| resource_type.rsplit('/').next().unwrap_or(resource_type), |(_, label)| label)
}

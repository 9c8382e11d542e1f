//! Metrics of the calls to Azure, from the client's records and budgets.

use std::time::Duration;

use arm::{BudgetState, Budgets, CallObserver, CallRecord, Class, Purpose};
use telemetry::metrics::Metrics;
use telemetry::metrics::azure::{
    ArmOutcome, ArmRequest, AzureCall, Budget, CallMetrics, Closed, register_budgets,
};

/// Counts calls to Azure. Cheap to clone.
#[derive(Clone)]
pub struct Calls(CallMetrics);

impl Calls {
    /// Registers the metrics.
    pub fn of(metrics: &Metrics) -> Self {
        Self(CallMetrics::of(metrics))
    }

    fn count(&self, call: &CallRecord<'_>, outcome: &ArmOutcome) {
        let method = match call.purpose {
            Purpose::Read | Purpose::FinalRead | Purpose::Poll => "get",
            Purpose::List => "list",
            Purpose::Write | Purpose::Action | Purpose::Register => "create_or_update",
            Purpose::Delete => "delete",
        };
        let resource = resource_label(call.resource_type);
        let request = ArmRequest {
            subscription_id: call.subscription.to_owned(),
            resource_group: call.resource_group.unwrap_or_default().to_ascii_lowercase(),
            resource: resource.to_owned(),
            method: method.to_owned(),
        };
        self.0.request(&request, call.duration, outcome);
        let call = AzureCall {
            resource,
            purpose: call.purpose.as_str(),
            class: call.class.as_str(),
            waited: call.waited,
            is_answer: call.is_answered(),
            is_change: call.is_change(),
        };
        self.0.call(call, outcome);
    }
}

impl CallObserver for Calls {
    fn on_call(&self, call: &CallRecord<'_>) {
        let outcome = match (call.throttled, call.reason) {
            (true, _) => ArmOutcome::Throttled,
            (false, None) => ArmOutcome::Success,
            (false, Some(code)) => {
                ArmOutcome::Failed { status: call.status.unwrap_or_default(), code: code.to_owned() }
            }
        };
        self.count(call, &outcome);
    }

    fn on_limited(&self, call: &CallRecord<'_>) {
        self.count(call, &ArmOutcome::Limited);
    }
}

/// Registers the metrics of the budgets of calls.
pub fn show_budgets(metrics: &Metrics, current: impl Fn() -> Option<Budgets> + Send + Sync + 'static) {
    let all = move || current().map(|budgets| budgets.all()).unwrap_or_default();
    register_budgets(metrics, move || all().into_iter().map(shown).collect());
}

fn shown(state: BudgetState) -> Budget {
    let closed = |namespace: &str, remaining: Duration| Closed { namespace: namespace.to_owned(), remaining };
    let providers = state.providers.iter().map(|(namespace, remaining)| closed(namespace, *remaining));
    Budget {
        group: state.group.as_str(),
        remaining: state.remaining,
        capacity: state.capacity,
        closed: std::iter::once(closed("", state.closed)).chain(providers).collect(),
        waiting: Class::ALL.map(Class::as_str).into_iter().zip(state.waiting).collect(),
        subscription: state.subscription,
    }
}

/// The label that dashboards use for a resource type.
fn resource_label(resource_type: &str) -> &str {
    const LABELS: [(&str, &str); 18] = [
        ("Microsoft.Network/loadBalancers", "LoadBalancer"),
        ("Microsoft.Network/loadBalancers/backendAddressPools", "BackendAddressPool"),
        ("Microsoft.Network/publicIPAddresses", "PublicIPAddress"),
        ("Microsoft.Network/publicIPPrefixes", "PublicIPPrefix"),
        ("Microsoft.Network/networkSecurityGroups", "SecurityGroup"),
        ("Microsoft.Network/routeTables", "RouteTable"),
        ("Microsoft.Network/virtualNetworks", "VirtualNetwork"),
        ("Microsoft.Network/virtualNetworks/subnets", "Subnet"),
        ("Microsoft.Network/networkInterfaces", "Interface"),
        ("Microsoft.Network/natGateways", "NatGateway"),
        ("Microsoft.Network/privateEndpoints", "PrivateEndpoint"),
        ("Microsoft.Network/privateLinkServices", "PrivateLinkService"),
        ("Microsoft.Compute/availabilitySets", "AvailabilitySet"),
        ("Microsoft.Compute/disks", "Disk"),
        ("Microsoft.Compute/virtualMachines", "VirtualMachine"),
        ("Microsoft.Compute/virtualMachineScaleSets", "VirtualMachineScaleSet"),
        ("Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "VirtualMachineScaleSetVM"),
        ("Microsoft.Resources/resourceGroups", "ResourceGroup"),
    ];
    let row = LABELS.iter().find(|(kind, _)| kind.eq_ignore_ascii_case(resource_type));
    row.map_or_else(|| resource_type.rsplit('/').next().unwrap_or(resource_type), |(_, label)| label)
}

//! What Compute counts, per region ("Compute throttling limits"): published as
//! tokens that come back in a minute, a full bucket holding three times as many.
//!
//! Policies are named after the pattern that Compute's headers show: what is done to which type, then
//! `Resource` or `SubscriptionMaximum`.

use std::time::Duration;

use azure_engine::settings::budget::policy::{Per, Policy, Wording};

const MACHINES: &str = "Microsoft.Compute/virtualMachines";
const MACHINE_PARTS: &str = "Microsoft.Compute/virtualMachines/*";
const SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";
const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
const INSTANCE_PARTS: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/*";
const OPERATIONS: &str = "Microsoft.Compute/locations/operations";

const PUT_MACHINE: On = &[("PUT", MACHINES)];
const UPDATE_MACHINE: On = &[("PATCH", MACHINES), ("POST", MACHINE_PARTS)];
const DELETE_MACHINE: On = &[("DELETE", MACHINES)];
const GET_MACHINE: On = &[("GET", MACHINES), ("GET", MACHINE_PARTS)];
const LIST_MACHINES: On = &[("LIST", MACHINES)];
const PUT_SET: On = &[("PUT", SETS)];
/// Actions on the set itself. They are named one by one, because a star would fit instances' types, too.
const UPDATE_SET: On = &[
    ("PATCH", SETS),
    ("POST", "Microsoft.Compute/virtualMachineScaleSets/start"),
    ("POST", "Microsoft.Compute/virtualMachineScaleSets/restart"),
    ("POST", "Microsoft.Compute/virtualMachineScaleSets/manualupgrade"),
    ("POST", "Microsoft.Compute/virtualMachineScaleSets/deallocate"),
    ("POST", "Microsoft.Compute/virtualMachineScaleSets/delete"),
    ("POST", "Microsoft.Compute/virtualMachineScaleSets/powerOff"),
    ("POST", "Microsoft.Compute/virtualMachineScaleSets/reimage*"),
    ("POST", "Microsoft.Compute/virtualMachineScaleSets/redeploy"),
];
const DELETE_SET: On = &[("DELETE", SETS)];
const GET_SET: On = &[("GET", SETS), ("LIST", SETS)];
const HIGH_COST_GET_SET: On = &[
    ("LIST", INSTANCES),
    ("GET", "Microsoft.Compute/virtualMachineScaleSets/instanceView"),
    ("GET", "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces"),
];
const UPDATE_INSTANCE: On = &[("PUT", INSTANCES), ("PATCH", INSTANCES), ("POST", INSTANCE_PARTS)];
const DELETE_INSTANCE: On = &[("DELETE", INSTANCES)];
const GET_INSTANCE: On = &[("GET", INSTANCES), ("GET", INSTANCE_PARTS)];
const GET_OPERATION: On = &[("GET", OPERATIONS)];

type On = &'static [(&'static str, &'static str)];

const fn minute(name: &'static str, per: Per, on: On, refill: u32) -> Policy {
    let window = Duration::from_secs(60);
    Policy { name, per, on, size: 3 * refill, refill, window, steady: true, wording: Wording::Provider }
}

const fn resource(name: &'static str, on: On, refill: u32) -> Policy {
    minute(name, Per::Resource, on, refill)
}

const fn subscription(name: &'static str, on: On, refill: u32) -> Policy {
    minute(name, Per::Subscription, on, refill)
}

pub(crate) static POLICIES: [Policy; 27] = [
    resource("PutVMResource", PUT_MACHINE, 4),
    resource("UpdateVMResource", UPDATE_MACHINE, 4),
    resource("DeleteVMResource", DELETE_MACHINE, 4),
    resource("LowCostGetResource", GET_MACHINE, 12),
    resource("PutVMScaleSetResource", PUT_SET, 4),
    resource("UpdateVMScaleSetResource", UPDATE_SET, 4),
    resource("DeleteVMScaleSetResource", DELETE_SET, 4),
    resource("GetVMScaleSetResource", &[("GET", SETS)], 12),
    resource("HighCostGetVMScaleSetResource", HIGH_COST_GET_SET, 10),
    resource("UpdateVMScaleSetVMResource", UPDATE_INSTANCE, 4),
    resource("DeleteVMScaleSetVMResource", DELETE_INSTANCE, 4),
    resource("GetVMScaleSetVMResource", GET_INSTANCE, 12),
    resource("GetOperationResource", GET_OPERATION, 15),
    subscription("PutVMSubscriptionMaximum", PUT_MACHINE, 500),
    subscription("UpdateVMSubscriptionMaximum", UPDATE_MACHINE, 500),
    subscription("DeleteVMSubscriptionMaximum", DELETE_MACHINE, 500),
    subscription("LowCostGetSubscriptionMaximum", GET_MACHINE, 8_000),
    subscription("ListVMSubscriptionMaximum", LIST_MACHINES, 300),
    subscription("PutVMScaleSetSubscriptionMaximum", PUT_SET, 125),
    subscription("UpdateVMScaleSetSubscriptionMaximum", UPDATE_SET, 500),
    subscription("DeleteVMScaleSetSubscriptionMaximum", DELETE_SET, 175),
    subscription("GetVMScaleSetSubscriptionMaximum", GET_SET, 800),
    subscription("HighCostGetVMScaleSetSubscriptionMaximum", HIGH_COST_GET_SET, 360),
    subscription("UpdateVMScaleSetVMSubscriptionMaximum", UPDATE_INSTANCE, 500),
    subscription("DeleteVMScaleSetVMSubscriptionMaximum", DELETE_INSTANCE, 500),
    subscription("GetVMScaleSetVMSubscriptionMaximum", GET_INSTANCE, 2_000),
    subscription("GetOperationSubscriptionMaximum", GET_OPERATION, 5_000),
];

//! The controllers, and their names in metrics, events and traces, which are those of established installations.

/// The names of a controller, and its kind.
#[derive(Debug, PartialEq, Eq)]
pub struct Controller {
    /// Its name in metrics, and the name of its queue.
    pub name: &'static str,
    /// The kind of its objects.
    pub kind: &'static str,
    /// The reporting component of its events.
    pub component: &'static str,
    /// The span of one reconcile.
    pub span: &'static str,
}

macro_rules! controllers {
    ($($id:ident = $name:literal, $kind:literal, $span:literal;)*) => {
        $(pub static $id: Controller = Controller {
            name: $name, kind: $kind, component: concat!($name, "-reconciler"), span: $span,
        };)*
    };
}

controllers! {
    CLUSTER = "azurecluster", "AzureCluster", "controllers.AzureClusterReconciler.Reconcile";
    MACHINE = "azuremachine", "AzureMachine", "controllers.AzureMachineReconciler.Reconcile";
    TEMPLATE = "azuremachinetemplate", "AzureMachineTemplate", "controllers.AzureMachineTemplateReconciler.Reconcile";
    POOL = "azuremachinepool", "AzureMachinePool", "controllers.AzureMachinePoolReconciler.Reconcile";
    POOL_MACHINE = "azuremachinepoolmachine", "AzureMachinePoolMachine",
        "controllers.AzureMachinePoolMachineController.Reconcile";
    MANAGED_CLUSTER = "azuremanagedcluster", "AzureManagedCluster",
        "controllers.AzureManagedClusterReconciler.Reconcile";
    MANAGED_CONTROL_PLANE = "azuremanagedcontrolplane", "AzureManagedControlPlane",
        "controllers.AzureManagedControlPlaneReconciler.Reconcile";
    MANAGED_POOL = "azuremanagedmachinepool", "AzureManagedMachinePool",
        "controllers.AzureManagedMachinePoolReconciler.Reconcile";
    RAW_CLUSTER = "azureasomanagedcluster", "AzureASOManagedCluster",
        "controllers.AzureASOManagedClusterReconciler.Reconcile";
    RAW_CONTROL_PLANE = "azureasomanagedcontrolplane", "AzureASOManagedControlPlane",
        "controllers.AzureASOManagedControlPlaneReconciler.Reconcile";
    RAW_POOL = "azureasomanagedmachinepool", "AzureASOManagedMachinePool",
        "controllers.AzureASOManagedMachinePoolReconciler.Reconcile";
    OFFERED_CLUSTER = "managedcluster", "ManagedCluster", "controllers.ManagedClusterAdoptReconciler.Reconcile";
    OFFERED_POOL = "managedclustersagentpool", "ManagedClustersAgentPool", "controllers.AgentPoolAdoptReconciler.Reconcile";
    MACHINE_SECRET = "azurejsonmachine", "AzureMachine", "controllers.AzureJSONMachineReconciler.Reconcile";
    TEMPLATE_SECRET = "azurejsontemplate", "AzureMachineTemplate", "controllers.AzureJSONTemplateReconciler.Reconcile";
    POOL_SECRET = "azurejsonmachinepool", "AzureMachinePool", "controllers.AzureJSONMachinePoolReconciler.Reconcile";
    ASO_SECRET = "asosecret", "AzureCluster", "controllers.ASOSecret.Reconcile";
}

/// The controllers that reconcile a kind as a whole.
static OF_KINDS: [&Controller; 13] = [
    &CLUSTER,
    &MACHINE,
    &TEMPLATE,
    &POOL,
    &POOL_MACHINE,
    &MANAGED_CLUSTER,
    &MANAGED_CONTROL_PLANE,
    &MANAGED_POOL,
    &RAW_CLUSTER,
    &RAW_CONTROL_PLANE,
    &RAW_POOL,
    &OFFERED_CLUSTER,
    &OFFERED_POOL,
];

/// The controller that reconciles a kind, if there is one.
pub fn of_kind(kind: &str) -> Option<&'static Controller> {
    OF_KINDS.into_iter().find(|controller| controller.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_controller_that_tells_of_it() {
        for (kind, component) in [
            ("AzureCluster", Some("azurecluster-reconciler")),
            ("AzureMachine", Some("azuremachine-reconciler")),
            ("AzureMachinePoolMachine", Some("azuremachinepoolmachine-reconciler")),
            ("Machine", None),
        ] {
            assert_eq!(of_kind(kind).map(|controller| controller.component), component);
        }
    }
}

//! The built-in kinds: one row each. Rules for each kind follow kube-apiserver's registry strategies.

use super::StatusRule::{Subresource, SubresourceKeptOnCreate};
use super::{Conversion, Kind};

const CORE: &str = "";
const APPS: &str = "apps";
const BATCH: &str = "batch";
const AUTOSCALING: &str = "autoscaling";
const STORAGE: &str = "storage.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";

const ALL: &[&str] = &["all"];
const API_EXTENSIONS: &[&str] = &["api-extensions"];

const SHELF_OF_EVENTS: &str = "events";
const SHELF_OF_AUTOSCALERS: &str = "horizontalpodautoscalers.autoscaling";

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];
const REGARDING_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

fn namespaced(group: &str, version: &str, plural: &str, kind: &str) -> Kind {
    Kind::new(group, version, plural, kind, true)
}

fn cluster(group: &str, version: &str, plural: &str, kind: &str) -> Kind {
    Kind::new(group, version, plural, kind, false)
}

/// All rows. The first version of a group is its preferred version.
pub(super) fn kinds() -> Vec<Kind> {
    let rows = [core(), workloads(), network(), access(), storage(), policy(), extension(), reviews()];
    rows.into_iter().flatten().collect()
}

fn core() -> Vec<Kind> {
    vec![
        cluster(CORE, "v1", "namespaces", "Namespace")
            .short(&["ns"])
            .status(Subresource)
            .fields(&["status.phase"]),
        cluster(CORE, "v1", "nodes", "Node")
            .short(&["no"])
            .status(SubresourceKeptOnCreate)
            .fields(&["spec.unschedulable"]),
        cluster(CORE, "v1", "persistentvolumes", "PersistentVolume").short(&["pv"]).status(Subresource),
        namespaced(CORE, "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
            .short(&["pvc"])
            .status(Subresource),
        namespaced(CORE, "v1", "services", "Service")
            .short(&["svc"])
            .categories(ALL)
            .status(Subresource)
            .fields(&["spec.clusterIP", "spec.type"]),
        namespaced(CORE, "v1", "pods", "Pod")
            .short(&["po"])
            .categories(ALL)
            .status(Subresource)
            .generation()
            .fields(POD_FIELDS),
        namespaced(CORE, "v1", "podtemplates", "PodTemplate").generation(),
        namespaced(CORE, "v1", "replicationcontrollers", "ReplicationController")
            .short(&["rc"])
            .categories(ALL)
            .status(Subresource)
            .scale()
            .generation()
            .fields(&["status.replicas"]),
        namespaced(CORE, "v1", "secrets", "Secret").fields(&["type"]),
        namespaced(CORE, "v1", "configmaps", "ConfigMap").short(&["cm"]),
        namespaced(CORE, "v1", "serviceaccounts", "ServiceAccount").short(&["sa"]),
        namespaced(CORE, "v1", "resourcequotas", "ResourceQuota").short(&["quota"]).status(Subresource),
        namespaced(CORE, "v1", "limitranges", "LimitRange").short(&["limits"]).create_on_update(),
        namespaced(CORE, "v1", "endpoints", "Endpoints").short(&["ep"]).create_on_update(),
        namespaced(CORE, "v1", "events", "Event").short(&["ev"]).create_on_update().fields(EVENT_FIELDS),
        namespaced("events.k8s.io", "v1", "events", "Event")
            .short(&["ev"])
            .create_on_update()
            .fields(REGARDING_FIELDS)
            .stored_as(SHELF_OF_EVENTS, Conversion::Events),
    ]
}

fn workloads() -> Vec<Kind> {
    let workload = |group, plural, kind| {
        namespaced(group, "v1", plural, kind).categories(ALL).status(Subresource).generation()
    };
    let autoscaler = |version| {
        namespaced(AUTOSCALING, version, "horizontalpodautoscalers", "HorizontalPodAutoscaler")
            .short(&["hpa"])
            .categories(ALL)
            .status(Subresource)
    };
    vec![
        workload(APPS, "deployments", "Deployment").short(&["deploy"]).scale(),
        workload(APPS, "replicasets", "ReplicaSet").short(&["rs"]).scale().fields(&["status.replicas"]),
        workload(APPS, "statefulsets", "StatefulSet").short(&["sts"]).scale(),
        workload(APPS, "daemonsets", "DaemonSet").short(&["ds"]),
        namespaced(APPS, "v1", "controllerrevisions", "ControllerRevision"),
        workload(BATCH, "jobs", "Job").fields(&["status.successful"]),
        workload(BATCH, "cronjobs", "CronJob").short(&["cj"]),
        autoscaler("v2"),
        autoscaler("v1").stored_as(SHELF_OF_AUTOSCALERS, Conversion::Autoscaling),
        namespaced("coordination.k8s.io", "v1", "leases", "Lease").version_required().create_on_update(),
    ]
}

fn network() -> Vec<Kind> {
    vec![
        namespaced("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice").generation(),
        namespaced(NETWORKING, "v1", "ingresses", "Ingress").short(&["ing"]).status(Subresource).generation(),
        cluster(NETWORKING, "v1", "ingressclasses", "IngressClass").generation(),
        namespaced(NETWORKING, "v1", "networkpolicies", "NetworkPolicy").short(&["netpol"]).generation(),
    ]
}

fn access() -> Vec<Kind> {
    vec![
        namespaced(RBAC, "v1", "roles", "Role").create_on_update(),
        namespaced(RBAC, "v1", "rolebindings", "RoleBinding").create_on_update(),
        cluster(RBAC, "v1", "clusterroles", "ClusterRole").create_on_update(),
        cluster(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding").create_on_update(),
        cluster("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest")
            .short(&["csr"])
            .status(Subresource)
            .fields(&["spec.signerName"]),
    ]
}

fn storage() -> Vec<Kind> {
    vec![
        cluster(STORAGE, "v1", "storageclasses", "StorageClass").short(&["sc"]),
        cluster(STORAGE, "v1", "csidrivers", "CSIDriver").version_required(),
        cluster(STORAGE, "v1", "csinodes", "CSINode").version_required(),
        cluster(STORAGE, "v1", "volumeattachments", "VolumeAttachment")
            .status(Subresource)
            .version_required(),
        namespaced(STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity"),
    ]
}

fn policy() -> Vec<Kind> {
    vec![
        namespaced("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
            .short(&["pdb"])
            .status(Subresource)
            .generation()
            .version_required(),
        cluster("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass").short(&["pc"]).generation(),
        cluster("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass").version_required(),
        cluster(FLOW_CONTROL, "v1", "flowschemas", "FlowSchema")
            .status(Subresource)
            .generation()
            .version_required(),
        cluster(FLOW_CONTROL, "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration")
            .status(Subresource)
            .generation()
            .version_required(),
    ]
}

fn extension() -> Vec<Kind> {
    let admission = |plural, kind| {
        cluster(ADMISSION, "v1", plural, kind).categories(API_EXTENSIONS).generation().version_required()
    };
    vec![
        cluster("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")
            .short(&["crd", "crds"])
            .categories(API_EXTENSIONS)
            .status(Subresource)
            .generation()
            .version_required(),
        cluster("apiregistration.k8s.io", "v1", "apiservices", "APIService")
            .categories(API_EXTENSIONS)
            .status(Subresource)
            .version_required(),
        admission("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
        admission("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy").status(Subresource),
        admission("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    ]
}

fn reviews() -> Vec<Kind> {
    vec![
        cluster(AUTHENTICATION, "v1", "tokenreviews", "TokenReview").review(),
        cluster(AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview").review(),
        cluster(AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview").review(),
        cluster(AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview").review(),
        cluster(AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview").review(),
        namespaced(AUTHORIZATION, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview").review(),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_rows_share_a_path_and_versions_share_a_shelf() {
        let rows = kinds();
        let paths: BTreeSet<_> = rows.iter().map(|row| (&row.group, &row.version, &row.plural)).collect();
        assert_eq!(paths.len(), rows.len());
        let autoscalers: BTreeSet<_> =
            rows.iter().filter(|row| row.kind == "HorizontalPodAutoscaler").map(|row| &row.shelf).collect();
        assert_eq!(autoscalers.len(), 1);
    }
}

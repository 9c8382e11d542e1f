//! The columns of each kind, as kube-apiserver prints them. Kinds without columns of their own have a name and a time.

use serde_json::Value;

use super::cells::{self, NONE, UNSET, access_modes, containers, count, list, number, or, selector, text};
use super::{Column, narrow, wide};
use crate::registry::Kind;

const NAME: Column = narrow("Name", "string", |object, _| text(object, "/metadata/name").into());
const AGE: Column = narrow("Age", "string", |object, now| {
    cells::age(object.pointer("/metadata/creationTimestamp"), now).into()
});
const CREATED_AT: Column =
    narrow("Created At", "date", |object, _| text(object, "/metadata/creationTimestamp").into());
const CONTAINERS: Column =
    wide("Containers", "string", |object, _| containers(object, "/spec/template/spec", "/name").into());
const IMAGES: Column =
    wide("Images", "string", |object, _| containers(object, "/spec/template/spec", "/image").into());
const SELECTOR: Column = wide("Selector", "string", |object, _| selector(object, "/spec/selector").into());
const LABELS_SELECTED: Column =
    wide("Selector", "string", |object, _| cells::labels(object, "/spec/selector").into());
const WEBHOOKS: &[Column] =
    &[NAME, narrow("Webhooks", "integer", |object, _| list(object, "/webhooks").len().into()), AGE];

/// A column that shows a text.
macro_rules! text_at {
    ($name:literal, $at:literal) => {
        narrow($name, "string", |object, _| text(object, $at).into())
    };
    ($name:literal, $at:literal, $otherwise:expr) => {
        narrow($name, "string", |object, _| or(text(object, $at), $otherwise).into())
    };
}

/// A column that shows a number; 0 if it is missing.
macro_rules! number_at {
    ($name:literal, $at:literal) => {
        narrow($name, "integer", |object, _| number(object, $at).into())
    };
}

/// A column that shows a boolean.
macro_rules! flag_at {
    ($name:literal, $at:literal) => {
        narrow($name, "boolean", |object, _| (object.pointer($at) == Some(&Value::Bool(true))).into())
    };
}

/// Columns that are built at compile time.
macro_rules! columns {
    ($($column:expr),* $(,)?) => {{
        const COLUMNS: &[Column] = &[$($column),*];
        COLUMNS
    }};
}

/// The columns of a kind.
pub(super) fn of(kind: &Kind) -> &'static [Column] {
    // Kinds of definitions have these columns unless they define others.
    let Some(kind) = kind.builtin() else { return &[NAME, AGE] };
    match kind {
        ("", "Pod") => POD,
        ("", "Service") => SERVICE,
        ("", "Node") => NODE,
        ("", "Event") | ("events.k8s.io", "Event") => EVENT,
        ("", "Namespace") => columns![NAME, text_at!("Status", "/status/phase"), AGE],
        ("", "Secret") => columns![
            NAME,
            text_at!("Type", "/type"),
            narrow("Data", "string", |object, _| count(object, &["/data"]).into()),
            AGE,
        ],
        ("", "ConfigMap") => columns![
            NAME,
            narrow("Data", "string", |object, _| count(object, &["/data", "/binaryData"]).into()),
            AGE,
        ],
        ("", "ServiceAccount") => columns![NAME, AGE],
        ("", "Endpoints") => {
            columns![NAME, narrow("Endpoints", "string", |object, _| cells::endpoints(object).into()), AGE]
        }
        ("", "ReplicationController") => {
            columns![NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, LABELS_SELECTED]
        }
        ("", "PodTemplate") => columns![
            NAME,
            narrow("Containers", "string", |object, _| {
                containers(object, "/template/spec", "/name").into()
            }),
            narrow("Images", "string", |object, _| containers(object, "/template/spec", "/image").into()),
            narrow("Pod Labels", "string", |object, _| {
                cells::labels(object, "/template/metadata/labels").into()
            }),
        ],
        ("", "ResourceQuota") => columns![
            NAME,
            narrow("Request", "string", |object, _| cells::quota(object, false).into()),
            narrow("Limit", "string", |object, _| cells::quota(object, true).into()),
            AGE,
        ],
        ("", "PersistentVolume") => PERSISTENT_VOLUME,
        ("", "PersistentVolumeClaim") => PERSISTENT_VOLUME_CLAIM,
        ("apps", "Deployment") => DEPLOYMENT,
        ("apps", "ReplicaSet") => columns![NAME, DESIRED, CURRENT, READY, AGE, CONTAINERS, IMAGES, SELECTOR],
        ("apps", "StatefulSet") => columns![NAME, READY_OF_WANTED, AGE, CONTAINERS, IMAGES],
        ("apps", "DaemonSet") => DAEMON_SET,
        ("apps", "ControllerRevision") => columns![
            NAME,
            narrow("Controller", "string", |object, _| cells::controller(object).into()),
            number_at!("Revision", "/revision"),
            AGE,
        ],
        ("batch", "Job") => JOB,
        ("batch", "CronJob") => CRON_JOB,
        ("autoscaling", "HorizontalPodAutoscaler") => AUTOSCALER,
        ("coordination.k8s.io", "Lease") => columns![NAME, text_at!("Holder", "/spec/holderIdentity"), AGE],
        ("discovery.k8s.io", "EndpointSlice") => ENDPOINT_SLICE,
        ("networking.k8s.io", "Ingress") => INGRESS,
        ("networking.k8s.io", "IngressClass") => columns![
            NAME,
            text_at!("Controller", "/spec/controller"),
            narrow("Parameters", "string", |object, _| cells::parameters(object).into()),
            AGE,
        ],
        ("networking.k8s.io", "NetworkPolicy") => columns![
            NAME,
            narrow("Pod-Selector", "string", |object, _| selector(object, "/spec/podSelector").into()),
            AGE,
        ],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => ROLE_BINDING,
        ("certificates.k8s.io", "CertificateSigningRequest") => SIGNING_REQUEST,
        ("policy", "PodDisruptionBudget") => columns![
            NAME,
            narrow("Min Available", "string", |object, _| cells::plain(object, "/spec/minAvailable")),
            narrow("Max Unavailable", "string", |object, _| cells::plain(object, "/spec/maxUnavailable")),
            number_at!("Allowed Disruptions", "/status/disruptionsAllowed"),
            AGE,
        ],
        ("scheduling.k8s.io", "PriorityClass") => columns![
            NAME,
            number_at!("Value", "/value"),
            flag_at!("Global-Default", "/globalDefault"),
            AGE,
            text_at!("PreemptionPolicy", "/preemptionPolicy"),
        ],
        ("node.k8s.io", "RuntimeClass") => columns![NAME, text_at!("Handler", "/handler"), AGE],
        ("storage.k8s.io", "StorageClass") => STORAGE_CLASS,
        ("storage.k8s.io", "CSIDriver") => CSI_DRIVER,
        ("storage.k8s.io", "CSINode") => columns![
            NAME,
            narrow("Drivers", "integer", |object, _| list(object, "/spec/drivers").len().into()),
            AGE,
        ],
        ("storage.k8s.io", "CSIStorageCapacity") => columns![
            NAME,
            text_at!("StorageClassName", "/storageClassName"),
            text_at!("Capacity", "/capacity", UNSET),
        ],
        ("storage.k8s.io", "VolumeAttachment") => columns![
            NAME,
            text_at!("Attacher", "/spec/attacher"),
            text_at!("PV", "/spec/source/persistentVolumeName"),
            text_at!("Node", "/spec/nodeName"),
            flag_at!("Attached", "/status/attached"),
            AGE,
        ],
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => WEBHOOKS,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => columns![
            NAME,
            narrow("Validations", "integer", |object, _| list(object, "/spec/validations").len().into()),
            narrow("ParamKind", "string", |object, _| cells::param_kind(object).into()),
            AGE,
        ],
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => columns![
            NAME,
            text_at!("PolicyName", "/spec/policyName"),
            narrow("ParamRef", "string", |object, _| cells::param_ref(object).into()),
            AGE,
        ],
        ("apiregistration.k8s.io", "APIService") => columns![
            NAME,
            narrow("Service", "string", |object, _| cells::service_of_api(object).into()),
            narrow("Available", "string", |object, _| cells::availability(object).into()),
            AGE,
        ],
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => columns![
            NAME,
            text_at!("PriorityLevel", "/spec/priorityLevelConfiguration/name"),
            number_at!("MatchingPrecedence", "/spec/matchingPrecedence"),
            text_at!("DistinguisherMethod", "/spec/distinguisherMethod/type", NONE),
            AGE,
            narrow("MissingPL", "string", |object, _| {
                cells::condition(object, "Dangling").unwrap_or("?").into()
            }),
        ],
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => PRIORITY_LEVEL,
        _ => &[NAME, CREATED_AT],
    }
}

const POD: &[Column] = &[
    NAME,
    narrow("Ready", "string", |object, _| cells::ready_containers(object).into()),
    narrow("Status", "string", |object, _| cells::pod_status(object).into()),
    narrow("Restarts", "string", |object, _| cells::restarts(object).into()),
    AGE,
    wide("IP", "string", |object, _| or(text(object, "/status/podIP"), NONE).into()),
    wide("Node", "string", |object, _| or(text(object, "/spec/nodeName"), NONE).into()),
    wide("Nominated Node", "string", |object, _| or(text(object, "/status/nominatedNodeName"), NONE).into()),
    wide("Readiness Gates", "string", |object, _| cells::readiness_gates(object).into()),
];

const SERVICE: &[Column] = &[
    NAME,
    text_at!("Type", "/spec/type", "ClusterIP"),
    text_at!("Cluster-IP", "/spec/clusterIP", NONE),
    narrow("External-IP", "string", |object, _| cells::external_address(object).into()),
    narrow("Port(s)", "string", |object, _| cells::service_ports(object).into()),
    AGE,
    LABELS_SELECTED,
];

const NODE: &[Column] = &[
    NAME,
    narrow("Status", "string", |object, _| cells::node_status(object).into()),
    narrow("Roles", "string", |object, _| cells::node_roles(object).into()),
    AGE,
    text_at!("Version", "/status/nodeInfo/kubeletVersion"),
    wide("Internal-IP", "string", |object, _| cells::node_address(object, "InternalIP").into()),
    wide("External-IP", "string", |object, _| cells::node_address(object, "ExternalIP").into()),
    wide("OS-Image", "string", |object, _| cells::node_info(object, "osImage").into()),
    wide("Kernel-Version", "string", |object, _| cells::node_info(object, "kernelVersion").into()),
    wide("Container-Runtime", "string", |object, _| {
        cells::node_info(object, "containerRuntimeVersion").into()
    }),
];

/// Events of both groups, whose members have different names.
const EVENT: &[Column] = &[
    narrow("Last Seen", "string", |object, now| cells::event_last(object, now).into()),
    text_at!("Type", "/type"),
    text_at!("Reason", "/reason"),
    narrow("Object", "string", |object, _| cells::event_subject(object).into()),
    wide("Subobject", "string", |object, _| {
        cells::either(object, ["/involvedObject/fieldPath", "/regarding/fieldPath"]).into()
    }),
    wide("Source", "string", |object, _| cells::event_source(object).into()),
    narrow("Message", "string", |object, _| cells::either(object, ["/message", "/note"]).trim().into()),
    wide("First Seen", "string", |object, now| cells::event_first(object, now).into()),
    wide("Count", "string", |object, _| cells::event_count(object).into()),
    wide("Name", "string", |object, _| text(object, "/metadata/name").into()),
];

const DESIRED: Column = number_at!("Desired", "/spec/replicas");
const CURRENT: Column = number_at!("Current", "/status/replicas");
const READY: Column = number_at!("Ready", "/status/readyReplicas");
const READY_OF_WANTED: Column = narrow("Ready", "string", |object, _| cells::ready_replicas(object).into());

const DEPLOYMENT: &[Column] = &[
    NAME,
    READY_OF_WANTED,
    number_at!("Up-to-date", "/status/updatedReplicas"),
    number_at!("Available", "/status/availableReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const DAEMON_SET: &[Column] = &[
    NAME,
    number_at!("Desired", "/status/desiredNumberScheduled"),
    number_at!("Current", "/status/currentNumberScheduled"),
    number_at!("Ready", "/status/numberReady"),
    number_at!("Up-to-date", "/status/updatedNumberScheduled"),
    number_at!("Available", "/status/numberAvailable"),
    narrow("Node Selector", "string", |object, _| {
        cells::labels(object, "/spec/template/spec/nodeSelector").into()
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const JOB: &[Column] = &[
    NAME,
    narrow("Status", "string", |object, _| cells::job_status(object).into()),
    narrow("Completions", "string", |object, _| cells::completions(object).into()),
    narrow("Duration", "string", |object, now| cells::job_duration(object, now).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CRON_JOB: &[Column] = &[
    NAME,
    text_at!("Schedule", "/spec/schedule"),
    text_at!("Timezone", "/spec/timeZone", NONE),
    narrow("Suspend", "boolean", |object, _| cells::truth(object, "/spec/suspend").into()),
    narrow("Active", "integer", |object, _| list(object, "/status/active").len().into()),
    narrow("Last Schedule", "string", |object, now| cells::last_schedule(object, now).into()),
    AGE,
    wide("Containers", "string", |object, _| {
        containers(object, "/spec/jobTemplate/spec/template/spec", "/name").into()
    }),
    wide("Images", "string", |object, _| {
        containers(object, "/spec/jobTemplate/spec/template/spec", "/image").into()
    }),
    wide("Selector", "string", |object, _| selector(object, "/spec/jobTemplate/spec/selector").into()),
];

const AUTOSCALER: &[Column] = &[
    NAME,
    narrow("Reference", "string", |object, _| {
        format!("{}/{}", text(object, "/spec/scaleTargetRef/kind"), text(object, "/spec/scaleTargetRef/name"))
            .into()
    }),
    narrow("Targets", "string", |object, _| cells::targets(object).into()),
    narrow("MinPods", "string", |object, _| match object.pointer("/spec/minReplicas") {
        Some(Value::Number(number)) => number.to_string().into(),
        _ => UNSET.into(),
    }),
    number_at!("MaxPods", "/spec/maxReplicas"),
    number_at!("Replicas", "/status/currentReplicas"),
    AGE,
];

const ENDPOINT_SLICE: &[Column] = &[
    NAME,
    text_at!("AddressType", "/addressType"),
    narrow("Ports", "string", |object, _| cells::slice_ports(object).into()),
    narrow("Endpoints", "string", |object, _| cells::slice_addresses(object).into()),
    AGE,
];

const INGRESS: &[Column] = &[
    NAME,
    text_at!("Class", "/spec/ingressClassName", NONE),
    narrow("Hosts", "string", |object, _| cells::hosts(object).into()),
    narrow("Address", "string", |object, _| cells::ingress_addresses(object).into()),
    narrow("Ports", "string", |object, _| {
        if list(object, "/spec/tls").is_empty() { "80" } else { "80, 443" }.into()
    }),
    AGE,
];

const ROLE_BINDING: &[Column] = &[
    NAME,
    narrow("Role", "string", |object, _| {
        format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name")).into()
    }),
    AGE,
    wide("Users", "string", |object, _| cells::subjects(object, "User").into()),
    wide("Groups", "string", |object, _| cells::subjects(object, "Group").into()),
    wide("ServiceAccounts", "string", |object, _| cells::subjects(object, "ServiceAccount").into()),
];

const SIGNING_REQUEST: &[Column] = &[
    NAME,
    AGE,
    text_at!("SignerName", "/spec/signerName", NONE),
    text_at!("Requestor", "/spec/username"),
    narrow("RequestedDuration", "string", |object, _| cells::requested_duration(object).into()),
    narrow("Condition", "string", |object, _| cells::signing_state(object).into()),
];

const PERSISTENT_VOLUME: &[Column] = &[
    NAME,
    text_at!("Capacity", "/spec/capacity/storage"),
    narrow("Access Modes", "string", |object, _| access_modes(object, "/spec/accessModes").into()),
    text_at!("Reclaim Policy", "/spec/persistentVolumeReclaimPolicy"),
    narrow("Status", "string", |object, _| cells::phase(object).into()),
    narrow("Claim", "string", |object, _| cells::claim(object).into()),
    text_at!("StorageClass", "/spec/storageClassName"),
    text_at!("VolumeAttributesClass", "/spec/volumeAttributesClassName", UNSET),
    text_at!("Reason", "/status/reason"),
    AGE,
    wide("VolumeMode", "string", |object, _| or(text(object, "/spec/volumeMode"), UNSET).into()),
];

const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    narrow("Status", "string", |object, _| cells::phase(object).into()),
    text_at!("Volume", "/spec/volumeName"),
    narrow("Capacity", "string", |object, _| {
        cells::if_bound(object, text(object, "/status/capacity/storage"))
    }),
    narrow("Access Modes", "string", |object, _| {
        cells::if_bound(object, &access_modes(object, "/status/accessModes"))
    }),
    text_at!("StorageClass", "/spec/storageClassName"),
    text_at!("VolumeAttributesClass", "/spec/volumeAttributesClassName", UNSET),
    AGE,
    wide("VolumeMode", "string", |object, _| or(text(object, "/spec/volumeMode"), UNSET).into()),
];

const STORAGE_CLASS: &[Column] = &[
    narrow("Name", "string", |object, _| cells::storage_class_name(object).into()),
    text_at!("Provisioner", "/provisioner"),
    text_at!("ReclaimPolicy", "/reclaimPolicy", "Delete"),
    text_at!("VolumeBindingMode", "/volumeBindingMode", "Immediate"),
    flag_at!("AllowVolumeExpansion", "/allowVolumeExpansion"),
    AGE,
];

const CSI_DRIVER: &[Column] = &[
    NAME,
    flag_at!("AttachRequired", "/spec/attachRequired"),
    flag_at!("PodInfoOnMount", "/spec/podInfoOnMount"),
    flag_at!("StorageCapacity", "/spec/storageCapacity"),
    narrow("TokenRequests", "string", |object, _| cells::audiences(object).into()),
    flag_at!("RequiresRepublish", "/spec/requiresRepublish"),
    narrow("Modes", "string", |object, _| cells::joined(object, "/spec/volumeLifecycleModes").into()),
    AGE,
];

const PRIORITY_LEVEL: &[Column] = &[
    NAME,
    text_at!("Type", "/spec/type"),
    narrow("NominalConcurrencyShares", "integer", |object, _| {
        cells::number_or_none(object, "/spec/limited/nominalConcurrencyShares")
    }),
    narrow("Queues", "integer", |object, _| {
        cells::number_or_none(object, "/spec/limited/limitResponse/queuing/queues")
    }),
    narrow("HandSize", "integer", |object, _| {
        cells::number_or_none(object, "/spec/limited/limitResponse/queuing/handSize")
    }),
    narrow("QueueLengthLimit", "integer", |object, _| {
        cells::number_or_none(object, "/spec/limited/limitResponse/queuing/queueLengthLimit")
    }),
    AGE,
];

//! Kinds of storage, networking, access, policy and extension.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{not_negative, one_of, selector_is_sound};
use crate::admission::metadata::{self, dns_subdomain, qualified_name};
use crate::admission::{Causes, Invalid, list_at, text_at};
use crate::quantity::Quantity;

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

pub(super) fn validate(kind: (&str, &str), object: &Value, causes: &mut Causes) {
    match kind {
        ("", "PersistentVolume") => persistent_volume(object, causes),
        ("", "PersistentVolumeClaim") => claim(object, causes),
        ("", "ResourceQuota") => amounts(object, "/spec/hard", causes),
        ("", "LimitRange") => limit_range(object, causes),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(object, causes),
        ("networking.k8s.io", "Ingress") => ingress(object, causes),
        ("networking.k8s.io", "IngressClass") => ingress_class(object, causes),
        ("networking.k8s.io", "NetworkPolicy") => {
            if let Some(selector) = object.pointer("/spec/podSelector") {
                selector_is_sound(selector, "spec.podSelector", causes);
            }
        }
        ("policy", "PodDisruptionBudget") => budget(object, causes),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => role(kind.1 == "Role", object, causes),
        ("rbac.authorization.k8s.io", _) => role_binding(kind.1 == "RoleBinding", object, causes),
        ("storage.k8s.io", "StorageClass") => storage_class(object, causes),
        ("storage.k8s.io", "VolumeAttachment") => {
            required(object, "/spec/attacher", causes);
            required(object, "/spec/nodeName", causes);
        }
        ("storage.k8s.io", "CSIStorageCapacity") => required(object, "/storageClassName", causes),
        ("storage.k8s.io", "CSINode") => csi_node(object, causes),
        ("node.k8s.io", "RuntimeClass") => required(object, "/handler", causes),
        ("scheduling.k8s.io", "PriorityClass") => priority_class(object, causes),
        ("certificates.k8s.io", "CertificateSigningRequest") => signing_request(object, causes),
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => {
            webhooks(object, causes);
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            required(object, "/spec/policyName", causes);
            if list_at(object, "/spec/validationActions").is_empty() {
                causes.push(Invalid::required("spec.validationActions", ""));
            }
        }
        ("apiregistration.k8s.io", "APIService") => api_service(object, causes),
        _ => {}
    }
}

fn required(object: &Value, pointer: &str, causes: &mut Causes) {
    if text_at(object, pointer).is_empty() {
        causes.push(Invalid::required(pointer.trim_start_matches('/').replace('/', "."), ""));
    }
}

/// Validates a map of resources to quantities.
fn amounts(object: &Value, pointer: &str, causes: &mut Causes) {
    let field = pointer.trim_start_matches('/').replace('/', ".");
    for (resource, amount) in metadata::members(object, pointer) {
        let text = amount.as_str().unwrap_or_default();
        let at = format!("{field}[{resource}]");
        causes.note(qualified_name(resource).map_err(|why| Invalid::text(at.as_str(), resource, &why)));
        if Quantity::parse(text).is_some_and(|amount| amount.nanos() < 0) {
            causes.push(Invalid::text(at, text, "must be greater than or equal to 0"));
        }
    }
}

fn access_modes(object: &Value, why: &str, causes: &mut Causes) {
    let modes = list_at(object, "/spec/accessModes");
    if modes.is_empty() {
        causes.push(Invalid::required("spec.accessModes", why));
    }
    for mode in modes.iter().filter_map(Value::as_str).filter(|mode| !ACCESS_MODES.contains(mode)) {
        causes.push(Invalid::unsupported("spec.accessModes", mode, ACCESS_MODES));
    }
}

fn persistent_volume(object: &Value, causes: &mut Causes) {
    const OTHERS: &[&str] = &[
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    ];
    access_modes(object, "", causes);
    if metadata::members(object, "/spec/capacity").next().is_none() {
        causes.push(Invalid::required("spec.capacity", ""));
        let why = "Unsupported value: null: supported values: \"storage\"";
        causes.push(Invalid::new("spec.capacity", why));
    } else if object.pointer("/spec/capacity/storage").is_none() {
        let given: Vec<&str> =
            metadata::members(object, "/spec/capacity").map(|(name, _)| name.as_str()).collect();
        causes.push(Invalid::unsupported("spec.capacity", &given.join(","), &["storage"]));
    }
    let sources = metadata::members(object, "/spec")
        .filter(|(member, value)| !OTHERS.contains(&member.as_str()) && value.is_object())
        .count();
    match sources {
        0 => causes.push(Invalid::required("spec", "must specify a volume type")),
        1 => {}
        _ => causes.push(Invalid::forbidden("spec", "may not specify more than 1 volume type")),
    }
    one_of(object, "/spec/persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"], causes);
    one_of(object, "/spec/volumeMode", &["Block", "Filesystem"], causes);
}

fn claim(object: &Value, causes: &mut Causes) {
    access_modes(object, "at least 1 access mode is required", causes);
    let size = text_at(object, "/spec/resources/requests/storage");
    if size.is_empty() {
        causes.push(Invalid::required("spec.resources[storage]", ""));
    } else if Quantity::parse(size).is_some_and(|size| size.nanos() <= 0) {
        causes.push(Invalid::text("spec.resources[storage]", size, "must be greater than zero"));
    }
    one_of(object, "/spec/volumeMode", &["Block", "Filesystem"], causes);
    let class = text_at(object, "/spec/storageClassName");
    if !class.is_empty() {
        let rule = dns_subdomain(class);
        causes.note(rule.map_err(|why| Invalid::text("spec.storageClassName", class, &why)));
    }
}

fn limit_range(object: &Value, causes: &mut Causes) {
    let mut types = BTreeSet::new();
    for (index, limit) in list_at(object, "/spec/limits").iter().enumerate() {
        let at = format!("spec.limits[{index}].type");
        let kind = text_at(limit, "/type");
        if kind.is_empty() {
            causes.push(Invalid::required(at, ""));
        } else if !types.insert(kind) {
            causes.push(Invalid::duplicate(at, &format!("{kind:?}")));
        }
    }
}

fn autoscaler(object: &Value, causes: &mut Causes) {
    let number = |at: &str| object.pointer(at).and_then(Value::as_i64);
    if let Some(least) = number("/spec/minReplicas")
        && least < 1
    {
        let why = "must be greater than or equal to 1";
        causes.push(Invalid::value("spec.minReplicas", &least.to_string(), why));
    }
    let most = number("/spec/maxReplicas").unwrap_or(0);
    match most {
        0 => causes.push(Invalid::required("spec.maxReplicas", "must be set and greater than 0")),
        ..0 => {
            let why = "must be greater than or equal to 1";
            causes.push(Invalid::value("spec.maxReplicas", &most.to_string(), why));
        }
        _ => {}
    }
    if number("/spec/minReplicas").is_some_and(|least| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        causes.push(Invalid::value("spec.maxReplicas", &most.to_string(), why));
    }
    required(object, "/spec/scaleTargetRef/kind", causes);
    required(object, "/spec/scaleTargetRef/name", causes);
    let version = text_at(object, "/spec/scaleTargetRef/apiVersion");
    // In the core group only replication controllers can be scaled.
    if !version.contains('/') && text_at(object, "/spec/scaleTargetRef/kind") != "ReplicationController" {
        let why = "apiVersion must specify API group";
        causes.push(Invalid::text("spec.scaleTargetRef.apiVersion", version, why));
    }
}

fn ingress(object: &Value, causes: &mut Causes) {
    let backend = object.pointer("/spec/defaultBackend");
    let rules = list_at(object, "/spec/rules");
    if backend.is_none() && rules.is_empty() {
        causes.push(Invalid::new(
            "spec",
            "Invalid value: networking.IngressSpec{IngressClassName:(*string)(nil), \
             DefaultBackend:(*networking.IngressBackend)(nil), TLS:[]networking.IngressTLS(nil), \
             Rules:[]networking.IngressRule(nil)}: either `defaultBackend` or `rules` must be specified",
        ));
    }
    if let Some(backend) = backend {
        ingress_backend(backend, "spec.defaultBackend", causes);
    }
    for (index, rule) in rules.iter().enumerate() {
        let host = text_at(rule, "/host");
        let bare = host.strip_prefix("*.").unwrap_or(host);
        if !bare.is_empty()
            && let Err(why) = dns_subdomain(bare)
        {
            causes.push(Invalid::text(format!("spec.rules[{index}].host"), host, &why));
        }
        let paths = list_at(rule, "/http/paths");
        if rule.get("http").is_some() && paths.is_empty() {
            causes.push(Invalid::required(format!("spec.rules[{index}].http.paths"), ""));
        }
        for (place, path) in paths.iter().enumerate() {
            ingress_path(path, &format!("spec.rules[{index}].http.paths[{place}]"), causes);
        }
    }
}

fn ingress_path(path: &Value, field: &str, causes: &mut Causes) {
    let (kind, text) = (text_at(path, "/pathType"), text_at(path, "/path"));
    match kind {
        "" => causes.push(Invalid::required(format!("{field}.pathType"), "pathType must be specified")),
        "Exact" | "Prefix" if !text.starts_with('/') => {
            causes.push(Invalid::text(format!("{field}.path"), text, "must be an absolute path"));
        }
        "ImplementationSpecific" if !text.is_empty() && !text.starts_with('/') => {
            causes.push(Invalid::text(format!("{field}.path"), text, "must be an absolute path"));
        }
        "Exact" | "Prefix" | "ImplementationSpecific" => {}
        other => {
            let supported = ["Exact", "ImplementationSpecific", "Prefix"];
            causes.push(Invalid::unsupported(format!("{field}.pathType"), other, &supported));
        }
    }
    ingress_backend(path.get("backend").unwrap_or(&Value::Null), &format!("{field}.backend"), causes);
}

fn ingress_backend(backend: &Value, field: &str, causes: &mut Causes) {
    match (backend.get("service"), backend.get("resource")) {
        (None, None) => causes.push(Invalid::required(field, "port name or number is required")),
        (Some(_), Some(_)) => {
            causes.push(Invalid::value(field, "\"\"", "cannot set both resource and service backends"));
        }
        (Some(service), None) => {
            if text_at(service, "/name").is_empty() {
                causes.push(Invalid::required(format!("{field}.service.name"), ""));
            }
            let number = service.pointer("/port/number").and_then(Value::as_i64).unwrap_or(0);
            match (text_at(service, "/port/name"), number) {
                ("", 0) => causes.push(Invalid::required(field, "port name or number is required")),
                (name, number) if !name.is_empty() && number != 0 => {
                    causes.push(Invalid::value(field, "\"\"", "cannot set both port name & port number"));
                }
                _ => {}
            }
        }
        (None, Some(_)) => {}
    }
}

fn ingress_class(object: &Value, causes: &mut Causes) {
    let controller = text_at(object, "/spec/controller");
    if controller.is_empty() {
        causes.push(Invalid::required("spec.controller", ""));
    } else if !controller.contains('/') {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        causes.push(Invalid::text("spec.controller", controller, why));
    }
}

fn budget(object: &Value, causes: &mut Causes) {
    let at = |member: &str| object.pointer(&format!("/spec/{member}"));
    if let (Some(_), Some(_)) = (at("minAvailable"), at("maxUnavailable")) {
        let why = "minAvailable and maxUnavailable cannot be both set";
        causes.push(Invalid::value("spec", "policy.PodDisruptionBudgetSpec", why));
    }
    for member in ["minAvailable", "maxUnavailable"] {
        not_negative(object, &format!("/spec/{member}"), causes);
        if let Some(text) = at(member).and_then(Value::as_str)
            && text.strip_suffix('%').is_none_or(|share| share.parse::<u32>().is_err())
        {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                       regex used for validation is '[0-9]+%')";
            causes.push(Invalid::text(format!("spec.{member}"), text, why));
        }
    }
    if let Some(selector) = at("selector") {
        selector_is_sound(selector, "spec.selector", causes);
    }
}

fn role(namespaced: bool, object: &Value, causes: &mut Causes) {
    for (index, rule) in list_at(object, "/rules").iter().enumerate() {
        let at = |member: &str| format!("rules[{index}].{member}");
        let none = |member: &str| list_at(rule, &format!("/{member}")).is_empty();
        if none("verbs") {
            causes.push(Invalid::required(at("verbs"), "verbs must contain at least one value"));
        }
        if !none("nonResourceURLs") {
            if namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Invalid::value(at("nonResourceURLs"), &rule["nonResourceURLs"].to_string(), why));
            }
            if !none("apiGroups") || !none("resources") || !none("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(Invalid::value(at("nonResourceURLs"), &rule["nonResourceURLs"].to_string(), why));
            }
            continue;
        }
        if none("apiGroups") {
            let why = "resource rules must supply at least one api group";
            causes.push(Invalid::required(at("apiGroups"), why));
        }
        if none("resources") {
            let why = "resource rules must supply at least one resource";
            causes.push(Invalid::required(at("resources"), why));
        }
    }
}

fn role_binding(namespaced: bool, object: &Value, causes: &mut Causes) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let group = text_at(object, "/roleRef/apiGroup");
    if group != GROUP {
        causes.push(Invalid::unsupported("roleRef.apiGroup", group, &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let kind = text_at(object, "/roleRef/kind");
    if !kinds.contains(&kind) {
        causes.push(Invalid::unsupported("roleRef.kind", kind, kinds));
    }
    required(object, "/roleRef/name", causes);
    for (index, subject) in list_at(object, "/subjects").iter().enumerate() {
        let at = |member: &str| format!("subjects[{index}].{member}");
        let (name, group) = (text_at(subject, "/name"), text_at(subject, "/apiGroup"));
        if name.is_empty() {
            causes.push(Invalid::required(at("name"), ""));
        }
        match text_at(subject, "/kind") {
            "ServiceAccount" => {
                if !name.is_empty()
                    && let Err(why) = dns_subdomain(name)
                {
                    causes.push(Invalid::text(at("name"), name, &why));
                }
                if !group.is_empty() {
                    causes.push(Invalid::unsupported(at("apiGroup"), group, &[""]));
                }
                if text_at(subject, "/namespace").is_empty() && !namespaced {
                    causes.push(Invalid::required(at("namespace"), ""));
                }
            }
            "User" | "Group" if group != GROUP => {
                causes.push(Invalid::unsupported(at("apiGroup"), group, &[GROUP]));
            }
            "User" | "Group" => {}
            other => {
                let supported = ["ServiceAccount", "User", "Group"];
                causes.push(Invalid::unsupported(at("kind"), other, &supported));
            }
        }
    }
}

fn storage_class(object: &Value, causes: &mut Causes) {
    let provisioner = text_at(object, "/provisioner");
    if provisioner.is_empty() {
        causes.push(Invalid::required("provisioner", ""));
    } else if let Err(why) = qualified_name(&provisioner.to_lowercase()) {
        causes.push(Invalid::text("provisioner", provisioner, &why));
    }
    one_of(object, "/reclaimPolicy", &["Delete", "Retain"], causes);
    one_of(object, "/volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], causes);
}

fn csi_node(object: &Value, causes: &mut Causes) {
    let mut names = BTreeSet::new();
    for (index, driver) in list_at(object, "/spec/drivers").iter().enumerate() {
        let at = |member: &str| format!("spec.drivers[{index}].{member}");
        let name = text_at(driver, "/name");
        if name.is_empty() {
            causes.push(Invalid::required(at("name"), ""));
        } else if !names.insert(name) {
            causes.push(Invalid::duplicate(at("name"), &format!("{name:?}")));
        }
        if text_at(driver, "/nodeID").is_empty() {
            causes.push(Invalid::required(at("nodeID"), ""));
        }
    }
}

fn priority_class(object: &Value, causes: &mut Causes) {
    // The highest priority that users may set; higher ones are the system's own.
    const HIGHEST: i64 = 1_000_000_000;
    const OWN: &[&str] = &["system-node-critical", "system-cluster-critical"];
    let name = text_at(object, "/metadata/name");
    let value = object.get("value").and_then(Value::as_i64).unwrap_or(0);
    if name.starts_with("system-") && !OWN.contains(&name) {
        let why = "priority class names with 'system-' prefix are reserved for system use only. error: not a system \
                   priority class name";
        causes.push(Invalid::forbidden("metadata.name", why));
    }
    if value > HIGHEST && !OWN.contains(&name) {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        causes.push(Invalid::forbidden("value", &why));
    }
    one_of(object, "/preemptionPolicy", &["Never", "PreemptLowerPriority"], causes);
}

fn signing_request(object: &Value, causes: &mut Causes) {
    let signer = text_at(object, "/spec/signerName");
    if signer.is_empty() {
        causes.push(Invalid::required("spec.signerName", ""));
    } else if !signer.contains('/') {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        causes.push(Invalid::text("spec.signerName", signer, why));
    }
    if list_at(object, "/spec/usages").is_empty() {
        causes.push(Invalid::required("spec.usages", "usages must be provided"));
    }
}

fn webhooks(object: &Value, causes: &mut Causes) {
    let mut names = BTreeSet::new();
    for (index, webhook) in list_at(object, "/webhooks").iter().enumerate() {
        let at = |member: &str| format!("webhooks[{index}].{member}");
        let name = text_at(webhook, "/name");
        if name.is_empty() {
            causes.push(Invalid::required(at("name"), ""));
        } else if name.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            causes.push(Invalid::text(at("name"), name, why));
        } else if !names.insert(name) {
            causes.push(Invalid::duplicate(at("name"), &format!("{name:?}")));
        }
        for (place, rule) in list_at(webhook, "/rules").iter().enumerate() {
            webhook_rule(rule, &at(&format!("rules[{place}]")), causes);
        }
        one_of_webhook(webhook, "failurePolicy", &["Fail", "Ignore"], &at, causes);
        one_of_webhook(webhook, "matchPolicy", &["Equivalent", "Exact"], &at, causes);
        match text_at(webhook, "/sideEffects") {
            "" => {
                let why = "must specify one of None, NoneOnDryRun";
                causes.push(Invalid::required(at("sideEffects"), why));
            }
            "None" | "NoneOnDryRun" => {}
            other => {
                causes.push(Invalid::unsupported(at("sideEffects"), other, &["None", "NoneOnDryRun"]));
            }
        }
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_i64).unwrap_or(10);
        if !(1..=30).contains(&seconds) {
            let why = "the timeout value must be between 1 and 30 seconds";
            causes.push(Invalid::value(at("timeoutSeconds"), &seconds.to_string(), why));
        }
        let client = |member: &str| webhook.pointer(&format!("/clientConfig/{member}")).is_some();
        if client("url") == client("service") {
            let why = "exactly one of url or service is required";
            causes.push(Invalid::required(at("clientConfig"), why));
        }
        if list_at(webhook, "/admissionReviewVersions").is_empty() {
            let why = "must specify one of v1, v1beta1";
            causes.push(Invalid::required(at("admissionReviewVersions"), why));
        }
    }
}

fn one_of_webhook(
    webhook: &Value,
    member: &str,
    supported: &[&str],
    at: &impl Fn(&str) -> String,
    causes: &mut Causes,
) {
    let value = text_at(webhook, &format!("/{member}"));
    if !value.is_empty() && !supported.contains(&value) {
        causes.push(Invalid::unsupported(at(member), value, supported));
    }
}

fn webhook_rule(rule: &Value, field: &str, causes: &mut Causes) {
    let none = |member: &str| list_at(rule, &format!("/{member}")).is_empty();
    if none("operations") {
        causes.push(Invalid::required(format!("{field}.operations"), ""));
    }
    for (index, operation) in list_at(rule, "/operations").iter().filter_map(Value::as_str).enumerate() {
        if !OPERATIONS.contains(&operation) {
            causes.push(Invalid::unsupported(format!("{field}.operations[{index}]"), operation, OPERATIONS));
        }
    }
    for member in ["apiGroups", "apiVersions", "resources"].into_iter().filter(|member| none(member)) {
        causes.push(Invalid::required(format!("{field}.{member}"), ""));
    }
}

fn api_service(object: &Value, causes: &mut Causes) {
    let at = |member: &str| text_at(object, &format!("/spec/{member}"));
    let expected = format!("{}.{}", at("version"), at("group"));
    let name = text_at(object, "/metadata/name");
    if name != expected {
        let why = format!("must be `spec.version+\".\"+spec.group`: {expected:?}");
        causes.push(Invalid::text("metadata.name", name, &why));
    }
    let priority =
        |member: &str| object.pointer(&format!("/spec/{member}")).and_then(Value::as_i64).unwrap_or(0);
    for (member, most) in [("groupPriorityMinimum", 20000), ("versionPriority", 1000)] {
        if !(1..=most).contains(&priority(member)) {
            let why = if member == "versionPriority" {
                "must be positive and less than 1000"
            } else {
                "must be positive and less than 20000"
            };
            causes.push(Invalid::value(format!("spec.{member}"), &priority(member).to_string(), why));
        }
    }
}

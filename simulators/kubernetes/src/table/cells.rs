//! The values of cells.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";
const UNKNOWN: &str = "<unknown>";

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// The total number of members of the maps at the pointers.
pub(super) fn count(object: &Value, pointers: &[&str]) -> usize {
    pointers.iter().filter_map(|at| object.pointer(at)?.as_object()).map(serde_json::Map::len).sum()
}

/// The time since `since`, in its two most significant units: `90s`, `2m5s`, `3h`, `12d`.
pub(super) fn age(since: Option<&Value>, now: Timestamp) -> String {
    let since = since.and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
    since.map_or_else(|| UNKNOWN.to_owned(), |since| duration(now.as_second() - since.as_second()))
}

fn duration(seconds: i64) -> String {
    let pair = |large: i64, unit: &str, small: i64, part: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{part}") }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        _ if seconds < 120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => pair(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

pub(super) fn labels(object: &Value, pointer: &str) -> String {
    let map = object.pointer(pointer).and_then(Value::as_object);
    let mut pairs: Vec<String> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    or(&pairs.join(","), NONE).to_owned()
}

/// A label selector: labels, then expressions.
pub(super) fn selector(object: &Value, pointer: &str) -> String {
    let Some(selector) = object.pointer(pointer) else { return NONE.to_owned() };
    let mut terms: Vec<(String, String)> = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for expression in list(selector, "/matchExpressions") {
        let key = text(expression, "/key");
        let mut values: Vec<&str> = list(expression, "/values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        terms.push((key.to_owned(), term));
    }
    terms.sort();
    let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
    or(&terms.join(","), NONE).to_owned()
}

/// A member of all containers of a pod's specification.
pub(super) fn containers(object: &Value, specification: &str, member: &str) -> String {
    let containers = list(object, &format!("{specification}/containers"));
    containers.iter().map(|container| text(container, member)).collect::<Vec<_>>().join(",")
}

/// The texts of a list.
pub(super) fn joined(object: &Value, pointer: &str) -> String {
    list(object, pointer).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

/// A number or text; `N/A` if it is missing.
pub(super) fn plain(object: &Value, pointer: &str) -> Value {
    match object.pointer(pointer) {
        Some(Value::Number(number)) => number.to_string().into(),
        Some(Value::String(text)) => text.as_str().into(),
        _ => "N/A".into(),
    }
}

pub(super) fn number_or_none(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).cloned().unwrap_or_else(|| NONE.into())
}

pub(super) fn truth(object: &Value, pointer: &str) -> &'static str {
    match object.pointer(pointer) {
        Some(Value::Bool(true)) => "True",
        Some(Value::Bool(false)) => "False",
        _ => UNSET,
    }
}

/// The status of a condition.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = list(object, "/status/conditions");
    conditions.iter().find(|one| text(one, "/type") == kind).map(|one| text(one, "/status"))
}

pub(super) fn ready_replicas(object: &Value) -> String {
    let wanted = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    format!("{}/{wanted}", number(object, "/status/readyReplicas"))
}

pub(super) fn service_ports(object: &Value) -> String {
    let ports: Vec<String> = list(object, "/spec/ports")
        .iter()
        .map(|port| {
            let protocol = or(text(port, "/protocol"), "TCP");
            match (number(port, "/port"), number(port, "/nodePort")) {
                (port, 0) => format!("{port}/{protocol}"),
                (port, node_port) => format!("{port}:{node_port}/{protocol}"),
            }
        })
        .collect();
    or(&ports.join(","), NONE).to_owned()
}

pub(super) fn external_address(object: &Value) -> String {
    let declared = list(object, "/spec/externalIPs").iter().filter_map(Value::as_str);
    match text(object, "/spec/type") {
        "ExternalName" => text(object, "/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let given: BTreeSet<&str> = list(object, "/status/loadBalancer/ingress")
                .iter()
                .map(|entry| or(text(entry, "/ip"), text(entry, "/hostname")))
                .filter(|address| !address.is_empty())
                .collect();
            let all: Vec<&str> = given.into_iter().chain(declared).collect();
            or(&all.join(","), "<pending>").to_owned()
        }
        _ => or(&declared.collect::<Vec<_>>().join(","), NONE).to_owned(),
    }
}

pub(super) fn node_status(object: &Value) -> String {
    let mut status = match condition(object, "Ready") {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

pub(super) fn node_roles(object: &Value) -> String {
    let roles: BTreeSet<&str> = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => (!role.is_empty()).then_some(role),
            None if key == "kubernetes.io/role" => value.as_str().filter(|role| !role.is_empty()),
            None => None,
        })
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    or(&roles.join(","), NONE).to_owned()
}

pub(super) fn node_address<'a>(object: &'a Value, kind: &str) -> &'a str {
    let found = list(object, "/status/addresses").iter().find(|address| text(address, "/type") == kind);
    found.map_or(NONE, |address| text(address, "/address"))
}

pub(super) fn node_info<'a>(object: &'a Value, member: &str) -> &'a str {
    or(text(object, &format!("/status/nodeInfo/{member}")), UNKNOWN)
}

pub(super) fn ready_containers(object: &Value) -> String {
    let statuses = list(object, "/status/containerStatuses");
    let ready = statuses.iter().filter(|status| status.get("ready") == Some(&Value::Bool(true))).count();
    format!("{ready}/{}", list(object, "/spec/containers").len())
}

pub(super) fn restarts(object: &Value) -> String {
    let statuses = list(object, "/status/containerStatuses");
    statuses.iter().map(|status| number(status, "/restartCount")).sum::<i64>().to_string()
}

pub(super) fn pod_status(object: &Value) -> &str {
    if object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null()) {
        return "Terminating";
    }
    let statuses = list(object, "/status/containerStatuses");
    let reason = statuses.iter().rev().find_map(|status| {
        let reasons = ["/state/waiting/reason", "/state/terminated/reason"];
        reasons.iter().map(|at| text(status, at)).find(|reason| !reason.is_empty())
    });
    reason.unwrap_or_else(|| or(text(object, "/status/reason"), text(object, "/status/phase")))
}

pub(super) fn readiness_gates(object: &Value) -> String {
    let gates = list(object, "/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let met = gates.iter().filter(|gate| condition(object, text(gate, "/conditionType")) == Some("True"));
    format!("{}/{}", met.count(), gates.len())
}

/// The first of two texts that is not empty.
pub(super) fn either<'a>(object: &'a Value, pointers: [&str; 2]) -> &'a str {
    pointers.into_iter().map(|at| text(object, at)).find(|text| !text.is_empty()).unwrap_or_default()
}

fn first_seen(object: &Value) -> Option<&Value> {
    let times = ["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"];
    times.into_iter().filter_map(|at| object.pointer(at)).find(|time| !time.is_null())
}

fn series(object: &Value) -> Option<&Value> {
    object.get("series").filter(|series| !series.is_null())
}

pub(super) fn event_first(object: &Value, now: Timestamp) -> String {
    age(first_seen(object), now)
}

pub(super) fn event_last(object: &Value, now: Timestamp) -> String {
    let last = match series(object) {
        Some(series) => series.get("lastObservedTime"),
        None => ["/lastTimestamp", "/deprecatedLastTimestamp"]
            .into_iter()
            .filter_map(|at| object.pointer(at))
            .find(|time| !time.is_null())
            .or_else(|| first_seen(object)),
    };
    age(last, now)
}

pub(super) fn event_count(object: &Value) -> i64 {
    match series(object) {
        Some(series) => number(series, "/count"),
        None => number(object, "/count").max(number(object, "/deprecatedCount")).max(1),
    }
}

pub(super) fn event_subject(object: &Value) -> String {
    let kind = either(object, ["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    let name = either(object, ["/involvedObject/name", "/regarding/name"]);
    if kind.is_empty() { name.to_owned() } else { format!("{kind}/{name}") }
}

pub(super) fn event_source(object: &Value) -> String {
    let component = either(object, ["/source/component", "/deprecatedSource/component"]);
    let (component, host) = if component.is_empty() {
        let reporter = either(object, ["/reportingComponent", "/reportingController"]);
        (reporter, text(object, "/reportingInstance"))
    } else {
        (component, either(object, ["/source/host", "/deprecatedSource/host"]))
    };
    if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") }
}

/// At most three, then how many more there are.
fn some_of(all: &[String], none: &str) -> String {
    match all {
        [] => none.to_owned(),
        [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a},{b},{c} + {} more...", rest.len()),
        few => few.join(","),
    }
}

pub(super) fn endpoints(object: &Value) -> String {
    let mut all = vec![];
    for subset in list(object, "/subsets") {
        for port in list(subset, "/ports") {
            for address in list(subset, "/addresses") {
                all.push(format!("{}:{}", text(address, "/ip"), number(port, "/port")));
            }
        }
    }
    some_of(&all, NONE)
}

pub(super) fn slice_ports(object: &Value) -> String {
    let ports: Vec<String> =
        list(object, "/ports").iter().map(|port| number(port, "/port").to_string()).collect();
    some_of(&ports, UNSET)
}

pub(super) fn slice_addresses(object: &Value) -> String {
    let addresses: Vec<String> = list(object, "/endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "/addresses"))
        .filter_map(|address| address.as_str().map(str::to_owned))
        .collect();
    some_of(&addresses, UNSET)
}

pub(super) fn hosts(object: &Value) -> String {
    let hosts: Vec<String> = list(object, "/spec/rules")
        .iter()
        .map(|rule| text(rule, "/host").to_owned())
        .filter(|host| !host.is_empty())
        .collect();
    some_of(&hosts, "*")
}

pub(super) fn ingress_addresses(object: &Value) -> String {
    let given: BTreeSet<&str> = list(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|entry| or(text(entry, "/ip"), text(entry, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    given.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn parameters(object: &Value) -> String {
    let at = |member: &str| text(object, &format!("/spec/parameters/{member}"));
    match (at("apiGroup"), at("kind"), at("name")) {
        (_, "", _) => NONE.to_owned(),
        ("", kind, name) => format!("{kind}/{name}"),
        (group, kind, name) => format!("{kind}.{group}/{name}"),
    }
}

/// The controller of the object: `daemonset.apps/x`.
pub(super) fn controller(object: &Value) -> String {
    let owners = list(object, "/metadata/ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true))) else {
        return NONE.to_owned();
    };
    let group = text(owner, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let kind = text(owner, "/kind").to_lowercase();
    let name = text(owner, "/name");
    if group.is_empty() { format!("{kind}/{name}") } else { format!("{kind}.{group}/{name}") }
}

pub(super) fn job_status(object: &Value) -> &'static str {
    let holds = |kind: &str| condition(object, kind) == Some("True");
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if !text(object, "/metadata/deletionTimestamp").is_empty() => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

pub(super) fn completions(object: &Value) -> String {
    let done = number(object, "/status/succeeded");
    match (object.pointer("/spec/completions").and_then(Value::as_i64), number(object, "/spec/parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, side_by_side) if side_by_side > 1 => format!("{done}/1 of {side_by_side}"),
        (None, _) => format!("{done}/1"),
    }
}

pub(super) fn job_duration(object: &Value, now: Timestamp) -> String {
    let time = |at: &str| text(object, at).parse::<Timestamp>().ok();
    let end = time("/status/completionTime").unwrap_or(now);
    time("/status/startTime").map_or_else(String::new, |start| duration(end.as_second() - start.as_second()))
}

pub(super) fn last_schedule(object: &Value, now: Timestamp) -> String {
    match object.pointer("/status/lastScheduleTime").filter(|time| !time.is_null()) {
        Some(time) => age(Some(time), now),
        None => NONE.to_owned(),
    }
}

/// Current and target values, of at most two metrics.
pub(super) fn targets(object: &Value) -> String {
    let metrics = list(object, "/spec/metrics");
    let current = list(object, "/status/currentMetrics");
    let mut shown: Vec<String> = metrics
        .iter()
        .enumerate()
        .map(|(index, metric)| target(metric, current.get(index).unwrap_or(&Value::Null)))
        .collect();
    if shown.is_empty() {
        // The first version supports CPU alone.
        let wanted = number(object, "/spec/targetCPUUtilizationPercentage");
        if wanted == 0 {
            return NONE.to_owned();
        }
        return match object.pointer("/status/currentCPUUtilizationPercentage").and_then(Value::as_i64) {
            Some(measured) => format!("cpu: {measured}%/{wanted}%"),
            None => format!("cpu: {UNKNOWN}/{wanted}%"),
        };
    }
    let more = shown.len().saturating_sub(2);
    shown.truncate(2);
    let shown = shown.join(", ");
    if more > 0 { format!("{shown} + {more} more...") } else { shown }
}

fn target(metric: &Value, current: &Value) -> String {
    const MEMBERS: &[(&str, &str)] = &[
        ("Resource", "resource"),
        ("ContainerResource", "containerResource"),
        ("Pods", "pods"),
        ("Object", "object"),
        ("External", "external"),
    ];
    let kind = text(metric, "/type");
    let Some((_, member)) = MEMBERS.iter().find(|(name, _)| *name == kind) else {
        return "<unknown type>".to_owned();
    };
    let wanted = |at: &str| metric.pointer(&format!("/{member}/target/{at}"));
    let measured = |at: &str| current.pointer(&format!("/{member}/current/{at}"));
    let quantity = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => UNKNOWN.to_owned(),
    };
    let prefix = match kind {
        "Resource" | "ContainerResource" => format!("{}: ", text(metric, &format!("/{member}/name"))),
        _ => String::new(),
    };
    if let Some(percentage) = wanted("averageUtilization") {
        let now = measured("averageUtilization").map_or(UNKNOWN.to_owned(), |value| format!("{value}%"));
        return format!("{prefix}{now}/{percentage}%");
    }
    let (at, average) = match wanted("averageValue") {
        Some(_) => ("averageValue", kind != "Resource" && kind != "ContainerResource" && kind != "Pods"),
        None => ("value", false),
    };
    let average = if average { " (avg)" } else { "" };
    format!("{prefix}{}/{}{average}", quantity(measured(at)), quantity(wanted(at)))
}

pub(super) fn subjects(object: &Value, kind: &str) -> String {
    let named = list(object, "/subjects").iter().filter(|subject| text(subject, "/kind") == kind);
    let names: Vec<String> = named
        .map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, "/namespace"), text(subject, "/name")),
            _ => text(subject, "/name").to_owned(),
        })
        .collect();
    names.join(", ")
}

pub(super) fn requested_duration(object: &Value) -> String {
    let seconds = object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    seconds.map_or(NONE.to_owned(), duration)
}

pub(super) fn signing_state(object: &Value) -> String {
    let decided = ["Approved", "Denied", "Failed"].into_iter();
    let mut words: Vec<&str> = decided.filter(|kind| condition(object, kind).is_some()).collect();
    if words.is_empty() {
        words.push("Pending");
    }
    if !text(object, "/status/certificate").is_empty() {
        words.push("Issued");
    }
    words.join(",")
}

pub(super) fn phase(object: &Value) -> &str {
    let terminating = object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
    if terminating { "Terminating" } else { text(object, "/status/phase") }
}

pub(super) fn claim(object: &Value) -> String {
    let at = |member: &str| text(object, &format!("/spec/claimRef/{member}"));
    if at("name").is_empty() { String::new() } else { format!("{}/{}", at("namespace"), at("name")) }
}

/// A value that is shown only for a claim with a volume.
pub(super) fn if_bound(object: &Value, shown: &str) -> Value {
    if text(object, "/spec/volumeName").is_empty() { "".into() } else { shown.into() }
}

pub(super) fn access_modes(object: &Value, pointer: &str) -> String {
    const SHORT: &[(&str, &str)] = &[
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes: Vec<&str> = list(object, pointer).iter().filter_map(Value::as_str).collect();
    let shown = SHORT.iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| *short);
    shown.collect::<Vec<_>>().join(",")
}

pub(super) fn storage_class_name(object: &Value) -> String {
    let name = text(object, "/metadata/name");
    let default = "/metadata/annotations/storageclass.kubernetes.io~1is-default-class";
    if text(object, default) == "true" { format!("{name} (default)") } else { name.to_owned() }
}

pub(super) fn audiences(object: &Value) -> String {
    let requests = list(object, "/spec/tokenRequests");
    let audiences: Vec<&str> = requests.iter().map(|request| text(request, "/audience")).collect();
    or(&audiences.join(","), UNSET).to_owned()
}

/// Requests (or limits): used and allowed amounts.
pub(super) fn quota(object: &Value, limits: bool) -> String {
    let hard = object.pointer("/status/hard").and_then(Value::as_object);
    let shown: Vec<String> = hard
        .into_iter()
        .flatten()
        .filter(|(resource, _)| resource.starts_with("limits.") == limits)
        .map(|(resource, hard)| {
            let used = object.pointer("/status/used").and_then(|used| used.get(resource));
            let used = used.and_then(Value::as_str).unwrap_or("0");
            format!("{resource}: {used}/{}", hard.as_str().unwrap_or_default())
        })
        .collect();
    shown.join(", ")
}

pub(super) fn param_kind(object: &Value) -> String {
    let at = |member: &str| text(object, &format!("/spec/paramKind/{member}"));
    if at("kind").is_empty() { UNSET.to_owned() } else { format!("{}/{}", at("apiVersion"), at("kind")) }
}

pub(super) fn param_ref(object: &Value) -> String {
    let at = |member: &str| text(object, &format!("/spec/paramRef/{member}"));
    match (object.pointer("/spec/paramRef"), at("namespace"), at("name")) {
        (None | Some(Value::Null), ..) => UNSET.to_owned(),
        (_, "", name) => format!("*/{name}"),
        (_, namespace, name) => format!("{namespace}/{name}"),
    }
}

pub(super) fn service_of_api(object: &Value) -> String {
    let at = |member: &str| text(object, &format!("/spec/service/{member}"));
    if at("name").is_empty() { "Local".to_owned() } else { format!("{}/{}", at("namespace"), at("name")) }
}

pub(super) fn availability(object: &Value) -> String {
    let conditions = list(object, "/status/conditions");
    let Some(available) = conditions.iter().find(|one| text(one, "/type") == "Available") else {
        return "Unknown".to_owned();
    };
    match (text(available, "/status"), text(available, "/reason")) {
        ("True", _) | (_, "") => text(available, "/status").to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

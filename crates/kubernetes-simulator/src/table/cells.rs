//! The cells of each kind.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// How many members the maps at the pointers have together.
pub(super) fn count(object: &Value, pointers: &[&str]) -> usize {
    pointers.iter().filter_map(|at| object.pointer(at)?.as_object()).map(serde_json::Map::len).sum()
}

/// The time since `since`, in the two coarsest units that matter: `90s`, `2m5s`, `3h`, `12d`.
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

fn labels(object: &Value, pointer: &str) -> String {
    let map = object.pointer(pointer).and_then(Value::as_object);
    let mut pairs: Vec<String> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    or(&pairs.join(","), NONE).to_owned()
}

pub(super) fn service(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let kind = or(text(object, "/spec/type"), "ClusterIP");
    let address = or(text(object, "/spec/clusterIP"), NONE);
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
    vec![
        name,
        kind.into(),
        address.into(),
        external_address(object, kind).into(),
        or(&ports.join(","), NONE).into(),
        age,
        labels(object, "/spec/selector").into(),
    ]
}

fn external_address(object: &Value, kind: &str) -> String {
    let declared = list(object, "/spec/externalIPs").iter().filter_map(Value::as_str);
    match kind {
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

pub(super) fn node(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let ready =
        list(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
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
    let address = |kind: &str| {
        let found = list(object, "/status/addresses").iter().find(|address| text(address, "/type") == kind);
        Value::from(found.map_or(NONE, |address| text(address, "/address")))
    };
    let info = |member: &str| Value::from(or(text(object, &format!("/status/nodeInfo/{member}")), UNKNOWN));
    vec![
        name,
        status.into(),
        or(&roles.join(","), NONE).into(),
        age,
        text(object, "/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

pub(super) fn pod(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let containers = list(object, "/spec/containers").len();
    let statuses = list(object, "/status/containerStatuses");
    let ready = statuses.iter().filter(|status| status.get("ready") == Some(&Value::Bool(true))).count();
    let restarts: i64 = statuses.iter().map(|status| number(status, "/restartCount")).sum();
    let reason = statuses.iter().rev().find_map(|status| {
        let reasons = ["/state/waiting/reason", "/state/terminated/reason"];
        reasons.iter().map(|at| text(status, at)).find(|reason| !reason.is_empty())
    });
    let mut status = or(text(object, "/status/reason"), text(object, "/status/phase"));
    if let Some(reason) = reason {
        status = reason;
    }
    if object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null()) {
        status = "Terminating";
    }
    let gates = list(object, "/spec/readinessGates");
    let gates = if gates.is_empty() { NONE.to_owned() } else { format!("0/{}", gates.len()) };
    vec![
        name,
        format!("{ready}/{containers}").into(),
        status.into(),
        restarts.to_string().into(),
        age,
        or(text(object, "/status/podIP"), NONE).into(),
        or(text(object, "/spec/nodeName"), NONE).into(),
        or(text(object, "/status/nominatedNodeName"), NONE).into(),
        gates.into(),
    ]
}

/// Events of `v1` and of `events.k8s.io/v1`, which name the same members differently.
pub(super) fn event(object: &Value, name: Value, now: Timestamp) -> Vec<Value> {
    let either = |pointers: [&str; 2]| {
        pointers.into_iter().filter_map(|at| object.pointer(at)).find(|value| !value.is_null())
    };
    let words = |pointers: [&str; 2]| {
        pointers.into_iter().map(|at| text(object, at)).find(|text| !text.is_empty()).unwrap_or_default()
    };
    let event_time = object.get("eventTime").filter(|at| !at.is_null());
    let first = either(["/firstTimestamp", "/deprecatedFirstTimestamp"]).or(event_time);
    let series = object.get("series").filter(|series| !series.is_null());
    let last = match series {
        Some(series) => series.get("lastObservedTime"),
        None => either(["/lastTimestamp", "/deprecatedLastTimestamp"]).or(first),
    };
    let times = match series {
        Some(series) => number(series, "/count"),
        None => number(object, "/count").max(number(object, "/deprecatedCount")).max(1),
    };
    let kind = words(["/involvedObject/kind", "/regarding/kind"]).to_lowercase();
    let subject = words(["/involvedObject/name", "/regarding/name"]);
    let subject = if kind.is_empty() { subject.to_owned() } else { format!("{kind}/{subject}") };
    let component = words(["/source/component", "/deprecatedSource/component"]);
    let (component, host) = if component.is_empty() {
        (words(["/reportingComponent", "/reportingController"]), text(object, "/reportingInstance"))
    } else {
        (component, words(["/source/host", "/deprecatedSource/host"]))
    };
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    vec![
        age(last, now).into(),
        text(object, "/type").into(),
        text(object, "/reason").into(),
        subject.into(),
        words(["/involvedObject/fieldPath", "/regarding/fieldPath"]).into(),
        source.into(),
        words(["/message", "/note"]).trim().into(),
        age(first, now).into(),
        times.into(),
        name,
    ]
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

pub(super) fn endpoint_slice(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let ports: Vec<String> =
        list(object, "/ports").iter().map(|port| number(port, "/port").to_string()).collect();
    let addresses: Vec<String> = list(object, "/endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "/addresses"))
        .filter_map(|address| address.as_str().map(str::to_owned))
        .collect();
    vec![
        name,
        text(object, "/addressType").into(),
        some_of(&ports, "<unset>").into(),
        some_of(&addresses, "<unset>").into(),
        age,
    ]
}

pub(super) fn deployment(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let wanted = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let containers = list(object, "/spec/template/spec/containers");
    let joined = |member: &str| containers.iter().map(|c| text(c, member)).collect::<Vec<_>>().join(",");
    vec![
        name,
        format!("{}/{wanted}", number(object, "/status/readyReplicas")).into(),
        number(object, "/status/updatedReplicas").into(),
        number(object, "/status/availableReplicas").into(),
        age,
        joined("/name").into(),
        joined("/image").into(),
        labels(object, "/spec/selector/matchLabels").into(),
    ]
}

//! APIServices.

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    categories: &["api-extensions"],
    etcd_directory: Some("apiregistration.k8s.io/apiservices"),
    status: StatusRule::Subresource,
    unconditional_update: false,
    columns: &[NAME, Column::derived("Service", service), Column::derived("Available", availability), AGE],
    defaults: &[("spec.service.port", "443")],
    validate,
    example: r#"{"metadata": {"name": "v1.example.com"}, "spec": {"group": "example.com", "version": "v1", "service": {"namespace": "n", "name": "s"}, "insecureSkipTLSVerify": true, "groupPriorityMinimum": 100, "versionPriority": 100}}"#,
    ..BuiltinKind::cluster::<APIService>()
};

fn service(object: &Value) -> String {
    let at = |member: &str| text_at(object, &format!("/spec/service/{member}"));
    if at("name").is_empty() { "Local".to_owned() } else { format!("{}/{}", at("namespace"), at("name")) }
}

fn availability(object: &Value) -> String {
    let conditions = list_at(object, "/status/conditions");
    let Some(available) = conditions.iter().find(|one| text_at(one, "/type") == "Available") else {
        return "Unknown".to_owned();
    };
    match (text_at(available, "/status"), text_at(available, "/reason")) {
        ("True", _) | (_, "") => text_at(available, "/status").to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

fn validate(object: &Value, causes: &mut Causes) {
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
            causes.push(Invalid::value(format!("spec.{member}"), priority(member), why));
        }
    }
}

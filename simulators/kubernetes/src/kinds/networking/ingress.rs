//! Ingresses.

use k8s_openapi::api::networking::v1::Ingress;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["ing"],
    etcd_directory: Some("ingress"),
    status: StatusRule::Subresource,
    generation: Generation::Specification,
    columns: &[
        NAME,
        Column::text_or("Class", "/spec/ingressClassName", NONE),
        Column::derived("Hosts", hosts),
        Column::derived("Address", load_balancer_addresses),
        Column::derived("Ports", |object| {
            if list_at(object, "/spec/tls").is_empty() { "80" } else { "80, 443" }.to_owned()
        }),
        AGE,
    ],
    validate,
    example: r#"{"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}"#,
    ..BuiltinKind::namespaced::<Ingress>()
};

fn hosts(object: &Value) -> String {
    let hosts: Vec<String> = list_at(object, "/spec/rules")
        .iter()
        .map(|rule| text_at(rule, "/host").to_owned())
        .filter(|host| !host.is_empty())
        .collect();
    some_of(&hosts, "*")
}

fn validate(object: &Value, causes: &mut Causes) {
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
        validate_backend(backend, "spec.defaultBackend", causes);
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
            validate_path(path, &format!("spec.rules[{index}].http.paths[{place}]"), causes);
        }
    }
}

fn validate_path(path: &Value, field: &str, causes: &mut Causes) {
    let (kind, text) = (text_at(path, "/pathType"), text_at(path, "/path"));
    match kind {
        "" => causes.push(Invalid::required(format!("{field}.pathType"), "pathType must be specified")),
        "Exact" | "Prefix" if !text.starts_with('/') => {
            causes.push(Invalid::text(format!("{field}.path"), text, "must be an absolute path"));
        }
        "ImplementationSpecific" if !text.is_empty() && !text.starts_with('/') => {
            causes.push(Invalid::text(format!("{field}.path"), text, "must be an absolute path"));
        }
        other => {
            let supported = ["Exact", "ImplementationSpecific", "Prefix"];
            causes.check_one_of(format!("{field}.pathType"), other, &supported);
        }
    }
    validate_backend(path.get("backend").unwrap_or(&Value::Null), &format!("{field}.backend"), causes);
}

fn validate_backend(backend: &Value, field: &str, causes: &mut Causes) {
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

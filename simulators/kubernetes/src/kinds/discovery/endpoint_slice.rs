//! EndpointSlices.

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    generation: Generation::Specification,
    columns: &[
        NAME,
        Column::text("AddressType", "/addressType"),
        Column::derived("Ports", ports),
        Column::derived("Endpoints", addresses),
        AGE,
    ],
    defaults: &[("endpoints", "null"), ("ports[].name", r#""""#), ("ports[].protocol", r#""TCP""#)],
    validate: |object, causes| causes.note(validate(object)),
    immutable: &[Immutable::Text("addressType")],
    example: r#"{"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"]}], "ports": [{"port": 80}]}"#,
    ..BuiltinKind::namespaced::<EndpointSlice>()
};

fn ports(object: &Value) -> String {
    let ports: Vec<String> =
        list_at(object, "/ports").iter().map(|port| number_at(port, "/port").to_string()).collect();
    some_of(&ports, UNSET)
}

fn addresses(object: &Value) -> String {
    let addresses: Vec<String> = list_at(object, "/endpoints")
        .iter()
        .flat_map(|endpoint| list_at(endpoint, "/addresses"))
        .filter_map(|address| address.as_str().map(str::to_owned))
        .collect();
    some_of(&addresses, UNSET)
}

/// Validates an EndpointSlice: addresses of one family, and distinct port names.
fn validate(object: &Value) -> Result<(), Invalid> {
    let family = text_at(object, "/addressType");
    if family.is_empty() {
        return Err(Invalid::required("addressType", ""));
    }
    Invalid::check_one_of("addressType", family, &["FQDN", "IPv4", "IPv6"])?;
    for (index, endpoint) in list_at(object, "/endpoints").iter().enumerate() {
        let field = format!("endpoints[{index}].addresses");
        let addresses = list_at(endpoint, "/addresses");
        if addresses.is_empty() {
            return Err(Invalid::required(field, "must contain at least 1 address"));
        }
        if addresses.len() > 100 {
            return Err(Invalid::new(
                field,
                format!("Too many: {}: must have at most 100 items", addresses.len()),
            ));
        }
        for (place, address) in addresses.iter().enumerate() {
            let address = address.as_str().unwrap_or_default();
            let good = match family {
                "IPv4" => matches!(address.parse(), Ok(IpAddr::V4(_))),
                "IPv6" => matches!(address.parse(), Ok(IpAddr::V6(_))),
                _ => dns_subdomain(address).is_ok(),
            };
            if !good {
                let why = format!("must be a valid {family} address");
                return Err(Invalid::text(format!("{field}[{place}]"), address, &why));
            }
        }
    }
    let mut names = BTreeSet::new();
    for (index, port) in list_at(object, "/ports").iter().enumerate() {
        let name = text_at(port, "/name");
        let field = format!("ports[{index}].name");
        if !name.is_empty() {
            Invalid::check(field.as_str(), name, dns_label)?;
        }
        if !names.insert(name) {
            return Err(Invalid::duplicate(field, format!("{name:?}")));
        }
        let protocol = text_at(port, "/protocol");
        Invalid::check_one_of(format!("ports[{index}].protocol"), protocol, &["SCTP", "TCP", "UDP"])?;
    }
    Ok(())
}

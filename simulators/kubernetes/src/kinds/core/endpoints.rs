//! Endpoints.

use k8s_openapi::api::core::v1::Endpoints;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["ep"],
    etcd_directory: Some("services/endpoints"),
    create_on_update: true,
    columns: &[NAME, Column::derived("Endpoints", addresses), AGE],
    defaults: &[("subsets[].ports[].protocol", r#""TCP""#)],
    example: r#"{"subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80, "protocol": "TCP"}]}]}"#,
    ..BuiltinKind::namespaced::<Endpoints>()
};

fn addresses(object: &Value) -> String {
    let mut all = vec![];
    for subset in list_at(object, "/subsets") {
        for port in list_at(subset, "/ports") {
            for address in list_at(subset, "/addresses") {
                all.push(format!("{}:{}", text_at(address, "/ip"), number_at(port, "/port")));
            }
        }
    }
    some_of(&all, NONE)
}

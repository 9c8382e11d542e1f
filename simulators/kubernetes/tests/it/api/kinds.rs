//! Every built-in kind in its life: its example is created, read, updated, shown as a table and deleted.

use std::time::Duration;

use http::Method;
use kubernetes_simulator::{Example, examples};
use serde_json::{Value, json};

use crate::api::raw;
use crate::api::*;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

#[tokio::test(start_paused = true)]
async fn every_kind_lives() {
    let mut count = 0;
    for example in examples() {
        live(&kubernetes(), &example).await;
        count += 1;
    }
    assert!(count > 45, "{count} kinds are stored");
}

async fn live(kubernetes: &Kubernetes, example: &Example) {
    let (path, name) = (example.path("default"), example.object["metadata"]["name"].as_str().unwrap());
    let (object, what) = (format!("{path}/{name}"), &path);
    let (code, created) = raw::post(kubernetes, &path, &example.object).await;
    assert_eq!(code, 201, "{what}: {created}");
    let (code, mut read) = raw::get(kubernetes, &object, "application/json").await;
    assert_eq!((code, &read), (200, &created), "{what}");
    contains(&read, &example.object, what);

    read["metadata"]["labels"]["changed"] = json!("yes");
    let (code, updated) = raw::put(kubernetes, &object, &read).await;
    assert_eq!((code, &updated["metadata"]["labels"]["changed"]), (200, &json!("yes")), "{what}: {updated}");

    let (code, table) = raw::get(kubernetes, &path, TABLE).await;
    assert_eq!(code, 200, "{what}");
    let rows = table["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["object"]["metadata"]["name"] == name).unwrap();
    let (cells, columns) = (row["cells"].as_array().unwrap(), table["columnDefinitions"].as_array().unwrap());
    assert_eq!(cells.len(), columns.len(), "{what}");
    let at = columns.iter().position(|column| column["name"] == "Name").unwrap();
    assert_eq!(cells[at], name, "{what}");

    let (code, _) = raw::send(kubernetes, Method::DELETE, &object, &[], "").await;
    assert_eq!(code, 200, "{what}");
    // The contents of a namespace stay a second.
    tokio::time::sleep(Duration::from_secs(2)).await;
    // Some are protected by finalizers, which a controller removes.
    let (code, mut left) = raw::get(kubernetes, &object, "application/json").await;
    if code == 200 && left["metadata"]["finalizers"].is_array() {
        left["metadata"]["finalizers"] = json!([]);
        raw::put(kubernetes, &object, &left).await;
    }
    assert_eq!(raw::get(kubernetes, &object, "application/json").await.0, 404, "{what}");
}

/// An object has at least the members of its example.
fn contains(object: &Value, example: &Value, what: &str) {
    match (object, example) {
        (Value::Object(object), Value::Object(example)) => {
            for (name, value) in example {
                contains(object.get(name).unwrap_or(&Value::Null), value, &format!("{what}.{name}"));
            }
        }
        (Value::Array(items), Value::Array(example)) => {
            assert!(items.len() >= example.len(), "{what}");
            items.iter().zip(example).for_each(|(item, example)| contains(item, example, what));
        }
        (object, example) => assert_eq!(object, example, "{what}"),
    }
}

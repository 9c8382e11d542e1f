//! Grafana's dashboards, from their description.

use serde_json::{Value, json};

use super::queries::{list, resolved, text};

/// The grid of Grafana is 24 units wide.
const WIDTH: u64 = 24;
const ROW_HEIGHT: u64 = 1;

/// The size of a panel, by its kind.
fn size(kind: &str) -> (u64, u64) {
    match kind {
        "stat" => (4, 4),
        _ => (8, 8),
    }
}

/// The dashboard as Grafana imports it.
///
/// # Errors
/// The description lacks a member.
pub fn dashboard(description: &Value) -> anyhow::Result<Value> {
    let mut panels = Vec::new();
    let (mut y, mut height) = (0, 0);
    for row in list(description, "rows") {
        y += height;
        panels.push(json!({
            "type": "row",
            "id": panels.len() + 1,
            "title": text(row, "title")?,
            "collapsed": false,
            "gridPos": { "x": 0, "y": y, "w": WIDTH, "h": ROW_HEIGHT },
            "panels": [],
        }));
        y += ROW_HEIGHT;
        let mut x = 0;
        height = 0;
        for panel in list(row, "panels") {
            let kind = panel["kind"].as_str().unwrap_or("timeseries");
            let (wide, high) = size(kind);
            if x + wide > WIDTH {
                y += height;
                (x, height) = (0, 0);
            }
            let place = json!({ "x": x, "y": y, "w": wide, "h": high });
            panels.push(self::panel(description, panel, kind, panels.len() + 1, &place)?);
            x += wide;
            height = height.max(high);
        }
    }
    Ok(json!({
        "uid": text(description, "uid")?,
        "title": text(description, "title")?,
        "description": text(description, "about")?,
        "tags": ["cerulean", "azure"],
        "schemaVersion": 38,
        "version": 1,
        "editable": true,
        "refresh": "30s",
        "time": { "from": "now-6h", "to": "now" },
        "templating": { "list": [{
            "name": "datasource",
            "label": "Prometheus",
            "type": "datasource",
            "query": "prometheus",
            "current": {},
        }] },
        "annotations": { "list": [] },
        "panels": panels,
    }))
}

fn panel(dashboard: &Value, panel: &Value, kind: &str, id: usize, place: &Value) -> anyhow::Result<Value> {
    let source = json!({ "type": "prometheus", "uid": "${datasource}" });
    let mut targets = Vec::new();
    for (query, letter) in list(panel, "queries").iter().zip('A'..) {
        targets.push(json!({
            "refId": letter.to_string(),
            "datasource": source,
            "expr": resolved(text(query, "expr")?, dashboard)?,
            "legendFormat": query["legend"].as_str().unwrap_or("__auto"),
            "instant": kind == "stat",
            "range": kind != "stat",
        }));
    }
    let mut printed = json!({
        "type": kind,
        "id": id,
        "title": text(panel, "title")?,
        "description": text(panel, "about")?,
        "datasource": source,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": { "defaults": { "unit": panel["unit"].as_str().unwrap_or("short") }, "overrides": [] },
    });
    printed["options"] = match kind {
        "stat" => json!({ "reduceOptions": { "calcs": ["lastNotNull"] }, "textMode": "auto" }),
        _ => {
            json!({ "legend": { "displayMode": "list", "placement": "bottom" }, "tooltip": { "mode": "multi" } })
        }
    };
    if kind == "timeseries" {
        printed["fieldConfig"]["defaults"]["min"] = json!(0);
    }
    Ok(printed)
}

/// The rules as an object of Prometheus' operator.
pub fn operator_rules(groups: &[Value]) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": { "name": "cerulean", "labels": { "app.kubernetes.io/part-of": "cerulean" } },
        "spec": { "groups": groups },
    })
}

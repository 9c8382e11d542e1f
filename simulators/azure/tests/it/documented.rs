//! The examples of the guide are what the simulator takes.

use crate::common::Client;
use azure_simulator::Options;
use serde_json::Value;

const GUIDE: &str = include_str!("../../../../docs/simulator-conditions.md");

/// The JSON below a heading.
fn example(heading: &str) -> Value {
    let section = GUIDE.split("\n## ").find(|section| section.starts_with(heading)).expect(heading);
    let block = section.split("```json").nth(1).and_then(|rest| rest.split("```").next()).expect(heading);
    serde_json::from_str(block).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_the_guide_shows_is_taken() {
    let client = Client::with_group(Options::default()).await;
    let headers = [("content-type", "application/json")];
    for (heading, method, path, status) in [
        ("Latency", "PUT", "latency", 204),
        ("Faults", "POST", "faults", 201),
        ("Budgets", "PUT", "budgets", 204),
        ("Limits", "PUT", "limits", 204),
        ("Consistency", "PUT", "consistency", 204),
    ] {
        let path = format!("/_cerulean/{path}");
        client.send(method, &path, Some(example(heading)), &headers).await.expect(status);
        let shown = client.send("GET", &path, None, &[]).await.expect(200).body;
        // A budget shows only when it was drawn on.
        assert!(heading == "Budgets" || contains(&shown, &example(heading)), "{heading}: {shown}");
    }
}

/// Whether a value has everything that another one has.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (whole, part) => whole == part,
    }
}

//! Request budgets on the wire: which are drawn on, what a refusal looks like, and that each can be

//! changed while the simulator runs.

use std::time::Duration;

use crate::common::{Client, compute_id, network_id, public_ip, scale_set};
use azure_simulator::{BudgetScope, Budgets, Options, PolicyFigures};
use serde_json::{Value, json};

const PUT_SET: &str = "Microsoft.Compute/PutVMScaleSetResource";

fn policies(overridden: &[(&str, Option<(u32, u32)>)]) -> Options {
    let policies = overridden
        .iter()
        .map(|(name, figures)| {
            ((*name).to_owned(), figures.map(|(size, refill)| PolicyFigures { size, refill }))
        })
        .collect();
    Options { budgets: Some(Budgets { policies, ..Budgets::default() }), ..Options::default() }
}

#[tokio::test(start_paused = true)]
async fn compute_counts_every_scale_set_and_the_subscription() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/16").await;
    let (one, other) = (compute_id("virtualMachineScaleSets/one"), compute_id("virtualMachineScaleSets/two"));
    let first = client.put(&one, scale_set(1, &subnet, &[])).await.expect(201);
    let shown: Vec<_> = first.headers.get_all("x-ms-ratelimit-remaining-resource").iter().collect();
    assert_eq!(
        shown,
        [
            "Microsoft.Compute/PutVMScaleSetResource;11",
            "Microsoft.Compute/PutVMScaleSetSubscriptionMaximum;374"
        ]
    );
    for _ in 1..12 {
        client.put(&one, scale_set(1, &subnet, &[])).await.expect(200);
    }
    let refused = client.put(&one, scale_set(1, &subnet, &[])).await.refused(429, "OperationNotAllowed");
    // Four tokens come back in a minute. What ARM let pass has cost its tokens, and its headers show them.
    assert_eq!(refused.header("retry-after"), Some("15"));
    let left = refused.header("x-ms-ratelimit-remaining-subscription-writes").unwrap();
    assert!(left.parse::<u64>().unwrap() > 150, "{left}");
    assert_eq!(
        refused.header("x-ms-ratelimit-remaining-resource"),
        Some("Microsoft.Compute/PutVMScaleSetResource;0")
    );
    let error = &refused.body["error"];
    assert_eq!(error["innererror"]["internalErrorCode"], "TooManyRequestsReceived");
    let detail = &error["details"][0];
    assert_eq!(
        (&detail["code"], &detail["target"]),
        (&json!("TooManyRequests"), &json!("PutVMScaleSetResource"))
    );
    let facts: Value = serde_json::from_str(detail["message"].as_str().unwrap()).unwrap();
    assert_eq!(facts["operationGroup"], "PutVMScaleSetResource");
    assert_eq!((&facts["allowedRequestCount"], &facts["measuredRequestCount"]), (&json!(12), &json!(13)));
    // Another set, and reads of this one, have budgets of their own.
    client.put(&other, scale_set(1, &subnet, &[])).await.expect(201);
    client.get(&one).await.expect(200);
    tokio::time::advance(Duration::from_secs(15)).await;
    client.put(&one, scale_set(1, &subnet, &[])).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn network_counts_writes_in_windows_of_five_minutes() {
    let client = Client::with_group(policies(&[("Microsoft.Network/Writes", Some((3, 3)))])).await;
    let ip = network_id("publicIPAddresses/a");
    for _ in 0..3 {
        client.put(&ip, public_ip()).await;
    }
    tokio::time::advance(Duration::from_secs(100)).await;
    let refused = client.put(&ip, public_ip()).await.refused(429, "ResourceRequestsThrottled");
    assert_eq!(refused.header("retry-after"), Some("200"));
    let text = "Number of requests for action 'Microsoft.Network/publicIPAddresses/write' exceeded the limit of '3' for \
                time interval '00:05:00'. Please try again after '200' seconds.";
    assert_eq!(refused.body["error"]["message"], text);
    // Another region is another Network, and reads are counted elsewhere.
    client.get(&ip).await.expect(200);
    let mut far = public_ip();
    far["location"] = json!("West US 2");
    client.put(&network_id("publicIPAddresses/b"), far).await.expect(201);
    tokio::time::advance(Duration::from_secs(200)).await;
    client.put(&ip, public_ip()).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn principals_have_their_own_budgets_and_share_the_subscriptions() {
    let budgets = Budgets { reads: 2.0, reads_per_second: 0.1, global_factor: 1.5, ..Budgets::default() };
    let options = Options { budgets: Some(budgets), ..Options::default() };
    let client = Client::new(options);
    let path = format!("/subscriptions/{}?api-version=2021-04-01", crate::common::SUBSCRIPTION);
    // {"oid":"a"} and {"oid":"b"}: the tokens are not verified, but their claims name the caller.
    let ask = async |token: &str| {
        let header = format!("Bearer x.{token}.y");
        client.send("GET", &path, None, &[("authorization", &header)]).await.status
    };
    let (a, b) = ("eyJvaWQiOiJhIn0", "eyJvaWQiOiJiIn0");
    assert_eq!(
        [ask(a).await, ask(a).await, ask(a).await, ask(b).await, ask(b).await],
        [200, 200, 429, 200, 429]
    );
    let tenant = client.send("GET", "/subscriptions?api-version=2021-04-01", None, &[]).await.expect(200);
    assert_eq!(tenant.header("x-ms-ratelimit-remaining-tenant-reads"), Some("1"));
    assert_eq!(tenant.header("x-ms-ratelimit-remaining-subscription-reads"), None);
    let spent: Vec<_> = client
        .azure
        .budgets()
        .into_iter()
        .filter(|b| !b.subscription.is_empty())
        .map(|b| (b.scope, b.tokens as u64, b.refused))
        .collect();
    let of = |name: &str| BudgetScope::Principal(name.into());
    assert_eq!(spent, [(BudgetScope::Subscription, 0, 1), (of("a"), 0, 1), (of("b"), 1, 0)]);
}

#[tokio::test(start_paused = true)]
async fn figures_change_while_it_runs_and_can_be_turned_off() {
    let client = Client::with_group(policies(&[(PUT_SET, None)])).await;
    let subnet = client.network("10.1.0.0/16").await;
    let set = compute_id("virtualMachineScaleSets/one");
    for _ in 0..40 {
        assert!(client.put(&set, scale_set(0, &subnet, &[])).await.status < 300);
    }
    let change = async |body: Value| {
        client.send("PUT", "/_cerulean/budgets", Some(body), &[("content-type", "application/json")]).await
    };
    change(json!({ "policies": { PUT_SET: { "size": 1, "refill": 1 } } })).await.expect(204);
    client.put(&set, scale_set(0, &subnet, &[])).await.expect(200);
    client.put(&set, scale_set(0, &subnet, &[])).await.refused(429, "OperationNotAllowed");
    let listed = client.send("GET", "/_cerulean/budgets", None, &[]).await.expect(200).body;
    let bucket = listed.as_array().unwrap().iter().find(|bucket| bucket["policy"] == PUT_SET).unwrap();
    assert_eq!((&bucket["size"], &bucket["refused"]), (&json!(1.0), &json!(1)));
    assert_eq!(bucket["scope"], json!({ "kind": "resource", "id": set.as_str().to_lowercase() }));
    change(json!({ "policies": { "Microsoft.Compute/NoSuchPolicy": null } })).await.expect(400);
    change(Value::Null).await.expect(204);
    for _ in 0..40 {
        client.put(&set, scale_set(0, &subnet, &[])).await.expect(200);
    }
}

//! Declared faults.

use std::time::Duration;

use kube::api::{ListParams, PostParams};
use kubernetes_simulator::{Effect, Fault};
use serde_json::json;
use tokio::time::Instant;

use crate::*;

#[tokio::test(start_paused = true)]
async fn a_fault_meets_the_requests_it_names_and_no_more() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    kubernetes.inject(Fault::status(503).verb("create").resource("configmaps").times(2));
    let object = typed(config_map("a", json!({})));
    assert!(api.list(&ListParams::default()).await.is_ok());
    for _ in 0..2 {
        assert_eq!(status(api.create(&PostParams::default(), &object).await).code, 503);
    }
    api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(kubernetes.requests("create", "configmaps"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_the_write_done() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    kubernetes.inject(Fault::new(Effect::LoseAnswer).verb("create"));
    assert_eq!(
        status(api.create(&PostParams::default(), &typed(config_map("a", json!({})))).await).code,
        504
    );
    assert!(api.get_opt("a").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn delays_and_retry_after_are_heard() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    kubernetes.inject(Fault::new(Effect::Delay(Duration::from_secs(7))).verb("list"));
    let start = Instant::now();
    api.list(&ListParams::default()).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(7));
    let effect = Effect::Refuse {
        code: 429,
        reason: "TooManyRequests".to_owned(),
        message: "slow down".to_owned(),
        retry_after: Some(3),
    };
    kubernetes.inject(Fault::new(effect).name("a"));
    let refused = status(api.get("a").await);
    assert_eq!((refused.code, refused.details.unwrap().retry_after_seconds), (429, 3));
}

#[tokio::test(start_paused = true)]
async fn one_seed_makes_one_history() {
    let history = async |seed: u64| {
        let options = kubernetes_simulator::Options { seed, ..Default::default() };
        let kubernetes = kubernetes_simulator::Kubernetes::new(options);
        for name in ["a", "b"] {
            kubernetes.create(service(name)).unwrap();
        }
        kubernetes
            .create(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "c-" } }))
            .unwrap();
        let all = [kubernetes.list("svc"), kubernetes.list("cm")].concat();
        all.iter().map(|object| object.value().clone()).collect::<Vec<_>>()
    };
    assert_eq!(history(7).await, history(7).await);
    assert_ne!(history(7).await, history(8).await);
}

//! Retries, throttling and the order of waiting calls, on paused time.

use std::sync::Arc;
use std::time::Duration;

use crate::scripted_azure::{azure, balancer, builder, error, reply, scale_set, scripted_client, seconds};
use arm::{ApiVersion, CallRecord, Class, OperationGroup, Purpose};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;

const V: ApiVersion = ApiVersion::NETWORK;

#[tokio::test(start_paused = true)]
async fn answers_are_final_and_never_repeated() {
    for (status, code) in [
        (400, "InvalidRequestFormat"),
        (401, "ExpiredAuthenticationToken"),
        (403, "AuthorizationFailed"),
        (404, "ResourceNotFound"),
        (409, "AnotherOperationInProgress"),
        (412, "PreconditionFailed"),
    ] {
        let (client, journal) = scripted_client(move |_, _| error(status, code).with("Retry-After", 5));
        let started = Instant::now();
        let error = client
            .put::<_, Value>(&balancer("lb"), V, &json!({}), Some("e"), Class::Create)
            .await
            .unwrap_err();
        assert_eq!((error.status(), error.code()), (Some(status), code));
        assert_eq!(error.retry_after(), Some(Duration::from_secs(5)), "for the caller to plan with");
        assert_eq!((journal.lock().len(), started.elapsed()), (1, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn passing_failures_are_repeated_three_times_with_growing_pauses() {
    for status in [408, 500, 502, 503, 504, 0] {
        let (client, journal) = scripted_client(move |_, _| error(status, "ServiceUnavailable"));
        let error = client.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        let at: Vec<f64> = journal.lock().iter().map(|request| request.at.as_secs_f64()).collect();
        assert_eq!(at.len(), 4, "{status}");
        for (pair, base) in at.windows(2).zip([5.0, 15.0, 35.0]) {
            let pause = pair[1] - pair[0];
            assert!(pause >= base * 0.8 && pause <= base * 1.3 + 0.01, "{status}: {at:?}");
        }
    }
    let (client, _) = scripted_client(|_, _| error(0, ""));
    let error = client.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap_err();
    assert!(error.to_string().starts_with("GET loadBalancers/lb: no answer from Azure: "), "{error}");
    assert!(error.to_string().contains("connection reset"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_preferred_and_too_much_of_it_ends_the_call() {
    let (client, journal) = scripted_client(|n, _| match n {
        0..=2 => error(503, "ServiceUnavailable").with("Retry-After", 30),
        _ => reply(200, json!({"ok": true})),
    });
    let started = Instant::now();
    client.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap();
    assert_eq!((journal.lock().len(), started.elapsed()), (4, Duration::from_secs(90)));

    let (client, journal) = scripted_client(|_, _| error(503, "ServiceUnavailable").with("Retry-After", 61));
    let error = client.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(61)));
    assert_eq!(journal.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_never_answered_ends_after_a_minute() {
    let router = axum::Router::new().fallback(|| async {
        std::future::pending::<()>().await;
    });
    let client = builder(arm::Transport::in_process(router)).build();
    let started = Instant::now();
    let error = client.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap_err();
    assert!(error.to_string().contains("no answer within 60 s"), "{error}");
    assert!(started.elapsed() >= Duration::from_secs(4 * 60));
}

/// NODE-146, better: a 429 closes the group for all; calls that arrive meanwhile wait and are sent when it opens. A
/// write in the meantime proceeds, because reads and writes are counted separately.
#[tokio::test(start_paused = true)]
async fn node_146_a_throttled_group_waits_and_the_other_goes_on() {
    let (client, journal) = scripted_client(|n, request| match (n, request.method.as_str()) {
        (0, _) => error(429, "SubscriptionRequestsThrottled").with("Retry-After", 10),
        _ => reply(200, json!({"ok": true})),
    });
    let first = {
        let client = client.clone();
        tokio::spawn(async move { client.get::<Value>(&balancer("a"), V, Class::Refresh).await })
    };
    tokio::task::yield_now().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    client.put::<_, Value>(&balancer("b"), V, &json!({}), None, Class::Create).await.unwrap();
    let started = Instant::now();
    client.get::<Value>(&scale_set("c"), ApiVersion::COMPUTE, Class::Repair).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(8), "every read waits: {:?}", started.elapsed());
    first.await.unwrap().unwrap();
    let journal = journal.lock();
    let trace: Vec<(u64, &str)> =
        journal.iter().map(|request| (request.at.as_secs(), request.method.as_str())).collect();
    assert_eq!(trace, [(0, "GET"), (2, "PUT"), (10, "GET"), (10, "GET")]);
    assert!(journal[2].uri.contains("virtualMachineScaleSets/c"), "the repair goes before the refresh");
}

/// NODE-147: without a header nothing closes; only the caller pauses.
#[tokio::test(start_paused = true)]
async fn node_147_a_429_without_retry_after_closes_nothing() {
    let (client, journal) = scripted_client(|n, _| match n {
        0 => error(429, "SubscriptionRequestsThrottled"),
        _ => reply(200, json!({})),
    });
    let first = {
        let client = client.clone();
        tokio::spawn(async move { client.get::<Value>(&balancer("a"), V, Class::Refresh).await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.get::<Value>(&balancer("b"), V, Class::Refresh).await.unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(seconds(&journal)[..2], [0, 1]);
    assert!(seconds(&journal)[2] >= 4);
}

#[tokio::test(start_paused = true)]
async fn callers_queued_behind_a_429_are_sent_in_class_order() {
    let (client, journal) = scripted_client(|n, _| match n {
        0 => error(429, "SubscriptionRequestsThrottled").with("Retry-After", 30),
        _ => reply(200, json!({})),
    });
    let mut tasks = Vec::new();
    for (name, class) in [
        ("0-closes", Class::Refresh),
        ("refresh", Class::Refresh),
        ("create", Class::Create),
        ("repair", Class::Repair),
        ("delete", Class::Delete),
    ] {
        let client = client.clone();
        tasks.push(tokio::spawn(async move {
            client.put::<_, Value>(&balancer(name), V, &json!({}), None, class).await.unwrap();
        }));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    let journal = journal.lock();
    let order: Vec<&str> = journal[1..]
        .iter()
        .map(|request| request.uri.split('?').next().unwrap().rsplit('/').next().unwrap())
        .collect();
    assert_eq!(order[..3], ["repair", "delete", "create"]);
    assert!(journal[1..].iter().all(|request| request.at.as_secs() == 30), "{journal:?}");
}

#[tokio::test(start_paused = true)]
async fn computes_throttling_leaves_the_network_alone() {
    let (client, journal) = scripted_client(|_, request| {
        if request.uri.contains("Microsoft.Compute") && request.at < Duration::from_secs(20) {
            reply(
                429,
                json!({"error": {"code": "OperationNotAllowed", "message": "m",
                    "details": [{"code": "TooManyRequests", "message": "{}"}]}}),
            )
            .with("Retry-After", 20)
        } else {
            reply(200, json!({}))
        }
    });
    let compute = {
        let client = client.clone();
        tokio::spawn(
            async move { client.get::<Value>(&scale_set("s"), ApiVersion::COMPUTE, Class::Repair).await },
        )
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap();
    compute.await.unwrap().unwrap();
    assert_eq!(seconds(&journal), [0, 1, 20]);
}

/// Network answers 429 for a busy resource. That is not throttling: nothing closes, nothing is retried, the caller gets
/// the error.
#[tokio::test(start_paused = true)]
async fn a_busy_resource_is_a_conflict_and_not_throttling() {
    let (client, journal) = scripted_client(|n, _| match n {
        0 => reply(
            429,
            json!({"error": {"code": "RetryableError", "message": "A retryable error occurred.",
                "details": [{"code": "ReferencedResourceNotProvisioned", "message": "ip1 is Updating"}]}}),
        )
        .with("Retry-After", 10),
        _ => reply(200, json!({})),
    });
    let error =
        client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap_err();
    assert!(error.is_conflict_in_progress() && !error.is_throttled(), "{error}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(10)));
    let started = Instant::now();
    client.put::<_, Value>(&balancer("other"), V, &json!({}), None, Class::Create).await.unwrap();
    assert_eq!((journal.lock().len(), started.elapsed()), (2, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_closure_of_many_minutes_is_told_at_once_and_nothing_more_is_sent() {
    let (client, journal) =
        scripted_client(|_, _| error(429, "SubscriptionRequestsThrottled").with("Retry-After", 900));
    let first = client.get::<Value>(&balancer("a"), V, Class::Repair).await.unwrap_err();
    let second = client.get::<Value>(&balancer("b"), V, Class::Repair).await.unwrap_err();
    for error in [&first, &second] {
        assert!(error.is_throttled(), "{error}");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(900)));
    }
    assert_eq!(
        second.to_string(),
        "GET loadBalancers/b: Azure's request budget is used up; nothing was sent"
    );
    assert_eq!(journal.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn budgets_learn_from_headers_and_keep_the_last_tokens_for_repairs() {
    let (client, journal) = scripted_client(|n, _| {
        reply(200, json!({})).with("x-ms-ratelimit-remaining-subscription-writes", 8 - n.min(8))
    });
    let put = |name: &'static str, class| {
        let client = client.clone();
        async move { client.put::<_, Value>(&balancer(name), V, &json!({}), None, class).await.unwrap() }
    };
    let started = Instant::now();
    put("first", Class::Create).await;
    assert_eq!(client.budgets().remaining("SUB", OperationGroup::Writes), Some(8));
    put("repair", Class::Repair).await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    put("create", Class::Create).await; // 7 left, 10 needed, 10 a second
    let waited = started.elapsed().as_secs_f64();
    assert!((0.3..0.4).contains(&waited), "{waited}");
    assert_eq!(journal.lock().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_reported_and_no_report_holds_a_token() {
    let (transport, _) = azure(|n, _| match n {
        0 => error(503, "ServiceUnavailable").with("Retry-After", 2),
        1 => reply(201, json!({"properties": {"provisioningState": "Updating"}}))
            .with("Azure-AsyncOperation", crate::scripted_azure::operation_url("1")),
        2 => reply(200, json!({"status": "Succeeded"})),
        _ => reply(200, json!({})),
    });
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&calls);
    let observer = move |call: &CallRecord<'_>| {
        assert!(!format!("{call:?}").contains("token-of-the-test"));
        assert_eq!((call.subscription, call.resource_group), ("sub", Some("group")));
        seen.lock().push(format!(
            "{} {} {} {:?} {:?} #{} {}",
            call.method,
            call.resource_type,
            call.resource_name,
            call.purpose,
            call.status,
            call.attempt,
            call.reason.unwrap_or("-")
        ));
    };
    let client = builder(transport).observer(Arc::new(observer)).build();
    client.put_and_wait::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap();
    assert_eq!(
        *calls.lock(),
        [
            "PUT Microsoft.Network/loadBalancers lb Write Some(503) #1 ServiceUnavailable",
            "PUT Microsoft.Network/loadBalancers lb Write Some(201) #2 -",
            "GET Microsoft.Network/loadBalancers lb Poll Some(200) #1 -",
            "GET Microsoft.Network/loadBalancers lb FinalRead Some(200) #1 -",
        ]
    );
    assert_eq!(Purpose::FinalRead.as_str(), "final read");
}

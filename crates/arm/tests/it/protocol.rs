//! The rules of Azure Resource Manager's protocol, one by one, on paused time.

use std::time::Duration;

use crate::scripted_azure::{
    RecordedRequest, asked, azure, balancer, builder, error, group, operation_url, reply, scripted_client,
    seconds,
};
use arm::{ApiVersion, Class, Error, Listing, Operation, OperationStyle};
use serde_json::{Value, json};

const V: ApiVersion = ApiVersion::NETWORK;

fn document(state: &str) -> Value {
    json!({"name": "lb", "properties": {"provisioningState": state, "kept": 1}})
}

#[tokio::test(start_paused = true)]
async fn only_azures_own_word_makes_a_resource_absent() {
    for (status, body, absent) in [
        (404, json!({"error": {"code": "ResourceNotFound", "message": "m"}}), true),
        (404, json!({"error": {"code": "ResourceGroupNotFound", "message": "m"}}), true),
        (404, json!({"error": {"code": "NotFound", "message": "m", "details": []}}), true),
        (404, json!({"error": {"code": "ParentResourceNotFound", "message": "m"}}), true),
        (404, json!({"error": {"code": "SubscriptionNotFound", "message": "m"}}), false),
        (404, json!({"error": {"code": "InvalidResourceType", "message": "m"}}), false),
        (404, json!("<html>nginx</html>"), false),
        (404, Value::Null, false),
        (403, json!({"error": {"code": "AuthorizationFailed", "message": "m"}}), false),
        (200, json!("no json"), false),
        (200, Value::Null, false),
    ] {
        let shown = body.clone();
        let (client, journal) = scripted_client(move |_, _| reply(status, body.clone()));
        let found = client.get_optional::<Value>(&balancer("lb"), V, Class::Refresh).await;
        assert_eq!(matches!(found, Ok(None)), absent, "{status} {shown}: {found:?}");
        assert_eq!(found.is_err(), !absent, "{status} {shown}");
        assert_eq!(journal.lock().len(), 1, "an answer is not asked for twice");
    }
    let (client, _) = scripted_client(|_, _| reply(200, document("Succeeded")));
    let found = client.get_optional::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap();
    assert_eq!(found, Some(document("Succeeded")));
}

/// CAPZ-200: headers of users are part of writes alone, and replace no header of the protocol.
#[tokio::test(start_paused = true)]
async fn writes_carry_additional_headers() {
    let (client, journal) = scripted_client(|_, _| reply(200, document("Succeeded")));
    let mut headers = http::HeaderMap::new();
    headers.insert("usegpudedicatedvhd", http::HeaderValue::from_static("true"));
    headers.insert("authorization", http::HeaderValue::from_static("Bearer other"));
    let with_headers = client.with_headers(headers);
    with_headers.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap();
    let body = json!({"a": 1});
    with_headers.put::<_, Value>(&balancer("lb"), V, &body, None, Class::Create).await.unwrap();
    client.put::<_, Value>(&balancer("lb"), V, &body, None, Class::Create).await.unwrap();
    let carried = |at: usize| journal.lock()[at].headers.contains_key("usegpudedicatedvhd");
    assert_eq!([carried(0), carried(1), carried(2)], [false, true, false]);
    assert_eq!(journal.lock()[1].headers["authorization"], "Bearer token-of-the-test");
}

#[tokio::test(start_paused = true)]
async fn requests_carry_what_azure_expects_and_nothing_more() {
    let (client, journal) = scripted_client(|_, _| reply(200, document("Succeeded")));
    client.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap();
    client
        .put::<_, Value>(&balancer("lb"), V, &json!({"a": 1}), Some("W/\"e1\""), Class::Create)
        .await
        .unwrap();
    let journal = journal.lock();
    let (get, put) = (&journal[0], &journal[1]);
    assert_eq!(
        get.uri,
        "https://management.azure.com/subscriptions/sub/resourceGroups/group/providers/Microsoft.Network/\
         loadBalancers/lb?api-version=2025-05-01"
    );
    assert_eq!(get.headers["authorization"], "Bearer token-of-the-test");
    assert_eq!(get.headers["accept"], "application/json");
    assert!(
        get.headers["user-agent"].starts_with("kubernetes-cloudprovider/"),
        "{}",
        get.headers["user-agent"]
    );
    assert_eq!(get.headers["host"], "management.azure.com");
    assert!(!get.headers.contains_key("content-type"));
    assert!(!get.headers.contains_key("if-match"));
    assert_eq!(put.headers["content-type"], "application/json");
    assert_eq!(put.headers["if-match"], "W/\"e1\"");
    assert_eq!(put.json(), json!({"a": 1}));
}

/// Calls that belong together bear one ID, whatever they are; others bear none.
#[tokio::test(start_paused = true)]
async fn calls_of_one_piece_of_work_bear_one_id() {
    const HEADER: &str = "x-ms-correlation-request-id";
    let (client, journal) = scripted_client(|_, _| reply(200, document("Succeeded")));
    let read = async |name| client.get::<Value>(&balancer(name), V, Class::Refresh).await.unwrap();
    let work = async |id| {
        let both = async { tokio::join!(read("a"), read("b")) };
        arm::correlated(id, both).await;
    };
    let (one, other) = (uuid::Uuid::from_u128(1), uuid::Uuid::from_u128(2));
    tokio::join!(work(one), work(other));
    read("c").await;
    let journal = journal.lock();
    let with =
        |id: uuid::Uuid| journal.iter().filter(|it| it.headers.get(HEADER) == Some(&id.to_string())).count();
    assert_eq!((journal.len(), with(one), with(other)), (5, 2, 2));
    assert!(!journal[4].headers.contains_key(HEADER));
}

#[tokio::test(start_paused = true)]
async fn lists_follow_next_links_verbatim_over_empty_pages() {
    let second = "https://management.azure.com/subscriptions/sub/x?api-version=1&$skiptoken=a%2Bb%3D+c";
    let (client, journal) = scripted_client(move |n, _| match n {
        0 => reply(200, json!({"value": [1, 2], "nextLink": second})),
        1 => reply(200, json!({"value": [], "nextLink": format!("{second}2")})),
        _ => reply(200, json!({"value": [3], "nextLink": null})),
    });
    let listing = Listing::of(&group(), "Microsoft.Compute", "virtualMachines");
    let query = [("$expand", "instanceView")];
    let all: Vec<u32> = client.list(&listing, ApiVersion::COMPUTE, &query, Class::Refresh).await.unwrap();
    assert_eq!(all, [1, 2, 3]);
    let journal = journal.lock();
    assert!(journal[0].uri.ends_with("/virtualMachines?%24expand=instanceView&api-version=2025-04-01"));
    assert_eq!(journal[1].uri, second);
    assert_eq!(journal[2].uri, format!("{second}2"));
}

#[tokio::test(start_paused = true)]
async fn no_token_follows_a_link_to_another_host() {
    for link in ["https://evil.example/x", "http://management.azure.com/x"] {
        let (client, journal) =
            scripted_client(move |_, _| reply(200, json!({"value": [], "nextLink": link})));
        let listing = Listing::of(&group(), "Microsoft.Network", "loadBalancers");
        let error = client.list::<Value>(&listing, V, &[], Class::Refresh).await.unwrap_err();
        assert!(error.to_string().contains("which is not Azure Resource Manager"), "{error}");
        assert_eq!(journal.lock().len(), 1);
    }
    let (client, journal) = scripted_client(|_, _| {
        reply(201, document("Updating")).with("azure-asyncoperation", "https://evil.example/op")
    });
    let accepted = client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap();
    assert!(client.wait(&accepted.operation.unwrap()).await.is_err());
    assert_eq!(journal.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_in_a_circle_ends_in_an_error() {
    let link = "https://management.azure.com/subscriptions/sub/again?x=1";
    let (client, journal) = scripted_client(move |_, _| reply(200, json!({"value": [1], "nextLink": link})));
    let listing = Listing::of(&group(), "Microsoft.Network", "loadBalancers");
    assert!(client.list::<Value>(&listing, V, &[], Class::Refresh).await.is_err());
    assert_eq!(journal.lock().len(), 2);
}

/// A complete write of a load balancer: accepted, polled with Azure's own pauses, read at the end.
#[tokio::test(start_paused = true)]
async fn a_put_is_polled_by_its_status_url_and_read_at_the_end() {
    let (client, journal) = scripted_client(|n, _| match n {
        0 => reply(201, document("Updating"))
            .with("Azure-AsyncOperation", operation_url("1"))
            .with("Retry-After", 10),
        1 => reply(200, json!({"status": "InProgress"})).with("Retry-After", 7),
        2 | 3 => reply(200, json!({"status": "InProgress"})),
        4 => reply(200, json!({"status": "Succeeded"})),
        _ => reply(200, document("Succeeded")),
    });
    let done: Value =
        client.put_and_wait(&balancer("lb"), V, &document("x"), None, Class::Create).await.unwrap();
    assert_eq!(done, document("Succeeded"));
    assert_eq!(asked(&journal), ["PUT lb", "GET 1", "GET 1", "GET 1", "GET 1", "GET lb"]);
    // 10 and 7 as asked, then the client's own pauses: a tenth of the age.
    assert_eq!(seconds(&journal), [0, 10, 17, 18, 20, 20]);
    assert_eq!(journal.lock()[1].uri, operation_url("1"), "sent back as it was given");
}

#[tokio::test(start_paused = true)]
async fn a_first_answer_that_is_final_is_not_polled() {
    let (client, journal) = scripted_client(|n, _| match n {
        0 => reply(201, document("Succeeded"))
            .with("Azure-AsyncOperation", operation_url("1"))
            .with("Retry-After", 10),
        _ => reply(200, document("Succeeded")),
    });
    client.put_and_wait::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap();
    assert_eq!(asked(&journal), ["PUT lb", "GET lb"]);
    assert_eq!(seconds(&journal), [0, 0]);

    let (client, _) = scripted_client(|_, _| reply(200, document("Failed")));
    let error =
        client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "PUT loadBalancers/lb: Failed: Azure accepted the request and reports provisioning state Failed"
    );
}

#[tokio::test(start_paused = true)]
async fn location_is_polled_while_it_answers_202() {
    for last in [200, 204] {
        let (client, journal) = scripted_client(move |n, _| match n {
            0 => reply(202, Value::Null).with("Location", operation_url("2")).with("Retry-After", 15),
            1 => reply(202, Value::Null).with("Location", operation_url("2")).with("Retry-After", 15),
            _ => reply(last, Value::Null),
        });
        client.delete_and_wait(&balancer("lb"), V, Class::Delete).await.unwrap();
        assert_eq!(asked(&journal), ["DELETE lb", "GET 2", "GET 2"]);
        assert_eq!(seconds(&journal), [0, 15, 30]);
    }
}

#[tokio::test(start_paused = true)]
async fn without_urls_the_resource_itself_is_polled() {
    let (client, journal) = scripted_client(|n, _| match n {
        0 => reply(201, document("Creating")),
        1 => reply(200, document("Updating")),
        _ => reply(200, document("Succeeded")),
    });
    let accepted = client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap();
    assert_eq!(accepted.body.as_ref().unwrap()["properties"]["kept"], 1);
    let operation = accepted.operation.unwrap();
    assert_eq!(operation.style, OperationStyle::Resource);
    client.wait(&operation).await.unwrap();
    assert_eq!(asked(&journal), ["PUT lb", "GET lb", "GET lb"]);
    let journal = journal.lock();
    assert_eq!(journal[0].uri, journal[1].uri);
}

#[tokio::test(start_paused = true)]
async fn synchronous_writes_and_deletes_have_no_operation() {
    let (client, journal) = scripted_client(|n, _| match n {
        0 => reply(200, json!({"name": "nic"})),
        1 => reply(204, Value::Null),
        _ => error(404, "ResourceNotFound"),
    });
    let written = client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap();
    assert!(written.operation.is_none());
    for _ in 0..2 {
        let deleted = client.delete(&balancer("lb"), V, None, Class::Delete).await.unwrap();
        assert!(deleted.operation.is_none(), "absent counts as deleted");
    }
    assert_eq!(journal.lock().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_accepted_delete_without_a_place_to_look_is_an_error() {
    let (client, _) = scripted_client(|_, _| reply(202, Value::Null));
    let error = client.delete(&balancer("lb"), V, None, Class::Delete).await.unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn actions_are_posted_and_answer_with_their_document() {
    let (client, journal) = scripted_client(|_, _| reply(200, json!({"migratedPools": ["a"]})));
    let body = json!({"pools": ["a"]});
    let answer = client
        .post::<_, Value>(&balancer("lb"), "migrateToIpBased", V, Some(&body), Class::Create)
        .await
        .unwrap();
    assert_eq!(answer.body.unwrap()["migratedPools"][0], "a");
    assert_eq!(asked(&journal), ["POST migrateToIpBased"]);
    assert_eq!(journal.lock()[0].json(), body);
}

#[tokio::test(start_paused = true)]
async fn a_failed_operation_speaks_in_azures_words() {
    let (client, _) = scripted_client(|n, _| match n {
        0 => reply(201, document("Updating")).with("Azure-AsyncOperation", operation_url("1")),
        _ => reply(
            200,
            json!({"status": "Failed", "error": {"code": "PrivateIPAddressInUse", "message": "10.0.0.4 is taken.", "details": []}}),
        ),
    });
    let error = client
        .put_and_wait::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "PUT loadBalancers/lb: PrivateIPAddressInUse: 10.0.0.4 is taken.");
    assert!(error.is_refusal());
    assert_eq!(error.service().unwrap().resource.as_ref(), Some(&balancer("LB")));

    let (client, _) = scripted_client(|n, _| match n {
        0 => reply(201, document("Updating")).with("Azure-AsyncOperation", operation_url("1")),
        _ => reply(
            200,
            json!({"status": "Canceled", "error": {"code": "Canceled", "message": "Operation was canceled.",
                "details": [{"code": "CanceledAndSupersededDueToAnotherOperation", "message": "by another"}]}}),
        ),
    });
    let error = client
        .put_and_wait::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create)
        .await
        .unwrap_err();
    assert!(error.is_superseded() && !error.is_refusal(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_operation_goes_on_in_another_process() {
    let (client, _) = scripted_client(|_, _| {
        reply(201, document("Updating"))
            .with("Azure-AsyncOperation", operation_url("1"))
            .with("Retry-After", 40)
    });
    let accepted = client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Repair).await.unwrap();
    let stored = serde_json::to_string(&accepted.operation.unwrap()).unwrap();
    drop(client);
    tokio::time::sleep(Duration::from_secs(30)).await;

    let operation: Operation = serde_json::from_str(&stored).unwrap();
    let (transport, journal) =
        azure(|n, _| reply(200, json!({"status": if n == 0 { "InProgress" } else { "Succeeded" }})));
    // The new process's clock is 30 s later, as the wall clock would be.
    let clock = arm::Clock::following_tokio(Duration::from_secs(crate::scripted_azure::START + 30));
    builder(transport).clock(clock).build().wait(&operation).await.unwrap();
    assert_eq!(asked(&journal), ["GET 1", "GET 1"]);
    assert_eq!(seconds(&journal)[0], 10, "30 of the 40 seconds had passed");
}

/// A wait longer than the operation's deadline ends it at once, however long: no time is computed from an excessive
/// figure.
#[tokio::test(start_paused = true)]
async fn the_largest_wait_that_azure_can_ask_for_is_taken() {
    let (client, journal) = scripted_client(|n, _| {
        let answer = match n {
            0 => reply(201, document("Updating")).with("Azure-AsyncOperation", operation_url("1")),
            1 => reply(201, document("Updating")).with("Azure-AsyncOperation", operation_url("1")),
            2 => reply(200, json!({"status": "InProgress"})),
            _ => return error(429, "SubscriptionRequestsThrottled").with("Retry-After", u64::MAX),
        };
        if n == 1 { answer } else { answer.with("Retry-After", u64::MAX) }
    });
    let put =
        async || client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap();
    for polls in [0, 1] {
        let operation = put().await.operation.unwrap();
        let error = client.wait(&operation).await.unwrap_err();
        assert!(matches!(error, Error::OperationDeadline { .. }), "{error}");
        assert_eq!(journal.lock().iter().filter(|request| request.method == "GET").count(), polls);
    }
    let error = client.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(24 * 3600)));
    let stored = Operation { first_look: Some(u64::MAX), ..put_operation() };
    assert!(matches!(client.wait(&stored).await.unwrap_err(), Error::OperationDeadline { .. }));
}

fn put_operation() -> Operation {
    Operation {
        url: operation_url("1"),
        style: OperationStyle::Status,
        resource: balancer("lb"),
        method: "PUT".into(),
        started: crate::scripted_azure::START * 1000,
        first_look: None,
        class: Class::Create,
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_is_given_up_after_its_deadline_counted_from_its_start() {
    let (client, journal) =
        scripted_client(|_, _| reply(200, json!({"status": "InProgress"})).with("Retry-After", 60));
    let operation = Operation { started: (crate::scripted_azure::START - 20 * 60) * 1000, ..put_operation() };
    let started = tokio::time::Instant::now();
    let error = client.wait(&operation).await.unwrap_err();
    assert!(matches!(error, Error::OperationDeadline { .. }), "{error}");
    assert_eq!(error.to_string(), "PUT loadBalancers/lb: operation still running after 30 min");
    assert!(error.is_transient() && !error.is_not_found());
    assert_eq!(started.elapsed(), Duration::from_secs(600));
    assert_eq!(journal.lock().len(), 11, "at once, and then every minute as Azure asks");
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_is_refused_says_nothing_about_the_resource() {
    for (status, code) in [(404, "ResourceNotFound"), (400, "BadRequest"), (410, "Gone"), (409, "Conflict")] {
        let (client, _) = scripted_client(move |n, _| match n {
            0 => reply(202, Value::Null).with("Location", operation_url("1")),
            _ => error(status, code),
        });
        let error = client.delete_and_wait(&balancer("lb"), V, Class::Delete).await.unwrap_err();
        assert_eq!(error.to_string(), "DELETE loadBalancers/lb: Azure no longer knows the operation");
        assert!(error.is_transient() && !error.is_not_found() && !error.is_refusal());
    }
    let (client, _) = scripted_client(|n, _| match n {
        0 => reply(202, Value::Null).with("Location", operation_url("1")),
        _ => error(403, "AuthorizationFailed"),
    });
    let error = client.delete_and_wait(&balancer("lb"), V, Class::Delete).await.unwrap_err();
    assert!(error.is_authentication());
    assert!(
        error.to_string().starts_with("GET loadBalancers/lb (operation): 403 AuthorizationFailed: "),
        "{error}"
    );
}

/// An Azure with this latency of operations, and without `Retry-After`.
fn azure_that_takes(latency: Duration) -> impl Fn(usize, &RecordedRequest) -> crate::scripted_azure::Reply {
    let begun = parking_lot::Mutex::new(Duration::ZERO);
    move |_, request| {
        if request.method == "PUT" {
            *begun.lock() = request.at;
            return reply(201, document("Updating")).with("Azure-AsyncOperation", operation_url("1"));
        }
        let done = request.at >= *begun.lock() + latency;
        reply(200, json!({"status": if done { "Succeeded" } else { "InProgress" }}))
    }
}

/// The third operation of a kind, and all that follow, are polled when they are done.
#[tokio::test(start_paused = true)]
async fn what_operations_of_a_kind_take_is_learned() {
    for (latency, asked_of_the_first) in [(0, 1), (20, 33), (90, 51)] {
        let latency = Duration::from_secs(latency);
        let (client, journal) = scripted_client(azure_that_takes(latency));
        for number in 1..=12 {
            let begin = tokio::time::Instant::now();
            let before = journal.lock().len();
            let written =
                client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap();
            client.wait(&written.operation.unwrap()).await.unwrap();
            let (took, asked) = (begin.elapsed(), journal.lock().len() - before - 1);
            match number {
                1 => assert_eq!(asked, asked_of_the_first, "{latency:?}"),
                2 => {}
                _ => {
                    // One poll for each five seconds, and one or two when it should be done.
                    let most = 2 + latency.as_secs().div_ceil(5) as usize;
                    assert!(asked <= most, "{latency:?}: asked {asked} times in operation {number}");
                    assert!(took >= latency && took <= latency.mul_f64(1.05), "{latency:?} took {took:?}");
                }
            }
        }
    }
}

/// Learned durations never override Azure: it is not polled before its `Retry-After`.
#[tokio::test(start_paused = true)]
async fn azures_own_pause_goes_before_what_was_learned() {
    let scripted = azure_that_takes(Duration::from_secs(3));
    let (client, journal) = scripted_client(move |n, request| {
        let is_third = n >= 10 && request.method == "PUT";
        let answer = scripted(n, request);
        if is_third { answer.with("Retry-After", 10) } else { answer }
    });
    let put = async || {
        let written = client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await;
        client.wait(&written.unwrap().operation.unwrap()).await.unwrap();
    };
    put().await;
    while journal.lock().len() < 10 {
        put().await;
    }
    let before = tokio::time::Instant::now();
    put().await;
    assert_eq!(before.elapsed(), Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn polls_that_fail_in_passing_do_not_fail_the_operation() {
    let (client, journal) = scripted_client(|n, _| match n {
        0 => reply(201, document("Updating")).with("Azure-AsyncOperation", operation_url("1")),
        // More failures than the retry policy covers.
        1..=9 => error(503, "ServiceUnavailable"),
        10 => reply(200, json!({"status": "Succeeded"})),
        _ => reply(200, document("Succeeded")),
    });
    client.put_and_wait::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap();
    assert_eq!(journal.lock().len(), 12);
}

/// NODE-148: a `Retry-After` of a success below five seconds is ignored if the configuration says so. That of a failure
/// counts, and an error that is an answer is neither retried nor does it close anything.
#[tokio::test(start_paused = true)]
async fn node_148_minimum_retry_after() {
    for status in [400, 404] {
        let (transport, journal) = azure(move |_, _| error(status, "Code").with("Retry-After", 3));
        let client = builder(transport).minimum_retry_after(true).build();
        for _ in 0..2 {
            client.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap_err();
        }
        assert_eq!(seconds(&journal), [0, 0], "{status}");
    }
    let (transport, journal) = azure(|n, _| match n {
        0 => error(500, "InternalServerError").with("Retry-After", 3),
        _ => reply(200, document("Succeeded")),
    });
    let client = builder(transport).minimum_retry_after(true).build();
    client.get::<Value>(&balancer("lb"), V, Class::Refresh).await.unwrap();
    assert_eq!(seconds(&journal), [0, 3]);
    for (on, asked_for, expected) in [(false, 3, 3), (true, 1, 0), (true, 3, 0), (true, 5, 5), (true, 12, 12)]
    {
        let (transport, journal) = azure(move |n, _| match n {
            0 => reply(202, Value::Null).with("Location", operation_url("1")).with("Retry-After", asked_for),
            _ => reply(204, Value::Null),
        });
        let client = builder(transport).minimum_retry_after(on).build();
        client.delete_and_wait(&balancer("lb"), V, Class::Delete).await.unwrap();
        assert_eq!(seconds(&journal), [0, expected], "{on} {asked_for}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unregistered_provider_is_registered_once_and_the_call_repeated() {
    let (client, journal) = scripted_client(|n, _| match n {
        0 => error(409, "MissingSubscriptionRegistration"),
        1 => reply(200, json!({"registrationState": "Registering"})),
        2 => reply(200, json!({"registrationState": "Registering"})),
        3 => reply(200, json!({"registrationState": "Registered"})),
        _ => reply(201, document("Succeeded")),
    });
    client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap();
    assert_eq!(
        asked(&journal),
        ["PUT lb", "POST register", "GET Microsoft.Network", "GET Microsoft.Network", "PUT lb"]
    );
    assert_eq!(seconds(&journal), [0, 0, 0, 15, 15]);
    assert!(
        journal.lock()[1]
            .uri
            .ends_with("/subscriptions/sub/providers/Microsoft.Network/register?api-version=2019-05-01")
    );

    let (client, journal) = scripted_client(|n, _| match n {
        1 | 2 => reply(200, json!({"registrationState": "Registered"})),
        _ => error(409, "MissingSubscriptionRegistration"),
    });
    let error =
        client.put::<_, Value>(&balancer("lb"), V, &json!({}), None, Class::Create).await.unwrap_err();
    assert_eq!(error.code(), "MissingSubscriptionRegistration");
    assert_eq!(journal.lock().len(), 4, "no second registration");
}

#[tokio::test(start_paused = true)]
async fn a_resource_provider_is_read_as_the_subscription_knows_it() {
    let (client, journal) =
        scripted_client(|_, _| reply(200, json!({"namespace": "Microsoft.Compute", "resourceTypes": []})));
    let provider: Value = client.resource_provider("sub", "Microsoft.Compute", Class::Refresh).await.unwrap();
    assert_eq!(provider["namespace"], "Microsoft.Compute");
    assert_eq!(
        journal.lock()[0].uri,
        "https://management.azure.com/subscriptions/sub/providers/Microsoft.Compute?api-version=2021-04-01"
    );
}

#[tokio::test(start_paused = true)]
async fn documents_that_do_not_parse_name_the_member_and_hide_the_rest() {
    #[derive(Debug, serde::Deserialize)]
    struct Typed {
        #[allow(dead_code)]
        count: u32,
    }
    let (client, _) = scripted_client(|_, _| reply(200, json!({"count": -1, "other": "x"})));
    let error = client.get::<Typed>(&balancer("lb"), V, Class::Refresh).await.unwrap_err();
    assert!(
        error.to_string().starts_with("loadBalancers/lb: answer not understood: the document does not parse"),
        "{error}"
    );
    assert!(!error.is_not_found() && !error.is_refusal());
}

//! What is the same for every resource: envelope, versions, etags, operations, guards, budgets,

//! faults, journal.

use std::time::Duration;

use crate::common::{
    Client, GROUP, NETWORK_VERSION, SUBSCRIPTION, group_path, load_balancer, network_id, public_ip, scale_set,
};
use azure_simulator::entra::{AuthFailure, Principal, TokenVerifier};
use azure_simulator::{Fault, FaultAction, LatencyProfile, Options, RequestKind};
use azure_types::ResourceId;
use serde_json::json;

fn slow(kind: &str, seconds: u64) -> Options {
    let latency = LatencyProfile::instant().with("*", kind, Duration::from_secs(seconds));
    Options { latency, ..Options::default() }
}

#[tokio::test(start_paused = true)]
async fn api_versions_are_required_and_well_formed() {
    let client = Client::with_group(Options::default()).await;
    let group = group_path();
    let list = format!("{group}/providers/Microsoft.Network/loadBalancers");
    client.send("GET", &list, None, &[]).await.refused(400, "MissingApiVersionParameter");
    client
        .send("GET", &format!("{list}?api-version=soon"), None, &[])
        .await
        .refused(400, "NoRegisteredProviderFound");
    client
        .send("GET", &format!("{group}?api-version=1"), None, &[])
        .await
        .refused(400, "InvalidApiVersionParameter");
    client.send("GET", &format!("{list}?api-version=2026-05-01"), None, &[]).await.expect(200);
    let strict = Client::with_group(Options { strict_api_versions: true, ..Options::default() }).await;
    let reply = strict.send("GET", &format!("{list}?api-version=2026-05-01"), None, &[]).await;
    assert!(reply.refused(400, "NoRegisteredProviderFound").message().contains("2025-05-01"));
}

#[tokio::test(start_paused = true)]
async fn unknown_things_get_azures_own_refusals() {
    let client = Client::with_group(Options::default()).await;
    let get = |path: String| {
        let client = &client;
        async move { client.send("GET", &format!("{path}?api-version=2025-05-01"), None, &[]).await }
    };
    let group = group_path();
    get(format!("{group}/providers/Microsoft.Nothing/things/x"))
        .await
        .refused(404, "InvalidResourceNamespace");
    get(format!("{group}/providers/Microsoft.Network/things/x")).await.refused(404, "InvalidResourceType");
    get(format!("{group}x/providers/Microsoft.Network/loadBalancers"))
        .await
        .refused(404, "ResourceGroupNotFound");
    get(format!("{group}/providers/Microsoft.Network/loadBalancers/x"))
        .await
        .refused(404, "ResourceNotFound");
    get(format!("{group}/providers/Microsoft.Network/virtualNetworks/x/subnets/y"))
        .await
        .refused(404, "ResourceNotFound");
    get("/subscriptions/12345678-0000-0000-0000-000000000000".into())
        .await
        .refused(404, "SubscriptionNotFound");
    get("/elsewhere".into()).await.refused(404, "InvalidRequestPath");
    let lb = network_id("loadBalancers/x");
    client.delete(&lb).await.expect(204);
    client
        .send("TRACE", &format!("{lb}?api-version=2025-05-01"), None, &[])
        .await
        .refused(405, "MethodNotAllowed");
    client.put(&lb, json!([1])).await.refused(400, "InvalidRequestContent");
    client.put(&lb, json!({ "properties": {} })).await.refused(400, "LocationRequired");
}

#[tokio::test(start_paused = true)]
async fn ids_are_compared_without_case_and_keep_their_spelling() {
    let client = Client::with_group(Options::default()).await;
    client.public_ip("Alpha").await;
    let path = format!(
        "/Subscriptions/{SUBSCRIPTION}/resourcegroups/{}/PROVIDERS/microsoft.network/PublicIpAddresses/ALPHA?api-version=2025-05-01",
        GROUP.to_uppercase()
    );
    let reply = client.send("GET", &path, None, &[]).await.expect(200);
    assert_eq!(reply.body["id"], network_id("publicIPAddresses/Alpha").as_str());
    assert_eq!(reply.body["type"], "Microsoft.Network/publicIPAddresses");
    let head = client.send("HEAD", &path, None, &[]).await.expect(204);
    assert!(head.body.is_null());
}

#[tokio::test(start_paused = true)]
async fn an_authorization_header_is_needed_where_tokens_are_judged() {
    let client = Client::new(Options { require_auth: true, ..Options::default() });
    let path = format!("/subscriptions/{SUBSCRIPTION}?api-version=2021-04-01");
    let reply = client.send("GET", &path, None, &[]).await.refused(401, "AuthenticationFailed");
    assert!(reply.header("www-authenticate").unwrap().starts_with("Bearer authorization_uri="));
    client.send("GET", &path, None, &[("authorization", "Bearer anything")]).await.expect(200);
    client.send("GET", "/metadata/endpoints?api-version=2019-05-01", None, &[]).await.expect(200);
}

/// Takes tokens of the form `good-{object id}`.
struct Doorkeeper;

impl TokenVerifier for Doorkeeper {
    fn verify(&self, bearer: &str, now: jiff::Timestamp) -> Result<Principal, AuthFailure> {
        let object = bearer.strip_prefix("good-").ok_or(AuthFailure::Invalid)?;
        Ok(Principal {
            client_id: "client".into(),
            object_id: object.into(),
            tenant_id: Options::default().tenant,
            audience: "https://management.azure.com".into(),
            expires_at: now,
            not_before: now,
            can_answer_challenges: false,
        })
    }

    fn verify_for(
        &self,
        bearer: &str,
        now: jiff::Timestamp,
        _accepts: &dyn Fn(&str) -> bool,
    ) -> Result<Principal, AuthFailure> {
        self.verify(bearer, now)
    }
}

#[tokio::test(start_paused = true)]
async fn a_verifier_judges_tokens_and_every_principal_has_its_budget() {
    let client = Client::new(Options::default());
    client.azure.set_verifier(std::sync::Arc::new(Doorkeeper));
    let path = format!("/subscriptions/{SUBSCRIPTION}?api-version=2021-04-01");
    client.send("GET", &path, None, &[]).await.refused(401, "AuthenticationFailed");
    let bad = client.send("GET", &path, None, &[("authorization", "Bearer bad")]).await;
    assert!(bad.refused(401, "InvalidAuthenticationToken").header("www-authenticate").is_some());
    for who in ["good-a", "good-a", "good-b"] {
        client.send("GET", &path, None, &[("authorization", &format!("Bearer {who}"))]).await.expect(200);
    }
    let last = client.send("GET", &path, None, &[("authorization", "bearer good-b")]).await;
    assert_eq!(last.header("x-ms-ratelimit-remaining-subscription-reads"), Some("248"));
    assert_eq!(last.header("x-ms-ratelimit-remaining-subscription-global-reads"), Some("3746"));
}

#[tokio::test(start_paused = true)]
async fn foreign_operators_edit_behind_everybodys_back() {
    let client = Client::with_group(Options::default()).await;
    let id = client.public_ip("a").await;
    let before = client.get(&id).await.etag();
    let requests = client.azure.journal().counts.requests;
    client.azure.edit(&id, |document| document["tags"] = json!({ "policy": "was here" })).unwrap();
    assert_eq!(client.azure.journal().counts.requests, requests, "there were no requests over HTTP");
    assert_eq!(client.get(&id).await.body["tags"]["policy"], "was here");
    client.put_if(&id, public_ip(), &before).await.refused(412, "PreconditionFailed");
    assert!(client.azure.edit(&network_id("publicIPAddresses/none"), |_| ()).is_err());
}

#[tokio::test(start_paused = true)]
async fn network_etags_change_with_every_change_and_guard_writes() {
    let client = Client::with_group(Options::default()).await;
    let id = network_id("publicIPAddresses/a");
    let first = client.create(&id, public_ip()).await["etag"].as_str().unwrap().to_owned();
    assert!(first.starts_with("W/\""));
    assert_eq!(client.get(&id).await.header("etag"), Some(first.as_str()));
    // The same again changes nothing.
    assert_eq!(client.put_if(&id, public_ip(), &first).await.expect(200).etag(), first);
    let mut tagged = public_ip();
    tagged["tags"] = json!({ "a": "b" });
    client.put_if(&id, tagged.clone(), &first).await.expect(200);
    let second = client.get(&id).await.etag();
    assert_ne!(first, second);
    let stale = client.put_if(&id, tagged.clone(), &first).await.refused(412, "PreconditionFailed");
    let current = second.trim_start_matches("W/").trim_matches('"');
    assert!(stale.message().contains(current), "{}", stale.message());
    client.put_if(&id, tagged.clone(), "*").await.expect(200);
    let path = format!("{id}?api-version=2025-05-01");
    client
        .send("PUT", &path, Some(tagged.clone()), &[("if-none-match", "*")])
        .await
        .refused(412, "PreconditionFailed");
    client.send("DELETE", &path, None, &[("if-match", &first)]).await.refused(412, "PreconditionFailed");
    let absent = network_id("publicIPAddresses/b");
    client.put_if(&absent, tagged, "*").await.refused(412, "PreconditionFailed");
}

#[tokio::test(start_paused = true)]
async fn what_is_made_anew_is_another_thing() {
    let client = Client::with_group(Options::default()).await;
    let id = network_id("publicIPAddresses/a");
    let first = client.create(&id, public_ip()).await;
    client.delete(&id).await.expect(202);
    let second = client.create(&id, public_ip()).await;
    assert_ne!(first["etag"], second["etag"]);
    assert_ne!(first["properties"]["resourceGuid"], second["properties"]["resourceGuid"]);
    client.put_if(&id, public_ip(), first["etag"].as_str().unwrap()).await.refused(412, "PreconditionFailed");
}

#[tokio::test(start_paused = true)]
async fn resources_lie_in_groups_and_refer_within_their_region() {
    let client = Client::with_group(Options::default()).await;
    let path = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/publicIPAddresses");
    client.public_ip("a").await;
    let list = client.send("GET", &format!("{path}?api-version=2025-05-01"), None, &[]).await.expect(200);
    assert_eq!(list.body["value"].as_array().unwrap().len(), 1);
    let outside = format!("{path}/b?api-version=2025-05-01");
    client.send("PUT", &outside, Some(public_ip()), &[]).await.refused(404, "InvalidRequestPath");
    let lb = network_id("loadBalancers/lb");
    let mut body = load_balancer(&lb, &network_id("publicIPAddresses/a"), &[80]);
    body["location"] = json!("West US");
    client.put(&lb, body.clone()).await.refused(400, "InvalidResourceReference");
    body["location"] = json!("East US");
    client.put(&lb, body.clone()).await.expect(201);
    body["location"] = json!("westus");
    client.put(&lb, body).await.refused(409, "InvalidResourceLocation");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_others_use_stays() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    let lb =
        azure_types::ResourceId::parse(&network_id("loadBalancers/lb").as_str().replace("/rg/", "/other/"))
            .unwrap();
    client.azure.put(&lb, load_balancer(&lb, &pip, &[80])).unwrap();
    let path = format!("{}?api-version=2021-04-01", group_path());
    client.send("DELETE", &path, None, &[]).await.refused(409, "ResourceGroupDeletionBlocked");
    client.azure.delete(&azure_types::ResourceId::group(SUBSCRIPTION, "other")).unwrap();
    client.send("DELETE", &path, None, &[]).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn operations_run_for_their_latency_and_end() {
    let client = Client::with_group(slow("*/publicIPAddresses", 7)).await;
    let id = network_id("publicIPAddresses/a");
    let started = tokio::time::Instant::now();
    let reply = client.put(&id, public_ip()).await.expect(201);
    assert_eq!(reply.header("retry-after"), Some("7"));
    assert_eq!(reply.body["properties"]["provisioningState"], "Updating");
    assert!(
        client.get(&id).await.body["properties"].get("ipAddress").is_none(),
        "addresses come with completion"
    );
    assert_eq!(client.wait(&reply).await["status"], "Succeeded");
    assert_eq!(started.elapsed(), Duration::from_secs(7));
    let shown = client.get(&id).await.body;
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    assert!(shown["properties"]["ipAddress"].is_string());

    let reply = client.delete(&id).await.expect(202);
    let location = reply.header("location").unwrap().to_owned();
    assert!(location.contains("/operationResults/"));
    assert_eq!(client.get(&id).await.body["properties"]["provisioningState"], "Deleting");
    let going = client.put(&id, public_ip()).await.refused(409, "AnotherOperationInProgress");
    let uri = format!(
        "https://management.azure.com/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/locations/eastus/operations/"
    );
    assert!(going.message().contains(&uri), "{}", going.message());
    client.send("GET", &location, None, &[]).await.expect(202);
    client.wait(&reply).await;
    client.send("GET", &location, None, &[]).await.expect(204);
    client.get(&id).await.refused(404, "ResourceNotFound");
    assert_eq!(client.azure.running_operations(), 0);
}

#[tokio::test(start_paused = true)]
async fn subscribers_hear_when_an_operation_ends() {
    let client = Client::with_group(slow("*/publicIPAddresses", 30)).await;
    let id = network_id("publicIPAddresses/a");
    client.put(&id, public_ip()).await.expect(201);
    let mut changes = client.azure.subscribe();
    changes.borrow_and_update();
    changes.changed().await.unwrap();
    assert_eq!(client.azure.document(&id).unwrap()["properties"]["provisioningState"], "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn a_second_write_supersedes_the_first() {
    let client = Client::with_group(slow("*/publicIPAddresses", 20)).await;
    let id = network_id("publicIPAddresses/a");
    let first = client.put(&id, public_ip()).await.expect(201);
    let mut other = public_ip();
    other["tags"] = json!({ "second": "yes" });
    let second = client.put(&id, other).await.expect(200);
    let ended = client.wait(&first).await;
    assert_eq!(ended["status"], "Canceled");
    assert_eq!(ended["error"]["details"][0]["code"], "CanceledAndSupersededDueToAnotherOperation");
    assert_eq!(client.wait(&second).await["status"], "Succeeded");
    assert_eq!(client.get(&id).await.body["tags"]["second"], "yes");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ready_cannot_be_referred_to() {
    let client = Client::with_group(slow("*/publicIPAddresses", 20)).await;
    let (pip, lb) = (network_id("publicIPAddresses/a"), network_id("loadBalancers/lb"));
    let body = load_balancer(&lb, &pip, &[80]);
    client.put(&lb, body.clone()).await.refused(400, "InvalidResourceReference");
    let reply = client.put(&pip, public_ip()).await;
    let refused = client.put(&lb, body.clone()).await.refused(429, "RetryableError");
    assert!(refused.header("retry-after").is_some());
    let text = refused.message();
    assert!(text.contains("ReferencedResourceNotProvisioned") && text.contains(pip.as_str()), "{text}");
    client.wait(&reply).await;
    client.put(&lb, body).await.expect(201);
    client.delete(&pip).await.refused(400, "PublicIPAddressCannotBeDeleted");
}

#[tokio::test(start_paused = true)]
async fn a_failed_operation_leaves_the_resource_failed_until_it_is_written_again() {
    let client = Client::with_group(slow("*/publicIPAddresses", 3)).await;
    let fault = FaultAction::FailOperation { code: "InternalServerError".into(), message: "no luck".into() };
    client.azure.inject(Fault::new(fault).on_method("PUT").times(1).named("bad luck"));
    let id = network_id("publicIPAddresses/a");
    let reply = client.put(&id, public_ip()).await.expect(201);
    let ended = client.wait(&reply).await;
    assert_eq!(
        (&ended["status"], &ended["error"]["code"]),
        (&json!("Failed"), &json!("InternalServerError"))
    );
    assert_eq!(client.get(&id).await.body["properties"]["provisioningState"], "Failed");
    client.create(&id, public_ip()).await;
    assert_eq!(client.get(&id).await.body["properties"]["provisioningState"], "Succeeded");
    let journal = client.azure.journal();
    assert!(
        journal.entries.iter().any(|entry| entry.fault.as_deref() == Some("bad luck") && entry.status == 201)
    );
}

#[tokio::test(start_paused = true)]
async fn faults_refuse_throttle_delay_and_lose_answers() {
    let client = Client::with_group(Options::default()).await;
    let put = |action| Fault::new(action).on_method("PUT").on_type("*/publicIPAddresses").times(1);
    let id = network_id("publicIPAddresses/a");

    client.azure.inject(put(FaultAction::Fail {
        status: 503,
        code: "ServiceUnavailable".into(),
        message: "m".into(),
    }));
    client.put(&id, public_ip()).await.refused(503, "ServiceUnavailable");
    client.azure.inject(put(FaultAction::Throttle { retry_after: Some(17) }));
    assert_eq!(client.put(&id, public_ip()).await.expect(429).header("retry-after"), Some("17"));
    client.get(&id).await.refused(404, "ResourceNotFound");

    let path = format!("{id}?api-version=2025-05-01");
    client.azure.inject(put(FaultAction::DropRequest));
    assert!(client.try_send("PUT", &path, Some(public_ip()), &[]).await.is_none());
    client.get(&id).await.refused(404, "ResourceNotFound");
    let lost = client.azure.journal().entries.into_iter().find(|entry| entry.status == 0).unwrap();
    assert!(lost.changes.is_empty() && !lost.accepted());
    client.azure.inject(put(FaultAction::DropAnswer));
    assert!(client.try_send("PUT", &path, Some(public_ip()), &[]).await.is_none());
    client.get(&id).await.expect(200);

    client.azure.inject(put(FaultAction::Delay { ms: 4_000 }));
    let started = tokio::time::Instant::now();
    client.put(&id, public_ip()).await.expect(200);
    assert_eq!(started.elapsed(), Duration::from_secs(4));

    client.azure.inject(put(FaultAction::SlowOperation { ms: 9_000 }));
    let mut other = public_ip();
    other["tags"] = json!({ "n": "1" });
    let reply = client.put(&id, other.clone()).await.expect(200);
    client.wait(&reply).await;
    assert_eq!(started.elapsed(), Duration::from_secs(13));
    client.azure.inject(put(FaultAction::StallOperation));
    other["tags"] = json!({ "n": "2" });
    client.put(&id, other).await.expect(200);
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert_eq!(client.get(&id).await.body["properties"]["provisioningState"], "Updating");
}

#[tokio::test(start_paused = true)]
async fn a_fault_interferes_between_read_and_write() {
    let client = Client::with_group(Options::default()).await;
    let id = client.public_ip("a").await;
    let fault = json!({ "method": "PUT", "count": 1, "action": { "do": "interfere", "patch": { "tags": { "by": "policy" } } } });
    client.azure.inject(serde_json::from_value(fault).unwrap());
    let read = client.get(&id).await;
    client.put_if(&id, public_ip(), &read.etag()).await.refused(412, "PreconditionFailed");
    let again = client.get(&id).await;
    assert_eq!(again.body["tags"]["by"], "policy");
    client.put_if(&id, again.body.clone(), &again.etag()).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn faults_come_through_the_control_api() {
    let client = Client::with_group(Options::default()).await;
    let fault = json!({ "method": "GET", "resourceType": "*/loadBalancers", "action": { "do": "throttle", "retryAfter": 3 } });
    client
        .send("POST", "/_cerulean/faults", Some(fault), &[("content-type", "application/json")])
        .await
        .expect(201);
    let list = network_id("loadBalancers/x").to_string().replace("/x", "?api-version=2025-05-01");
    client.send("GET", &list, None, &[]).await.expect(429);
    client.send("DELETE", "/_cerulean/faults", None, &[]).await.expect(204);
    client.send("GET", &list, None, &[]).await.expect(200);
    let bad = json!({ "action": { "do": "dance" } });
    client
        .send("POST", "/_cerulean/faults", Some(bad), &[("content-type", "application/json")])
        .await
        .expect(400);
    client.send("GET", "/_cerulean/nothing-here", None, &[]).await.expect(404);
    // A body without a content type is refused by the router; that refusal is JSON, too.
    for path in ["/_cerulean/faults", "/_cerulean/scheduled-events"] {
        client.send("POST", path, Some(json!({})), &[]).await.refused(415, "UnsupportedMediaType");
    }
    for (path, word) in [
        ("journal?afer=1", "there is no parameter `afer`"),
        ("journal?after=x", "after must be the number"),
        ("journal?format=xml", "format is 'xml'"),
        ("operations?runing=true", "there is no parameter `runing`"),
        ("operations?running=yes", "running is 'yes'"),
    ] {
        let refused = client.send("GET", &format!("/_cerulean/{path}"), None, &[]).await.expect(400).body;
        assert!(refused["error"]["message"].as_str().unwrap().contains(word), "{path}: {refused}");
    }
    let journal = client.send("GET", "/_cerulean/journal?after=1", None, &[]).await.expect(200).body;
    assert_eq!(journal["entries"].as_array().unwrap().len(), 2);
    assert_eq!(journal["counts"]["throttled"], 1);
}

#[tokio::test(start_paused = true)]
async fn budgets_run_out_and_come_back() {
    let client = Client::with_group(Options::default()).await;
    let path = format!("{}?api-version=2021-04-01", group_path());
    let reply = client.send("GET", &path, None, &[]).await;
    assert_eq!(reply.header("x-ms-ratelimit-remaining-subscription-reads"), Some("249"));
    assert_eq!(reply.header("x-ms-ratelimit-remaining-subscription-global-reads"), Some("3749"));
    for _ in 1..250 {
        client.send("GET", &path, None, &[]).await.expect(200);
    }
    let refused = client.send("GET", &path, None, &[]).await.refused(429, "SubscriptionRequestsThrottled");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    tokio::time::sleep(Duration::from_secs(wait)).await;
    client.send("GET", &path, None, &[]).await.expect(200);
    let gone =
        client.send("GET", &format!("{}x?api-version=2021-04-01", group_path()), None, &[]).await.expect(404);
    assert_eq!(gone.header("x-ms-ratelimit-remaining-subscription-reads"), None);
    assert_eq!(gone.header("x-ms-failure-cause"), Some("gateway"));

    let free = Client::with_group(Options { budgets: None, ..Options::default() }).await;
    for _ in 0..400 {
        free.send("GET", &path, None, &[]).await.expect(200);
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_a_group_takes_everything_in_it() {
    let client = Client::with_group(slow("*/resourceGroups", 60)).await;
    let subnet = client.network("10.1.0.0/24").await;
    let pip = client.public_ip("a").await;
    let lb = network_id("loadBalancers/lb");
    client.create(&lb, load_balancer(&lb, &pip, &[80])).await;
    let set = crate::common::compute_id("virtualMachineScaleSets/set");
    client.create(&set, scale_set(3, &subnet, &[lb.child("backendAddressPools", "p")])).await;
    let path = format!("{}?api-version=2021-04-01", group_path());
    let reply = client.send("DELETE", &path, None, &[]).await.expect(202);
    assert!(reply.header("azure-asyncoperation").is_none());
    client.put(&pip, public_ip()).await.refused(409, "ResourceGroupBeingDeleted");
    assert_eq!(client.get(&lb).await.body["properties"]["provisioningState"], "Deleting");
    client.wait(&reply).await;
    client.send("GET", &path, None, &[]).await.refused(404, "ResourceGroupNotFound");
    client.send("HEAD", &path, None, &[]).await.expect(404);
    assert!(client.azure.documents().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_journal_counts_and_says_what_changed() {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    let lb = network_id("loadBalancers/lb");
    client.create(&lb, load_balancer(&lb, &pip, &[80])).await;
    client.create(&lb, load_balancer(&lb, &pip, &[80, 443])).await;
    client.create(&lb, load_balancer(&lb, &pip, &[443])).await;
    client.create(&lb, load_balancer(&lb, &pip, &[443])).await;
    let journal = client.azure.journal();
    let writes = journal.writes_of("microsoft.network/loadbalancers");
    let changes: Vec<_> = writes.iter().map(|entry| entry.changes.join(" ")).collect();
    assert_eq!(changes[1..], ["+loadBalancingRules/tcp-443", "-loadBalancingRules/tcp-80", ""]);
    assert!(writes[3].is_needless_write() && !writes[2].is_needless_write());
    assert_eq!(journal.counts.writes_by_type["Microsoft.Network/loadBalancers"], 4);
    assert_eq!(
        journal.counts.polls,
        journal.entries.iter().filter(|e| e.kind == RequestKind::Poll).count() as u64
    );
    assert_eq!(journal.counts.requests, journal.entries.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn no_secret_enters_the_journal_or_comes_back() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = crate::common::compute_id("virtualMachineScaleSets/set");
    let path = format!("{set}?api-version=2025-04-01");
    let headers = [("authorization", "Bearer very-secret-token")];
    let reply = client.send("PUT", &path, Some(scale_set(1, &subnet, &[])), &headers).await.expect(201);
    assert!(!reply.body.to_string().contains("hidden-word"));
    let journal = serde_json::to_string(&client.azure.journal()).unwrap();
    assert!(!journal.contains("very-secret-token") && !journal.contains("hidden-word"));
    assert!(!serde_json::to_string(&client.azure.documents()).unwrap().contains("hidden-word"));
}

#[tokio::test(start_paused = true)]
async fn headers_identify_requests() {
    let client = Client::with_group(Options::default()).await;
    let path = format!("{}?api-version=2021-04-01", group_path());
    let one = client.send("GET", &path, None, &[("x-ms-client-request-id", "mine")]).await;
    let two = client.send("GET", &path, None, &[("x-ms-correlation-request-id", "yours")]).await;
    assert_eq!(one.header("x-ms-client-request-id"), Some("mine"));
    assert_eq!(two.header("x-ms-correlation-request-id"), Some("yours"));
    assert_ne!(one.header("x-ms-request-id"), two.header("x-ms-request-id"));
    assert!(one.header("x-ms-routing-request-id").unwrap().starts_with("EASTUS:"));
}

#[tokio::test(start_paused = true)]
async fn hostile_requests_get_a_refusal() {
    let client = Client::with_group(Options::default()).await;
    let id = network_id("loadBalancers/x");
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let path = format!("{id}?api-version=2025-05-01");
    for body in
        [&deep, "", "{", "\"\"", "null", "{\"location\":7}", "{\"location\":\"eastus\",\"properties\":[]}"]
    {
        let request =
            http::Request::builder().method("PUT").uri(&path).body(axum::body::Body::from(body.to_owned()));
        let response = tower::ServiceExt::oneshot(client.azure.router(), request.unwrap()).await.unwrap();
        let status = response.status().as_u16();
        assert!(
            (400..500).contains(&status) || body.ends_with("[]}"),
            "{status} for {}",
            &body[..body.len().min(40)]
        );
    }
    let huge = axum::body::Body::from(vec![b' '; 10 * 1024 * 1024]);
    let request = http::Request::builder().method("PUT").uri(&path).body(huge).unwrap();
    assert_eq!(
        tower::ServiceExt::oneshot(client.azure.router(), request).await.unwrap().status().as_u16(),
        413
    );
    for path in ["/subscriptions/%00", "/subscriptions//x", "/subscriptions/a/resourceGroups/..", "/%"] {
        let status = client.send("GET", &format!("{path}?api-version=2021-04-01"), None, &[]).await.status;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn children_have_preconditions_of_their_own() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/24").await;
    let other = subnet.parent().unwrap().child("subnets", "other");
    let send = async |id: &ResourceId, name: &str, value: &str| {
        let path = format!("{id}?api-version={NETWORK_VERSION}");
        let body = json!({ "properties": { "addressPrefix": if *id == other { "10.1.1.0/24" } else { "10.1.0.0/24" } } });
        client.send("PUT", &path, Some(body), &[(name, value), ("content-type", "application/json")]).await
    };
    client
        .create(
            &subnet.parent().unwrap(),
            json!({ "location": "eastus", "properties": {
            "addressSpace": { "addressPrefixes": ["10.1.0.0/16"] },
            "subnets": [{ "name": subnet.name(), "properties": { "addressPrefix": "10.1.0.0/24" } }] } }),
        )
        .await;
    send(&other, "if-match", "*").await.refused(412, "PreconditionFailed");
    send(&other, "if-none-match", "*").await.expect(201);
    send(&other, "if-none-match", "*").await.refused(412, "PreconditionFailed");
    send(&other, "if-match", "*").await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn groups_take_nulls_for_nothing_and_go_with_their_peerings() {
    let client = Client::with_group(Options::default()).await;
    let group = format!("{}?api-version=2021-04-01", group_path());
    let body = json!({ "location": "eastus", "tags": null, "managedBy": null });
    let shown = client.send("PUT", &group, Some(body), &[]).await.expect(200).body;
    assert!(shown.get("managedBy").is_none());
    client.send("PATCH", &group, Some(json!({ "tags": null })), &[]).await.expect(200);
    let near = network_id("virtualNetworks/near");
    let far = ResourceId::parse(&near.as_str().replace("/rg/", "/other/")).unwrap();
    let other = format!("{}?api-version=2021-04-01", group_path().replace("/rg", "/other"));
    client.send("PUT", &other, Some(json!({ "location": "eastus" })), &[]).await.expect(201);
    for (id, prefix) in [(&near, "10.1.0.0/16"), (&far, "10.2.0.0/16")] {
        let space = json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": [prefix] } } });
        client.create(id, space).await;
    }
    for (here, there) in [(&near, &far), (&far, &near)] {
        let peering = json!({ "properties": { "remoteVirtualNetwork": { "id": there } } });
        client.create(&here.child("virtualNetworkPeerings", "peer"), peering).await;
    }
    client.send("DELETE", &other, None, &[]).await.expect(202);
    let left = client.get(&near.child("virtualNetworkPeerings", "peer")).await.expect(200).body;
    assert_eq!(left["properties"]["peeringState"], "Disconnected");
}

//! Machines that boot: the guest is informed, and its answer shows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use azure_simulator::{Guest, GuestReport, GuestStart, Options};
use azure_types::ResourceId;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Gives prepared answers, and remembers the starts.
#[derive(Default)]
struct Prepared {
    starts: Mutex<Vec<GuestStart>>,
    /// After how many seconds, and what; well at once where nothing is left.
    answers: Mutex<VecDeque<(u64, GuestReport)>>,
}

impl Guest for Prepared {
    fn start(&self, start: GuestStart) -> BoxFuture<'static, GuestReport> {
        self.starts.lock().push(start);
        let (seconds, report) = self.answers.lock().pop_front().unwrap_or_default();
        async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            report
        }
        .boxed()
    }
}

impl Prepared {
    fn answers(&self, answers: impl IntoIterator<Item = (u64, GuestReport)>) {
        self.answers.lock().extend(answers);
    }
}

/// A group with a subnet, and a guest.
async fn with_guest() -> (Client, Arc<Prepared>, ResourceId) {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.0.0.0/16").await;
    let guest = Arc::new(Prepared::default());
    client.azure.set_guest(guest.clone());
    (client, guest, subnet)
}

async fn interface(client: &Client, name: &str, subnet: &ResourceId) -> ResourceId {
    let nic = network_id(&format!("networkInterfaces/{name}"));
    let body = json!({ "location": "eastus", "properties": { "ipConfigurations": [
        { "name": "ip", "properties": { "subnet": { "id": subnet } } }] } });
    client.put(&nic, body).await.expect(201);
    nic
}

fn extension(name: &str) -> Value {
    json!({ "name": name, "location": "eastus", "properties": {
        "publisher": "Microsoft.Azure.Extensions", "type": "CustomScript", "typeHandlerVersion": "2.1",
        "settings": { "fileUris": [] }, "protectedSettings": { "commandToExecute": "join" },
    } })
}

async fn shown(client: &Client, id: &ResourceId) -> Value {
    client
        .send("GET", &format!("{id}?$expand=instanceView&api-version={COMPUTE_VERSION}"), None, &[])
        .await
        .expect(200)
        .body
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_made_when_its_guest_has_come_up() {
    let (client, guest, subnet) = with_guest().await;
    guest.answers([(90, GuestReport::default())]);
    let nic = interface(&client, "one", &subnet).await;
    let id = compute_id("virtualMachines/one");
    let mut body = machine(&nic);
    body["properties"]["osProfile"]["customData"] = "I2Nsb3VkLWNvbmZpZw==".into();
    body["properties"]["userData"] = "aGVsbG8=".into();
    body["identity"] = json!({ "type": "SystemAssigned" });
    let put = client.put(&id, body).await.expect(201);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let early = shown(&client, &id).await;
    assert_eq!(early["properties"]["provisioningState"], "Creating");
    assert!(early["properties"]["instanceView"].get("vmAgent").is_none());
    assert_eq!(client.wait(&put).await["status"], "Succeeded");
    let late = shown(&client, &id).await;
    assert_eq!(late["properties"]["provisioningState"], "Succeeded");
    assert_eq!(late["properties"]["instanceView"]["vmAgent"]["statuses"][0]["displayStatus"], "Ready");
    assert!(!late.to_string().contains("I2Nsb3"), "custom data is not shown");
    let starts = guest.starts.lock().clone();
    let [start] = starts.as_slice() else { panic!("one start") };
    assert!(start.first && start.boots && start.machine == id);
    assert_eq!(start.computer_name, "one");
    assert_eq!(start.custom_data.as_deref(), Some(b"#cloud-config".as_slice()));
    assert_eq!(start.user_data.as_deref(), Some(b"hello".as_slice()));
    assert_eq!(start.addresses, ["10.0.0.4".parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(start.identities[0].object_id, late["identity"]["principalId"].as_str().unwrap());
    // Again, the system has what it was given once.
    let restart = client.post(&id, "restart", Value::Null).await.expect(202);
    client.wait(&restart).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let again = guest.starts.lock().last().unwrap().clone();
    assert!(!again.first && again.boots && again.custom_data.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_never_comes_up_fails_after_a_while() {
    let (client, guest, subnet) = with_guest().await;
    guest.answers([(1_000_000, GuestReport::default()), (5, GuestReport::failed("no root device"))]);
    for (name, seconds, code) in
        [("never", 2_400, "OSProvisioningTimedOut"), ("broken", 5, "OSProvisioningInternalError")]
    {
        let nic = interface(&client, name, &subnet).await;
        let id = compute_id(&format!("virtualMachines/{name}"));
        let begin = tokio::time::Instant::now();
        let put = client.put(&id, machine(&nic)).await.expect(201);
        let end = client.wait(&put).await;
        assert_eq!((&end["status"], &end["error"]["code"]), (&json!("Failed"), &json!(code)), "{end}");
        assert!((seconds..seconds + 20).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
        let shown = shown(&client, &id).await;
        assert_eq!(shown["properties"]["provisioningState"], "Failed");
        let view = &shown["properties"]["instanceView"];
        assert_eq!(view["vmAgent"]["statuses"][0]["displayStatus"], "Not Ready", "{view}");
        assert!(view["statuses"].to_string().contains("PowerState/running"), "{view}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_extension_that_fails_on_one_instance_fails_the_set() {
    let (client, guest, subnet) = with_guest().await;
    let broken = GuestReport::default().extension("boot", Err("exit status 1"));
    guest.answers([(30, GuestReport::default()), (10, broken)]);
    let set = compute_id("virtualMachineScaleSets/set");
    let mut model = scale_set(2, &subnet, &[]);
    model["properties"]["virtualMachineProfile"]["osProfile"]["customData"] = "am9pbg==".into();
    model["properties"]["virtualMachineProfile"]["extensionProfile"] =
        json!({ "extensions": [extension("boot")] });
    let put = client.put(&set, model).await.expect(201);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let state = |shown: &Value| shown["properties"]["provisioningState"].as_str().unwrap().to_owned();
    let of = |number: &str| set.child("virtualMachines", number);
    // Each instance has its own end; the set's is that of all.
    let early = [shown(&client, &of("0")).await, shown(&client, &of("1")).await];
    assert_eq!(early.each_ref().map(state), ["Creating", "Failed"]);
    assert_eq!(state(&early[0]["resources"][0]), "Creating");
    let end = client.wait(&put).await;
    assert_eq!(end["error"]["code"], "VMExtensionProvisioningError", "{end}");
    let message = end["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("extension 'boot' (publisher 'Microsoft.Azure.Extensions' and type 'CustomScript')")
    );
    assert!(message.contains("'exit status 1'"), "{message}");
    assert_eq!(state(&shown(&client, &set).await), "Failed");
    let late = [shown(&client, &of("0")).await, shown(&client, &of("1")).await];
    assert_eq!(late.each_ref().map(state), ["Succeeded", "Failed"]);
    assert_eq!(late.each_ref().map(|one| state(&one["resources"][0])), ["Succeeded", "Failed"]);
    let status = &late[1]["properties"]["instanceView"]["extensions"][0]["statuses"][0];
    assert_eq!(
        (&status["code"], &status["message"]),
        (&json!("ProvisioningState/failed"), &json!("exit status 1"))
    );
    let told = guest.starts.lock().clone();
    assert!(told.iter().all(|start| start.custom_data.as_deref() == Some(b"join".as_slice())));
    assert_eq!(told[0].extensions[0].protected_settings["commandToExecute"], "join");
    for id in [set.child("extensions", "boot"), of("1").child("extensions", "boot"), set.clone()] {
        let text = client.get(&id).await.expect(200).body.to_string();
        assert!(!text.contains("protectedSettings") && !text.contains("am9pbg"), "{text}");
    }
    client.get(&set.child("extensions", "other")).await.refused(404, "ResourceNotFound");
    // The guest is informed of later machines, too.
    client.azure.scale(&set, 3).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(guest.starts.lock().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn extensions_of_a_machine_are_resources_with_results() {
    let (client, guest, subnet) = with_guest().await;
    let nic = interface(&client, "one", &subnet).await;
    let id = compute_id("virtualMachines/one");
    client.create(&id, machine(&nic)).await;
    let failing = || GuestReport::default().extension("script", Err("no such file"));
    guest.answers([
        (120, GuestReport::default().extension("script", Ok("joined"))),
        (1, failing()),
        (1, failing()),
    ]);
    let script = id.child("extensions", "script");
    let begin = tokio::time::Instant::now();
    let put = client.put(&script, extension("script")).await.expect(201);
    assert_eq!(client.wait(&put).await["status"], "Succeeded");
    assert!(begin.elapsed() >= Duration::from_secs(120));
    let read = shown(&client, &script).await;
    assert_eq!(read["properties"]["instanceView"]["statuses"][0]["message"], "joined");
    assert!(read["properties"].get("protectedSettings").is_none());
    let whole = shown(&client, &id).await;
    assert_eq!(whole["resources"][0]["id"], script.as_str());
    assert_eq!(whole["properties"]["instanceView"]["extensions"][0]["name"], "script");
    let told = guest.starts.lock().last().unwrap().clone();
    assert!(!told.boots && told.machine == id && told.extensions[0].kind == "CustomScript");

    let mut other = extension("script");
    other["properties"]["settings"] = json!({ "timestamp": 1 });
    let put = client.put(&script, other.clone()).await.expect(200);
    let end = client.wait(&put).await;
    assert_eq!(end["error"]["code"], "VMExtensionProvisioningError", "{end}");
    assert_eq!(client.get(&script).await.body["properties"]["provisioningState"], "Failed");
    other["properties"]["suppressFailures"] = true.into();
    let put = client.put(&script, other).await.expect(200);
    assert_eq!(client.wait(&put).await["status"], "Succeeded");

    let mut missing = extension("bad");
    missing["properties"].as_object_mut().unwrap().remove("publisher");
    assert_eq!(client.put(&id.child("extensions", "bad"), missing).await.status, 400);
    let absent = compute_id("virtualMachines/absent").child("extensions", "x");
    client.put(&absent, extension("x")).await.refused(404, "ParentResourceNotFound");
    let off = client.post(&id, "deallocate", Value::Null).await.expect(202);
    client.wait(&off).await;
    client.put(&script, extension("script")).await.refused(409, "OperationNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn without_a_guest_all_goes_well() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.0.0.0/16").await;
    let nic = interface(&client, "one", &subnet).await;
    let id = compute_id("virtualMachines/one");
    client.create(&id, machine(&nic)).await;
    client.create(&id.child("extensions", "script"), extension("script")).await;
    let shown = shown(&client, &id).await;
    assert_eq!(shown["resources"][0]["properties"]["provisioningState"], "Succeeded");
    assert_eq!(shown["properties"]["instanceView"]["vmAgent"]["statuses"][0]["displayStatus"], "Ready");
    let nic = interface(&client, "two", &subnet).await;
    let closed = compute_id("virtualMachines/closed");
    let mut body = machine(&nic);
    body["properties"]["osProfile"]["allowExtensionOperations"] = false.into();
    client.create(&closed, body).await;
    client.put(&closed.child("extensions", "x"), extension("x")).await.refused(409, "OperationNotAllowed");
}

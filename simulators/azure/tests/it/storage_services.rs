//! The file and blob services under their own hosts: who is let in, and what they answer.

use std::sync::Arc;

use crate::common::*;
use axum::body::Body;
use azure_simulator::entra::{Entra, EntraOptions};
use azure_simulator::serve::Scheme;
use azure_simulator::{Azure, Fault, FaultAction, Options};
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const FILE: &str = "acct1.file.core.windows.net";
const BLOB: &str = "acct1.blob.core.windows.net";
const OBJECT: &str = "0b1ec700-0000-4000-8000-000000000003";
const ASSIGNMENT: &str = "0b1ec700-0000-4000-8000-000000000004";
/// The role Owner.
const OWNER: &str = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635";
const DATE: &str = "Fri, 26 Jun 2015 23:39:12 GMT";

fn account() -> ResourceId {
    ResourceId::group(SUBSCRIPTION, GROUP).resource("Microsoft.Storage", "storageAccounts", "acct1")
}

struct Answer {
    status: u16,
    headers: http::HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    #[track_caller]
    fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    #[track_caller]
    fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.header("x-ms-error-code")), (status, code), "{}", self.body);
        assert!(self.body.contains(&format!("<Code>{code}</Code>")) || self.body.is_empty(), "{}", self.body);
        self
    }
}

/// An account and its first key.
struct Storage {
    azure: Azure,
    key: Vec<u8>,
}

impl Storage {
    async fn with(properties: Value) -> Self {
        let azure = Azure::new(Options::default());
        let document = json!({
            "location": "eastus", "kind": "StorageV2", "sku": { "name": "Standard_LRS" }, "properties": properties,
        });
        azure.put(&account(), document).unwrap();
        let mut storage = Self { azure, key: Vec::new() };
        storage.key = storage.first_key().await;
        storage
    }

    async fn new() -> Self {
        Self::with(json!({})).await
    }

    async fn act(&self, action: &str, body: Value) -> Value {
        let client = Client::of(self.azure.clone());
        let path = format!("{}/{action}?api-version=2025-01-01", account());
        client.send("POST", &path, Some(body), &[]).await.expect(200).body
    }

    async fn first_key(&self) -> Vec<u8> {
        let keys = self.act("listKeys", json!({})).await;
        STANDARD.decode(keys["keys"][0]["value"].as_str().unwrap()).unwrap()
    }

    async fn send(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let (host, path) = url.split_once('/').unwrap();
        let mut request = Request::builder().method(method).uri(format!("/{path}")).header("host", host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::from(body.to_vec())).unwrap();
        request.extensions_mut().insert(Scheme::Https);
        let response = self.azure.router().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = String::from_utf8_lossy(&body.collect().await.unwrap().to_bytes()).into_owned();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// The same, signed with the first key as "Authorize with Shared Key" says.
    async fn signed(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let length = if body.is_empty() { String::new() } else { body.len().to_string() };
        let mut own: Vec<(&str, &str)> = headers.to_vec();
        own.extend([("x-ms-date", DATE), ("x-ms-version", "2022-11-02")]);
        let header =
            |name: &str| own.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| *value);
        let mut text = format!("{method}\n\n\n{length}\n\n{}\n\n\n\n\n\n", header("content-type"));
        text.push_str(&format!("{}\n", header("range")));
        let mut special: Vec<_> = own.iter().filter(|(name, _)| name.starts_with("x-ms-")).collect();
        special.sort();
        special.iter().for_each(|(name, value)| text.push_str(&format!("{name}:{value}\n")));
        let (host, rest) = url.split_once('/').unwrap();
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let name = host.split('.').next().unwrap();
        text.push_str(&format!("/{name}/{path}"));
        let mut options: Vec<(String, String)> =
            url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        options.sort();
        options.iter().for_each(|(option, value)| text.push_str(&format!("\n{option}:{value}")));
        let signature =
            ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &self.key), text.as_bytes());
        let authorization = format!("SharedKey {name}:{}", STANDARD.encode(signature));
        let length = body.len().to_string();
        own.extend([("authorization", authorization.as_str()), ("content-length", length.as_str())]);
        self.send(method, url, &own, body).await
    }
}

#[tokio::test(start_paused = true)]
async fn only_who_proves_it_is_let_in() {
    let storage = Storage::new().await;
    let list = format!("{FILE}/?comp=list");
    let refused = storage.send("GET", &list, &[], b"").await.refused(401, "NoAuthenticationInformation");
    assert!(refused.header("www-authenticate").contains("resource_id=https://storage.azure.com"));
    storage.signed("GET", &list, &[], b"").await.expect(200);
    for authorization in ["SharedKey acct1:AAAA", "SharedKey", "Basic x", "SharedKeyLite acct1:AAAA"] {
        let headers = [("authorization", authorization), ("x-ms-date", DATE)];
        storage.send("GET", &list, &headers, b"").await.refused(403, "AuthenticationFailed");
    }
    // A rotated key signs no more; the other one would.
    storage.act("regenerateKey", json!({ "keyName": "key1" })).await;
    storage.signed("GET", &list, &[], b"").await.refused(403, "AuthenticationFailed");
    let elsewhere = "other1.file.core.windows.net/?comp=list";
    storage.signed("GET", elsewhere, &[], b"").await.refused(404, "ResourceNotFound");
    let without = Storage::with(json!({ "allowSharedKeyAccess": false })).await;
    without.signed("GET", &list, &[], b"").await.refused(403, "KeyBasedAuthenticationNotPermitted");
    let closed = Storage::with(json!({ "networkAcls": { "defaultAction": "Deny" } })).await;
    closed.signed("GET", &list, &[], b"").await.refused(403, "AuthorizationFailure");
    // A rule may let any caller in.
    let rules = json!({ "defaultAction": "Deny", "ipRules": [{ "value": "192.0.2.1" }] });
    let guarded = Storage::with(json!({ "networkAcls": rules })).await;
    guarded.signed("GET", &list, &[], b"").await.expect(200);
    guarded.signed("GET", "acct1.privatelink.file.core.windows.net/?comp=list", &[], b"").await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn signed_tokens_are_good_for_what_they_say_and_as_long_as_they_say() {
    let storage = Storage::new().await;
    let token = async |services: &str, kinds: &str, permissions: &str, end: &str| {
        let body = json!({
            "signedServices": services, "signedResourceTypes": kinds, "signedPermission": permissions, "signedExpiry": end,
        });
        storage.act("ListAccountSas", body).await["accountSasToken"].as_str().unwrap().to_owned()
    };
    let (late, early) = ("2099-01-01T00:00:00Z", "2020-01-01T00:00:00Z");
    storage.signed("PUT", &format!("{FILE}/s01?restype=share"), &[], b"").await.expect(201);
    for (token, expected) in [
        (token("f", "s", "l", late).await, None),
        (token("bf", "sco", "rwdl", late).await, None),
        (token("f", "s", "l", early).await, Some("AuthenticationFailed")),
        (token("b", "s", "l", late).await, Some("AuthorizationServiceMismatch")),
        (token("f", "o", "l", late).await, Some("AuthorizationResourceTypeMismatch")),
        (token("f", "s", "r", late).await, Some("AuthorizationPermissionMismatch")),
    ] {
        let answer = storage.send("GET", &format!("{FILE}/?comp=list&{token}"), &[], b"").await;
        match expected {
            None => drop(answer.expect(200)),
            Some(code) => drop(answer.refused(403, code)),
        }
    }
    let forged = token("f", "s", "r", late).await.replace("sp=r", "sp=rl");
    let answer = storage.send("GET", &format!("{FILE}/?comp=list&{forged}"), &[], b"").await;
    answer.refused(403, "AuthenticationFailed");
    let body = json!({
        "canonicalizedResource": "/file/acct1/s01", "signedResource": "s", "signedPermission": "rcw", "signedExpiry": late,
    });
    let of_share = storage.act("ListServiceSas", body).await["serviceSasToken"].as_str().unwrap().to_owned();
    let folder = format!("restype=directory&{of_share}");
    storage.send("PUT", &format!("{FILE}/s01/folder?{folder}"), &[], b"").await.expect(201);
    let other = storage.send("PUT", &format!("{FILE}/s02/folder?{folder}"), &[], b"").await;
    other.refused(403, "AuthenticationFailed");
}

#[tokio::test(start_paused = true)]
async fn tokens_of_entra_are_for_storage_and_say_that_they_mean_it() {
    let storage = Storage::new().await;
    let azure = &storage.azure;
    let entra = Entra::new(EntraOptions::new(azure.options().tenant.clone(), azure.clock())).unwrap();
    azure.set_verifier(Arc::new(entra.clone()));
    let token = |audience: &str| {
        let issued = entra.issue("client", OBJECT, entra.home_tenant(), audience).unwrap();
        format!("Bearer {}", issued.token.secret())
    };
    let list = format!("{FILE}/?comp=list");
    let (good, wrong) = (token("https://storage.azure.com/"), token("https://management.azure.com/"));
    let backup = ("x-ms-file-request-intent", "backup");
    storage.send("GET", &list, &[("authorization", &good), backup], b"").await.expect(200);
    storage.send("GET", &list, &[("authorization", &good)], b"").await.refused(400, "MissingRequiredHeader");
    let refused = storage.send("GET", &list, &[("authorization", &wrong), backup], b"").await;
    assert!(refused.header("www-authenticate").starts_with("Bearer authorization_uri="));
    refused.expect(401);
    // Where roles are enforced, an owner has what Resource Manager gives, and nothing of what is in files.
    azure.enforce_authorization(true);
    let with_token = [("authorization", good.as_str()), backup];
    storage.send("GET", &list, &with_token, b"").await.refused(403, "AuthorizationPermissionMismatch");
    let assignment = format!("{}/providers/Microsoft.Authorization/roleAssignments/{ASSIGNMENT}", account());
    let role =
        format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{OWNER}");
    let document = json!({ "properties": { "roleDefinitionId": role, "principalId": OBJECT, "principalType": "ServicePrincipal" } });
    azure.put(&ResourceId::parse(&assignment).unwrap(), document).unwrap();
    storage.send("GET", &list, &with_token, b"").await.expect(200);
    storage.send("PUT", &format!("{FILE}/s01?restype=share"), &with_token, b"").await.expect(201);
    let folder = format!("{FILE}/s01/folder?restype=directory");
    storage.send("PUT", &folder, &with_token, b"").await.refused(403, "AuthorizationPermissionMismatch");
}

#[tokio::test(start_paused = true)]
async fn shares_in_the_file_services_own_words() {
    let storage = Storage::new().await;
    let share = format!("{FILE}/s01?restype=share");
    let headers = [("x-ms-share-quota", "3"), ("x-ms-meta-created", "by")];
    let made = storage.signed("PUT", &share, &headers, b"").await.expect(201);
    assert!(made.header("etag").starts_with("\"0x8D"), "{}", made.header("etag"));
    storage.signed("PUT", &share, &[], b"").await.refused(409, "ShareAlreadyExists");
    let id = account().child("fileServices", "default").child("shares", "s01");
    assert_eq!(storage.azure.document(&id).unwrap()["properties"]["shareQuota"], 3);
    storage
        .signed("PUT", &format!("{share}&comp=properties"), &[("x-ms-share-quota", "x")], b"")
        .await
        .refused(400, "InvalidHeaderValue");
    storage
        .signed("PUT", &format!("{share}&comp=properties"), &[("x-ms-share-quota", "7")], b"")
        .await
        .expect(200);
    let read = storage.signed("GET", &share, &[], b"").await.expect(200);
    assert_eq!((read.header("x-ms-share-quota"), read.header("x-ms-meta-created")), ("7", "by"));
    let snapshot = storage.signed("PUT", &format!("{share}&comp=snapshot"), &[], b"").await.expect(201);
    let time = snapshot.header("x-ms-snapshot").to_owned();
    let listed = storage
        .signed("GET", &format!("{FILE}/?comp=list&include=snapshots,metadata"), &[], b"")
        .await
        .expect(200);
    assert!(listed.body.contains(&format!("<Name>s01</Name><Snapshot>{time}</Snapshot>")), "{}", listed.body);
    assert!(listed.body.contains("<Metadata><created>by</created></Metadata>"), "{}", listed.body);
    storage.signed("DELETE", &share, &[], b"").await.refused(409, "ShareHasSnapshots");
    let of_snapshot = format!("{share}&sharesnapshot={time}");
    storage.signed("GET", &of_snapshot, &[], b"").await.expect(200);
    storage.signed("DELETE", &of_snapshot, &[], b"").await.expect(202);
    storage.signed("GET", &of_snapshot, &[], b"").await.refused(404, "ShareSnapshotNotFound");
    storage.signed("DELETE", &share, &[], b"").await.expect(202);
    storage.signed("GET", &share, &[], b"").await.refused(404, "ShareNotFound");
    storage
        .signed("PUT", &format!("{FILE}/Bad_Name?restype=share"), &[], b"")
        .await
        .refused(400, "InvalidResourceName");
    storage
        .signed("PATCH", &format!("{FILE}/?comp=list"), &[], b"")
        .await
        .refused(405, "UnsupportedHttpVerb");
}

#[tokio::test(start_paused = true)]
async fn files_lie_in_directories_and_are_written_by_ranges() {
    let storage = Storage::new().await;
    storage.signed("PUT", &format!("{FILE}/s01?restype=share"), &[], b"").await.expect(201);
    let file = format!("{FILE}/s01/folder/a.txt");
    let folder = format!("{FILE}/s01/folder?restype=directory");
    let (length, kind) = (("x-ms-content-length", "10"), ("x-ms-type", "file"));
    storage.signed("PUT", &file, &[length, kind], b"").await.refused(404, "ParentNotFound");
    storage.signed("PUT", &folder, &[], b"").await.expect(201);
    storage.signed("PUT", &folder, &[], b"").await.refused(409, "ResourceAlreadyExists");
    storage.signed("PUT", &file, &[length, kind], b"").await.expect(201);
    let write = ("x-ms-write", "update");
    let range = |text: &'static str| ("x-ms-range", text);
    let ranged = format!("{file}?comp=range");
    storage.signed("PUT", &ranged, &[write, range("bytes=2-4")], b"abc").await.expect(201);
    storage
        .signed("PUT", &ranged, &[write, range("bytes=8-12")], b"abcde")
        .await
        .refused(416, "InvalidRange");
    storage
        .signed("PUT", &ranged, &[write, range("bytes=0-4")], b"abc")
        .await
        .refused(400, "InvalidHeaderValue");
    let read = storage.signed("GET", &file, &[range("bytes=1-4")], b"").await.expect(206);
    assert_eq!((read.body.as_str(), read.header("content-range")), ("\0abc", "bytes 1-4/10"));
    // Names are compared without case.
    let head = storage.signed("HEAD", &format!("{FILE}/s01/FOLDER/A.TXT"), &[], b"").await.expect(200);
    assert_eq!((head.header("content-length"), head.header("x-ms-type")), ("10", "File"));
    let snapshot = storage.signed("PUT", &format!("{FILE}/s01?restype=share&comp=snapshot"), &[], b"").await;
    let time = snapshot.header("x-ms-snapshot").to_owned();
    storage.signed("PUT", &ranged, &[("x-ms-write", "clear"), range("bytes=0-9")], b"").await.expect(201);
    let then = storage.signed("GET", &format!("{file}?sharesnapshot={time}"), &[], b"").await.expect(200);
    let now = storage.signed("GET", &file, &[], b"").await.expect(200);
    assert_eq!((then.body.as_str(), now.body.as_str()), ("\0\0abc\0\0\0\0\0", "\0\0\0\0\0\0\0\0\0\0"));
    let written = storage
        .signed("PUT", &format!("{ranged}&sharesnapshot={time}"), &[write, range("bytes=0-0")], b"x")
        .await;
    written.refused(400, "InvalidQueryParameterValue");
    let source = format!("https://{file}?sharesnapshot={time}");
    storage
        .signed("PUT", &format!("{FILE}/s01/copy"), &[("x-ms-copy-source", &source)], b"")
        .await
        .expect(202);
    assert_eq!(storage.signed("GET", &format!("{FILE}/s01/copy"), &[], b"").await.body, then.body);
    let listed =
        storage.signed("GET", &format!("{FILE}/s01?restype=directory&comp=list"), &[], b"").await.expect(200);
    assert!(listed.body.contains("<Directory><Name>folder</Name>"), "{}", listed.body);
    assert!(
        listed.body.contains("<File><Name>copy</Name><Properties><Content-Length>10<"),
        "{}",
        listed.body
    );
    storage.signed("DELETE", &folder, &[], b"").await.refused(409, "DirectoryNotEmpty");
    storage.signed("DELETE", &file, &[], b"").await.expect(202);
    storage.signed("DELETE", &file, &[], b"").await.refused(404, "ResourceNotFound");
    storage.signed("DELETE", &folder, &[], b"").await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn blobs_are_whole_or_put_together_from_blocks() {
    let storage = Storage::with(json!({ "allowBlobPublicAccess": true })).await;
    let container = format!("{BLOB}/c01?restype=container");
    let public = [("x-ms-blob-public-access", "blob")];
    storage.signed("PUT", &container, &public, b"").await.expect(201);
    storage.signed("PUT", &container, &[], b"").await.refused(409, "ContainerAlreadyExists");
    let kind = ("x-ms-blob-type", "BlockBlob");
    let blob = format!("{BLOB}/c01/dir/a.txt");
    let put = storage.signed("PUT", &blob, &[kind], b"hello").await.expect(201);
    storage.send("GET", &blob, &[("if-none-match", "*")], b"").await.refused(412, "ConditionNotMet");
    let read = storage.send("GET", &blob, &[], b"").await.expect(200);
    assert_eq!((read.body.as_str(), read.header("etag")), ("hello", put.header("etag")), "it is public");
    storage
        .send("GET", &format!("{container}&comp=list"), &[], b"")
        .await
        .refused(401, "NoAuthenticationInformation");
    let big = format!("{BLOB}/c01/big");
    for (block, content) in [("YQ==", b"one"), ("Yg==", b"two")] {
        storage.signed("PUT", &format!("{big}?comp=block&blockid={block}"), &[], content).await.expect(201);
    }
    let list = |blocks: &str| format!("<BlockList>{blocks}</BlockList>").into_bytes();
    let missing = list("<Latest>Yw==</Latest>");
    storage
        .signed("PUT", &format!("{big}?comp=blocklist"), &[], &missing)
        .await
        .refused(400, "InvalidBlockList");
    storage.send("GET", &big, &[], b"").await.refused(404, "BlobNotFound");
    let both = list("<Latest>Yg==</Latest><Latest>YQ==</Latest>");
    storage.signed("PUT", &format!("{big}?comp=blocklist"), &[], &both).await.expect(201);
    assert_eq!(storage.send("GET", &big, &[], b"").await.body, "twoone");
    let listed =
        storage.signed("GET", &format!("{container}&comp=list&delimiter=/"), &[], b"").await.expect(200);
    assert!(listed.body.contains("<BlobPrefix><Name>dir/</Name></BlobPrefix>"), "{}", listed.body);
    assert!(listed.body.contains("<Blob><Name>big</Name>"), "{}", listed.body);
    storage.signed("DELETE", &big, &[], b"").await.expect(202);
    storage.signed("DELETE", &container, &[], b"").await.expect(202);
    storage.send("GET", &blob, &[], b"").await.expect(401);
    storage.signed("GET", &blob, &[], b"").await.refused(404, "ContainerNotFound");
    // What was in a container does not come back with its name.
    storage.signed("PUT", &container, &[], b"").await.expect(201);
    storage.signed("GET", &blob, &[], b"").await.refused(404, "BlobNotFound");
}

#[tokio::test(start_paused = true)]
async fn faults_and_the_journal_name_what_is_asked_for() {
    let storage = Storage::new().await;
    let of_type = "Microsoft.Storage/storageAccounts/fileServices/shares";
    storage
        .azure
        .inject(Fault::new(FaultAction::Throttle { retry_after: Some(5) }).on_type(of_type).times(1));
    let share = format!("{FILE}/s01?restype=share");
    let struck = storage.signed("PUT", &share, &[], b"").await.refused(429, "TooManyRequests");
    assert_eq!(struck.header("retry-after"), "5");
    storage.signed("PUT", &share, &[], b"").await.expect(201);
    let journal = storage.azure.journal();
    let last = journal.entries.last().unwrap();
    let id = account().child("fileServices", "default").child("shares", "s01");
    assert_eq!((last.status, last.resource.as_deref()), (201, Some(id.as_str())));
    assert_eq!(last.path, format!("https://{FILE}/s01"));
}

#[tokio::test(start_paused = true)]
async fn a_saved_state_holds_what_is_in_files() {
    let storage = Storage::new().await;
    storage.signed("PUT", &format!("{FILE}/s01?restype=share"), &[], b"").await.expect(201);
    storage.signed("PUT", &format!("{FILE}/s01/a"), &[("x-ms-content-length", "2")], b"").await.expect(201);
    let range = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-1")];
    storage.signed("PUT", &format!("{FILE}/s01/a?comp=range"), &range, b"hi").await.expect(201);
    let again = Storage { azure: Azure::new(Options::default()), key: storage.key.clone() };
    again.azure.restore(storage.azure.save().unwrap()).unwrap();
    assert_eq!(again.signed("GET", &format!("{FILE}/s01/a"), &[], b"").await.expect(200).body, "hi");
}

/// CSI baseline, difference 5 of the simulated Azure.
#[tokio::test(start_paused = true)]
async fn large_files_and_page_blobs_take_the_room_of_what_was_written() {
    let storage = Storage::with(json!({ "allowBlobPublicAccess": true })).await;
    storage.signed("PUT", &format!("{FILE}/s01?restype=share"), &[], b"").await.expect(201);
    storage.signed("PUT", &format!("{BLOB}/c01?restype=container"), &[], b"").await.expect(201);
    const TIB: u64 = 1 << 40;
    let (file, blob) = (format!("{FILE}/s01/disk.vhd"), format!("{BLOB}/c01/disk.vhd"));
    let page = [b'p'; 512];
    for (url, largest, made, comp, list, what, size) in [
        (&file, 4 * TIB, ("x-ms-type", "file"), "range", "rangelist", "x-ms-write", "x-ms-content-length"),
        (
            &blob,
            8 * TIB,
            ("x-ms-blob-type", "PageBlob"),
            "page",
            "pagelist",
            "x-ms-page-write",
            "x-ms-blob-content-length",
        ),
    ] {
        let over = (largest + 512).to_string();
        storage.signed("PUT", url, &[made, (size, &over)], b"").await.refused(400, "InvalidHeaderValue");
        let length = largest.to_string();
        storage.signed("PUT", url, &[made, (size, &length)], b"").await.expect(201);
        let range = format!("bytes={}-{}", largest - 512, largest - 1);
        let write = [(what, "update"), ("x-ms-range", range.as_str())];
        let part = format!("{url}?comp={comp}");
        storage.signed("PUT", &part, &write, &page).await.expect(201);
        let write = [(what, "update"), ("x-ms-range", "bytes=512-1023")];
        storage.signed("PUT", &part, &write, &page).await.expect(201);
        let ranges =
            async || storage.signed("GET", &format!("{url}?comp={list}"), &[], b"").await.expect(200).body;
        let one = |first: u64| format!("<Start>{first}</Start><End>{}</End>", first + 511);
        let shown = ranges().await;
        assert!(shown.contains(&one(512)) && shown.contains(&one(largest - 512)), "{shown}");
        let read = storage.signed("GET", url, &[("x-ms-range", "bytes=510-513")], b"").await.expect(206);
        assert_eq!(read.body, "\0\0pp");
        let clear = [(what, "clear"), ("x-ms-range", "bytes=512-1023")];
        storage.signed("PUT", &part, &clear, b"").await.expect(201);
        let shown = ranges().await;
        assert!(!shown.contains(&one(512)) && shown.contains(&one(largest - 512)), "{shown}");
        let head = storage.signed("HEAD", url, &[], b"").await.expect(200);
        assert_eq!(head.header("content-length"), length);
        storage.signed("PUT", &format!("{url}?comp=properties"), &[(size, "1024")], b"").await.expect(200);
        let head = storage.signed("HEAD", url, &[], b"").await.expect(200);
        assert_eq!(head.header("content-length"), "1024");
    }
    let head = storage.signed("HEAD", &blob, &[], b"").await.expect(200);
    assert_eq!(head.header("x-ms-blob-type"), "PageBlob", "it stays one");
    let part = format!("{blob}?comp=page");
    let odd = [("x-ms-page-write", "clear"), ("x-ms-range", "bytes=1-512")];
    storage.signed("PUT", &part, &odd, b"").await.refused(416, "InvalidPageRange");
    storage
        .signed("PUT", &format!("{BLOB}/c01/text"), &[("x-ms-blob-type", "BlockBlob")], b"text")
        .await
        .expect(201);
    let even = [("x-ms-page-write", "clear"), ("x-ms-range", "bytes=0-511")];
    let text = format!("{BLOB}/c01/text?comp=page");
    storage.signed("PUT", &text, &even, b"").await.refused(409, "InvalidBlobType");
    storage
        .signed("PUT", &blob, &[("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "100")], b"")
        .await
        .refused(400, "InvalidHeaderValue");
    // The saved state is as small.
    let again = Storage { azure: Azure::new(Options::default()), key: storage.key.clone() };
    again.azure.restore(storage.azure.save().unwrap()).unwrap();
    assert_eq!(again.signed("HEAD", &blob, &[], b"").await.expect(200).header("content-length"), "1024");
}

/// CSI baseline, difference 6 of the simulated Azure: `Put Range From URL` and its like.
#[tokio::test(start_paused = true)]
async fn ranges_are_copied_from_urls_that_may_be_read() {
    let storage = Storage::new().await;
    storage.signed("PUT", &format!("{FILE}/s01?restype=share"), &[], b"").await.expect(201);
    storage.signed("PUT", &format!("{BLOB}/c01?restype=container"), &[], b"").await.expect(201);
    storage
        .signed("PUT", &format!("{FILE}/s01/from"), &[("x-ms-content-length", "10")], b"")
        .await
        .expect(201);
    let write = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-9")];
    storage.signed("PUT", &format!("{FILE}/s01/from?comp=range"), &write, b"0123456789").await.expect(201);
    let body = json!({ "signedServices": "bf", "signedResourceTypes": "o", "signedPermission": "r",
        "signedExpiry": "2099-01-01T00:00:00Z" });
    let token = storage.act("ListAccountSas", body).await["accountSasToken"].as_str().unwrap().to_owned();
    // Another account, with a share and a container of its own.
    let id = ResourceId::group(SUBSCRIPTION, GROUP).resource("Microsoft.Storage", "storageAccounts", "acct2");
    let document = json!({ "location": "eastus", "kind": "StorageV2", "sku": { "name": "Standard_LRS" }, "properties": {} });
    storage.azure.put(&id, document).unwrap();
    let client = Client::of(storage.azure.clone());
    let keys = client
        .send("POST", &format!("{id}/listKeys?api-version=2025-01-01"), Some(json!({})), &[])
        .await
        .body;
    let key = STANDARD.decode(keys["keys"][0]["value"].as_str().unwrap()).unwrap();
    let other = Storage { azure: storage.azure.clone(), key };
    let (files, blobs) = ("acct2.file.core.windows.net", "acct2.blob.core.windows.net");
    other.signed("PUT", &format!("{files}/s02?restype=share"), &[], b"").await.expect(201);
    other.signed("PUT", &format!("{blobs}/c02?restype=container"), &[], b"").await.expect(201);
    let to = format!("{files}/s02/to");
    other.signed("PUT", &to, &[("x-ms-content-length", "6")], b"").await.expect(201);
    let source = format!("https://{FILE}/s01/from");
    let signed = format!("{source}?{token}");
    let copy = async |url: &str, source: &str, from: &str, range: &str| {
        let headers = [
            ("x-ms-write", "update"),
            ("x-ms-range", range),
            ("x-ms-source-range", from),
            ("x-ms-copy-source", source),
        ];
        other.signed("PUT", url, &headers, b"").await
    };
    let part = format!("{to}?comp=range");
    let none = format!("https://{FILE}/s01/none?{token}");
    for (source, from, range, expected) in [
        (&signed, "bytes=4-6", "bytes=1-3", None),
        (&source, "bytes=4-6", "bytes=1-3", Some((403, "CannotVerifyCopySource"))),
        (&none, "bytes=4-6", "bytes=1-3", Some((404, "CannotVerifyCopySource"))),
        (&signed, "bytes=4-6", "bytes=1-2", Some((400, "InvalidHeaderValue"))),
        (&signed, "bytes=10-12", "bytes=1-3", Some((416, "InvalidRange"))),
        (&signed, "bytes=4-6", "bytes=4-6", Some((416, "InvalidRange"))),
    ] {
        let answer = copy(&part, source, from, range).await;
        match expected {
            None => drop(answer.expect(201)),
            Some((status, code)) => drop(answer.refused(status, code)),
        }
    }
    assert_eq!(other.signed("GET", &to, &[], b"").await.body, "\x00456\0\0");
    // Within an account, the key that writes may read.
    let own = format!("{FILE}/s01/own");
    storage.signed("PUT", &own, &[("x-ms-content-length", "3")], b"").await.expect(201);
    let headers = [
        ("x-ms-write", "update"),
        ("x-ms-range", "bytes=0-2"),
        ("x-ms-source-range", "bytes=7-9"),
        ("x-ms-copy-source", &source),
    ];
    storage.signed("PUT", &format!("{own}?comp=range"), &headers, b"").await.expect(201);
    assert_eq!(storage.signed("GET", &own, &[], b"").await.body, "789");
    // Blobs take bytes of files, as whole blobs, as blocks, and as copies.
    let kind = ("x-ms-blob-type", "BlockBlob");
    let whole = format!("{blobs}/c02/whole");
    other.signed("PUT", &whole, &[kind, ("x-ms-copy-source", &signed)], b"").await.expect(201);
    let copied = format!("{blobs}/c02/copied");
    let answer = other.signed("PUT", &copied, &[("x-ms-copy-source", &signed)], b"").await.expect(202);
    assert_eq!(answer.header("x-ms-copy-status"), "success");
    let blocks = format!("{blobs}/c02/blocks");
    let headers = [("x-ms-copy-source", signed.as_str()), ("x-ms-source-range", "bytes=2-3")];
    other.signed("PUT", &format!("{blocks}?comp=block&blockid=YQ=="), &headers, b"").await.expect(201);
    let list = b"<BlockList><Latest>YQ==</Latest></BlockList>";
    other.signed("PUT", &format!("{blocks}?comp=blocklist"), &[], list).await.expect(201);
    for (url, expected) in [(&whole, "0123456789"), (&copied, "0123456789"), (&blocks, "23")] {
        assert_eq!(other.signed("GET", url, &[], b"").await.body, expected, "{url}");
    }
}

/// A file that a machine writes into the folder of a share is seen by the data plane, and the other way round.
#[tokio::test(start_paused = true)]
async fn the_folder_of_a_share_and_its_contents_are_one() {
    let storage = Storage::new().await;
    let folder = tempfile::tempdir().unwrap();
    let folders = azure_simulator::ShareFolders::new(folder.path().to_owned());
    storage.azure.attach(folders.clone());
    let url = |rest: &str| format!("{FILE}/share1{rest}");
    storage.signed("PUT", &url("?restype=share"), &[], b"").await.expect(201);
    let share = folders.share("acct1", "share1");

    storage.signed("PUT", &url("/folder?restype=directory"), &[], b"").await.expect(201);
    let new = [("x-ms-type", "file"), ("x-ms-content-length", "5")];
    storage.signed("PUT", &url("/folder/a.txt"), &new, b"").await.expect(201);
    let range = [("x-ms-write", "update"), ("x-ms-range", "bytes=0-4")];
    storage.signed("PUT", &url("/folder/a.txt?comp=range"), &range, b"hello").await.expect(201);
    assert_eq!(std::fs::read(share.join("folder/a.txt")).unwrap(), b"hello");

    std::fs::write(share.join("folder/b.txt"), b"from a machine").unwrap();
    std::fs::write(share.join("folder/a.txt"), b"changed").unwrap();
    assert_eq!(
        storage.signed("GET", &url("/folder/b.txt"), &[], b"").await.expect(200).body,
        "from a machine"
    );
    assert_eq!(storage.signed("GET", &url("/folder/a.txt"), &[], b"").await.expect(200).body, "changed");
    let listed =
        storage.signed("GET", &url("/folder?restype=directory&comp=list"), &[], b"").await.expect(200).body;
    assert!(listed.contains("<Name>a.txt</Name>") && listed.contains("<Name>b.txt</Name>"), "{listed}");

    std::fs::remove_file(share.join("folder/a.txt")).unwrap();
    storage.signed("GET", &url("/folder/a.txt"), &[], b"").await.refused(404, "ResourceNotFound");
    storage.signed("DELETE", &url("/folder/b.txt"), &[], b"").await.expect(202);
    assert!(!share.join("folder/b.txt").exists());
    storage.signed("DELETE", &url("/folder?restype=directory"), &[], b"").await.expect(202);
    assert!(!share.join("folder").exists());
}

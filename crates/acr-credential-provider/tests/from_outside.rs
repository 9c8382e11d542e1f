//! The program as a kubelet runs it, against simulated registries, Entra and metadata under Azure's own names. The test
//! verifies its output by pulling an image with it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use acr_credential_provider::command_line::CommandLine;
use acr_credential_provider::identity_binding::BindingFlags;
use acr_credential_provider::{CALL_TIMEOUT, PluginEnvironment, answer, image};
use arm::{ProxySettings, Transport, TransportOptions};
use azure_simulator::entra::{Application, FederatedCredential, RegisteredCertificate};
use azure_simulator::imds::ManagedIdentity;
use azure_simulator::registry::Registry;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use certificate_authority::CertificateAuthority;
use clock::Clock;
use serde_json::{Value, json};
use simulated_cluster::{HostedRegistries, HostedRegistriesOptions};
use tokio::io::AsyncWriteExt as _;
use tokio_util::sync::CancellationToken;

const TENANT: &str = "72f988bf-0000-4000-8000-000000000001";
const IMAGE: &str = "foo.azurecr.io/team/app:v1";
const TOKEN_USER: &str = "00000000-0000-0000-0000-000000000000";
const SECRET: &str = "hunter2~the~secret";
const MANAGED_CLIENT: &str = "0dd0c11e-0000-4000-8000-000000000005";
const MANAGED_ID: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/puller";
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../arm/tests/data/client.pem");

struct World {
    hosted: HostedRegistries,
    files: tempfile::TempDir,
    stop: CancellationToken,
}

struct Outcome {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A service account's token. The directory has no key of the cluster, and then checks everything but the signature.
fn service_account_token() -> String {
    let expiry = Clock::system().now().as_second() + 3600;
    let claims = json!({
        "iss": "https://cluster.example", "sub": "system:serviceaccount:team:app",
        "aud": FederatedCredential::AUDIENCE, "exp": expiry,
    });
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.c2lnbmF0dXJl", part(json!({ "alg": "RS256", "typ": "JWT" })), part(claims))
}

fn pods_trust() -> FederatedCredential {
    FederatedCredential {
        issuer: "https://cluster.example".into(),
        subject: "system:serviceaccount:team:app".into(),
        audience: FederatedCredential::AUDIENCE.into(),
        keys: Vec::new(),
    }
}

fn request(image: &str) -> Value {
    json!({
        "kind": "CredentialProviderRequest",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "image": image,
    })
}

/// A request for a pod whose service account has these annotations.
fn request_of_pod(image: &str, annotations: &[(&str, &str)]) -> Value {
    let mut request = request(image);
    request["serviceAccountToken"] = service_account_token().into();
    request["serviceAccountAnnotations"] =
        annotations.iter().copied().collect::<BTreeMap<_, _>>().into_iter().collect();
    request
}

const ANNOTATIONS: [(&str, &str); 2] =
    [("kubernetes.azure.com/acr-client-id", "pod-client"), ("kubernetes.azure.com/acr-tenant-id", TENANT)];

impl World {
    async fn start() -> Self {
        arm::install_crypto_provider();
        let files = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        let certificate = std::fs::read_to_string(CERTIFICATE).unwrap();
        let certificate = RegisteredCertificate::from_pem(&certificate).unwrap();
        let manifest = json!({ "schemaVersion": 2, "layers": [] });
        let registry = |name: &str| Registry::new(name).with_image("team/app", "v1", &manifest, &[]);
        let identity = |client: &str, object: &str, resource: Option<&str>| ManagedIdentity {
            client_id: client.into(),
            object_id: object.into(),
            resource_id: resource.map(|id| id.parse().unwrap()),
        };
        let pullers = ["own", "assigned", "pod", "app", "certified"];
        let first =
            pullers.iter().fold(registry("foo.azurecr.io"), |first, puller| first.with_puller(puller));
        let options = HostedRegistriesOptions {
            tenant: TENANT.into(),
            applications: vec![
                Application::new("app-client", "app").with_secret(SECRET).with_federated(pods_trust()),
                Application::new("pod-client", "pod").with_federated(pods_trust()),
                Application::new("certified-client", "certified").with_certificate(certificate),
            ],
            identities: vec![
                identity("own-client", "own", None),
                identity(MANAGED_CLIENT, "assigned", Some(MANAGED_ID)),
            ],
            registries: vec![
                first,
                registry("abc.azurecr.io").with_puller("own"),
                registry("private.azurecr.io"),
                registry("my-reg-a1b2.azurecr.io").with_puller("own"),
            ],
            clock: Arc::new(|| Clock::system().now()),
            directory: files.path().to_owned(),
        };
        let hosted = HostedRegistries::start(options, &stop).await.unwrap();
        Self { hosted, files, stop }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.hosted.environment().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    async fn run(&self, config: &Value, arguments: &[&str], request: &Value) -> Outcome {
        let config = self.write("azure.json", &config.to_string());
        let config = config.to_str().unwrap();
        self.run_with(&[&[config], arguments].concat(), &request.to_string()).await
    }

    async fn run_with(&self, arguments: &[&str], input: &str) -> Outcome {
        let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_acr-credential-provider"))
            .args(arguments)
            .env_clear()
            .envs(self.hosted.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The program does not read its input if it refuses its command line.
        let _closed_pipe = child.stdin.take().unwrap().write_all(input.as_bytes()).await;
        let output = child.wait_with_output().await.unwrap();
        Outcome {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// A client like a container runtime: it pulls a manifest with a user and a password.
    async fn pull(&self, image: &str, credentials: &Value) -> u16 {
        let (server, repository) = image.split_once('/').unwrap();
        let (repository, tag) = repository.rsplit_once(':').unwrap();
        let variable = |name: &str| self.variable(name);
        let transport = Transport::connect(TransportOptions {
            proxy: ProxySettings::from_environment(variable).unwrap(),
            extra_roots: vec![std::fs::read_to_string(&self.hosted.certificate_authority).unwrap()],
            ..TransportOptions::default()
        })
        .unwrap();
        let text = |name: &str| credentials[name].as_str().unwrap();
        let basic = STANDARD.encode(format!("{}:{}", text("username"), text("password")));
        let token =
            format!("https://{server}/oauth2/token?service={server}&scope=repository:{repository}:pull");
        let ask = http::Request::get(token).header("authorization", format!("Basic {basic}"));
        let answer = transport.send(ask.body(Bytes::new()).unwrap()).await.unwrap();
        if answer.status() != 200 {
            return answer.status().as_u16();
        }
        let token: Value = serde_json::from_slice(answer.body()).unwrap();
        let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());
        let manifest = format!("https://{server}/v2/{repository}/manifests/{tag}");
        let ask = http::Request::get(manifest).header("authorization", bearer);
        transport.send(ask.body(Bytes::new()).unwrap()).await.unwrap().status().as_u16()
    }
}

impl Outcome {
    /// The entries of a response that is cached for an hour.
    #[track_caller]
    fn entries(&self) -> BTreeMap<String, Value> {
        assert_eq!(self.code, 0, "{}", self.stderr);
        let response: Value = serde_json::from_str(&self.stdout).unwrap();
        assert_eq!(response["kind"], "CredentialProviderResponse");
        assert_eq!(response["apiVersion"], "credentialprovider.kubelet.k8s.io/v1");
        assert_eq!(
            (&response["cacheKeyType"], &response["cacheDuration"]),
            (&json!("Registry"), &json!("1h0m0s"))
        );
        let entries: BTreeMap<String, Value> = serde_json::from_value(response["auth"].clone()).unwrap();
        assert_eq!(entries["*.azurecr.*"], json!({ "username": "", "password": "" }));
        entries
    }

    /// The message of a refusal.
    #[track_caller]
    fn refusal(&self) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (1, ""), "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        &self.stderr
    }
}

fn managed(id: &str) -> Value {
    json!({ "cloud": "AzurePublicCloud", "tenantId": TENANT, "useManagedIdentityExtension": true, "userAssignedIdentityID": id })
}

fn password() -> Value {
    json!({ "cloud": "AzurePublicCloud", "tenantId": TENANT, "aadClientId": "app-client", "aadClientSecret": SECRET })
}

/// NODE-132
#[tokio::test]
async fn a_managed_identitys_token_pulls_the_image() {
    let world = World::start().await;
    for id in ["", MANAGED_CLIENT] {
        let outcome = world.run(&managed(id), &["-v=4"], &request(IMAGE)).await;
        let entries = outcome.entries();
        assert_eq!(entries.keys().collect::<Vec<_>>(), ["*.azurecr.*", "foo.azurecr.io"]);
        let credentials = &entries["foo.azurecr.io"];
        assert_eq!(credentials["username"], TOKEN_USER);
        assert_eq!(world.pull(IMAGE, credentials).await, 200, "{id}");
        assert!(outcome.stderr.contains("signs in to foo.azurecr.io"), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains(credentials["password"].as_str().unwrap()));
    }
    let requests = world.hosted.registries.requests();
    let programs: Vec<_> =
        requests.iter().filter(|seen| seen.user_agent == "kubernetes-credentialprovider-acr").collect();
    assert_eq!(programs.len(), 4, "a challenge and an exchange each: {requests:?}");
    let named = world.run(&managed(""), &[], &request("my-reg-a1b2.azurecr.io/team/app:v1")).await.entries();
    assert_eq!(world.pull("my-reg-a1b2.azurecr.io/team/app:v1", &named["my-reg-a1b2.azurecr.io"]).await, 200);
}

/// NODE-128
#[tokio::test]
async fn a_mirrored_image_gets_the_targets_credentials_under_both_names() {
    let world = World::start().await;
    let mirror = ["--registry-mirror=mcr.microsoft.com:abc.azurecr.io"];
    let image = "mcr.microsoft.com/team/app:v1";
    // The pod has a token, and yet the mirror is the node's.
    for request in [request(image), request_of_pod(image, &ANNOTATIONS)] {
        let entries = world.run(&managed(""), &mirror, &request).await.entries();
        assert_eq!(
            entries.keys().collect::<Vec<_>>(),
            ["*.azurecr.*", "abc.azurecr.io", "mcr.microsoft.com"]
        );
        assert_eq!(entries["abc.azurecr.io"], entries["mcr.microsoft.com"]);
        assert_eq!(world.pull("abc.azurecr.io/team/app:v1", &entries["mcr.microsoft.com"]).await, 200);
    }
}

/// NODE-128: the kubelet ignores keys that do not match the requested image, and pulls anonymously. The password of the
/// application is exchanged, because the runtime would send it to the source as well.
#[tokio::test]
async fn an_answer_fits_the_mirrored_image_that_was_asked_for() {
    let world = World::start().await;
    let federated = json!({
        "tenantId": TENANT, "aadClientId": "app-client", "aadClientSecret": SECRET,
        "useFederatedWorkloadIdentityExtension": true, "aadFederatedTokenFile": "/absent",
    });
    let sources = [
        ("ghcr.io:foo.azurecr.io", "ghcr.io/team/app", "ghcr.io"),
        ("ghcr.io:foo.azurecr.io", "ghcr.io/team/app:v1", "ghcr.io"),
        ("ghcr.io/team:foo.azurecr.io/team", "ghcr.io/team/app", "ghcr.io/team"),
        ("ghcr.io/:foo.azurecr.io/", "ghcr.io/team/app", "ghcr.io/"),
        ("docker.io:foo.azurecr.io", "docker.io/team/app@sha256:00", "docker.io"),
        // The kubelet compares ports as well.
        ("ghcr.io:foo.azurecr.io", "ghcr.io:443/team/app", "ghcr.io:443"),
    ];
    for config in [password(), federated, managed(MANAGED_CLIENT)] {
        for (mirror, image, key) in sources {
            let mirror = format!("--registry-mirror={mirror}");
            let outcome = world.run(&config, &[&mirror], &request(image)).await;
            let response: Value = serde_json::from_str(&outcome.stdout).expect(&outcome.stderr);
            let entries: BTreeMap<String, Value> = serde_json::from_value(response["auth"].clone()).unwrap();
            let fitting = entries.iter().filter(|(key, _)| image::fits(key, image));
            let fitting: Vec<&str> = fitting.map(|(key, _)| key.as_str()).collect();
            assert_eq!(fitting, [key], "{mirror} {image}");
            assert!(!outcome.stdout.contains(SECRET), "{mirror} {image}: the source would see the password");
            assert_eq!(world.pull(IMAGE, &entries[key]).await, 200, "{mirror} {image}");
        }
    }
    // Credentials for a part of a registry are not for its other parts: the kubelet caches them for the image only.
    let parts =
        "--registry-mirror=ghcr.io/team:foo.azurecr.io,ghcr.io/oss:abc.azurecr.io,quay.io:foo.azurecr.io";
    for (image, kept) in [("ghcr.io/team/app", "Image"), ("quay.io/team/app", "Registry")] {
        let outcome = world.run(&managed(MANAGED_CLIENT), &[parts], &request(image)).await;
        let response: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(response["cacheKeyType"], kept, "{image}");
    }
    // Without a password the source keeps its anonymous pulls.
    let anonymous =
        world.run(&json!({}), &["--registry-mirror=ghcr.io:foo.azurecr.io"], &request("ghcr.io/a")).await;
    assert!(anonymous.entries().values().all(|entry| entry["username"] == ""));
}

/// NODE-124
#[tokio::test]
async fn a_password_is_given_for_the_registries_of_all_clouds() {
    let world = World::start().await;
    let entries = world.run(&password(), &[], &request(IMAGE)).await.entries();
    let patterns = ["*.azurecr.*", "*.azurecr.cn", "*.azurecr.de", "*.azurecr.io", "*.azurecr.us"];
    assert_eq!(entries.keys().collect::<Vec<_>>(), patterns);
    for pattern in &patterns[1..] {
        assert_eq!(entries[*pattern], json!({ "username": "app-client", "password": SECRET }), "{pattern}");
    }
    assert_eq!(world.pull(IMAGE, &entries["*.azurecr.io"]).await, 200);
    assert!(
        world.hosted.registries.requests().iter().all(|seen| seen.user_agent.is_empty()),
        "nothing is asked"
    );
    let regional = world.run(&password(), &[], &request("foo.westeurope.geo.azurecr.io/a")).await.entries();
    assert_eq!(regional["foo.westeurope.geo.azurecr.io"], entries["*.azurecr.io"], "no pattern covers it");
    // An application without a password, and no application: registries that permit it are pulled from anonymously.
    for config in [json!({ "aadClientId": "app-client" }), json!({})] {
        let entries = world.run(&config, &[], &request(IMAGE)).await.entries();
        assert!(entries.values().all(|entry| *entry == json!({ "username": "", "password": "" })));
    }
}

/// NODE-210
#[tokio::test]
async fn variables_of_other_programs_change_nothing() {
    let world = World::start().await;
    let config = world.write("azure.json", &password().to_string());
    let line = CommandLine { config_file: config.display().to_string(), ..CommandLine::default() };
    let variable = |name: &str| match name {
        "AZURE_CLIENT_ID" | "AZURE_CLIENT_SECRET" | "AZURE_TENANT_ID" => Some("another's".to_owned()),
        "AZURE_FEDERATED_TOKEN_FILE" => Some("/absent".to_owned()),
        _ => world.variable(name),
    };
    let environment = PluginEnvironment {
        variable: &variable,
        cluster_authority: Path::new("/absent.crt"),
        extra_roots: vec![std::fs::read_to_string(&world.hosted.certificate_authority).unwrap()],
        redirects: Vec::new(),
        log: &|_, _| {},
    };
    let response = answer(&line, request(IMAGE).to_string().as_bytes(), &environment).await.unwrap();
    let response: Value = serde_json::from_str(&response.to_json()).unwrap();
    assert_eq!(response["auth"]["*.azurecr.io"], json!({ "username": "app-client", "password": SECRET }));
}

/// NODE-125
#[tokio::test]
async fn images_of_other_registries_get_nothing() {
    let world = World::start().await;
    for (config, image, arguments) in [
        (password(), "busybox", &[][..]),
        (managed(""), "docker.io/library/busybox:latest", &[]),
        (managed(""), "foo.azurecr.io.example/a", &[]),
        (managed(""), "mcr.microsoft.com/a", &["-r", "mcr.microsoft.com:registry.example"]),
    ] {
        let outcome = world.run(&config, arguments, &request(image)).await;
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let expected = "{\"kind\":\"CredentialProviderResponse\",\"apiVersion\":\"credentialprovider.kubelet.k8s.io/v1\",\
                        \"cacheKeyType\":\"Registry\",\"cacheDuration\":\"0s\"}\n";
        assert_eq!(outcome.stdout, expected, "{image}");
    }
    assert!(world.hosted.registries.requests().is_empty());
}

/// NODE-129, NODE-136
#[tokio::test]
async fn a_pods_token_pulls_as_the_pods_client() {
    let world = World::start().await;
    for config in [managed(""), password()] {
        let entries = world.run(&config, &[], &request_of_pod(IMAGE, &ANNOTATIONS)).await.entries();
        assert_eq!(entries.keys().collect::<Vec<_>>(), ["*.azurecr.*", "foo.azurecr.io"]);
        assert_eq!(entries["foo.azurecr.io"]["username"], TOKEN_USER);
        assert_eq!(world.pull(IMAGE, &entries["foo.azurecr.io"]).await, 200);
    }
    // An image that the node may pull and the pod may not stays out of reach.
    let abc = "abc.azurecr.io/team/app:v1";
    assert_eq!(world.run(&managed(""), &[], &request(abc)).await.code, 0);
    let refused = world.run(&managed(""), &[], &request_of_pod(abc, &ANNOTATIONS)).await;
    let text = refused.refusal();
    assert!(
        text.contains("service account token for client pod-client") && text.contains("AcrPull"),
        "{text}"
    );
}

/// NODE-205
#[tokio::test]
async fn certificates_and_token_files_sign_in_too() {
    let world = World::start().await;
    let token = world.write("token", &service_account_token());
    for config in [
        json!({ "tenantId": TENANT, "aadClientId": "certified-client", "aadClientCertPath": CERTIFICATE }),
        json!({
            "tenantId": TENANT, "aadClientId": "app-client", "aadFederatedTokenFile": token,
            "useFederatedWorkloadIdentityExtension": true,
        }),
    ] {
        let entries = world.run(&config, &[], &request(IMAGE)).await.entries();
        assert_eq!(world.pull(IMAGE, &entries["foo.azurecr.io"]).await, 200, "{config}");
    }
}

/// NODE-132
#[tokio::test]
async fn a_machines_metadata_is_asked_where_azure_has_it() {
    let world = World::start().await;
    let config = world.write("azure.json", &managed(MANAGED_ID).to_string());
    let line = CommandLine { config_file: config.display().to_string(), ..CommandLine::default() };
    let environment = PluginEnvironment {
        variable: &|name| world.variable(name),
        cluster_authority: Path::new("/absent.crt"),
        extra_roots: vec![std::fs::read_to_string(&world.hosted.certificate_authority).unwrap()],
        redirects: vec![("169.254.169.254".to_owned(), world.hosted.metadata.clone())],
        log: &|_, _| {},
    };
    let response = answer(&line, request(IMAGE).to_string().as_bytes(), &environment).await.unwrap();
    let response: Value = serde_json::from_str(&response.to_json()).unwrap();
    assert_eq!(world.pull(IMAGE, &response["auth"]["foo.azurecr.io"]).await, 200);
}

/// NODE-204
#[tokio::test]
async fn an_identity_binding_exchanges_the_pods_token() {
    let world = World::start().await;
    let config = world.write("azure.json", &managed("").to_string());
    let authority = std::fs::read_to_string(&world.hosted.certificate_authority).unwrap();
    let empty = world.write("empty.crt", "");
    let variable = |name: &str| world.variable(name);
    let run = async |client: &str, cluster_authority: &Path| {
        let line = CommandLine {
            config_file: config.display().to_string(),
            binding: BindingFlags {
                // No resolver has this name. The port belongs to the test: in a cluster it is that of HTTPS.
                sni_name: format!("private.azurecr.io:{}", world.hosted.https.port()),
                default_client_id: client.to_owned(),
                api_server: "127.0.0.1".to_owned(),
                ..BindingFlags::default()
            },
            ..CommandLine::default()
        };
        let environment = PluginEnvironment {
            variable: &variable,
            cluster_authority,
            extra_roots: vec![authority.clone()],
            redirects: Vec::new(),
            log: &|_, _| {},
        };
        let input = request_of_pod(IMAGE, &[]).to_string();
        answer(&line, input.as_bytes(), &environment).await
    };
    let trusted = &world.hosted.certificate_authority;
    let response: Value = serde_json::from_str(&run("pod-client", trusted).await.unwrap().to_json()).unwrap();
    assert_eq!(world.pull(IMAGE, &response["auth"]["foo.azurecr.io"]).await, 200);
    for (client, authority, words) in [
        ("stranger", trusted.as_path(), "token request failed with status 400: "),
        ("pod-client", Path::new("/absent.crt"), "CA file /absent.crt: cannot be read"),
        ("pod-client", &empty, "holds no certificate"),
        ("", trusted, "set --ib-default-client-id"),
    ] {
        let error = run(client, authority).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// NODE-212
#[tokio::test(start_paused = true)]
async fn who_never_answers_is_named_before_the_kubelet_loses_patience() {
    let files = tempfile::tempdir().unwrap();
    let config = files.path().join("azure.json");
    std::fs::write(&config, managed("").to_string()).unwrap();
    // It accepts connections and never answers, as metadata service and as a proxy to everything else.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let line = CommandLine { config_file: config.display().to_string(), ..CommandLine::default() };
    let environment = PluginEnvironment {
        variable: &|name| (name == "HTTPS_PROXY").then(|| url.clone()),
        cluster_authority: Path::new("/absent.crt"),
        extra_roots: vec![CertificateAuthority::generate().unwrap().certificate_pem().to_owned()],
        redirects: vec![("169.254.169.254".to_owned(), url.clone())],
        log: &|_, _| {},
    };
    let begun = tokio::time::Instant::now();
    let input = request(IMAGE).to_string();
    let error = answer(&line, input.as_bytes(), &environment).await.unwrap_err().to_string();
    assert!(begun.elapsed() <= CALL_TIMEOUT, "{:?}", begun.elapsed());
    assert!(error.contains("managed identity") || error.contains("foo.azurecr.io"), "{error}");
}

/// NODE-132, NODE-134
#[tokio::test]
async fn refusals_say_who_refused_and_what_to_do() {
    let world = World::start().await;
    let unknown = managed("99999999-0000-4000-8000-000000000009");
    for (config, request, words) in [
        (managed(""), request("private.azurecr.io/a"), "oauth2/exchange responded with status code 401: "),
        (
            managed(""),
            request("private.azurecr.io/a"),
            "system-assigned managed identity) needs the role AcrPull",
        ),
        // No registry has that port.
        (managed(""), request("foo.azurecr.io:444/a"), "oauth2/exchange responded with status code 404: "),
        // The certificate is for the existing registries.
        (
            managed(""),
            request("absent.azurecr.io/a"),
            "error reaching registry endpoint https://absent.azurecr.io/v2/",
        ),
        (unknown, request(IMAGE), "Identity not found"),
        (managed(""), request_of_pod(IMAGE, &ANNOTATIONS[..1]), "tenant id annotation"),
        (
            json!({ "useManagedIdentityExtension": "yes" }),
            request(IMAGE),
            "useManagedIdentityExtension=\"yes\": ",
        ),
        (
            managed(""),
            json!({ "kind": "CredentialProviderRequest", "apiVersion": "credentialprovider.kubelet.k8s.io/v1beta1", "image": IMAGE }),
            "group version credentialprovider.kubelet.k8s.io/v1beta1 is not supported",
        ),
    ] {
        let outcome = world.run(&config, &[], &request).await;
        let text = outcome.refusal();
        assert!(text.contains(words), "{words}: {text}");
        assert!(!text.contains(SECRET) && !text.contains("eyJ"), "no token, no secret: {text}");
    }
    for (arguments, words) in [
        (&[][..], "config file is not specified"),
        (&["/absent/azure.json"], "failed to load config: /absent/azure.json: No such file"),
        (&["a", "b"], "expected exactly one argument (config file); got: a b"),
        (&["a", "--nonsense"], "unknown flag: --nonsense"),
        (&["a", "--ib-sni-name=https://x"], "must not contain protocol prefix"),
    ] {
        let outcome = world.run_with(arguments, &request(IMAGE).to_string()).await;
        assert!(outcome.refusal().contains(words), "{}", outcome.stderr);
    }
}

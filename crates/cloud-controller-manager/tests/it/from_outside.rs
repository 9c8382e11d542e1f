//! The built program over the corpora, against a simulated cluster: accepted inputs run, with and without a proxy in
//! the environment; without the simulated Azure's certificate authority it reports that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use azure_simulator::packet::{AlwaysHealthy, Hop, Packet, Protocol, Source, trace};
use azure_simulator::{Fault, FaultAction, Options};
use k8s::api::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};
use simulated_cluster::{HostedCluster, HostedOptions, Shape};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

pub async fn hosted(directory: &Path, stop: &CancellationToken) -> HostedCluster {
    hosted_as(Shape::default(), directory, stop).await
}

async fn hosted_as(shape: Shape, directory: &Path, stop: &CancellationToken) -> HostedCluster {
    let start = jiff::Timestamp::from_second(1_760_000_000).unwrap();
    let options = HostedOptions::of(shape, Options { seed: 7, start, ..Options::default() }, directory);
    HostedCluster::start(options, stop).await.unwrap()
}

/// Writes a cloud configuration into a Secret of `kube-system`, in place of an earlier one.
pub async fn keep_in_secret(cluster: &HostedCluster, name: &str, document: &str) {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"cloud-config": document},
    });
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), "kube-system");
    let applied = PatchParams::apply("test").force();
    secrets.patch(name, &applied, &Patch::Apply(&secret)).await.unwrap();
}

/// A proxy without a listener, and exceptions as users write them.
const PROXY: [(&str, &str); 2] =
    [("HTTPS_PROXY", "http://user:hunter2@127.0.0.1:9"), ("NO_PROXY", ".svc,10.0.0.0/8, ,localhost,")];

/// Ends by itself within a minute: the arguments contain `--dry-run`, or the program refuses them.
async fn run(arguments: &[String], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_azure-cloud-controller-manager"));
    command.args(arguments).env_clear().envs(environment.iter().copied()).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await.unwrap().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains("panicked") && !text.contains("hunter2"), "{text}");
    (output.status.code(), text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_command_lines_run_with_and_without_a_proxy_and_say_which_authority_is_missing() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let cluster = hosted(folder.path(), &stop).await;
    let files = &cluster.files;
    let authority = files.certificate_authority.to_str().unwrap().to_owned();
    // Some command lines name this Secret.
    keep_in_secret(&cluster, "azure-cloud-config", &std::fs::read_to_string(&files.azure_json).unwrap())
        .await;
    let overrides = [
        format!("--cloud-config={}", files.azure_json.display()),
        format!("--kubeconfig={}", files.kubeconfig.display()),
        "--master=".to_owned(),
        "--dry-run".to_owned(),
    ];
    let mut accepted = 0;
    for file in corpus("command-lines") {
        let case = std::fs::read_to_string(&file).unwrap();
        if case.contains("\nrefused: ") {
            continue;
        }
        accepted += 1;
        let given = case.lines().filter_map(|line| line.strip_prefix("argument: ")).map(str::to_owned);
        let arguments: Vec<String> = given.chain(overrides.clone()).collect();
        for proxy in [&[][..], &PROXY] {
            let trusting: Vec<_> =
                proxy.iter().copied().chain([("SSL_CERT_FILE", authority.as_str())]).collect();
            let (code, text) = run(&arguments, &trusting).await;
            assert_eq!(code, Some(0), "{}, {trusting:?}:\n{text}", file.display());
            let (code, text) = run(&arguments, proxy).await;
            assert_eq!(code, Some(1), "{}:\n{text}", file.display());
            assert!(text.contains("certificate"), "{}:\n{text}", file.display());
        }
    }
    assert!(accepted > 7, "{accepted}");
    stop.cancel();
}

/// NODE-055: the program does not start if the zones of its region cannot be read; a region may have none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_055_without_an_answer_about_zones_the_program_ends() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let cluster = hosted(folder.path(), &stop).await;
    let files = &cluster.files;
    let authority = [("SSL_CERT_FILE", files.certificate_authority.to_str().unwrap())];
    let (here, zoneless) = (files.azure_json.clone(), folder.path().join("zoneless.json"));
    let document = std::fs::read_to_string(&here).unwrap();
    let region = Shape::default().region;
    assert!(document.contains(&region), "{document}");
    std::fs::write(&zoneless, document.replace(&region, "northcentralus")).unwrap();
    let arguments = |config: &Path| {
        [
            format!("--cloud-config={}", config.display()),
            format!("--kubeconfig={}", files.kubeconfig.display()),
            "--dry-run".to_owned(),
        ]
    };
    for config in [&here, &zoneless] {
        let (code, text) = run(&arguments(config), &authority).await;
        assert_eq!(code, Some(0), "{text}");
    }
    let (code, message) = ("AuthorizationFailed".to_owned(), "no".to_owned());
    let refused = Fault::new(FaultAction::Fail { status: 403, code, message });
    cluster.azure.inject(Fault { path: Some("*/providers/Microsoft.Compute".to_owned()), ..refused });
    let (code, text) = run(&arguments(&here), &authority).await;
    assert_eq!(code, Some(1), "{text}");
    let words = "cannot read the availability zones of the region";
    assert!(text.contains(words) && text.contains("AuthorizationFailed"), "{text}");
    stop.cancel();
}

/// The connection settings of the simulated cluster, merged over a document.
fn laid_over(document: &str, over: &Map<String, Value>) -> String {
    match serde_json::from_str::<Value>(document.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(mut object)) => {
            object.extend(over.clone());
            Value::Object(object).to_string()
        }
        // YAML, in which the last of two equal keys counts.
        _ => over.iter().fold(document.to_owned(), |text, (key, value)| format!("{text}\n{key}: {value}\n")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepted_configurations_run_with_all_of_their_other_keys() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let cluster = hosted(folder.path(), &stop).await;
    let files = &cluster.files;
    let text = std::fs::read_to_string(&files.azure_json).unwrap();
    let Value::Object(mut over) = serde_json::from_str::<Value>(&text).unwrap() else { panic!("{text}") };
    for key in [
        "networkResourceSubscriptionID",
        "vnetResourceGroup",
        "securityGroupResourceGroup",
        "loadBalancerResourceGroup",
        "aadClientCertPath",
        "aadClientCertPassword",
    ] {
        over.insert(key.to_owned(), "".into());
    }
    for key in ["useManagedIdentityExtension", "useFederatedWorkloadIdentityExtension"] {
        over.insert(key.to_owned(), false.into());
    }
    let mut accepted = 0;
    for file in corpus("azure-json") {
        let outcome = std::fs::read_to_string(file.with_extension("txt")).unwrap();
        let Ok(document) = std::fs::read_to_string(&file) else { continue };
        // A flow mapping with a trailing comma cannot be appended to.
        let flow = document.starts_with('{') && serde_json::from_str::<Value>(&document).is_err();
        if file.extension().is_some_and(|extension| extension == "txt")
            || outcome.contains("\nrefused: ")
            || flow
        {
            continue;
        }
        accepted += 1;
        let path = folder.path().join("tried.json");
        std::fs::write(&path, laid_over(&document, &over)).unwrap();
        // Of several load balancers one bears the cluster's name.
        let several = serde_json::from_str::<Value>(&document).unwrap_or_default();
        let first = several.pointer("/multipleStandardLoadBalancerConfigurations/0/name");
        let arguments = [
            format!("--cloud-config={}", path.display()),
            format!("--kubeconfig={}", files.kubeconfig.display()),
            format!("--cluster-name={}", first.and_then(Value::as_str).unwrap_or("kubernetes")),
            "--dry-run".to_owned(),
        ];
        let authority = files.certificate_authority.to_str().unwrap();
        let (code, text) = run(&arguments, &[("SSL_CERT_FILE", authority)]).await;
        assert_eq!(code, Some(0), "{}:\n{text}", file.display());
    }
    assert!(accepted > 20, "{accepted}");
    stop.cancel();
}

const AZURE_JSON: &str = r#"{"tenantId": "t", "subscriptionId": "s", "resourceGroup": "g", "location": "westeurope",
                           "useManagedIdentityExtension": true}"#;

#[tokio::test]
async fn each_refusal_stands_on_a_line_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("azure.json");
    let refused =
        "\"s\", \"loadBalancerSku\": \"premium\", \"preConfiguredBackendPoolLoadBalancerTypes\": \"some\"";
    let document = AZURE_JSON.replace("\"s\"", refused);
    std::fs::write(&path, document).unwrap();
    let arguments = [
        format!("--cloud-config={}", path.display()),
        "--cloud-provider=aws".to_owned(),
        "--concurrent-service-syncs=2".to_owned(),
    ];
    let (code, text) = run(&arguments, &[]).await;
    assert_eq!(code, Some(1), "{text}");
    let heads: Vec<&str> =
        text.lines().map(|line| line.split_once(": ").map_or(line, |(head, _)| head)).collect();
    let second = format!("{} is refused:", path.display());
    let expected = [
        "azure-cloud-controller-manager",
        "  --cloud-provider=aws",
        "  --concurrent-service-syncs=2",
        &second,
        "  loadBalancerSku=premium",
        "  preConfiguredBackendPoolLoadBalancerTypes=some",
    ];
    assert_eq!(heads, expected, "{text}");
    assert!(text.starts_with("azure-cloud-controller-manager: the command line is refused:\n"), "{text}");
}

/// LB-221: of several load balancers one bears the cluster's name. A missing one is reported before any request is
/// sent.
#[tokio::test]
async fn lb_221_a_list_without_the_clusters_name_ends_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("azure.json");
    let several = r#""s", "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "multipleStandardLoadBalancerConfigurations": [{"name": "lb1", "primaryVMSet": "a"}]"#;
    std::fs::write(&path, AZURE_JSON.replace("\"s\"", several)).unwrap();
    let arguments = [format!("--cloud-config={}", path.display()), "--cluster-name=prod".to_owned()];
    let (code, text) = run(&arguments, &[]).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("no configuration named \"prod\"") && text.contains("--cluster-name"), "{text}");
}

#[tokio::test]
async fn a_dead_proxy_is_named_and_the_library_says_nothing_beside() {
    let folder = tempfile::tempdir().unwrap();
    let (config, kubeconfig) = (folder.path().join("azure.json"), folder.path().join("kubeconfig"));
    std::fs::write(&config, AZURE_JSON).unwrap();
    let text = "{current-context: a, contexts: [{name: a, context: {cluster: a}}], \
                clusters: [{name: a, cluster: {server: 'https://kube.example:6443'}}]}";
    std::fs::write(&kubeconfig, text).unwrap();
    let arguments = [
        format!("--cloud-config={}", config.display()),
        format!("--kubeconfig={}", kubeconfig.display()),
        "--dry-run".to_owned(),
    ];
    let (code, text) = run(&arguments, &PROXY).await;
    assert_eq!(code, Some(1), "{text}");
    let words =
        "https://kube.example:6443/ through the proxy http://127.0.0.1:9 of HTTPS_PROXY cannot be reached";
    assert!(text.contains(words) && !text.contains("builder.rs"), "{text}");
}

/// Runs the program like the upstream chart with pod CIDRs, except for addresses and files.
fn with_pod_ranges(cluster: &HostedCluster, more: &[&str]) -> Child {
    let files = &cluster.files;
    let arguments = [
        "--allocate-node-cidrs=true".to_owned(),
        format!("--cloud-config={}", files.azure_json.display()),
        format!("--cluster-cidr={}", Shape::PODS_V4),
        format!("--kubeconfig={}", files.kubeconfig.display()),
        "--leader-elect=true".to_owned(),
        "--route-reconciliation-period=10s".to_owned(),
        "--secure-port=0".to_owned(),
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_azure-cloud-controller-manager"));
    command.args(arguments).args(more).env_clear().env("SSL_CERT_FILE", &files.certificate_authority);
    command.kill_on_drop(true).spawn().unwrap()
}

/// A node's name, its range, and status and reason of its condition NetworkUnavailable.
type Networked = (String, String, String);

/// The cluster's three nodes, as soon as all are as expected.
async fn until_nodes(cluster: &HostedCluster, is_done: impl Fn(&Networked) -> bool) -> Vec<Networked> {
    let kubernetes = cluster.kubernetes.clone().unwrap();
    let nodes = || -> Vec<Networked> {
        let node = |node: &Value| {
            let text =
                |pointer: &str| node.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let network =
                conditions.into_iter().find(|c| c["type"] == "NetworkUnavailable").unwrap_or_default();
            let said = format!("{} {}", network["status"], network["reason"]).replace('"', "");
            (text("/metadata/name"), text("/spec/podCIDR"), said)
        };
        kubernetes.list("Node").iter().map(|object| node(object.value())).collect()
    };
    let done = async {
        loop {
            let now = nodes();
            if now.len() == 3 && now.iter().all(&is_done) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(60), done).await;
    done.unwrap_or_else(|_| panic!("{:?}", nodes()))
}

/// NODE-112: with `--cidr-allocator-type=CloudAllocator` the program assigns ranges of the size in a scale set's tags.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_112_tags_of_scale_sets_say_how_large_ranges_are() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let shape = Shape::default();
    let cluster = hosted_as(shape.clone(), folder.path(), &stop).await;
    let tags = json!({"kubernetesNodeCIDRMaskIPV4": "26"});
    cluster.azure.edit(&shape.scale_set("workers"), |document| document["tags"] = tags).unwrap();
    // A node's set is identified by its provider ID, which the node controller sets here.
    let more = ["--cidr-allocator-type=CloudAllocator", "--configure-cloud-routes=false"];
    let mut program = with_pod_ranges(&cluster, &more);
    let nodes = until_nodes(&cluster, |(_, range, _)| !range.is_empty()).await;
    assert!(nodes.iter().all(|(_, range, _)| range.ends_with("/26")), "{nodes:?}");
    program.kill().await.unwrap();
    stop.cancel();
}

/// The upstream chart's own arguments, except for addresses and files: nodes get ranges and routes, report them, and
/// pods answer from other nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_charts_arguments_give_pods_ranges_and_routes() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let shape = Shape { route_table: Some("routes".to_owned()), ..Shape::default() };
    let cluster = hosted_as(shape.clone(), folder.path(), &stop).await;
    let mut program =
        with_pod_ranges(&cluster, &["--configure-cloud-routes=true", "--controllers=*,-cloud-node"]);
    let served = until_nodes(&cluster, |(.., said)| said == "False RouteCreated").await;
    let table = cluster.azure.document(&shape.route_table().unwrap()).unwrap();
    assert_eq!(table["properties"]["routes"].as_array().unwrap().len(), 3, "{table:#}");
    for (from, ..) in &served {
        for (to, range, _) in served.iter().filter(|(to, ..)| to != from) {
            let range: ipnet::IpNet = range.parse().unwrap();
            let pod = range.hosts().nth(4).unwrap();
            let packet = Packet::new(Source::node(from), pod, 8080, Protocol::Tcp);
            let verdict = trace(&cluster.azure, &AlwaysHealthy, &packet);
            let arrived = verdict.hops.iter().find_map(|hop| match hop {
                Hop::Arrived { node, .. } => Some(node.to_lowercase()),
                _ => None,
            });
            assert_eq!(arrived.as_deref(), Some(to.as_str()), "{verdict:?}");
        }
    }
    program.kill().await.unwrap();
    stop.cancel();
}

/// NODE-265, NODE-266, NODE-267: obstacles to routes for pods are reported before anything is written, by a normal run
/// as well as by a preview.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_265_node_266_node_267_what_azure_says_against_routes_is_said_at_start() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let shape = Shape { route_table: Some("routes".to_owned()), ..Shape::default() };
    let cluster = hosted_as(shape, folder.path(), &stop).await;
    let files = &cluster.files;
    let authority = [("SSL_CERT_FILE", files.certificate_authority.to_str().unwrap())];
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&files.azure_json).unwrap()).unwrap();
    let path = folder.path().join("tried.json");
    let outcome = async |over: Value, more: &[&str]| {
        let Value::Object(over) = over else { panic!("{over}") };
        std::fs::write(&path, laid_over(&document.to_string(), &over)).unwrap();
        let mut arguments = vec![
            format!("--cloud-config={}", path.display()),
            format!("--kubeconfig={}", files.kubeconfig.display()),
            "--secure-port=0".to_owned(),
        ];
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        run(&arguments, &authority).await
    };
    let nodes = format!("--cluster-cidr={}", Shape::NODES_V4);
    let gives = "--allocate-node-cidrs=true";
    for dry in [&[][..], &["--dry-run"]] {
        let (code, text) = outcome(json!({}), &[&[nodes.as_str(), gives][..], dry].concat()).await;
        let words = format!("{nodes} is the range {} of the nodes' subnet nodes", Shape::NODES_V4);
        assert!(code == Some(1) && text.contains(&words) && text.contains("pass a range outside"), "{text}");
        let missing = json!({"routeTableResourceGroup": "no-such-group"});
        let (code, text) = outcome(missing, &[&["--cluster-cidr=10.244.0.0/16"][..], dry].concat()).await;
        let words = "routeTableResourceGroup=no-such-group: Azure has no such resource group (correct it";
        assert!(code == Some(1) && text.contains(words), "{text}");
    }
    // Without range assignment, or with room besides the subnet, there is a warning.
    let (code, text) = outcome(json!({}), &[&nodes, "--dry-run"]).await;
    assert!(code == Some(0) && text.contains("Warning: --cluster-cidr="), "{text}");
    let (code, text) = outcome(json!({}), &["--cluster-cidr=10.0.0.0/8", gives, "--dry-run"]).await;
    assert!(code == Some(0) && text.contains("no node gets a range there"), "{text}");
    let (code, text) =
        outcome(json!({"routeTableName": "nope"}), &["--cluster-cidr=10.244.0.0/16", "--dry-run"]).await;
    let words = "Warning: route table nope is not assigned to any subnet; subnet nodes has \"routes\"";
    assert!(code == Some(0) && text.contains(words), "{text}");
    // A subnet that cannot be read is no reason to refuse anything.
    let fault = FaultAction::Fail { status: 403, code: "AuthorizationFailed".into(), message: "no".into() };
    cluster.azure.inject(Fault { path: Some("*/subnets/nodes".to_owned()), ..Fault::new(fault) });
    let (code, text) = outcome(json!({}), &[&nodes, gives, "--dry-run"]).await;
    assert_eq!(code, Some(0), "{text}");
    stop.cancel();
}

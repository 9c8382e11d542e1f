//! Commands as a new user runs them: the program from outside, with its output and exit codes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const SERVICE: &str = "apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
";

fn refused() -> String {
    let annotation =
        "{name: bad, annotations: {service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout: \"3\"}}";
    SERVICE.replace("{name: web}", annotation)
}

fn cerulean() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cerulean"));
    command.env_remove("KUBECONFIG").env_remove("SSL_CERT_FILE");
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// A running `cerulean simulate`, or a demo that keeps running; it is killed at the end.
pub struct Simulation {
    process: Child,
    pub folder: PathBuf,
}

impl Simulation {
    /// Starts it and waits until it reports that it is ready.
    pub fn start(what: &str, folder: &Path) -> Self {
        Self::start_with(what, folder, &[])
    }

    fn start_with(what: &str, folder: &Path, more: &[&str]) -> Self {
        let mut process = cerulean()
            .args(["simulate", what, "--directory"])
            .arg(folder)
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ready = BufReader::new(process.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .any(|line| line == "Stop with Ctrl-C.");
        assert!(ready, "simulate {what} ended: {:?}", process.wait());
        Self { process, folder: folder.to_owned() }
    }

    /// Ends it as Ctrl-C does, and waits for the end.
    fn interrupt(mut self) {
        Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().unwrap();
        assert!(self.process.wait().unwrap().success());
    }

    /// Runs `cerulean plan` with manifests on standard input.
    fn plan(&self, manifests: &str, more: &[&str]) -> Output {
        let mut plan = cerulean()
            .arg("plan")
            .arg("--cloud-config")
            .arg(self.folder.join("azure.json"))
            .arg("--kubeconfig")
            .arg(self.folder.join("kubeconfig"))
            .args(more)
            .args(if manifests.is_empty() { &[][..] } else { &["-f", "-"] })
            .env("SSL_CERT_FILE", self.folder.join("ca.pem"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        plan.stdin.take().unwrap().write_all(manifests.as_bytes()).unwrap();
        plan.wait_with_output().unwrap()
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn plan_tells_changes_errors_and_refusals_by_its_exit_code() {
    let folder = folder();
    let cluster = Simulation::start("cluster", folder.path());
    let cases = [
        ("", 0, "No changes: Azure is as the cluster wants it."),
        // No controller manager runs: the nodes have no provider ID yet, and so no machine joins.
        (SERVICE, 2, "Plan: 2 to create, 1 to change, 0 to delete.\n"),
        (&refused(), 1, "Plan: 0 to create, 0 to change, 0 to delete; 1 Service refused.\n"),
        (&format!("{SERVICE}---\n{}", refused()), 1, "to delete; 1 Service refused.\n"),
        (&SERVICE.replace("Service", "Servce"), 1, "no matches for kind \"Servce\" in version \"v1\""),
        ("# nothing\n", 1, "there are no objects in what -f names"),
    ];
    for (manifests, code, words) in cases {
        let output = cluster.plan(manifests, &[]);
        assert_eq!(output.status.code(), Some(code), "{manifests}: {}", text(&output));
        assert!(text(&output).contains(words), "{manifests}: {}", text(&output));
    }
    assert_eq!(cluster.plan("", &["--bogus"]).status.code(), Some(1), "2 would mean changes");

    let json = cluster.plan(SERVICE, &["--output", "json"]);
    let plan: Value = serde_json::from_slice(&json.stdout).expect("nothing but JSON on standard output");
    assert_eq!(plan["summary"]["create"], 2);
    assert_eq!(plan["clusterName"], "kubernetes");
    assert_eq!(json.status.code(), Some(2));
}

#[test]
fn a_resource_group_that_does_not_exist_is_an_error_and_not_a_plan() {
    let folder = folder();
    let cluster = Simulation::start("cluster", folder.path());
    let path = folder.path().join("azure.json");
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["resourceGroup"] = "nowhere".into();
    std::fs::write(&path, config.to_string()).unwrap();
    let output = cluster.plan(SERVICE, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("resourceGroup") && text(&output).contains("nowhere"),
        "{}",
        text(&output)
    );
    assert!(output.stdout.is_empty(), "{}", text(&output));
}

#[test]
fn a_wrong_token_is_said_in_words() {
    let folder = folder();
    let cluster = Simulation::start("cluster", folder.path());
    let path = folder.path().join("kubeconfig");
    let config = std::fs::read_to_string(&path).unwrap();
    let lines = config.lines().map(|line| match line.trim_start().starts_with("token:") {
        true => "    token: \"wrong\"",
        false => line,
    });
    std::fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let output = cluster.plan("", &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    assert!(said.contains("does not know the credentials of the kubeconfig: Unauthorized"), "{said}");
    assert!(!said.contains('{'), "{said}");
}

#[test]
fn a_missing_file_of_authorities_is_named_with_its_variable() {
    let folder = folder();
    let cluster = Simulation::start("cluster", folder.path());
    std::fs::rename(folder.path().join("ca.pem"), folder.path().join("moved.pem")).unwrap();
    let output = cluster.plan("", &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    let named =
        format!("SSL_CERT_FILE={} cannot be read: No such file", folder.path().join("ca.pem").display());
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("cerulean: ") && last.contains(&named), "{said}");
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named_with_its_flag() {
    let folder = folder();
    let simulate = cerulean()
        .args(["simulate", "cluster", "--kubeconfig", "nofile", "--directory"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(text(&simulate), "cerulean: --kubeconfig nofile: No such file or directory (os error 2)\n");
}

#[test]
fn a_second_simulation_leaves_the_files_of_the_running_one_alone() {
    let folder = folder();
    let first = Simulation::start("kubernetes", folder.path());
    let kubeconfig = || std::fs::read_to_string(folder.path().join("kubeconfig")).unwrap();
    let before = kubeconfig();
    for what in ["cluster", "azure", "kubernetes"] {
        let second = cerulean().args(["simulate", what, "--directory"]).arg(folder.path()).output().unwrap();
        assert_eq!(second.status.code(), Some(1));
        let said = format!("another simulation (process {}) runs there", first.process.id());
        assert!(text(&second).contains(&said), "{}", text(&second));
    }
    assert_eq!(kubeconfig(), before);
    // Killed, not asked to end.
    drop(first);
    Simulation::start("cluster", folder.path());
}

#[test]
fn kubernetes_keeps_its_state_over_a_restart() {
    let folder = folder();
    let file = folder.path().join("state.json");
    let options = ["--state", file.to_str().unwrap()];
    let read = || -> Value { serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap() };
    let uid = |state: &Value| {
        let shelves = state["resources"].as_array().unwrap();
        let namespaces = shelves.iter().find(|shelf| shelf["resource"] == "namespaces").unwrap();
        namespaces["objects"]["default"]["metadata"]["uid"].as_str().unwrap().to_owned()
    };
    Simulation::start_with("kubernetes", folder.path(), &options).interrupt();
    let first = read();
    // Another seed would give other UIDs if the state were not restored.
    let again = [&options[..], &["--seed", "2"]].concat();
    Simulation::start_with("kubernetes", folder.path(), &again).interrupt();
    let second = read();
    assert_eq!(uid(&first), uid(&second));
    assert!(second["revision"].as_u64() > first["revision"].as_u64());

    std::fs::write(&file, "{}").unwrap();
    let mut command = cerulean();
    command.args(["simulate", "kubernetes", "--directory"]).arg(folder.path()).args(options);
    let output = command.output().unwrap();
    assert!(!output.status.success());
    assert!(text(&output).contains("holds no state that can be restored here"), "{}", text(&output));
}

/// The configuration of clients is unchanged after a restart, including the ports (U1).
#[test]
fn files_and_ports_are_the_same_after_a_restart() {
    for (what, files) in [
        ("azure", &["credentials.json", "ports.json", "authority/token-key"][..]),
        ("kubernetes", &["kubeconfig", "ports.json"]),
        ("cluster", &["endpoints.json", "kubeconfig", "azure.json", "ports.json"]),
        ("management-cluster", &["manager.env", "kubeconfig", "ports.json"]),
    ] {
        let folder = folder();
        let read = || -> Vec<String> {
            files.iter().map(|file| std::fs::read_to_string(folder.path().join(file)).unwrap()).collect()
        };
        Simulation::start(what, folder.path()).interrupt();
        let before = read();
        Simulation::start(what, folder.path()).interrupt();
        assert_eq!(read(), before, "{what}");
    }
}

#[test]
fn state_that_could_not_be_saved_is_refused_before_anything_starts() {
    let folder = folder();
    let state = folder.path().join("absent/state.json");
    let output = cerulean()
        .args(["simulate", "azure", "--directory"])
        .arg(folder.path())
        .arg("--state")
        .arg(&state)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("--state") && text(&output).contains("No such file"), "{}", text(&output));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn ports_that_are_taken_are_named_once_with_their_cause() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for what in ["azure", "kubernetes", "cluster"] {
        let folder = folder();
        let output = cerulean()
            .args(["simulate", what, "--port", &port, "--directory"])
            .arg(folder.path())
            .output()
            .unwrap();
        let said = text(&output);
        assert_eq!(said.matches("Address already in use").count(), 1, "{said}");
        assert!(said.contains(&format!("cannot listen on 127.0.0.1:{port}: ")), "{said}");
        assert!(!folder.path().join("lock").exists());
    }
}

#[test]
fn the_demo_shows_a_refused_service_with_its_event_and_serves_the_others() {
    let folder = folder();
    let file = folder.path().join("two.yaml");
    // The second is the output of another cluster's `kubectl get -o yaml`, in a namespace that does not exist here.
    let printed = "apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: other, namespace: shop, uid: u, resourceVersion: \"7\", managedFields: [{manager: kubectl}]}
  spec: {type: LoadBalancer, clusterIP: 172.20.0.9, clusterIPs: [172.20.0.9], ports: [{port: 8080, nodePort: 30999}], selector: {app: x}}
  status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}
- {apiVersion: x.io/v1, kind: Widget, metadata: {name: w}}
";
    std::fs::write(&file, format!("{SERVICE}---\n{}---\n{printed}", refused())).unwrap();
    let output = cerulean().args(["demo", "-f"]).arg(&file).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let event = "no  default/bad has no address: SyncLoadBalancerFailed: ";
    assert!(said.contains(event) && said.contains("between 4 and 100"), "{said}");
    assert!(said.contains("Widget w skipped"), "{said}");
    assert_eq!(said.matches("ok  TCP from 203.0.113.7 to ").count(), 2, "{said}");
    assert!(said.ends_with("cerulean: 1 of 3 Services got no address\n"), "{said}");
}

#[test]
fn the_demo_says_why_nothing_answers_for_a_service_without_a_selector() {
    let mut demo = cerulean()
        .args(["demo", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let manifest = SERVICE.replace("selector: {app: web}, ", "");
    demo.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    let output = demo.wait_with_output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("default/web has no selector, so no pods are behind it: set spec.selector"),
        "{said}"
    );
    assert!(said.ends_with("cerulean: 1 test packet did not arrive\n"), "{said}");
}

#[test]
fn the_demo_has_both_families_for_services_that_need_them() {
    let mut demo = cerulean()
        .args(["demo", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let manifest = SERVICE.replace("spec: {", "spec: {ipFamilyPolicy: RequireDualStack, ");
    assert_ne!(manifest, SERVICE);
    demo.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    let output = demo.wait_with_output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("fd00:") || said.contains("2603:") || said.contains("2001:"), "{said}");
}

#[test]
fn the_demo_refuses_bad_manifests_before_it_starts_a_cluster() {
    let no_port = SERVICE.replace("port: 80", "port: 0");
    for (manifest, words) in [
        (SERVICE.replace("Service", "Servce"), "no matches for kind \"Servce\" in version \"v1\""),
        (no_port, "standard input: cannot apply Service web: "),
        ("kind: [\n".to_owned(), "standard input is not valid YAML"),
    ] {
        let mut demo = cerulean()
            .args(["demo", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        demo.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
        let output = demo.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(words), "{}", text(&output));
        assert!(output.stdout.is_empty(), "{}", text(&output));
    }
}

const AZURE_JSON: &str = r#"{"tenantId": "t", "subscriptionId": "s", "resourceGroup": "g", "location": "westeurope",
                           "useManagedIdentityExtension": true}"#;
const KUBECONFIG: &str = "
current-context: here
contexts: [{name: here, context: {cluster: a}}, {name: there, context: {cluster: a}}]
clusters: [{name: a, cluster: {server: 'https://kube.example:6443'}}]
";

/// Runs `cerulean plan` with these files, and returns its output.
fn plan_with(azure_json: &str, arguments: &[&str]) -> String {
    let folder = folder();
    let (config, kubeconfig) = (folder.path().join("azure.json"), folder.path().join("kubeconfig"));
    std::fs::write(&config, azure_json).unwrap();
    std::fs::write(&kubeconfig, KUBECONFIG).unwrap();
    let output = cerulean()
        .arg("plan")
        .arg("--cloud-config")
        .arg(&config)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .args(arguments)
        .env("HTTPS_PROXY", "http://user:hunter2@127.0.0.1:9")
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    text(&output).replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn plan_says_each_refusal_of_azure_json_on_a_line_of_its_own() {
    let said = plan_with(
        &AZURE_JSON
            .replace("\"s\"", "\"s\", \"loadBalancerSku\": \"premium\", \"cloud\": \"AzureStackCloud\""),
        &[],
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert_eq!(lines[0], "cerulean: azure.json is refused:");
    assert!(
        lines[1..].iter().any(|line| line.starts_with("  loadBalancerSku=premium: "))
            && lines[1..].iter().any(|line| line.starts_with("  cloud=AzureStackCloud: ")),
        "{said}"
    );
}

#[test]
fn a_context_that_is_not_there_is_named_beside_those_that_are() {
    let said = plan_with(AZURE_JSON, &["--context", "none"]);
    let words =
        "cerulean: --context none: --kubeconfig kubeconfig has no such context; it has: here, there\n";
    assert_eq!(said, words);
}

#[test]
fn plan_names_a_dead_proxy_in_its_one_line() {
    let said = plan_with(AZURE_JSON, &["--context", "there"]);
    let words = "https://kube.example:6443/ through the proxy http://127.0.0.1:9 of HTTPS_PROXY does not answer \
                 (correct the variable, or put kube.example into NO_PROXY): ";
    assert!(said.contains(words) && !said.contains("hunter2"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn the_bench_names_the_program_that_is_missing_and_how_to_have_it() {
    let said = |arguments: &[&str]| {
        let output = cerulean().arg("bench").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        text(&output)
    };
    let manager = said(&["services", "--manager", "none/ours"]);
    assert_eq!(
        manager,
        "cerulean: none/ours is not there; build it with `cargo build --release`, or name it with --manager\n"
    );
    let driver = said(&["volumes", "--driver", "none/ours"]);
    assert_eq!(
        driver,
        "cerulean: none/ours is not there; build it with `cargo build --release`, or name it with --driver\n"
    );
    // Without a subject it prints what can be measured.
    let help = text(&cerulean().arg("bench").output().unwrap());
    assert!(help.contains("services") && help.contains("node-manager"), "{help}");
    // Any file works as ours: the other one is looked up before anything is started.
    let ours = env!("CARGO_BIN_EXE_cerulean");
    let peer = said(&["services", "--manager", ours, "--peer", "none/upstream"]);
    assert_eq!(peer, "cerulean: --peer none/upstream: it is not there; give the path of a build\n");
}

/// If a program ends by itself, its last output is reported, and the benchmark does not wait.
#[test]
fn the_bench_tells_what_a_program_said_that_ended_by_itself() {
    let output =
        cerulean().args(["bench", "services", "--manager", env!("CARGO_BIN_EXE_cerulean")]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("ours, start: ours ended by itself with exit status: 2"), "{said}");
    assert!(said.contains("unexpected argument '--cloud-config"), "{said}");
}

/// The plan of `capz-controller-manager` for a cluster, without Azure and without a management cluster.
#[test]
fn clusters_are_planned_from_files_alone() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/clusters");
    let output = cerulean().args(["plan", "-f", folder]).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in [
        "AzureCluster default/harbour\n   1. + resource group harbour\n",
        "+ subnet harbour-vnet/workers: 10.1.0.0/16\n",
        "AzureMachine default/harbour-control-plane-aaaac (once the one before has joined; of KubeadmControlPlane \
         harbour-control-plane, its name is an example)\n",
        "+ virtual machine harbour-workers-2-aaaaa: Standard_D2s_v3; zone 2\n",
        "AzureMachinePool default/harbour-spot (once the control plane answers)\n   1. + scale set harbour-spot: Standard_D2s_v3; machines 3; Spot; zones 1, 2, 3\n",
        "assuming an empty subscription",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains(" ! "), "{said}");
    let json = cerulean().args(["plan", "-o", "json", "-f", folder]).output().unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["summary"]["create"], json["steps"].as_array().unwrap().len());

    let refused = cerulean().args(["plan", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut refused = refused.unwrap();
    let cluster = std::fs::read_to_string(format!("{folder}/cluster.yaml")).unwrap();
    let cluster = cluster.replace("10.0.0.0/8", "10.0.0.0/99");
    refused.stdin.take().unwrap().write_all(cluster.as_bytes()).unwrap();
    let refused = refused.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("AzureCluster default/harbour is refused"), "{}", text(&refused));

    let misspelt = tempfile::tempdir().unwrap();
    let wrong = std::fs::read_to_string(format!("{folder}/cluster.yaml")).unwrap();
    let wrong = wrong.replace("location:", "locaton:").replace("role: node", "role: nodes");
    std::fs::write(misspelt.path().join("cluster.yaml"), wrong).unwrap();
    let output = cerulean().args(["plan", "-f"]).arg(misspelt.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("unknown field \"spec.locaton\""), "{}", text(&output));
}

/// A cluster that Azure manages is planned like any other, and a topology without its class says what it lacks (U6).
#[test]
fn managed_clusters_and_topologies_are_planned() {
    let folder = folder();
    let plan = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let output = cerulean()
            .env("AZURE_SUBSCRIPTION_ID", "12345678-0000-4000-8000-000000000009")
            .args(["plan", "-f"])
            .arg(&path)
            .output()
            .unwrap();
        (output.status.code(), self::text(&output))
    };
    let pools = "AzureManagedMachinePool default/quay-pool0: created with its cluster\n";
    let raw = "AzureASOManagedControlPlane default/quay\n   1. + managed cluster quay";
    for (flavor, words) in [("aks", "+ managed cluster quay: Base"), ("aks", pools), ("aks-aso", raw)] {
        let text = template(&format!("cluster-template-{flavor}"), &VALUES);
        let (code, said) = plan("managed.yaml", &text);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(words), "{words}: {said}");
    }
    let alone = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AzureManagedControlPlane\nmetadata: {name: quay}\n\
        spec: {location: eastus, resourceGroupName: quay, version: v1.33.1, identityRef: {kind: AzureClusterIdentity, name: i}}\n";
    let (code, said) = plan("alone.yaml", alone);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("AzureManagedControlPlane default/quay is refused: "), "{said}");
    let topology = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: c}\n\
        spec: {topology: {class: ours, version: v1.33.1}}\n";
    let (code, said) = plan("topology.yaml", topology);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Cluster default/c is made of ClusterClass ours (spec.topology)"), "{said}");
    let class = template("cluster-template-clusterclass", &VALUES);
    let cluster = template("cluster-template-topology", &VALUES);
    let (code, said) = plan("class.yaml", &format!("{class}\n---\n{cluster}"));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("+ virtual machine quay-aaaaa-aaaaa: Standard_D2s_v3"), "{said}");
}

/// A template of clusterctl's, with values for its variables; the others have their defaults.
fn template(name: &str, values: &[(&str, &str)]) -> String {
    let path = format!("{}/../deploy/capz/templates/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(path).unwrap();
    for (name, value) in values {
        text = text.replace(&format!("${{{name}}}"), value);
    }
    while let Some((before, rest)) = text.split_once("${") {
        let (variable, after) = rest.split_once('}').unwrap();
        let (name, default) = variable.split_once(['=', ':', '-']).expect(variable);
        let given = values.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
        let value = given.unwrap_or(default.trim_start_matches(['=', ':', '-']));
        text = format!("{before}{value}{after}");
    }
    text
}

const VALUES: [(&str, &str); 13] = [
    ("CLUSTER_NAME", "quay"),
    ("CLUSTER_CLASS_NAME", "class"),
    ("ASO_CREDENTIAL_SECRET_NAME", "aso"),
    ("CLUSTER_IDENTITY_NAME", "cluster-identity"),
    ("AZURE_LOCATION", "swedencentral"),
    ("AZURE_SUBSCRIPTION_ID", "12345678-0000-4000-8000-000000000009"),
    ("AZURE_TENANT_ID", "abcdef00-0000-4000-8000-00000000000a"),
    ("AZURE_CLIENT_ID_USER_ASSIGNED_IDENTITY", "c0ffee00-0000-4000-8000-00000000000b"),
    ("AZURE_CONTROL_PLANE_MACHINE_TYPE", "Standard_D2s_v3"),
    ("AZURE_NODE_MACHINE_TYPE", "Standard_D2s_v3"),
    ("KUBERNETES_VERSION", "v1.33.1"),
    ("CONTROL_PLANE_MACHINE_COUNT", "1"),
    // A worker joins at its next retry, after a while.
    ("WORKER_MACHINE_COUNT", "0"),
];

/// Reads lines of a running demo until one contains these words.
fn read_until(lines: &mut impl Iterator<Item = String>, words: &str) -> String {
    let mut read = String::new();
    for line in lines {
        read = format!("{read}{line}\n");
        if line.contains(words) {
            return read;
        }
    }
    panic!("it ended without {words:?}:\n{read}");
}

/// A template as clusterctl ships it, with the user's tenant, subscription and identities.
#[test]
fn the_demo_makes_ready_nodes_of_somebodys_own_manifests_until_it_is_stopped() {
    let folder = folder();
    let misspelt = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AzureCluster\nmetadata: {name: other}\n\
        spec: {locaton: eastus}\n";
    std::fs::write(folder.path().join("a.yaml"), misspelt).unwrap();
    std::fs::write(folder.path().join("b.yaml"), template("cluster-template", &VALUES)).unwrap();
    let process = cerulean()
        .args(["demo", "clusters", "-f"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Simulation { process, folder: folder.path().to_owned() };
    let mut lines = BufReader::new(running.process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut said = read_until(&mut lines, "everything is ready");
    // On a busy machine it was explained before, while the demo waited.
    if !said.contains("Stop with Ctrl-C.") {
        said += &read_until(&mut lines, "Stop with Ctrl-C.");
    }
    for words in [
        "AzureCluster other: failed to create typed patch object",
        ".spec.locaton: field not declared in schema",
        "user-assigned identity cloud-provider-user-identity is not in Azure: made for its machines",
        "quay: azure-cloud-controller-manager runs",
        "KubeadmControlPlane quay-control-plane: 1 of 1 ready",
        "MachineDeployment quay-md-0: 0 of 0 ready",
        "everything is ready",
        "kubectl get cluster,azurecluster,machines",
        "quay.kubeconfig get nodes",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    running.interrupt();
}

/// The page's topology, at the address that a demo has printed.
fn clusters_of_page(said: &str) -> Value {
    let line = said.lines().find(|line| line.trim_start().starts_with("page ")).unwrap();
    let address = line.split_once("http://").unwrap().1.split('/').next().unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = format!("GET /_cerulean/topology HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("content-length:"), "{head}");
    serde_json::from_str::<Value>(body).unwrap()["clusters"].clone()
}

/// Clusters that Azure manages, of both generations, become ready with their pools, beside each other.
#[test]
fn the_demo_makes_clusters_that_azure_manages_of_both_generations() {
    let folder = folder();
    let values = VALUES.map(|(name, value)| match name {
        "WORKER_MACHINE_COUNT" => (name, "1"),
        "CLUSTER_NAME" => (name, "pier"),
        _ => (name, value),
    });
    for flavor in ["aks", "aks-aso"] {
        let values = if flavor == "aks" { &values } else { &VALUES };
        let text = template(&format!("cluster-template-{flavor}"), values);
        // Without machines, a pool has no nodes.
        let text = text.replace("replicas: 0", "replicas: 1");
        std::fs::write(folder.path().join(format!("{flavor}.yaml")), text).unwrap();
    }
    let process = cerulean()
        .args(["demo", "clusters", "-f"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Simulation { process, folder: folder.path().to_owned() };
    let mut lines = BufReader::new(running.process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut said = read_until(&mut lines, "everything is ready");
    if !said.contains("Stop with Ctrl-C.") {
        said += &read_until(&mut lines, "Stop with Ctrl-C.");
    }
    for words in [
        "Secret aso is not in the manifests: made for them",
        "AzureManagedControlPlane pier: API server at pier-",
        "AzureASOManagedControlPlane quay: API server at quay-",
        "MachinePool pier-pool0: 1 of 1 ready",
        "MachinePool pier-pool1: 1 of 1 ready",
        "MachinePool quay-pool0: 1 of 1 ready",
        "MachinePool quay-pool1: 1 of 1 ready",
        "pier.kubeconfig get nodes",
        "quay.kubeconfig get nodes",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    let page = clusters_of_page(&said);
    let names: Vec<_> = page.as_array().unwrap().iter().map(|cluster| &cluster["parts"][0]["name"]).collect();
    assert_eq!(names, ["Cluster pier", "Cluster quay"]);
    for cluster in page.as_array().unwrap() {
        let parts = cluster["parts"].as_array().unwrap();
        assert!(parts.iter().all(|part| part["stand"] == "done"), "{page:#}");
        let nodes = parts.iter().filter(|part| part["words"] == "its node is ready").count();
        assert_eq!(nodes, 2, "{page:#}");
    }
    running.interrupt();
}

#[test]
fn manifests_with_variables_are_refused_with_their_names() {
    let folder = folder();
    let path = folder.path().join("cluster.yaml");
    let manifest = template("cluster-template", &VALUES).replace("swedencentral", "${AZURE_LOCATION}");
    std::fs::write(&path, manifest).unwrap();
    for command in [&["demo", "clusters", "-f"][..], &["plan", "-f"]] {
        let output = cerulean().args(command).arg(&path).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let words = format!("${{AZURE_LOCATION}} ({}: AzureCluster, spec.location)", path.display());
        assert!(text(&output).contains(&words), "{}", text(&output));
    }
}

/// The files and output that a user needs to start a manager.
#[test]
fn what_a_manager_is_started_with_is_written_and_printed() {
    let folder = folder();
    let process = cerulean()
        .args(["simulate", "management-cluster", "--directory"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Simulation { process, folder: folder.path().to_owned() };
    let mut lines = BufReader::new(running.process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said = read_until(&mut lines, "Stop with Ctrl-C.");
    let environment = std::fs::read_to_string(folder.path().join("manager.env")).unwrap();
    for variable in environment.lines() {
        assert!(said.contains(&format!("  {variable} \\\n")), "{variable}: {said}");
    }
    for file in ["kubeconfig", "ca.pem", "federated-token", "webhooks/tls.crt", "webhooks/tls.key"] {
        let path = folder.path().join(file);
        assert!(path.is_file(), "{file}");
        let names = [said.as_str(), environment.as_str()].concat();
        assert!(names.contains(&path.parent().unwrap().display().to_string()), "{file}: {names}");
    }
    let token = std::fs::metadata(folder.path().join("federated-token")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&token) & 0o077, 0);
    running.interrupt();
}

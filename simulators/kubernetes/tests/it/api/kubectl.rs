//! kubectl against the server over TLS. Its typed commands send protobuf. Real time and sockets.
//!
//! `KUBECTL` is the path of the program; otherwise it is in `KUBEBUILDER_ASSETS` or in `PATH`. If there is none the
//! test is skipped with a message; in CI it fails.

use std::path::PathBuf;
use std::process::Command;

use kubernetes_simulator::{Kubernetes, Options, Token};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Pointers to members, and their values as JSON.
type Members = &'static [(&'static str, &'static str)];

/// Command, kind and name of the created object (`namespace/name`, or the name alone), and its members.
const CREATED: &[(&str, &str, &str, Members)] = &[
    ("create namespace team", "Namespace", "team", &[("/spec/finalizers/0", "\"kubernetes\"")]),
    (
        "create deployment web --image=nginx:1.25 --replicas=2 --port=80",
        "Deployment",
        "default/web",
        &[
            ("/spec/replicas", "2"),
            ("/spec/template/spec/containers/0/ports/0/protocol", "\"TCP\""),
            ("/spec/template/spec/containers/0/imagePullPolicy", "\"IfNotPresent\""),
            ("/spec/strategy/rollingUpdate/maxSurge", "\"25%\""),
        ],
    ),
    (
        "create service clusterip web --tcp=80:8080",
        "Service",
        "default/web",
        &[("/spec/ports/0/targetPort", "8080")],
    ),
    (
        "create service nodeport np --tcp=81 --node-port=30081",
        "Service",
        "default/np",
        &[("/spec/ports/0/nodePort", "30081")],
    ),
    (
        "create service loadbalancer lb --tcp=443:8443",
        "Service",
        "default/lb",
        &[("/spec/type", "\"LoadBalancer\"")],
    ),
    (
        "create service externalname ext --external-name=example.com",
        "Service",
        "default/ext",
        &[("/spec/externalName", "\"example.com\"")],
    ),
    (
        "create configmap settings --from-literal=a=b",
        "ConfigMap",
        "default/settings",
        &[("/data", "{\"a\":\"b\"}")],
    ),
    (
        "create secret generic keys --from-literal=k=v",
        "Secret",
        "default/keys",
        &[("/data", "{\"k\":\"dg==\"}")],
    ),
    ("create serviceaccount robot", "ServiceAccount", "default/robot", &[]),
    (
        "create role reader --verb=get,list --resource=pods,deployments.apps",
        "Role",
        "default/reader",
        &[("/rules/0/verbs", "[\"get\",\"list\"]"), ("/rules/1/apiGroups", "[\"apps\"]")],
    ),
    (
        "create rolebinding readers --role=reader --serviceaccount=default:robot",
        "RoleBinding",
        "default/readers",
        &[("/roleRef/apiGroup", "\"rbac.authorization.k8s.io\""), ("/subjects/0/name", "\"robot\"")],
    ),
    (
        "create clusterrole prober --verb=get --non-resource-url=/healthz",
        "ClusterRole",
        "prober",
        &[("/rules/0/nonResourceURLs", "[\"/healthz\"]")],
    ),
    (
        "create clusterrolebinding probers --clusterrole=prober --user=jane",
        "ClusterRoleBinding",
        "probers",
        &[("/subjects/0/apiGroup", "\"rbac.authorization.k8s.io\"")],
    ),
    (
        "create quota few --hard=cpu=0.5,pods=10",
        "ResourceQuota",
        "default/few",
        &[("/spec/hard", "{\"cpu\":\"500m\",\"pods\":\"10\"}")],
    ),
    (
        "create job once --image=busybox -- date",
        "Job",
        "default/once",
        &[
            ("/spec/template/spec/containers/0/command", "[\"date\"]"),
            ("/spec/backoffLimit", "6"),
            ("/spec/completions", "1"),
            ("/spec/template/metadata/labels/job-name", "\"once\""),
        ],
    ),
    (
        "create cronjob often --image=busybox --schedule=@hourly -- date",
        "CronJob",
        "default/often",
        &[("/spec/schedule", "\"@hourly\""), ("/spec/concurrencyPolicy", "\"Allow\"")],
    ),
    (
        "create ingress door --rule=example.com/path*=web:80",
        "Ingress",
        "default/door",
        &[
            ("/spec/rules/0/http/paths/0/pathType", "\"Prefix\""),
            ("/spec/rules/0/http/paths/0/backend/service/port/number", "80"),
        ],
    ),
    (
        "create poddisruptionbudget half --selector=app=web --min-available=50%",
        "PodDisruptionBudget",
        "default/half",
        &[("/spec/minAvailable", "\"50%\"")],
    ),
    (
        "create priorityclass high --value=1000",
        "PriorityClass",
        "high",
        &[("/preemptionPolicy", "\"PreemptLowerPriority\"")],
    ),
    (
        "run alone --image=nginx --labels=a=b --env=K=V",
        "Pod",
        "default/alone",
        &[("/spec/containers/0/imagePullPolicy", "\"Always\""), ("/status/qosClass", "\"BestEffort\"")],
    ),
    (
        "expose deployment web --name=web2 --port=80",
        "Service",
        "default/web2",
        &[("/spec/selector", "{\"app\":\"web\"}")],
    ),
    (
        "autoscale deployment web --min=1 --max=5 --cpu-percent=70",
        "HorizontalPodAutoscaler",
        "default/web",
        &[("/spec/metrics/0/resource/target/averageUtilization", "70"), ("/spec/maxReplicas", "5")],
    ),
    ("scale deployment web --replicas=3", "Deployment", "default/web", &[("/spec/replicas", "3")]),
    (
        "set image deployment/web nginx=nginx:1.26",
        "Deployment",
        "default/web",
        &[("/spec/template/spec/containers/0/image", "\"nginx:1.26\"")],
    ),
];

const OLD: &[&str] = &["create cronjob", "create poddisruptionbudget"];

/// Commands, and a part of their output.
const SHOWN: &[(&str, &str)] = &[
    ("get deployments -o wide", "web    0/3     0            0"),
    ("get jobs", "once   Running   0/1"),
    ("get cronjobs", "often   @hourly    <none>     False     0        <none>"),
    ("get ingress", "door   <none>   example.com             80"),
    ("get hpa", "web    Deployment/web   cpu: <unknown>/70%   1         5         0"),
    ("get quota few", "few    cpu: 0/500m, pods: 0/10"),
    ("get all", "horizontalpodautoscaler.autoscaling/web"),
    ("get pods,services --no-headers", "pod/alone"),
    ("describe job once", "Parallelism:      1"),
    ("describe deployment web", "RollingUpdateStrategy:  25% max unavailable, 25% max surge"),
    ("describe role reader", "deployments.apps"),
    ("auth can-i create pods", "yes"),
    ("create token robot", "."),
    ("explain cronjob.spec.schedule", "FIELD: schedule"),
    ("delete deployment web --cascade=orphan", "deployment.apps \"web\" deleted"),
    ("delete pod alone --grace-period=5", "pod \"alone\" deleted"),
];

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("KUBECTL").map(PathBuf::from);
    let assets =
        || std::env::var_os("KUBEBUILDER_ASSETS").map(|folder| PathBuf::from(folder).join("kubectl"));
    let installed = || {
        let paths = std::env::var_os("PATH")?;
        std::env::split_paths(&paths).map(|folder| folder.join("kubectl")).find(|file| file.exists())
    };
    named.or_else(assets).or_else(installed)
}

/// kubectl, and the server that it uses.
pub struct Kubectl {
    program: PathBuf,
    folder: TempDir,
    shutdown: CancellationToken,
}

impl Kubectl {
    /// Serves over TLS. `None` if there is no kubectl.
    pub async fn start(kubernetes: &Kubernetes) -> Option<Kubectl> {
        let Some(program) = program() else {
            assert!(std::env::var_os("CI").is_none(), "kubectl is not there: in CI the test must run");
            return None;
        };
        let shutdown = CancellationToken::new();
        let address = kubernetes.serve_https("127.0.0.1:0".parse().unwrap(), shutdown.clone()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = kubernetes.kubeconfig(&format!("https://{address}")).unwrap();
        std::fs::write(folder.path().join("kubeconfig"), config).unwrap();
        Some(Kubectl { program, folder, shutdown })
    }

    /// Writes a file for commands. Returns its path.
    pub fn file(&self, name: &str, content: &Value) -> String {
        let file = self.folder.path().join(name);
        std::fs::write(&file, content.to_string()).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// The output of a command.
    pub async fn run(&self, arguments: &str) -> String {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .arg("--kubeconfig")
            .arg(self.folder.path().join("kubeconfig"))
            .args(arguments.split(' '));
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "kubectl {arguments}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_creates_shows_and_deletes() {
    let kubernetes = Kubernetes::new(Options { tokens: vec![Token::generate()], ..Options::default() });
    let Some(kubectl) = Kubectl::start(&kubernetes).await else { return };
    let version: Value = serde_json::from_str(&kubectl.run("version --client --output=json").await).unwrap();
    let minor = version["clientVersion"]["minor"].as_str().unwrap().trim_end_matches('+').to_owned();
    let old = minor.parse::<u32>().unwrap() < 25;
    for (arguments, kind, place, members) in CREATED {
        // Older ones request versions that current servers do not have either.
        if old && OLD.iter().any(|command| arguments.starts_with(command)) {
            continue;
        }
        kubectl.run(arguments).await;
        let (namespace, name) = place.split_once('/').unwrap_or(("", place));
        let object =
            kubernetes.get(kind, namespace, name).unwrap_or_else(|| panic!("{arguments} made nothing"));
        for (pointer, expected) in *members {
            let found = object
                .pointer(pointer)
                .unwrap_or_else(|| panic!("{arguments}: {pointer} in {}", object.value()));
            assert_eq!(found, &serde_json::from_str::<Value>(expected).unwrap(), "{arguments}: {pointer}");
        }
    }
    let mut quota = kubernetes.get("quota", "default", "few").unwrap().value().clone();
    quota["status"] = json!({ "hard": quota["spec"]["hard"], "used": {} });
    kubernetes.update_status(quota).unwrap();
    let mut other = String::new();
    for (arguments, expected) in SHOWN.iter().filter(|_| !old) {
        let shown = kubectl.run(arguments).await;
        if !shown.contains(expected) {
            other.push_str(&format!("kubectl {arguments} printed:\n{shown}"));
        }
    }
    assert!(other.is_empty(), "{other}");
}

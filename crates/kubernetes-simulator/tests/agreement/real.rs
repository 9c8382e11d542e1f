//! A real etcd and kube-apiserver, for as long as the value lives.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::config::{AuthInfo, Config};
use tokio::time::{sleep, timeout};

const TOKEN: &str = "agreement";

pub struct Server {
    dir: PathBuf,
    port: u16,
    /// The API server before its store, in the order in which they are stopped.
    children: Vec<Child>,
}

impl Server {
    pub fn start(assets: &Path) -> Server {
        let dir = std::env::temp_dir().join(format!("agreement-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let [client, peer, port] = free_ports();
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        fs::write(dir.join("accounts.key"), key.serialize_pem()).unwrap();
        fs::write(dir.join("accounts.pub"), key.public_key_pem()).unwrap();
        fs::write(dir.join("tokens.csv"), format!("{TOKEN},admin,1,system:masters\n")).unwrap();
        // The value exists before anything is started, so that whatever fails, all is stopped.
        let mut server = Server { dir, port, children: vec![] };
        let store = format!("http://127.0.0.1:{client}");
        let peers = format!("http://127.0.0.1:{peer}");
        server.run(
            assets.join("etcd"),
            &[
                ("--data-dir", "etcd"),
                ("--listen-client-urls", &store),
                ("--advertise-client-urls", &store),
                ("--listen-peer-urls", &peers),
                ("--initial-advertise-peer-urls", &peers),
                ("--initial-cluster", &format!("default={peers}")),
            ],
        );
        let program = assets.join("kube-apiserver");
        // `discovery.k8s.io/v1` is served by a definition there, for which the group must be free.
        let discovery = match lacks_endpoint_slices(&program) {
            true => "discovery.k8s.io/v1beta1=false",
            false => "",
        };
        server.run(
            program,
            &[
                ("--runtime-config", discovery),
                ("--etcd-servers", &store),
                ("--secure-port", &port.to_string()),
                ("--bind-address", "127.0.0.1"),
                ("--cert-dir", "certificates"),
                ("--service-account-key-file", "accounts.pub"),
                ("--service-account-signing-key-file", "accounts.key"),
                ("--service-account-issuer", "https://kubernetes.default.svc"),
                ("--service-cluster-ip-range", "10.0.0.0/16"),
                ("--token-auth-file", "tokens.csv"),
                ("--authorization-mode", "AlwaysAllow"),
                ("--disable-admission-plugins", "ServiceAccount"),
            ],
        );
        server
    }

    fn run(&mut self, program: PathBuf, flags: &[(&str, &str)]) {
        let name = program.file_name().unwrap().to_string_lossy().into_owned();
        let log = fs::File::create(self.dir.join(format!("{name}.log"))).unwrap();
        let child = Command::new(&program)
            .args(flags.iter().map(|(flag, value)| format!("{flag}={value}")))
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        self.children.insert(0, child);
    }

    /// A client of the server, once that is ready.
    pub async fn client(&self) -> kube::Client {
        let mut config = Config::new(format!("https://127.0.0.1:{}", self.port).parse().unwrap());
        config.accept_invalid_certs = true;
        config.default_retry = false;
        config.auth_info = AuthInfo { token: Some(TOKEN.to_owned().into()), ..AuthInfo::default() };
        let client = kube::Client::try_from(config).unwrap();
        let ready = async {
            loop {
                let readyz = http::Request::get("/readyz").body(vec![]).unwrap();
                let namespace =
                    http::Request::get("/api/v1/namespaces/kube-node-lease").body(vec![]).unwrap();
                if client.request_text(readyz).await.is_ok_and(|text| text == "ok")
                    && client.request_text(namespace).await.is_ok()
                {
                    return;
                }
                sleep(Duration::from_millis(200)).await;
            }
        };
        if timeout(Duration::from_secs(90), ready).await.is_err() {
            let log = fs::read_to_string(self.dir.join("kube-apiserver.log")).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(20).collect();
            panic!("kube-apiserver is not ready: {last:#?}");
        }
        define_endpoint_slices(&client).await;
        client
    }
}

/// Whether the server is older than 1.21, which brought `discovery.k8s.io/v1`.
fn lacks_endpoint_slices(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let minor = text.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    minor.unwrap_or_else(|| panic!("no version in {text:?}")) < 21
}

async fn define_endpoint_slices(client: &kube::Client) {
    let version = || http::Request::get("/apis/discovery.k8s.io/v1").body(vec![]).unwrap();
    if client.request_text(version()).await.is_ok() {
        return;
    }
    let definition = serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "endpointslices.discovery.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://kubernetes.io"},
        },
        "spec": {
            "group": "discovery.k8s.io",
            "scope": "Namespaced",
            "names": {"kind": "EndpointSlice", "listKind": "EndpointSliceList", "plural": "endpointslices",
                "singular": "endpointslice"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let request = http::Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&definition).unwrap())
        .unwrap();
    client.request_text(request).await.unwrap();
    let served = async {
        let list = || http::Request::get("/apis/discovery.k8s.io/v1/endpointslices").body(vec![]).unwrap();
        while client.request_text(list()).await.is_err() {
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(Duration::from_secs(30), served).await.expect("EndpointSlices are served");
}

impl Drop for Server {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Already gone is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Ports that were free a moment ago, all at once, so that they differ.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

//! Registers the identities that a management cluster declares with the simulated Entra, for the subscriptions that its
//! clusters name. Manifests written for the real Azure work unchanged, with the secrets that they contain.

use std::collections::BTreeSet;
use std::sync::Arc;

use azure_simulator::Azure;
use azure_simulator::entra::{Application, Entra, FederatedCredential, RegisteredCertificate};
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubernetes_simulator::{AdmissionHook, Decision, Kubernetes};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The API group of identities and clusters.
const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The issuer of service account tokens in a simulated Kubernetes.
const ISSUER: &str = "https://kubernetes.default.svc";
/// The service account of the program that creates clusters. Its tokens prove workload identities.
pub const SERVICE_ACCOUNT: (&str, &str) = ("capz-system", "capz-manager");
/// The type of user-assigned identities, which machines may name and no Cluster API provider creates.
const MACHINE_IDENTITIES: &str = "Microsoft.ManagedIdentity/userAssignedIdentities";

/// The identities registered and the resources created so far.
#[derive(Clone)]
pub(crate) struct ClusterIdentities {
    kubernetes: Kubernetes,
    azure: Azure,
    entra: Entra,
    made: Arc<Mutex<BTreeSet<String>>>,
}

impl ClusterIdentities {
    /// Follows the writes to a management cluster. An identity can sign in before the object that declares it is
    /// stored.
    pub(crate) fn follow(kubernetes: &Kubernetes, azure: &Azure, entra: &Entra) -> Self {
        let this = Self {
            kubernetes: kubernetes.clone(),
            azure: azure.clone(),
            entra: entra.clone(),
            made: Arc::default(),
        };
        let seen = this.clone();
        let hook = AdmissionHook::mutating("identities.simulated-azure", move |request| {
            if let Some(object) = &request.object {
                seen.look_at(object);
            }
            std::future::ready(Decision::allow())
        });
        let writes = ["CREATE", "UPDATE"];
        let hook = hook.on(&writes, GROUP, &["*"]).on(&writes, "", &["secrets"]);
        kubernetes.admission_hook(hook);
        this
    }

    /// The resources that were made in Azure because machines name them.
    pub(crate) fn made(&self) -> Vec<String> {
        self.made.lock().iter().cloned().collect()
    }

    fn look_at(&self, object: &Value) {
        match text(&object["kind"]) {
            "AzureClusterIdentity" => {
                let secret = &object["spec"]["clientSecret"];
                let namespace = match text(&secret["namespace"]) {
                    "" => text(&object["metadata"]["namespace"]),
                    named => named,
                };
                let secret = self.kubernetes.get("Secret", namespace, text(&secret["name"]));
                self.let_in(object, secret.as_deref().map(kubernetes_simulator::Object::value));
            }
            "Secret" => {
                let (own, name) = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
                for identity in self.kubernetes.list("AzureClusterIdentity") {
                    let named = &identity.value()["spec"]["clientSecret"];
                    let namespace = match text(&named["namespace"]) {
                        "" => identity.namespace(),
                        other => other,
                    };
                    if named["name"] == name && namespace == own {
                        self.let_in(identity.value(), Some(object));
                    }
                }
                self.let_in_operator(object);
            }
            "AzureCluster"
            | "AzureClusterTemplate"
            | "AzureManagedControlPlane"
            | "AzureManagedControlPlaneTemplate" => {
                for pointer in ["/spec/subscriptionID", "/spec/template/spec/subscriptionID"] {
                    let subscription = object.pointer(pointer).map(text).unwrap_or_default().trim();
                    if is_guid(subscription) {
                        self.azure.add_subscription(subscription);
                    }
                }
            }
            _ => self.make_identities_of_machines(object),
        }
    }

    /// Lets an identity sign in with its secret, certificate or token, depending on its type.
    fn let_in(&self, identity: &Value, secret: Option<&Value>) {
        let spec = &identity["spec"];
        let (client, tenant) = (text(&spec["clientID"]).trim(), text(&spec["tenantID"]).trim());
        if client.is_empty() || tenant.is_empty() {
            return;
        }
        self.entra.accept_tenant(tenant);
        let held = |key: &str| data_of(secret?, key);
        self.entra.amend(client, |application| match text(&spec["type"]) {
            "ServicePrincipal" | "ManualServicePrincipal" => match held("clientSecret") {
                Some(secret) => application.with_secret(secret.trim_end()),
                None => application,
            },
            "ServicePrincipalCertificate" => {
                let file = || std::fs::read_to_string(text(&spec["certPath"])).ok();
                let pem = held("certificate").or_else(|| held("clientSecret")).or_else(file);
                match pem.and_then(|pem| RegisteredCertificate::from_pem(&pem).ok()) {
                    Some(certificate) => application.with_certificate(certificate),
                    None => application,
                }
            }
            "WorkloadIdentity" => trusting_the_manager(application),
            _ => application,
        });
    }

    /// Lets Azure Service Operator's credential sign in: a Secret that whole objects of that operator name.
    fn let_in_operator(&self, secret: &Value) {
        let held = |key: &str| data_of(secret, key).map(|text| text.trim().to_owned());
        let [Some(tenant), Some(client)] = ["AZURE_TENANT_ID", "AZURE_CLIENT_ID"].map(held) else { return };
        if let Some(subscription) = held("AZURE_SUBSCRIPTION_ID").filter(|id| is_guid(id)) {
            self.azure.add_subscription(&subscription);
        }
        self.entra.accept_tenant(&tenant);
        self.entra.amend(&client, |application| {
            let certificate = held("AZURE_CLIENT_CERTIFICATE");
            match (held("AZURE_CLIENT_SECRET"), certificate.map(|pem| RegisteredCertificate::from_pem(&pem)))
            {
                (Some(secret), _) => application.with_secret(&secret),
                (None, Some(Ok(certificate))) => application.with_certificate(certificate),
                _ => trusting_the_manager(application),
            }
        });
    }

    /// Creates the user-assigned identities that machines name, as a user would before writing their IDs into
    /// manifests.
    fn make_identities_of_machines(&self, object: &Value) {
        let mut named = Vec::new();
        texts(object, &mut |text| {
            let id = text.strip_prefix("azure://").unwrap_or(text);
            if let Ok(id) = ResourceId::parse(id)
                && id.resource_type().eq_ignore_ascii_case(MACHINE_IDENTITIES)
            {
                named.push(id);
            }
        });
        for id in named {
            self.azure.add_subscription(id.subscription_id());
            // If it cannot be created, Azure reports that when the identity is used.
            if self.azure.document(&id).is_none() && self.azure.put(&id, json!({})).is_ok() {
                self.made.lock().insert(id.to_string());
            }
        }
    }
}

/// The text under a key of a Secret, as a user writes it or as it is stored.
fn data_of(secret: &Value, key: &str) -> Option<String> {
    let plain = secret["stringData"][key].as_str().map(str::to_owned);
    plain.or_else(|| {
        let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    })
}

fn trusting_the_manager(application: Application) -> Application {
    let (namespace, name) = SERVICE_ACCOUNT;
    application.with_federated(FederatedCredential {
        issuer: ISSUER.to_owned(),
        subject: format!("system:serviceaccount:{namespace}:{name}"),
        audience: FederatedCredential::AUDIENCE.to_owned(),
        keys: Vec::new(),
    })
}

fn is_guid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Every text in a document.
fn texts(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, see)),
        Value::Object(members) => members.values().for_each(|member| texts(member, see)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use azure_simulator::Options;
    use azure_simulator::entra::EntraOptions;
    use http::{Request, StatusCode};
    use kube::Client;
    use tower::ServiceExt as _;

    use super::*;
    use crate::manifests;

    const SUBSCRIPTION: &str = "12345678-0000-4000-8000-000000000009";
    const TENANT: &str = "abcdef00-0000-4000-8000-00000000000a";

    fn kind(name: &str, plural: &str) -> Value {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{GROUP}") },
            "spec": {
                "group": GROUP, "scope": "Namespaced", "names": { "kind": name, "plural": plural },
                "versions": [{ "name": "v1beta1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": schema } }],
            },
        })
    }

    fn object(kind: &str, spec: Value) -> Value {
        json!({ "apiVersion": format!("{GROUP}/v1beta1"), "kind": kind,
            "metadata": { "name": "it", "namespace": "default" }, "spec": spec })
    }

    async fn status(router: axum::Router, request: Request<Body>) -> StatusCode {
        let Ok(answer) = router.oneshot(request).await;
        answer.status()
    }

    #[tokio::test]
    async fn identities_sign_in_with_what_their_manifests_hold() {
        let (kubernetes, azure) = (Kubernetes::new(Default::default()), Azure::new(Options::default()));
        let entra = Entra::new(EntraOptions::new("home", azure.clock())).unwrap();
        for (name, plural) in [
            ("AzureClusterIdentity", "azureclusteridentities"),
            ("AzureCluster", "azureclusters"),
            ("AzureMachine", "azuremachines"),
        ] {
            kubernetes.create(kind(name, plural)).unwrap();
        }
        let identities = ClusterIdentities::follow(&kubernetes, &azure, &entra);
        let client = Client::new(kubernetes.router(), "default");
        let secret = |text: &str| {
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "password", "namespace": "default" },
                "stringData": { "clientSecret": text } })
        };
        let identity = object(
            "AzureClusterIdentity",
            json!({ "type": "ServicePrincipal", "clientID": "client", "tenantID": TENANT,
                "clientSecret": { "name": "password" } }),
        );
        let sign_in = async |tenant: &str, secret: &str| {
            let form = format!(
                "grant_type=client_credentials&client_id=client&client_secret={secret}\
                 &scope=https%3A%2F%2Fmanagement.azure.com%2F.default"
            );
            let request = Request::post(format!("/{tenant}/oauth2/v2.0/token"))
                .header("Content-Type", "application/x-www-form-urlencoded")
                .body(Body::from(form))
                .unwrap();
            status(entra.router(), request).await
        };
        assert_ne!(sign_in(TENANT, "first").await, StatusCode::OK);
        // The order of identity and Secret does not matter, nor do changes of the password.
        for object in [&secret("first"), &identity] {
            manifests::apply(&client, std::slice::from_ref(object)).await.unwrap();
        }
        assert_eq!(sign_in(TENANT, "first").await, StatusCode::OK);
        manifests::apply(&client, &[secret("second")]).await.unwrap();
        assert_eq!(sign_in(TENANT, "second").await, StatusCode::OK);
        assert_ne!(sign_in(TENANT, "third").await, StatusCode::OK);
        assert_ne!(sign_in("00000000-0000-4000-8000-00000000000f", "second").await, StatusCode::OK);

        let read = || {
            let path = format!("/subscriptions/{SUBSCRIPTION}?api-version=2022-12-01");
            Request::get(path).body(Body::empty()).unwrap()
        };
        assert_eq!(status(azure.router(), read()).await, StatusCode::NOT_FOUND);
        let cluster = object("AzureCluster", json!({ "subscriptionID": SUBSCRIPTION }));
        let nodes = format!(
            "/subscriptions/{SUBSCRIPTION}/resourceGroups/shared/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes"
        );
        let machine = object(
            "AzureMachine",
            json!({ "userAssignedIdentities": [{ "providerID": format!("azure://{nodes}") }] }),
        );
        manifests::apply(&client, &[cluster, machine]).await.unwrap();
        assert_eq!(status(azure.router(), read()).await, StatusCode::OK);
        assert!(azure.document(&ResourceId::parse(&nodes).unwrap()).is_some());
        assert_eq!(identities.made(), [nodes]);
    }
}

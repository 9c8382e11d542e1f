//! A stand-in for cert-manager: it creates a key pair for each Certificate, and injects its authority where an
//! annotation requests it. Its kinds accept any object, and pass clusterctl's own readiness test. Renewal is left out.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certificate_authority::CertificateAuthority;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::e2e::capz::objects::{api, create, definition_of_anything};

const VERSION: &str = "cert-manager.io/v1";
const INJECT: &str = "cert-manager.io/inject-ca-from";
const LOOK: Duration = Duration::from_millis(300);
const ADMISSION: &str = "admissionregistration.k8s.io/v1";
/// Kinds with members for an authority.
const INJECTABLE: [(&str, &str); 3] = [
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    (ADMISSION, "MutatingWebhookConfiguration"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
];

/// Creates the definitions of cert-manager's kinds.
///
/// # Errors
/// The API server refuses them.
pub async fn define(client: &Client) -> anyhow::Result<()> {
    for kind in ["Certificate", "Issuer"] {
        create(client, &definition_of_anything("cert-manager.io", "v1", kind)).await?;
    }
    Ok(())
}

/// Runs the stand-in until the runtime ends.
pub async fn play(client: Client) {
    let mut injected = HashMap::new();
    loop {
        // Failures are retried; a program that waits for a certificate reports that itself.
        let _ = issue(&client).await;
        let _ = inject(&client, &mut injected).await;
        tokio::time::sleep(LOOK).await;
    }
}

async fn issue(client: &Client) -> anyhow::Result<()> {
    for certificate in api(client, VERSION, "Certificate", None).list(&ListParams::default()).await? {
        let namespace = certificate.namespace().context("a Certificate without a namespace")?;
        let spec = &certificate.data["spec"];
        let name = spec["secretName"].as_str().unwrap_or_default();
        if api(client, "v1", "Secret", Some(&namespace)).get_opt(name).await?.is_some() {
            continue;
        }
        let names: Vec<&str> =
            spec["dnsNames"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let authority = CertificateAuthority::generate()?;
        let issued = authority.issue(&names)?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": { "namespace": namespace, "name": name },
            "data": { "ca.crt": STANDARD.encode(authority.certificate_pem()),
                "tls.crt": STANDARD.encode(&issued.certificate_pem), "tls.key": STANDARD.encode(&issued.key_pem) },
        });
        create(client, &secret).await?;
    }
    Ok(())
}

/// Injects missing authorities; `injected` has the resource versions of objects that have theirs.
async fn inject(client: &Client, injected: &mut HashMap<String, String>) -> anyhow::Result<()> {
    for (version, kind) in INJECTABLE {
        let all = api(client, version, kind, None);
        for found in all.list_metadata(&ListParams::default()).await? {
            let key = format!("{kind} {}", found.name_any());
            let resource_version = found.resource_version().unwrap_or_default();
            let from = found.annotations().get(INJECT).and_then(|from| from.split_once('/'));
            let Some((namespace, certificate)) = from else { continue };
            if injected.get(&key) == Some(&resource_version) {
                continue;
            }
            let certificates = api(client, VERSION, "Certificate", Some(namespace));
            let Some(certificate) = certificates.get_opt(certificate).await? else { continue };
            let secret = certificate.data["spec"]["secretName"].as_str().unwrap_or_default();
            let Some(secret) = api(client, "v1", "Secret", Some(namespace)).get_opt(secret).await? else {
                continue;
            };
            let authority = &secret.data["data"]["ca.crt"];
            let object = all.get(&found.name_any()).await?;
            let mut now = resource_version;
            if let Some(patch) = patch(&object.data, authority) {
                let patched =
                    all.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
                now = patched.resource_version().unwrap_or_default();
            }
            injected.insert(key, now);
        }
    }
    Ok(())
}

/// The patch that adds an authority to an object; `None` if it is already there.
fn patch(object: &Value, authority: &Value) -> Option<Value> {
    if let Some(webhooks) = object["webhooks"].as_array() {
        let mut all = webhooks.clone();
        all.iter_mut().for_each(|webhook| webhook["clientConfig"]["caBundle"] = authority.clone());
        return (&all != webhooks).then(|| json!({ "webhooks": all }));
    }
    let conversion = &object["spec"]["conversion"];
    let is_asked = conversion["strategy"] == "Webhook";
    (is_asked && conversion["webhook"]["clientConfig"]["caBundle"] != *authority).then(
        || json!({ "spec": { "conversion": { "webhook": { "clientConfig": { "caBundle": authority } } } } }),
    )
}

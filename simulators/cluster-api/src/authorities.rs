//! The certificate authorities of a cluster and its kubeconfig, as Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certificate_authority::{CertificateAuthority, TlsError};
use serde_json::{Value, json};

use crate::names::{CLUSTER_NAME, SECRET_TYPE, SECRET_VALUE};
use crate::objects::{Key, text};

/// The Secrets of a cluster's authorities (`<cluster>-<suffix>`), with the paths at which kubeadm expects their files.
pub(crate) const AUTHORITIES: [(&str, &str, &str); 4] = [
    ("ca", "/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/ca.key"),
    ("etcd", "/etc/kubernetes/pki/etcd/ca.crt", "/etc/kubernetes/pki/etcd/ca.key"),
    ("proxy", "/etc/kubernetes/pki/front-proxy-ca.crt", "/etc/kubernetes/pki/front-proxy-ca.key"),
    ("sa", "/etc/kubernetes/pki/sa.pub", "/etc/kubernetes/pki/sa.key"),
];

/// Returns the Secret of a new authority.
///
/// # Errors
/// The authority cannot be created.
pub(crate) fn new_secret(cluster: &Key, suffix: &str, owner: &Value) -> Result<Value, TlsError> {
    let authority = CertificateAuthority::generate()?;
    let certificate =
        if suffix == "sa" { authority.public_key_pem() } else { authority.certificate_pem().to_owned() };
    let data =
        json!({"tls.crt": STANDARD.encode(certificate), "tls.key": STANDARD.encode(authority.key_pem())});
    Ok(secret(cluster, &format!("{}-{suffix}", cluster.1), owner, data))
}

/// A Secret of a cluster, with data that is already encoded.
pub(crate) fn secret(cluster: &Key, name: &str, owner: &Value, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE, "data": data,
        "metadata": {"namespace": cluster.0, "name": name, "labels": {CLUSTER_NAME: cluster.1},
            "ownerReferences": [owner]}})
}

/// The text under a key of a Secret.
pub(crate) fn secret_text(secret: &Value, key: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(secret["data"][key].as_str()?).ok()?).ok()
}

/// The token that authenticates an administrator at the API of the cluster whose authority has this key.
///
/// Cluster API gives administrators a client certificate. The simulated Kubernetes supports only tokens, so the
/// kubeconfigs from here contain a token that is derived from the key; the simulated API server derives the same token.
pub fn administrator_token(authority_key_pem: &str) -> String {
    let digest = ring::digest::digest(
        &ring::digest::SHA256,
        format!("administrator\n{}", authority_key_pem.trim()).as_bytes(),
    );
    hex(digest.as_ref())
}

/// `sha256:…` of a public key, as kubeadm pins authorities; `None` if the Secret contains no authority.
pub(crate) fn public_key_hash(authority: &Value) -> Option<String> {
    let (certificate, key) = (secret_text(authority, "tls.crt")?, secret_text(authority, "tls.key")?);
    let authority = CertificateAuthority::from_kept(&certificate, &key).ok()?;
    let digest = ring::digest::digest(&ring::digest::SHA256, &authority.public_key_info());
    Some(format!("sha256:{}", hex(digest.as_ref())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The Secret `<cluster>-kubeconfig` for an administrator of the cluster at this URL.
pub(crate) fn kubeconfig(cluster: &Key, server: &str, authority: &Value, owner: &Value) -> Option<Value> {
    let token = administrator_token(&secret_text(authority, "tls.key")?);
    let certificate = text(&authority["data"]["tls.crt"]);
    let (name, user) = (&cluster.1, format!("{}-admin", cluster.1));
    let context = format!("{user}@{name}");
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": context,
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": certificate}}],
        "contexts": [{"name": context, "context": {"cluster": name, "user": user}}],
        "users": [{"name": user, "user": {"token": token}}]});
    let yaml = serde_saphyr::to_string(&config).ok()?;
    let data = json!({ SECRET_VALUE: STANDARD.encode(yaml) });
    Some(secret(cluster, &format!("{name}-kubeconfig"), owner, data))
}

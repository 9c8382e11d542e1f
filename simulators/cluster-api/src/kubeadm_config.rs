//! Reconciles KubeadmConfigs: writes the bootstrap data of a machine to a Secret, which the infrastructure provider
//! passes on.
//!
//! Left out: Ignition, discovery by file, users whose passwords are in Secrets, templates in files, and locks for the
//! first start, except that the oldest machine of the control plane is the first.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::authorities::{AUTHORITIES, public_key_hash, secret, secret_text};
use crate::cloud_init::{self, File, Phase};
use crate::contract::{host_port, is_endpoint};
use crate::names::{CONTROL_PLANE_LABEL, SECRET_VALUE};
use crate::objects::{
    GroupKind, Key, Kind, is_deleting, key, label, list, name, owner, owner_of, seconds, text, time, uid,
};
use crate::round::{Action, Round};

/// The lifetime of a token.
const TOKEN_LIFE: Duration = Duration::from_secs(15 * 60);
/// The namespace of tokens in a workload cluster.
const SYSTEM: &str = "kube-system";

/// Reconciles all KubeadmConfigs of the cluster.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    for before in round.of(Kind::KubeadmConfig) {
        if round.is_paused(before) || is_deleting(before) {
            continue;
        }
        let Some(owner) = ConfigOwner::of(round, before) else { continue };
        let mut after = before.clone();
        keep(round, before, &mut after, &owner);
        round.save(&Kind::KubeadmConfig.into(), before, &after);
    }
}

/// The machine or the pool that owns a configuration.
struct ConfigOwner<'a> {
    object: &'a Value,
    /// The spec of a machine, or of the template of a pool's machines: the part with `version` and `bootstrap`.
    spec: &'a Value,
    is_pool: bool,
    is_control_plane: bool,
}

impl<'a> ConfigOwner<'a> {
    fn of(round: &Round<'a>, config: &Value) -> Option<Self> {
        if let Some(machine) = owner_of(config, Kind::Machine).and_then(|name| round.get(Kind::Machine, name))
        {
            let is_control_plane = label(machine, CONTROL_PLANE_LABEL).is_some();
            return Some(Self { object: machine, spec: &machine["spec"], is_pool: false, is_control_plane });
        }
        let pool = owner_of(config, Kind::MachinePool).and_then(|name| round.get(Kind::MachinePool, name))?;
        Some(Self {
            object: pool,
            spec: &pool["spec"]["template"]["spec"],
            is_pool: true,
            is_control_plane: false,
        })
    }

    fn has_nodes(&self) -> bool {
        let status = &self.object["status"];
        if self.is_pool { !list(&status["nodeRefs"]).is_empty() } else { !status["nodeRef"].is_null() }
    }
}

fn keep(round: &mut Round<'_>, before: &Value, after: &mut Value, machine: &ConfigOwner<'_>) {
    let waits = |round: &Round<'_>, after: &mut Value, old: &str, why: &str| {
        round.condition(after, "DataSecretAvailable", false, "NotAvailable", why);
        round.condition(after, "Ready", false, "NotReady", why);
        round.old_condition(after, "DataSecretAvailable", false, ("Info", old, ""));
        round.old_condition(after, "Ready", false, ("Info", old, ""));
    };
    if round.cluster["status"]["initialization"]["infrastructureProvisioned"] != true {
        return waits(
            round,
            after,
            "WaitingForClusterInfrastructure",
            "Waiting for Cluster status.infrastructureReady to be true",
        );
    }
    if before["status"]["initialization"]["dataSecretCreated"] == true {
        return renew(round, before, after, machine);
    }
    if let Some(given) = machine.spec["bootstrap"]["dataSecretName"].as_str() {
        return available(round, after, given);
    }
    let initialized = round.cluster["status"]["initialization"]["controlPlaneInitialized"] == true;
    let phase = match (initialized, machine.is_control_plane) {
        (false, true) if is_first(round, machine) => Phase::Init,
        (false, _) => {
            let why = "Waiting for Cluster control plane to be initialized";
            return waits(round, after, "WaitingForControlPlaneAvailable", why);
        }
        (true, true) => Phase::JoinControlPlane,
        (true, false) => Phase::Join,
    };
    if let Err(why) = write(round, before, after, machine, phase, None) {
        waits(round, after, "DataSecretGenerationFailed", &why);
    }
}

/// Whether a machine starts the cluster.
fn is_first(round: &Round<'_>, machine: &ConfigOwner<'_>) -> bool {
    let age = |one: &Value| (text(&one["metadata"]["creationTimestamp"]).to_owned(), name(one).to_owned());
    let machines = round.of(Kind::Machine).into_iter();
    let first = machines.filter(|one| label(one, CONTROL_PLANE_LABEL).is_some()).min_by_key(|one| age(one));
    first.is_some_and(|first| uid(first) == uid(machine.object))
}

fn available(round: &Round<'_>, after: &mut Value, secret: &str) {
    after["status"]["initialization"]["dataSecretCreated"] = true.into();
    after["status"]["dataSecretName"] = secret.into();
    round.condition(after, "CertificatesAvailable", true, "Available", "");
    round.condition(after, "DataSecretAvailable", true, "Available", "");
    round.condition(after, "Ready", true, "Ready", "");
    for old in ["CertificatesAvailable", "DataSecretAvailable", "Ready"] {
        round.old_condition(after, old, true, ("", "", ""));
    }
    if !after["metadata"]["generation"].is_null() {
        after["status"]["observedGeneration"] = after["metadata"]["generation"].clone();
    }
}

/// Writes the data, after the objects that it refers to.
fn write(
    round: &mut Round<'_>,
    before: &Value,
    after: &mut Value,
    machine: &ConfigOwner<'_>,
    phase: Phase,
    renewed: Option<Value>,
) -> Result<(), String> {
    let cluster: Key = key(round.cluster);
    let me = owner(Kind::KubeadmConfig, before, true);
    let authority_secret = |suffix: &str| round.get(Kind::Secret, &format!("{}-{suffix}", cluster.1));
    if AUTHORITIES.iter().any(|(suffix, ..)| authority_secret(suffix).is_none()) {
        if phase == Phase::Init && round.cluster["spec"]["controlPlaneRef"]["kind"].is_null() {
            round.act(Action::MakeAuthorities { cluster, owner: me });
        }
        return Err("the cluster's certificates are not there yet".to_owned());
    }
    let endpoint = &round.cluster["spec"]["controlPlaneEndpoint"];
    if !is_endpoint(endpoint) {
        return Err("Waiting for Cluster spec.controlPlaneEndpoint".to_owned());
    }
    let mut files = Vec::new();
    if phase != Phase::Join {
        for (suffix, certificate, private) in AUTHORITIES {
            let Some(secret) = authority_secret(suffix) else { continue };
            for (path, member, permissions) in
                [(certificate, "tls.crt", "0640"), (private, "tls.key", "0600")]
            {
                files.extend(secret_text(secret, member).map(|text| File::new(path, permissions, text)));
            }
        }
    }
    for file in list(&before["spec"]["files"]) {
        files.push(resolve(round, file)?);
    }
    let mut writes = Vec::new();
    if phase != Phase::Init {
        let discovery = &mut after["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"];
        if list(&discovery["caCertHashes"]).is_empty() {
            discovery["caCertHashes"] =
                authority_secret("ca").and_then(public_key_hash).into_iter().collect();
        }
        if text(&discovery["apiServerEndpoint"]).is_empty() {
            discovery["apiServerEndpoint"] = host_port(endpoint).into();
        }
        if text(&discovery["token"]).is_empty() || renewed.is_some() {
            if round.workload.is_none() {
                return Err("the cluster's API cannot be reached for a token".to_owned());
            }
            let (token, made) = new_token(round);
            after["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]["token"] = token.into();
            writes.push(Action::CreateThere(made));
        }
    }
    let version = text(&machine.spec["version"]);
    let text = cloud_init::render(&after["spec"], &files, phase, round.cluster, version)?;
    let data = json!({ SECRET_VALUE: STANDARD.encode(text), "format": STANDARD.encode("cloud-config") });
    let kind = GroupKind::from(Kind::Secret);
    let made = secret(&cluster, name(before), &me, data);
    writes.push(match round.get(Kind::Secret, name(before)) {
        Some(_) => Action::Patch(kind, key(before), json!({"data": made["data"]})),
        None => Action::Create(kind, made),
    });
    // The configuration reports the data only once all of it exists; its token must be saved first.
    let spec = after["spec"].clone();
    if spec != before["spec"] {
        writes.push(Action::Patch(Kind::KubeadmConfig.into(), key(before), json!({"spec": spec})));
    }
    let mut said = before.clone();
    available(round, &mut said, name(before));
    writes.push(Action::PatchStatus(Kind::KubeadmConfig.into(), key(before), said["status"].clone()));
    round.act(Action::InOrder(writes));
    *after = before.clone();
    Ok(())
}

/// A file of the configuration, with the content from a Secret if it names one.
fn resolve(round: &Round<'_>, file: &Value) -> Result<File, String> {
    let from = &file["contentFrom"]["secret"];
    let content = match from["name"].as_str() {
        None => text(&file["content"]).to_owned(),
        Some(name) => {
            let key = text(&from["key"]);
            let secret = round.get(Kind::Secret, name);
            let secret = secret
                .ok_or_else(|| format!("Secret {name} of file {} does not exist", text(&file["path"])))?;
            secret_text(secret, key).ok_or_else(|| format!("Secret {name} has no text under {key}"))?
        }
    };
    Ok(File {
        path: text(&file["path"]).to_owned(),
        owner: file["owner"].as_str().map(str::to_owned),
        permissions: file["permissions"].as_str().map(str::to_owned),
        encoding: file["encoding"].as_str().map(str::to_owned),
        append: file["append"] == true,
        content,
    })
}

/// Creates a token for joining, with its Secret in the workload cluster.
fn new_token(round: &mut Round<'_>) -> (String, Value) {
    const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let (id, secret) = (round.letters(6, LETTERS), round.letters(16, LETTERS));
    let data: Value = [
        ("token-id", id.as_str()),
        ("token-secret", &secret),
        ("expiration", &seconds(round.now + TOKEN_LIFE)),
        ("usage-bootstrap-signing", "true"),
        ("usage-bootstrap-authentication", "true"),
        ("auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token"),
        ("description", "token of the stand-in for the kubeadm bootstrap provider"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), Value::from(STANDARD.encode(value))))
    .collect::<serde_json::Map<_, _>>()
    .into();
    let made = json!({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token", "data": data,
        "metadata": {"namespace": SYSTEM, "name": format!("bootstrap-token-{id}")}});
    (format!("{id}.{secret}"), made)
}

/// Renews the token until a machine has used it. The token of a pool, whose machines may join at any time, is replaced
/// after half of its lifetime.
fn renew(round: &mut Round<'_>, before: &Value, after: &mut Value, machine: &ConfigOwner<'_>) {
    let token = text(&before["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"]["token"]);
    let (Some((id, _)), Some(workload)) = (token.split_once('.'), round.workload) else { return };
    let name = format!("bootstrap-token-{id}");
    let end =
        workload.system("Secret", &name).and_then(|secret| time(&secret_text(secret, "expiration")?.into()));
    let Some(end) = end else {
        if machine.is_pool {
            replace(round, before, after, machine);
        }
        return;
    };
    // As in the established provider: replaced after half of the lifetime, renewed when less than five sixths are left.
    let (at, wanted) = match machine.has_nodes() {
        true => (end - TOKEN_LIFE / 2, machine.is_pool),
        false => (end - TOKEN_LIFE * 5 / 6, true),
    };
    if !wanted || !round.has_come(at) {
        return;
    }
    if machine.has_nodes() {
        return replace(round, before, after, machine);
    }
    let patch = json!({"data": {"expiration": STANDARD.encode(seconds(round.now + TOKEN_LIFE))}});
    round.act(Action::PatchThere { plural: "secrets", key: (SYSTEM.to_owned(), name), patch });
}

fn replace(round: &mut Round<'_>, before: &Value, after: &mut Value, machine: &ConfigOwner<'_>) {
    if let Err(why) = write(round, before, after, machine, Phase::Join, Some(Value::Null)) {
        tracing::debug!(why, "a pool's token cannot be replaced yet");
        *after = before.clone();
    }
}

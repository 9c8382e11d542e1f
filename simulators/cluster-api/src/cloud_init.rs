//! The bootstrap data of a machine for cloud-init: files, commands, and kubeadm's configuration.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::contract::{host_port, is_endpoint};
use crate::control_plane::parts;
use crate::objects::{list, name, text};

/// What a machine does at its first start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Start a cluster.
    Init,
    /// Join as a further machine of the control plane.
    JoinControlPlane,
    /// Join as a worker.
    Join,
}

/// A file to write.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) owner: Option<String>,
    pub(crate) permissions: Option<String>,
    pub(crate) encoding: Option<String>,
    pub(crate) append: bool,
    pub(crate) content: String,
}

impl File {
    /// A file that root owns.
    pub(crate) fn new(path: &str, permissions: &str, content: String) -> Self {
        Self {
            path: path.to_owned(),
            owner: Some("root:root".to_owned()),
            permissions: Some(permissions.to_owned()),
            encoding: None,
            append: false,
            content,
        }
    }
}

/// The path of kubeadm's configuration of the first machine.
const INIT_FILE: &str = "/run/kubeadm/kubeadm.yaml";
/// The path of kubeadm's configuration of a machine that joins.
const JOIN_FILE: &str = "/run/kubeadm/kubeadm-join-config.yaml";
/// The command that reports success; infrastructure providers look for its file.
const DONE: &str = "echo success > /run/cluster-api/bootstrap-success.complete";

/// Returns the bootstrap data for a KubeadmConfig's `spec`.
pub(crate) fn render(
    spec: &Value,
    files: &[File],
    phase: Phase,
    cluster: &Value,
    version: &str,
) -> Result<String, String> {
    let mut all = files.to_vec();
    let (path, documents) = match phase {
        Phase::Init => (
            INIT_FILE,
            vec![cluster_configuration(spec, cluster, version), init_configuration(spec, version)],
        ),
        _ => (JOIN_FILE, vec![join_configuration(spec, version)]),
    };
    let documents: Result<Vec<String>, _> = documents.iter().map(serde_saphyr::to_string).collect();
    let documents = documents.map_err(|error| error.to_string())?;
    let content: String =
        documents.iter().map(|document| format!("---\n{}\n", document.trim_end())).collect();
    all.push(File::new(path, "0640", content));
    all.push(File::new("/run/cluster-api/placeholder", "0640", "This file makes the folder.\n".to_owned()));
    let verbosity = spec["verbosity"].as_i64().map(|level| format!(" --v {level}")).unwrap_or_default();
    let command = match phase {
        Phase::Init => format!("kubeadm init --config {INIT_FILE}{verbosity} && {DONE}"),
        _ => format!("kubeadm join --config {JOIN_FILE}{verbosity} && {DONE}"),
    };
    let mut text = "## template: jinja\n#cloud-config\n\nwrite_files:\n".to_owned();
    all.iter().for_each(|file| write_file(&mut text, file));
    commands(&mut text, "bootcmd", list(&spec["bootCommands"]).iter().map(self::text));
    let before = list(&spec["preKubeadmCommands"]).iter().map(self::text);
    let after = list(&spec["postKubeadmCommands"]).iter().map(self::text);
    commands(&mut text, "runcmd", before.chain([command.as_str()]).chain(after));
    let rest = sections(spec);
    if !rest.is_empty() {
        text.push_str(&serde_saphyr::to_string(&Value::Object(rest)).map_err(|error| error.to_string())?);
    }
    Ok(text)
}

fn write_file(text: &mut String, file: &File) {
    let _ = writeln!(text, "-   path: {}", file.path);
    for (member, value) in [("encoding", &file.encoding), ("owner", &file.owner)] {
        if let Some(value) = value {
            let _ = writeln!(text, "    {member}: {value}");
        }
    }
    if let Some(permissions) = &file.permissions {
        let _ = writeln!(text, "    permissions: '{permissions}'");
    }
    if file.append {
        text.push_str("    append: true\n");
    }
    text.push_str("    content: |\n");
    file.content.lines().for_each(|line| {
        let _ = writeln!(text, "      {line}");
    });
}

fn commands<'a>(text: &mut String, section: &str, all: impl Iterator<Item = &'a str>) {
    for (number, command) in all.enumerate() {
        if number == 0 {
            let _ = writeln!(text, "{section}:");
        }
        let _ = writeln!(text, "  - {}", Value::from(command));
    }
}

/// Users, clocks, disks and mounts, under cloud-init's names.
fn sections(spec: &Value) -> Map<String, Value> {
    let mut all = Map::new();
    let users: Vec<Value> = list(&spec["users"])
        .iter()
        .map(|user| {
            renamed(
                user,
                &[
                    ("name", "name"),
                    ("gecos", "gecos"),
                    ("groups", "groups"),
                    ("homeDir", "homedir"),
                    ("inactive", "inactive"),
                    ("shell", "shell"),
                    ("passwd", "passwd"),
                    ("primaryGroup", "primary_group"),
                    ("lockPassword", "lock_passwd"),
                    ("sudo", "sudo"),
                    ("sshAuthorizedKeys", "ssh_authorized_keys"),
                ],
            )
        })
        .collect();
    if !users.is_empty() {
        all.insert("users".to_owned(), users.into());
    }
    if spec["ntp"].is_object() {
        all.insert(
            "ntp".to_owned(),
            renamed(&spec["ntp"], &[("enabled", "enabled"), ("servers", "servers")]),
        );
    }
    let disks = list(&spec["diskSetup"]["partitions"]).iter();
    let disks: Map<String, Value> = disks
        .map(|one| {
            let members = [("tableType", "table_type"), ("layout", "layout"), ("overwrite", "overwrite")];
            (text(&one["device"]).to_owned(), renamed(one, &members))
        })
        .collect();
    if !disks.is_empty() {
        all.insert("disk_setup".to_owned(), disks.into());
    }
    let systems: Vec<Value> = list(&spec["diskSetup"]["filesystems"])
        .iter()
        .map(|one| {
            renamed(
                one,
                &[
                    ("label", "label"),
                    ("filesystem", "filesystem"),
                    ("device", "device"),
                    ("partition", "partition"),
                    ("overwrite", "overwrite"),
                    ("replaceFS", "replace_fs"),
                    ("extraOpts", "extra_opts"),
                ],
            )
        })
        .collect();
    if !systems.is_empty() {
        all.insert("fs_setup".to_owned(), systems.into());
    }
    if !list(&spec["mounts"]).is_empty() {
        all.insert("mounts".to_owned(), spec["mounts"].clone());
    }
    all
}

fn renamed(object: &Value, members: &[(&str, &str)]) -> Value {
    let found = members.iter().filter(|(from, _)| !object[*from].is_null());
    found.map(|(from, to)| ((*to).to_owned(), object[*from].clone())).collect::<Map<_, _>>().into()
}

/// The version of kubeadm's configuration that a Kubernetes version reads.
fn kubeadm_version(version: &str) -> &'static str {
    match parts(version).as_slice() {
        [1, minor, ..] if *minor < 22 => "kubeadm.k8s.io/v1beta2",
        [1, minor, ..] if *minor < 31 => "kubeadm.k8s.io/v1beta3",
        _ => "kubeadm.k8s.io/v1beta4",
    }
}

fn document(spec: &Value, kind: &str, version: &str) -> Value {
    let mut document = spec.clone();
    if !document.is_object() {
        document = json!({});
    }
    let of = kubeadm_version(version);
    document["apiVersion"] = of.into();
    document["kind"] = kind.into();
    if of != "kubeadm.k8s.io/v1beta4" {
        arguments_by_name(&mut document);
    }
    timeouts(&mut document);
    document
}

/// Older versions have arguments by name, newer ones have a list.
fn arguments_by_name(value: &mut Value) {
    let Some(members) = value.as_object_mut() else { return };
    for (name, member) in members.iter_mut() {
        if name.ends_with("xtraArgs") && member.is_array() {
            let named = list(member).iter().map(|one| (text(&one["name"]).to_owned(), one["value"].clone()));
            *member = named.collect::<Map<_, _>>().into();
        } else {
            arguments_by_name(member);
        }
    }
}

/// Cluster API has seconds, kubeadm has durations.
fn timeouts(document: &mut Value) {
    let Some(timeouts) = document["timeouts"].as_object() else {
        if let Some(members) = document.as_object_mut() {
            members.remove("timeouts");
        }
        return;
    };
    let durations = timeouts.iter().filter_map(|(name, seconds)| {
        Some((name.strip_suffix("Seconds")?.to_owned(), Value::from(format!("{}s", seconds.as_u64()?))))
    });
    document["timeouts"] = durations.collect::<Map<_, _>>().into();
}

fn cluster_configuration(spec: &Value, cluster: &Value, version: &str) -> Value {
    let mut document = document(&spec["clusterConfiguration"], "ClusterConfiguration", version);
    let endpoint = &cluster["spec"]["controlPlaneEndpoint"];
    if text(&document["controlPlaneEndpoint"]).is_empty() && is_endpoint(endpoint) {
        document["controlPlaneEndpoint"] = host_port(endpoint).into();
    }
    document["clusterName"] = name(cluster).into();
    document["kubernetesVersion"] = version.into();
    let network = &cluster["spec"]["clusterNetwork"];
    let mut networking = Map::new();
    for (member, from) in [("serviceSubnet", "services"), ("podSubnet", "pods")] {
        let blocks: Vec<&str> = list(&network[from]["cidrBlocks"]).iter().map(text).collect();
        if !blocks.is_empty() {
            networking.insert(member.to_owned(), blocks.join(",").into());
        }
    }
    if let Some(domain) = network["serviceDomain"].as_str() {
        networking.insert("dnsDomain".to_owned(), domain.into());
    }
    document["networking"] = networking.into();
    document
}

fn init_configuration(spec: &Value, version: &str) -> Value {
    document(&spec["initConfiguration"], "InitConfiguration", version)
}

fn join_configuration(spec: &Value, version: &str) -> Value {
    document(&spec["joinConfiguration"], "JoinConfiguration", version)
}

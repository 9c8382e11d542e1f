//! Services as the cluster would have them after manifests are applied. Nothing is stored: the API server performs
//! writes as dry runs.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anyhow::{Context as _, bail};
use k8s::Service;
use k8s::api::api::core::v1::{Namespace, Service as FullService};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::Value;

use super::example_ports::ExamplePorts;
use super::merge;
use crate::kubernetes::Cluster;
use crate::manifests::{Manifest, declared, is_service};

/// The field manager of dry runs; the same as that of `kubectl apply`.
const FIELD_MANAGER: &str = "kubectl-client-side-apply";

/// The cluster's Services with the manifests applied.
#[derive(Debug, Default)]
pub struct Preview {
    /// The resulting Services.
    pub services: Vec<Service>,
    /// What cannot be known before the manifests are applied.
    pub notes: Vec<String>,
}

/// Previews the Services of manifests; other objects in them do not affect load balancers.
///
/// # Errors
/// The API server refuses one of them, or a kind is misspelled.
pub async fn preview(
    cluster: &Cluster,
    manifests: &[Manifest],
    namespace: Option<&str>,
) -> anyhow::Result<Preview> {
    let mut preview = Preview::default();
    let (mut new, mut keys) = (Vec::new(), BTreeSet::new());
    let mut ports: Option<ExamplePorts> = None;
    let mut added = Vec::new();
    for manifest in manifests {
        if !is_service(&cluster.client, manifest).await? {
            continue;
        }
        let mut object = manifest.object.clone();
        let namespace = namespace_of(manifest, namespace, &cluster.namespace)?.to_owned();
        object["metadata"]["namespace"] = namespace.as_str().into();
        let name = manifest.text("/metadata/name").to_owned();
        let key = format!("{namespace}/{name}");
        if !keys.insert(key.clone()) {
            bail!("{}: Service {key} is in the manifests twice", manifest.source);
        }
        let unknown = unknown_members(&declared(&object))
            .with_context(|| format!("{}: Service {key} is malformed", manifest.source))?;
        if !unknown.is_empty() {
            preview.notes.push(format!(
                "{}: Service {key} has members that Services do not have: {}",
                manifest.source,
                unknown.join(", ")
            ));
        }
        let live = cluster.services(&namespace).get_opt(&name).await;
        let live = live.map_err(|error| cluster.failed(&format!("cannot read Service {key}"), &error))?;
        let live = live.map(serde_json::to_value).transpose()?;
        let previewed = match &live {
            Some(live) => changed(cluster, &namespace, &name, live, &object).await,
            None => {
                new.push(key.clone());
                created(cluster, &namespace, &name, &object, manifests).await
            }
        };
        let mut previewed = previewed.with_context(|| manifest.source.clone())?;
        let given = [live.as_ref().unwrap_or(&Value::Null), &object];
        if ExamplePorts::are_needed(&previewed, &given) {
            let ports = match &mut ports {
                Some(ports) => ports,
                none => none.insert(ExamplePorts::beside(cluster.all_services().await?, manifests)),
            };
            ports.replace(&key, &mut previewed, &given);
            if live.is_some() {
                added.push(key.clone());
            }
        }
        preview.services.push(serde_json::from_value(previewed).with_context(|| manifest.source.clone())?);
    }
    if keys.is_empty() && !manifests.is_empty() {
        preview.notes.push(format!("none of the {} objects in the manifests is a Service", manifests.len()));
    }
    if !new.is_empty() {
        preview.notes.push(format!(
            "not in the cluster yet: {}. The cluster chooses UIDs and node ports when it makes a Service, so the \
             names in Azure that contain them are examples",
            new.join(", ")
        ));
    }
    if !added.is_empty() {
        preview.notes.push(format!(
            "the cluster chooses further node ports when it changes a Service, so those of these are examples: {}",
            added.join(", ")
        ));
    }
    Ok(preview)
}

impl Cluster {
    async fn all_services(&self) -> anyhow::Result<Vec<Value>> {
        let all =
            Api::<DynamicObject>::all_with(self.client.clone(), &ApiResource::erase::<FullService>(&()));
        let all = all.list(&ListParams::default()).await;
        let all = all.map_err(|error| self.failed("cannot list Services", &error))?;
        all.into_iter().map(|service| Ok(serde_json::to_value(service)?)).collect()
    }

    fn services(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &ApiResource::erase::<FullService>(&()))
    }
}

/// The members of a manifest that Services do not have. (For a member of the wrong type, an API server gives the
/// position only together with the whole object, so that is detected here, too.)
fn unknown_members(manifest: &Value) -> anyhow::Result<Vec<String>> {
    let typed: FullService = serde_path_to_error::deserialize(manifest)?;
    let mut unknown = Vec::new();
    compare("", manifest, &serde_json::to_value(typed)?, &mut unknown);
    Ok(unknown)
}

fn compare(path: &str, written: &Value, read: &Value, unknown: &mut Vec<String>) {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => {
            for (key, value) in written.iter().filter(|(_, value)| !value.is_null()) {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match read.get(key) {
                    Some(read) => compare(&path, value, read, unknown),
                    None => unknown.push(path),
                }
            }
        }
        (Value::Array(written), Value::Array(read)) => {
            for (index, (written, read)) in written.iter().zip(read).enumerate() {
                compare(&format!("{path}[{index}]"), written, read, unknown);
            }
        }
        _ => {}
    }
}

/// The Service after the manifest is applied to the cluster's.
async fn changed(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    live: &Value,
    manifest: &Value,
) -> anyhow::Result<Value> {
    let Some(patch) = merge::difference(live, &merge::apply(live, manifest)) else { return Ok(live.clone()) };
    let dry_run =
        PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }.dry_run();
    let patched = cluster.services(namespace).patch(name, &dry_run, &Patch::Merge(patch)).await;
    let patched = patched.map_err(|error| {
        cluster.failed(&format!("cannot apply Service {namespace}/{name} (as a dry run)"), &error)
    })?;
    Ok(serde_json::to_value(patched)?)
}

/// A Service that the cluster does not have yet. It gets a UID that only depends on its name, so that the same plan
/// always has the same text.
async fn created(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    manifest: &Value,
    manifests: &[Manifest],
) -> anyhow::Result<Value> {
    let mut object = declared(manifest);
    let metadata = &mut object["metadata"];
    let exists = Api::<Namespace>::all(cluster.client.clone()).get_opt(namespace).await;
    let exists = exists
        .map_err(|error| cluster.failed(&format!("cannot read namespace {namespace}"), &error))?
        .is_some();
    let mut host = namespace;
    if !exists {
        let is_declared = |manifest: &Manifest| {
            manifest.kind() == "Namespace" && manifest.text("/metadata/name") == namespace
        };
        if !manifests.iter().any(is_declared) {
            bail!("namespace {namespace} of Service {name} is neither in the cluster nor in the manifests");
        }
        // A dry run needs an existing namespace, and a name that is free in it.
        host = "default";
        metadata["namespace"] = host.into();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("name");
            metadata.insert("generateName".to_owned(), "preview-".into());
        }
    }
    let object: DynamicObject = serde_json::from_value(object)?;
    let dry_run = PostParams { dry_run: true, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let created = cluster.services(host).create(&dry_run, &object).await.map_err(|error| {
        cluster.failed(&format!("cannot create Service {namespace}/{name} (as a dry run)"), &error)
    })?;
    let mut created = serde_json::to_value(created)?;
    created["metadata"]["namespace"] = namespace.into();
    created["metadata"]["name"] = name.into();
    created["metadata"]["uid"] = example_uid(namespace, name).into();
    Ok(created)
}

/// A UID for a Service that has none yet.
fn example_uid(namespace: &str, name: &str) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, namespace, name).hash(&mut hasher);
        hasher.finish()
    };
    let digits = format!("{:016x}{:016x}", half(0), half(1));
    let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)].map(|(from, to)| &digits[from..to]);
    parts.join("-")
}

/// The namespace of an object: its own, that of `-n`, or that of the context.
fn namespace_of<'a>(
    manifest: &'a Manifest,
    requested: Option<&'a str>,
    context: &'a str,
) -> anyhow::Result<&'a str> {
    let own = manifest.text("/metadata/namespace");
    match requested {
        Some(requested) if !own.is_empty() && own != requested => bail!(
            "{}: Service {} is in namespace {own}, and --namespace is {requested}: leave it out, or set it to {own}",
            manifest.source,
            manifest.text("/metadata/name")
        ),
        Some(requested) => Ok(requested),
        None if own.is_empty() => Ok(context),
        None => Ok(own),
    }
}

#[cfg(test)]
mod tests {
    use kubernetes_simulator::Kubernetes;
    use kubernetes_simulator::Options;
    use serde_json::json;

    use super::*;

    struct Fixture {
        kubernetes: Kubernetes,
        cluster: Cluster,
    }

    impl Fixture {
        fn new() -> Self {
            let kubernetes = Kubernetes::new(Options::default());
            let client = kube::Client::new(kubernetes.router(), "default");
            Self { kubernetes, cluster: Cluster::new(client, "default") }
        }

        async fn preview(&self, yaml: &str, namespace: Option<&str>) -> anyhow::Result<Preview> {
            let objects = simulated_cluster::manifests::read("x.yaml", yaml)?.into_iter();
            let manifests: Vec<Manifest> =
                objects.map(|object| Manifest { source: "x.yaml".to_owned(), object }).collect();
            preview(&self.cluster, &manifests, namespace).await
        }

        async fn refused(&self, yaml: &str, namespace: Option<&str>) -> String {
            let problem = self.preview(yaml, namespace).await.expect_err(yaml);
            cloud_controller_manager::in_one_line(&problem)
        }
    }

    const TWO_PORTS: &str = "
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{name: http, port: 80}, {name: https, port: 443}]}
";

    fn one_port() -> String {
        TWO_PORTS.replace(", {name: https, port: 443}", "")
    }

    /// Stores what `kubectl apply` of the manifest stores.
    fn apply(fixture: &Fixture, yaml: &str) {
        let mut object = simulated_cluster::manifests::read("x.yaml", yaml).unwrap().remove(0);
        object["metadata"]["namespace"] = "default".into();
        let annotation = json!({"kubectl.kubernetes.io/last-applied-configuration": object.to_string()});
        object["metadata"]["annotations"] = annotation;
        fixture.kubernetes.create(object).unwrap();
    }

    #[tokio::test]
    async fn ports_that_the_manifest_drops_vanish_and_the_others_keep_their_node_ports() {
        let fixture = Fixture::new();
        apply(&fixture, TWO_PORTS);
        let live = fixture.kubernetes.get("Service", "default", "web").unwrap().value().clone();
        let previewed = fixture.preview(&one_port(), None).await.unwrap();
        let [service] = &previewed.services[..] else { panic!("{previewed:?}") };
        assert_eq!(service.uid(), live["metadata"]["uid"]);
        let [port] = &service.spec.ports[..] else { panic!("{:?}", service.spec.ports) };
        assert_eq!(
            (port.port, i64::from(port.node_port)),
            (80, live["spec"]["ports"][0]["nodePort"].as_i64().unwrap())
        );
        assert_eq!(previewed.notes, Vec::<String>::new());
        assert_eq!(
            fixture.kubernetes.get("Service", "default", "web").unwrap().value().clone(),
            live,
            "nothing is stored"
        );
    }

    /// `kubectl get svc -o yaml | cerulean plan -f -`
    #[tokio::test]
    async fn what_the_cluster_prints_of_a_service_is_that_service() {
        let fixture = Fixture::new();
        apply(&fixture, TWO_PORTS);
        let live = fixture.kubernetes.get("Service", "default", "web").unwrap().value().clone();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [live]}).to_string();
        let previewed = fixture.preview(&list, None).await.unwrap();
        let same: Service = serde_json::from_value(live).unwrap();
        assert_eq!(previewed.services, [same]);
    }

    #[tokio::test]
    async fn a_new_service_gets_the_same_uid_each_time_and_a_note_says_that_it_is_an_example() {
        let fixture = Fixture::new();
        let text = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop}}\n---{TWO_PORTS}");
        let first = fixture.preview(&text, Some("shop")).await.unwrap();
        let second = fixture.preview(&text, Some("shop")).await.unwrap();
        let [service] = &first.services[..] else { panic!("{first:?}") };
        assert_eq!(service.key().to_string(), "shop/web");
        assert!(service.spec.ports.iter().all(|port| port.node_port > 0), "{service:?}");
        assert_eq!(service.uid(), second.services[0].uid());
        assert!(first.notes[0].starts_with("not in the cluster yet: shop/web."), "{:?}", first.notes);
        assert!(fixture.kubernetes.list("Service").iter().all(|service| service.name() != "web"));
    }

    /// The cluster chooses node ports at random, also in a dry run: the plan of the same manifests would differ each
    /// time.
    #[tokio::test]
    async fn node_ports_of_new_ports_are_the_same_each_time() {
        let fixture = Fixture::new();
        apply(&fixture, &one_port());
        let text = format!("{TWO_PORTS}---{}", TWO_PORTS.replace("name: web", "name: other"));
        let ports = |preview: &Preview| -> Vec<i32> {
            let all = preview.services.iter().flat_map(|service| &service.spec.ports);
            all.map(|port| port.node_port).collect()
        };
        let first = fixture.preview(&text, None).await.unwrap();
        let live = fixture.kubernetes.get("Service", "default", "web").unwrap().value().clone();
        assert_eq!(live["spec"]["ports"][0]["nodePort"], ports(&first)[0], "what it has, it keeps");
        assert_eq!(ports(&first).iter().collect::<BTreeSet<_>>().len(), 4, "{:?}", ports(&first));
        for _ in 0..3 {
            assert_eq!(ports(&fixture.preview(&text, None).await.unwrap()), ports(&first));
        }
        let notes = first.notes.join("\n");
        assert!(notes.contains("those of these are examples: default/web"), "{notes}");
    }

    #[tokio::test]
    async fn objects_of_other_kinds_are_passed_over_and_misspelt_kinds_are_not() {
        let fixture = Fixture::new();
        let others = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: x.io/v1\nkind: Widget\nmetadata: {name: b}\n";
        let previewed = fixture.preview(others, None).await.unwrap();
        assert_eq!(previewed.services, Vec::<Service>::new());
        assert_eq!(previewed.notes, ["none of the 2 objects in the manifests is a Service"]);
        let said = fixture.refused(&TWO_PORTS.replace("kind: Service", "kind: Servce"), None).await;
        assert_eq!(
            said,
            "x.yaml: no matches for kind \"Servce\" in version \"v1\"; did you mean kind Service in version v1?"
        );
    }

    #[tokio::test]
    async fn members_that_services_do_not_have_are_named() {
        let fixture = Fixture::new();
        let misspelt = TWO_PORTS.replace("selector:", "loadBalancerSourceRange: [\"10.0.0.0/8\"], selector:");
        let previewed = fixture.preview(&misspelt, None).await.unwrap();
        let expected = "x.yaml: Service default/web has members that Services do not have: \
                        spec.loadBalancerSourceRange";
        assert_eq!(previewed.notes[0], expected);
    }

    #[tokio::test]
    async fn what_the_api_refuses_is_said_in_its_words_and_once() {
        let fixture = Fixture::new();
        let said = fixture.refused(&TWO_PORTS.replace("port: 443", "port: 0"), None).await;
        assert!(said.contains("spec.ports[1].port: Invalid value: 0"), "{said}");
        assert_eq!(said.matches("Invalid value").count(), 1, "{said}");
        assert!(!said.contains("Status {") && !said.contains("ErrorResponse"), "{said}");
        let said = fixture.refused(&TWO_PORTS.replace("port: 443", "port: \"x\""), None).await;
        assert!(said.contains("spec.ports[1].port: invalid type: string \"x\""), "{said}");
        let said = fixture.refused(TWO_PORTS, Some("absent")).await;
        assert!(said.contains("namespace absent of Service web is neither in the cluster nor"), "{said}");
        let said =
            fixture.refused(&TWO_PORTS.replace("{name: web}", "{name: web, namespace: a}"), Some("b")).await;
        assert!(said.contains("is in namespace a, and --namespace is b"), "{said}");
        let said = fixture.refused(&format!("{TWO_PORTS}---{TWO_PORTS}"), None).await;
        assert!(said.contains("default/web is in the manifests twice"), "{said}");
    }
}

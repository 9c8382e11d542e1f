//! What Cluster API makes of a Cluster with `spec.topology`: its infrastructure, its control plane, its
//! MachineDeployments and MachinePools, from the templates of its ClusterClass.
//!
//! ```text
//!  Cluster, ClusterClass, templates ──variables──▶ patch (value_template) ──▶ objects, as if they had been applied
//! ```
//!
//! This is the part of Cluster API's rules that decides what is made in Azure, for a topology that is applied for the
//! first time. Health checks, rollouts, upgrades and the order in which they go are Cluster API's. Not resolved here, and
//! noted by name: external patches, templates beyond [`value_template`], and variables whose values only the management
//! cluster knows. Values are not validated against the schemas of their variables.

mod patch;
mod value_template;
mod variables;

use serde_json::{Map, Value, json};

use patch::{Holder, apply};

use crate::plan::values::{optional, ranges, text, title};

/// Stands for the letters that Cluster API appends to names.
const EXAMPLE: &str = "aaaaa";
const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
const OWNED: &str = "topology.cluster.x-k8s.io/owned";

/// The objects of manifests with those that topologies become.
#[derive(Debug, Default)]
pub struct Expansion {
    /// All objects.
    pub objects: Vec<Value>,
    /// Clusters whose topology Cluster API refuses, and why.
    pub refused: Vec<(String, String)>,
    /// Notes for the plan's readers.
    pub notes: Vec<String>,
    /// Whether something of a topology is not in the manifests.
    pub is_incomplete: bool,
}

/// The name of a Cluster's ClusterClass.
pub fn class_of(object: &Value) -> Option<&str> {
    let is_cluster =
        text(object, "/kind") == "Cluster" && text(object, "/apiVersion").starts_with("cluster.x-k8s.io/");
    let topology = object["spec"]["topology"].as_object().filter(|_| is_cluster)?;
    let class = topology.get("class").or_else(|| topology.get("classRef")?.get("name"));
    Some(class.and_then(Value::as_str).unwrap_or_default())
}

/// Adds what topologies become. Every object names its namespace.
pub fn expand(objects: Vec<Value>) -> Expansion {
    let mut expansion = Expansion::default();
    let mut made = Vec::new();
    for cluster in &objects {
        let Some(class) = class_of(cluster) else { continue };
        if let Some(there) = referred(&objects, cluster, "/spec/infrastructureRef") {
            expansion.notes.push(format!(
                "{}: {} is in the manifests: the cluster is planned from its objects, and not from ClusterClass {class}",
                title(cluster),
                title(there)
            ));
            continue;
        }
        let topology = &cluster["spec"]["topology"];
        let namespace = ["/classNamespace", "/classRef/namespace"].map(|place| optional(topology, place));
        let namespace = namespace.into_iter().flatten().next();
        let namespace = namespace.unwrap_or_else(|| text(cluster, "/metadata/namespace").to_owned());
        let Some(class) = find(&objects, "ClusterClass", class, &namespace) else {
            expansion.is_incomplete = true;
            expansion.notes.push(without_class(cluster, class));
            continue;
        };
        let mut blueprint = Blueprint {
            objects: &objects,
            cluster,
            class,
            made: Vec::new(),
            notes: Vec::new(),
            is_incomplete: false,
        };
        match blueprint.expand() {
            Ok(own) => {
                made.push((title(cluster), own));
                made.extend(blueprint.made.into_iter().map(|object| (String::new(), object)));
            }
            Err(why) => expansion.refused.push((title(cluster), why)),
        }
        expansion.is_incomplete |= blueprint.is_incomplete;
        expansion.notes.append(&mut blueprint.notes);
    }
    expansion.objects = objects;
    for (replaced, object) in made {
        let place = expansion.objects.iter_mut().find(|it| !replaced.is_empty() && title(it) == replaced);
        match place {
            Some(place) => *place = object,
            None => expansion.objects.push(object),
        }
    }
    expansion
}

fn without_class(cluster: &Value, class: &str) -> String {
    format!(
        "{} is made of ClusterClass {class} (spec.topology), which is not in the manifests: add the class and its templates. Or plan \
         what Cluster API has made of it: kubectl get cluster,azurecluster,kubeadmcontrolplane,machinedeployment,machinepool,machine,\
         azuremachine,azuremachinepool,azuremachinetemplate -o yaml | cerulean plan -f -",
        title(cluster)
    )
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str, namespace: &str) -> Option<&'a Value> {
    objects.iter().find(|object| {
        text(object, "/kind") == kind
            && text(object, "/metadata/name") == name
            && text(object, "/metadata/namespace") == namespace
    })
}

/// The object that a Cluster refers to.
fn referred<'a>(objects: &'a [Value], cluster: &Value, place: &str) -> Option<&'a Value> {
    let reference = cluster.pointer(place)?;
    find(objects, text(reference, "/kind"), text(reference, "/name"), text(cluster, "/metadata/namespace"))
}

/// A topology with its class.
struct Blueprint<'a> {
    objects: &'a [Value],
    cluster: &'a Value,
    class: &'a Value,
    made: Vec<Value>,
    notes: Vec<String>,
    is_incomplete: bool,
}

/// A kind of workers.
struct Workers {
    /// The list in the topology and in the class.
    list: &'static str,
    /// The kind of the objects.
    kind: &'static str,
    /// The member of `builtin`.
    builtin: &'static str,
    /// The label with the name in the topology.
    label: &'static str,
    holder: fn(&str) -> Holder<'_>,
    /// Whether the infrastructure and the bootstrap are made of the templates, or stay templates.
    is_pool: bool,
}

const WORKERS: [Workers; 2] = [
    Workers {
        list: "machineDeployments",
        kind: "MachineDeployment",
        builtin: "machineDeployment",
        label: "topology.cluster.x-k8s.io/deployment-name",
        holder: |class| Holder::MachineDeployment(class),
        is_pool: false,
    },
    Workers {
        list: "machinePools",
        kind: "MachinePool",
        builtin: "machinePool",
        label: "topology.cluster.x-k8s.io/pool-name",
        holder: |class| Holder::MachinePool(class),
        is_pool: true,
    },
];

impl Blueprint<'_> {
    /// Makes the objects. Returns the Cluster with its references.
    fn expand(&mut self) -> Result<Value, String> {
        let (class, topology) = (self.class, &self.cluster["spec"]["topology"]);
        let all = variables::of_cluster(class, topology)?;
        let mut cluster = self.cluster.clone();
        let name = self.name().to_owned();

        let infrastructure = &class["spec"]["infrastructure"];
        let own = self.named(infrastructure, &["cluster"], "{{ .cluster.name }}-{{ .random }}", "");
        if let Some(mut template) = self.template(infrastructure) {
            let variables = self.with_builtin(&all, "", Value::Null);
            self.patch(Holder::InfrastructureCluster, &mut template, &variables)?;
            let object =
                self.object(&template, self.referred_name("/spec/infrastructureRef", own), &Value::Null);
            cluster["spec"]["infrastructureRef"] = reference(&object);
            self.made.push(object);
        }

        let control_plane = &class["spec"]["controlPlane"];
        let part = &topology["controlPlane"];
        let own = self.named(control_plane, &["cluster"], "{{ .cluster.name }}-{{ .random }}", "");
        let own = self.referred_name("/spec/controlPlaneRef", own);
        let of_machines = format!("{name}-{EXAMPLE}");
        let metadata = metadata(&control_plane["metadata"], &part["metadata"]);
        let given = variables::overridden(&all, class, part);
        let mut builtin = json!({
            "name": own, "version": topology["version"], "metadata": metadata,
            "machineTemplate": { "infrastructureRef": { "name": of_machines } },
        });
        set(&mut builtin, "replicas", &part["replicas"]);
        let variables = self.with_builtin(&given, "controlPlane", builtin);
        let mut machines = None;
        if control_plane["machineInfrastructure"].is_object()
            && let Some(mut template) = self.template(&control_plane["machineInfrastructure"])
        {
            self.patch(Holder::ControlPlane, &mut template, &variables)?;
            let template = self.renamed(template, &of_machines);
            machines = Some(reference(&template));
            self.made.push(template);
        }
        if let Some(mut template) = self.template(control_plane) {
            self.patch(Holder::ControlPlane, &mut template, &variables)?;
            let mut object = self.object(&template, own, &metadata);
            object["spec"]["version"] = topology["version"].clone();
            if let Some(machines) = machines {
                *member(member(&mut object["spec"], "machineTemplate"), "infrastructureRef") = machines;
                set(&mut object["spec"], "replicas", &part["replicas"]);
            }
            cluster["spec"]["controlPlaneRef"] = reference(&object);
            self.made.push(object);
        }
        for workers in &WORKERS {
            for part in topology["workers"][workers.list].as_array().into_iter().flatten() {
                self.workers(workers, part, &all)?;
            }
        }
        self.notes.push(format!(
            "{}: its topology is planned from {}; names with -{EXAMPLE} are examples, because Cluster API chooses these letters",
            title(self.cluster),
            title(class)
        ));
        Ok(cluster)
    }

    fn workers(&mut self, workers: &Workers, part: &Value, all: &Map<String, Value>) -> Result<(), String> {
        let (class, topology) = (self.class, &self.cluster["spec"]["topology"]);
        let (of_class, of_topology) = (text(part, "/class"), text(part, "/name"));
        let classes = class["spec"]["workers"][workers.list].as_array().into_iter().flatten();
        let found = classes.into_iter().find(|it| it["class"] == of_class).ok_or_else(|| {
            format!(
                "spec.topology.workers.{}: {} has no class {of_class}: name one of its classes",
                workers.list,
                title(class)
            )
        })?;
        let metadata_of_class = found.get("metadata").unwrap_or(&found["template"]["metadata"]);
        let metadata = metadata(metadata_of_class, &part["metadata"]);
        let name =
            format!("{{{{ .cluster.name }}}}-{{{{ .{}.topologyName }}}}-{{{{ .random }}}}", workers.builtin);
        let own = self.named(found, &["cluster", workers.builtin], &name, of_topology);
        let of_parts = format!("{}-{of_topology}-{EXAMPLE}", self.name());
        let mut builtin = json!({
            "name": own, "topologyName": of_topology, "class": of_class, "version": topology["version"],
            "metadata": metadata, "bootstrap": { "configRef": { "name": of_parts } }, "infrastructureRef": { "name": of_parts },
        });
        set(&mut builtin, "replicas", &part["replicas"]);
        let given = variables::overridden(all, class, part);
        let variables = self.with_builtin(&given, workers.builtin, builtin);

        let mut references = [Value::Null, Value::Null];
        for (member, made) in ["infrastructure", "bootstrap"].into_iter().zip(&mut references) {
            let holder = found.get(member).unwrap_or(&found["template"][member]);
            let Some(mut template) = self.template(holder) else { continue };
            self.patch((workers.holder)(of_class), &mut template, &variables)?;
            let object = match workers.is_pool {
                true => self.object(&template, of_parts.clone(), &Value::Null),
                false => self.renamed(template, &of_parts),
            };
            *made = reference(&object);
            self.made.push(object);
        }
        let [infrastructure, bootstrap] = references;
        if infrastructure.is_null() {
            return Ok(());
        }
        let mut labels = metadata["labels"].clone();
        for (key, value) in [(CLUSTER_NAME, self.name()), (OWNED, ""), (workers.label, of_topology)] {
            labels[key] = json!(value);
        }
        let mut spec = json!({
            "clusterName": self.name(),
            "template": {
                "metadata": { "labels": labels },
                "spec": { "clusterName": self.name(), "version": topology["version"], "infrastructureRef": infrastructure },
            },
        });
        set(&mut spec["template"]["spec"], "bootstrap", &json!({ "configRef": bootstrap }));
        set(&mut spec, "replicas", &part["replicas"]);
        for (member, is_of_machines) in [("failureDomain", true), ("failureDomains", false)] {
            let value = part.get(member).unwrap_or(&found[member]);
            set(if is_of_machines { &mut spec["template"]["spec"] } else { &mut spec }, member, value);
        }
        self.made.push(json!({
            "apiVersion": self.cluster["apiVersion"], "kind": workers.kind,
            "metadata": {
                "name": own, "namespace": self.cluster["metadata"]["namespace"],
                "labels": labels, "annotations": metadata["annotations"],
            },
            "spec": spec,
        }));
        Ok(())
    }

    fn name(&self) -> &str {
        text(self.cluster, "/metadata/name")
    }

    /// The name that the Cluster refers to already, or a new one.
    fn referred_name(&self, place: &str, new: String) -> String {
        optional(self.cluster, &format!("{place}/name")).unwrap_or(new)
    }

    /// A name by the template of the class, or by that of Cluster API.
    fn named(&mut self, part: &Value, known: &[&str], default: &str, topology_name: &str) -> String {
        let own = ["/naming/template", "/namingStrategy/template"].map(|place| optional(part, place));
        let mut values = json!({ "random": EXAMPLE });
        for member in known {
            values[*member] = match *member {
                "cluster" => json!({ "name": self.name() }),
                _ => json!({ "topologyName": topology_name }),
            };
        }
        let own = own.into_iter().flatten().next();
        let rendered = own.as_deref().map(|template| (template, value_template::render(template, &values)));
        match rendered {
            Some((_, Ok(name))) => return name,
            Some((template, Err(why))) => {
                self.notes.push(format!(
                    "{}: naming {template:?}: {why}; names of Cluster API are planned",
                    title(self.class)
                ));
            }
            None => {}
        }
        value_template::render(default, &values).unwrap_or_default()
    }

    /// The template that a part of the class refers to.
    fn template(&mut self, part: &Value) -> Option<Value> {
        let reference = part.get("templateRef").or_else(|| part.get("ref")).filter(|it| it.is_object())?;
        let namespace = match text(reference, "/namespace") {
            "" => text(self.class, "/metadata/namespace"),
            named => named,
        };
        let (kind, name) = (text(reference, "/kind"), text(reference, "/name"));
        let Some(found) = find(self.objects, kind, name, namespace) else {
            self.is_incomplete = true;
            self.notes.push(format!(
                "{}: {kind} {namespace}/{name}, of which a part of {} is made, is not in the manifests: the plan is without it",
                title(self.class),
                title(self.cluster)
            ));
            return None;
        };
        let mut template = found.clone();
        if reference["apiVersion"].is_string() {
            template["apiVersion"] = reference["apiVersion"].clone();
        }
        Some(template)
    }

    fn patch(&mut self, holder: Holder<'_>, template: &mut Value, variables: &Value) -> Result<(), String> {
        apply(self.class, holder, template, variables, &mut self.notes)
    }

    /// All variables with `builtin`.
    fn with_builtin(&self, all: &Map<String, Value>, part: &str, values: Value) -> Value {
        let (cluster, topology) = (self.cluster, &self.cluster["spec"]["topology"]);
        let mut builtin = json!({ "cluster": {
            "name": self.name(),
            "namespace": cluster["metadata"]["namespace"],
            "metadata": { "labels": cluster["metadata"]["labels"], "annotations": cluster["metadata"]["annotations"] },
            "topology": {
                "version": topology["version"],
                "class": self.class["metadata"]["name"], "classNamespace": self.class["metadata"]["namespace"],
            },
            "network": {
                "serviceDomain": cluster["spec"]["clusterNetwork"]["serviceDomain"],
                "services": ranges(cluster, "services"), "pods": ranges(cluster, "pods"),
            },
        } });
        if !part.is_empty() {
            builtin[part] = values;
        }
        let mut all = Value::Object(all.clone());
        all["builtin"] = builtin;
        all
    }

    /// The object that is made of a template.
    fn object(&self, template: &Value, name: String, of_part: &Value) -> Value {
        let metadata = metadata(&template["spec"]["template"]["metadata"], of_part);
        let mut labels = metadata["labels"].clone();
        (labels[CLUSTER_NAME], labels[OWNED]) = (json!(self.name()), json!(""));
        let kind = text(template, "/kind");
        json!({
            "apiVersion": template["apiVersion"],
            "kind": kind.strip_suffix("Template").unwrap_or(kind),
            "metadata": {
                "name": name, "namespace": self.cluster["metadata"]["namespace"],
                "labels": labels, "annotations": metadata["annotations"],
            },
            "spec": template.pointer("/spec/template/spec").filter(|it| it.is_object()).unwrap_or(&json!({})),
        })
    }

    /// The copy of a template for this cluster.
    fn renamed(&self, mut template: Value, name: &str) -> Value {
        let metadata = member(&mut template, "metadata");
        *member(metadata, "name") = json!(name);
        *member(metadata, "namespace") = self.cluster["metadata"]["namespace"].clone();
        *member(member(metadata, "labels"), CLUSTER_NAME) = json!(self.name());
        template
    }
}

/// Labels and annotations of the class with those of the topology.
fn metadata(of_class: &Value, of_topology: &Value) -> Value {
    let merged = |member: &str| {
        let both = [of_class, of_topology].into_iter().filter_map(|it| it[member].as_object()).flatten();
        Value::Object(both.map(|(key, value)| (key.clone(), value.clone())).collect())
    };
    json!({ "labels": merged("labels"), "annotations": merged("annotations") })
}

fn reference(object: &Value) -> Value {
    json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "name": object["metadata"]["name"] })
}

/// Sets a member, if there is a value.
fn set(object: &mut Value, name: &str, value: &Value) {
    if !value.is_null() {
        *member(object, name) = value.clone();
    }
}

/// A member to be set. What is no object becomes one: manifests may have any shape.
fn member<'v>(object: &'v mut Value, name: &str) -> &'v mut Value {
    if !object.is_object() {
        *object = json!({});
    }
    &mut object[name]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Manifests of any shape are objects of some shape, or words.
    #[test]
    fn misshapen_templates_are_no_accident() {
        let reference = |kind: &str| json!({ "ref": { "kind": kind, "name": "t" } });
        let objects = |template: Value, topology: Value| {
            let named = |kind: &str| {
                let mut object = template.clone();
                (object["kind"], object["metadata"]["name"], object["metadata"]["namespace"]) =
                    (json!(kind), json!("t"), json!("n"));
                object
            };
            vec![
                json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
                    "metadata": { "name": "c", "namespace": "n" }, "spec": { "topology": topology } }),
                json!({ "kind": "ClusterClass", "metadata": { "name": "k", "namespace": "n" }, "spec": {
                    "infrastructure": reference("ATemplate"),
                    "controlPlane": { "ref": { "kind": "BTemplate", "name": "t" }, "machineInfrastructure": reference("MTemplate") },
                    "workers": { "machinePools": [{ "class": "w", "template": { "infrastructure": reference("ATemplate") } }] },
                } }),
                named("ATemplate"),
                named("BTemplate"),
                named("MTemplate"),
            ]
        };
        let workers = json!({ "machinePools": [{ "class": "w", "name": "p", "replicas": 2 }] });
        let topology =
            json!({ "class": "k", "version": "v1", "controlPlane": { "replicas": 1 }, "workers": workers });
        for template in [
            json!({}),
            json!({ "spec": 7 }),
            json!({ "spec": { "template": "x" } }),
            json!({ "spec": { "template": { "spec": [1], "metadata": { "labels": "x" } } } }),
            json!({ "spec": { "template": { "spec": { "machineTemplate": "x" } } }, "metadata": { "labels": 3 } }),
        ] {
            let expansion = expand(objects(template.clone(), topology.clone()));
            let made: Vec<String> = expansion.objects.iter().skip(5).map(title).collect();
            let names = [
                "A n/c-aaaaa",
                "MTemplate n/c-aaaaa",
                "B n/c-aaaaa",
                "A n/c-p-aaaaa",
                "MachinePool n/c-p-aaaaa",
            ];
            assert_eq!(made, names, "{template}");
            let control_plane = &expansion.objects[7]["spec"];
            assert_eq!(control_plane["machineTemplate"]["infrastructureRef"]["name"], "c-aaaaa");
            assert_eq!((&control_plane["version"], &control_plane["replicas"]), (&json!("v1"), &json!(1)));
            assert_eq!(expansion.objects[0]["spec"]["controlPlaneRef"]["name"], "c-aaaaa");
            assert_eq!(expansion.objects[9]["spec"]["replicas"], 2);
        }
        for topology in
            [json!({ "class": 7, "workers": "x" }), json!({ "class": "k", "workers": { "machinePools": 7 } })]
        {
            assert!(!expand(objects(json!({}), topology)).notes.is_empty());
        }
    }

    #[test]
    fn names_follow_the_class_and_parts_their_overrides() {
        let objects = vec![
            json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "c", "namespace": "n" },
                "spec": { "topology": { "classRef": { "name": "k", "namespace": "shared" }, "version": "v1",
                    "variables": [{ "name": "size", "value": "small" }],
                    "workers": { "machineDeployments": [
                        { "class": "w", "name": "a" },
                        { "class": "w", "name": "b", "failureDomain": "2", "variables": { "overrides": [{ "name": "size", "value": "big" }] } },
                    ] } } } }),
            json!({ "kind": "ClusterClass", "metadata": { "name": "k", "namespace": "shared" }, "spec": {
                "workers": { "machineDeployments": [{ "class": "w", "naming": { "template": "{{ .cluster.name }}-x-{{ .machineDeployment.topologyName }}" },
                    "infrastructure": { "templateRef": { "apiVersion": "g/v1", "kind": "MTemplate", "name": "t" } } }] },
                "patches": [{ "name": "p", "definitions": [{
                    "selector": { "apiVersion": "g/v1", "kind": "MTemplate", "matchResources": { "machineDeploymentClass": { "names": ["w"] } } },
                    "jsonPatches": [{ "op": "add", "path": "/spec/template/spec/size", "valueFrom": { "variable": "size" } },
                        { "op": "add", "path": "/spec/template/spec/of", "valueFrom": { "variable": "builtin.machineDeployment.topologyName" } }],
                }] }] } }),
            json!({ "apiVersion": "g/v1", "kind": "MTemplate", "metadata": { "name": "t", "namespace": "shared" },
                "spec": { "template": { "spec": {} } } }),
        ];
        let expansion = expand(objects);
        assert_eq!(expansion.refused, []);
        let found: Vec<_> =
            expansion.objects.iter().skip(3).map(|it| (title(it), it["spec"].clone())).collect();
        let template = |size: &str, of: &str| json!({ "template": { "spec": { "size": size, "of": of } } });
        assert_eq!(found[0], ("MTemplate n/c-a-aaaaa".to_owned(), template("small", "a")));
        assert_eq!(found[1].0, "MachineDeployment n/c-x-a");
        assert_eq!(found[2], ("MTemplate n/c-b-aaaaa".to_owned(), template("big", "b")));
        assert_eq!(found[3].1["template"]["spec"]["failureDomain"], "2");
        assert_eq!(found[3].1["template"]["spec"]["infrastructureRef"]["name"], "c-b-aaaaa");
    }
}

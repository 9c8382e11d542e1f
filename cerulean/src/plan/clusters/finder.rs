//! Looks for objects in manifests, and admits them as the webhooks do.

use std::collections::BTreeMap;

use capz_api::crd::{self, GROUP};
use capz_api::{ClusterNetwork, Context, Lookup, Random, admission};
use serde_json::Value;

use crate::plan::values::{beside_each_other, is_of, ranges, text, title};

/// An unused key that stands for the one that admission generates: `ssh-ed25519 AAAA… me`, in base64.
const EXAMPLE_KEY: &str = "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUEgbWU=";
/// An unused name that stands for the one that admission generates.
const EXAMPLE_GUID: &str = "00000000-0000-4000-8000-000000000000";

/// The objects of manifests, and what admission refuses of them.
pub struct Finder<'a> {
    /// All objects.
    pub objects: &'a [Value],
    /// The zones of the regions, for spreading control planes.
    pub zones: &'a BTreeMap<String, Vec<String>>,
    /// The default subscription of clusters.
    pub subscription: Option<&'a str>,
    /// Objects that are refused, such as `AzureCluster default/web`, and why.
    pub refused: Vec<(String, String)>,
    /// Notes for the plan's readers.
    pub notes: Vec<String>,
}

impl<'a> Finder<'a> {
    /// All objects of a kind.
    pub fn of(&self, kind: &str) -> Vec<&'a Value> {
        self.objects.iter().filter(|object| text(object, "/kind") == kind).collect()
    }

    /// The object of this kind and name in the namespace of another one.
    pub fn beside(&self, other: &Value, kind: &str, name: &str) -> Option<&'a Value> {
        self.of(kind).into_iter().find(|object| {
            text(object, "/metadata/name") == name
                && text(object, "/metadata/namespace") == text(other, "/metadata/namespace")
        })
    }

    /// Records that an object is refused.
    pub fn refuse(&mut self, object: &Value, why: impl ToString) {
        let entry = (title(object), why.to_string());
        if !self.refused.contains(&entry) {
            self.refused.push(entry);
        }
    }

    /// Admits every object of ours, as the API server would.
    pub fn admit_all(&mut self) {
        for object in self.objects.iter().filter(|object| is_of(object, GROUP)) {
            // Machines are admitted with their owners.
            if !matches!(text(object, "/kind"), "AzureMachinePool") {
                self.admit(object.clone(), None);
            }
        }
    }

    /// An object as it is after admission; `None` if it is refused.
    pub fn admit(&mut self, mut object: Value, pool_version: Option<&str>) -> Option<Value> {
        // A refused object is not judged again.
        if self.refused.iter().any(|(refused, _)| *refused == title(&object)) {
            return None;
        }
        let kind = text(&object, "/kind").to_owned();
        let found = |value: Option<&str>| value.map_or(Lookup::NotNeeded, |it| Lookup::Found(it.to_owned()));
        let context = Context {
            subscription: found(self.subscription),
            pool_version: found(pool_version),
            cluster_network: self.network_of(&object),
            ..Context::default()
        };
        crd::fill_defaults(&kind, &mut object);
        let admitted = admission::set_defaults(&kind, object.clone(), &context, &mut Examples)
            .and_then(|made| admission::validate(&kind, &made, None, &context).map(|()| made));
        match admitted {
            Ok(made) => Some(made),
            Err(denied) => {
                self.refuse(&object, denied);
                None
            }
        }
    }

    /// The ranges of an object's Cluster, if its admission looks at them.
    fn network_of(&self, object: &Value) -> Lookup<ClusterNetwork> {
        if !admission::needs(text(object, "/kind"), object, None).cluster_network {
            return Lookup::NotNeeded;
        }
        let name = admission::cluster_of(object).unwrap_or_default();
        self.beside(object, "Cluster", name).map_or(Lookup::NotNeeded, |cluster| {
            Lookup::Found(ClusterNetwork {
                services: ranges(cluster, "services"),
                pods: ranges(cluster, "pods"),
            })
        })
    }

    /// The Cluster whose member `reference` names an object.
    pub fn cluster_of(&self, object: &Value, reference: &str) -> Option<&'a Value> {
        self.of("Cluster").into_iter().find(|cluster| {
            is_of(cluster, "cluster.x-k8s.io")
                && text(cluster, &format!("/spec/{reference}/name")) == text(object, "/metadata/name")
                && text(cluster, &format!("/spec/{reference}/kind")) == text(object, "/kind")
                && beside_each_other(cluster, object)
        })
    }
}

/// Examples of values that admission generates at random.
pub struct Examples;

impl Random for Examples {
    fn guid(&mut self) -> String {
        EXAMPLE_GUID.to_owned()
    }

    fn ssh_public_key(&mut self) -> String {
        EXAMPLE_KEY.to_owned()
    }
}

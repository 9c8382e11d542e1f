//! Reads the objects of Azure Service Operator, in their storage version: reading that one does not need the operator.

use std::collections::BTreeMap;

use capz_planner::operator::{Converter, Definition, OperatorKind, OperatorObject};
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};

/// Number of objects in one page of a list.
const PAGE_SIZE: u32 = 250;

/// The objects of a kind.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// The objects that belong to objects of ours.
    pub of_clusters: Vec<OperatorObject>,
    /// All other objects, as `NAMESPACE/NAME`.
    pub of_others: Vec<String>,
}

/// The objects of Azure Service Operator in a management cluster.
pub struct OperatorObjects {
    client: Client,
    namespace: Option<String>,
}

impl OperatorObjects {
    /// The objects in this namespace, or in all namespaces.
    pub fn new(client: Client, namespace: Option<String>) -> Self {
        Self { client, namespace }
    }

    /// The resource versions of all definitions, by their names.
    ///
    /// # Errors
    /// The API server refuses the request.
    pub async fn defined(&self) -> Result<BTreeMap<String, String>, kube::Error> {
        let definitions = definitions(&self.client);
        let mut params = ListParams::default().limit(PAGE_SIZE);
        let mut found = BTreeMap::new();
        loop {
            let page = definitions.list_metadata(&params).await?;
            found.extend(page.items.into_iter().filter_map(|it| {
                Some((it.metadata.name?, it.metadata.resource_version.unwrap_or_default()))
            }));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = ListParams::default().limit(PAGE_SIZE).continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    /// Reads the definition of a kind; `None` if the kind is not defined.
    ///
    /// # Errors
    /// The API server refuses the request.
    pub async fn definition(&self, kind: &OperatorKind) -> Result<Option<Definition>, kube::Error> {
        let definition = definitions(&self.client).get_opt(&kind.definition()).await?;
        Ok(definition.and_then(|definition| Definition::of(&serde_json::to_value(definition).ok()?)))
    }

    /// Lists the metadata of the objects of a kind.
    ///
    /// # Errors
    /// The API server refuses the request.
    pub async fn metadata(&self, kind: &OperatorKind, version: &str) -> Result<Vec<ObjectMeta>, kube::Error> {
        let api = self.api(kind, version);
        let mut params = ListParams::default().limit(PAGE_SIZE);
        let mut found = Vec::new();
        loop {
            let page = api.list_metadata(&params).await?;
            found.extend(page.items.into_iter().map(|object| object.metadata));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = ListParams::default().limit(PAGE_SIZE).continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    fn api(&self, kind: &OperatorKind, version: &str) -> Api<DynamicObject> {
        let resource = resource(kind, version);
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Lists the objects of a kind.
    ///
    /// # Errors
    /// The API server refuses the request, for instance because objects are stored in another version, and their
    /// conversion fails.
    pub async fn list(&self, kind: &'static OperatorKind, version: &str) -> Result<Listed, kube::Error> {
        let api = self.api(kind, version);
        let mut params = ListParams::default().limit(PAGE_SIZE);
        let mut listed = Listed::default();
        loop {
            let page = api.list(&params).await?;
            for object in page.items.iter().filter_map(|object| serde_json::to_value(object).ok()) {
                match OperatorObject::of(kind, &object) {
                    Some(object) => listed.of_clusters.push(object),
                    None => {
                        let text =
                            |member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
                        listed.of_others.push(format!("{}/{}", text("namespace"), text("name")));
                    }
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = ListParams::default().limit(PAGE_SIZE).continue_token(&token),
                None => return Ok(listed),
            }
        }
    }

    /// Whether the Service of the conversion webhook does not exist.
    ///
    /// # Errors
    /// The API server refuses the request.
    pub async fn is_gone(&self, converter: &Converter) -> Result<bool, kube::Error> {
        let Converter::Service { namespace, name } = converter else { return Ok(false) };
        let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Service"), "services");
        let services: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
        Ok(services.get_metadata_opt(name).await?.is_none())
    }

    /// Whether conversion fails for the objects of a kind, of which there must be some in the namespace.
    pub async fn is_not_converted(
        &self,
        kind: &OperatorKind,
        definition: &Definition,
        namespace: &str,
    ) -> bool {
        let Some(other) = &definition.other else { return false };
        let objects: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource(kind, other));
        let listed = objects.list_metadata(&ListParams::default().limit(1)).await;
        matches!(listed, Err(kube::Error::Api(status)) if status.message.contains("conversion webhook"))
    }
}

/// The API resource of a kind in a version.
pub(crate) fn resource(kind: &OperatorKind, version: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(kind.group, version, kind.kind), &kind.plural)
}

/// The API of CustomResourceDefinitions.
pub(crate) fn definitions(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions"))
}

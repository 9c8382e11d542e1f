//! From a path to a resource type and a canonical id.

use azure_types::ResourceId;
use serde_json::Value;

use crate::document::reading::Documents;
use crate::provider::{AzureState, ChildCollection, Expand, LiesIn, Record, ResourceType};
use crate::refusal::{Code, Refusal, Result};

/// A path resolved to a known type.
#[derive(Clone)]
pub struct Resolved {
    /// The type.
    pub resource_type: &'static dyn ResourceType,
    /// Canonical id of the resource; for a list the id of the scope that is listed.
    pub id: ResourceId,
    /// Whether all resources of the type below `id` are meant.
    pub list: bool,
    /// Segments behind the resource: children, views, actions.
    pub below: Vec<String>,
    /// The requested full type, for the journal and for faults.
    pub full_type: String,
}

impl Resolved {
    /// The id of what the path names, children within documents included.
    pub fn named_id(&self) -> ResourceId {
        self.below.chunks_exact(2).fold(self.id.clone(), |id, pair| match pair {
            [kind, name] => id.child(kind, name),
            _ => id,
        })
    }
}

impl AzureState {
    /// Resolves an id.
    pub fn resolve_id(&self, id: &ResourceId) -> Result<Resolved> {
        let pairs = id.type_and_name_pairs();
        let scope = pairs.iter().try_fold(id.clone(), |id, _| id.parent());
        let segments: Vec<String> =
            pairs.into_iter().flat_map(|(kind, name)| [kind.to_owned(), name.to_owned()]).collect();
        let namespace = id.namespace().unwrap_or_default();
        // What extends a resource lies below it.
        if let Some(scope) = scope.filter(|scope| scope.namespace().is_some()) {
            let scope = self.store.get(&scope).map_or(scope, |record| record.id.clone());
            return self.resolve_in(&scope, namespace, &segments, "");
        }
        self.resolve(id.subscription_id(), id.group_name(), namespace, &segments, "")
    }

    /// The id of a group in the spelling under which it was created.
    pub fn group_id(&self, subscription: &str, group: &str) -> ResourceId {
        let id = ResourceId::group(subscription, group);
        self.store.get(&id).map_or(id, |record| record.id.clone())
    }

    /// Resolves the segments behind a provider namespace.
    pub fn resolve(
        &self,
        subscription: &str,
        group: Option<&str>,
        namespace: &str,
        segments: &[String],
        api_version: &str,
    ) -> Result<Resolved> {
        let scope = match group {
            Some(group) => self.group_id(subscription, group),
            None => ResourceId::subscription(subscription),
        };
        self.resolve_in(&scope, namespace, segments, api_version)
    }

    /// The same below a subscription, a group or a resource.
    pub fn resolve_in(
        &self,
        scope: &ResourceId,
        namespace: &str,
        segments: &[String],
        api_version: &str,
    ) -> Result<Resolved> {
        let namespace = self.namespace(namespace).ok_or_else(|| Refusal::unknown_namespace(namespace))?;
        let mut full_type = namespace.to_owned();
        let mut id = scope.clone();
        let mut found: Option<Resolved> = None;
        let mut rest = segments;
        while let [segment, after @ ..] = rest {
            let longer = format!("{full_type}/{segment}");
            let Some(resource_type) = self.resource_type(&longer) else { break };
            full_type = resource_type.name().to_owned();
            let spelled = full_type.rsplit('/').next().unwrap_or_default();
            let Some((name, below)) = after.split_first() else {
                return Ok(Resolved { resource_type, id, list: true, below: Vec::new(), full_type });
            };
            id = match found {
                None => id.resource(namespace, spelled, name),
                Some(_) => id.child(spelled, name),
            };
            rest = below;
            found = Some(Resolved {
                resource_type,
                id: id.clone(),
                list: false,
                below: Vec::new(),
                full_type: full_type.clone(),
            });
        }
        let Some(mut resolved) = found else {
            let asked = segments.first().map_or("", String::as_str);
            return Err(Refusal::unknown_type(namespace, asked, api_version));
        };
        let fits = match resolved.resource_type.protocol().lies_in {
            LiesIn::Group => scope.group_name().is_some() && scope.namespace().is_none(),
            LiesIn::Subscription => scope.group_name().is_none() && scope.namespace().is_none(),
            LiesIn::Anything => true,
        };
        if !fits {
            let text = match resolved.resource_type.protocol().lies_in {
                LiesIn::Subscription => {
                    format!("A resource of type '{full_type}' lies in a subscription alone.")
                }
                _ => format!(
                    "A resource of type '{full_type}' lies in a resource group, and the path names none."
                ),
            };
            return Err(Code::ours(404, "InvalidRequestPath").says(text));
        }
        // The stored spelling of the name wins on reads; a write puts its own in its place.
        for (at, segment) in rest.iter().enumerate() {
            if at % 2 == 0 {
                let known = resolved.resource_type.protocol().child_collection(segment).filter(|_| at == 0);
                let canonical = known.map_or(segment.as_str(), |collection| collection.name);
                resolved.full_type = format!("{}/{canonical}", resolved.full_type);
            }
        }
        resolved.below = rest.to_vec();
        if let Some(meant) = resolved.resource_type.stands_for(self, &resolved.id) {
            match self.store.get(&meant) {
                Some(record) => {
                    (resolved.resource_type, resolved.id) = (record.resource_type, record.id.clone());
                }
                None => resolved.id = meant,
            }
        }
        resolved.resource_type.check_name(resolved.id.name())?;
        Ok(resolved)
    }

    /// The group that a resource id lies in; refused when it does not exist.
    pub fn require_group(&self, id: &ResourceId) -> Result<()> {
        let Some(group) = id.group_name() else { return Ok(()) };
        match self.store.get(&ResourceId::group(id.subscription_id(), group)) {
            Some(_) => Ok(()),
            None => Err(Refusal::group_not_found(group)),
        }
    }

    /// The refusal for an absent resource.
    pub fn not_found(&self, id: &ResourceId) -> Refusal {
        let path: String =
            id.type_and_name_pairs().iter().map(|(segment, name)| format!("/{segment}/{name}")).collect();
        let namespace = id.namespace().unwrap_or_default();
        Refusal::resource_not_found(&format!("{namespace}{path}"), id.group_name().unwrap_or_default())
    }

    /// The record that was resolved, or the refusal that its absence gets.
    pub fn require(&self, resolved: &Resolved) -> Result<&Record> {
        self.require_group(&resolved.id)?;
        if let Some(record) = self.store.get(&resolved.id) {
            return Ok(record);
        }
        // ARM answers for the top-level resource; the provider for its children.
        if let Some(top) = top_level(&resolved.id).filter(|top| *top != resolved.id)
            && self.store.get(&top).is_none()
        {
            let protocol = resolved.resource_type.protocol();
            return Err(match protocol.names_absent_parent {
                true => Refusal::parent_not_found("read", protocol.resource_type, &top),
                false => self.not_found(&resolved.id),
            });
        }
        let absent = resolved.resource_type.absence_refusal(self, &resolved.id);
        Err(absent.unwrap_or_else(|| self.not_found(&resolved.id)))
    }

    /// The top-level resource of an id, if that is absent.
    pub(crate) fn absent_top(&self, id: &ResourceId) -> Option<ResourceId> {
        top_level(id).filter(|top| self.store.get(top).is_none())
    }

    /// The child collection, and the child's name, of the segments below a record.
    pub fn child_target<'a>(
        resource_type: &'static dyn ResourceType,
        below: &'a [String],
    ) -> Option<(&'static ChildCollection, Option<&'a str>)> {
        let (first, rest) = below.split_first()?;
        let collection = resource_type.protocol().child_collection(first)?;
        match rest {
            [] => Some((collection, None)),
            [name] => Some((collection, Some(name))),
            _ => None,
        }
    }

    /// The document of an id, however deep: a resource, a child document or a view.
    pub fn document(&self, id: &ResourceId) -> Option<Value> {
        if id.namespace().is_none() {
            return self.store.get(id).map(|record| self.present(record, Default::default()));
        }
        let holder = self.store.holder(id)?;
        if holder.id == *id {
            return Some(self.present(holder, WHOLE));
        }
        if let Some((collection, child)) = self.find_child(holder, id) {
            return Some(self.present_child(holder, collection, child));
        }
        let below: Vec<&str> = id.as_str().get(holder.id.as_str().len() + 1..)?.split('/').collect();
        holder.resource_type.view(self, holder, &below)?.ok()
    }

    /// Every document of a type, ordered by id.
    pub fn documents_of_type(&self, full_name: &str) -> Vec<Value> {
        let mut type_name = full_name;
        loop {
            if let Some(resource_type) = self.resource_type(type_name) {
                let mut records: Vec<&Record> = self.store.of_type(resource_type.name()).collect();
                crate::answer::paging::sort(&mut records, |record| record.id.as_str());
                let below = full_name.get(type_name.len() + 1..);
                return records
                    .into_iter()
                    .flat_map(|record| self.documents_below(record, full_name, below))
                    .collect();
            }
            match type_name.rsplit_once('/') {
                Some((shorter, _)) if shorter.contains('/') => type_name = shorter,
                _ => return Vec::new(),
            }
        }
    }

    fn documents_below(&self, record: &Record, full_name: &str, below: Option<&str>) -> Vec<Value> {
        let Some(below) = below else { return vec![self.present(record, WHOLE)] };
        match record.resource_type.protocol().child_collection(below) {
            Some(collection) => {
                crate::document::items(&record.body, &format!("properties/{}", collection.name))
                    .iter()
                    .map(|child| self.present_child(record, collection, child))
                    .collect()
            }
            None => record.resource_type.views_of_type(self, record, full_name),
        }
    }
}

impl Documents for AzureState {
    fn document(&self, id: &ResourceId) -> Option<Value> {
        AzureState::document(self, id)
    }

    fn of_type(&self, resource_type: &str) -> Vec<Value> {
        self.documents_of_type(resource_type)
    }

    fn at_once(&self, read: &mut dyn FnMut(&dyn Documents)) {
        read(self);
    }
}

/// Readers in this process see machines' power, too: packet oracle, kubelets and tests need it.
const WHOLE: Expand = Expand { instance_view: true };

/// The top-level resource that an id lies in.
fn top_level(id: &ResourceId) -> Option<ResourceId> {
    let pairs = id.type_and_name_pairs().len();
    let mut top = id.clone();
    for _ in 1..pairs {
        top = top.parent()?;
    }
    Some(top)
}

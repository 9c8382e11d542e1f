//! Lookups by name: providers, types, subscriptions and their tenants, providers' timetables; and the etag and location
//! of a record.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use azure_types::ResourceId;
use serde_json::Value;

use crate::provider::{AzureState, DataPlane, EtagForm, Provider, Record, ResourceType, Timetable};

impl AzureState {
    /// The providers of a namespace: several services may share one.
    pub fn providers_of(&self, namespace: &str) -> impl Iterator<Item = &Provider> {
        self.providers.iter().filter(move |provider| provider.namespace.eq_ignore_ascii_case(namespace))
    }

    /// A namespace in Azure's spelling, where there is one.
    pub fn namespace(&self, namespace: &str) -> Option<&'static str> {
        self.providers_of(namespace).next().map(|provider| provider.namespace)
    }

    /// The data planes of all providers.
    pub fn data_planes(&self) -> impl Iterator<Item = &'static DataPlane> {
        self.providers.iter().flat_map(|provider| provider.data_planes)
    }

    /// The provider that has a full type, or a type above it.
    pub fn provider_of(&self, full_type: &str) -> Option<&Provider> {
        let has = |provider: &&Provider| {
            provider.resource_types.iter().any(|known| {
                let (name, rest) = full_type.split_at_checked(known.name().len()).unwrap_or_default();
                name.eq_ignore_ascii_case(known.name()) && (rest.is_empty() || rest.starts_with('/'))
            })
        };
        self.providers_of(full_type.split('/').next().unwrap_or_default()).find(has)
    }

    /// The resource type of a full name such as `Microsoft.Network/loadBalancers`.
    pub fn resource_type(&self, name: &str) -> Option<&'static dyn ResourceType> {
        let mut types = self
            .providers_of(name.split('/').next().unwrap_or_default())
            .flat_map(|provider| &provider.resource_types);
        types.find(|known| known.name().eq_ignore_ascii_case(name)).copied()
    }

    /// The subscription in the spelling of the options, if it exists.
    pub fn subscription(&self, subscription: &str) -> Option<&str> {
        std::iter::once(&self.options.subscription)
            .chain(&self.options.more_subscriptions)
            .find(|known| known.eq_ignore_ascii_case(subscription))
            .map(String::as_str)
    }

    /// Adds a subscription, with the built-in resources. An existing one stays as it is.
    pub fn add_subscription(&mut self, subscription: &str) {
        if self.subscription(subscription).is_none() {
            Arc::make_mut(&mut self.options).more_subscriptions.push(subscription.to_owned());
            let before: BTreeSet<String> = self.store.all().map(|record| record.id.to_lower()).collect();
            self.add_built_in();
            let now = self.store.all().map(|record| record.id.to_lower());
            self.built_in.extend(now.filter(|id| !before.contains(id)));
        }
    }

    /// A provider's timetable of its own actions.
    pub fn timetable<T: Timetable>(&self) -> Option<&T> {
        self.timetables.iter().find_map(|kept| (kept.as_ref() as &dyn Any).downcast_ref())
    }

    /// The same, to be changed.
    pub fn timetable_mut<T: Timetable>(&mut self) -> Option<&mut T> {
        self.timetables.iter_mut().find_map(|kept| (kept.as_mut() as &mut dyn Any).downcast_mut())
    }

    /// Whether a resource is built in, such as a built-in role.
    pub fn is_given(&self, id: &ResourceId) -> bool {
        self.built_in.contains(&id.to_lower())
    }

    /// The tenant that a subscription belongs to.
    pub fn tenant_of(&self, subscription: &str) -> &str {
        let mut others = self.options.subscription_tenants.iter();
        let other = others.find(|(known, _)| known.eq_ignore_ascii_case(subscription));
        other.map_or(&self.options.tenant, |(_, tenant)| tenant)
    }

    /// The etag of a record.
    pub fn etag(&self, record: &Record) -> String {
        match record.resource_type.protocol().etag {
            EtagForm::Hexadecimal => {
                let subject = format!("{}#{}", record.id, record.incarnation);
                let digits = self.seed.number("etag", &subject, record.version) >> 16;
                format!("\"0x8DD{digits:012X}\"")
            }
            form @ (EtagForm::WeakGuid | EtagForm::Guid | EtagForm::QuotedGuid) => {
                // A resource that was deleted and made anew must not answer to its old etags.
                let subject = format!("{}#{}", record.id, record.incarnation);
                let guid = self.seed.guid("etag", &subject, record.version);
                match form {
                    EtagForm::Guid => guid,
                    EtagForm::QuotedGuid => format!("\"{guid}\""),
                    _ => format!("W/\"{guid}\""),
                }
            }
            EtagForm::Counter | EtagForm::Hidden => format!("\"{}\"", record.version),
        }
    }

    /// The location of a record, or of its nearest ancestor that has one.
    pub fn location(&self, id: &ResourceId) -> String {
        let mut next = Some(id.clone());
        while let Some(id) = next {
            if let Some(location) =
                self.store.get(&id).and_then(|r| r.body.get("location")).and_then(Value::as_str)
            {
                return location.into();
            }
            next = id.parent();
        }
        self.options.region.clone()
    }
}

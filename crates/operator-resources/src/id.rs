//! The ID of a resource in Azure.

use azure_types::ResourceId;

use crate::error::Refusal;
use crate::lookup::{Awaited, Lookup};
use crate::reference::Reference;
use crate::resource::Resource;
use crate::table::{Place, find};

/// Where a resource is in Azure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// It has this ID.
    At(ResourceId),
    /// Its ID is not known before these are.
    Awaiting(Vec<Awaited>),
}

impl Resource {
    /// Its ID in Azure. `subscription` is that of its credential, in which resource groups lie.
    ///
    /// # Errors
    ///
    /// The owner is of another type, or a name cannot be part of an ID.
    pub fn id(&self, subscription: &str, lookup: &dyn Lookup) -> Result<Location, Refusal> {
        let name = &self.azure_name;
        let segment = self.kind.segment();
        let owner = match (&self.owner, self.kind.place) {
            (None, _) => return self.checked(ResourceId::group(subscription, name)),
            (Some(Reference::Object(owner)), _) => match lookup.id(owner) {
                Some(id) => id,
                None => return Ok(Location::Awaiting(vec![Awaited::Object(owner.clone())])),
            },
            (Some(Reference::Id(id)), _) => id.clone(),
            (Some(Reference::Role(role)), _) => {
                return Err(Refusal::value(
                    "spec.owner.wellKnownName",
                    role,
                    "write {armId} or {group, kind, name}",
                ));
            }
        };
        let owner = ResourceId::parse(&owner).map_err(|error| {
            Refusal::value(
                "spec.owner",
                &owner,
                format!("write the ID of a resource of a subscription ({error})"),
            )
        })?;
        self.check_owner(&owner)?;
        let id = match self.kind.place {
            Place::Child(..) => owner.child(segment, name),
            _ => owner.resource(self.kind.namespace(), segment, name),
        };
        self.checked(id)
    }

    /// An owner that is given by its ID must be of the type in which such resources lie.
    fn check_owner(&self, owner: &ResourceId) -> Result<(), Refusal> {
        let expected = match self.kind.place {
            Place::Extension | Place::Subscription => return Ok(()),
            Place::Group => "Microsoft.Resources/resourceGroups",
            Place::Child(group, kind) => find(group, kind).map(|kind| kind.resource_type).unwrap_or_default(),
        };
        let found = owner.resource_type();
        if found.eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        Err(Refusal::value("spec.owner", owner, format!("write the ID of one of {expected}, not of {found}")))
    }

    fn checked(&self, id: ResourceId) -> Result<Location, Refusal> {
        let remedy = "write a name that can be part of an ID in Azure";
        if self.azure_name.contains('/') || !ResourceId::is_valid(id.as_str()) {
            return Err(Refusal::value("spec.azureName", &self.azure_name, remedy));
        }
        Ok(Location::At(id))
    }
}

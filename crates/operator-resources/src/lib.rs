//! Objects of Azure Service Operator's kinds, as users write them in `spec.resources` of AzureASOManaged*, read as what
//! Azure Resource Manager takes.
//!
//! ```text
//!  object ──parse──▶ Resource ─┬─ id(subscription, lookup)      where it is in Azure
//!                              ├─ document(lookup)              what is written there
//!                              └─ exports()                     what is written to Secrets and ConfigMaps afterwards
//!  merge patch in the operator's shape ──Patch::of──▶ merge patch of that document
//! ```
//!
//! There is one mechanism, and a table of kinds ([`KINDS`]): the operator's `spec` is the document with `properties`
//! flattened, with references instead of IDs, and with the keys of Secrets and ConfigMaps instead of their values. What
//! is known of other objects comes from a [`Lookup`]; what it does not know yet is [`Awaited`], and no error.
//!
//! # Guarantees
//!
//! * A member that no rule names is passed on as it is: Azure judges it. One that Azure is not known to have is reported
//!   in [`Document::unknown`].
//! * A value that came from a Secret is named in [`Document::secrets`], and no error and no `Debug` output shows it.

mod document;
mod error;
mod export;
mod id;
mod ids;
mod lookup;
mod member;
mod patch;
mod reference;
mod resource;
mod role;
mod table;
mod translation;

pub use document::Document;
pub use error::Refusal;
pub use export::{Destination, Export, Exports};
pub use id::Location;
pub use ids::Ids;
pub use lookup::{Awaited, Lookup};
pub use patch::Patch;
pub use reference::{ObjectName, Reference};
pub use resource::{Policy, Resource};
pub use table::{KINDS, Keeper, Kind, Place, Source, api_version, find};

//! Clusters of Cluster API that share an Azure, and their invariants: self-managed ones, and those that Azure manages, of
//! both generations of kinds. There are three properties, each over worlds that are determined by a seed:
//!
//! * [`Neighbourhood`]: two or three clusters that share names, groups, networks and zones, in one or two management
//!   clusters, are created, changed, moved and deleted, while managers are killed, Azure fails and a third party edits.
//!   What one of them created is never changed, deleted or used by another; a cluster that cannot be served says why;
//!   after its deletion nothing of its own remains, and everything of the others.
//! * [`Drift`]: a third party changes what a cluster created. Within the sync period the change is reverted, or the
//!   owner reports why not, and the writes end.
//! * [`Beside`]: clusters and machines that Azure refuses in every way, next to others, which are done as soon as
//!   without them.
//!
//! The judgement uses Azure's documents and packets, and what a user reads in conditions and events. Each cluster is a
//! separate client of Azure, so a ledger records what each created.

mod act;
mod beside;
mod cluster_api;
mod drift;
mod edit;
mod flavor;
mod ledger;
mod managed;
mod management;
mod member;
mod neighbourhood;
mod stage;

pub use act::{Act, Trouble};
pub use beside::{Bad, Beside, Refusal};
pub use drift::Drift;
pub use flavor::Flavor;
pub use member::{ApiServer, Member, Network};
pub use neighbourhood::Neighbourhood;

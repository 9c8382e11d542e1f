//! Clusters of Cluster API that share an Azure, and what must hold of them whatever happens. Three properties, each over worlds
//! that a seed decides:
//!
//! * [`Neighbourhood`]: two or three clusters that share names, groups, networks and zones, in one or two management clusters,
//!   are created, changed, moved and deleted, while managers are killed, Azure fails and a third party edits. What one of them made
//!   is never changed, deleted or used by another; a cluster that cannot be served says why; what is deleted leaves nothing of its
//!   own and all of the others.
//! * [`Drift`]: a third party changes what a cluster made. Within the sync period it is as before, or the owner says why not, and
//!   the writes end.
//! * [`Beside`]: clusters and machines that Azure refuses in every way, beside others, which are done as soon as they are alone.
//!
//! What is judged is Azure's documents and packets, and what a user reads in conditions and events. Each cluster is a client of
//! its own to Azure, so a ledger knows who made what.

mod act;
mod beside;
mod cluster_api;
mod drift;
mod edit;
mod ledger;
mod management;
mod member;
mod neighbourhood;
mod stage;

pub use act::{Act, Trouble};
pub use beside::{Bad, Beside, Refusal};
pub use drift::Drift;
pub use member::{ApiServer, Member, Network};
pub use neighbourhood::Neighbourhood;

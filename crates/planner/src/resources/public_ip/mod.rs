//! Public IPs: their owners, and what one Service needs of them.

mod change;
mod claim;
mod document;
mod ownership;
mod plan;

pub use change::{keep_address, repair};
pub use claim::{Owners, claimed};
pub use document::address_of;
pub(crate) use document::name_of;
pub use ownership::{SERVICE_TAG, addresses_of_others, kept, may_pass_on, tagged_addresses, used_by};
pub(crate) use ownership::{base_in_name, is_of_other_cluster, is_used_by, strange_users};
pub(crate) use plan::leave;
pub use plan::{PublicIpPlan, plan, plan_removal};

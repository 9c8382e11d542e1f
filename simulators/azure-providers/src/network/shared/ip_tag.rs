//! IP tags of public addresses.

use azure_engine::types::member_table::Holds::Text;
use azure_engine::types::member_table::Member;

pub(crate) static IP_TAG: [Member; 2] = [Member::new("ipTagType", Text), Member::new("tag", Text)];

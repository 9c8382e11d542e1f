//! Availability sets (Azure REST reference, "Availability Sets").

use crate::document::{Tags, document};
use crate::resource_id::ResourceId;

document! {
    /// An availability set.
    AvailabilitySet {
        /// The resource's own id.
        id: ResourceId,
        /// The resource's name.
        name: String,
        /// The region.
        location: String,
        /// The resource's tags.
        tags: Tags,
    }
}

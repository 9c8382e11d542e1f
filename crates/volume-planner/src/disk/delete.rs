//! Whether a disk can be deleted.

use super::observed::ObservedDisk;
use crate::model::error::{Refusal, Result};
use crate::model::id::DiskId;

/// Checks a disk before its deletion.
///
/// # Errors
/// A machine has it.
pub fn check(id: &DiskId, disk: ObservedDisk<'_>) -> Result<()> {
    match disk.all_managers().first() {
        None => Ok(()),
        Some(machine) => {
            Err(Refusal::Attached { disk: id.resource().clone(), machine: machine.as_str().to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::error::Code;

    /// CSI-032. Section 3.8, FIX: an attached disk is a failed precondition; of a shared one, any machine counts.
    #[test]
    fn an_attached_disk_is_not_deleted() {
        let machine = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m";
        let id = DiskId::new("s", "g", "d");
        for (document, code) in [
            (json!({}), None),
            (json!({ "managedBy": "" }), None),
            (json!({ "managedBy": machine }), Some(Code::FailedPrecondition)),
            (json!({ "managedByExtended": [machine] }), Some(Code::FailedPrecondition)),
        ] {
            assert_eq!(
                check(&id, ObservedDisk(&document)).err().map(|refusal| refusal.code()),
                code,
                "{document}"
            );
        }
    }
}

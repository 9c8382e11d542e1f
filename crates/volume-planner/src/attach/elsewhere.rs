//! What is done about a disk that another machine still has.

use azure_types::ResourceId;

use super::machine::manager_id;
use crate::model::error::Refusal;
use crate::model::id::DiskId;

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elsewhere {
    /// Nothing in Kubernetes keeps the disk there: detach it there, then attach it once more.
    DetachThere(ResourceId),
    /// The request is refused.
    Refused(Refusal),
}

/// Decides about a disk that `holder` has while `machine` wants it. `has_attachment` is whether a VolumeAttachment of the disk still
/// exists for the holder's node; unless that is known to be false, the disk stays there.
pub fn decide(
    disk: &DiskId,
    holder: &ResourceId,
    machine: &ResourceId,
    has_attachment: Option<bool>,
) -> Elsewhere {
    let (disk, holder) = (disk.resource().clone(), manager_id(holder));
    if holder == manager_id(machine) {
        return Elsewhere::Refused(Refusal::ListBehindDisk(disk));
    }
    match has_attachment {
        Some(false) => Elsewhere::DetachThere(holder),
        Some(true) | None => Elsewhere::Refused(Refusal::AttachedElsewhere { disk, machine: holder }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::Code;

    /// CSI-044. Section 3.9, step 5.
    #[test]
    fn a_disk_is_taken_only_from_a_node_that_is_known_not_to_need_it() {
        let machine =
            |name: &str| ResourceId::group("s", "g").resource("Microsoft.Compute", "virtualMachines", name);
        let disk = DiskId::new("s", "g", "d");
        for (holder, has_attachment, expected) in [
            ("node", Some(false), Some(Code::Aborted)),
            ("other", Some(true), Some(Code::FailedPrecondition)),
            ("other", None, Some(Code::FailedPrecondition)),
            ("other", Some(false), None),
        ] {
            let code = match decide(&disk, &machine(holder), &machine("node"), has_attachment) {
                Elsewhere::Refused(refusal) => Some(refusal.code()),
                Elsewhere::DetachThere(from) => {
                    assert_eq!(from, machine(holder));
                    None
                }
            };
            assert_eq!(code, expected, "{holder} {has_attachment:?}");
        }
    }
}

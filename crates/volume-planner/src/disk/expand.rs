//! A disk that grows.

use serde_json::{Value, json};

use super::observed::ObservedDisk;
use crate::model::error::{Refusal, Result};
use crate::model::id::DiskId;
use crate::model::size::{CapacityRange, to_bytes};

const UNATTACHED: &str = "Unattached";

/// What serves a request for more room.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// The document to PATCH; absent if the disk is large enough.
    pub document: Option<Value>,
    /// The size to answer, in bytes: the disk's real one.
    pub capacity_bytes: u64,
}

/// Plans the growth of a disk. Disks never shrink.
///
/// # Errors
/// The request names no size, the size exceeds a limit, or the disk is attached and may only grow detached.
pub fn plan(
    id: &DiskId,
    disk: ObservedDisk<'_>,
    range: CapacityRange,
    can_grow_attached: bool,
) -> Result<Expansion> {
    let required = range.required_gib()?;
    if required == 0 {
        return Err(Refusal::Missing("capacity"));
    }
    let current = disk.size_gib().unwrap_or(0);
    if current >= required {
        return Ok(Expansion { document: None, capacity_bytes: to_bytes(current) });
    }
    range.check(required, disk.sku())?;
    let is_attached = disk.state().is_some_and(|state| !state.eq_ignore_ascii_case(UNATTACHED));
    if is_attached && !can_grow_attached {
        let machine = disk.managed_by().map(|id| id.as_str().to_owned());
        let machine = machine.unwrap_or_else(|| disk.state().unwrap_or_default().to_owned());
        return Err(Refusal::Attached { disk: id.resource().clone(), machine });
    }
    let document = json!({ "properties": { "diskSizeGB": required } });
    Ok(Expansion { document: Some(document), capacity_bytes: to_bytes(required) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::Code;

    /// CSI-033. Section 3.16, with its FIX: the real size is reported, and limits are out of range.
    #[test]
    fn a_disk_grows_to_what_is_required() {
        const G: i64 = 1 << 30;
        let id = DiskId::new("s", "g", "d");
        for (current, state, required, limit, online, expected) in [
            (10, "Unattached", 11 * G, 0, true, Ok((Some(11), 11))),
            (10, "Attached", 10 * G + 1, 0, true, Ok((Some(11), 11))),
            (20, "Attached", 11 * G, 0, false, Ok((None, 20))),
            (10, "Attached", 11 * G, 0, false, Err(Code::FailedPrecondition)),
            (10, "Unattached", 11 * G, 0, false, Ok((Some(11), 11))),
            (10, "", 11 * G, 0, false, Ok((Some(11), 11))),
            (10, "Attached", 10 * G, 0, false, Ok((None, 10))),
            (10, "Unattached", 0, 0, true, Err(Code::InvalidArgument)),
            (10, "Unattached", 11 * G, 10 * G, true, Err(Code::OutOfRange)),
            (10, "Unattached", 40_000 * G, 0, true, Err(Code::OutOfRange)),
        ] {
            let document = json!({ "sku": { "name": "Premium_LRS" }, "properties": { "diskSizeGB": current, "diskState": state } });
            let range = CapacityRange { required_bytes: required, limit_bytes: limit };
            let planned = plan(&id, ObservedDisk(&document), range, online);
            let found = planned.map_err(|refusal| refusal.code()).map(|expansion| {
                let sent = expansion.document.and_then(|it| it["properties"]["diskSizeGB"].as_u64());
                (sent, expansion.capacity_bytes >> 30)
            });
            assert_eq!(found, expected, "{current} {state} {required} {limit}");
        }
    }
}

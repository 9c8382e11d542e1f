use azure_types::ResourceId;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::disk_sku::Caching;
use crate::model::error::Code;

const MACHINE: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/node";
const OTHER: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/other";
const SET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/e";

fn id(text: &str) -> ResourceId {
    ResourceId::parse(text).unwrap()
}

fn disk(name: &str) -> DiskId {
    DiskId::new("s", "g", name)
}

fn machine(capacity: u32) -> Machine {
    Machine {
        id: id(MACHINE),
        capacity,
        reserved_luns: BTreeMap::new(),
        os_encryption_set: None,
        has_ultra: None,
        is_stack: false,
        absent_disks: BTreeSet::new(),
    }
}

fn attach(arrival: u64, name: &str) -> Attach {
    Attach {
        arrival,
        disk: disk(name),
        caching: Caching::ReadOnly,
        has_write_accelerator: false,
        encryption_set: None,
        is_ultra: false,
        max_shares: 1,
        managed_by: None,
        state: Some("Unattached".into()),
    }
}

fn detach(name: &str) -> Detach {
    Detach { disk: disk(name), is_forced: false }
}

/// An entry with members that the driver does not know.
fn entry(name: &str, lun: u32) -> Value {
    json!({ "name": name, "lun": lun, "managedDisk": { "id": disk(name).to_string().to_uppercase(), "storageAccountType": "Premium_LRS" },
        "caching": "ReadWrite", "strange": { "member": [1] } })
}

fn code(outcome: &AttachOutcome) -> Option<Code> {
    match outcome {
        AttachOutcome::Refused(refusal) => Some(refusal.code()),
        _ => None,
    }
}

/// CSI-040. Sections 3.9 and 3.10: LUNs are the lowest free ones, entries are whole, and all are written at once.
#[test]
fn several_disks_are_attached_and_detached_in_one_list() {
    let mut first = attach(2, "b");
    first.has_write_accelerator = true;
    first.encryption_set = Some(id(SET));
    let mut of_machine = machine(8);
    of_machine.os_encryption_set = Some("os-set".into());
    let observed = [entry("x", 0), entry("y", 2)];
    let planned = plan(&observed, &[attach(1, "a"), first], &[detach("y")], &of_machine);
    let mut leaving = entry("y", 2);
    leaving["toBeDetached"] = true.into();
    assert_eq!(
        planned.data_disks.unwrap(),
        [
            entry("x", 0),
            leaving,
            json!({ "name": "a", "lun": 1, "caching": "ReadOnly", "createOption": "Attach",
                "managedDisk": { "id": disk("a").to_string(), "diskEncryptionSet": { "id": "os-set" } } }),
            json!({ "name": "b", "lun": 3, "caching": "ReadOnly", "createOption": "Attach", "writeAcceleratorEnabled": true,
                "managedDisk": { "id": disk("b").to_string(), "diskEncryptionSet": { "id": SET } } }),
        ]
    );
    assert_eq!(planned.attaches[&disk("A")], AttachOutcome::Added(1));
    assert_eq!(planned.detaches[&disk("y")], DetachOutcome::Requested);
}

/// Section 3.9: a disk that is there has its LUN; one that leaves, or has no LUN, has not.
#[test]
fn what_the_list_shows_decides() {
    let mut leaving = entry("b", 1);
    leaving["toBeDetached"] = true.into();
    let mut without = entry("c", 2);
    without.as_object_mut().unwrap().remove("lun");
    // An entry of another group with the same name is another disk.
    let mut namesake = entry("d", 3);
    namesake["managedDisk"]["id"] = DiskId::new("s", "other", "d").to_string().into();
    // An entry without an ID is known by its name.
    let unmanaged = json!({ "name": "E", "lun": 4, "vhd": { "uri": "https://x/e.vhd" } });
    let observed = [entry("a", 0), leaving, without, namesake, unmanaged];
    let attaches = ["a", "b", "c", "d", "e"].map(|name| attach(1, name));
    let planned = plan(&observed, &attaches, &[], &machine(8));
    assert_eq!(planned.attaches[&disk("a")], AttachOutcome::Present(0));
    assert_eq!(code(&planned.attaches[&disk("b")]), Some(Code::Aborted));
    assert_eq!(code(&planned.attaches[&disk("c")]), Some(Code::Aborted));
    assert_eq!(planned.attaches[&disk("d")], AttachOutcome::Added(2));
    assert_eq!(planned.attaches[&disk("e")], AttachOutcome::Present(4));
}

/// CSI-043. Sections 3.9 and 3.21: what a disk's own document says, unless it is shared.
#[test]
fn a_disk_that_is_elsewhere_is_refused_unless_it_is_shared() {
    let make = |shares, manager: Option<&str>, state: Option<&str>| Attach {
        max_shares: shares,
        managed_by: manager.map(id),
        state: state.map(str::to_owned),
        ..attach(1, "a")
    };
    for (intent, expected) in [
        (make(1, Some(OTHER), Some("Attached")), Some(Code::FailedPrecondition)),
        (
            make(1, Some(&MACHINE.to_uppercase().replace("/SUBSCRIPTIONS", "/subscriptions")), None),
            Some(Code::Aborted),
        ),
        (make(1, None, Some("ActiveSAS")), Some(Code::FailedPrecondition)),
        (make(1, None, Some("Unattached")), None),
        (make(1, None, None), None),
        (make(2, Some(OTHER), Some("Attached")), None),
    ] {
        let planned = plan(&[], std::slice::from_ref(&intent), &[], &machine(8));
        assert_eq!(code(&planned.attaches[&disk("a")]), expected, "{intent:?}");
    }
    let mut ultra = attach(1, "a");
    ultra.is_ultra = true;
    let mut without = machine(8);
    without.has_ultra = Some(false);
    let planned = plan(&[], &[ultra, attach(2, "b")], &[], &without);
    assert_eq!(code(&planned.attaches[&disk("a")]), Some(Code::FailedPrecondition));
    assert_eq!(planned.attaches[&disk("b")], AttachOutcome::Added(0));
}

/// CSI-042. Section 3.9, FIX: the newest requests are refused when the machine is full; those that leave make room for some.
#[test]
fn the_newest_do_not_fit_and_as_many_as_leave_may_wait() {
    let intents = [attach(3, "c"), attach(1, "a"), attach(2, "b"), attach(4, "d")];
    let planned = plan(&[entry("x", 0), entry("y", 1)], &intents, &[detach("y")], &machine(3));
    assert_eq!(planned.attaches[&disk("a")], AttachOutcome::Added(2));
    assert_eq!(planned.attaches[&disk("b")], AttachOutcome::WaitsForDetach);
    assert_eq!(code(&planned.attaches[&disk("c")]), Some(Code::ResourceExhausted));
    assert_eq!(code(&planned.attaches[&disk("d")]), Some(Code::ResourceExhausted));
    let none = plan(&[], &[attach(1, "a")], &[], &machine(0));
    assert_eq!(code(&none.attaches[&disk("a")]), Some(Code::ResourceExhausted));
}

/// CSI-041.
/// Section 3.9: a LUN that a VolumeAttachment holds is kept for its disk alone; LUNs end at 63 and at the size's maximum.
#[test]
fn reserved_luns_are_those_of_their_disks() {
    let mut reserved = machine(100);
    reserved.reserved_luns = [(0, disk("gone")), (1, disk("b")), (64, disk("far"))].into();
    let planned = plan(&[], &[attach(1, "a"), attach(2, "b"), attach(3, "far")], &[], &reserved);
    assert_eq!(planned.attaches[&disk("a")], AttachOutcome::Added(2));
    assert_eq!(planned.attaches[&disk("b")], AttachOutcome::Added(1));
    assert_eq!(planned.attaches[&disk("far")], AttachOutcome::Added(3));
    let full: Vec<Value> = (0..64).map(|lun| entry(&format!("x{lun}"), lun)).collect();
    let planned = plan(&full, &[attach(1, "a")], &[], &machine(100));
    assert_eq!(code(&planned.attaches[&disk("a")]), Some(Code::ResourceExhausted));
}

/// CSI-042. Section 3.9: a refusal says what takes the slots.
#[test]
fn a_full_machine_says_what_takes_its_slots() {
    let mut reserved = machine(2);
    reserved.reserved_luns = [(0, disk("x")), (1, disk("gone"))].into();
    let planned = plan(&[entry("x", 0)], &[attach(1, "a")], &[], &reserved);
    let full =
        Refusal::MachineFull { disk: disk("a").resource().clone(), capacity: 2, attached: 1, reserved: 1 };
    assert_eq!(planned.attaches[&disk("a")], AttachOutcome::Refused(full));
}

/// CSI-046.
/// Section 3.10: nothing is written for a disk that is not there; force is added; Azure Stack's entries are removed.
#[test]
fn a_detach_marks_forces_or_removes() {
    let none = plan(&[entry("x", 0)], &[], &[detach("a")], &machine(4));
    assert_eq!((none.data_disks, none.detaches[&disk("a")]), (None, DetachOutcome::Absent));
    let mut marked = entry("a", 0);
    marked["toBeDetached"] = true.into();
    let again = plan(std::slice::from_ref(&marked), &[], &[detach("a")], &machine(4));
    assert_eq!((again.data_disks, again.detaches[&disk("a")]), (None, DetachOutcome::Leaving));
    let force = Detach { is_forced: true, ..detach("a") };
    let forced = plan(&[marked], &[], &[detach("a"), force], &machine(4)).data_disks.unwrap();
    assert_eq!(forced[0]["detachOption"], "ForceDetach");
    let mut stack = machine(4);
    stack.is_stack = true;
    let removed = plan(&[entry("a", 0), entry("x", 1)], &[attach(1, "b")], &[detach("a")], &stack);
    let list = removed.data_disks.unwrap();
    // Its LUN is free only once Azure has removed it.
    assert_eq!((list.len(), lun(&list[1])), (2, Some(2)));
}

/// Section 3.10: on a missing disk, the entries of disks that are proven absent are left out.
#[test]
fn disks_that_do_not_exist_leave_the_list() {
    let mut without = machine(4);
    without.absent_disks = [disk("gone")].into();
    let planned = plan(&[entry("gone", 0), entry("x", 1)], &[attach(1, "gone")], &[], &without);
    assert_eq!(planned.data_disks.unwrap(), [entry("x", 1)]);
    assert_eq!(code(&planned.attaches[&disk("gone")]), Some(Code::NotFound));
}

/// A detach and an attach of one disk: the attach waits until the detach has been answered, and is planned again.
#[test]
fn a_disk_that_is_also_detached_waits() {
    let planned = plan(&[entry("a", 0)], &[attach(1, "a")], &[detach("a")], &machine(4));
    assert_eq!(planned.attaches[&disk("a")], AttachOutcome::WaitsForDetach);
    assert_eq!(planned.detaches[&disk("a")], DetachOutcome::Requested);
    let planned = plan(&[], &[attach(1, "a")], &[detach("a")], &machine(4));
    assert_eq!(planned.attaches[&disk("a")], AttachOutcome::WaitsForDetach);
    assert_eq!((planned.data_disks, planned.detaches[&disk("a")]), (None, DetachOutcome::Absent));
}

prop_compose! {
    fn intents()(list in prop::collection::vec((0_u64..20, 0_u32..24, 1_u32..3, any::<bool>()), 0..16)) -> Vec<Attach> {
        list.into_iter().map(|(arrival, name, shares, elsewhere)| Attach {
            max_shares: shares,
            managed_by: elsewhere.then(|| id(OTHER)),
            ..attach(arrival, &format!("d{name}"))
        }).collect()
    }
}

prop_compose! {
    fn detaching()(list in prop::collection::vec((0_u32..24, any::<bool>()), 0..8)) -> Vec<Detach> {
        list.into_iter().map(|(name, is_forced)| Detach { is_forced, ..detach(&format!("d{name}")) }).collect()
    }
}

prop_compose! {
    fn list()(disks in prop::collection::btree_map(0_u32..24, 0_u32..20, 0..12), foreign in 0_u32..4) -> Vec<Value> {
        let mut luns = BTreeSet::new();
        let own = disks.into_iter().filter(|(_, lun)| luns.insert(*lun)).collect::<Vec<_>>();
        let mut list: Vec<Value> = own.into_iter().map(|(name, lun)| entry(&format!("d{name}"), lun)).collect();
        list.extend((0..foreign).map(|at| entry(&format!("foreign{at}"), 40 + at)));
        list
    }
}

prop_compose! {
    fn any_machine()(
        capacity in 0_u32..70,
        reserved in prop::collection::btree_map(0_u32..20, 0_u32..24, 0..5),
        is_stack in any::<bool>(),
    ) -> Machine {
        let reserved_luns = reserved.into_iter().map(|(lun, name)| (lun, disk(&format!("d{name}")))).collect();
        Machine { reserved_luns, is_stack, ..machine(capacity) }
    }
}

proptest! {
    /// Applying the plan and planning again changes nothing, and answers what was served.
    #[test]
    fn planning_twice_changes_nothing(
        list in list(), attaches in intents(), detaches in detaching(), machine in any_machine(),
    ) {
        let first = plan(&list, &attaches, &detaches, &machine);
        let after = first.data_disks.clone().unwrap_or(list);
        let served = |outcome: &AttachOutcome| match outcome {
            AttachOutcome::Added(lun) | AttachOutcome::Present(lun) => Some(*lun),
            _ => None,
        };
        // An attach that was refused may take a LUN that a removal has made free, on Azure Stack.
        let may_come = |one: &Attach| !machine.is_stack || served(&first.attaches[&one.disk]).is_some();
        let left: Vec<_> = attaches.into_iter().filter(may_come).collect();
        let second = plan(&after, &left, &detaches, &machine);
        prop_assert_eq!(second.data_disks, None);
        for (disk, outcome) in &second.attaches {
            if let Some(lun) = served(&first.attaches[disk]) {
                prop_assert_eq!(outcome, &AttachOutcome::Present(lun));
            }
        }
    }

    /// The order in which intents are given does not matter.
    #[test]
    fn the_order_of_intents_does_not_matter(
        list in list(), attaches in intents(), detaches in detaching(), machine in any_machine(), turn in 0_usize..16,
    ) {
        let (mut others, mut back) = (attaches.clone(), detaches.clone());
        others.reverse();
        let turn = turn.min(others.len());
        others.rotate_left(turn);
        back.reverse();
        prop_assert_eq!(plan(&list, &attaches, &detaches, &machine), plan(&list, &others, &back, &machine));
    }

    /// CSI-040.
    /// Others' entries stay, LUNs are unique and reserved ones kept, the capacity holds, and all intents have outcomes.
    #[test]
    fn a_list_is_one_that_azure_takes(
        list in list(), attaches in intents(), detaches in detaching(), machine in any_machine(),
    ) {
        let planned = plan(&list, &attaches, &detaches, &machine);
        let after = planned.data_disks.clone().unwrap_or_else(|| list.clone());
        let ours = |entry: &Value| detaches.iter().any(|one| is_of(entry, &one.disk));
        let stay: Vec<_> = list.iter().filter(|entry| !ours(entry)).collect();
        let still: Vec<_> = after.iter().filter(|entry| list.contains(entry) && !ours(entry)).collect();
        prop_assert_eq!(stay, still);
        let luns: BTreeSet<_> = after.iter().filter_map(lun).collect();
        prop_assert_eq!(luns.len(), after.len());
        prop_assert!(after.len() <= list.len().max(machine.capacity.min(MAX_LUNS) as usize));
        for one in &attaches {
            let outcome = &planned.attaches[&one.disk];
            let entry = find(&after, &one.disk);
            match outcome {
                AttachOutcome::Added(at) => {
                    prop_assert_eq!(entry.and_then(lun), Some(*at));
                    prop_assert!(*at < machine.capacity.min(MAX_LUNS));
                    prop_assert!(machine.reserved_luns.get(at).is_none_or(|owner| *owner == one.disk));
                    prop_assert!(!list.iter().filter_map(lun).any(|taken| taken == *at));
                }
                AttachOutcome::Present(at) => prop_assert_eq!(entry.and_then(lun), Some(*at)),
                AttachOutcome::WaitsForDetach => prop_assert!(entry.is_none_or(is_leaving)),
                AttachOutcome::Refused(_) => prop_assert!(entry.is_none_or(is_leaving)),
            }
        }
        for one in &detaches {
            prop_assert!(planned.detaches.contains_key(&one.disk));
            prop_assert!(find(&after, &one.disk).is_none_or(is_leaving));
        }
    }
}

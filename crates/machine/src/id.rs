//! Provider IDs, and the resource ids of machines.

use azure_types::ResourceId;

/// The prefix of provider IDs.
const PREFIX: &str = "azure://";
/// The provider namespace of machines.
const COMPUTE: &str = "Microsoft.Compute";

/// The name of an instance of a uniform scale set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstanceName {
    /// The scale set's id.
    pub scale_set: ResourceId,
    /// The instance's number in the scale set.
    pub instance_id: String,
}

impl InstanceName {
    /// The instance's resource id.
    pub fn id(&self) -> ResourceId {
        self.scale_set.child("virtualMachines", &self.instance_id)
    }
}

/// A machine of any kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MachineName {
    /// An instance of a uniform scale set.
    Instance(InstanceName),
    /// A standalone machine, or one of an availability set or of a flexible scale set.
    Machine(ResourceId),
}

impl MachineName {
    /// The machine's resource id.
    pub fn id(&self) -> ResourceId {
        match self {
            Self::Instance(name) => name.id(),
            Self::Machine(id) => id.clone(),
        }
    }

    /// The id of the machine's resource group.
    pub fn group(&self) -> ResourceId {
        let id = match self {
            Self::Instance(name) => &name.scale_set,
            Self::Machine(id) => id,
        };
        ResourceId::group(id.subscription_id(), id.group_name().unwrap_or_default())
    }
}

/// The machine that a node's provider ID names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderId {
    /// An instance of a uniform scale set.
    Instance(InstanceName),
    /// A standalone machine (or one of a flexible scale set).
    Machine(ResourceId),
    /// Starts like the ID of an Azure machine but names none. Whether the node's machine exists cannot be determined.
    Unreadable,
    /// Not an Azure ID, or empty.
    Other,
}

impl ProviderId {
    /// The machine, if the ID names one.
    pub fn machine(self) -> Option<MachineName> {
        match self {
            Self::Instance(name) => Some(MachineName::Instance(name)),
            Self::Machine(id) => Some(MachineName::Machine(id)),
            Self::Unreadable | Self::Other => None,
        }
    }
}

/// The parts of an Azure provider ID, spelled as given.
struct ProviderIdParts<'a> {
    path: &'a str,
    subscription: &'a str,
    group: &'a str,
    machine: Option<MachineSegments<'a>>,
}

/// The parts that name a machine.
struct MachineSegments<'a> {
    /// The uniform scale set; `None` for a standalone machine.
    scale_set: Option<&'a str>,
    machine: &'a str,
}

/// Splits an Azure provider ID; the words of its path are compared without regard to case.
fn provider_id_parts(text: &str) -> Option<ProviderIdParts<'_>> {
    let path = text.strip_prefix(PREFIX)?;
    let mut segments = path.strip_prefix('/')?.split('/');
    let mut value = |word: &str| {
        segments.next().filter(|segment| segment.eq_ignore_ascii_case(word)).and_then(|_| segments.next())
    };
    let (subscription, group) = (value("subscriptions")?, value("resourceGroups")?);
    value("providers").filter(|namespace| namespace.eq_ignore_ascii_case(COMPUTE))?;
    let machine = machine_segments(segments).filter(|_| ResourceId::is_valid(path));
    Some(ProviderIdParts { path, subscription, group, machine })
}

fn machine_segments<'a>(mut segments: impl Iterator<Item = &'a str>) -> Option<MachineSegments<'a>> {
    let kind = segments.next()?;
    let name = segments.next()?;
    let (scale_set, machine) = if kind.eq_ignore_ascii_case("virtualMachineScaleSets") {
        segments.next().filter(|kind| kind.eq_ignore_ascii_case("virtualMachines"))?;
        (Some(name), segments.next()?)
    } else {
        (None, Some(name).filter(|_| kind.eq_ignore_ascii_case("virtualMachines"))?)
    };
    segments.next().is_none().then_some(MachineSegments { scale_set, machine })
}

/// Whether a provider ID names an Azure machine.
pub fn names_machine(text: &str) -> bool {
    provider_id_parts(text).is_some_and(|parts| parts.machine.is_some())
}

/// Parses a provider ID. The words of its path are compared without regard to case.
pub fn parse_provider_id(text: &str) -> ProviderId {
    let Some(ProviderIdParts { path, subscription, group, machine }) = provider_id_parts(text) else {
        return ProviderId::Other;
    };
    let Some(MachineSegments { scale_set, machine }) = machine else { return ProviderId::Unreadable };
    let Some(set) = scale_set else {
        return ResourceId::parse(path).map_or(ProviderId::Unreadable, ProviderId::Machine);
    };
    let group = ResourceId::group(subscription, group);
    let scale_set = group.resource(COMPUTE, "virtualMachineScaleSets", set);
    // Older releases wrote `<scale set>_<number>`.
    let prefixed = machine.rsplit_once('_').filter(|(prefix, _)| prefix.eq_ignore_ascii_case(set));
    let instance_id = prefixed.map_or(machine, |(_, number)| number).to_owned();
    ProviderId::Instance(InstanceName { scale_set, instance_id })
}

/// The provider ID of a machine: its resource id with the resource group in lower case.
pub fn provider_id(id: &ResourceId) -> String {
    let mut lower_next = false;
    let segments: Vec<String> = id
        .as_str()
        .split('/')
        .map(|segment| {
            let lower = std::mem::replace(&mut lower_next, segment.eq_ignore_ascii_case("resourceGroups"));
            if lower { segment.to_ascii_lowercase() } else { segment.to_owned() }
        })
        .collect();
    format!("{PREFIX}{}", segments.join("/"))
}

/// The scale set instance that an interface, or a child of an interface, belongs to
/// (`…/virtualMachines/3/networkInterfaces/nic/ipConfigurations/x`). `None` for a standalone interface: its document
/// names its machine.
pub fn of_interface(id: &ResourceId) -> Option<MachineName> {
    let namespace = id.namespace()?;
    let pairs = id.type_and_name_pairs();
    let [(sets, set), (machines, number), (interfaces, _), ..] = pairs[..] else { return None };
    let is_of_instance = namespace.eq_ignore_ascii_case(COMPUTE)
        && sets.eq_ignore_ascii_case("virtualMachineScaleSets")
        && machines.eq_ignore_ascii_case("virtualMachines")
        && interfaces.eq_ignore_ascii_case("networkInterfaces");
    let group = ResourceId::group(id.subscription_id(), id.group_name()?);
    let scale_set = group.resource(COMPUTE, "virtualMachineScaleSets", set);
    is_of_instance.then(|| MachineName::Instance(InstanceName { scale_set, instance_id: number.to_owned() }))
}

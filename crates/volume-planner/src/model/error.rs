//! Why a request cannot be served, as data, with the gRPC code that stands for it.
//!
//! A variant's doc line states the rule that is broken, and its fields are the evidence. Texts are made only here. They
//! name the key, the value and the remedy. Where clients search for a text of the established driver, ours contains it.

use azure_types::ResourceId;

/// A status code of gRPC, as far as the Container Storage Interface gives it a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The request is wrong, and stays so until it changes.
    InvalidArgument = 3,
    /// A volume, snapshot, source or node does not exist.
    NotFound = 5,
    /// The name is taken by something incompatible.
    AlreadyExists = 6,
    /// Azure denies the driver's identity the call.
    PermissionDenied = 7,
    /// No room: the machine is full, a quota is used up, a zone has no capacity. Another place may serve.
    ResourceExhausted = 8,
    /// Another object has to change first: a disk that is attached elsewhere.
    FailedPrecondition = 9,
    /// An operation is in progress: retry.
    Aborted = 10,
    /// The size cannot be had within the limits.
    OutOfRange = 11,
    /// Azure failed in a way that has no code of its own.
    Internal = 13,
    /// The service cannot answer now: retry.
    Unavailable = 14,
}

impl Code {
    /// The number on the wire.
    pub const fn number(self) -> i32 {
        self as i32
    }
}

/// The kind of class that parameters come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassKind {
    /// A StorageClass.
    Storage,
    /// A VolumeAttributesClass.
    VolumeAttributes,
    /// A VolumeSnapshotClass.
    VolumeSnapshot,
}

impl ClassKind {
    /// How messages name it.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Storage => "storage class",
            Self::VolumeAttributes => "volume attributes class",
            Self::VolumeSnapshot => "volume snapshot class",
        }
    }
}

/// Why a request cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A class has parameters that the driver has a row for.
    #[error("invalid parameter {key} in {}; remove it or correct its name", class.noun())]
    UnknownParameter {
        /// The key, as it was written.
        key: String,
        /// The kind of class.
        class: ClassKind,
    },
    /// A value has the form of its key.
    #[error("parameter {key}={value} is invalid: expected {expected}; correct or remove it")]
    InvalidValue {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// The values that are allowed.
        expected: String,
    },
    /// A key and its aliases, in any case, are given once, or with one value.
    #[error("parameter {key} is given twice, as {first} and as {second}; remove one of them")]
    AmbiguousParameter {
        /// The key.
        key: &'static str,
        /// The lesser value.
        first: String,
        /// The greater value.
        second: String,
    },
    /// A parameter suits the SKU.
    #[error("parameter {key}={value} does not suit skuName {sku}: {expected}; correct or remove it")]
    UnsuitableForSku {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The SKU.
        sku: &'static str,
        /// What suits it.
        expected: &'static str,
    },
    /// Two parameters agree.
    #[error("parameter {key}={value} conflicts with {other}; {remedy}")]
    ConflictingParameters {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The other parameter with its value, or its absence.
        other: String,
        /// What resolves it.
        remedy: &'static str,
    },
    /// Azure Stack has this.
    #[error("parameter {key}={value} is not supported on Azure Stack; {remedy}")]
    UnsupportedOnStack {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What serves instead.
        remedy: &'static str,
    },
    /// A VolumeAttributesClass changes what can be changed.
    #[error("parameter {key} cannot be changed after creation; remove it from the volume attributes class")]
    FixedParameter {
        /// The key.
        key: &'static str,
    },
    /// Tags are `key=value` with keys that Azure takes.
    #[error("tags {tags}: {problem}; write key1=value1,key2=value2, or set tagValueDelimiter")]
    InvalidTags {
        /// The whole text.
        tags: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A request has the member.
    #[error("{0} must be provided")]
    Missing(&'static str),
    /// An ID is one of ours.
    #[error("{what} ID {id} is malformed: expected {expected}")]
    MalformedId {
        /// Volume or snapshot.
        what: &'static str,
        /// The text.
        id: String,
        /// Its form.
        expected: &'static str,
        /// What the caller gets: a malformed ID in a request, or the ID of something that cannot exist.
        code: Code,
    },
    /// A size is not negative, and has a representation.
    #[error("capacity of {0} bytes is invalid")]
    InvalidCapacity(i64),
    /// The volume fits the request's limit.
    #[error("a volume of {size_gib} GiB exceeds the limit of {limit_bytes} bytes; raise the limit")]
    OverLimit {
        /// The size that would be created.
        size_gib: u64,
        /// The limit of the request.
        limit_bytes: i64,
    },
    /// The SKU has disks of this size.
    #[error("a disk of {size_gib} GiB exceeds the {maximum_gib} GiB that {sku} has at most")]
    OverSku {
        /// The size.
        size_gib: u64,
        /// The maximum.
        maximum_gib: u64,
        /// The SKU.
        sku: &'static str,
    },
    /// Access modes and types of a volume are possible for a disk.
    #[error("volume capability is invalid: {0}")]
    UnsupportedCapability(&'static str),
    /// What has the name is what the request asks for.
    #[error("{what} {name} already exists with {difference}")]
    Incompatible {
        /// Disk or snapshot.
        what: &'static str,
        /// Its name.
        name: String,
        /// The difference, in words.
        difference: String,
    },
    /// A source exists.
    #[error("source {0} is not found")]
    SourceNotFound(String),
    /// A disk exists.
    #[error("disk {0} is not found")]
    DiskNotFound(ResourceId),
    /// A disk is in a state in which it can be attached.
    #[error("disk {disk} is in state {state} and cannot be attached")]
    DiskState {
        /// The disk.
        disk: ResourceId,
        /// Its `diskState`.
        state: String,
    },
    /// A disk that cannot be shared is attached nowhere else.
    #[error("disk {disk} is attached to {machine}; detach it there first")]
    AttachedElsewhere {
        /// The disk.
        disk: ResourceId,
        /// The machine that has it.
        machine: ResourceId,
    },
    /// The list of the machine that manages a disk contains it.
    #[error("disk {0} names this machine as its manager, but the machine's list lacks it; retry")]
    ListBehindDisk(ResourceId),
    /// A disk is not being detached while it is attached.
    #[error("disk {0} is still being detached from this machine: detach in progress; retry")]
    DetachInProgress(ResourceId),
    /// An attached disk has a LUN.
    #[error("disk {0} is in the machine's list without a LUN; retry")]
    NoLun(ResourceId),
    /// A machine has a slot for a further disk.
    #[error(
        "machine has no free slot for disk {disk}: it takes at most {capacity} data disks and has {attached}, with \
         {reserved} further LUNs reserved; use another node or a larger size"
    )]
    MachineFull {
        /// The disk.
        disk: ResourceId,
        /// How many disks the machine takes.
        capacity: u32,
        /// How many it has.
        attached: u32,
        /// LUNs that are reserved without being in the list.
        reserved: u32,
    },
    /// A machine can use ultra disks.
    #[error(
        "disk {0} is an ultra disk, and ultra disks are not enabled on this machine; enable ultraSSDEnabled on its pool"
    )]
    UltraDisabled(ResourceId),
    /// A disk is detached before it is deleted, or before it grows offline.
    #[error("disk {disk} is attached to {machine}; detach it first")]
    Attached {
        /// The disk.
        disk: ResourceId,
        /// The machine, or the disk's state where no machine is named.
        machine: String,
    },
    /// A disk's data are in place before its SKU changes again.
    #[error("disk {disk} is still changing its SKU ({percent} %); retry when this has ended")]
    MigrationInProgress {
        /// The disk.
        disk: ResourceId,
        /// How far the change is.
        percent: u64,
    },
    /// One operation at a time works on a volume, or on the name of a new one.
    #[error("An operation with the given Volume ID {0} already exists")]
    OperationInProgress(String),
    /// Azure takes requests now.
    #[error("Azure throttles: client throttled for {seconds} s more; retry then")]
    Throttled {
        /// Seconds until Azure takes requests again.
        seconds: u64,
    },
    /// A page's token is one that the driver gave, and still valid.
    #[error("starting token {0} is invalid or outdated; list again from the beginning")]
    InvalidToken(String),
    /// A page has a maximum of entries that is not negative.
    #[error("max_entries must not be negative, and is {0}")]
    NegativePage(i32),
}

impl Refusal {
    /// The code that the caller gets (Container Storage Interface, "Error Scheme").
    pub const fn code(&self) -> Code {
        match self {
            Self::UnknownParameter { .. }
            | Self::InvalidValue { .. }
            | Self::AmbiguousParameter { .. }
            | Self::UnsuitableForSku { .. }
            | Self::ConflictingParameters { .. }
            | Self::UnsupportedOnStack { .. }
            | Self::FixedParameter { .. }
            | Self::InvalidTags { .. }
            | Self::Missing(_)
            | Self::InvalidCapacity(_)
            | Self::UnsupportedCapability(_)
            | Self::NegativePage(_) => Code::InvalidArgument,
            Self::MalformedId { code, .. } => *code,
            Self::OverLimit { .. } | Self::OverSku { .. } => Code::OutOfRange,
            Self::Incompatible { .. } => Code::AlreadyExists,
            Self::SourceNotFound(_) | Self::DiskNotFound(_) => Code::NotFound,
            Self::DiskState { .. }
            | Self::AttachedElsewhere { .. }
            | Self::UltraDisabled(_)
            | Self::Attached { .. } => Code::FailedPrecondition,
            Self::ListBehindDisk(_)
            | Self::DetachInProgress(_)
            | Self::NoLun(_)
            | Self::MigrationInProgress { .. }
            | Self::OperationInProgress(_)
            | Self::Throttled { .. }
            | Self::InvalidToken(_) => Code::Aborted,
            Self::MachineFull { .. } => Code::ResourceExhausted,
        }
    }
}

/// A result of planning.
pub type Result<T> = std::result::Result<T, Refusal>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Sections 2.3, 2.4 and 3.4: texts that clients search for.
    #[test]
    fn texts_that_clients_know_are_kept() {
        let unknown = |class| Refusal::UnknownParameter { key: "k".into(), class };
        for (refusal, text, code) in [
            (unknown(ClassKind::Storage), "invalid parameter k in storage class", 3),
            (unknown(ClassKind::VolumeAttributes), "invalid parameter k in volume attributes class", 3),
            (unknown(ClassKind::VolumeSnapshot), "invalid parameter k in volume snapshot class", 3),
            (
                Refusal::OperationInProgress("pvc-1".into()),
                "An operation with the given Volume ID pvc-1 already exists",
                10,
            ),
            (Refusal::Throttled { seconds: 7 }, "client throttled for 7 s", 10),
        ] {
            assert!(refusal.to_string().contains(text), "{refusal}");
            assert_eq!(refusal.code().number(), code);
        }
    }
}

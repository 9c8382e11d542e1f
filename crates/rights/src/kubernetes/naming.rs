//! The names of objects that roles are limited to.

/// An object that flags name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
}

/// The objects that flags name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming<'a> {
    /// The Lease of the election.
    pub lease: Named<'a>,
    /// The Secret with azure.json.
    pub secret: Named<'a>,
}

/// The objects where no flag names others.
pub const USUAL: Naming<'static> = Naming {
    lease: Named { name: "cloud-controller-manager", namespace: SYSTEM },
    secret: Named { name: "azure-cloud-provider", namespace: SYSTEM },
};

/// Where the driver for file shares looks for a Secret of a volume that names no namespace.
pub(super) const ACCOUNT_KEYS: &str = "default";

/// The namespace of service accounts, and of the Lease that Azure and the controllers share.
pub(super) const SYSTEM: &str = "kube-system";

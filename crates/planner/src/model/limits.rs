//! Azure's limits that refusals name, each with the check in the room that keeps it.

/// The highest port of a load-balancing rule; Kubernetes allows one more.
pub(crate) const MAX_FRONTEND_PORT: i32 = 65534;

/// A dead member must be detected in less than this many seconds.
pub(crate) const MAX_PROBE_SECONDS: i64 = 120;

/// The lowest priority of managed rules.
pub(crate) const MIN_PRIORITY: i32 = 500;

/// The highest priority of new managed rules.
pub(crate) const MAX_PRIORITY: i32 = 4095;

/// The minimum number of addresses of a private link service.
pub(crate) const MIN_ADDRESSES: i32 = 1;

/// The maximum number of addresses of a private link service.
pub(crate) const MAX_ADDRESSES: i32 = 8;

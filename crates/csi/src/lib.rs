//! The Container Storage Interface over gRPC: what drivers for volumes share. Knows neither Azure's API nor Kubernetes.
//!
//! * [`v1`]: messages, clients and servers, compiled from the interface's definition (version 1.12) in `proto`.
//! * [`secrets`]: secrets of requests, which cannot be printed.
//! * [`endpoint`], [`listener`], [`server`]: where a driver listens, and the services that it serves there.
//! * [`observed`], [`call`]: each call is logged, counted and traced once; what a driver says of a call for that.
//! * [`operation`]: the operations that are counted, as a table.
//! * [`identity`]: the first of the three services, which is the same for all drivers.
//! * [`locks`]: locks by name that never block; [`detached`]: calls that are completed even if their caller goes.
//! * [`status`]: errors as gRPC statuses; [`messages`]: between messages and the planner's values.
//!
//! Tests name sections of the project's specification of the drivers for disks and files.

pub mod call;
pub mod codec;
pub mod detached;
pub mod endpoint;
pub mod identity;
pub mod listener;
pub mod locks;
pub mod messages;
pub mod observed;
pub mod operation;
pub mod secrets;
pub mod server;
mod spans;
pub mod status;
pub mod v1;

//! Private link: services, endpoints, the connections between them, and their interfaces.

pub(crate) mod connection;
pub(crate) mod endpoint;
pub(crate) mod own_interface;
pub(crate) mod service;
pub(crate) mod service_connections;
pub(crate) mod target;

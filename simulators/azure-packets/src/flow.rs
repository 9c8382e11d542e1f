//! A flow as security groups see it.

use std::net::IpAddr;

use super::machine::Interface;
use super::protocol::Protocol;

/// A flow as a security group sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flow<'a> {
    pub source: IpAddr,
    pub source_port: u16,
    pub source_interface: Option<&'a Interface>,
    pub destination: IpAddr,
    pub port: u16,
    pub destination_interface: Option<&'a Interface>,
    pub protocol: Protocol,
}

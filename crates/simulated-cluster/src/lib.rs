//! Both simulators joined into one cluster: machines become nodes, nodes answer probes.

pub mod manifests;

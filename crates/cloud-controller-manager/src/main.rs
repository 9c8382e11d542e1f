//! `azure-cloud-controller-manager`: flags and wiring, nothing else.
fn main() {}

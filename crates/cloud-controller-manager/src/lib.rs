//! azure-cloud-controller-manager: flags and wiring, nothing else.

//! The Kubernetes side: services, nodes, node lifecycle, leader election.

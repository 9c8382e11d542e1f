//! An audit log, as kube-apiserver 1.36 writes it under `deploy/rights/audit-policy.yaml`, without what is not read.

use rights::audit::audit;
use serde_json::Value;

const LOG: &str = include_str!("audit.log");

const ROLES: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nodes}
rules:
  - {apiGroups: [''], resources: [nodes], verbs: [list, watch, delete]}
  - {apiGroups: [''], resources: [nodes/status], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nodes}
subjects: [{kind: ServiceAccount, name: cloud-controller-manager, namespace: kube-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: election, namespace: kube-system}
rules:
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [cloud-controller-manager], verbs: [get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: election, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: election}
subjects: [{kind: ServiceAccount, name: cloud-controller-manager, namespace: kube-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: another}
rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: whole}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregate: 'yes'}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: part, labels: {aggregate: 'yes'}}
rules: [{apiGroups: ['x.io'], resources: ['*'], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: whole}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: whole}
subjects: [{kind: User, name: person}]
";

fn objects() -> Vec<Value> {
    serde_saphyr::from_multiple(ROLES).unwrap()
}

#[test]
fn denied_requests_and_unused_rights_are_named() {
    let found = audit(LOG.lines(), &[], &objects());
    let account = "system:serviceaccount:kube-system:cloud-controller-manager".to_owned();
    let denied: Vec<_> = found.denied.iter().collect();
    let expected = [
        ((account.clone(), "list endpointslices.discovery.k8s.io".to_owned()), 2),
        ((account, "patch services/status in shop".to_owned()), 1),
    ];
    assert_eq!(denied, expected.iter().map(|(key, count)| (key, count)).collect::<Vec<_>>());
    let unused: Vec<String> = found.unused.iter().map(|(role, what)| format!("{role}: {what}")).collect();
    assert_eq!(
        unused,
        [
            "election: create leases.coordination.k8s.io",
            "nodes: delete nodes",
            "nodes: patch nodes/status",
            "part: get *.x.io",
        ]
    );
    assert_eq!((found.requests, found.unreadable), (8, 1));
    insta::assert_snapshot!(found, @r#"
    8 requests, 3 denied
      denied 2 times: list endpointslices.discovery.k8s.io of system:serviceaccount:kube-system:cloud-controller-manager
      denied 1 times: patch services/status in shop of system:serviceaccount:kube-system:cloud-controller-manager
      1 lines are not events of an audit log
    4 rights were not used
      election: create leases.coordination.k8s.io
      nodes: delete nodes
      nodes: patch nodes/status
      part: get *.x.io
    "#);
}

#[test]
fn only_the_users_that_are_asked_for_count() {
    let of = |user: &str| audit(LOG.lines(), &[user.to_owned()], &objects());
    let node_manager = of("kube-system/cloud-node-manager");
    assert_eq!((node_manager.requests, node_manager.denied.len()), (1, 1));
    assert!(node_manager.unused.is_empty(), "it has no binding: {:?}", node_manager.unused);
    let manager = of("kube-system/cloud-controller-manager");
    assert_eq!(manager.denied.len(), 2);
    assert_eq!(manager, of("system:serviceaccount:kube-system:cloud-controller-manager"));
    assert_eq!(of("person").unused.len(), 1);
}

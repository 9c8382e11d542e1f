{{- /* The values of the established chart that are flags, in the order of their names. */ -}}
{{- define "controller-manager.flags" -}}
allocateNodeCidrs allocate-node-cidrs
bindAddress bind-address
certDir cert-dir
cloudConfig cloud-config
cloudConfigKey cloud-config-key
cloudConfigSecretName cloud-config-secret-name
cloudConfigSecretNamespace cloud-config-secret-namespace
clusterCIDR cluster-cidr
configureCloudRoutes configure-cloud-routes
contentionProfiling contention-profiling
controllerStartInterval controller-start-interval
enableDynamicReloading enable-dynamic-reloading
http2MaxStreamsPerConnection http2-max-streams-per-connection
kubeAPIBurst kube-api-burst
kubeAPIContentType kube-api-content-type
kubeAPIQPS kube-api-qps
kubeconfig kubeconfig
leaderElect leader-elect
leaderElectLeaseDuration leader-elect-lease-duration
leaderElectRenewDeadline leader-elect-renew-deadline
leaderElectResourceLock leader-elect-resource-lock
leaderElectRetryPeriod leader-elect-retry-period
master master
minResyncPeriod min-resync-period
nodeStatusUpdateFrequency node-status-update-frequency
profiling profiling
routeReconciliationPeriod route-reconciliation-period
useServiceAccountCredentials use-service-account-credentials
{{- end -}}

{{- /* The port of health checks and metrics, 0 for none. The established chart before 1.26 had no default. */ -}}
{{- define "controller-manager.port" -}}
{{- $port := get .Values.cloudControllerManager "securePort" -}}
{{- if kindIs "invalid" $port }}10268{{ else }}{{ int $port }}{{ end -}}
{{- end -}}

{{- define "controller-manager.controllers" -}}
{{- $controllers := .Values.cloudControllerManager.controllers -}}
{{- kindIs "slice" $controllers | ternary (join "," $controllers) ($controllers | default "*,-cloud-node") -}}
{{- end -}}

{{- /* cloud-node writes addresses, and the route controller a condition. */ -}}
{{- define "controller-manager.writesNodeStatus" -}}
{{- $initialises := not (contains "-cloud-node," (printf "%s," (include "controller-manager.controllers" .))) -}}
{{- if or $initialises (ne (.Values.cloudControllerManager.configureCloudRoutes | toString | lower) "false") }}true{{ end -}}
{{- end -}}

{{- define "controller-manager.selector" -}}
component: cloud-controller-manager
tier: control-plane
{{- end -}}

{{- /* Who runs the program: its service account, and the user of a kubeconfig, if it has one. */ -}}
{{- define "controller-manager.subjects" -}}
- kind: ServiceAccount
  name: cloud-controller-manager
  namespace: kube-system
{{- if .Values.cloudControllerManager.kubeconfig }}
- kind: User
  apiGroup: rbac.authorization.k8s.io
  name: cloud-controller-manager
{{- end }}
{{- end -}}

{{- /* The values of the established chart that are flags on both systems. */ -}}
{{- define "node-manager.flags" -}}
cloudConfig cloud-config
kubeAPIBurst kube-api-burst
kubeAPIContentType kube-api-content-type
kubeAPIQPS kube-api-qps
master master
minResyncPeriod min-resync-period
nodeStatusUpdateFrequency node-status-update-frequency
waitRoutes wait-routes
{{- end -}}

{{- /* And those on Linux alone: on Windows the kubeconfig is made from kube-proxy's, and instance metadata is always used. */ -}}
{{- define "node-manager.linuxFlags" -}}
kubeconfig kubeconfig
useInstanceMetadata use-instance-metadata
{{- end -}}

{{- /* Flags as a list, without those that differ between the systems. */ -}}
{{- define "node-manager.arguments" -}}
{{- $values := .Values.cloudNodeManager -}}
{{- include "cerulean.flags" (dict "values" $values "flags" (include "node-manager.flags" .)) }}
{{- if include "node-manager.announces" . }}
- --scheduled-events={{ $values.scheduledEvents }}
{{- end }}
- --v={{ if kindIs "invalid" $values.logVerbosity }}2{{ else }}{{ $values.logVerbosity }}{{ end }}
{{- range $values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "node-manager.announces" -}}
{{- if has (.Values.cloudNodeManager.scheduledEvents | default "none") (list "report" "drain") }}true{{ end -}}
{{- end -}}

{{- /* The folder of azure.json on the host, if the machine is described by Resource Manager. */ -}}
{{- define "node-manager.cloudConfigFolder" -}}
{{- $values := .Values.cloudNodeManager -}}
{{- if and $values.cloudConfig (eq (get $values "useInstanceMetadata" | toString | lower) "false") }}{{ dir $values.cloudConfig }}{{ end -}}
{{- end -}}

{{- /* Every node, whatever its taints: no pod of a network plugin runs before this one. */ -}}
{{- define "node-manager.tolerations" -}}
- operator: Exists
{{- end -}}

{{- /* Pod labels that are immutable, because the selector has them: "" or "-windows". */ -}}
{{- define "node-manager.podMetadata" -}}
labels:
  k8s-app: cloud-node-manager{{ .suffix }}
  {{- with .root.Values.cloudNodeManager.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  cluster-autoscaler.kubernetes.io/daemonset-pod: "true"
  {{- with .root.Values.cloudNodeManager.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* The container of the proxy beside the node manager: (dict "root" $ "image" IMAGE "command" COMMAND). */ -}}
{{- define "node-manager.proxy" -}}
{{- $values := .root.Values.cloudNodeManager -}}
- name: health-probe-proxy
  image: {{ .image }}
  imagePullPolicy: IfNotPresent
  command: [{{ .command | quote }}]
  args:
    - --health-check-port={{ int $values.healthCheckPort }}
    - --target-port={{ int $values.targetPort }}
  ports:
    - containerPort: {{ int $values.healthCheckPort }}
  resources:
    requests:
      cpu: 10m
      memory: 8Mi
    limits:
      cpu: 200m
      memory: {{ .memory }}
{{- end -}}

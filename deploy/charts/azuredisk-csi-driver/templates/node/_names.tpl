{{- /* The values of node pods. Charts before 1.33 lack some of them, and helm upgrade --reuse-values brings no defaults. */ -}}
{{- define "disk.node" -}}
{{- $check := dict "enabled" true "initialDelaySeconds" 20 "timeoutSeconds" 10 "periodSeconds" 20 "failureThreshold" 2 -}}
{{- $registrar := dict "healthPort" 29607 "livenessProbe" $check -}}
{{- $defaults := dict "metricsPort" 29605 "reservedDataDiskSlotNum" 0 "removeNotReadyTaint" true "nodeDriverRegistrar" $registrar -}}
{{- mergeOverwrite $defaults (deepCopy .Values.node) | toJson -}}
{{- end -}}

{{- /* Flags that the driver has on both systems. */ -}}
{{- define "disk.nodeArguments" -}}
{{- $node := include "disk.node" . | fromJson -}}
- --drivername={{ .Values.driver.name }}
- --metrics-address=0.0.0.0:{{ int $node.metricsPort }}
- --volume-attach-limit={{ int .Values.driver.volumeAttachLimit }}
- --reserved-data-disk-slot-num={{ int $node.reservedDataDiskSlotNum }}
- {{ printf "--cloud-config-secret-name=%s" ($node.cloudConfigSecretName | default "") | quote }}
- {{ printf "--cloud-config-secret-namespace=%s" ($node.cloudConfigSecretNamespace | default "") | quote }}
- --allow-empty-cloud-config={{ $node.allowEmptyCloudConfig }}
- {{ printf "--custom-user-agent=%s" (.Values.driver.customUserAgent | default "") | quote }}
- {{ printf "--user-agent-suffix=%s" (.Values.driver.userAgentSuffix | default "") | quote }}
- --support-zone={{ $node.supportZone }}
- --get-nodeid-from-imds={{ $node.getNodeIDFromIMDS }}
- --remove-not-ready-taint={{ $node.removeNotReadyTaint }}
- --v={{ $node.logLevel }}
{{- end -}}

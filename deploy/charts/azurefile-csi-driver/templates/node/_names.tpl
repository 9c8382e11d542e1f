{{- /* The values of node pods. Charts before 1.35 lack some of them, and helm upgrade --reuse-values brings no defaults. */ -}}
{{- define "share.node" -}}
{{- $check := dict "initialDelaySeconds" 20 "timeoutSeconds" 10 "periodSeconds" 20 "failureThreshold" 2 -}}
{{- $registrar := dict "healthPort" 29617 "livenessProbe" $check -}}
{{- $defaults := dict "strategyType" "RollingUpdate" "maxUnavailable" 1 "nodeDriverRegistrar" $registrar "inlineVolumeSecretAuthz" "off" -}}
{{- $defaults = merge $defaults (dict "enableKataCCMount" false "useAZNFSForNFSMounts" false "azurefileProxy" (dict "enabled" false) "extraArgs" list) -}}
{{- mergeOverwrite $defaults (deepCopy .Values.node) | toJson -}}
{{- end -}}

{{- /* Flags that the driver has on both systems. */ -}}
{{- define "share.nodeArguments" -}}
{{- $node := include "share.node" . | fromJson -}}
- --drivername={{ .Values.driver.name }}
- --metrics-address=0.0.0.0:{{ int $node.metricsPort }}
- {{ printf "--cloud-config-secret-name=%s" ($node.cloudConfigSecretName | default "") | quote }}
- {{ printf "--cloud-config-secret-namespace=%s" ($node.cloudConfigSecretNamespace | default "") | quote }}
- --allow-empty-cloud-config={{ $node.allowEmptyCloudConfig }}
- {{ printf "--custom-user-agent=%s" (.Values.driver.customUserAgent | default "") | quote }}
- {{ printf "--user-agent-suffix=%s" (.Values.driver.userAgentSuffix | default "") | quote }}
- --enable-get-volume-stats={{ .Values.feature.enableGetVolumeStats }}
- --allow-inline-volume-key-access-with-identity={{ $node.allowInlineVolumeKeyAccessWithIdentity }}
- --v={{ $node.logLevel }}
{{- end -}}

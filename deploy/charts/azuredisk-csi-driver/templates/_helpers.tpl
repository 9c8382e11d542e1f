{{- /* Metadata labels of every object, those of the established chart among them. Selectors do not use them. */ -}}
{{- define "disk.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{- /* Metadata of a workload: (dict "root" $ "name" NAME "values" .Values.linux), whose labels and annotations come last. */ -}}
{{- define "disk.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "disk.labels" .root | nindent 2 }}
  {{- with .values.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Metadata of its pods. The label app is the selector. */ -}}
{{- define "disk.podMetadata" -}}
labels:
  {{- include "disk.labels" .root | nindent 2 }}
  app: {{ .name }}
  {{- if and .identity .root.Values.workloadIdentity.clientID }}
  azure.workload.identity/use: "true"
  {{- end }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* A repository under the registry: (dict "root" $ "repository" TEXT). */ -}}
{{- define "disk.repository" -}}
{{- if hasPrefix "/" .repository }}{{ .root.Values.image.baseRepo }}{{ end }}{{ .repository -}}
{{- end -}}

{{- /* The image of a side-car, and when to pull it: (dict "root" $ "image" .Values.image.csiAttacher). */ -}}
{{- define "disk.image" -}}
image: {{ printf "%s:%s" (include "disk.repository" (dict "root" .root "repository" .image.repository)) (toString .image.tag) | quote }}
imagePullPolicy: {{ .image.pullPolicy | default "IfNotPresent" }}
{{- end -}}

{{- /* Whether the driver's repository is one of the established chart's defaults, as helm upgrade --reuse-values brings them. */ -}}
{{- define "disk.isEstablished" -}}
{{- if regexMatch "/(oss(/v2)?/kubernetes-csi|k8s/csi)/azuredisk-csi$" (.Values.image.azuredisk.repository | default "") }}true{{ end -}}
{{- end -}}

{{- /*
The driver's image. The established chart's repositories mean this chart's image, with this chart's tag: in the registry baseRepo if
that is another one than the established chart's.
*/ -}}
{{- define "disk.driverImage" -}}
{{- $image := .Values.image.azuredisk -}}
{{- $own := index .Chart.Annotations "cerulean/image-repository" -}}
{{- $repository := $image.repository | default (printf "%s/azuredisk-csi" $own) -}}
{{- $tag := $image.tag | default "" | toString -}}
{{- if include "disk.isEstablished" . -}}
  {{- $base := .Values.image.baseRepo | default "" -}}
  {{- $repository = printf "%s/azuredisk-csi" (has $base (list "" "mcr.microsoft.com") | ternary $own $base) -}}
  {{- $tag = "" -}}
{{- end -}}
{{- printf "%s:%s" (include "disk.repository" (dict "root" . "repository" $repository)) ($tag | default (printf "v%s" .Chart.AppVersion)) -}}
{{- end -}}

{{- /* The image on Windows: the given one, or that of the release which is switched, or the established chart's last one. */ -}}
{{- define "disk.windowsImage" -}}
{{- $image := .Values.image.azuredisk -}}
{{- if .Values.windows.image -}}
{{ .Values.windows.image }}
{{- else if and (include "disk.isEstablished" .) $image.tag -}}
{{ include "disk.repository" (dict "root" . "repository" $image.repository) }}:{{ trimSuffix "-windows-hp" (toString $image.tag) }}-windows-hp
{{- else -}}
{{ index .Chart.Annotations "cerulean/windows-image" }}
{{- end -}}
{{- end -}}

{{- /* Secrets for registries, as names or as objects with a name. */ -}}
{{- define "disk.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ kindIs "map" . | ternary (get (kindIs "map" . | ternary . dict) "name") . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- /* Nodes of the controllers. */ -}}
{{- define "disk.controllerPlaces" -}}
{{- $values := .Values.controller -}}
{{- $roles := list -}}
{{- if $values.runOnControlPlane }}{{ $roles = append $roles "control-plane" }}{{ end -}}
{{- if $values.runOnMaster }}{{ $roles = append $roles "master" }}{{ end -}}
priorityClassName: system-cluster-critical
{{- $chosen := $values.affinity | default dict }}
{{- if and $roles (not (contains "nodeSelectorTerms" (toJson $chosen))) }}
{{- $expressions := list }}
{{- range $roles }}
{{- $expressions = append $expressions (dict "key" (printf "node-role.kubernetes.io/%s" .) "operator" "Exists") }}
{{- end }}
{{- $terms := dict "nodeSelectorTerms" (list (dict "matchExpressions" $expressions)) }}
{{- $chosen = mergeOverwrite (deepCopy $chosen) (dict "nodeAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" $terms)) }}
{{- end }}
{{- with $chosen }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* A container's right to nothing. */ -}}
{{- define "disk.noRights" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* The folder of the driver's socket. */ -}}
{{- define "disk.socketMount" -}}
- name: socket-dir
  mountPath: /csi
{{- end -}}

{{- /* Environment variables of the driver: (dict "root" $ "key" KEY-OF-CONFIGMAP "endpoint" TEXT "stack" FILE "tracing" MAP "goLogs" BOOL). */ -}}
{{- define "disk.environment" -}}
{{- $driver := .root.Values.driver -}}
- name: AZURE_CREDENTIAL_FILE
  valueFrom:
    configMapKeyRef:
      name: {{ .root.Values.azureCredentialFileConfigMap }}
      key: {{ .key }}
      optional: true
- name: CSI_ENDPOINT
  value: {{ .endpoint }}
{{- range $name, $key := dict "HTTPS_PROXY" "httpsProxy" "HTTP_PROXY" "httpProxy" "NO_PROXY" "noProxy" }}
{{- with get $driver $key }}
- name: {{ $name }}
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- if and .goLogs $driver.azureGoSDKLogLevel }}
- name: AZURE_GO_SDK_LOG_LEVEL
  value: {{ $driver.azureGoSDKLogLevel | quote }}
{{- end }}
{{- if eq .root.Values.cloud "AzureStackCloud" }}
- name: AZURE_ENVIRONMENT_FILEPATH
  value: {{ .stack }}
{{- end }}
{{- if .tracing.enabled }}
- name: OTEL_SERVICE_NAME
  value: {{ .tracing.otelServiceName | quote }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .tracing.otelExporterEndpoint | quote }}
{{- end }}
{{- end -}}

{{- /* The host's certificate authorities, where the image's are not the right ones: name, path and condition of each folder. */ -}}
{{- define "disk.authorities" -}}
{{- if or (eq .Values.cloud "AzureStackCloud") (eq .Values.linux.distro "fedora") }}
ssl /etc/ssl/certs
{{- end }}
{{- if eq .Values.linux.distro "fedora" }}
ssl-pki /etc/pki/ca-trust/extracted
{{- end }}
{{- end -}}

{{- define "disk.authorityMounts" -}}
{{- range splitList "\n" (include "disk.authorities" . | trim) }}{{ if . }}
- name: {{ first (splitList " " .) }}
  mountPath: {{ last (splitList " " .) }}
  readOnly: true
{{- end }}{{ end }}
{{- end -}}

{{- define "disk.authorityVolumes" -}}
{{- range splitList "\n" (include "disk.authorities" . | trim) }}{{ if . }}
- name: {{ first (splitList " " .) }}
  hostPath:
    path: {{ last (splitList " " .) }}
{{- end }}{{ end }}
{{- end -}}

{{- /* The period in which kubelets ask again how many disks a machine takes: 1.33 is the first API server that knows the field. */ -}}
{{- define "disk.allocatablePeriod" -}}
{{- $seconds := dig "nodeAllocatableUpdatePeriodSeconds" 600 (.Values.feature | default dict) -}}
{{- if and $seconds (semverCompare ">=1.33.0-0" .Capabilities.KubeVersion.Version) }}{{ int $seconds }}{{ end -}}
{{- end -}}

{{- /* The service account of a binding: (dict "root" $ "name" NAME). */ -}}
{{- define "disk.subject" -}}
- kind: ServiceAccount
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{- /* Service account: (dict "root" $ "name" NAME "identity" BOOL). */ -}}
{{- define "disk.account" -}}
{{- $identity := .root.Values.workloadIdentity -}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "disk.labels" .root | nindent 4 }}
    {{- if and .identity $identity.clientID }}
    azure.workload.identity/use: "true"
  annotations:
    azure.workload.identity/client-id: {{ $identity.clientID | quote }}
    {{- with $identity.tenantID }}
    azure.workload.identity/tenant-id: {{ . | quote }}
    {{- end }}
    {{- end }}
{{- end -}}


{{- define "share.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* Metadata labels of every object: those of the established chart. */ -}}
{{- define "share.labels" -}}
{{- $labels := dict "app.kubernetes.io/instance" .Release.Name "app.kubernetes.io/name" (include "share.name" .) -}}
{{- $labels = merge $labels (dict "app.kubernetes.io/component" "csi-driver" "app.kubernetes.io/part-of" (include "share.name" .)) -}}
{{- $labels = merge $labels (dict "app.kubernetes.io/managed-by" .Release.Service "app.kubernetes.io/version" .Chart.AppVersion) -}}
{{- $labels = merge $labels (dict "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_")) -}}
{{- toYaml (merge $labels (.Values.customLabels | default dict)) -}}
{{- end -}}

{{- /* The selector of a workload, which nothing can change: (dict "root" $ "name" NAME). */ -}}
{{- define "share.selector" -}}
app: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/name: {{ include "share.name" .root | quote }}
{{- end -}}

{{- /* Metadata of a workload: (dict "root" $ "name" NAME "values" .Values.linux), whose labels and annotations come last. */ -}}
{{- define "share.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "share.labels" .root | nindent 2 }}
  app: {{ .name }}
  {{- with .values.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Metadata of its pods, with the labels of the selector. */ -}}
{{- define "share.podMetadata" -}}
labels:
  {{- include "share.labels" .root | nindent 2 }}
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
{{- define "share.repository" -}}
{{- if hasPrefix "/" .repository }}{{ .root.Values.image.baseRepo }}{{ end }}{{ .repository -}}
{{- end -}}

{{- /* The image of a side-car, and when to pull it: (dict "root" $ "image" .Values.image.csiResizer). */ -}}
{{- define "share.image" -}}
image: {{ printf "%s:%s" (include "share.repository" (dict "root" .root "repository" .image.repository)) (toString .image.tag) | quote }}
imagePullPolicy: {{ .image.pullPolicy | default "IfNotPresent" }}
{{- end -}}

{{- /* Whether the driver's repository is one of the established chart's defaults, as helm upgrade --reuse-values brings them. */ -}}
{{- define "share.isEstablished" -}}
{{- if regexMatch "/(oss(/v2)?/kubernetes-csi|k8s/csi)/azurefile-csi$" (.Values.image.azurefile.repository | default "") }}true{{ end -}}
{{- end -}}

{{- /*
The driver's image. The established chart's repositories mean this chart's image, with this chart's tag: in the registry baseRepo if
that is another one than the established chart's.
*/ -}}
{{- define "share.driverImage" -}}
{{- $image := .Values.image.azurefile -}}
{{- $own := index .Chart.Annotations "cerulean/image-repository" -}}
{{- $repository := $image.repository | default (printf "%s/azurefile-csi" $own) -}}
{{- $tag := $image.tag | default "" | toString -}}
{{- if include "share.isEstablished" . -}}
  {{- $base := .Values.image.baseRepo | default "" -}}
  {{- $repository = printf "%s/azurefile-csi" (has $base (list "" "mcr.microsoft.com") | ternary $own $base) -}}
  {{- $tag = "" -}}
{{- end -}}
{{- printf "%s:%s" (include "share.repository" (dict "root" . "repository" $repository)) ($tag | default (printf "v%s" .Chart.AppVersion)) -}}
{{- end -}}

{{- /* The image on Windows: the given one, or that of the release which is switched, or the established chart's last one. */ -}}
{{- define "share.windowsImage" -}}
{{- $image := .Values.image.azurefile -}}
{{- if .Values.windows.image -}}
{{ .Values.windows.image }}
{{- else if and (include "share.isEstablished" .) $image.tag -}}
{{ include "share.repository" (dict "root" . "repository" $image.repository) }}:{{ trimSuffix "-windows-hp" (toString $image.tag) }}-windows-hp
{{- else -}}
{{ index .Chart.Annotations "cerulean/windows-image" }}
{{- end -}}
{{- end -}}

{{- /* Secrets for registries, as names or as objects with a name. */ -}}
{{- define "share.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ kindIs "map" . | ternary (get (kindIs "map" . | ternary . dict) "name") . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- /* Nodes of the controllers. */ -}}
{{- define "share.controllerPlaces" -}}
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
{{- define "share.noRights" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- /* The folder of the driver's socket. */ -}}
{{- define "share.socketMount" -}}
- name: socket-dir
  mountPath: /csi
{{- end -}}

{{- /* Environment variables of the driver: (dict "root" $ "key" KEY-OF-CONFIGMAP "endpoint" TEXT "goLogs" BOOL). */ -}}
{{- define "share.environment" -}}
{{- $driver := .root.Values.driver -}}
- name: AZURE_CREDENTIAL_FILE
  valueFrom:
    configMapKeyRef:
      name: {{ .root.Values.azureCredentialFileConfigMap }}
      key: {{ .key }}
      optional: true
- name: CSI_ENDPOINT
  value: {{ .endpoint }}
{{- range $name, $key := dict "HTTPS_PROXY" "httpsProxy" "HTTP_PROXY" "httpProxy" }}
{{- with get $driver $key }}
- name: {{ $name }}
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- if and .goLogs $driver.azureGoSDKLogLevel }}
- name: AZURE_GO_SDK_LOG_LEVEL
  value: {{ $driver.azureGoSDKLogLevel | quote }}
{{- end }}
{{- end -}}

{{- /* The host's certificate authorities, where the image's are not the right ones: name, path and condition of each folder. */ -}}
{{- define "share.authorities" -}}
{{- if eq .Values.linux.distro "fedora" }}
ssl /etc/ssl/certs
ssl-pki /etc/pki/ca-trust/extracted
{{- end }}
{{- end -}}

{{- define "share.authorityMounts" -}}
{{- range splitList "\n" (include "share.authorities" . | trim) }}{{ if . }}
- name: {{ first (splitList " " .) }}
  mountPath: {{ last (splitList " " .) }}
  readOnly: true
{{- end }}{{ end }}
{{- end -}}

{{- define "share.authorityVolumes" -}}
{{- range splitList "\n" (include "share.authorities" . | trim) }}{{ if . }}
- name: {{ first (splitList " " .) }}
  hostPath:
    path: {{ last (splitList " " .) }}
{{- end }}{{ end }}
{{- end -}}

{{- /* The service account of a binding: (dict "root" $ "name" NAME). */ -}}
{{- define "share.subject" -}}
- kind: ServiceAccount
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{- /* Service account: (dict "root" $ "name" NAME "identity" BOOL). */ -}}
{{- define "share.account" -}}
{{- $identity := .root.Values.workloadIdentity -}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "share.labels" .root | nindent 4 }}
    {{- if and .identity $identity.clientID }}
    azure.workload.identity/use: "true"
  annotations:
    azure.workload.identity/client-id: {{ $identity.clientID | quote }}
    {{- with $identity.tenantID }}
    azure.workload.identity/tenant-id: {{ . | quote }}
    {{- end }}
    {{- end }}
{{- end -}}

{{- /* How pods are replaced: (dict "type" TEXT "update" MAP). */ -}}
{{- define "share.strategy" -}}
type: {{ .type }}
{{- if eq .type "RollingUpdate" }}
rollingUpdate:
  {{- toYaml .update | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* Names of Secrets with account keys are those of accounts, so that a role cannot list them: it is for their namespaces. */ -}}
{{- define "share.keyNamespaces" -}}
{{- dig "namespaces" list (.Values.accountKeys | default dict) | default list | compact | uniq | toJson -}}
{{- end -}}

{{- define "share.keysEverywhere" -}}
{{- if has "*" (include "share.keyNamespaces" . | fromJsonArray) }}true{{ end -}}
{{- end -}}

{{- /* Whether kubelets give pods' tokens as secrets: 1.35 is the first API server that knows the field. */ -}}
{{- define "share.tokenInSecrets" -}}
{{- if and .Values.feature.serviceAccountTokenInSecrets (semverCompare ">=1.35.0-0" .Capabilities.KubeVersion.Version) }}true{{ end -}}
{{- end -}}

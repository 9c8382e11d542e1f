{{- /* The mark by which clusterctl knows a provider's objects. */ -}}
{{- define "capz.labels" -}}
cluster.x-k8s.io/provider: infrastructure-azure
{{- end -}}

{{- define "capz.credentials" -}}
{{- .Values.identity.existingSecret | default "capz-manager-bootstrap-credentials" -}}
{{- end -}}

{{- /* The value of --feature-gates, in the order of the clusterctl manifest. */ -}}
{{- define "capz.featureGates" -}}
{{- $all := list -}}
{{- range list "MachinePool" "AKSResourceHealth" "EdgeZone" "ASOAPI" "APIServerILB" "SkipMachinePoolModelReconciliation" -}}
{{- $all = append $all (printf "%s=%v" . (get $.Values.featureGates .)) -}}
{{- end -}}
{{- join "," $all -}}
{{- end -}}

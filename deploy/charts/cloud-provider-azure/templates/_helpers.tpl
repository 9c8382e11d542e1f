{{- /* Metadata labels of every object, beside those that the established chart sets. Selectors do not use them. */ -}}
{{- define "cerulean.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /*
The image of a program: (dict "root" $ "program" .Values.cloudNodeManager).

A given tag wins, with the repository as given. Without one the tag is this chart's release, and the established chart's
default repositories mean "the default one", because helm upgrade --reuse-values brings them along.
*/ -}}
{{- define "cerulean.image" -}}
{{- $program := .program -}}
{{- $repository := $program.imageRepository | default "" -}}
{{- $tag := $program.imageTag | default "" | toString -}}
{{- if not $tag -}}
  {{- $tag = printf "v%s" .root.Chart.AppVersion -}}
  {{- if has $repository (list "" "mcr.microsoft.com/oss/kubernetes" "mcr.microsoft.com/oss/v2/kubernetes") -}}
    {{- $repository = index .root.Chart.Annotations "cerulean/image-repository" -}}
  {{- end -}}
{{- end -}}
{{- printf "%s/%s:%s" $repository $program.imageName $tag -}}
{{- end -}}

{{- /*
Flags of a program, as items of a list that begin with a new line: (dict "values" MAP "flags" TEXT). The text has a line
"valueKey flag-name" for each. A value that is not set gives no flag.
*/ -}}
{{- define "cerulean.flags" -}}
{{- $values := .values -}}
{{- range splitList "\n" .flags -}}
{{- $pair := splitList " " . -}}
{{- if hasKey $values (first $pair) }}
{{- $value := get $values (first $pair) }}
{{- if not (kindIs "invalid" $value) }}
- {{ printf "--%s=%s" (last $pair) (toString $value) | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /*
requests and limits, beginning with a new line: (dict "sizes" .Values.….containerResourceManagement "system" "Win"). What is not
set is left out.
*/ -}}
{{- define "cerulean.resources" -}}
{{- $sizes := .sizes | default dict -}}
{{- $system := .system | default "" -}}
{{- range $kind := list "requests" "limits" }}
{{- $cpu := get $sizes (printf "%sCPU%s" $kind $system) }}
{{- $memory := get $sizes (printf "%sMem%s" $kind $system) }}
{{- if or $cpu $memory }}
{{ $kind }}:
  {{- with $cpu }}
  cpu: {{ . | toString | quote }}
  {{- end }}
  {{- with $memory }}
  memory: {{ . | toString | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Whether a program is installed. Without the key it is: charts before 1.24.0+20220526 had none. */ -}}
{{- define "cerulean.enabled" -}}
{{- if or (kindIs "invalid" .enabled) .enabled }}true{{ end -}}
{{- end -}}

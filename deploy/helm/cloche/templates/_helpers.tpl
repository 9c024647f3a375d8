{{- define "cloche.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "cloche.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* serve.yaml: what the chart knows, and the user's settings over it. */}}
{{- define "cloche.settings" -}}
{{- $name := include "cloche.name" . -}}
{{- $hosts := concat (list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace)) .Values.allowedHosts -}}
{{- $own := dict "listen" (list "unix:/var/lib/cloche-serve/state/api.sock" "tcp:0.0.0.0:7700") "tls-cert" "/etc/cloche/tls/tls.crt" "tls-key" "/etc/cloche/tls/tls.key" "allowed-hosts" $hosts -}}
{{- toYaml (mergeOverwrite $own .Values.settings) -}}
{{- end -}}

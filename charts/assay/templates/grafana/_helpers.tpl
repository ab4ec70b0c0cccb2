{{/* Where people's browsers find Grafana; empty by default. A bundled one is found at its ingress, or where NOTES.txt forwards it
to. */}}
{{- define "assay.grafanaURL" -}}
{{- $ingress := .Values.grafana.ingress -}}
{{- if .Values.grafana.url -}}
{{ .Values.grafana.url }}
{{- else if and (eq .Values.grafana.mode "bundled") $ingress.enabled -}}
{{ ternary "http" "https" (empty $ingress.tlsSecret) }}://{{ $ingress.host }}
{{- else if eq .Values.grafana.mode "bundled" -}}
http://localhost:3000
{{- end -}}
{{- end -}}

{{/* Path before everything that Grafana serves, if its address has one. */}}
{{- define "assay.grafanaPath" -}}
{{- (urlParse (include "assay.grafanaURL" .)).path | trimSuffix "/" -}}
{{- end -}}

{{/* Where Grafana's own server finds Prometheus. */}}
{{- define "assay.grafanaPrometheusURL" -}}
{{- if .Values.grafana.prometheusURL -}}
{{ .Values.grafana.prometheusURL }}
{{- else if eq .Values.prometheus.mode "bundled" -}}
http://{{ include "assay.fullname" . }}-prometheus.{{ .Release.Namespace }}.svc:9090
{{- else -}}
{{- fail "grafana.prometheusURL is needed when grafana.mode is bundled and prometheus.mode is external: where a pod reaches that Prometheus; or set grafana.mode=external" -}}
{{- end -}}
{{- end -}}

{{/* Secret with the account of Grafana's administrator. */}}
{{- define "assay.grafanaSecret" -}}
{{- default (printf "%s-grafana" (include "assay.fullname" .)) .Values.grafana.admin.existingSecret -}}
{{- end -}}

{{/* The operator's settings for Grafana. A bundled one has no sidecar that would find ConfigMaps of runs, so that runs share
one dashboard there. */}}
{{- define "assay.grafanaArgs" -}}
{{- with include "assay.grafanaURL" . }}
- {{ printf "--grafana-url=%s" . | quote }}
{{- end }}
- --dashboards={{ and (eq .Values.grafana.mode "external") .Values.grafana.dashboards.runs }}
- --dashboard-label={{ .Values.grafana.dashboards.labelKey }}={{ .Values.grafana.dashboards.labelValue }}
- {{ printf "--dashboard-folder=%s" .Values.grafana.dashboards.runsFolder | quote }}
{{- with .Values.grafana.reportsURL }}
- {{ printf "--reports-url=%s" . | quote }}
{{- end }}
{{- end -}}

{{/* What to type to see it, for NOTES.txt. */}}
{{- define "assay.grafanaNotes" -}}
{{- if eq .Values.grafana.mode "bundled" }}
Watch runs in Grafana, at {{ include "assay.grafanaURL" . }}, with the account that the second prints:
  kubectl port-forward --namespace {{ .Release.Namespace }} service/{{ include "assay.fullname" . }}-grafana 3000
  kubectl get secret {{ include "assay.grafanaSecret" . }} --namespace {{ .Release.Namespace }} --output go-template='{{ "{{index .data \"" }}{{ .Values.grafana.admin.userKey }}{{ "\" | base64decode}} {{index .data \"" }}{{ .Values.grafana.admin.passwordKey }}{{ "\" | base64decode}}" }}{{ "{{\"\\n\"}}" }}'
{{ else }}
Dashboards for your Grafana are in ConfigMaps with the label {{ .Values.grafana.dashboards.labelKey }}={{ .Values.grafana.dashboards.labelValue }}, for its sidecar.
{{ end }}
{{- end -}}

{{/* Pods of the release's own component, as a peer. Call with (dict "root" $ "component" "minio"). */}}
{{- define "assay.network.component" -}}
podSelector:
  matchLabels:
    {{- include "assay.selectorLabels" . | nindent 4 }}
{{- end -}}

{{/* To names. Where a cluster resolves them is its own affair. */}}
{{- define "assay.network.toNames" -}}
- ports:
  - {protocol: UDP, port: 53}
  - {protocol: TCP, port: 53}
{{- end -}}

{{/* To the API server, which no label selects. */}}
{{- define "assay.network.toAPIServer" -}}
- ports:
  {{- range .Values.networkPolicies.apiServer.ports }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
  {{- with .Values.networkPolicies.apiServer.cidrs }}
  to:
  {{- range . }}
  - ipBlock: {cidr: {{ . | quote }}}
  {{- end }}
  {{- end }}
{{- end -}}

{{/* To the object store: the bundled one, the namespace of one in the cluster, whose pods may have other ports than its
Service, or a port anywhere else. */}}
{{- define "assay.network.toStore" -}}
{{- $endpoint := include "assay.ledgerEndpoint" . -}}
{{- $host := splitList ":" $endpoint | first -}}
{{- $parts := splitList "." $host -}}
{{- if eq .Values.minio.mode "bundled" -}}
- ports:
  - {protocol: TCP, port: 9000}
  to:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace }}}}
    {{- include "assay.network.component" (dict "root" . "component" "minio") | nindent 4 }}
{{- else if and (ge (len $parts) 3) (eq (index $parts 2) "svc") -}}
- to:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ index $parts 1 }}}}
{{- else -}}
- ports:
  - {protocol: TCP, port: {{ ternary (splitList ":" $endpoint | last) (ternary "80" "443" (eq (include "assay.ledgerInsecure" .) "true")) (contains ":" $endpoint) }}}
{{- end -}}
{{- if include "assay.ledgerIdentity" . }}
# The cloud's service that hands out credentials.
- ports:
  - {protocol: TCP, port: 80}
  - {protocol: TCP, port: 443}
{{- end -}}
{{- end -}}

{{/* Who reads metrics. */}}
{{- define "assay.network.metricsFrom" -}}
{{- if .Values.networkPolicies.metricsFrom }}
{{- toYaml .Values.networkPolicies.metricsFrom }}
{{- else if eq .Values.prometheus.mode "bundled" }}
- {{ include "assay.network.component" (dict "root" . "component" "prometheus") | nindent 2 | trim }}
{{- else }}
- namespaceSelector: {}
{{- end }}
{{- end -}}

{{/* What begins every policy of a component. Call with (dict "root" $ "component" "operator"). */}}
{{- define "assay.network.policy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "assay.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "assay.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "assay.selectorLabels" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
{{- end -}}

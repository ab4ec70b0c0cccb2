{{/* "true" if Argo's server speaks TLS. */}}
{{- define "assay.argoServerTLS" -}}
{{- if and (eq .Values.argo.mode "bundled") .Values.argo.server.enabled .Values.argo.server.tls.enabled }}true{{ end -}}
{{- end -}}

{{/* Secret with the certificate of Argo's server. */}}
{{- define "assay.argoServerSecret" -}}
{{ .Values.argo.server.tls.existingSecret | default (printf "%s-argo-server-tls" (include "assay.fullname" .)) }}
{{- end -}}

{{/* The certificates that the chart makes, as a JSON list of component, secret, hosts, and the Secret of the authorities or the Deployment
to restart. A port-forward reaches the last two hosts. */}}
{{- define "assay.certificates" -}}
{{- $made := list }}
{{- $root := . }}
{{- if and (include "assay.minioTLS" .) (not .Values.objectStore.tls.existingSecret) }}
{{- $made = append $made (dict "component" "minio" "trust" (include "assay.ledgerCASecret" .)) }}
{{- end }}
{{- if and (include "assay.argoServerTLS" .) (not .Values.argo.server.tls.existingSecret) }}
{{- $made = append $made (dict "component" "argo-server" "restart" (printf "%s-argo-server" (include "assay.fullname" .))) }}
{{- end }}
{{- range $made }}
{{- $host := printf "%s-%s.%s.svc" (include "assay.fullname" $root) .component $root.Release.Namespace }}
{{- $_ := set . "secret" (printf "%s-%s-tls" (include "assay.fullname" $root) .component) }}
{{- $_ := set . "hosts" (list $host (printf "%s.cluster.local" $host) "localhost" "127.0.0.1") }}
{{- end }}
{{- toJson $made }}
{{- end -}}

{{/* The data of the Secret of a certificate: all that the cluster has, or a new authority and a certificate of it, whose key is forgotten.
They end in a year, before which the CronJob renews them, or without it in ten. Call with (dict "root" $ "made" ONE). */}}
{{- define "assay.certificateData" -}}
{{- $kept := lookup "v1" "Secret" .root.Release.Namespace .made.secret | default dict | dig "data" dict }}
{{- if get $kept "tls.key" }}
{{- toYaml $kept }}
{{- else }}
{{- $days := ternary 365 3650 .root.Values.certificates.renew }}
{{- $authority := genCAWithKey (trimSuffix "-tls" .made.secret) $days (genPrivateKey "ecdsa") }}
{{- $names := without .made.hosts "127.0.0.1" }}
{{- $signed := genSignedCertWithKey (first $names) (list "127.0.0.1") $names $days $authority (genPrivateKey "ecdsa") }}
{{- dict "ca.crt" (b64enc $authority.Cert) "tls.crt" (b64enc $signed.Cert) "tls.key" (b64enc $signed.Key) | toYaml }}
{{- end }}
{{- end -}}

{{/* The Secret of a certificate. Call with (dict "root" $ "made" ONE "data" DICT). */}}
{{- define "assay.certificateSecret" }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .made.secret }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "assay.labels" (dict "root" .root "component" .made.component) | nindent 4 }}
type: kubernetes.io/tls
data:
  {{- toYaml .data | nindent 2 }}
{{- end }}

{{/* Prefix of the names of objects. */}}
{{- define "assay.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels that never change, for selectors. Call with (dict "root" $ "component" "operator"). */}}
{{- define "assay.selectorLabels" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of every object. Call with (dict "root" $ "component" "operator"). */}}
{{- define "assay.labels" -}}
{{ include "assay.selectorLabels" . }}
app.kubernetes.io/part-of: assay
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{/* Reference of an image: repository:tag@digest. */}}
{{- define "assay.image" -}}
{{- .repository -}}
{{- with .tag }}:{{ . }}{{ end -}}
{{- with .digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* What every pod of the release has in common: where it may run, and no variables named after services. A node that a run
has for itself still takes them, or a cluster of one node could not run both. */}}
{{- define "assay.pod" -}}
enableServiceLinks: false
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- with .Values.scheduling.nodeSelector }}
nodeSelector:
{{ toYaml . | indent 2 }}
{{- end }}
tolerations:
- {key: assay.dev/leased, operator: Exists, effect: NoSchedule}
{{- with .Values.scheduling.tolerations }}
{{ toYaml . }}
{{- end }}
{{- with .Values.scheduling.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Restricted Pod Security, the pod's part. Call with the user id. */}}
{{- define "assay.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Restricted Pod Security, the container's part. */}}
{{- define "assay.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* Probes that let "helm install --wait" return as soon as a pod serves. Call with (dict "path" "/" "port" "http"). */}}
{{- define "assay.startupProbe" -}}
httpGet: {path: {{ .path }}, port: {{ .port }}}
periodSeconds: 1
timeoutSeconds: 2
failureThreshold: 180
{{- end -}}

{{/* Secret with the credentials of the object store: the same name in the release's and in every run namespace. */}}
{{- define "assay.ledgerSecret" -}}
{{- default (printf "%s-ledger" (include "assay.fullname" .)) .Values.minio.existingSecret -}}
{{- end -}}

{{/* Host and port of the object store. */}}
{{- define "assay.ledgerEndpoint" -}}
{{- if eq .Values.minio.mode "bundled" -}}
{{ include "assay.fullname" . }}-minio.{{ .Release.Namespace }}.svc:9000
{{- else -}}
{{ required "minio.external.endpoint is needed when minio.mode is external: the store's host and port, without scheme" .Values.minio.external.endpoint }}
{{- end -}}
{{- end -}}

{{/* "true" if the object store is spoken to without TLS. */}}
{{- define "assay.ledgerInsecure" -}}
{{- or (eq .Values.minio.mode "bundled") (not .Values.minio.external.secure) -}}
{{- end -}}

{{/* Where the ledger is, as the operator and the assay command take it. */}}
{{- define "assay.ledgerURL" -}}
s3://{{ .Values.minio.bucket }}?endpoint={{ ternary "http" "https" (eq (include "assay.ledgerInsecure" .) "true") }}://{{ include "assay.ledgerEndpoint" . }}&region={{ .Values.minio.region }}
{{- end -}}

{{/* Environment with the credentials of the object store. */}}
{{- define "assay.ledgerEnv" -}}
- name: AWS_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {name: {{ include "assay.ledgerSecret" . }}, key: {{ .Values.minio.accessKeyKey }}}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ include "assay.ledgerSecret" . }}, key: {{ .Values.minio.secretKeyKey }}}}
{{- end -}}

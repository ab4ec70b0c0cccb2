{{/* Prefix of the names of objects. A release may have a dot in its name or begin with a digit, and a Service may not. */}}
{{- define "assay.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $full = .Values.fullnameOverride | default $full | replace "." "-" -}}
{{- regexReplaceAll "^[0-9]" $full "assay-${0}" | trunc 40 | trimAll "-" -}}
{{- end -}}

{{/* Labels that never change, for selectors. Call with (dict "root" $ "component" "operator"). */}}
{{- define "assay.selectorLabels" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Labels of every object. Call with (dict "root" $ "component" "operator"). */}}
{{- define "assay.labels" -}}
{{ include "assay.selectorLabels" . }}
app.kubernetes.io/part-of: assay
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The release's own annotations of a pod, after others or alone. */}}
{{- define "assay.podAnnotations" -}}
{{- with .Values.podAnnotations }}
{{- toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of a pod. Call with (dict "root" $ "component" "minio"), and "stable" true for one that a new version of the chart must not
replace. */}}
{{- define "assay.podLabels" -}}
{{- $own := include (ternary "assay.selectorLabels" "assay.labels" (.stable | default false)) . | fromYaml -}}
{{- mergeOverwrite $own .root.Values.commonLabels .root.Values.podLabels | toYaml -}}
{{- end -}}

{{/* Replicas stay on different nodes where they can, or as people say. Call with (dict "root" $ "component" "operator" "replicas" 2). */}}
{{- define "assay.spread" -}}
{{- $call := . }}
{{- if .root.Values.scheduling.topologySpreadConstraints }}
topologySpreadConstraints:
{{- range .root.Values.scheduling.topologySpreadConstraints }}
{{- $own := dict "labelSelector" (dict "matchLabels" (include "assay.selectorLabels" $call | fromYaml)) }}
- {{ merge (deepCopy .) (ternary dict $own (hasKey . "labelSelector")) | toYaml | nindent 2 | trim }}
{{- end }}
{{- else if gt (int .replicas) 1 }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "assay.selectorLabels" . | nindent 6 }}
{{- end }}
{{- end -}}

{{/* A drain leaves all but one of several replicas. Call with the same, and "name". */}}
{{- define "assay.disruptionBudget" -}}
{{- if gt (int .replicas) 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "assay.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  # One that does not serve anyway must not hold up a drain.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "assay.selectorLabels" . | nindent 6 }}
{{- end }}
{{- end -}}

{{/* Reference of an image, repository:tag@digest. Call with (list $ KEY), the key below images. A global registry takes the place of
the host. An image without tag and digest is one of this project, of this chart's version. */}}
{{- define "assay.image" -}}
{{- $root := first . -}}
{{- $image := get $root.Values.images (last .) -}}
{{- with ($root.Values.global).imageRegistry -}}
{{- trimSuffix "/" . }}/{{ regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $image.repository "" -}}
{{- else -}}
{{- $image.repository -}}
{{- end -}}
{{- with $image.tag | default (empty $image.digest | ternary $root.Chart.AppVersion "") }}:{{ . }}{{ end -}}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* The common settings of every pod of the release: where it may run, and no variables named after services. A node that a run
has for itself still takes them, or a cluster of one node could not run both. Call with (dict "root" $ "component" "operator"), and
"replicas" where there may be several. */}}
{{- define "assay.pod" -}}
{{- $values := .root.Values -}}
enableServiceLinks: false
{{- with concat (($values.global).imagePullSecrets | default list) $values.images.pullSecrets | uniq }}
imagePullSecrets:
{{ toYaml . }}
{{- end }}
{{- with $values.scheduling.nodeSelector }}
nodeSelector:
{{ toYaml . | indent 2 }}
{{- end }}
tolerations:
- {key: assay.dev/leased, operator: Exists, effect: NoSchedule}
{{- with $values.scheduling.tolerations }}
{{ toYaml . }}
{{- end }}
{{- with $values.scheduling.affinity }}
affinity:
{{ toYaml . | indent 2 }}
{{- end }}
{{- include "assay.spread" (merge (dict "replicas" (.replicas | default 1)) .) }}
{{- with $values.scheduling.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* People's own variables of a container, after the chart's. */}}
{{- define "assay.extraEnv" -}}
{{- with .Values.extraEnv }}
{{- toYaml . }}
{{- end }}
{{- end -}}

{{/* An Ingress of a web interface, and who may not serve it. Call with (dict "root" $ "component" "grafana" "port" "web" "field"
"grafana.ingress" "ingress" .Values.grafana.ingress). */}}
{{- define "assay.ingress" -}}
{{- if .ingress.enabled }}
{{- if and .root.Values.networkPolicies.enabled (not .root.Values.networkPolicies.interfacesFrom) }}
{{- fail (printf "%s.enabled is true and networkPolicies.interfacesFrom is empty: no ingress controller reaches the pod; name its pods there, or set networkPolicies.enabled=false" .field) }}
{{- end }}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: {{ include "assay.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "assay.labels" . | nindent 4 }}
  {{- with .ingress.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with .ingress.className }}
  ingressClassName: {{ . | quote }}
  {{- end }}
  {{- with .ingress.tlsSecret }}
  tls:
  - {hosts: [{{ $.ingress.host | quote }}], secretName: {{ . | quote }}}
  {{- end }}
  rules:
  - host: {{ .ingress.host | quote }}
    http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          service: {name: {{ include "assay.fullname" .root }}-{{ .component }}, port: {name: {{ .port }}}}
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
httpGet: {path: {{ .path | quote }}, port: {{ .port }}{{ with .scheme }}, scheme: {{ . }}{{ end }}}
periodSeconds: 1
timeoutSeconds: 2
failureThreshold: 180
{{- end -}}

{{/* "true" if pods reach the object store with an identity that the cloud gives them. */}}
{{- define "assay.ledgerIdentity" -}}
{{- if and (eq .Values.objectStore.mode "external") .Values.objectStore.external.workloadIdentity }}true{{ end -}}
{{- end -}}

{{/* Secret in every run namespace with the credentials of the keeper and the analysis. Empty with workload identity. */}}
{{- define "assay.ledgerSecret" -}}
{{- if eq .Values.objectStore.mode "bundled" -}}
{{ include "assay.fullname" . }}-ledger
{{- else if not (include "assay.ledgerIdentity" .) -}}
{{ .Values.objectStore.existingSecret }}
{{- end -}}
{{- end -}}

{{/* Secret in every run namespace of a bundled store with the credentials of people who only read there. */}}
{{- define "assay.ledgerReadSecret" -}}
{{ include "assay.fullname" . }}-ledger-read
{{- end -}}

{{/* Secret in the release's namespace with the operator's credentials. An external store has one Secret for all. */}}
{{- define "assay.ledgerOperatorSecret" -}}
{{- if eq .Values.objectStore.mode "bundled" -}}
{{ include "assay.fullname" . }}-ledger-operator
{{- else -}}
{{ include "assay.ledgerSecret" . }}
{{- end -}}
{{- end -}}

{{/* Secret in the release's namespace with the credentials that make the bucket: of a bundled store the root user's. */}}
{{- define "assay.ledgerAdminSecret" -}}
{{- if eq .Values.objectStore.mode "bundled" -}}
{{ .Values.objectStore.existingSecret | default (printf "%s-minio-root" (include "assay.fullname" .)) }}
{{- else -}}
{{ include "assay.ledgerSecret" . }}
{{- end -}}
{{- end -}}

{{/* Secret in the release's namespace with the secret keys of all users of a bundled store, for the job that makes them. */}}
{{- define "assay.ledgerUsersSecret" -}}
{{ include "assay.fullname" . }}-ledger-users
{{- end -}}

{{/* "true" if a bundled MinIO asks those who read its metrics for a token. */}}
{{- define "assay.minioMetricsSecure" -}}
{{- if and (eq .Values.objectStore.mode "bundled") .Values.objectStore.metrics.secure }}true{{ end -}}
{{- end -}}

{{/* "true" if a bundled MinIO speaks TLS. */}}
{{- define "assay.minioTLS" -}}
{{- if and (eq .Values.objectStore.mode "bundled") .Values.objectStore.tls.enabled }}true{{ end -}}
{{- end -}}

{{/* Name of the host of a bundled MinIO, which its certificate has. */}}
{{- define "assay.minioHost" -}}
{{ include "assay.fullname" . }}-minio.{{ .Release.Namespace }}.svc
{{- end -}}

{{/* Fails an upgrade that would change whether MinIO speaks TLS while ledgers are in its emptyDir, which goes with the pod that is replaced, or
while pods of runs have its address. Call with (dict "root" $ "before" STATEFULSET "name" …). */}}
{{- define "assay.refuseScheme" -}}
{{- $values := .root.Values.objectStore }}
{{- $spec := dig "spec" "template" "spec" dict .before }}
{{- range dig "containers" list $spec }}
{{- if and (eq .name "minio") (ne (has "--certs-dir" .command) $values.tls.enabled) }}
{{- $from := ternary "with TLS" "without TLS" (has "--certs-dir" .command) }}
{{- $change := printf "objectStore.tls.enabled is %t and MinIO serves %s" $values.tls.enabled $from }}
{{- range dig "volumes" list $spec }}
{{- if and (eq .name "data") (hasKey . "emptyDir") }}
{{- fail (printf (print "%s, for which its pod is replaced, and the ledgers of this release are in an emptyDir, which goes with it: set it to "
  "%t to go on as before, or copy the bucket %s, then delete StatefulSet %s/%s and upgrade again")
  $change (not $values.tls.enabled) $values.bucket $.root.Release.Namespace $.name) }}
{{- end }}
{{- end }}
{{- range $namespace := include "assay.runNamespaces" $.root | fromJsonArray }}
{{- range (lookup "assay.dev/v1alpha1" "BenchmarkRun" $namespace "").items }}
{{- if and (eq (dig "status" "phase" "" .) "Running") }}
{{- fail (printf (print "%s, and the pods of run %s/%s have its address: wait until the run has ended or cancel it, or set it to %t to go "
  "on as before") $change $namespace .metadata.name (not $values.tls.enabled)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Secret with the certificates of the store's authority, in the release's and in every run namespace; empty without. */}}
{{- define "assay.ledgerCASecret" -}}
{{- $ca := .Values.objectStore.external.ca -}}
{{- if include "assay.minioTLS" . -}}
{{ include "assay.fullname" . }}-ledger-ca
{{- else if eq .Values.objectStore.mode "external" -}}
{{- if $ca.existingSecret -}}
{{ $ca.existingSecret }}
{{- else if or $ca.certificate $ca.existingConfigMap -}}
{{ include "assay.fullname" . }}-ledger-ca
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Key of the certificates in that Secret. */}}
{{- define "assay.ledgerCAKey" -}}
{{- ternary .Values.objectStore.external.ca.key "ca.crt" (not (empty .Values.objectStore.external.ca.existingSecret)) -}}
{{- end -}}

{{/* Host and port of the object store. */}}
{{- define "assay.ledgerEndpoint" -}}
{{- if eq .Values.objectStore.mode "bundled" -}}
{{ include "assay.minioHost" . }}:9000
{{- else -}}
{{ required "objectStore.external.endpoint is needed when objectStore.mode is external: the store's host and port, without scheme" .Values.objectStore.external.endpoint }}
{{- end -}}
{{- end -}}

{{/* "true" if the object store is spoken to without TLS. */}}
{{- define "assay.ledgerInsecure" -}}
{{- not (ternary (include "assay.minioTLS" . | not | not) .Values.objectStore.external.secure (eq .Values.objectStore.mode "bundled")) -}}
{{- end -}}

{{/* Where the ledger is, as the operator and the assay command take it. */}}
{{- define "assay.ledgerURL" -}}
s3://{{ .Values.objectStore.bucket }}?endpoint={{ ternary "http" "https" (eq (include "assay.ledgerInsecure" .) "true") }}://{{ include "assay.ledgerEndpoint" . }}&region={{ .Values.objectStore.region }}
{{- if and (eq .Values.objectStore.mode "external") (not .Values.objectStore.external.pathStyle) }}&pathStyle=false{{ end }}
{{- end -}}

{{/* A key of a Secret, both of which people may have named. Call with (list NAME KEY). */}}
{{- define "assay.secretKey" -}}
{name: {{ first . | quote }}, key: {{ last . | quote }}}
{{- end -}}

{{/* How Argo reads the object store's Secrets. */}}
{{- define "assay.ledgerArtifactAccess" -}}
{{- if include "assay.ledgerIdentity" . }}
useSDKCreds: true
{{- else }}
accessKeySecret: {{ include "assay.secretKey" (list (include "assay.ledgerSecret" .) .Values.objectStore.accessKeyKey) }}
secretKeySecret: {{ include "assay.secretKey" (list (include "assay.ledgerSecret" .) .Values.objectStore.secretKeyKey) }}
{{- end }}
{{- with include "assay.ledgerCASecret" . }}
caSecret: {{ include "assay.secretKey" (list . (include "assay.ledgerCAKey" $)) }}
{{- end }}
{{- end -}}

{{/* The environment of the container that makes the bucket. */}}
{{- define "assay.ledgerEnv" -}}
{{- with include "assay.ledgerAdminSecret" . }}
- name: AWS_ACCESS_KEY_ID
  valueFrom: {secretKeyRef: {{ include "assay.secretKey" (list . $.Values.objectStore.accessKeyKey) }}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {{ include "assay.secretKey" (list . $.Values.objectStore.secretKeyKey) }}}
{{- end }}
{{- if include "assay.ledgerCASecret" . }}
- {name: AWS_CA_BUNDLE, value: /etc/assay/ledger-ca/ca.crt}
{{- end }}
{{- end -}}

{{/* The operator's credentials as files, which follow the Secret when it changes: volume and mount. */}}
{{- define "assay.ledgerCredentialsVolume" -}}
{{- with include "assay.ledgerOperatorSecret" . }}
- name: ledger-credentials
  secret:
    secretName: {{ . | quote }}
    items:
    - {key: {{ $.Values.objectStore.accessKeyKey | quote }}, path: accessKey}
    - {key: {{ $.Values.objectStore.secretKeyKey | quote }}, path: secretKey}
{{- end }}
{{- end -}}

{{- define "assay.ledgerCredentialsMount" -}}
{{- if include "assay.ledgerSecret" . }}
- {name: ledger-credentials, mountPath: /etc/assay/ledger, readOnly: true}
{{- end }}
{{- end -}}

{{/* The secret keys of a bundled store's users as files, one for each: volume and mount. */}}
{{- define "assay.ledgerUsersVolume" -}}
{{- if eq .Values.objectStore.mode "bundled" }}
- name: ledger-users
  secret: {secretName: {{ include "assay.ledgerUsersSecret" . }}}
{{- end }}
{{- end -}}

{{- define "assay.ledgerUsersMount" -}}
{{- if eq .Values.objectStore.mode "bundled" }}
- {name: ledger-users, mountPath: /etc/assay/users, readOnly: true}
{{- end }}
{{- end -}}

{{/* The certificates of the store's authority as a file: volume and mount. */}}
{{- define "assay.ledgerCAVolume" -}}
{{- with include "assay.ledgerCASecret" . }}
- name: ledger-ca
  secret:
    secretName: {{ . | quote }}
    items:
    - {key: {{ include "assay.ledgerCAKey" $ | quote }}, path: ca.crt}
{{- end }}
{{- end -}}

{{- define "assay.ledgerCAMount" -}}
{{- if include "assay.ledgerCASecret" . }}
- {name: ledger-ca, mountPath: /etc/assay/ledger-ca, readOnly: true}
{{- end }}
{{- end -}}

{{/* By these a Prometheus that knows nothing of Assay finds a Service's metrics. One that a Prometheus Operator configures is
told by ServiceMonitors, and would read them twice. Call with (dict "root" $ "path" "/metrics"), and "secure" where a token is asked
for. */}}
{{- define "assay.scrapeAnnotations" -}}
{{- if not .root.Values.prometheus.operator.enabled }}
annotations:
  prometheus.io/scrape: "true"
  prometheus.io/path: {{ .path }}
  {{- if .secure }}
  prometheus.io/scheme: https
  {{- end }}
{{- end }}
{{- end -}}

{{/* Resources of a container that may fill an emptyDir beside its own files: the limit of its pod counts both. Call with (list resources
size). */}}
{{- define "assay.resourcesWithRoom" -}}
{{- $resources := deepCopy (first .) -}}
{{- $_ := set $resources "limits" (merge (dict "ephemeral-storage" (last .)) ($resources.limits | default dict)) -}}
{{- toYaml $resources -}}
{{- end -}}

{{/* The disk space of Prometheus: its samples and a quarter more, in megabytes. */}}
{{- define "assay.prometheusRoom" -}}
{{- $size := .Values.prometheus.size -}}
{{- $megabytes := mul (regexFind "^[0-9]+" $size | int64) (ternary 1000 1 (hasSuffix "GB" $size)) -}}
{{- div (mul 5 $megabytes) 4 }}M
{{- end -}}

{{/* The objects that Prometheus reads to discover its targets. */}}
{{- define "assay.prometheusRules" -}}
- apiGroups: [""]
  resources: [services, pods]
  verbs: [get, list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch]
{{- end -}}

{{/* The rules of a role of operator/config/rbac, copied by make generate. Call with (dict "root" $ "role" "leases_role"). */}}
{{- define "assay.writtenRules" -}}
{{- $file := printf "files/rbac/%s.yaml" .role -}}
{{- (.root.Files.Get $file | required (printf "%s is missing: run make generate" $file) | fromYaml).rules | toYaml -}}
{{- end -}}

{{/* The namespaces in which this release makes objects, as JSON: runNamespaces, on an upgrade without those that are gone or being deleted,
because an object in one of them would fail the upgrade for all others. Where the cluster cannot be asked, as by helm template, they are
all there. */}}
{{- define "assay.runNamespaces" }}
{{- if not (hasKey .Values "presentRunNamespaces") }}
{{- $present := list }}
{{- $asks := and .Release.IsUpgrade (lookup "v1" "Namespace" "" "kube-system") }}
{{- range .Values.runNamespaces }}
{{- $live := ternary dict (lookup "v1" "Namespace" "" .) (not $asks) }}
{{- $gone := or (not $live) (dig "metadata" "deletionTimestamp" "" $live) }}
{{- if or (not $asks) (not $gone) (and $.Values.createRunNamespaces (not $live)) }}{{ $present = append $present . }}{{ end }}
{{- end }}
{{- if not $present }}
{{- fail (printf "none of the namespaces in runNamespaces exists (%s): create one of them, or set createRunNamespaces=true" (join ", " .Values.runNamespaces)) }}
{{- end }}
{{- $_ := set .Values "presentRunNamespaces" $present }}
{{- end }}
{{- toJson .Values.presentRunNamespaces }}
{{- end }}

{{/* A Role with the binding that gives it to a ServiceAccount, or both for the whole cluster without a namespace. Call with (dict "root" $
"component" "minio" "name" … "namespace" … "rules" TEXT "account" (list NAME NAMESPACE)). */}}
{{- define "assay.rights" }}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") }}
{{- range list $kind (print $kind "Binding") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ . }}
metadata:
  name: {{ $.name }}
  {{- with $.namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "assay.labels" $ | nindent 4 }}
{{- if eq . $kind }}
rules:
{{ $.rules }}
{{- else }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ $kind }}, name: {{ $.name }}}
subjects:
- {kind: ServiceAccount, name: {{ first $.account | quote }}, namespace: {{ last $.account | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{/* A Service before a component, whose ports are called as those of its pods. Call with (dict "root" $ "component" "minio" "name" …
"ports" (list (list NAME NUMBER)) "annotations" TEXT). */}}
{{- define "assay.service" }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "assay.labels" . | nindent 4 }}
  {{- with .annotations }}
  {{- . | nindent 2 }}
  {{- end }}
spec:
  selector:
    {{- include "assay.selectorLabels" . | nindent 4 }}
  ports:
  {{- range .ports }}
  - {name: {{ first . }}, port: {{ last . }}, targetPort: {{ first . }}}
  {{- end }}
{{- end }}

{{/* A claim of storage, if there is to be one. Call with (dict "root" $ "component" "minio" "name" … "persistence" … "size" …). */}}
{{- define "assay.claim" }}
{{- if and .persistence.enabled (not .persistence.existingClaim) }}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "assay.labels" . | nindent 4 }}
  {{- if .persistence.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
spec:
  accessModes: [ReadWriteOnce]
  {{- with .persistence.storageClassName }}
  storageClassName: {{ . | quote }}
  {{- end }}
  resources:
    requests: {storage: {{ .size }}}
---
{{- end }}
{{- end }}

{{- /* The protections of other namespaces that the values turn off, a line each. */}}
{{- define "assay.unprotected" -}}
{{- $limits := (.Values.policy).default | default dict }}
{{- range $field, $effect := dict
  "maxWallClock" "a run may keep its nodes for any time"
  "maxRuns" "any number of runs may have started"
  "maxWaiting" "any number of runs may wait"
  "maxTrials" "a run may have any number of trials"
  "maxMemory" "a block may have any memory"
  "maxStored" "ledgers may fill the object store"
}}
{{- if or (not (hasKey $limits $field)) (kindIs "invalid" (get $limits $field)) }}
  policy.default.{{ $field }}: {{ $effect }}
{{- end }}
{{- end }}
{{- end }}

{{/*
With one run namespace Argo needs nothing outside of it: it is installed "namespaced". With several its informers list the
whole cluster, so that reading is granted there; writing never leaves the run namespaces.
*/}}
{{- define "assay.argo.namespaced" -}}
{{- if eq (len (include "assay.runNamespaces" $ | fromJsonArray)) 1 }}true{{ end -}}
{{- end -}}

{{- define "assay.argo.scopeArgs" -}}
{{- if include "assay.argo.namespaced" . }}
- --namespaced
- --managed-namespace={{ first (include "assay.runNamespaces" $ | fromJsonArray) }}
{{- end }}
{{- end -}}

{{/* The controller's read access. ConfigMaps and CronWorkflows are listed by its informers whether or not they are used. */}}
{{- define "assay.argo.controllerReadRules" -}}
- apiGroups: [""]
  resources: [pods, configmaps]
  verbs: [get, list, watch]
- apiGroups: [argoproj.io]
  resources: [workflows, workflowtasksets, workflowartifactgctasks, workflowtemplates, cronworkflows]
  verbs: [get, list, watch]
- apiGroups: [argoproj.io]
  resources: [workflowtaskresults]
  verbs: [list, watch]
{{- end -}}

{{/* The controller's rights in its namespace. */}}
{{- define "assay.argo.controllerOwnRules" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ include "assay.fullname" . }}-argo-controller]
  verbs: [get]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create, get, update]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* The controller's configuration is the server's too. It reads its certificate from a Secret. */}}
{{- define "assay.argo.serverOwnRules" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ include "assay.fullname" . }}-argo-controller]
  verbs: [get]
{{- if include "assay.argoServerTLS" . }}
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ include "assay.argoServerSecret" . | quote }}]
  verbs: [get]
{{- end }}
{{- end -}}

{{/* The server's read access to show workflows, their pods' logs and events. */}}
{{- define "assay.argo.serverReadRules" -}}
- apiGroups: [argoproj.io]
  resources: [workflows, workflowtemplates, cronworkflows, workfloweventbindings]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods, pods/log, events]
  verbs: [get, list, watch]
{{- end -}}

{{/* A controller's rights in run namespaces. To execute runs is to make pods that say which run they are of. */}}
{{- define "assay.argo.controllerRunRules" -}}
- apiGroups: [assay.dev]
  resources: [benchmarkruns]
  verbs: [execute]
- apiGroups: [""]
  resources: [pods]
  verbs: [create, update, patch, delete]
# To tell the containers of a cancelled pod to stop.
- apiGroups: [""]
  resources: [pods/exec]
  verbs: [create, get]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get]
- apiGroups: [argoproj.io]
  resources: [workflows, workflows/finalizers, workflowtasksets, workflowtasksets/finalizers, workflowartifactgctasks]
  verbs: [create, update, patch, delete]
- apiGroups: [argoproj.io]
  resources: [workflowtaskresults]
  verbs: [deletecollection]
{{- end -}}

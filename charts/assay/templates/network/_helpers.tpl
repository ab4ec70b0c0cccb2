{{/* Pods of the release's own component, as a peer. Call with (dict "root" $ "component" "minio"). */}}
{{- define "assay.network.component" -}}
podSelector:
  matchLabels:
    {{- include "assay.selectorLabels" . | nindent 4 }}
{{- end -}}

{{/* Where clouds give out a node's credentials and certificates: to no pod, ever. All that is link-local is among them, and all of
EC2's own prefix, as clouds put further services there; a block that a rule names is held against the services' own addresses as well. */}}
{{- define "assay.network.metadata" -}}
[169.254.0.0/16, 168.63.129.16/32, 100.100.100.200/32, "fe80::/10", "fd00:ec2::/32", "fd20:ce::254/128"]
{{- end -}}
{{- define "assay.network.metadataServices" -}}
[169.254.169.254/32, 169.254.170.2/32, 169.254.0.23/32, "fe80::a9fe:a9fe/128", "fd00:ec2::254/128", "fd20:ce::254/128"]
{{- end -}}

{{/* Anywhere, but for these addresses. A pod is no address to every network, so that pods are named as well. */}}
{{- define "assay.network.anywhere" -}}
{{- $metadata := include "assay.network.metadata" . | fromYamlArray -}}
{{- $v4 := list }}{{ $v6 := list }}
{{- range $metadata }}{{ if contains ":" . }}{{ $v6 = append $v6 . }}{{ else }}{{ $v4 = append $v4 . }}{{ end }}{{ end -}}
- namespaceSelector: {}
- ipBlock: {cidr: 0.0.0.0/0, except: {{ toJson $v4 }}}
- ipBlock: {cidr: "::/0", except: {{ toJson $v6 }}}
{{- end -}}

{{/* An address as numbers of 16 bits each, with commas between them: two for IPv4, eight for IPv6. */}}
{{- define "assay.network.groups" -}}
{{- $groups := list -}}
{{- if contains ":" . -}}
{{- $halves := splitList "::" . -}}
{{- $left := compact (splitList ":" (first $halves)) -}}
{{- $right := list -}}
{{- if gt (len $halves) 1 }}{{ $right = compact (splitList ":" (last $halves)) }}{{ end -}}
{{- $zeros := list -}}
{{- range until (max 0 (sub 8 (add (len $left) (len $right))) | int) }}{{ $zeros = append $zeros "0" }}{{ end -}}
{{- range concat $left $zeros $right }}{{ $groups = append $groups (int64 (printf "0x%s" .)) }}{{ end -}}
{{- else -}}
{{- $bytes := splitList "." . -}}
{{- range list 0 2 -}}
{{- $groups = append $groups (add (mul 256 (index $bytes . | int64)) (index $bytes (add1 . | int) | int64)) -}}
{{- end -}}
{{- end -}}
{{- join "," $groups -}}
{{- end -}}

{{/* "true" if a CIDR holds all of another. Call with (dict "cidr" "10.0.0.0/8" "block" "10.1.2.0/24"). */}}
{{- define "assay.network.holds" -}}
{{- $parts := splitList "/" .cidr -}}
{{- $other := splitList "/" .block -}}
{{- $net := splitList "," (include "assay.network.groups" (first $parts)) -}}
{{- $address := splitList "," (include "assay.network.groups" (first $other)) -}}
{{- $length := last $parts | int -}}
{{- if and (eq (len $net) (len $address)) (le $length (last $other | int)) -}}
{{- $same := true -}}
{{- range $i, $group := $net -}}
{{- $free := max 0 (min 16 (sub 16 (sub $length (mul 16 $i)))) -}}
{{- $unit := 1 }}{{ range until (int $free) }}{{ $unit = mul 2 $unit }}{{ end -}}
{{- if ne (div (int64 $group) $unit) (div (index $address $i | int64) $unit) }}{{ $same = false }}{{ end -}}
{{- end -}}
{{- if $same }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* Fails if a block of addresses holds metadata. Call with (dict "block" (dict "cidr" … "except" …) "field" "networkPolicies…"). */}}
{{- define "assay.network.refuseMetadata" -}}
{{- $call := . -}}
{{- if or (and (contains ":" .block.cidr) (contains "." .block.cidr)) (hasPrefix "0,0,0,0,0,65535," (include "assay.network.groups" (splitList "/" .block.cidr | first))) -}}
{{- fail (printf "%s: %s: write IPv4 addresses as such, without ::ffff:" .field .block.cidr) -}}
{{- end -}}
{{- range prepend (.block.except | default list) .block.cidr -}}
{{- if regexMatch "/0[0-9]|^0[0-9]+[.]|[.]0[0-9]" . -}}
{{- fail (printf "%s: %s: write numbers without leading zeros, which programs read differently" $call.field .) -}}
{{- end -}}
{{- end -}}
{{- range concat (include "assay.network.metadataServices" . | fromYamlArray) (include "assay.network.metadata" . | fromYamlArray) -}}
{{- $metadata := . -}}
{{- if include "assay.network.holds" (dict "cidr" $call.block.cidr "block" $metadata) -}}
{{- $out := false -}}
{{- range $call.block.except }}{{ if include "assay.network.holds" (dict "cidr" . "block" $metadata) }}{{ $out = true }}{{ end }}{{ end -}}
{{- if not $out -}}
{{- $all := list -}}
{{- range include "assay.network.metadata" . | fromYamlArray -}}
{{- if include "assay.network.holds" (dict "cidr" $call.block.cidr "block" .) }}{{ $all = append $all . }}{{ end -}}
{{- end -}}
{{- $problem := printf "%s: %s holds %s, where a cloud gives out its nodes' credentials: narrow it" $call.field $call.block.cidr $metadata -}}
{{- fail (ternary (printf "%s, or have %s in its except" $problem (join ", " $all)) $problem (gt (len $all) 0)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* To names: who answers them, and a cache of them on each node, whose address is link-local by convention
(https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/) or that of their Service. */}}
{{- define "assay.network.toNames" -}}
{{- range $i, $peer := .Values.networkPolicies.names.to }}
{{- with $peer.ipBlock }}
{{- include "assay.network.refuseMetadata" (dict "block" . "field" (printf "networkPolicies.names.to[%d].ipBlock" $i)) }}
{{- end }}
{{- end -}}
- ports:
  - {protocol: UDP, port: 53}
  - {protocol: TCP, port: 53}
  to:
  {{- toYaml .Values.networkPolicies.names.to | nindent 2 }}
  {{- $service := lookup "v1" "Service" "kube-system" "kube-dns" | default dict }}
  {{- range dig "spec" "clusterIPs" list $service }}{{ if ne . "None" }}
  - ipBlock: {cidr: {{ include "assay.network.host" . | quote }}}
  {{- end }}{{ end }}
  - ipBlock: {cidr: 169.254.20.10/32}
{{- end -}}

{{/* One address, as a CIDR. */}}
{{- define "assay.network.host" -}}
{{- printf "%s/%d" . (ternary 128 32 (contains ":" .)) -}}
{{- end -}}

{{/* To the API server, which no label selects. */}}
{{- define "assay.network.toAPIServer" -}}
{{- range .Values.networkPolicies.apiServer.cidrs }}
{{- include "assay.network.refuseMetadata" (dict "block" (dict "cidr" .) "field" "networkPolicies.apiServer.cidrs") }}
{{- end -}}
- ports:
  {{- range .Values.networkPolicies.apiServer.ports }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
  to:
  {{- range .Values.networkPolicies.apiServer.cidrs }}
  - ipBlock: {cidr: {{ . | quote }}}
  {{- else }}
  {{- include "assay.network.anywhere" . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The same for the untrusted pods of runs: without cidrs the addresses that the API server has when the chart is installed
or upgraded. A chart that is rendered without a cluster cannot ask for them. */}}
{{- define "assay.network.runsToAPIServer" -}}
{{- $given := .Values.networkPolicies.apiServer -}}
{{- $cidrs := list -}}
{{- $ports := $given.ports -}}
{{- if not $given.cidrs -}}
{{- range dig "spec" "clusterIPs" list (lookup "v1" "Service" "default" "kubernetes" | default dict) -}}
{{- $cidrs = append $cidrs (include "assay.network.host" .) -}}
{{- end -}}
{{- $slice := lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes" | default dict -}}
{{- range dig "endpoints" list $slice -}}
{{- range .addresses }}{{ $cidrs = append $cidrs (include "assay.network.host" .) }}{{ end -}}
{{- end -}}
{{- range dig "ports" list $slice }}{{ $ports = append $ports .port }}{{ end -}}
{{- end -}}
{{- $server := dict "cidrs" ($given.cidrs | default (uniq $cidrs)) "ports" (uniq $ports) -}}
{{- include "assay.network.toAPIServer" (dict "Values" (dict "networkPolicies" (dict "apiServer" $server))) -}}
{{- end -}}

{{/* To the object store: the bundled one, the namespace of one in the cluster, whose pods may have other ports than its
Service, or a port anywhere else. */}}
{{- define "assay.network.toStore" -}}
{{- $endpoint := include "assay.ledgerEndpoint" . -}}
{{- $host := splitList ":" $endpoint | first -}}
{{- $parts := splitList "." $host -}}
{{- if eq .Values.objectStore.mode "bundled" -}}
- ports:
  - {protocol: TCP, port: 9000}
  to:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ .Release.Namespace | quote }}}}
    {{- include "assay.network.component" (dict "root" . "component" "minio") | nindent 4 }}
{{- else if and (ge (len $parts) 3) (eq (index $parts 2) "svc") -}}
- to:
  - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ index $parts 1 | quote }}}}
{{- else -}}
- ports:
  - {protocol: TCP, port: {{ ternary (splitList ":" $endpoint | last) (ternary "80" "443" (eq (include "assay.ledgerInsecure" .) "true")) (contains ":" $endpoint) }}}
  to:
  {{- include "assay.network.anywhere" . | nindent 2 }}
{{- end -}}
{{- if include "assay.ledgerIdentity" . }}
# The cloud's services that hand out credentials to this ServiceAccount: Pod Identity's agent on the node, and STS.
- ports:
  - {protocol: TCP, port: 80}
  to:
  - ipBlock: {cidr: 169.254.170.23/32}
  - ipBlock: {cidr: "fd00:ec2::23/128"}
- ports:
  - {protocol: TCP, port: 443}
  to:
  {{- include "assay.network.anywhere" . | nindent 2 }}
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

{{/* The head of every policy of a component. Call with (dict "root" $ "component" "operator"). */}}
{{- define "assay.network.policy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "assay.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "assay.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "assay.selectorLabels" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
{{- end -}}

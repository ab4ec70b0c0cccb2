package chart

import (
	"strings"
	"testing"
)

func TestValues_InvalidAreRejected(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ values, wantError string }{
		"a given certificate without its authority":       {`{objectStore: {tls: {enabled: true, existingSecret: own}}}`, "objectStore.tls.existingSecret and objectStore.tls.ca belong together"},
		"an unused certificate":                           {`{objectStore: {tls: {enabled: false, existingSecret: own}}}`, "objectStore.tls.enabled=true"},
		"a seed that can be guessed":                      {`{objectStore: {auth: {userKeySeed: short}}}`, "/objectStore/auth/userKeySeed"},
		"a region that says more than where":              {`{objectStore: {region: "eu&pathStyle=false"}}`, "/objectStore/region"},
		"a key that does not exist":                       {`{minoi: {}}`, "minoi"},
		"a key that does not exist, deeper":               {`{objectStore: {persistance: {}}}`, "persistance"}, //nolint:misspell // Wrong on purpose.
		"a label of pods that selects them":               {`{podLabels: {app.kubernetes.io/component: x}}`, "/podLabels"},
		"a variable without a name":                       {`{extraEnv: [{value: x}]}`, "/extraEnv/0"},
		"an affinity that does not exist":                 {`{scheduling: {affinity: {nodeAfinity: {}}}}`, "/scheduling/affinity"},
		"a spread over nothing":                           {`{scheduling: {topologySpreadConstraints: [{maxSkew: 1}]}}`, "/scheduling/topologySpreadConstraints/0"},
		"a mode that does not exist":                      {`{argo: {mode: shared}}`, "/argo/mode"},
		"no run namespace":                                {`{runNamespaces: []}`, "/runNamespaces"},
		"a run namespace twice":                           {`{runNamespaces: [a, a]}`, "/runNamespaces"},
		"a run namespace that cannot exist":               {`{runNamespaces: [Team_A]}`, "/runNamespaces/0"},
		"a string for a switch":                           {`{createRunNamespaces: "no"}`, "/createRunNamespaces"},
		"no operator":                                     {`{operator: {replicas: 0}}`, "/operator/replicas"},
		"an argument that is not a string":                {`{operator: {extraArgs: [1]}}`, "/operator/extraArgs/0"},
		"a history of days":                               {`{policy: {default: {history: {full: 365d, every: 7d}}}}`, "/policy/default/history/full"},
		"a history with an invalid retention":             {`{policy: {namespaces: {team: {history: {forever: 1h}}}}}`, "/policy/namespaces/team/history"},
		"a history that is thinned to nothing":            {`{policy: {default: {history: {full: 8760h}}}}`, "/policy/default/history"},
		"a pull policy that does not exist":               {`{images: {pullPolicy: Sometimes}}`, "/images/pullPolicy"},
		"a registry with a scheme":                        {`{global: {imageRegistry: "https://ghcr.io"}}`, "/global/imageRegistry"},
		"an image with neither tag nor digest":            {`{images: {minio: {tag: ""}}}`, "/images/minio"},
		"an invalid digest":                               {`{images: {minio: {digest: latest}}}`, "/images/minio"},
		"a repository with a digest in it":                {`{images: {minio: {repository: a@sha256}}}`, "/images/minio/repository"},
		"an invalid repository":                           {`{images: {minio: {repository: "{minio}"}}}`, "/images/minio/repository"},
		"an image with an unknown key":                    {`{images: {minio: {version: 1}}}`, "/images/minio"},
		"a pull secret without a name":                    {`{images: {pullSecrets: [{}]}}`, "/images/pullSecrets/0"},
		"a node label that is not a string":               {`{scheduling: {nodeSelector: {a: 1}}}`, "/scheduling/nodeSelector/a"},
		"an invalid amount":                               {`{argo: {executor: {cpu: some}}}`, "/argo/executor/cpu"},
		"a request that is no amount":                     {`{operator: {resources: {requests: {cpu: fast}}}}`, "/operator/resources/requests/cpu"},
		"a key that resources do not have":                {`{operator: {resources: {cpu: 1}}}`, "/operator/resources"},
		"a bucket no store accepts":                       {`{objectStore: {bucket: A}}`, "/objectStore/bucket"},
		"an instance ID that cannot be a label":           {`{argo: {instanceID: "a b"}}`, "/argo/instanceID"},
		"an endpoint with a scheme":                       {`{objectStore: {external: {endpoint: "https://s3.example.com"}}}`, "/objectStore/external/endpoint"},
		"an external store without an endpoint":           {`{objectStore: {mode: external, existingSecret: s3}}`, "objectStore.external.endpoint is needed"},
		"an external store that is not used":              {`{objectStore: {external: {endpoint: s3.example.com}}}`, "set objectStore.mode=external"},
		"a Secret and an identity":                        {`{objectStore: {mode: external, existingSecret: s3, external: {endpoint: s3.example.com, workloadIdentity: true}}}`, "exclude each other"},
		"two authorities":                                 {`{objectStore: {mode: external, existingSecret: s3, external: {endpoint: s3.example.com, ca: {existingSecret: a, existingConfigMap: b}}}}`, "give one of"},
		"an authority for a store without TLS":            {`{objectStore: {mode: external, existingSecret: s3, external: {endpoint: s3.example.com, secure: false, ca: {existingSecret: a}}}}`, "without TLS"},
		"invalid certificates":                            {`{objectStore: {external: {ca: {certificate: /etc/ca.crt}}}}`, "/objectStore/external/ca/certificate"},
		"a ConfigMap that cannot be read":                 {`{objectStore: {mode: external, existingSecret: s3, external: {endpoint: s3.example.com, ca: {existingConfigMap: roots}}}}`, "ConfigMap assay-system/roots has no key ca.crt"},
		"rights for an Argo that is nowhere":              {`{argo: {mode: external, external: {serviceAccount: argo}}}`, "argo.external.namespace is needed"},
		"a Prometheus Operator beside the bundled one":    {`{prometheus: {operator: {enabled: true}}}`, "needs prometheus.mode=external"},
		"a label that the chart sets itself":              {`{commonLabels: {app.kubernetes.io/name: x}}`, "/commonLabels"},
		"an invalid port":                                 {`{networkPolicies: {apiServer: {ports: [0]}}}`, "/networkPolicies/apiServer/ports/0"},
		"an address that is no CIDR":                      {`{networkPolicies: {apiServer: {cidrs: [10.0.0.1]}}}`, "/networkPolicies/apiServer/cidrs/0"},
		"an egress rule to everywhere":                    {`{networkPolicies: {runs: {egress: [{ports: [{port: 80}]}]}}}`, "/networkPolicies/runs/egress/0"},
		"an egress rule to no peers":                      {`{networkPolicies: {runs: {egress: [{to: []}]}}}`, "/networkPolicies/runs/egress/0/to"},
		"egress to every address":                         {egressTo(`{cidr: 0.0.0.0/0}`), "networkPolicies.runs.egress[1].to[0].ipBlock: 0.0.0.0/0 holds 169.254.169.254"},
		"egress to every address of the other kind":       {egressTo(`{cidr: "::/0"}`), "::/0 holds fe80::a9fe:a9fe"},
		"egress to metadata":                              {egressTo(`{cidr: 169.254.169.254/32}`), "holds 169.254.169.254"},
		"egress to link-local addresses":                  {egressTo(`{cidr: 169.254.0.0/16}`), "holds 169.254.169.254"},
		"egress to half of all addresses":                 {egressTo(`{cidr: 128.0.0.0/1, except: [10.0.0.0/8]}`), "holds 169.254.169.254"},
		"egress to Azure's":                               {egressTo(`{cidr: 168.63.129.0/24}`), "holds 168.63.129.16"},
		"egress to Alibaba's":                             {egressTo(`{cidr: 100.64.0.0/10}`), "holds 100.100.100.200"},
		"egress with an except beside metadata":           {egressTo(`{cidr: 0.0.0.0/0, except: [169.254.169.255/32, 168.63.129.16/32, 100.100.100.200/32]}`), "holds 169.254.169.254"},
		"egress to every address but one of them":         {egressTo(`{cidr: 0.0.0.0/0, except: [169.254.169.254/32, 168.63.129.16/32, 100.100.100.200/32]}`), "holds 169.254.170.2"},
		"egress that includes link-local addresses":       {egressTo(`{cidr: 169.254.128.0/17, except: [169.254.169.254/32]}`), "holds 169.254.170.2"},
		"egress to a metadata service of containers":      {egressTo(`{cidr: 169.254.170.0/24}`), "holds 169.254.170.2"},
		"egress to Tencent's":                             {egressTo(`{cidr: 169.254.0.0/24}`), "holds 169.254.0.23"},
		"egress to link-local of IPv6":                    {egressTo(`{cidr: "fe80::/64"}`), "holds fe80::a9fe:a9fe"},
		"egress to metadata of IPv6":                      {egressTo(`{cidr: "fd00:ec2::/32"}`), "holds fd00:ec2::254"},
		"egress to metadata of IPv6, in full":             {egressTo(`{cidr: "FD00:0EC2:0:0:0:0:0:0254/128"}`), "holds fd00:ec2::254"},
		"egress to private addresses of IPv6":             {egressTo(`{cidr: "fc00::/7", except: ["fd00:ec2::254/128"]}`), "holds fd20:ce::254"},
		"egress to metadata of IPv4 in IPv6":              {egressTo(`{cidr: "::ffff:169.254.169.254/128"}`), "without ::ffff:"},
		"egress to metadata of IPv4 in IPv6, as numbers":  {egressTo(`{cidr: "::ffff:a9fe:a9fe/128"}`), "without ::ffff:"},
		"egress to metadata of IPv4 in IPv6, in full":     {egressTo(`{cidr: "0:0:0:0:0:ffff:a9fe:a9fe/128"}`), "without ::ffff:"},
		"an API server everywhere":                        {`{networkPolicies: {apiServer: {cidrs: [0.0.0.0/0]}}}`, "networkPolicies.apiServer.cidrs: 0.0.0.0/0 holds 169.254.169.254"},
		"a metadata address with zeros before it":         {egressTo(`{cidr: 0169.254.169.254/32}`), "without leading zeros"},
		"an except that is smaller than it looks":         {egressTo(`{cidr: 160.0.0.0/4, except: [169.254.0.0/016, 168.0.0.0/010]}`), "without leading zeros"},
		"an isolation that does not exist":                {`{networkPolicies: {runs: {isolate: Egress}}}`, "/networkPolicies/runs/isolate"},
		"an external store without credentials":           {`{objectStore: {mode: external, external: {endpoint: s3.example.com}}}`, "objectStore.existingSecret is needed"},
		"a secret key that MinIO refuses":                 {`{objectStore: {auth: {secretKey: short}}}`, "/objectStore/auth/secretKey"},
		"an access key that MinIO refuses":                {`{objectStore: {auth: {accessKey: ab}}}`, "/objectStore/auth/accessKey"},
		"a retention that Prometheus does not understand": {`{prometheus: {retention: 3 weeks}}`, "/prometheus/retention"},
		"an Alertmanager without a port":                  {`{prometheus: {alertmanagers: [alerts.example.com]}}`, "/prometheus/alertmanagers/0"},
		"an Alertmanager with a scheme":                   {`{prometheus: {alertmanagers: ["https://alerts.example.com:9093"]}}`, "/prometheus/alertmanagers/0"},
		"an interval that Prometheus does not understand": {`{prometheus: {scrapeInterval: "15"}}`, "/prometheus/scrapeInterval"},
		"an invalid name prefix":                          {`{fullnameOverride: "My Assay"}`, "/fullnameOverride"},
		"an invalid chart name":                           {`{nameOverride: "a: b"}`, "/nameOverride"},
		"an authentication that Argo's server lacks":      {`{argo: {server: {authMode: none}}}`, "/argo/server/authMode"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := tryRender(t, tc.values)
			if err == nil {
				t.Fatalf("accepted %s", tc.values)
			}
			if !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("the error does not say %q:\n%v", tc.wantError, err)
			}
		})
	}
}

// egressTo are values that let runs reach a block of addresses.
func egressTo(block string) string {
	return `{networkPolicies: {runs: {egress: [{to: [{podSelector: {}}]}, {to: [{ipBlock: ` + block + `}]}]}}}`
}

func TestValues_UsualAreAccepted(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"resources as numbers":                         `{operator: {resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 0.5}}}}`,
		"resources without limits":                     `{operator: {resources: {limits: null}}}`,
		"an image by digest alone":                     `{images: {minio: {tag: "", digest: "sha256:` + strings.Repeat("0", 64) + `"}}}`,
		"a registry with a port":                       `{images: {minio: {repository: "localhost:5000/minio/minio"}}}`,
		"an endpoint with a port":                      `{objectStore: {mode: external, existingSecret: s3, external: {endpoint: "10.0.0.1:9000", secure: false}}}`,
		"values from a parent chart":                   `{global: {anything: 1}}`,
		"a toleration":                                 `{scheduling: {tolerations: [{key: a, operator: Exists, effect: NoSchedule}]}}`,
		"egress to a company's addresses":              egressTo(`{cidr: 10.0.0.0/8}`),
		"egress beside metadata":                       egressTo(`{cidr: 169.254.169.253/32}`),
		"egress beside metadata of IPv6":               egressTo(`{cidr: "fd00:ec2::/120"}`),
		"egress to every address but metadata":         egressTo(`{cidr: 0.0.0.0/0, except: [169.254.0.0/16, 168.63.129.16/32, 100.100.100.200/32]}`),
		"egress to addresses of IPv6 with zeros":       egressTo(`{cidr: "0064:ff9b::/96"}`),
		"egress to every address of IPv6 but metadata": egressTo(`{cidr: "::/0", except: ["fc00::/7", "fe80::/10"]}`),
		"persistence of another size":                  `{objectStore: {persistence: {enabled: true, size: 1.5Ti}}}`,
	}
	for name, values := range tests {
		t.Run(name, func(t *testing.T) { render(t, values) })
	}
}

package attacks

import corev1 "k8s.io/api/core/v1"

// The promises that most attacks are about, in the words of docs/threat-model.md.
const (
	storePromise = "The keys of a run namespace reach the ledgers of that namespace only, and " +
		"can neither change plans and leases nor delete objects"
	versionsPromise = "Overwritten objects of the bundled store are kept as versions, and the keys of a run namespace cannot delete them"
	operatorStore   = "The operator writes nothing that was measured, and no analysis"
	replacedPromise = "Keys that are replaced, and those of a namespace that is taken away, are worth nothing"
	readerPromise   = "Who reads a report needs no key that writes"
	metricsPromise  = "The bundled store's metrics are for the token of a user who may do nothing else"
	resultPromise   = "Results are those that the platform's analysis wrote, in the status and for every reader"
	writerPromise   = "Authors of runs cannot write attempts or verdicts"
	nodesPromise    = "Of nodes it changes the taint of a lease and nothing else"
	secretsPromise  = "It reads no Secret through the API and makes no pod"
	wherePromise    = "The operator writes only where runs are, and reads nothing else but nodes"
	rightsPromise   = "It has every right that it uses and no other"
	wordsPromise    = "Output, parameters and names of a program are stored unchanged, through Argo and into the report"
	whosePromise    = "Only Argo's controller makes pods with the labels of a run, and only the operator such workflows, " +
		"so that no other pod keeps or shares a leased node"
	sizePromise   = "An oversized or unreadable run is rejected before it uses resources"
	limitsPromise = "No run exceeds the administrator's policy of its namespace, in any form of request"
	reachPromise  = "A pod of a run reaches names, the API server and the store only, unless the platform's administrator adds to that; " +
		"a cloud's metadata never"
	untouchedPromise = "A measured program changes neither its records nor those of other programs"
	storeGuard       = "operator/internal/storeusers/policy.go"
)

// All are the attacks, in the order in which they are tried.
var All = []Attack{
	{"a tenant writes its own verdict", writerPromise, "charts/assay/templates/roles.yaml: edit has no benchmarkruns/status",
		writesAVerdict(tenant), API},
	{"a tenant makes a run that has its verdict already", writerPromise, "the status subresource of the CRD", bornWithAVerdict, API},
	{"a tenant changes the program of others' runs", writerPromise, "charts/assay/templates/roles.yaml: edit has no benchmarktemplates",
		changesATemplate, API},
	{"the executor of a block writes a verdict", writerPromise, "charts/assay/templates/runs/executor.yaml",
		writesAVerdict((*World).executor), API},
	{"a tenant changes a run after it was accepted", writerPromise, "the rules on changes in the CRD", afterAcceptance, API},
	{"a program asks the API server without a token", reachPromise, "automountServiceAccountToken, and no role for system:unauthenticated",
		asksWithoutAToken, API},
	{"an effect that Argo's controller evaluates", wordsPromise, "the rules of spec.placement.tolerations in the CRD",
		toleration(corev1.Toleration{Key: "a", Effect: "{{=sprig.env(\"HOME\")}}"}, "effect"), API},
	{"a toleration of others' leases", nodesPromise, "the rules of spec.placement.tolerations in the CRD",
		toleration(corev1.Toleration{Key: leaseTaint, Operator: corev1.TolerationOpExists}, leaseTaint), API},
	{"a toleration of everything", nodesPromise, "the rules of spec.placement.tolerations in the CRD",
		toleration(corev1.Toleration{Operator: corev1.TolerationOpExists}, "key"), API},
	{"a tenant opens a node to runs", nodesPromise, "Kubernetes' own role edit",
		patchesANode(tenant, `{"metadata":{"labels":{"bench":"yes"}}}`), API},
	{"a hijacked operator labels a node", nodesPromise, "ValidatingAdmissionPolicy assay-operator-nodes",
		patchesANode((*World).operator, `{"metadata":{"labels":{"hijacked":"yes"}}}`), API},
	{"a hijacked operator taints a node for others than a lease", nodesPromise, "ValidatingAdmissionPolicy assay-operator-nodes",
		patchesANode((*World).operator, `{"spec":{"taints":[{"key":"hijacked","effect":"NoExecute"}]}}`), API},
	{"a tenant makes a pod that says that it is a run's", whosePromise, "ValidatingAdmissionPolicy assay-operator-runs", makesABlock, API},
	{"a tenant takes a run's name off a block's pod", whosePromise, "ValidatingAdmissionPolicy assay-operator-runs", takesAName, API},
	{"a tenant runs its own program in a pod of a run", resultPromise, "ValidatingAdmissionPolicy assay-operator-pods", entersAPod, API},
	{"160,000 cells", sizePromise, "operator/internal/experiment/limits.go and the rules of spec.sweep in the CRD", tooManyCells, API},
	{"a ConfigMap in the way of a run's plan", wherePromise, "the check of owners in operator/internal/apply", configMapInTheWay, API},
	{"a hijacked operator writes where no runs are", wherePromise, "a Role for each run namespace", writesElsewhere, Cluster},
	{"a hijacked operator takes rights", rightsPromise, "operator/config/rbac", takesRights, API},
	{"a hijacked operator reads a Secret", secretsPromise, "operator/config/rbac", readsSecrets((*World).operator), API},
	{"the executor of a block reads a Secret", secretsPromise, "charts/assay/templates/runs/executor.yaml",
		readsSecrets((*World).executor), API},
	{"a hijacked operator makes a pod", secretsPromise, "operator/config/rbac", makesAPod, API},
	{"a run asks for more than the policy allows", limitsPromise, "operator/internal/policy: Refuses", beyondThePolicy, Limited},
	{"several runs begin at once where one may", limitsPromise, "operator/internal/controller/decide.go", severalAtOnce, Limited},
	{"another namespace's ledger is read", storePromise, storeGuard, readsAnother, Store},
	{"another namespace's ledger is listed", storePromise, storeGuard, listsAnother, Store},
	{"another namespace's ledger is written and deleted", storePromise, storeGuard, writesAnother, Store},
	{"a plan is overwritten", storePromise, storeGuard, writesThePlan, Store},
	{"attempts are hidden", storePromise, storeGuard, hidesItsOwn, Store},
	{"the end of a lease is kept out", storePromise, storeGuard, keepsOutTheOperator, Store},
	{"the store's users and policies are changed", storePromise, storeGuard, makesUsers, Store},
	{"attempts are deleted, and their versions", versionsPromise, storeGuard, deletesItsOwn, Store},
	{"the bucket is made to forget", versionsPromise, storeGuard, makesTheStoreForget, Store},
	{"the operator's key writes attempts", operatorStore, storeGuard, operatorMeasures, Store},
	{"a reader's key writes a verdict", readerPromise, storeGuard, readerWrites, Store},
	{"the store's metrics with another's token", metricsPromise, storeGuard, readsTheStoresMetrics, Store},
	// The last of the store: the key that the others are tried with ends here.
	{"a key is kept beyond its replacement", replacedPromise, "operator/internal/storeusers/apply.go", keepsAKeyThatIsReplaced, Store},
	{"metrics without a token", "The operator's metrics are for tokens that the cluster allows", "the filter of the operator's metrics server",
		nil, Cluster},
	{"Argo's server without a token", "Argo's server shows a client the objects that its token may read, and reads no Secret itself",
		"--auth-mode=client", nil, Cluster},
	{"a program looks for credentials and rights in its pod", "Every pod of the release and every part of a block's pod is restricted",
		"operator/internal/executor/argo: the pod's security context, its mounts and its environment", nil, Cluster},
	{"a pod that is not restricted in a namespace that the chart makes",
		"Run namespaces that the chart makes take restricted pods only; `assay doctor` says so of others",
		"charts/assay/templates/runs/namespaces.yaml", nil, Cluster},
	{"a program reaches another tenant's service", reachPromise, "charts/assay/templates/network", nil, Cluster},
	{"a program fills the disk of its node", "No pod of the release fills its node's disk",
		"sizeLimit and ephemeral-storage in the chart and in operator/internal/executor/argo", nil, Cluster},
	{"a program writes to every location of its pod",
		"A trial writes to one folder only, at most 512 MiB beyond its limit, and fails if it reaches the limit " +
			"([each location](decisions/storage.md))",
		"operator/internal/executor/argo/scratch.go and the runner's confinement", nil, Cluster},
	{"results are replaced before, during and after the analysis", resultPromise, "operator/internal/ledger: Accepted", nil, Cluster},
	{"a hostile candidate", untouchedPromise, "the keeper and the runner's privacy", nil, Cluster},
	{"a candidate that ends its block", untouchedPromise, "the note that a trial has begun", nil, Cluster},
	{"expressions in parameters", wordsPromise, "operator/internal/executor/argo: nothing of a user's in a template", nil, Cluster},
}

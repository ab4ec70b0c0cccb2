package attacks

import corev1 "k8s.io/api/core/v1"

// The promises that most attacks are about, in the words of docs/threat-model.md.
const (
	storePromise = "The keys of a run namespace reach the ledgers of that namespace only, and can change neither what was planned nor " +
		"who had a node, nor delete anything"
	versionsPromise = "What is written over in the bundled store is kept, and the keys of a run namespace cannot take it away"
	operatorStore   = "The operator writes nothing that was measured, and no analysis"
	replacedPromise = "Keys that are replaced, and those of a namespace that is taken away, are worth nothing"
	readerPromise   = "Who reads a report needs no key that writes"
	metricsPromise  = "The bundled store's metrics are for the token of a user who may do nothing else"
	writerPromise   = "Who may make runs may not write what was measured"
	nodesPromise    = "Of nodes it changes the taint of a lease and nothing else"
	secretsPromise  = "It reads no Secret through the API and makes no pod"
	wherePromise    = "The operator writes only where runs are, and reads nothing else but nodes"
	rightsPromise   = "It has every right that it uses and no other"
	wordsPromise    = "What a program prints, its parameters and names arrive as they are, through Argo and into the report"
	whosePromise    = "Only Argo's controller makes pods that say that they are a run's, and only the operator such workflows, so that " +
		"nobody keeps a node with another pod or shares one that is leased"
	sizePromise   = "A run that asks for too much, or that nobody can read, is refused before it takes anything"
	limitsPromise = "What an administrator's policy does not allow to a namespace none of its runs gets, however it is asked for"
	reachPromise  = "A pod of a run reaches names, the API server and the store only, unless the platform's administrator adds to that; " +
		"a cloud's metadata never"
	untouchedPromise = "A program that is measured changes neither what is recorded of it nor what is recorded of others"
	storeGuard       = "operator/internal/storeusers/policy.go"
)

// All are the attacks, in the order in which they are tried.
var All = []Attack{
	{"a tenant writes its own verdict", writerPromise, "charts/assay/templates/roles.yaml: edit has no benchmarkruns/status",
		writesAVerdict(tenant), API},
	{"a tenant makes a run that has its verdict already", writerPromise, "the status subresource of the CRD", bornWithAVerdict, API},
	{"a tenant changes what others' runs execute", writerPromise, "charts/assay/templates/roles.yaml: edit has no benchmarktemplates",
		changesATemplate, API},
	{"what stores a block's results writes a verdict", writerPromise, "charts/assay/templates/runs/executor.yaml",
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
	{"160,000 cells", sizePromise, "operator/internal/experiment/limits.go and the rules of spec.sweep in the CRD", tooManyCells, API},
	{"a ConfigMap in the way of a run's plan", wherePromise, "the check of owners in operator/internal/apply", configMapInTheWay, API},
	{"a hijacked operator writes where no runs are", wherePromise, "a Role for each run namespace", writesElsewhere, Cluster},
	{"a hijacked operator takes rights", rightsPromise, "operator/config/rbac", takesRights, API},
	{"a hijacked operator reads a Secret", secretsPromise, "operator/config/rbac", readsSecrets((*World).operator), API},
	{"what stores a block's results reads a Secret", secretsPromise, "charts/assay/templates/runs/executor.yaml",
		readsSecrets((*World).executor), API},
	{"a hijacked operator makes a pod", secretsPromise, "operator/config/rbac", makesAPod, API},
	{"a run asks for more than the policy allows", limitsPromise, "operator/internal/policy: Refuses", beyondThePolicy, Limited},
	{"several runs begin at once where one may", limitsPromise, "operator/internal/controller/decide.go", severalAtOnce, Limited},
	{"another namespace's ledger is read", storePromise, storeGuard, readsAnother, Store},
	{"another namespace's ledger is listed", storePromise, storeGuard, listsAnother, Store},
	{"another namespace's ledger is written and deleted", storePromise, storeGuard, writesAnother, Store},
	{"what was planned is written over", storePromise, storeGuard, writesThePlan, Store},
	{"what was measured is hidden", storePromise, storeGuard, hidesItsOwn, Store},
	{"the end of a lease is kept out", storePromise, storeGuard, keepsOutTheOperator, Store},
	{"the store's users and policies are changed", storePromise, storeGuard, makesUsers, Store},
	{"what was measured is deleted, and its versions", versionsPromise, storeGuard, deletesItsOwn, Store},
	{"the bucket is made to forget", versionsPromise, storeGuard, makesTheStoreForget, Store},
	{"the operator's key writes what was measured", operatorStore, storeGuard, operatorMeasures, Store},
	{"a reader's key writes a verdict", readerPromise, storeGuard, readerWrites, Store},
	{"the store's metrics with another's token", metricsPromise, storeGuard, readsTheStoresMetrics, Store},
	// The last of the store: the key that the others are tried with ends here.
	{"a key is kept beyond its replacement", replacedPromise, "operator/internal/storeusers/apply.go", keepsAKeyThatIsReplaced, Store},
	{"metrics without a token", "The operator's metrics are for tokens that the cluster allows", "the filter of the operator's metrics server",
		nil, Cluster},
	{"Argo's server without a token", "Argo's server shows a client what its token may see, and reads no Secret itself", "--auth-mode=client",
		nil, Cluster},
	{"a program looks for credentials and rights in its pod", "Every pod of the release and every part of a block's pod is restricted",
		"operator/internal/executor/argo: the pod's security context, its mounts and its environment", nil, Cluster},
	{"a pod that is not restricted in a namespace that the chart makes",
		"Run namespaces that the chart makes take restricted pods only; `assay doctor` says so of others",
		"charts/assay/templates/runs/namespaces.yaml", nil, Cluster},
	{"a program reaches what is not its own", reachPromise, "charts/assay/templates/network", nil, Cluster},
	{"a program fills the disk of its node", "No pod of the release fills its node's disk",
		"sizeLimit and ephemeral-storage in the chart and in operator/internal/executor/argo", nil, Cluster},
	{"a hostile candidate", untouchedPromise, "the keeper and the runner's privacy", nil, Cluster},
	{"a candidate that ends its block", untouchedPromise, "the note that a trial has begun", nil, Cluster},
	{"expressions in parameters", wordsPromise, "operator/internal/executor/argo: nothing of a user's in a template", nil, Cluster},
}

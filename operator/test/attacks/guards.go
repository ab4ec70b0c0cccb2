package attacks

// Guard describes how to remove the defence against an attack, to show that the attack then succeeds.
type Guard struct {
	// Edits of the tree remove it, or Values of the release, as for helm upgrade --set.
	Edits  []Edit
	Values string
	// Builds is the make target of the edited programs, if they are in an image of the cluster.
	Builds string
	// Kept is the reason why it cannot be removed.
	Kept string
}

// Edit replaces Old, which must occur once, by New. File is relative to the root of the tree.
type Edit struct{ File, Old, New string }

// Files with guards.
const (
	peopleFile   = "operator/config/rbac/people.yaml"
	executorFile = "operator/config/rbac/executor_role.yaml"
	operatorFile = "operator/config/rbac/role.yaml"
	nodesFile    = "operator/config/rbac/nodes_policy.yaml"
	policyFile   = "operator/config/rbac/runs_policy.yaml"
	podsFile     = "operator/config/rbac/pods_policy.yaml"
	runsFile     = "operator/config/crd/assay.dev_benchmarkruns.yaml"
	usersFile    = storeGuard

	goPrograms = "build-go"
)

func edit(file, before, after string) Guard { return Guard{Edits: []Edit{{file, before, after}}} }

func built(target, file, before, after string) Guard {
	guard := edit(file, before, after)
	guard.Builds = target
	return guard
}

// Excessive rights for the tests of guards.
var (
	nodesAudited = edit(nodesFile, "validationActions: [Deny]", "validationActions: [Audit]")
	runsAudited  = edit(policyFile, "validationActions: [Deny]", "validationActions: [Audit]")
	everybodys   = edit(usersFile, `path.Join("runs", match[2]) + "/*", path`, `"runs/*", path`)
)

// anonymousBinding grants anonymous users the rights of view.
const (
	recordRole       = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: assay-record\n"
	anonymousBinding = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: assay-nobody\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: assay-view}\n" +
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"system:unauthenticated\"}]\n"
)

// operatorLists is the end of the list rights of the operator's user.
const operatorLists = `"s3:ListBucketVersions"),`

func editMay(resources string) Guard {
	const has = "[benchmarkruns, benchmarkschedules, benchmarkrevisions]"
	return edit(peopleFile, has, "[benchmarkruns, benchmarkschedules, benchmarkrevisions, "+resources+"]")
}

func executorMay(group, resources, verbs string) Guard {
	const has = "resources: [workflowtaskresults]\n  verbs: [create, patch]\n"
	return edit(executorFile, has, has+"- apiGroups: ["+group+"]\n  resources: ["+resources+"]\n  verbs: ["+verbs+"]\n")
}

// operatorMay grants the operator its rights on ConfigMaps for another resource.
func operatorMay(resource string) Guard {
	return edit(operatorFile, "  - configmaps\n", "  - configmaps\n  - "+resource+"\n")
}

// Guards are the guards of All, by the names of the attacks. make attack-guards removes each, and requires that its attack then succeeds.
var Guards = map[string]Guard{
	"a tenant writes its own verdict":                   editMay("benchmarkruns/status"),
	"a tenant makes a run that has its verdict already": edit(runsFile, "    subresources:\n      status: {}\n", ""),
	"a tenant changes the program of others' runs":      editMay("benchmarktemplates"),
	"the executor of a block writes a verdict":          executorMay("assay.dev", "benchmarkruns/status", "patch"),
	"a tenant changes a run after it was accepted":      edit(runsFile, "self.budget == oldSelf.budget", "self.budget == self.budget"),
	"a program asks the API server without a token":     edit(peopleFile, recordRole, anonymousBinding+recordRole),
	"an effect that Argo's controller evaluates": edit(runsFile, "in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",
		"in ['NoSchedule', 'PreferNoSchedule', 'NoExecute', t.effect])"),
	"a toleration of others' leases": edit(runsFile, "<= 317 && t.key != 'assay.dev/leased')", "<= 317)"),
	"a toleration of everything": edit(runsFile, "rule: self.all(t, has(t.key) && size(t.key) >= 1 && size(t.key)",
		"rule: self.all(t, !has(t.key) || size(t.key) >= 1 && size(t.key)"),
	"a tenant opens a node to runs": {
		Kept: "a role that is bound in a namespace gives nothing of the whole cluster, which is Kubernetes' own rule"},

	"a hijacked operator labels a node":                         nodesAudited,
	"a hijacked operator taints a node for others than a lease": nodesAudited,

	"a tenant makes a pod that says that it is a run's": runsAudited,
	"a tenant takes a run's name off a block's pod":     runsAudited,

	"a tenant runs its own program in a pod of a run": edit(podsFile, "validationActions: [Deny]", "validationActions: [Audit]"),

	"160,000 cells": edit(runsFile, "<= 10000.0", "<= 1000000000.0"),
	// The API server also checks the right to delete the owner of an owner reference, so remove both guards.
	"a ConfigMap in the way of a run's plan": {Edits: []Edit{
		{"operator/internal/apply/own.go", "if controller != nil && controller.UID", "if controller == nil || controller.UID"},
		{operatorFile, "  - configmaps\n  verbs:\n", "  - configmaps\n  verbs:\n  - delete\n"},
	}},
	"a hijacked operator writes where no runs are": {
		Kept: "its rights are bound in the namespaces of runs, one by one: there is nothing to take out that would bind them elsewhere"},
	"a hijacked operator takes rights":       operatorMay("serviceaccounts"),
	"a hijacked operator reads a Secret":     operatorMay("secrets"),
	"the executor of a block reads a Secret": executorMay(`""`, "secrets", "get, list"),
	"a hijacked operator makes a pod":        operatorMay("pods"),
	"a run asks for more than the policy allows": edit("operator/internal/policy/policy.go", "placement.MaxNodes > *limits.MaxNodes {",
		"placement.MaxNodes > *limits.MaxNodes+1000 {"),
	"several runs begin at once where one may": edit("operator/internal/controller/decide.go", "if !r.counted(world) {",
		"if r.counted(world) {"),

	"another namespace's ledger is read":                everybodys,
	"another namespace's ledger is listed":              everybodys,
	"another namespace's ledger is written and deleted": everybodys,
	"a plan is overwritten":                             edit(usersFile, `"attempts/*.json",`, `"*",`),
	"attempts are hidden":                               edit(usersFile, `"attempts/*.json",`, `"attempts/*",`),
	"the end of a lease is kept out":                    edit(usersFile, `fileOfMinIO = "xl.meta"`, `fileOfMinIO = "no.such"`),
	"the store's users and policies are changed": edit(usersFile, `statement{Effect: "Deny", Action: []string{"admin:CreateUser"`,
		`statement{Effect: "Allow", Action: []string{"admin:CreateUser"`),
	"attempts are deleted, and their versions": edit(usersFile, `allow(resource(below(of, written...)...), "s3:PutObject")`,
		`allow(resource(below(of, written...)...), "s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion")`),
	"the bucket is made to forget":       edit(usersFile, operatorLists, `"s3:PutBucketVersioning"),`),
	"the operator's key writes attempts": edit(usersFile, `"runs/assay-write-probe", "history/*"`, `"runs/*", "history/*"`),
	"a reader's key writes a verdict":    edit(usersFile, `if match[1] == runs {`, `if match[1] != "" {`),
	"the store's metrics with another's token": edit(usersFile, operatorLists,
		operatorLists+` allow([]string{"arn:aws:s3:::*"}, "admin:Prometheus"),`),
	"a key is kept beyond its replacement": edit("operator/internal/storeusers/apply.go", "if admin.replaced(ctx, access, secretKey) {",
		`if access == "" {`),

	"metrics without a token":       {Values: "operator.metrics.secure=false"},
	"Argo's server without a token": {Values: "argo.server.authMode=server"},
	"a pod that is not restricted in a namespace that the chart makes": edit("charts/assay/templates/runs/namespaces.yaml",
		"pod-security.kubernetes.io/enforce: restricted", "pod-security.kubernetes.io/enforce: privileged"),
	"a program reaches another tenant's service": {Values: "networkPolicies.enabled=false"},
	"a program fills the disk of its node":       {Values: "operator.resources.limits.ephemeral-storage=null"},
	"a program writes to every location of its pod": built(goPrograms, "operator/internal/executor/argo/block.go",
		"room.arguments()...", "room.arguments()[:0]..."),
	"a program looks for credentials and rights in its pod": built(goPrograms, "operator/internal/executor/argo/pod.go",
		"AllowPrivilegeEscalation: ptr.To(false)", "AllowPrivilegeEscalation: ptr.To(true)"),
	"results are replaced before, during and after the analysis": built(goPrograms, "operator/internal/ledger/accepted.go",
		`want != "" && record.SHA256(raw) == want`, `want != "" && record.SHA256(raw) != ""`),
	"a hostile candidate": built("bin/assay-runner", "runner/runner/src/privacy.rs",
		"DumpableBehavior::NotDumpable)", "DumpableBehavior::Dumpable)"),
	"a candidate that ends its block": built(goPrograms, "operator/internal/keeper/keeper.go",
		"func (k *Keeper) abandonWith(ctx context.Context, why string, kernel *record.Kernel) error {\n\tif k.underway == nil {",
		"func (k *Keeper) abandonWith(ctx context.Context, why string, kernel *record.Kernel) error {\n\tif k.underway != nil {"),
	"expressions in parameters": {
		Kept: "parameters are in a ConfigMap, of which a Workflow has the name: there is nothing to take out that would put them into it"},
}

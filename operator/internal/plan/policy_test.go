package plan

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/policy"
	"assay.dev/assay/operator/internal/record"
)

func TestDecide_PolicyOfTheAdministrator(t *testing.T) {
	node := Node{Name: "node-a", Ready: true,
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi")}}
	spec, template := testRun()
	accepted, err := experiment.Freeze(record.Run{Namespace: "lab", Name: "scan", UID: "u"}, spec, template)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		policy   string
		accepted bool
		underWay int
		stored   *Stored
		earlier  int
		reason   string
		says     []string
	}{
		"an exclusive node": {
			"default: {exclusive: [CPUs]}", false, 0, nil, 0, assayv1alpha1.ReasonNotAllowed, []string{"spec.placement.exclusive is Node", "may have CPUs"},
		},
		"a node without the label of the policy": {
			"nodeLabel: bench=yes", true, 0, nil, 0, assayv1alpha1.ReasonNoNodeMatches, []string{"node-a has no label bench=yes", "administrator"},
		},
		"more concurrent runs than allowed": {
			"default: {maxRuns: 1}", true, 1, nil, 0, assayv1alpha1.ReasonWaitingForTurn, []string{"1 other runs under way", "allows 1 at a time"},
		},
		"ledgers whose size is not computed yet": {
			"default: {maxStored: 10Gi}", true, 0, nil, 0, assayv1alpha1.ReasonLedgerFull, []string{"namespace lab", "is being computed"},
		},
		"ledgers above the limits": {
			"{default: {maxStored: 10Gi}, namespaces: {lab: {maxObjects: 1000}}}", true, 0, &Stored{Bytes: 11 << 30, Objects: 1000}, 0, assayv1alpha1.ReasonLedgerFull,
			[]string{"namespace lab", "11Gi of 10Gi", "1000 of 1000 objects", "remove the ledgers", "runs/lab/NAME/UID/"},
		},
		"ledgers one byte below the limit": {
			"default: {maxStored: 10Gi}", true, 0, &Stored{Bytes: 10<<30 - 1}, 0, assayv1alpha1.ReasonTakingLease, []string{"taking node-a"},
		},
		"more trials than allowed": {
			"default: {maxTrials: 100}", false, 0, nil, 0, assayv1alpha1.ReasonNotAllowed, []string{"spec.budget.trials is 2000", "at most 100"},
		},
		"more waiting runs than allowed": {
			"default: {maxWaiting: 3}", false, 0, nil, 3, assayv1alpha1.ReasonNotAllowed, []string{"3 earlier runs of namespace lab wait", "allows 3"},
		},
		"more waiting runs than allowed, after acceptance": {
			"default: {maxWaiting: 3}", true, 0, nil, 300, assayv1alpha1.ReasonTakingLease, []string{"taking node-a"},
		},
		"as many runs as allowed": {"default: {maxRuns: 2}", true, 1, nil, 0, assayv1alpha1.ReasonTakingLease, []string{"taking node-a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			allowed, err := policy.Parse([]byte(tc.policy))
			if err != nil {
				t.Fatal(err)
			}
			run := &assayv1alpha1.BenchmarkRun{}
			run.Namespace, run.Name, run.UID = "lab", "scan", "u"
			run.Spec.Placement = assayv1alpha1.Placement{CPUs: 1, MaxNodes: 1, Exclusive: assayv1alpha1.ExclusiveNode,
				Memory: resource.MustParse("1Gi")}
			run.Spec.Budget.Trials = 2000
			o := Observed{Run: run, Template: &assayv1alpha1.BenchmarkTemplateSpec{}, Nodes: []Node{node}, UnderWay: tc.underWay, Stored: tc.stored,
				Earlier: tc.earlier}
			if tc.accepted {
				exp := *accepted
				exp.Plan.Placement = experiment.PlacementOf(run.Spec.Placement)
				o.Ledger.Experiment = &exp
			}
			got := Decide(o, Settings{Policy: allowed}, time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC))
			if got.Reason != tc.reason {
				t.Errorf("reason %s (%s), want %s", got.Reason, got.Message, tc.reason)
			}
			for _, text := range tc.says {
				if !strings.Contains(got.Message, text) {
					t.Errorf("message %q does not contain %q", got.Message, text)
				}
			}
		})
	}
}

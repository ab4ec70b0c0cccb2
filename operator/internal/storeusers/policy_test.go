package storeusers_test

import (
	"encoding/json"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/storeusers"
)

// document is a policy as a store reads it.
type document struct{ Statement []statement }

type statement struct {
	Effect           string
	Action, Resource []string
	Condition        map[string]map[string][]string
}

// allows evaluates a policy as S3 does: an action is allowed if a statement names it, and none implies another. MinIO lets clients that may
// list objects list versions too, so tests with a MinIO cannot detect that right missing.
func (d *document) allows(action, resource, prefix string) bool {
	matches := func(patterns []string, text string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			expression := "^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
			return regexp.MustCompile(expression).MatchString(text)
		})
	}
	if slices.ContainsFunc(d.Statement, func(s statement) bool {
		return s.Effect == "Deny" && slices.Contains(s.Action, action) && matches(s.Resource, "arn:aws:s3:::"+resource)
	}) {
		return false
	}
	return slices.ContainsFunc(d.Statement, func(s statement) bool {
		if s.Effect != "Allow" || !slices.Contains(s.Action, action) || !matches(s.Resource, "arn:aws:s3:::"+resource) {
			return false
		}
		prefixes, conditional := s.Condition["StringLike"]["s3:prefix"]
		return !conditional || matches(prefixes, prefix)
	})
}

// documented returns the policy that the documentation has for the keys of a namespace in an external store.
func documented(t *testing.T) []byte {
	t.Helper()
	page, err := os.ReadFile("../../../docs/tasks/use-my-own-store-argo-prometheus.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "### A policy for each namespace")
	_, after, _ = strings.Cut(after, "```json\n")
	policy, _, ok := strings.Cut(after, "```")
	if !ok {
		t.Fatal("the page has no policy")
	}
	return []byte(policy)
}

// Pods that measure write the objects that a run leaves. An object in place of a folder, or a folder in place of an object, would hide or
// block objects of others.
func TestPolicy_RunUserWritesOnlyTheObjectsOfARun(t *testing.T) {
	ours, err := storeusers.Policy("benchmarks", "", "run.team-a")
	if err != nil {
		t.Fatal(err)
	}
	lease := record.Lease{Node: "node-a", Token: 5}
	attempt := ledger.AttemptKey("w000-b0000", "scan-w000-block-1_u", "w000-b0000-s00000")
	for who, raw := range map[string][]byte{"ours": ours, "documented": documented(t)} {
		var policy document
		if err := json.Unmarshal(raw, &policy); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]bool{
			attempt: true, ledger.StartedKey("w000-b0000", "x", "w000-b0000-s00000"): true, ledger.ProblemKey(attempt): true,
			ledger.AnalysisKey(0): true, ledger.ReportKey(0): true, ledger.HTMLKey(0): true, ledger.TableKey(0): true, ledger.ParquetKey(0): true,
			ledger.SealKey(0): true, ledger.OwnTableKey(0, "mine", "md"): true, ledger.OwnTableKey(0, "mine", "csv"): true,
			"leases/attempts/x.json": false, "leases/node-a-1/attempts/x.json": false, "waves/attempts/x.json": false,
			ledger.ExperimentKey: false, ledger.WaveKey(0): false, ledger.LeaseTakenKey(lease): false, ledger.LeaseEndKey(lease): false,
		} {
			if policy.allows("s3:PutObject", path.Join("benchmarks/runs/team-a/scan/uid", key), "") != want {
				t.Errorf("%s: %s may be written: %v, want %v", who, key, !want, want)
			}
			for above := path.Dir(path.Join("scan/uid", key)); above != "."; above = path.Dir(above) {
				if policy.allows("s3:PutObject", path.Join("benchmarks/runs/team-a", above), "") {
					t.Errorf("%s: %s, below which %s is, may be written", who, above, key)
				}
			}
			for _, last := range []string{"attempts/x.json", "analysis/x.html", "started/a/b.json"} {
				if inside := path.Join(key, "xl.meta", last); policy.allows("s3:PutObject", path.Join("benchmarks/runs/team-a/scan/uid", inside), "") {
					t.Errorf("%s: %s may be written", who, inside)
				}
			}
		}
	}
}

// The operator counts versions for the storage quota, and readers of attempts use first versions. Without the right to list versions, both
// would silently treat the store as one without versions.
func TestPolicy_ReadersOfVersionsMayListThem(t *testing.T) {
	const bucket, own, other = "benchmarks", "runs/team-a/scan/uid/", "runs/team-b/scan/uid/"
	of := func(user string) []byte {
		policy, err := storeusers.Policy(bucket, "", user)
		if err != nil {
			t.Fatal(err)
		}
		return policy
	}
	for who, tc := range map[string]struct {
		policy []byte
		// everywhere: it lists all namespaces. reads: it reads versions.
		everywhere, reads bool
	}{
		"the operator, which measures storage":             {of(storeusers.Operator), true, false},
		"the analysis of a namespace":                      {of("run.team-a"), false, true},
		"a reader in a namespace":                          {of("read.team-a"), false, true},
		"a namespace, as documented for an external store": {documented(t), false, true},
	} {
		var policy document
		if err := json.Unmarshal(tc.policy, &policy); err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		for _, action := range []string{"s3:ListBucket", "s3:ListBucketVersions"} {
			if !policy.allows(action, bucket, own) {
				t.Errorf("%s may not %s", who, action)
			}
			if policy.allows(action, bucket, other) != tc.everywhere {
				t.Errorf("%s: %s of another namespace: %v, want %v", who, action, !tc.everywhere, tc.everywhere)
			}
		}
		attempt := path.Join(bucket, own, "attempts/w000-b0000/x_1/w000-b0000-s00000.json")
		for _, action := range []string{"s3:GetObject", "s3:GetObjectVersion"} {
			if want := tc.reads || action == "s3:GetObject"; policy.allows(action, attempt, "") != want {
				t.Errorf("%s: %s of an attempt is allowed: %v, want %v", who, action, !want, want)
			}
		}
	}
}

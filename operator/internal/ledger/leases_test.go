package ledger

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

func TestReadLeases_RoundTrip(t *testing.T) {
	ctx := context.Background()
	s, err := store.Open(ctx, store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if leases, problems, err := ReadLeases(ctx, s); err != nil || leases.Known || len(problems) > 0 {
		t.Fatalf("an empty ledger has %+v, %v, %v", leases, problems, err)
	}
	run := record.Run{Namespace: "lab", Name: "scan", UID: "u"}
	when := time.Date(2026, 11, 21, 8, 0, 0, 123000, time.UTC)
	// Node names contain dashes and dots, and may end in a number.
	leases := []record.Lease{{Node: "node-1", Token: 2}, {Node: "node-1-2", Token: 13}, {Node: "rack.7.end", Token: 1}}
	want := record.Leases{Known: true}
	put := func(key string, raw []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := store.EnsureCreated(ctx, s, key, raw); err != nil {
			t.Fatal(err)
		}
	}
	for _, lease := range leases {
		taken := record.LeaseTaken{Run: run, Lease: lease, AcquiredAt: when}
		end := record.LeaseEnd{Run: run, Lease: lease, EndedAt: when.Add(time.Hour), Reason: "released"}
		for range 2 { // Writing the same record again changes nothing.
			raw, err := record.Line(taken)
			put(LeaseTakenKey(lease), raw, err)
			raw, err = record.Line(end)
			put(LeaseEndKey(lease), raw, err)
		}
		want.Taken, want.Ends = append(want.Taken, taken), append(want.Ends, end)
	}
	got, problems, err := ReadLeases(ctx, s)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	byKey := cmp.Transformer("set", func(all []record.LeaseTaken) map[record.Lease]record.LeaseTaken {
		out := map[record.Lease]record.LeaseTaken{}
		for _, l := range all {
			out[l.Lease] = l
		}
		return out
	})
	if diff := cmp.Diff(want.Taken, got.Taken, byKey); diff != "" || len(got.Ends) != len(want.Ends) || !got.Known {
		t.Errorf("leases (-want +got):\n%s\nends: %+v", diff, got.Ends)
	}
	for node, want := range map[string]int64{"node-1": 2, "node-1-2": 13, "node": 0} {
		if got, err := LastToken(ctx, s, node); err != nil || got != want {
			t.Errorf("last token of %s is %d, %v, want %d", node, got, err, want)
		}
	}
}

// The store's policy allows pods that measure to write runs/NAMESPACE/*/attempts/*, in which a star matches any number of path elements.
func TestReadLeases_KeysBelowAttemptsAreIgnored(t *testing.T) {
	ctx := context.Background()
	store, err := store.Open(ctx, store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	when := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for _, node := range []string{"attempts/node", "a/analysis/node", "started/problems/node"} {
		lease := record.Lease{Node: node, Token: 7}
		for key, value := range map[string]any{
			LeaseTakenKey(lease): record.LeaseTaken{Lease: lease, AcquiredAt: when},
			LeaseEndKey(lease):   record.LeaseEnd{Lease: lease, EndedAt: when, Reason: "released"},
		} {
			raw, err := record.Line(value)
			if err == nil {
				err = store.Create(ctx, key, raw)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if last, err := LastToken(ctx, store, node); err != nil || last != 0 {
			t.Errorf("the last token of %s is %d, %v", node, last, err)
		}
	}
	leases, problems, err := ReadLeases(ctx, store)
	if err != nil || leases.Known || len(leases.Taken)+len(leases.Ends)+len(problems) > 0 {
		t.Errorf("the ledger has %+v, %v, %v", leases, problems, err)
	}
}

// If a pod that measures can write any key, it may write a token without a successor in a Lease object. The node must stay usable.
func TestLastToken_TokenWithoutSuccessorIsIgnored(t *testing.T) {
	ctx := context.Background()
	store, err := store.Open(ctx, store.FolderURL(t.TempDir()), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []int64{1, 41, math.MaxInt32 - 1, math.MaxInt32, math.MaxInt32 + 1, math.MaxInt64} {
		key := LeaseTakenKey(record.Lease{Node: "node", Token: token})
		if err := store.Create(ctx, key, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		last, err := LastToken(ctx, store, "node")
		if want := min(token, math.MaxInt32-1); err != nil || last != want || int64(int32(last+1)) <= last {
			t.Errorf("with token %d the last one is %d, %v, want %d", token, last, err, want)
		}
	}
}

func TestReadLeases_InvalidRecordIsAProblem(t *testing.T) {
	const good = `{"run":{"namespace":"lab","name":"scan","uid":"u"},"node":"a","token":1,"acquiredAt":"2026-11-21T08:00:00Z"}`
	cases := map[string]struct{ key, raw, want string }{
		"cut off":                     {"leases/a-1.json", good[:40], "unexpected end"},
		"another node in the record":  {"leases/b-1.json", good, "it is the lease of node a with token 1"},
		"another token in the record": {"leases/a-2.json", good, "it is the lease of node a with token 1"},
		"an unknown field":            {"leases/a-1.json", strings.Replace(good, `"token"`, `"colour":1,"token"`, 1), "colour"},
		"a missing token":             {"leases/a-0.json", strings.Replace(good, `"token":1`, `"token":0`, 1), "tokens start at 1"},
		"a missing node":              {"leases/a-1.json", strings.Replace(good, `"node":"a"`, `"node":""`, 1), "node is missing"},
		"a missing time":              {"leases/a-1.json", strings.Replace(good, `,"acquiredAt":"2026-11-21T08:00:00Z"`, "", 1), "acquiredAt is missing"},
		"an end without its time":     {"leases/a-1.end.json", `{"run":{"uid":"u"},"node":"a","token":1,"reason":"released"}`, "endedAt is missing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			store, err := store.Open(ctx, store.FolderURL(t.TempDir()), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Create(ctx, tc.key, []byte(tc.raw)); err != nil {
				t.Fatal(err)
			}
			leases, problems, err := ReadLeases(ctx, store)
			if err != nil {
				t.Fatal(err)
			}
			if len(problems) != 1 || problems[0].Key != tc.key || !strings.Contains(problems[0].Reason, tc.want) {
				t.Errorf("problems are %+v, want %q of %s", problems, tc.want, tc.key)
			}
			// A ledger with a damaged record still records leases, so its attempts need them.
			if wasTaken := !strings.HasSuffix(tc.key, ".end.json"); leases.Known != wasTaken || len(leases.Taken)+len(leases.Ends) > 0 {
				t.Errorf("leases are %+v", leases)
			}
		})
	}
}

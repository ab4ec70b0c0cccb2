package ledger

import (
	"errors"
	"testing"

	"assay.dev/assay/operator/internal/store"
)

func TestDerived_LaterVersionIsNotOverwritten(t *testing.T) {
	onEachStore(t, func(t *testing.T, store store.Store) {
		ctx := t.Context()
		if err := store.Replace(ctx, "analysis/000/report.md", []byte("old")); err != nil {
			t.Fatal(err)
		}
		slow, err := ReadDerived(ctx, store, AnalysisPrefix(0))
		if err != nil {
			t.Fatal(err)
		}
		quick, err := ReadDerived(ctx, store, AnalysisPrefix(0))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{ReportKey(0), AnalysisKey(0)} {
			// Twice, as after a lost response.
			for range 2 {
				if err := quick.Replace(ctx, key, []byte("quick")); err != nil {
					t.Errorf("the fast writer, %s: %v", key, err)
				}
			}
			if err := slow.Replace(ctx, key, []byte("slow")); !errors.Is(err, ErrOvertaken) {
				t.Errorf("the slow writer, %s: %v", key, err)
			}
			if got, err := store.Get(ctx, key); err != nil || string(got) != "quick" {
				t.Errorf("%s holds %q (%v)", key, got, err)
			}
			if err := slow.Replace(ctx, key, []byte("quick")); err != nil {
				t.Errorf("unchanged content, %s: %v", key, err)
			}
		}
		if keys, err := store.List(ctx, ""); err != nil || len(keys) != 2 {
			t.Errorf("writing left %q (%v)", keys, err)
		}
	})
}

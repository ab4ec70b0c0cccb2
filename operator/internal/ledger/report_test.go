package ledger

import (
	"context"
	"testing"

	"assay.dev/assay/operator/internal/store"
)

// strewn is a bucket with arbitrary keys.
type strewn struct {
	store.Store
	keys []string
}

func (s strewn) Page(context.Context, string, string) ([]string, bool, error) {
	return s.keys, false, nil
}

func TestNewestReport_HighestWaveNumber(t *testing.T) {
	for name, tc := range map[string]struct {
		keys []string
		want string
	}{
		"no report":                      {nil, ""},
		"the last of several":            {[]string{"analysis/000/report.html", "analysis/001/report.html"}, "analysis/001/report.html"},
		"ordered by number, not by text": {[]string{"analysis/1000/report.html", "analysis/999/report.html"}, "analysis/1000/report.html"},
		"foreign objects are ignored": {
			[]string{"analysis/", "analysis/000/report.html", "analysis/000/report.html/", "analysis/000/tables/report.html",
				"analysis/1/report.html", "analysis/999999999999999999999/report.html", "analysis/x//report.html", "analysis/zzz/report.html"},
			"analysis/000/report.html",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := NewestReport(t.Context(), strewn{keys: tc.keys}); err != nil || got != tc.want {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

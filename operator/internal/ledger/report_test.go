package ledger

import (
	"context"
	"testing"

	"assay.dev/assay/operator/internal/store"
)

// strewn is a bucket with the keys that it is given, whatever they are.
type strewn struct {
	store.Store
	keys []string
}

func (s strewn) Page(context.Context, string, string) ([]string, bool, error) {
	return s.keys, false, nil
}

func TestTheNewestReportIsThatOfTheNewestWave(t *testing.T) {
	for name, tc := range map[string]struct {
		keys []string
		want string
	}{
		"there is none":               {nil, ""},
		"the last of some":            {[]string{"analysis/000/report.html", "analysis/001/report.html"}, "analysis/001/report.html"},
		"by its number, not its text": {[]string{"analysis/1000/report.html", "analysis/999/report.html"}, "analysis/1000/report.html"},
		"what somebody left there is none": {
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

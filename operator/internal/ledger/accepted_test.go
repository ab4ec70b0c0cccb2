package ledger_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

func TestParseWritten_AcceptsOnlyItsOwnForm(t *testing.T) {
	want := ledger.Written{Wave: 12, Analysis: record.SHA256([]byte("a")), Report: record.SHA256([]byte("r"))}
	if got, ok := ledger.ParseWritten(want.Text()); !ok || got != want {
		t.Errorf("read %+v (%v), want %+v", got, ok, want)
	}
	want.Evidence = record.SHA256([]byte("e"))
	if got, ok := ledger.ParseWritten(want.Text()); !ok || got != want {
		t.Errorf("read %+v (%v), want %+v", got, ok, want)
	}
	for _, text := range []string{"", "{", "{}", `{"wave": 1, "analysis": "abc", "report": "abc"}`,
		`{"wave": -1, "analysis": "` + want.Analysis + `", "report": "` + want.Report + `"}`, "analysis needs more than 900 MiB of memory",
		`{"wave": 1, "analysis": "` + want.Analysis + `", "report": "` + want.Report + `", "evidence": "abc"}`} {
		if got, ok := ledger.ParseWritten(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestAccepted_OnlyAcceptedObjectsAreRead(t *testing.T) {
	const genuine, forged, computed = "genuine", "forged", "computed"
	accepted := &ledger.Written{Wave: 1, Analysis: record.SHA256([]byte(genuine)), Report: record.SHA256([]byte(genuine))}
	sealed := &ledger.Written{Wave: 1, Analysis: accepted.Analysis, Report: accepted.Report, Evidence: accepted.Analysis}
	again := func(_ context.Context, _ store.Store, wave int, _ error) (map[string][]byte, error) {
		return map[string][]byte{
			ledger.AnalysisKey(wave): []byte(computed), ledger.HTMLKey(wave): []byte(computed), ledger.ParquetKey(wave): []byte(computed),
			ledger.SealKey(wave): []byte(computed),
		}, nil
	}
	for name, tc := range map[string]struct {
		stored, key string
		accepted    *ledger.Written
		again       ledger.Again
		want        string
		err         error
	}{
		"the accepted analysis":                            {genuine, ledger.AnalysisKey(1), accepted, nil, genuine, nil},
		"the accepted analysis, where one may be computed": {genuine, ledger.AnalysisKey(1), accepted, again, genuine, nil},
		"the accepted report":                              {genuine, ledger.HTMLKey(1), accepted, nil, genuine, nil},
		"a replaced analysis":                              {forged, ledger.AnalysisKey(1), accepted, nil, "", ledger.ErrReplaced},
		"a replaced analysis, computed":                    {forged, ledger.AnalysisKey(1), accepted, again, computed, nil},
		"a replaced report":                                {forged, ledger.HTMLKey(1), accepted, nil, "", ledger.ErrReplaced},
		"a replaced report, computed":                      {forged, ledger.HTMLKey(1), accepted, again, computed, nil},
		"another name of the accepted wave":                {forged, "analysis/1/analysis.json", accepted, nil, "", store.ErrNotFound},
		"a form without a sum":                             {forged, ledger.ParquetKey(1), accepted, again, computed, nil},
		"an analysis of a later wave":                      {forged, ledger.AnalysisKey(2), accepted, again, "", store.ErrNotFound},
		"an analysis of an earlier wave":                   {forged, ledger.AnalysisKey(0), accepted, again, computed, nil},
		"an analysis of an earlier wave, not computed":     {forged, ledger.AnalysisKey(0), accepted, nil, "", store.ErrNotFound},
		"nothing is known of the run":                      {forged, ledger.AnalysisKey(0), nil, again, computed, nil},
		"an object that is no analysis":                    {genuine, ledger.ExperimentKey, accepted, nil, genuine, nil},
		"a list of an earlier release":                     {forged, ledger.SealKey(1), accepted, nil, forged, nil},
		"the accepted list":                                {genuine, ledger.SealKey(1), sealed, nil, genuine, nil},
		"a replaced list":                                  {forged, ledger.SealKey(1), sealed, nil, "", ledger.ErrReplaced},
		"a replaced list, computed":                        {forged, ledger.SealKey(1), sealed, again, computed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Create(t.Context(), tc.key, []byte(tc.stored)); err != nil {
				t.Fatal(err)
			}
			got, err := ledger.Accepted(s, tc.accepted, tc.again).Get(t.Context(), tc.key)
			if string(got) != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %q and %v, want %q and %v", got, err, tc.want, tc.err)
			}
		})
	}
}

// A client with a key of the ledger writes lists of attempts. Those that were not accepted neither hide attempts that came after the
// analysis, nor change the sums of those that it read.
func TestReadSeals_OnlyTheAcceptedListCounts(t *testing.T) {
	const first, late = "attempts/w001-b0000/pod/w001-b0000-s00000.json", "attempts/w001-b0000/pod/w001-b0000-s00001.json"
	line := func(key, text string) string { return record.SHA256([]byte(text)) + "  " + key + "\n" }
	genuine := line(first, "read")
	for name, tc := range map[string]struct {
		lists  map[int]string
		unread int
		want   map[string]string
	}{
		"the accepted list":                {map[int]string{1: genuine}, 1, map[string]string{first: record.SHA256([]byte("read"))}},
		"a list that hides a late attempt": {map[int]string{1: genuine + line(late, "late")}, 2, nil},
		"a list of an earlier wave":        {map[int]string{0: line(first, "forged"), 1: genuine}, 1, map[string]string{first: record.SHA256([]byte("read"))}},
		"a list of a later wave":           {map[int]string{1: genuine, 2: line(late, "forged")}, 1, map[string]string{first: record.SHA256([]byte("read"))}},
		"no list":                          {nil, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), store.FolderURL(t.TempDir()), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			objects := map[string]string{first: "read", late: "late"}
			for wave, list := range tc.lists {
				objects[ledger.SealKey(wave)] = list
			}
			for key, text := range objects {
				if err := s.Create(t.Context(), key, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			accepted := ledger.Accepted(s, &ledger.Written{Wave: 1, Evidence: record.SHA256([]byte(genuine))}, nil)
			if unread, err := ledger.CountUnread(t.Context(), accepted, 1); err != nil || unread != tc.unread {
				t.Errorf("%d attempts came after the analysis (%v), want %d", unread, err, tc.unread)
			}
			sums, problems, err := ledger.ReadSeals(t.Context(), accepted, -1)
			if err != nil || len(problems) > 0 || !maps.Equal(sums, tc.want) {
				t.Errorf("sums %v, problems %v, %v, want %v", sums, problems, err, tc.want)
			}
		})
	}
}

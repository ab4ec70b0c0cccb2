package labelled

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/history/detect"
)

// The claims of docs/history.md.
func TestHana_RegressionsAreDatedAndNothingElse(t *testing.T) {
	all, err := Hana()
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]func(Series) Series{"with errors": func(s Series) Series { return s }, "bare": Series.Bare} {
		t.Run(name, func(t *testing.T) {
			var total Score
			for _, s := range all {
				total.Add(Judge(form(s)))
			}
			if total.Series != 15 || total.Changes != 3 || total.Quiet != 12 {
				t.Fatalf("read %+v", total)
			}
			if total.Found != total.Changes || total.False > 1 || 100*total.Suspicions > total.Builds || total.Seen != total.Changes {
				t.Errorf("%+v", total)
			}
		})
	}
}

func TestRead_RowsOfABuildAreOnePoint(t *testing.T) {
	folder := fstest.MapFS{
		"labels.csv":  {Data: []byte("Type;Dataset;Change Point\nregression;a.csv;3\nStable ;b.csv;0\n")},
		"data/a.csv":  {Data: []byte("Index,GHC,Measurement\n1,7,1\n2,7,1\n3,8,1\n4,8,2\n5,9,2\n")},
		"data/b.csv":  {Data: []byte("Index,GHC,Measurement\n1,7,1\n2,8,4\n3,8,4\n4,7,1\n")},
		"data/ab.csv": {Data: []byte("not read")},
	}
	got, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := []Series{
		{Name: "a", Label: "regression", Change: 1, Builds: []detect.Observation{
			detect.OfValues([]float64{1, 1}), detect.OfValues([]float64{1, 2}), detect.OfValues([]float64{2})}},
		{Name: "b", Label: "Stable", Change: NoChange, Builds: []detect.Observation{
			detect.OfValues([]float64{1}), detect.OfValues([]float64{4, 4}), detect.OfValues([]float64{1})}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for what, edit := range map[string]func(fstest.MapFS){
		"a change without builds after it": func(f fstest.MapFS) {
			f["labels.csv"] = &fstest.MapFile{Data: []byte("Type;Dataset;Change Point\nregression;a.csv;5\n")}
		},
		"a change of a stable series": func(f fstest.MapFS) {
			f["labels.csv"] = &fstest.MapFile{Data: []byte("Type;Dataset;Change Point\nStable;a.csv;3\n")}
		},
		"a value of 0": func(f fstest.MapFS) {
			f["data/a.csv"] = &fstest.MapFile{Data: []byte("Index,GHC,Measurement\n1,7,0\n")}
		},
		"another column": func(f fstest.MapFS) {
			f["data/a.csv"] = &fstest.MapFile{Data: []byte("Index,Build,Measurement\n1,7,1\n")}
		},
		"a missing series": func(f fstest.MapFS) { delete(f, "data/b.csv") },
	} {
		changed := fstest.MapFS{}
		for name, file := range folder {
			changed[name] = file
		}
		edit(changed)
		if _, err := Read(changed); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func TestCompare_DatesWithinOneBuildOfTheChange(t *testing.T) {
	s := Series{Change: 10, Builds: make([]detect.Observation, 20)}
	for name, tc := range map[string]struct {
		dates        []int
		found, extra int
	}{
		"the build before":       {[]int{9}, 1, 0},
		"two builds after":       {[]int{12}, 0, 1},
		"twice":                  {[]int{9, 11}, 1, 1},
		"another date before it": {[]int{3, 10}, 1, 1},
		"none":                   {nil, 0, 0},
	} {
		if got := s.Compare(tc.dates); got.Found != tc.found || got.Extra != tc.extra || got.False != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	quiet := Series{Change: NoChange}
	if got := quiet.Compare([]int{3, 4}); got.False != 2 || got.Quiet != 1 || got.Changes != 0 {
		t.Errorf("%+v", got)
	}
}

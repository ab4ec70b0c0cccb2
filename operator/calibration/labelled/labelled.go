// Package labelled scores change detection on series whose changes experts have labelled.
package labelled

import (
	"embed"
	"encoding/csv"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/history/detect"
	"assay.dev/assay/operator/internal/history/watch"
)

// Series is a history of builds.
type Series struct {
	// Name of the series, and Label that experts gave it.
	Name, Label string
	Builds      []detect.Observation
	// Change is the index of the first build after the change, or NoChange.
	Change int
}

// NoChange is the index of a change that does not exist.
const NoChange = -1

// Bare returns the series without the errors of its points.
func (s Series) Bare() Series {
	s.Builds = slices.Clone(s.Builds)
	for i := range s.Builds {
		s.Builds[i].SE, s.Builds[i].DF = 0, 0
	}
	return s
}

// Score counts the results of series.
type Score struct {
	Series, Builds int
	// Changes is the number of labelled changes, and Found the number dated to within one build. Extra counts the other dates of series with
	// a change.
	Changes, Found, Extra int
	// Quiet is the number of series without a change, and False the number of dates in these.
	Quiet, False int
	// Suspicions is the number of online suspicions, and Seen the number of changes with one at or after the change.
	Suspicions, Seen int
}

// Add adds the counts of other series.
func (s *Score) Add(o Score) {
	s.Series, s.Builds = s.Series+o.Series, s.Builds+o.Builds
	s.Changes, s.Found, s.Extra = s.Changes+o.Changes, s.Found+o.Found, s.Extra+o.Extra
	s.Quiet, s.False = s.Quiet+o.Quiet, s.False+o.False
	s.Suspicions, s.Seen = s.Suspicions+o.Suspicions, s.Seen+o.Seen
}

// off is the largest error of a date, in builds.
const off = 1

// Judge dates the changes of a series with the policy of schedules, and replays it build by build for suspicions.
func Judge(s Series) Score {
	policy := watch.Default()
	var dates []int
	for _, d := range policy.Offline.Changes(s.Builds) {
		dates = append(dates, d.At)
	}
	out := s.Compare(dates)
	seen := false
	from := 0
	for n := 1; n <= len(s.Builds); n++ {
		found := policy.Unpaired(s.Builds[:n], from)
		if !found.Raised {
			continue
		}
		out.Suspicions++
		seen = seen || s.Change != NoChange && max(found.First-s.Change, s.Change-found.First) <= suspected
		from = found.First + detect.Transient
	}
	if seen {
		out.Seen++
	}
	return out
}

// suspected is the largest error of the date of a suspicion, in builds.
const suspected = 3

// Compare scores dates of a series, each the index of the first build after a change.
func (s Series) Compare(dates []int) Score {
	out := Score{Series: 1, Builds: len(s.Builds)}
	if s.Change == NoChange {
		out.Quiet, out.False = 1, len(dates)
		return out
	}
	out.Changes, out.Extra = 1, len(dates)
	if slices.ContainsFunc(dates, func(at int) bool { return max(at-s.Change, s.Change-at) <= off }) {
		out.Found, out.Extra = 1, len(dates)-1
	}
	return out
}

//go:embed third_party/hana-small-2021/labels.csv third_party/hana-small-2021/data/*.csv
var shipped embed.FS

// Hana returns the labelled series of a real database that are in the tree (SAP, performance-regression-data-set, CC-BY-4.0).
func Hana() ([]Series, error) {
	folder, err := fs.Sub(shipped, "third_party/hana-small-2021")
	if err != nil {
		return nil, err
	}
	return Read(folder)
}

// regression is the label of series with a change.
const regression = "regression"

// Read reads labels.csv and the series of the folder data.
func Read(folder fs.FS) ([]Series, error) {
	rows, err := table(folder, "labels.csv", ';', "Type", "Dataset", "Change Point")
	if err != nil {
		return nil, err
	}
	var out []Series
	for _, row := range rows {
		last, err := strconv.Atoi(row[2])
		if err != nil {
			return nil, fmt.Errorf("labels.csv: %s: Change Point: found %q; an integer is required", row[1], row[2])
		}
		one, err := read(folder, row[1], last)
		if err != nil {
			return nil, err
		}
		one.Label = strings.TrimSpace(row[0])
		if (one.Label == regression) != (one.Change != NoChange) {
			return nil, fmt.Errorf("labels.csv: %s: found type %q with Change Point %d; only a regression has one", row[1], row[0], last)
		}
		out = append(out, one)
	}
	return out, nil
}

// read reads a series whose last row before the change has the given index; 0 for none.
func read(folder fs.FS, name string, last int) (Series, error) {
	out := Series{Name: strings.TrimSuffix(name, ".csv"), Change: NoChange}
	file := path.Join("data", name)
	rows, err := table(folder, file, ',', "Index", "GHC", "Measurement")
	if err != nil {
		return out, err
	}
	var values []float64
	flush := func() {
		if len(values) > 0 {
			out.Builds, values = append(out.Builds, detect.OfValues(values)), nil
		}
	}
	for i, row := range rows {
		index, err := strconv.Atoi(row[0])
		if err != nil {
			return out, fmt.Errorf("%s: Index: found %q; an integer is required", file, row[0])
		}
		value, err := strconv.ParseFloat(row[2], 64)
		if err != nil || !(value > 0) || math.IsInf(value, 1) {
			return out, fmt.Errorf("%s: Index %d: Measurement: found %q; a number above 0 is required", file, index, row[2])
		}
		if i > 0 && row[1] != rows[i-1][1] {
			flush()
		}
		if last > 0 && index > last && out.Change == NoChange {
			// Where the change lies inside the rows of one build, that build is the first one after it.
			out.Change = len(out.Builds)
		}
		values = append(values, value)
	}
	flush()
	if last > 0 && (out.Change <= 0 || out.Change >= len(out.Builds)) {
		return out, fmt.Errorf("%s: Change Point %d has no builds on both sides", file, last)
	}
	return out, nil
}

// table reads a table with the given columns.
func table(folder fs.FS, name string, separator rune, columns ...string) ([][]string, error) {
	file, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	const most = 16 << 20
	reader := csv.NewReader(io.LimitReader(file, most))
	reader.Comma = separator
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(rows) < 2 || !slices.Equal(rows[0], columns) {
		return nil, fmt.Errorf("%s: found columns %q; %q and at least one row are required", name, rows[:min(1, len(rows))], columns)
	}
	return rows[1:], nil
}

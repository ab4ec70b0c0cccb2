// Package imported reads series of values that other tools have stored. Each format has one function, and all of them limit their input.
package imported

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/history/detect"
	"assay.dev/assay/operator/internal/history/points"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/suggest"
)

// Limits of a file.
const (
	MostBytes   = 64 << 20
	mostValues  = 100_000
	longestName = 256
)

// Value is one measured value of a revision.
type Value struct {
	// Series is the name of the benchmark or metric, and Revision that of the build.
	Series, Revision string
	// At is the time of the measurement or the commit; zero if the format has none.
	At    time.Time
	Value float64
}

// Columns are the names of the columns of a table in CSV.
type Columns struct{ Series, Revision, Value, At string }

// formats are the readers by name.
var formats = map[string]func(raw []byte, columns Columns) ([]Value, error){
	"csv":                     readCSV,
	"json":                    func(raw []byte, _ Columns) ([]Value, error) { return readJSON(raw) },
	"otava":                   func(raw []byte, _ Columns) ([]Value, error) { return readOtava(raw) },
	"github-action-benchmark": func(raw []byte, _ Columns) ([]Value, error) { return readAction(raw) },
	"asv":                     func(raw []byte, _ Columns) ([]Value, error) { return readASV(raw) },
}

// Formats returns the names of the formats.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// Read reads the values of a file, in its order.
func Read(format string, raw []byte, columns Columns) ([]Value, error) {
	read, ok := formats[format]
	if !ok {
		return nil, fmt.Errorf("invalid format %q: %s", format, suggest.Allowed(format, Formats()))
	}
	if len(raw) > MostBytes {
		return nil, fmt.Errorf("the file has %d bytes; at most %d are allowed", len(raw), MostBytes)
	}
	out, err := read(raw, columns)
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", format, err)
	}
	if len(out) == 0 || len(out) > mostValues {
		return nil, fmt.Errorf("format %s: found %d values; 1 to %d are allowed", format, len(out), mostValues)
	}
	for i, v := range out {
		for _, name := range []struct{ field, value string }{{"series", v.Series}, {"revision", v.Revision}} {
			if err := checkName(name.value); err != nil {
				return nil, fmt.Errorf("format %s: value %d: %s: %w", format, i+1, name.field, err)
			}
		}
		if !(v.Value > 0) || math.IsInf(v.Value, 1) {
			return nil, fmt.Errorf("format %s: value %d, of %q at revision %q: found %g; a finite number above 0 is required, because series "+
				"hold ratios", format, i+1, v.Series, v.Revision, v.Value)
		}
	}
	return out, nil
}

// checkName refuses names that pages and terminals cannot show as they are.
func checkName(name string) error {
	hidden := func(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) }
	switch {
	case name == "":
		return errors.New("found an empty name; a name is required")
	case len(name) > longestName:
		return fmt.Errorf("found %d bytes; at most %d are allowed", len(name), longestName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, hidden):
		return fmt.Errorf("found %q; only printable characters are allowed", name)
	}
	return nil
}

func readCSV(raw []byte, columns Columns) ([]Value, error) {
	rows, header, err := table(raw)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for i, name := range header {
		at[name] = i
	}
	column := func(asked, usual string) (int, error) {
		i, ok := at[cmp.Or(asked, usual)]
		if !ok && asked == "" && usual != "revision" && usual != "value" {
			return -1, nil
		}
		if !ok {
			return -1, fmt.Errorf("column %q is missing; found %q; name another column with --column %s=NAME", cmp.Or(asked, usual), header, usual)
		}
		return i, nil
	}
	revision, err1 := column(columns.Revision, "revision")
	value, err2 := column(columns.Value, "value")
	name, err3 := column(columns.Series, "series")
	when, err4 := column(columns.At, "at")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	var out []Value
	for i, row := range rows {
		one := Value{Series: header[value], Revision: row[revision]}
		if name >= 0 {
			one.Series = row[name]
		}
		if one.Value, err = strconv.ParseFloat(row[value], 64); err != nil {
			return nil, fmt.Errorf("row %d: %s: found %q; a number is required", i+2, header[value], row[value])
		}
		if when >= 0 && row[when] != "" {
			if one.At, err = timeOf(row[when]); err != nil {
				return nil, fmt.Errorf("row %d: %s: %w", i+2, header[when], err)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// table reads a table with a header.
func table(raw []byte) (rows [][]string, header []string, err error) {
	all, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil {
		return nil, nil, err
	}
	if len(all) < 2 {
		return nil, nil, fmt.Errorf("found %d lines; a header and at least one row are required", len(all))
	}
	return all[1:], all[0], nil
}

// timeOf reads RFC 3339, a date, or seconds since 1970.
func timeOf(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05", "2006-01-02T15:04:05", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && seconds >= 0 && seconds < 1e11 {
		return time.Unix(seconds, 0).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("found %q; use RFC 3339, such as 2026-03-01T04:00:00Z, or seconds since 1970", text)
}

func readJSON(raw []byte) ([]Value, error) {
	var rows []struct {
		Series   string    `json:"series"`
		Revision string    `json:"revision"`
		At       time.Time `json:"at"`
		Value    *float64  `json:"value"`
		Values   []float64 `json:"values"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rows); err != nil {
		return nil, err
	}
	var out []Value
	for i, row := range rows {
		values := row.Values
		if row.Value != nil {
			values = append(values, *row.Value)
		}
		if len(values) == 0 {
			return nil, fmt.Errorf("element %d: value and values are empty; one is required", i)
		}
		for _, value := range values {
			out = append(out, Value{Series: row.Series, Revision: row.Revision, At: row.At.UTC(), Value: value})
		}
	}
	return out, nil
}

// attributes are the columns of Otava's CSV that are not metrics.
var attributes = []string{"time", "timestamp", "commit", "branch", "version", "config", "test", "build"}

// readOtava reads the CSV of Otava: a column of times, attributes of the revision, and one column per metric.
func readOtava(raw []byte) ([]Value, error) {
	rows, header, err := table(raw)
	if err != nil {
		return nil, err
	}
	index := func(names ...string) int {
		return slices.IndexFunc(header, func(column string) bool { return slices.Contains(names, strings.ToLower(column)) })
	}
	when, revision := index("time", "timestamp"), index("commit", "version", "build")
	if when < 0 {
		return nil, fmt.Errorf("column time is missing; found %q", header)
	}
	var out []Value
	for c, metric := range header {
		if slices.Contains(attributes, strings.ToLower(metric)) {
			continue
		}
		for i, row := range rows {
			if row[c] == "" {
				continue // A missing value.
			}
			one := Value{Series: metric, Revision: row[when]}
			if revision >= 0 {
				one.Revision = row[revision]
			}
			if one.At, err = timeOf(row[when]); err != nil {
				return nil, fmt.Errorf("row %d: %s: %w", i+2, header[when], err)
			}
			if one.Value, err = strconv.ParseFloat(row[c], 64); err != nil {
				return nil, fmt.Errorf("row %d: %s: found %q; a number is required", i+2, metric, row[c])
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// readAction reads the data.js of github-action-benchmark, with or without its assignment.
func readAction(raw []byte) ([]Value, error) {
	if _, after, ok := bytes.Cut(raw, []byte("=")); ok && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("window.")) {
		raw = bytes.TrimRight(bytes.TrimSpace(after), ";")
	}
	var data struct {
		Entries map[string][]struct {
			Commit struct {
				ID string `json:"id"`
			} `json:"commit"`
			Date    int64 `json:"date"`
			Benches []struct {
				Name  string  `json:"name"`
				Value float64 `json:"value"`
			} `json:"benches"`
		} `json:"entries"`
	}
	if err := json.Unmarshal(raw, &data); err != nil {
		return nil, err
	}
	var out []Value
	for _, suite := range slices.Sorted(maps.Keys(data.Entries)) {
		for _, entry := range data.Entries[suite] {
			for _, bench := range entry.Benches {
				out = append(out, Value{
					Series: suite + " " + bench.Name, Revision: entry.Commit.ID, At: time.UnixMilli(entry.Date).UTC(), Value: bench.Value,
				})
			}
		}
	}
	return out, nil
}

// readASV reads a result of asv (version 2): the values of one commit in one environment. Combinations of parameters are series.
func readASV(raw []byte) ([]Value, error) {
	var data struct {
		Commit  string                       `json:"commit_hash"`
		Date    int64                        `json:"date"`
		Columns []string                     `json:"result_columns"`
		Results map[string][]json.RawMessage `json:"results"`
	}
	if err := json.Unmarshal(raw, &data); err != nil {
		return nil, err
	}
	result, parameters := slices.Index(data.Columns, "result"), slices.Index(data.Columns, "params")
	if data.Commit == "" || result < 0 {
		return nil, errors.New("commit_hash or result_columns is missing; a result file of asv version 2 is required")
	}
	var out []Value
	for _, name := range slices.Sorted(maps.Keys(data.Results)) {
		row := data.Results[name]
		if result >= len(row) {
			continue
		}
		var values []*float64
		if err := json.Unmarshal(row[result], &values); err != nil {
			return nil, fmt.Errorf("results.%s: %w", name, err)
		}
		var axes [][]string
		if parameters >= 0 && parameters < len(row) {
			if err := json.Unmarshal(row[parameters], &axes); err != nil {
				return nil, fmt.Errorf("results.%s: params: %w", name, err)
			}
		}
		for i, value := range values {
			if value == nil {
				continue // The benchmark failed or was skipped.
			}
			out = append(out, Value{Series: name + combination(axes, i), Revision: data.Commit, At: time.UnixMilli(data.Date).UTC(), Value: *value})
		}
	}
	return out, nil
}

// combination returns the parameters with an index, of which the last axis varies fastest.
func combination(axes [][]string, index int) string {
	var parts []string
	for _, axis := range slices.Backward(axes) {
		if len(axis) == 0 {
			return ""
		}
		parts = append([]string{axis[index%len(axis)]}, parts...)
		index /= len(axis)
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// Schedule is the schedule of imported records. A series of a schedule that measures has another one, so that the two are never mixed.
const Schedule = "import"

// Records converts values to records of a project. Neighbouring values of one revision are one point with an error. Where all values have a
// time it orders the points, otherwise the order of the values does. Importing the same values again adds nothing.
func Records(project string, values []Value, now time.Time) []points.Keyed {
	bySeries, names := map[string][]Value{}, []string(nil)
	for _, v := range values {
		if bySeries[v.Series] == nil {
			names = append(names, v.Series)
		}
		bySeries[v.Series] = append(bySeries[v.Series], v)
	}
	var out []points.Keyed
	for _, name := range names {
		all := bySeries[name]
		if !slices.ContainsFunc(all, func(v Value) bool { return v.At.IsZero() }) {
			slices.SortStableFunc(all, func(a, b Value) int { return a.At.Compare(b.At) })
		}
		key := series.Key{Project: project, Benchmark: name, Metric: "value", Statistic: "unpaired"}
		for from, number := 0, int64(1); from < len(all); number++ {
			to := from + 1
			for to < len(all) && all[to].Revision == all[from].Revision {
				to++
			}
			raw := make([]float64, 0, to-from)
			for _, v := range all[from:to] {
				raw = append(raw, v.Value)
			}
			point := detect.OfValues(raw)
			at := all[from].At
			if at.Year() < 1970 {
				at = now
			}
			digest := sha256.Sum256([]byte(strconv.Quote(name) + all[from].Revision + "," + strconv.FormatInt(number, 10)))
			out = append(out, points.Keyed{Key: key, Record: series.Record{
				Kind: series.Unpaired, ID: "import-" + hex.EncodeToString(digest[:8]), Analysis: 1, Schedule: Schedule, Sequence: number,
				At: at, Head: all[from].Revision, Machine: "unknown", Workload: "imported",
				Ratio: series.Estimate{LogRatio: point.Y, SE: point.SE, DF: point.DF, Blocks: to - from},
			}})
			from = to
		}
	}
	return out
}

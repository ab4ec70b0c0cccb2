package reference

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
)

// counters are the counters and numeric facts that the trials of a run reported, from the archive of its ledger. A row is an arm with its
// parameters; a cell has the median of its measured attempts, and the least and the greatest as its interval. A counter with the name of a
// parameter is the column "counter NAME".
func (l *Library) counters(folder string) (*Table, error) {
	archive, err := filepath.Abs(filepath.Join(l.root, folder, "ledger.tar.zst"))
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	opened, err := store.Open(ctx, store.FolderURL(archive), store.Options{})
	if err != nil {
		return nil, err
	}
	attempts, _, err := ledger.ReadAttempts(ctx, opened, -1)
	if err != nil {
		return nil, err
	}
	return countersOf(attempts)
}

func countersOf(attempts []record.Attempt) (*Table, error) {
	type key struct{ point, arm string }
	measured := map[key][]*record.Attempt{}
	parameters := map[string]bool{}
	// Attempts that noise limits leave out are counted: counters are of work, not of time.
	for i := range attempts {
		a := &attempts[i]
		if a.Result == nil || a.Warmup || a.Outcome != record.Succeeded {
			continue
		}
		measured[key{a.Point, a.Arm}] = append(measured[key{a.Point, a.Arm}], a)
		for name := range a.Parameters {
			parameters[name] = true
		}
	}
	if len(measured) == 0 {
		return nil, fmt.Errorf("no attempt of the ledger has a result")
	}
	columns := map[string]bool{"arm": true}
	out := &Table{}
	for at, of := range measured {
		row, values := map[string]Cell{"arm": {Text: at.arm}}, map[string][]float64{}
		for name, value := range of[0].Parameters {
			row[name] = Cell{Text: value}
		}
		for _, a := range of {
			for name, value := range numbersOf(a.Result) {
				if parameters[name] {
					name = "counter " + name
				}
				values[name] = append(values[name], value)
			}
		}
		for name, all := range values {
			slices.Sort(all)
			median := (all[(len(all)-1)/2] + all[len(all)/2]) / 2
			row[name] = Cell{Text: strconv.FormatFloat(median, 'g', -1, 64), Value: median, Numeric: true,
				Low: all[0], High: all[len(all)-1], HasInterval: true}
		}
		for name := range row {
			columns[name] = true
		}
		out.rows = append(out.rows, row)
	}
	out.columns = slices.Sorted(maps.Keys(columns))
	// The order of a map is random, that of references is not.
	slices.SortFunc(out.rows, func(a, b map[string]Cell) int {
		for _, name := range out.columns {
			if order := cmp.Compare(a[name].Text, b[name].Text); order != 0 {
				return order
			}
		}
		return 0
	})
	return out, nil
}

// numbersOf are the counters of a result and its numeric facts.
func numbersOf(result *record.Result) map[string]float64 {
	out := map[string]float64{}
	for name, fact := range result.Effective {
		if value, ok := fact.(float64); ok {
			out[name] = value
		}
	}
	for name, counter := range result.Counters {
		out[name] = counter.Value
	}
	return out
}

// isCounters cuts the name of a run before /counters.
func isCounters(name string) (string, bool) { return strings.CutSuffix(name, "/counters") }

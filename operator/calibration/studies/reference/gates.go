package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// HasSetting checks that a run of a study has a value of a parameter or an axis.
func (l *Library) HasSetting(page Page, run, key, value string) error {
	from, err := l.source(page, run)
	if err != nil {
		return err
	}
	cell, ok := from.table.rows[0][key]
	if !ok || !slices.Contains(strings.Fields(cell.Text), value) {
		return fmt.Errorf("%s has %s=%q, and the condition is %s: correct the run or the condition", run, key, cell.Text, value)
	}
	return nil
}

// HasGate checks that a run has a gate, and that the gate does not ask about other points than a condition.
func (l *Library) HasGate(page Page, run, name string, where map[string]string) error {
	raw, err := os.ReadFile(filepath.Join(l.root, filepath.Dir(page.Path), run))
	if err != nil {
		return err
	}
	var read struct {
		Spec struct{ Gates []gate }
	}
	if err := yaml.Unmarshal(raw, &read); err != nil {
		return fmt.Errorf("%s: %w", run, err)
	}
	var names []string
	for _, g := range read.Spec.Gates {
		names = append(names, g.Name)
		if g.Name != name {
			continue
		}
		for axis, value := range g.At {
			if wanted, ok := where[axis]; ok && wanted != value {
				return fmt.Errorf("gate %s of %s asks at %s=%s, and the condition is %s", name, run, axis, value, wanted)
			}
		}
		return nil
	}
	return fmt.Errorf("%s has no gate %q: it has %s", run, name, strings.Join(names, ", "))
}

// Outcomes returns the outcomes of a gate in the newest result of a run, of one candidate or of all, at the points that a condition names.
func (l *Library) Outcomes(page Page, run, gate, arm string, where map[string]string) ([]string, error) {
	from, err := l.source(page, run+"/gates")
	if err != nil {
		return nil, err
	}
	conditions := []string{"gate=" + gate}
	if arm != "" {
		conditions = append(conditions, "candidate="+arm)
	}
	table := &Table{columns: from.table.columns}
	for _, row := range from.table.rows {
		meets := true
		for pair := range strings.SplitSeq(row["point"].Text, ",") {
			axis, value, _ := strings.Cut(pair, "=")
			wanted, ok := where[axis]
			meets = meets && (!ok || wanted == value)
		}
		if meets {
			table.rows = append(table.rows, row)
		}
	}
	cells, err := table.cells("outcome", conditions)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, cell := range cells {
		out = append(out, cell.Text)
	}
	return out, nil
}

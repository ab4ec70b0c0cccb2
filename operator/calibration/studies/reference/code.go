package reference

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// constant is the declaration of a constant of Rust whose value is a literal, a shifted literal, a range of literals or a duration.
var constant = regexp.MustCompile(`(?m)^\s*(?:pub(?:\([^)]*\))? )?const ([A-Z][A-Z0-9_]*): [^=]+= ` +
	`((?:Duration::from_(?:secs|millis|micros|nanos)\()?-?\d[\d_.]*(?:e-?\d+)?\)?(?:(?: << |\.\.=?)\d[\d_]*)?);`)

// constants are those of the crate of a workload, and of the workloads' harness. Their columns are the names, which may follow the path of
// their module or its end, as in keys::toy::BYTES and toy::BYTES. A name without a path is a column only if it has one value in the crate.
func (l *Library) constants(crate string) (*Table, error) {
	values := map[string]string{}
	for _, folder := range []string{filepath.Join("workloads", "harness", "src"), filepath.Join(crate, "src")} {
		found, err := l.constantsOf(folder)
		if err != nil {
			return nil, err
		}
		maps.Copy(values, found)
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("no constant with a literal value below %s/src", crate)
	}
	return singleRow(values), nil
}

// constantsOf are the constants of the files below a folder.
func (l *Library) constantsOf(folder string) (map[string]string, error) {
	values, several := map[string]string{}, map[string]bool{}
	root := filepath.Join(l.root, folder)
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".rs" {
			return err
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		module, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		path := strings.Split(strings.TrimSuffix(strings.TrimSuffix(filepath.ToSlash(module), ".rs"), "/mod"), "/")
		for _, match := range constant.FindAllStringSubmatch(string(source), -1) {
			value := literal(strings.ReplaceAll(match[2], "_", ""))
			for from := range len(path) + 1 {
				name := strings.Join(append(slices.Clone(path[from:]), match[1]), "::")
				known, ok := values[name]
				several[name] = several[name] || ok && known != value
				values[name] = value
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	maps.DeleteFunc(values, func(name, _ string) bool { return several[name] })
	return values, err
}

// literal writes a value as its source has it, and the number that a shift makes.
func literal(value string) string {
	base, by, ok := strings.Cut(value, " << ")
	if !ok {
		return value
	}
	a, errBase := strconv.ParseUint(base, 10, 32)
	b, errBy := strconv.ParseUint(by, 10, 5)
	if errBase != nil || errBy != nil {
		return value
	}
	return fmt.Sprintf("%s %d", value, a<<b)
}

// flags are the parameters of the template that a page lists, each with its default, limits and choices.
func (l *Library) flags(page Page) (*Table, string, error) {
	match := parametersPlace.FindStringSubmatch(page.Text)
	if match == nil {
		return nil, "", fmt.Errorf("%s has no <!-- parameters TEMPLATE -->", page.Path)
	}
	file := filepath.Join("charts", "assay", "files", "benchmarktemplates", match[1]+".yaml")
	table, err := l.cached(file, func() (*Table, error) {
		raw, err := os.ReadFile(filepath.Join(l.root, file))
		if err != nil {
			return nil, err
		}
		var template struct {
			Spec struct {
				Parameters []struct {
					Name, Default, Minimum, Maximum string
					Enum                            []string
				}
			}
		}
		if err := yaml.Unmarshal(raw, &template); err != nil {
			return nil, err
		}
		values := map[string]string{}
		for _, p := range template.Spec.Parameters {
			values[kebab(p.Name)] = strings.Join(append([]string{p.Default, p.Minimum, p.Maximum}, p.Enum...), " ")
		}
		return singleRow(values), nil
	})
	return table, file, err
}

func singleRow(values map[string]string) *Table {
	out, row := &Table{}, map[string]Cell{}
	for name, value := range values {
		out.columns = append(out.columns, name)
		row[name] = Cell{Text: value}
	}
	slices.SortFunc(out.columns, cmp.Compare)
	out.rows = []map[string]Cell{row}
	return out
}

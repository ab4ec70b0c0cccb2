package reference

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"
)

// ErrNoResult is the error of a reference to a run without a published result.
var ErrNoResult = errors.New("no results")

// Library finds the tables of studies below the root of a checkout.
type Library struct {
	root   string
	tables map[string]*Table
	// tests is the source of the workloads; nil until it is needed.
	tests *string
}

// NewLibrary returns the library of a checkout.
func NewLibrary(root string) *Library { return &Library{root: root, tables: map[string]*Table{}} }

// Page is a page with references: its path below the root, and its text.
type Page struct{ Path, Text string }

// Pages returns the pages whose numbers are references: those of the studies and of their workloads.
func (l *Library) Pages() ([]Page, error) {
	var out []Page
	for _, pattern := range []string{"workflows/studies/*/README.md", "workloads/*/*/README.md"} {
		paths, err := filepath.Glob(filepath.Join(l.root, pattern))
		if err != nil || len(paths) == 0 {
			return nil, fmt.Errorf("no page matches %s in %s (%w)", pattern, l.root, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			relative, err := filepath.Rel(l.root, path)
			if err != nil {
				return nil, err
			}
			out = append(out, Page{Path: relative, Text: string(text)})
		}
	}
	return out, nil
}

// source is the table that the part of a label before its colon names, and the file that it is in, below the root.
type source struct {
	table *Table
	file  string
}

// source finds the table of a label for a page.
func (l *Library) source(page Page, name string) (source, error) {
	study := filepath.Dir(page.Path)
	if first, rest, ok := strings.Cut(name, "/"); ok {
		if folder := filepath.Join("workflows", "studies", first); l.exists(folder) {
			study, name = folder, rest
		}
	}
	switch {
	case name == "figures":
		return source{figuresOf(page.Text), page.Path}, nil
	case name == "claims":
		file := filepath.Join(study, "document", "claims.yaml")
		table, err := l.cached(file, func() (*Table, error) { return l.quotes(file) })
		return source{table, file}, err
	case name == "code":
		crate := filepath.Dir(page.Path)
		table, err := l.cached(crate+"/src", func() (*Table, error) { return l.constants(crate) })
		return source{table, filepath.Join(crate, "src")}, err
	case name == "flags":
		table, file, err := l.flags(page)
		return source{table, file}, err
	case strings.HasSuffix(name, ".yaml"):
		file := filepath.Join(study, name)
		table, err := l.cached(file, func() (*Table, error) { return l.settings(file) })
		return source{table, file}, err
	}
	folder := filepath.Join(study, "results", "local", name)
	if rest, ok := strings.CutPrefix(name, "cluster/"); ok {
		folder = filepath.Join(study, "results", "cluster", rest)
	}
	if run, ok := isCounters(folder); ok && l.exists(filepath.Join(run, "ledger.tar.zst")) {
		table, err := l.cached(folder, func() (*Table, error) { return l.counters(run) })
		return source{table, filepath.Join(run, "report.md")}, err
	}
	if l.exists(folder) {
		return l.ownTable(folder)
	}
	folder, table := filepath.Dir(folder), filepath.Base(folder)
	if !l.exists(filepath.Join(folder, "report.md")) {
		return source{}, fmt.Errorf("%w of %q: name a folder of %s, a .yaml of the study, claims, figures, code or flags", ErrNoResult, name,
			filepath.Join(study, "results"))
	}
	if file := filepath.Join(folder, table+".csv"); l.exists(file) {
		found, err := l.csv(file)
		return source{found, file}, err
	}
	file := filepath.Join(folder, "report.md")
	found, err := l.cached(file+"#"+table, func() (*Table, error) {
		raw, err := os.ReadFile(filepath.Join(l.root, file))
		if err != nil {
			return nil, err
		}
		found, ok := readMarkdown(string(raw))[strings.ReplaceAll(table, "-", " ")]
		if !ok {
			return nil, fmt.Errorf("neither %s.csv nor a table below a heading %q", table, table)
		}
		return found, nil
	})
	return source{found, file}, err
}

func (l *Library) exists(path string) bool {
	_, err := os.Stat(filepath.Join(l.root, path))
	return err == nil
}

func (l *Library) cached(key string, read func() (*Table, error)) (*Table, error) {
	if table, ok := l.tables[key]; ok {
		return table, nil
	}
	table, err := read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	l.tables[key] = table
	return table, nil
}

func (l *Library) csv(file string) (*Table, error) {
	return l.cached(file, func() (*Table, error) {
		raw, err := os.ReadFile(filepath.Join(l.root, file))
		if err != nil {
			return nil, err
		}
		return readCSV(raw)
	})
}

// ownTable is the only table of a run, or its facts if it has several.
func (l *Library) ownTable(folder string) (source, error) {
	file := filepath.Join(folder, "report.md")
	facts, err := l.cached(folder, func() (*Table, error) { return l.facts(folder) })
	if err != nil {
		return source{}, err
	}
	tables, err := filepath.Glob(filepath.Join(l.root, folder, "*.csv"))
	if err != nil || len(tables) != 1 {
		return source{facts, file}, err
	}
	file = filepath.Join(folder, filepath.Base(tables[0]))
	own, err := l.csv(file)
	if err != nil {
		return source{}, err
	}
	out := &Table{columns: slices.Concat(own.columns, facts.columns), rows: slices.Concat(own.rows, facts.rows)}
	return source{out, file}, nil
}

var (
	title = regexp.MustCompile(`(?m)^# .*: (\w+)$`)
	model = regexp.MustCompile("(?m)^\\* cpuModel: `\"([^\"]*)\"`$")
)

// facts are the verdict, the machine and the date of a run. The date is absent without a ledger.
func (l *Library) facts(folder string) (*Table, error) {
	raw, err := os.ReadFile(filepath.Join(l.root, folder, "report.md"))
	if err != nil {
		return nil, err
	}
	out, row := &Table{columns: []string{"verdict", "machine", "date"}}, map[string]Cell{}
	if found := title.FindSubmatch(raw); found != nil {
		row["verdict"] = Cell{Text: string(found[1])}
	}
	if found := model.FindSubmatch(raw); found != nil {
		row["machine"] = Cell{Text: regexp.MustCompile(`\((R|TM)\)| Processor$`).ReplaceAllString(string(found[1]), "")}
	}
	if archive := filepath.Join(l.root, folder, "ledger.tar.zst"); l.exists(filepath.Join(folder, "ledger.tar.zst")) {
		day, err := firstDay(archive)
		if err != nil {
			return nil, err
		}
		row["date"] = Cell{Text: day}
	}
	out.rows = append(out.rows, row)
	return out, nil
}

// firstDay returns the day of the first attempt of an archive, in UTC.
func firstDay(archive string) (string, error) {
	absolute, err := filepath.Abs(archive)
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	opened, err := store.Open(ctx, store.FolderURL(absolute), store.Options{})
	if err != nil {
		return "", err
	}
	attempts, _, err := ledger.ReadAttempts(ctx, opened, -1)
	if err != nil {
		return "", err
	}
	day := ""
	for _, attempt := range attempts {
		if at := attempt.StartedAt.UTC().Format("2006-01-02"); day == "" || at < day {
			day = at
		}
	}
	return day, nil
}

// quotes are the places of a document, by their ids: the numbers of each are those of the row "says".
func (l *Library) quotes(file string) (*Table, error) {
	raw, err := os.ReadFile(filepath.Join(l.root, file))
	if err != nil {
		return nil, err
	}
	type quote struct{ ID, At, Says string }
	var document struct{ Claims, Figures []quote }
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	quoted := map[string]string{}
	for _, q := range slices.Concat(document.Claims, document.Figures) {
		quoted[q.ID] = q.Says + " " + q.At
	}
	return singleRow(quoted), nil
}

// settings are the values of the fields of a run, by the fields' names, and the bounds of its gates by the gates' names.
func (l *Library) settings(file string) (*Table, error) {
	raw, err := os.ReadFile(filepath.Join(l.root, file))
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := yaml.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	values := map[string][]string{}
	collect(object, values)
	joined := map[string]string{}
	for name, found := range values {
		joined[name] = strings.Join(found, " ")
	}
	return singleRow(joined), nil
}

func collect(value any, into map[string][]string) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			collect(element, into)
		}
	case map[string]any:
		if name, ok := value["name"].(string); ok {
			for _, field := range []string{"values", "bound", "value", "default"} {
				into[name] = append(into[name], scalars(value[field])...)
			}
		}
		for field, inner := range value {
			into[field] = append(into[field], scalars(inner)...)
			collect(inner, into)
		}
	}
}

// scalars are the values of a field that is no object.
func scalars(value any) []string {
	switch value := value.(type) {
	case nil, map[string]any:
		return nil
	case []any:
		var out []string
		for _, element := range value {
			out = append(out, scalars(element)...)
		}
		return out
	case float64:
		return []string{fmt.Sprint(value)}
	default:
		return []string{fmt.Sprint(value)}
	}
}

var figuresTable = regexp.MustCompile(`(?s)<!-- figures \S+ -->\n(.*?)<!-- /figures`)

// figuresOf are all tables of figures of a page.
func figuresOf(page string) *Table {
	out := &Table{columns: []string{"figure"}}
	for _, found := range figuresTable.FindAllStringSubmatch(page, -1) {
		for _, table := range readMarkdown("# figures\n" + found[1]) {
			out.columns = table.columns
			out.rows = append(out.rows, table.rows...)
		}
	}
	return out
}

package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	architecture = "docs/architecture.md"
	module       = "assay.dev/assay/operator/"
)

// layers is how many the operator has.
const layers = 6

// pure is the highest layer that only computes.
const pure = 3

// outside lists the imports that reach a cluster, a store, a network or another process: a package, or with a slash at its end
// all packages below.
var outside = []string{
	"net", "net/http", "os/exec", "k8s.io/client-go/", "k8s.io/cli-runtime/", "sigs.k8s.io/controller-runtime/pkg/client",
	"sigs.k8s.io/controller-runtime/pkg/manager", "github.com/minio/", "github.com/google/go-github/",
}

// goPackage is the part of the output of `go list` that is used here.
type goPackage struct {
	ImportPath       string
	Imports, GoFiles []string
}

func (p goPackage) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// layering is the table of packages: the layer of each.
func layering(page string) (map[string]int, []string) {
	out, problems := map[string]int{}, []string(nil)
	for _, row := range table(page, "The packages of operator/") {
		layer, err := strconv.Atoi(strings.Fields(row[0])[0])
		name := strings.Trim(row[1], "`")
		switch _, twice := out[name]; {
		case err != nil || layer < 1 || layer > layers:
			problems = append(problems, fmt.Sprintf("%s has layer %q: write 1 to %d and the layer's name", name, row[0], layers))
		case twice:
			problems = append(problems, fmt.Sprintf("%s has two rows: remove one", name))
		case strings.TrimSpace(row[2]) == "":
			problems = append(problems, fmt.Sprintf("%s has no sentence: state its purpose", name))
		}
		out[name] = layer
	}
	return out, problems
}

// checkLayers compares the table with the packages that there are.
func checkLayers(page string, packages []goPackage) []string {
	layer, problems := layering(page)
	there := map[string]bool{}
	for _, p := range packages {
		there[p.name()] = true
		if layer[p.name()] == 0 {
			problems = append(problems,
				fmt.Sprintf("%s has no row in %s: add one, in a layer not below any that it imports", p.name(), architecture))
			continue
		}
		for _, imported := range p.Imports {
			other := strings.TrimPrefix(imported, module)
			if other != imported && layer[other] > layer[p.name()] {
				problems = append(problems, fmt.Sprintf("%s (layer %d) imports %s (layer %d): an import goes down or stays in its layer; "+
					"move the shared code below, or give one of the two another layer in %s",
					p.name(), layer[p.name()], other, layer[other], architecture))
			}
			if layer[p.name()] <= pure && reachesOut(imported) {
				problems = append(problems, fmt.Sprintf("%s (layer %d) imports %s: layers 1 to %d only compute; pass the input as an argument",
					p.name(), layer[p.name()], imported, pure))
			}
		}
	}
	for name := range layer {
		if !there[name] {
			problems = append(problems, fmt.Sprintf("%s has a row in %s and is no package of operator/: remove the row", name, architecture))
		}
	}
	slices.Sort(problems)
	return problems
}

func reachesOut(imported string) bool {
	return slices.ContainsFunc(outside, func(o string) bool {
		return imported == o || strings.HasSuffix(o, "/") && strings.HasPrefix(imported, o)
	})
}

func TestLayers_EveryPackageHasOneAndImportsGoDown(t *testing.T) {
	for _, problem := range checkLayers(readArchitecture(t), listPackages(t)) {
		t.Error(problem)
	}
}

func TestLayers_InvalidTablesAreRejected(t *testing.T) {
	page := func(rows ...string) string {
		head := "## The packages of operator/\n\n| layer | package | purpose |\n|---|---|---|\n"
		return head + strings.Join(rows, "\n") + "\n\n## More\n"
	}
	low, high := "| 1 words | `internal/low` | words |", "| 4 world | `internal/high` | the world |"
	there := func(lowImports ...string) []goPackage {
		return []goPackage{
			{ImportPath: module + "internal/low", Imports: lowImports},
			{ImportPath: module + "internal/high", Imports: []string{module + "internal/low"}},
		}
	}
	cases := map[string]struct {
		page     string
		packages []goPackage
		want     string
	}{
		"an import that goes down is fine":                    {page(low, high), there(), ""},
		"an import that goes up names both packages":          {page(low, high), there(module + "internal/high"), "internal/low (layer 1) imports internal/high (layer 4)"},
		"a package without a row is named":                    {page(high), there(), "internal/low has no row"},
		"a row without a package is named":                    {page(low, high, "| 2 rules | `internal/gone` | gone |"), there(), "internal/gone has a row"},
		"a package has one row":                               {page(low, low, high), there(), "internal/low has two rows"},
		"a layer is one of six":                               {page(low, "| 7 sky | `internal/high` | x |"), there(), `internal/high has layer "7 sky"`},
		"every package has a sentence":                        {page(low, "| 4 world | `internal/high` | |"), there(), "internal/high has no sentence"},
		"a layer that computes does not open connections":     {page(low, high), there("net/http"), "internal/low (layer 1) imports net/http"},
		"a layer that computes may read an address":           {page(low, high), there("net/netip", "net/url"), ""},
		"a layer that computes has no client of a cluster":    {page(low, high), there("k8s.io/client-go/rest"), "internal/low (layer 1) imports k8s.io/client-go/rest"},
		"a layer that computes has no client of object store": {page(low, high), there("github.com/minio/minio-go/v7"), "internal/low (layer 1) imports github.com/minio"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { expect(t, checkLayers(tc.page, tc.packages), tc.want) })
	}
}

// storeyed is the package whose packages stand on each other.
const storeyed = "internal/analysis"

// checkStoreys compares the table of storeys with the packages that there are: each of them has a row, and imports only those of lower
// storeys.
func checkStoreys(page string, packages []goPackage) []string {
	storey, problems := map[string]int{}, []string(nil)
	for _, row := range table(page, "The storeys of an analysis") {
		name := strings.Trim(row[1], "`")
		number, err := strconv.Atoi(strings.Fields(row[0])[0])
		if _, twice := storey[name]; err != nil || number < 1 || twice {
			problems = append(problems, fmt.Sprintf("%s has storey %q: give it one row that begins with a number from 1", name, row[0]))
		}
		storey[name] = number
	}
	there := map[string]bool{}
	for _, p := range packages {
		if name := p.name(); name == storeyed || strings.HasPrefix(name, storeyed+"/") {
			there[name] = true
			if storey[name] == 0 {
				problems = append(problems, fmt.Sprintf("%s has no row among the storeys of %s: add one, above its imports", name, architecture))
			}
		}
	}
	for _, p := range packages {
		for _, imported := range p.Imports {
			other := strings.TrimPrefix(imported, module)
			if there[p.name()] && there[other] && storey[other] >= storey[p.name()] {
				problems = append(problems, fmt.Sprintf("%s (storey %d) imports %s (storey %d): an import goes down; move the shared code below",
					p.name(), storey[p.name()], other, storey[other]))
			}
		}
	}
	for name := range storey {
		if !there[name] {
			problems = append(problems, fmt.Sprintf("%s has a row among the storeys of %s and is no package: remove the row", name, architecture))
		}
	}
	slices.Sort(problems)
	return problems
}

func TestStoreys_ImportsGoDown(t *testing.T) {
	for _, problem := range checkStoreys(readArchitecture(t), listPackages(t)) {
		t.Error(problem)
	}
}

func TestStoreys_InvalidTablesAreRejected(t *testing.T) {
	page := func(rows ...string) string {
		head := "## The storeys of an analysis\n\n| storey | package | content |\n|---|---|---|\n"
		return head + strings.Join(rows, "\n") + "\n\n## More\n"
	}
	low, high := "| 1 | `internal/analysis` | words |", "| 2 | `internal/analysis/judge` | verdicts |"
	there := func(lowImports ...string) []goPackage {
		return []goPackage{
			{ImportPath: module + "internal/analysis", Imports: append(lowImports, module+"internal/record")},
			{ImportPath: module + "internal/analysis/judge", Imports: []string{module + "internal/analysis"}},
			{ImportPath: module + "internal/report", Imports: []string{module + "internal/analysis/judge"}},
		}
	}
	cases := map[string]struct {
		page     string
		packages []goPackage
		want     string
	}{
		"an import that goes down is fine":         {page(low, high), there(), ""},
		"an import that goes up names both":        {page(low, high), there(module + "internal/analysis/judge"), "internal/analysis (storey 1) imports internal/analysis/judge (storey 2)"},
		"two packages of a storey stand beside it": {page(low, strings.Replace(high, "2", "1", 1)), there(), "internal/analysis/judge (storey 1) imports internal/analysis (storey 1)"},
		"a package without a row is named":         {page(), there()[1:2], "internal/analysis/judge has no row"},
		"a row without a package is named":         {page(low, high, "| 3 | `internal/analysis/gone` | gone |"), there(), "internal/analysis/gone has a row"},
		"a package has one row":                    {page(low, high, high), there(), `internal/analysis/judge has storey "2"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { expect(t, checkStoreys(tc.page, tc.packages), tc.want) })
	}
}

// checkFolders compares the table of folders with those that git has: every folder at the top has a row, or each of those in it.
func checkFolders(page string, files []string) []string {
	var problems []string
	rows, there := map[string]bool{}, map[string]bool{}
	for _, row := range table(page, "The other folders") {
		name := strings.Trim(row[0], "`")
		if rows[name] {
			problems = append(problems, name+" has two rows: remove one")
		}
		rows[name] = true
	}
	for _, file := range files {
		parts := strings.Split(path.Dir(file), "/")
		if parts[0] == "." || strings.HasPrefix(parts[0], ".") {
			continue
		}
		top := parts[0]
		there[top] = true
		if len(parts) > 1 {
			there[path.Join(top, parts[1])] = true
		}
		if rows[top] || len(parts) == 1 {
			continue
		}
		if folder := path.Join(top, parts[1]); !rows[folder] {
			problems = append(problems, fmt.Sprintf("%s has no row in %s: state its purpose there", folder, architecture))
			rows[folder] = true
		}
	}
	for name := range rows {
		if !there[name] {
			problems = append(problems, fmt.Sprintf("%s has a row in %s and is no folder: remove the row", name, architecture))
		}
	}
	slices.Sort(problems)
	return problems
}

func TestFolders_HaveRows(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkFolders(readArchitecture(t), strings.Fields(string(out))) {
		t.Error(problem)
	}
}

func TestFolders_InvalidTablesAreRejected(t *testing.T) {
	page := func(rows ...string) string {
		return "## The other folders\n\n| folder | purpose |\n|---|---|\n" + strings.Join(rows, "\n") + "\n\n## More\n"
	}
	files := []string{"README.md", ".ci/run", "hack/a.sh", "workloads/README.md", "workloads/runner/src/main.rs"}
	cases := map[string]struct{ page, want string }{
		"a row for the folder or for each in it is enough": {page("| `hack` | x |", "| `workloads/runner` | x |"), ""},
		"a folder without a row is named":                  {page("| `hack` | x |"), "workloads/runner has no row"},
		"a row without a folder is named":                  {page("| `hack` | x |", "| `workloads` | x |", "| `gone` | x |"), "gone has a row"},
		"a folder has one row":                             {page("| `hack` | x |", "| `hack` | y |", "| `workloads` | x |"), "hack has two rows"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { expect(t, checkFolders(tc.page, files), tc.want) })
	}
}

// checkHops reports the hops of a way that the code does not have. source gives the text of a declaration of a file, or why not.
func checkHops(page, way string, source func(file, name string) (string, error)) []string {
	var problems []string
	rows := table(page, way)
	if len(rows) == 0 {
		return []string{fmt.Sprintf("%s has no table for %s: write one", architecture, way)}
	}
	for i, row := range rows {
		form, where := strings.Trim(row[1], "`"), strings.Trim(row[2], "`")
		update := fmt.Sprintf("the way of %s has changed: read where it goes now and write hop %d (%s) of %s anew, or remove it",
			way, i+1, row[0], architecture)
		file, name, ok := strings.Cut(where, ":")
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: %q is not file:name; %s", way, where, update))
			continue
		}
		text, err := source(file, name)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v; %s", way, err, update))
			continue
		}
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(form) + `\b`).MatchString(text) {
			problems = append(problems, fmt.Sprintf("%s: %s does not name %s; %s", way, where, form, update))
		}
	}
	return problems
}

func TestFieldPath_FieldsFollowTheDrawing(t *testing.T) {
	page := readArchitecture(t)
	for _, way := range []string{"spec.gates[].bound", "spec.design.blocks.min"} {
		t.Run(way, func(t *testing.T) {
			for _, problem := range checkHops(page, way, declaration) {
				t.Error(problem)
			}
		})
	}
}

func TestFieldPath_InvalidHopsAreRejected(t *testing.T) {
	page := func(where string) string {
		return "### a.b\n\n| hop | form | where | effect |\n|---|---|---|---|\n| parsed | `Bound` | `" + where + "` | x |\n"
	}
	source := func(file, name string) (string, error) {
		if file != "f.go" || name != "T.parse" {
			return "", fmt.Errorf("%s has no %s", file, name)
		}
		return "func (t T) parse() { use(t.Bound) }", nil
	}
	cases := map[string]struct{ page, want string }{
		"a function that names the field is a hop":      {page("f.go:T.parse"), ""},
		"a function that is gone says which hop it was": {page("f.go:T.gone"), "f.go has no T.gone; the way of a.b has changed: read where it goes now and write hop 1 (parsed)"},
		"a function that does not name it is no hop":    {strings.Replace(page("f.go:T.parse"), "Bound", "Bou", 1), "does not name Bou"},
		"a hop names a file and a function":             {page("parse"), "is not file:name"},
		"a way has hops":                                {"### a.b\n\nSoon.\n", "has no table for a.b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { expect(t, checkHops(tc.page, "a.b", source), tc.want) })
	}
}

// declaration is the text of a function, a method or a type of a Go file below the root.
func declaration(file, name string) (string, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, filepath.Join(root, file), nil, 0)
	if err != nil {
		return "", err
	}
	for _, decl := range parsed.Decls {
		if declares(decl, name) {
			var text bytes.Buffer
			err := format.Node(&text, files, decl)
			return text.String(), err
		}
	}
	return "", fmt.Errorf("%s has no %s", file, name)
}

func declares(decl ast.Decl, name string) bool {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			return decl.Name.Name == name
		}
		receiver := decl.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		of, ok := receiver.(*ast.Ident)
		return ok && of.Name+"."+decl.Name.Name == name
	case *ast.GenDecl:
		return slices.ContainsFunc(decl.Specs, func(spec ast.Spec) bool {
			of, ok := spec.(*ast.TypeSpec)
			return ok && of.Name.Name == name
		})
	}
	return false
}

// table is the body of the first table below a heading, cell by cell.
func table(page, heading string) [][]string {
	var rows [][]string
	inside := false
	for line := range strings.SplitSeq(page, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			if inside {
				return body(rows)
			}
			inside = strings.TrimSpace(strings.TrimLeft(line, "#")) == heading
		case inside && strings.HasPrefix(line, "|"):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return body(rows)
}

// body leaves out the head of a table and the line below it.
func body(rows [][]string) [][]string { return rows[min(2, len(rows)):] }

func readArchitecture(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, architecture))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.Command("go", "list", "-json=ImportPath,Imports,GoFiles", "./...")
	list.Dir, list.Stderr = filepath.Join(root, "operator"), os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p goPackage
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}

// expect compares the problems with a part of the only one that is wanted; "" wants none.
func expect(t *testing.T, problems []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(problems) > 0:
		t.Errorf("found %q, want no problem", problems)
	case want != "" && (len(problems) != 1 || !strings.Contains(problems[0], want)):
		t.Errorf("found %q, want one problem with %q", problems, want)
	}
}

package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readsOn maps the functions that read without a limit to the index of the reader among their arguments.
var readsOn = map[string]int{
	"io.ReadAll": 0, "ioutil.ReadAll": 0, "json.NewDecoder": 0, "xml.NewDecoder": 0, "yaml.NewDecoder": 0, "io.Copy": 1, "bufio.NewReader": 0,
}

// checkBounds finds unbounded reads in a file of Go: those by io.ReadAll, and of the body of any response.
func checkBounds(name, text string) ([]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var problems []string
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		function := called(call)
		at, reads := readsOn[function]
		if !reads || at >= len(call.Args) {
			return true
		}
		argument := call.Args[at]
		if from, isCall := argument.(*ast.CallExpr); isCall && (called(from) == "io.LimitReader" || called(from) == "bytes.NewReader") {
			return true
		}
		selected, isField := argument.(*ast.SelectorExpr)
		// Standard input comes from the user of the command.
		typed := isField && fmt.Sprint(selected.X, ".", selected.Sel) == "os.Stdin"
		if body := isField && selected.Sel.Name == "Body"; body || strings.HasSuffix(function, ".ReadAll") && !typed {
			problems = append(problems, fmt.Sprintf("%s: %s reads without a limit: read from io.LimitReader, and report "+
				"larger inputs", set.Position(call.Pos()), function))
		}
		return true
	})
	return problems, nil
}

// called is package and name of the function that is called; empty of any other.
func called(call *ast.CallExpr) string {
	selected, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	of, ok := selected.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return of.Name + "." + selected.Sel.Name
}

// A shared process must limit the memory used by input of others.
func TestBounds_ReadsAreLimited(t *testing.T) {
	read := 0
	for _, folder := range []string{"operator/internal", "operator/cmd"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			problems, err := checkBounds(path, string(text))
			for _, problem := range problems {
				t.Error(problem)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 100 {
		t.Errorf("%d files were looked at", read)
	}
}

func TestBounds_UnlimitedReadsAreFound(t *testing.T) {
	for name, tc := range map[string]struct{ code, want string }{
		"an object to its end":               {"io.ReadAll(object)", "io.ReadAll reads without a limit"},
		"an answer to its end":               {"io.ReadAll(answer.Body)", "io.ReadAll reads without a limit"},
		"an answer that is decoded":          {"json.NewDecoder(answer.Body)", "json.NewDecoder reads without a limit"},
		"an answer that is copied":           {"io.Copy(out, answer.Body)", "io.Copy reads without a limit"},
		"as much of an answer as is allowed": {"json.NewDecoder(io.LimitReader(answer.Body, 9))", ""},
		"as much of an object as is allowed": {"io.ReadAll(io.LimitReader(object, 9))", ""},
		"parsed documents in memory":         {"json.NewDecoder(bytes.NewReader(raw))", ""},
		"command lines":                      {"io.ReadAll(os.Stdin)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := checkBounds("x.go", "package x\n\nfunc f() { "+tc.code+" }\n")
			if err != nil {
				t.Fatal(err)
			}
			expect(t, problems, tc.want)
		})
	}
}

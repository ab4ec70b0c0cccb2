package plan_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Conditions are for users. If a decision read them, a clearer reason or message would change the behaviour.
func TestConditions_AreReadByNoDecision(t *testing.T) {
	for _, folder := range []string{"apply", "controller", "design", "lease", "observe", "plan", "policy"} {
		files := 0
		err := filepath.WalkDir(filepath.Join("..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			positions := token.NewFileSet()
			file, err := parser.ParseFile(positions, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				selector, ok := node.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				of, ok := selector.X.(*ast.Ident)
				if ok && of.Name == "assayv1alpha1" && strings.HasPrefix(selector.Sel.Name, "Condition") {
					t.Errorf("%s reads %s: conditions are for users; add a field to the status for decisions",
						positions.Position(selector.Pos()), selector.Sel.Name)
				}
				return true
			})
			return nil
		})
		if err != nil || files == 0 {
			t.Errorf("%s: %d files read (%v)", folder, files, err)
		}
	}
}

// Package bench turns two command lines, or more, into a BenchmarkRun, and its analysis into a sentence (pure).
package bench

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Words splits a command line like a POSIX shell. Syntax that needs a shell is an error, because trials run without a shell, whose start
// would be included in the measurement.
func Words(line string) ([]string, error) {
	words, err := words(line)
	if err != nil {
		return nil, fmt.Errorf("command %q: %w", line, err)
	}
	return words, nil
}

func words(line string) ([]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil, fmt.Errorf("%w; quote each argument", err)
	}
	switch len(file.Stmts) {
	case 0:
		return nil, errors.New("it is empty: name a program and its arguments")
	case 1:
	default:
		return nil, needsShell("several commands in a row")
	}
	statement := file.Stmts[0]
	call, ok := statement.Cmd.(*syntax.CallExpr)
	switch {
	case len(statement.Redirs) > 0:
		return nil, needsShell("a redirection")
	case statement.Background:
		return nil, needsShell("a command in the background")
	case statement.Negated:
		return nil, needsShell("a negated exit code")
	case !ok:
		return nil, needsShell("a pipe, a list or a group of commands")
	case len(call.Assigns) > 0:
		return nil, fmt.Errorf("%w; or write env NAME=VALUE PROGRAM", needsShell("an assignment"))
	}
	out := make([]string, 0, len(call.Args))
	for _, word := range call.Args {
		if what := special(word.Parts); what != "" {
			return nil, needsShell(what)
		}
		out = append(out, text(word.Parts, escapes))
	}
	return out, nil
}

func needsShell(what string) error {
	return fmt.Errorf("%s needs a shell: give --shell, and /bin/sh runs every command; or quote it, if it is meant literally", what)
}

// special returns the syntax in a word that a shell would expand.
func special(parts []syntax.WordPart) string {
	for i, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if i == 0 && strings.HasPrefix(part.Value, "~") {
				return "a home folder (~)"
			}
			if pattern.MatchString(part.Value) {
				return "a pattern of file names (*, ? or [)"
			}
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, inside := range part.Parts {
				if _, ok := inside.(*syntax.Lit); !ok {
					return "a variable or a substitution ($ or `)"
				}
			}
		default:
			return "a variable or a substitution ($ or `)"
		}
	}
	return ""
}

// pattern matches unquoted text with a character of a file name pattern that no backslash escapes.
var pattern = regexp.MustCompile(`(?s)^([^\\]|\\.)*?[*?[]`)

// Outside of quotes a backslash escapes every character, and inside double quotes only some.
var (
	escapes       = regexp.MustCompile(`(?s)\\(.?)`)
	quotedEscapes = regexp.MustCompile("\\\\([$`\"\\\\]|$)")
)

// text returns a word without quotes and escapes.
func text(parts []syntax.WordPart, escape *regexp.Regexp) string {
	var out strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.SglQuoted:
			out.WriteString(part.Value)
		case *syntax.DblQuoted:
			out.WriteString(text(part.Parts, quotedEscapes))
		case *syntax.Lit:
			out.WriteString(escape.ReplaceAllString(part.Value, "$1"))
		}
	}
	return out.String()
}

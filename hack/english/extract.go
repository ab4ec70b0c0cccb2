package main

import (
	"bytes"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// text is a piece of prose and the line of its file on which it begins.
type text struct {
	line int
	body string
}

// storedTitle matches a title in the run of a study. It can only change together with the stored results, which repeat it.
var storedTitle = regexp.MustCompile(`^[-{ ]*title: `)

// extract returns the prose of a file: comments and string literals of Go and Rust, comments of scripts, the text of Markdown outside
// fenced blocks, and whole files of YAML, templates and plain text, where descriptions are values.
func extract(name string, content []byte) []text {
	switch path.Ext(name) {
	case ".go":
		return extractGo(content)
	case ".rs":
		return extractRust(string(content))
	case ".md":
		return extractMarkdown(string(content))
	case ".sh", ".toml", ".mk", ".py":
		return extractLines(string(content), hashComment)
	case ".yaml", ".yml", ".tpl", ".txt":
		return extractLines(string(content), func(line string) string {
			if strings.HasPrefix(name, "workflows/studies/") && storedTitle.MatchString(line) {
				return ""
			}
			return line
		})
	}
	return nil
}

func extractGo(content []byte) []text {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(content))
	var lexer scanner.Scanner
	lexer.Init(file, content, func(token.Position, string) {}, scanner.ScanComments)
	var out []text
	for {
		position, kind, literal := lexer.Scan()
		switch kind {
		case token.EOF:
			return out
		case token.COMMENT:
			out = append(out, split(file.Line(position), literal)...)
		case token.STRING:
			if value, err := strconv.Unquote(literal); err == nil {
				out = append(out, split(file.Line(position), value)...)
			}
		default:
		}
	}
}

// extractRust reads comments, string literals and raw string literals. A quote in a character literal opens no string.
func extractRust(content string) []text {
	var out []text
	line := 1
	take := func(length int, prose bool) {
		if prose {
			out = append(out, split(line, content[:length])...)
		}
		line += strings.Count(content[:length], "\n")
		content = content[length:]
	}
	for content != "" {
		switch {
		case strings.HasPrefix(content, "//"):
			take(indexOr(content, "\n"), true)
		case strings.HasPrefix(content, "/*"):
			take(indexOr(content[2:], "*/")+2, true)
		case strings.HasPrefix(content, `r"`) || strings.HasPrefix(content, `r#`):
			hashes := len(content[1:]) - len(strings.TrimLeft(content[1:], "#"))
			if !strings.HasPrefix(content[1+hashes:], `"`) {
				take(1+hashes, false) // A raw identifier.
				continue
			}
			open := 2 + hashes
			take(open+indexOr(content[open:], `"`+strings.Repeat("#", hashes)), true)
			take(min(1+hashes, len(content)), false)
		case content[0] == '"':
			take(rustStringEnd(content), true)
		case strings.HasPrefix(content, `'\`):
			take(min(3, len(content)), false)
		case len(content) > 2 && content[0] == '\'' && content[2] == '\'':
			take(3, false)
		default:
			take(1, false)
		}
	}
	return out
}

func rustStringEnd(content string) int {
	for i := 1; i < len(content); i++ {
		switch content[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(content)
}

func indexOr(content, end string) int {
	if i := strings.Index(content, end); i >= 0 {
		return i
	}
	return len(content)
}

// extractMarkdown leaves out fenced blocks, and tables that are copied from stored results.
func extractMarkdown(content string) []text {
	fenced, copied := false, false
	return extractLines(content, func(line string) string {
		copied = strings.HasPrefix(line, "<!-- table ") || copied && !strings.HasPrefix(line, "<!-- /table")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			return ""
		}
		if fenced || copied {
			return ""
		}
		return line
	})
}

// hashComment returns the comment of a line of a script, or "".
func hashComment(line string) string {
	if before, comment, found := strings.Cut(line, "#"); found && (before == "" || strings.HasSuffix(before, " ")) {
		return comment
	}
	return ""
}

func extractLines(content string, prose func(string) string) []text {
	var out []text
	for i, line := range strings.Split(content, "\n") {
		if body := prose(line); isProse(body) {
			out = append(out, text{i + 1, body})
		}
	}
	return out
}

func split(line int, body string) []text {
	var out []text
	for i, part := range strings.Split(body, "\n") {
		if isProse(part) {
			out = append(out, text{line + i, part})
		}
	}
	return out
}

// isProse reports whether a line holds at least two words: identifiers, paths and keys are not prose.
func isProse(line string) bool {
	return len(bytes.Fields([]byte(strings.Trim(line, "/*#<>!- \t")))) >= 2
}

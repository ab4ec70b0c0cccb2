package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/suggest"
)

// addOutput gives a command --output: its own form for people, and then those for programs.
func addOutput(command *cobra.Command, form *string, forms ...string) {
	*form = forms[0]
	command.Flags().VarP(choice{form, forms}, "output", "o", "one of "+list(forms))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// choice is the value of --output where it is one of some words.
type choice struct {
	chosen *string
	of     []string
}

func (c choice) String() string {
	if c.chosen == nil {
		return "" // pflag asks the zero value for its text.
	}
	return *c.chosen
}

func (c choice) Type() string { return "string" }

func (c choice) Set(text string) error {
	if !slices.Contains(c.of, text) {
		return &exitCode{exitUsage, fmt.Errorf("invalid --output %q: %s", text, suggest.Allowed(text, c.of))}
	}
	*c.chosen = text
	return nil
}

// list is "a, b or c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// atPoint follows the name of what was measured at a point; it is empty for the only one.
func atPoint(point string) string {
	if point == "" {
		return ""
	}
	return " at " + point
}

// printStructured prints a value for programs; done is false when the form is one for people.
func printStructured(out io.Writer, form string, value any) (done bool, err error) {
	switch form {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return true, encoder.Encode(value)
	case "yaml":
		raw, err := yaml.Marshal(value)
		if err != nil {
			return true, err
		}
		_, err = out.Write(raw)
		return true, err
	default:
		return false, nil
	}
}

// printAnswer prints a value for programs, or where the form is one for people what says the same in words.
func printAnswer(out io.Writer, form string, value any, words string, args ...any) error {
	if done, err := printStructured(out, form, value); done {
		return err
	}
	_, err := fmt.Fprintf(out, words, args...)
	return err
}

// widestCell is how many characters a cell of a table shows: each row of a table is as wide as its widest cells.
const widestCell = 256

// line writes one, whatever others wrote into what it is made of, and however much where it is one of a table.
func line(out io.Writer, format string, args ...any) {
	_, table := out.(*tabwriter.Writer)
	for i, arg := range args {
		switch arg.(type) {
		case int, int64, float64:
			continue
		}
		text := report.Printable(fmt.Sprint(arg))
		if runes := []rune(text); table && len(runes) > widestCell {
			text = string(runes[:widestCell-1]) + "…"
		}
		args[i] = text
	}
	fmt.Fprintf(out, format, args...)
}

// destination is the form of an answer, and the file it goes to; without one it is printed.
type destination struct{ form, file string }

// extensions are the forms of files.
var extensions = map[string]string{
	".html": "html", ".htm": "html", ".md": "md", ".csv": "csv", ".json": "json", ".jsonl": "attempts", ".ndjson": "attempts",
	".parquet": "parquet", ".txt": "table", ".bench": "benchstat", ".xml": "junit", ".svg": "badge",
	".zst": "archive",
}

// binaries are the forms that are no text, with a name for a file.
var binaries = map[string]string{"parquet": "attempts.parquet", "archive": "run" + store.ArchiveExtension}

// whereTo reads --output, which is a form that is printed or a file whose name has the form, and --format, which sets it
// where the name does not. The first of the forms known is the command's own.
func whereTo(output, format string, known ...string) (destination, error) {
	refuse := func(text string, args ...any) (destination, error) {
		return destination{}, &exitCode{exitUsage, fmt.Errorf(text, args...)}
	}
	if format != "" && !slices.Contains(known, format) {
		return refuse("invalid --format %q: %s", format, suggest.Allowed(format, known))
	}
	switch {
	case output == "" || output == "-":
		return destination{form: cmp.Or(format, known[0])}, nil
	case slices.Contains(known, output):
		if format != "" && format != output {
			return refuse("--output %s and --format %s contradict each other: a file called %s is written ./%s", output, format, output, output)
		}
		return destination{form: output}, nil
	case format != "":
		return destination{form: format, file: output}, nil
	}
	form := extensions[strings.ToLower(filepath.Ext(output))]
	if !slices.Contains(known, form) {
		return refuse("invalid --output %q: write %s to print it, or a file whose name ends in .html, .md, .csv, .json, .parquet or the like; "+
			"--format selects the form of any other file", output, list(known))
	}
	return destination{form: form, file: output}, nil
}

// write puts the answer where it belongs. Others wrote what a ledger says, and on a terminal it moves no cursor.
func (d destination) write(stdout, stderr io.Writer, data []byte) error {
	if d.file == "" {
		if file, ok := stdout.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			if name, binary := binaries[d.form]; binary {
				return &exitCode{exitUsage, fmt.Errorf("%s is not for terminals: write it to a file with -o %s", d.form, name)}
			}
			data = []byte(report.PrintableLines(string(data)))
		}
		_, err := stdout.Write(data)
		return err
	}
	made, err := writeWhole(d.file, data, 0o644)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if made {
		_, err = fmt.Fprintf(stderr, "wrote %s (%s)\n", d.file, quantity.Bytes(int64(len(data))))
	}
	return err
}

// writeWhole writes a file that appears when it is complete, also where a disk is full; made reports that it was one. What is there and no
// file, such as /dev/stdout, is written to and not replaced.
func writeWhole(path string, data []byte, mode os.FileMode) (made bool, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return false, os.WriteFile(path, data, mode)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return false, err
	}
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return false, errors.Join(fmt.Errorf("%s: %w", path, err), os.Remove(temporary.Name()))
	}
	return true, nil
}

// usage turns a wrong number of arguments into a usage error. A command that says nothing of them takes none.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		check = cobra.NoArgs
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &exitCode{exitUsage, fmt.Errorf("%w\nUsage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

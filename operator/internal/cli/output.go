package cli

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

// CreateFile writes a file that is not there yet. One that is there is kept.
func CreateFile(path string, data []byte, stderr io.Writer) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return FileExistsError(path)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // Half of it would be kept the next time.
	}
	_, err = fmt.Fprintf(stderr, "wrote %s; %s run --local %s runs it\n", path, Program, path)
	return err
}

func FileExistsError(path string) error {
	return UsageError(fmt.Errorf("%s exists and is kept: name another file, or remove it", path))
}

// AddOutput gives a command --output: its own form for people, and then those for programs.
func AddOutput(command *cobra.Command, form *string, forms ...string) {
	*form = forms[0]
	command.Flags().VarP(formFlag{form, forms}, "output", "o", "one of "+joinWords(forms))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// formFlag is the value of --output where it is one of some words.
type formFlag struct {
	chosen  *string
	allowed []string
}

func (c formFlag) String() string {
	if c.chosen == nil {
		return "" // pflag asks the zero value for its text.
	}
	return *c.chosen
}

func (c formFlag) Type() string { return "string" }

func (c formFlag) Set(text string) error {
	if !slices.Contains(c.allowed, text) {
		return UsageError(fmt.Errorf("invalid --output %q: %s", text, suggest.Allowed(text, c.allowed)))
	}
	*c.chosen = text
	return nil
}

// joinWords is "a, b or c".
func joinWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// AtPoint follows the name of what was measured at a point; it is empty for the only one.
func AtPoint(point string) string {
	if point == "" {
		return ""
	}
	return " at " + point
}

// PrintStructured prints a value for programs; done is false when the form is one for people.
func PrintStructured(out io.Writer, form string, value any) (done bool, err error) {
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

// PrintAnswer prints a value for programs, or where the form is one for people what says the same in words.
func PrintAnswer(out io.Writer, form string, value any, words string, args ...any) error {
	if done, err := PrintStructured(out, form, value); done {
		return err
	}
	_, err := fmt.Fprintf(out, words, args...)
	return err
}

// widestCell is how many characters a cell of a table shows: each row of a table is as wide as its widest cells.
const widestCell = 256

// PrintLine writes one, whatever others wrote into what it is made of, and however much where it is one of a table.
func PrintLine(out io.Writer, format string, args ...any) {
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

// Destination is the form of an answer, and the file it goes to; without one it is printed.
type Destination struct{ Form, File string }

// extensions are the forms of files.
var extensions = map[string]string{
	".html": "html", ".htm": "html", ".md": "md", ".csv": "csv", ".json": "json", ".jsonl": "attempts", ".ndjson": "attempts",
	".parquet": "parquet", ".txt": "table", ".bench": "benchstat", ".xml": "junit", ".svg": "badge",
	".zst": "archive",
}

// binaries are the forms that are no text, with a name for a file.
var binaries = map[string]string{"parquet": "attempts.parquet", "archive": "run" + store.ArchiveExtension}

// ParseDestination reads --output, which is a form that is printed or a file whose name has the form, and --format, which sets it
// where the name does not. The first of the forms known is the command's own.
func ParseDestination(output, format string, known ...string) (Destination, error) {
	refuse := func(text string, args ...any) (Destination, error) {
		return Destination{}, UsageError(fmt.Errorf(text, args...))
	}
	if format != "" && !slices.Contains(known, format) {
		return refuse("invalid --format %q: %s", format, suggest.Allowed(format, known))
	}
	switch {
	case output == "" || output == "-":
		return Destination{Form: cmp.Or(format, known[0])}, nil
	case slices.Contains(known, output):
		if format != "" && format != output {
			return refuse("--output %s and --format %s contradict each other: a file called %s is written ./%s", output, format, output, output)
		}
		return Destination{Form: output}, nil
	case format != "":
		return Destination{Form: format, File: output}, nil
	}
	form := extensions[strings.ToLower(filepath.Ext(output))]
	if !slices.Contains(known, form) {
		return refuse("invalid --output %q: write %s to print it, or a file whose name ends in .html, .md, .csv, .json, .parquet or the like; "+
			"--format selects the form of any other file", output, joinWords(known))
	}
	return Destination{Form: form, File: output}, nil
}

// Write puts the answer where it belongs. Others wrote what a ledger says, and on a terminal it moves no cursor.
func (d Destination) Write(stdout, stderr io.Writer, data []byte) error {
	if d.File == "" {
		if file, ok := stdout.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			if name, binary := binaries[d.Form]; binary {
				return UsageError(fmt.Errorf("%s is not for terminals: write it to a file with -o %s", d.Form, name))
			}
			data = []byte(report.PrintableLines(string(data)))
		}
		_, err := stdout.Write(data)
		return err
	}
	made, err := WriteFileAtomically(d.File, data, 0o644)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if made {
		_, err = fmt.Fprintf(stderr, "wrote %s (%s)\n", d.File, quantity.Bytes(int64(len(data))))
	}
	return err
}

// WriteFileAtomically writes a file that appears when it is complete, also where a disk is full; made reports that it was one. What is
// there and no file, such as /dev/stdout, is written to and not replaced.
func WriteFileAtomically(path string, data []byte, mode os.FileMode) (made bool, err error) {
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

// ValidateArgs turns a wrong number of arguments into a usage error. A command that says nothing of them takes none.
func ValidateArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	if check == nil {
		check = cobra.NoArgs
	}
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return UsageError(fmt.Errorf("%w\nUsage: %s", err, cmd.UseLine()))
		}
		return nil
	}
}

// AddDestination gives a command --output, a form, the first by itself, or a file, and --format.
func AddDestination(command *cobra.Command, output, format *string, forms ...string) {
	command.Flags().StringVarP(output, "output", "o", "",
		"form to print, or file to write whose extension selects the form (default "+forms[0]+", printed)")
	command.Flags().StringVar(format, "format", "", "form of a file whose extension does not select one: "+joinWords(forms))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveDefault))
	_ = command.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

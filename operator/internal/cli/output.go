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

// Piped reports whether a writer is a pipe, such as that of assay init | head.
func Piped(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// CreateFile writes a new file. It returns a usage error if the file exists.
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
		return errors.Join(err, os.Remove(path)) // A partial file would block the next attempt.
	}
	_, err = fmt.Fprintf(stderr, "wrote %s; %s run --local %s runs it\n", path, Program, path)
	return err
}

// FileExistsError returns the usage error for a file that exists.
func FileExistsError(path string) error {
	return UsageError(fmt.Errorf("%s exists and is not overwritten; name another file or remove it", path))
}

// AddOutput adds --output with the given forms. The first form is the default.
func AddOutput(command *cobra.Command, form *string, forms ...string) {
	*form = forms[0]
	command.Flags().VarP(formFlag{form, forms}, "output", "o", "output form: "+joinWords(forms))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// formFlag is the value of --output, restricted to the allowed forms.
type formFlag struct {
	chosen  *string
	allowed []string
}

func (c formFlag) String() string {
	if c.chosen == nil {
		return "" // pflag calls String on the zero value.
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

// joinWords formats a list as "a, b or c".
func joinWords(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// AtPoint returns " at POINT" for messages, or "" for an experiment with a single point.
func AtPoint(point string) string {
	if point == "" {
		return ""
	}
	return " at " + point
}

// PrintStructured prints value as JSON or YAML. done is false if form is neither of them.
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

// PrintAnswer prints value as JSON or YAML, or the formatted words if form is neither of them.
func PrintAnswer(out io.Writer, form string, value any, words string, args ...any) error {
	if done, err := PrintStructured(out, form, value); done {
		return err
	}
	_, err := fmt.Fprintf(out, words, args...)
	return err
}

// maxCellWidth is the maximum number of characters of a table cell. Longer cells would widen every row.
const maxCellWidth = 256

// PrintLine writes a formatted line with all arguments but numbers escaped for terminals, because ledgers and histories contain untrusted
// text. Cells of a table are truncated to maxCellWidth.
func PrintLine(out io.Writer, format string, args ...any) {
	_, table := out.(*tabwriter.Writer)
	for i, arg := range args {
		switch arg.(type) {
		case int, int64, float64:
			continue
		}
		text := report.Printable(fmt.Sprint(arg))
		if runes := []rune(text); table && len(runes) > maxCellWidth {
			text = string(runes[:maxCellWidth-1]) + "…"
		}
		args[i] = text
	}
	fmt.Fprintf(out, format, args...)
}

// Destination is the form of an output and the file it is written to. An empty file means standard output.
type Destination struct{ Form, File string }

// extensions maps file extensions to forms.
var extensions = map[string]string{
	".html": "html", ".htm": "html", ".md": "md", ".csv": "csv", ".json": "json", ".jsonl": "attempts", ".ndjson": "attempts",
	".parquet": "parquet", ".txt": "table", ".bench": "benchstat", ".xml": "junit", ".svg": "badge",
	".zst": "archive",
}

// binaries maps binary forms to a suggested file name.
var binaries = map[string]string{"parquet": "attempts.parquet", "archive": "run" + store.ArchiveExtension}

// ParseDestination parses --output, which is a form or a file name, and --format, which overrides the form that the file extension implies.
// The first known form is the default.
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
			return refuse("--output %s contradicts --format %s; to write a file named %s use ./%s", output, format, output, output)
		}
		return Destination{Form: output}, nil
	case format != "":
		return Destination{Form: format, File: output}, nil
	}
	form := extensions[strings.ToLower(filepath.Ext(output))]
	if !slices.Contains(known, form) {
		return refuse("invalid --output %q: use %s to print, or a file name with an extension such as .html, .md, .csv, .json or .parquet; "+
			"--format selects the form of files with other extensions", output, joinWords(known))
	}
	return Destination{Form: form, File: output}, nil
}

// Write writes data to the file or to stdout. Text for a terminal is escaped, because ledgers contain untrusted text; binary forms for a
// terminal are usage errors.
func (d Destination) Write(stdout, stderr io.Writer, data []byte) error {
	if d.File == "" {
		if file, ok := stdout.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			if name, binary := binaries[d.Form]; binary {
				return UsageError(fmt.Errorf("form %s is binary and cannot be printed to a terminal; write it to a file with -o %s", d.Form, name))
			}
			data = []byte(report.PrintableLines(string(data)))
		}
		_, err := stdout.Write(data)
		return err
	}
	created, err := WriteFileAtomically(d.File, data, 0o644)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	if created {
		_, err = fmt.Fprintf(stderr, "wrote %s (%s)\n", d.File, quantity.Bytes(int64(len(data))))
	}
	return err
}

// WriteFileAtomically writes a file through a temporary file, so that no partial file remains after an error such as a full disk. Paths of
// other kinds, such as /dev/stdout, are written directly; created is false for them.
func WriteFileAtomically(path string, data []byte, mode os.FileMode) (created bool, err error) {
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

// ValidateArgs turns a wrong number of arguments into a usage error. Without check the command takes no arguments.
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

// AddDestination adds --output and --format with the given forms. The first form is the default.
func AddDestination(command *cobra.Command, output, format *string, forms ...string) {
	command.Flags().StringVarP(output, "output", "o", "",
		"output form, or file whose extension selects the form (default "+forms[0]+", printed)")
	command.Flags().StringVar(format, "format", "", "form of the output file, if its extension is ambiguous: "+joinWords(forms))
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveDefault))
	_ = command.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

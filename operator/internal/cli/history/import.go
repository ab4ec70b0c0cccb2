package history

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/imported"
)

// importedView is the structured output of assay history import.
type importedView struct {
	History string `json:"history"`
	Files   int    `json:"files"`
	Values  int    `json:"values"`
	Points  int    `json:"points"`
}

func newImportCommand() *cobra.Command {
	var where, form, format, project string
	var columns []string
	command := &cobra.Command{
		Use:   "import FILE... --format FORMAT",
		Short: "Import series of values that another tool has stored",
		Long: "Import series of values that another tool has stored: CSV or JSON, the CSV of Otava, data.js of github-action-benchmark, or " +
			"results of asv. Neighbouring values of one revision are one point with an error.\n\n" +
			"Imported series are marked as unpaired: they have no anchor, so that drift of the machine is part of them, and no run confirms " +
			"their changes. Importing the same files again adds nothing. Give all files of a series at once.\n\n" +
			"CSV has a header with the columns revision and value, and optionally series and at; --column names others. JSON is an array of " +
			"objects with series, revision, value or values, and at.",
		Example: "  assay history import results.csv --format csv --column revision=commit --column value=seconds\n" +
			"  assay history import data.js --format github-action-benchmark\n  assay history import results/machine/*.json --format asv",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			named, err := columnsOf(columns)
			if err != nil {
				return cli.UsageError(err)
			}
			var values []imported.Value
			for _, name := range args {
				raw, err := readLimited(name)
				if err != nil {
					return err
				}
				found, err := imported.Read(format, raw, named)
				if err != nil {
					return cli.UsageError(fmt.Errorf("%s: %w", name, err))
				}
				values = append(values, found...)
			}
			s, err := cli.OpenFolderOrURL(cmd.Context(), "--history", where)
			if err != nil {
				return err
			}
			records := imported.Records(project, values, time.Unix(0, 0).UTC())
			if err := archive.Open(s).Append(cmd.Context(), records); err != nil {
				return err
			}
			return cli.PrintAnswer(cmd.OutOrStdout(), form, importedView{s.URL(), len(args), len(values), len(records)},
				"%d values are %d unpaired points in %s\n", len(values), len(records), s.URL())
		},
	}
	addHistory(command, &where)
	cli.AddOutput(command, &form, "text", "json", "yaml")
	flags := command.Flags()
	flags.StringVar(&format, "format", "csv", "format of the files: "+strings.Join(imported.Formats(), ", "))
	flags.StringVar(&project, "project", "local", "project of the series")
	flags.StringArrayVar(&columns, "column", nil, "FIELD=NAME, a column of CSV: revision, value, series or at; may be repeated")
	return command
}

// columnsOf parses --column.
func columnsOf(asked []string) (out imported.Columns, err error) {
	for _, column := range asked {
		field, name, ok := strings.Cut(column, "=")
		fields := map[string]*string{"revision": &out.Revision, "value": &out.Value, "series": &out.Series, "at": &out.At}
		if !ok || name == "" || fields[field] == nil {
			return out, fmt.Errorf("invalid --column %q: use FIELD=NAME with one of %s", column, strings.Join(slices.Sorted(
				slices.Values([]string{"revision", "value", "series", "at"})), ", "))
		}
		*fields[field] = name
	}
	return out, nil
}

// readLimited reads a file of at most imported.MostBytes.
func readLimited(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, imported.MostBytes+1))
}

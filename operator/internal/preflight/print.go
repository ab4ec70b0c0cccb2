package preflight

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes a table per machine and the unmet requirements and notes of the run.
func Print(out io.Writer, machines []Machine, answer *Answer) error {
	for _, machine := range machines {
		if _, err := fmt.Fprintf(out, "%s\n", machine.Name); err != nil {
			return err
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "  CLAIM\tSUPPORTED\tFOUND\tHOW TO GET IT")
		for _, finding := range machine.Findings {
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", finding.Claim, finding.Supported, finding.Found, finding.How)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if answer == nil {
		return nil
	}
	for _, unmet := range answer.Unmet {
		fmt.Fprintf(out, "cannot be met  %s\n", unmet)
	}
	for _, note := range answer.Notes {
		fmt.Fprintf(out, "note           %s\n", note)
	}
	if len(answer.Unmet) == 0 {
		fmt.Fprintln(out, "Nothing that the run asks for is known to be missing.")
	}
	return nil
}

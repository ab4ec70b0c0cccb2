package bench

import (
	"testing"

	"github.com/spf13/cobra"
)

// The printed command asks the same question by the other figure, in a form that a shell reads.
func TestTyped_CommandAsksByTheOtherFigure(t *testing.T) {
	for want, given := range map[string][]string{
		`assay bench --by cpu 'a b' c`:                       {"a b", "c"},
		`assay bench --by wall a b`:                          {"--by", "cpu", "--out", "ledger", "a", "b"},
		`assay bench --by cpu --name x --name y --shell a b`: {"--shell", "--name", "x,y", "--save", "run.yaml", "a", "b"},
		`assay bench --by cpu --budget 2m0s "it's" b`:        {"--budget", "2m", "it's", "b"},
	} {
		command := NewBenchCommand()
		got := ""
		command.RunE = func(cmd *cobra.Command, args []string) error {
			got = typed(cmd, args)
			return nil
		}
		command.SetArgs(given)
		if err := command.Execute(); err != nil || got != want {
			t.Errorf("%q: %s, want %s (%v)", given, got, want, err)
		}
	}
}

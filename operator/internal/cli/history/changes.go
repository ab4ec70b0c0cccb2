package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/ci"
	"assay.dev/assay/operator/internal/suggest"
)

// changesView is the structured form of the changes of a history.
type changesView struct {
	Changes []change.Change `json:"changes"`
	// Series maps the identity of each affected series to its name.
	Series map[string]string `json:"series"`
	// Silent lists the series without recent points.
	Silent []change.Alert `json:"silent,omitempty"`
	names  report.Names
}

func NewChangesCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var where Location
	var output, format, pages string
	var all bool
	var every days
	command := &cobra.Command{
		Use:   "changes [CHANGE]",
		Short: "List the changes of a history and their states",
		Long: "List the changes of a history. A suspected change needs a confirming run. A confirmed change causes one alert for all its " +
			"series. --every reports series without recent points.\n\n" +
			"A regression that no person has decided fails the command, and so does an alert without an acknowledgement.\n\n" +
			"With a prefix of its name it shows one change in any state. --format github writes Markdown for a comment " +
			"on a pull request or an issue; --site is the address of the pages of assay site for its links.\n\n" +
			PlaceHelp + "\n\n" + cli.ExitHelp(true),
		Example: "  assay changes\n  assay changes --all -o json\n" +
			"  assay changes 3f2a9c --format github --site https://bench.example.org\n" +
			"  assay changes acknowledge 3f2a9c --as accepted --why 'the price of checksums'",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := cli.ParseDestination(output, format, "table", "json", "yaml", "github")
			if err != nil {
				return err
			}
			if err := checkAddress("--site", pages); err != nil {
				return cli.UsageError(err)
			}
			view, err := readChanges(cmd.Context(), &where, all || len(args) > 0, time.Duration(every), time.Now())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				at, err := FindChange(change.Book{Changes: view.Changes}, args[0])
				if err != nil {
					return err
				}
				view.Changes = view.Changes[at : at+1]
			}
			var out bytes.Buffer
			if to.Form == "github" {
				out.WriteString(ci.Changes(view.Changes, view.names, pages))
			} else if done, err := cli.PrintStructured(&out, to.Form, view); err != nil {
				return err
			} else if !done {
				if err := view.print(&out); err != nil {
					return err
				}
			}
			if err := to.Write(cmd.OutOrStdout(), cmd.ErrOrStderr(), out.Bytes()); err != nil {
				return err
			}
			return view.verdict()
		},
	}
	where.AddFlags(command, connection)
	cli.AddDestination(command, &output, &format, "table", "json", "yaml", "github")
	command.Flags().StringVar(&pages, "site", "", "address of the pages of the history, for links in the form github")
	command.Flags().BoolVar(&all, "all", false, "include changes that are fixed, accepted, invalid or caused by the infrastructure")
	command.Flags().Var(&every, "every", "interval of points in days; series without a point for three intervals are reported")
	command.AddCommand(newAcknowledgeCommand(connection))
	return command
}

func readChanges(ctx context.Context, where *Location, ended bool, every time.Duration, now time.Time) (*changesView, error) {
	history, err := where.Open(ctx)
	if err != nil {
		return nil, err
	}
	book, err := history.Book(ctx)
	if err != nil {
		return nil, err
	}
	out := &changesView{Changes: []change.Change{}, Series: map[string]string{}}
	for _, c := range book.Changes {
		if ended || !c.State.Ended() {
			out.Changes = append(out.Changes, c)
		}
	}
	found, err := history.All(ctx)
	if err != nil {
		return nil, err
	}
	out.names = report.NamesOf(found)
	for _, s := range found {
		out.Series[s.Key.ID()] = s.Key.String()
		if every <= 0 {
			continue
		}
		if alert := change.Silence(s.Key.String(), s.Last, every, now); alert != nil && !s.Last.IsZero() {
			out.Silent = append(out.Silent, *alert)
		}
	}
	return out, nil
}

func (v *changesView) print(to io.Writer) error {
	out := &strings.Builder{}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "CHANGE\tSTATE\tSINCE\tEFFECT\tSERIES\tLAST")
	for _, c := range v.Changes {
		for i, effect := range c.Effects {
			id, state, since, last := c.ID, string(c.State), report.ChangeRevisions(&c, v.names), lastEvent(&c)
			if i > 0 {
				id, state, since, last = "", "", "", ""
			}
			cli.PrintLine(table, "%s\t%s\t%s\t%s, %s\t%s\t%s\n", id, state, since, quantity.Short(series.Ratio(effect.LogRatio), quantity.Times),
				direction(effect.Worse), v.Series[effect.Series], last)
		}
	}
	_ = table.Flush() // Writes to a strings.Builder do not fail.
	for _, alert := range v.Silent {
		cli.PrintLine(out, "silent: no points of %s since %s\n", strings.Join(alert.Series, ", "), alert.Since.Format(time.RFC3339))
	}
	_, err := io.WriteString(to, report.PrintableLines(out.String()))
	return err
}

// verdict returns the error of a history with a confirmed change that is a regression, or that awaits a person; nil without one.
func (v *changesView) verdict() error {
	var open []string
	for _, c := range v.Changes {
		if c.Open() || c.State != change.Suspected && !c.State.Ended() && c.Regression() {
			open = append(open, fmt.Sprintf("change %s is a confirmed %s", c.ID, c.Direction()))
		}
	}
	if len(open) == 0 {
		return nil
	}
	return cli.VerdictError(assayv1alpha1.VerdictNoGo, fmt.Sprintf(": %s; decide with %s changes acknowledge CHANGE --as STATE --why TEXT",
		strings.Join(open, "; "), cli.Program))
}

func direction(worse bool) string {
	if worse {
		return "worse"
	}
	return "better"
}

// lastEvent formats the last event of a change.
func lastEvent(c *change.Change) string {
	e := c.Latest()
	text := e.At.Format(time.DateOnly) + " " + e.Who
	if (e.Person || e.To == change.Located) && e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// decisions maps the values of --as to the resulting states.
var decisions = map[string]change.State{
	"accepted": change.Accepted, "invalid": change.Invalid, "fixed": change.Fixed, "infrastructure": change.Infrastructure,
	"confirmed": change.Confirmed,
}

func newAcknowledgeCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var where Location
	var form, as, who, why string
	command := &cobra.Command{
		Use:   "acknowledge CHANGE --why TEXT [--as accepted|invalid|fixed|infrastructure]",
		Short: "Acknowledge a change or set its state",
		Long: "Acknowledge a change. --as sets its state: accepted, invalid (a false positive), fixed, or infrastructure (caused by the " +
			"machine); confirmed reverts the decision. The author and reason are stored with the change.\n\n" + PlaceHelp +
			" The command needs a Secret with write access to the history (--secret).",
		Example: "  assay changes acknowledge 3f2a9c --why 'looking at it'\n" +
			"  assay changes acknowledge 3f2a9c --as accepted --why 'the price of checksums' --who ada",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			state, known := decisions[as]
			if as != "" && !known {
				return cli.UsageError(fmt.Errorf("invalid --as %q: %s", as, suggest.Allowed(as, slices.Sorted(maps.Keys(decisions)))))
			}
			if why == "" {
				return cli.UsageError(errors.New("--why is missing; the reason is stored with the change"))
			}
			if current, err := user.Current(); who == "" && err == nil {
				who = current.Username
			}
			history, err := where.Open(cmd.Context())
			if err != nil {
				return err
			}
			event := change.Event{At: time.Now().UTC(), Who: who, Person: true, Why: why, To: state}
			decided, err := RecordDecision(cmd.Context(), history, args[0], func(c change.Change) (_ change.Change, err error) {
				if state != "" {
					if c, err = c.Move(event); err != nil {
						return c, err
					}
				}
				return c.Acknowledge(event)
			})
			if err != nil {
				return err
			}
			return cli.PrintAnswer(cmd.OutOrStdout(), form, decided, "change %s: %s, acknowledged by %s\n", decided.ID, decided.State,
				decided.Acknowledged.Who)
		},
	}
	where.AddFlags(command, connection)
	cli.AddOutput(command, &form, "text", "json", "yaml")
	command.Flags().StringVar(&as, "as", "", "new state: accepted, invalid, fixed, infrastructure or confirmed (default: unchanged)")
	command.Flags().StringVar(&who, "who", "", "author of the decision (default: the user of this machine)")
	command.Flags().StringVar(&why, "why", "", "reason; required")
	return command
}

// RecordDecision applies a transition to the change with the given name prefix. A rejected transition is a usage error.
func RecordDecision(ctx context.Context, history *archive.Archive, name string,
	move func(change.Change) (change.Change, error)) (decided change.Change, err error) {
	_, err = history.Update(ctx, func(book change.Book) (change.Book, error) {
		at, err := FindChange(book, name)
		if err != nil {
			return book, err
		}
		if decided, err = move(book.Changes[at]); err != nil {
			return book, cli.UsageError(err)
		}
		return book.Replace(decided), nil
	})
	return decided, err
}

// FindChange returns the index of the only change whose name has the prefix.
func FindChange(book change.Book, name string) (int, error) {
	var matching []int
	for i := range book.Changes {
		// An empty prefix, for example from an unset variable of a script, would match any single change.
		if name != "" && strings.HasPrefix(book.Changes[i].ID, name) {
			matching = append(matching, i)
		}
	}
	if len(matching) != 1 {
		return 0, cli.UsageError(fmt.Errorf("%d changes match the prefix %q; list all changes with %s changes --all", len(matching), name,
			cli.Program))
	}
	return matching[0], nil
}

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

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/history/archive"
	"assay.dev/assay/operator/internal/history/change"
	"assay.dev/assay/operator/internal/history/series"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/report"
	"assay.dev/assay/operator/internal/report/ci"
	"assay.dev/assay/operator/internal/suggest"
)

// changesView is the book of a history for programs.
type changesView struct {
	Changes []change.Change `json:"changes"`
	// Series names those that changes have an effect on, by their identity.
	Series map[string]string `json:"series"`
	// Silent are the series that stopped getting points.
	Silent []change.Alert `json:"silent,omitempty"`
}

func NewChangesCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var where Location
	var output, format, pages string
	var all bool
	var every days
	command := &cobra.Command{
		Use:   "changes [CHANGE]",
		Short: "List the changes of a history: what is suspected, confirmed, and decided about",
		Long: "List the changes of a history. A suspicion is no change yet: it waits for a confirming run. A change that is confirmed is " +
			"alerted once, however many series show it. --every reports series that stopped getting points.\n\n" +
			"With the beginning of a name it shows that change, also one that is decided about. --format github writes Markdown for a comment " +
			"on a pull request or an issue; --site is where the pages of assay site are, for its links.\n\n" + PlaceHelp,
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
				out.WriteString(ci.Changes(view.Changes, view.Series, pages))
			} else if done, err := cli.PrintStructured(&out, to.Form, view); err != nil {
				return err
			} else if !done {
				if err := view.print(&out); err != nil {
					return err
				}
			}
			return to.Write(cmd.OutOrStdout(), cmd.ErrOrStderr(), out.Bytes())
		},
	}
	where.AddFlags(command, connection)
	cli.AddDestination(command, &output, &format, "table", "json", "yaml", "github")
	command.Flags().StringVar(&pages, "site", "", "address of the pages of the history, for the links of github")
	command.Flags().BoolVar(&all, "all", false, "also those that are fixed, accepted, invalid or of the infrastructure")
	command.Flags().Var(&every, "every", "days between two points: report series that had none for three times as long")
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
	keys, err := history.Keys(ctx)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		out.Series[key.ID()] = key.String()
		if every <= 0 {
			continue
		}
		s, err := history.Series(ctx, key)
		if err != nil {
			return nil, err
		}
		if alert := change.Silence(key.String(), s.Last, every, now); alert != nil && !s.Last.IsZero() {
			out.Silent = append(out.Silent, *alert)
		}
	}
	return out, nil
}

func (v *changesView) print(to io.Writer) error {
	out := &strings.Builder{}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "CHANGE\tSTATE\tRUN\tEFFECT\tSERIES\tLAST")
	for _, c := range v.Changes {
		for i, effect := range c.Effects {
			id, state, run, last := c.ID, string(c.State), fmt.Sprintf("%d (%d to %d)", c.First, c.From, c.To), lastEvent(&c)
			if i > 0 {
				id, state, run, last = "", "", "", ""
			}
			cli.PrintLine(table, "%s\t%s\t%s\t%s, %s\t%s\t%s\n", id, state, run, quantity.Short(series.Ratio(effect.LogRatio), quantity.Times),
				direction(effect.Worse), v.Series[effect.Series], last)
		}
	}
	_ = table.Flush() // A builder takes everything.
	for _, alert := range v.Silent {
		cli.PrintLine(out, "silent: %s had its last point at %s\n", strings.Join(alert.Series, ", "), alert.Since.Format(time.RFC3339))
	}
	_, err := io.WriteString(to, report.PrintableLines(out.String()))
	return err
}

func direction(worse bool) string {
	if worse {
		return "worse"
	}
	return "better"
}

// lastEvent is who did what to a change last.
func lastEvent(c *change.Change) string {
	e := c.Last()
	if c.Acknowledged != nil && c.Acknowledged.At.After(e.At) {
		e = *c.Acknowledged
	}
	text := e.At.Format(time.DateOnly) + " " + e.Who
	if (e.Person || e.To == change.Located) && e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// decisions are what a person may say of a change, and the state that it then has.
var decisions = map[string]change.State{
	"accepted": change.Accepted, "invalid": change.Invalid, "fixed": change.Fixed, "infrastructure": change.Infrastructure,
	"confirmed": change.Confirmed,
}

func newAcknowledgeCommand(connection *genericclioptions.ConfigFlags) *cobra.Command {
	var where Location
	var form, as, who, why string
	command := &cobra.Command{
		Use:   "acknowledge CHANGE --why TEXT [--as accepted|invalid|fixed|infrastructure]",
		Short: "Take notice of a change, or decide about it",
		Long: "Take notice of a change. With --as it is decided about: accepted, invalid (it is none), fixed, or infrastructure (the " +
			"machine changed, " +
			"and not the program); confirmed takes that back. Who and why stay with the change, whatever is computed later.\n\n" + PlaceHelp +
			" It has to be a Secret whose keys may write there (--secret).",
		Example: "  assay changes acknowledge 3f2a9c --why 'looking at it'\n" +
			"  assay changes acknowledge 3f2a9c --as accepted --why 'the price of checksums' --who ada",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			state, known := decisions[as]
			if as != "" && !known {
				return cli.UsageError(fmt.Errorf("invalid --as %q: %s", as, suggest.Allowed(as, slices.Sorted(maps.Keys(decisions)))))
			}
			if why == "" {
				return cli.UsageError(errors.New("--why is missing: the reason is kept with the change"))
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
	command.Flags().StringVar(&as, "as", "", "accepted, invalid, fixed, infrastructure or confirmed (default: nothing is decided)")
	command.Flags().StringVar(&who, "who", "", "who says so (default: the user of this machine)")
	command.Flags().StringVar(&why, "why", "", "why; required")
	return command
}

// RecordDecision moves a change of a history that is named by the beginning of its identity. A move that is refused is wrong usage.
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

// FindChange is the index of the change whose identity begins so.
func FindChange(book change.Book, name string) (int, error) {
	var matching []int
	for i := range book.Changes {
		// The beginning of every name is none: an empty variable of a script would decide about whatever change there is.
		if name != "" && strings.HasPrefix(book.Changes[i].ID, name) {
			matching = append(matching, i)
		}
	}
	if len(matching) != 1 {
		return 0, cli.UsageError(fmt.Errorf("%d changes have a name that begins with %q: %s changes --all lists them", len(matching), name,
			cli.Program))
	}
	return matching[0], nil
}

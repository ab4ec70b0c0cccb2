package ledgers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/store"

	"assay.dev/assay/operator/internal/cli"
	"assay.dev/assay/operator/internal/storeusers"
)

// bucket is the structured output of assay ledger create-bucket.
type bucket struct {
	Ledger  string `json:"ledger"`
	Created bool   `json:"created"`
}

func NewLedgerCommand() *cobra.Command {
	command := &cobra.Command{Use: "ledger", Short: "Manage the object store that holds the ledgers"}
	var url, form string
	create := &cobra.Command{
		Use:   "create-bucket --ledger s3://BUCKET?endpoint=URL",
		Short: "Create the ledger's bucket unless it exists",
		Long: "Create the ledger's bucket unless it exists, and check that the store rejects overwriting existing objects. Credentials come " +
			"from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
		Example: "  assay ledger create-bucket --ledger 's3://assay?endpoint=http://localhost:9000'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			created, err := store.CreateBucket(cmd.Context(), url, store.Options{})
			if err != nil {
				return err
			}
			if _, err := probeLedger(cmd.Context(), url); err != nil {
				return err
			}
			state := "already existed"
			if created {
				state = "created"
			}
			return cli.PrintAnswer(cmd.OutOrStdout(), form, bucket{url, created}, "bucket of %s %s\n", url, state)
		},
	}
	create.Flags().StringVar(&url, "ledger", "", "URL of the bucket")
	_ = create.MarkFlagRequired("ledger")
	cli.AddOutput(create, &form, "text", "json", "yaml")
	command.AddCommand(create, newProbeCommand(), newProvisionCommand(), newMetricsTokenCommand())
	return command
}

// Trait is the structured result of one check of assay ledger probe.
type Trait struct {
	Trait store.Trait `json:"trait"`
	OK    bool        `json:"ok"`
}

func probeLedger(ctx context.Context, url string) ([]Trait, error) {
	s, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		return nil, err
	}
	lacks, err := store.Probe(ctx, s)
	if err != nil {
		return nil, err
	}
	out := make([]Trait, 0, len(store.AllTraits))
	for _, name := range store.AllTraits {
		out = append(out, Trait{name, !slices.Contains(lacks, name)})
	}
	return out, nil
}

func newProbeCommand() *cobra.Command {
	var url, form string
	command := &cobra.Command{
		Use:   "probe --ledger s3://BUCKET?endpoint=URL",
		Short: "Check the features of an object store that Assay uses",
		Long: "Check the features of an object store that Assay uses. The command writes one small object, runs/assay-write-probe, and " +
			"does not remove it. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.\n\n" +
			"The exit code is 1 if the store ignores preconditions of writes, is unreachable or rejects writes.",
		Example: "  assay ledger probe --ledger 's3://assay?endpoint=http://localhost:9000'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			traits, err := probeLedger(cmd.Context(), url)
			if err != nil {
				return err
			}
			if done, err := cli.PrintStructured(cmd.OutOrStdout(), form, traits); done {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			for _, t := range traits {
				answer := "yes"
				if !t.OK {
					answer = "no"
				}
				fmt.Fprintf(table, "%s\t%s\n", t.Trait, answer)
			}
			return table.Flush()
		},
	}
	command.Flags().StringVar(&url, "ledger", "", "URL of the bucket")
	_ = command.MarkFlagRequired("ledger")
	cli.AddOutput(command, &form, "table", "json", "yaml")
	return command
}

// newProvisionCommand returns the command of the chart job for the bundled MinIO.
func newProvisionCommand() *cobra.Command {
	var url, folder, form string
	var create bool
	command := &cobra.Command{
		Use:   "provision --ledger s3://BUCKET?endpoint=URL --users FOLDER",
		Short: "Create the users of a MinIO for the operator and every run namespace",
		Long: "Create the users of a MinIO whose secret keys are in the folder, one file each: operator for the operator, metrics for " +
			"Prometheus, run.NAMESPACE for runs and analyses of a namespace, and read.NAMESPACE for read access to it. Access keys begin " +
			"with assay. and other users with such keys are removed. Versioning of the bucket is enabled. Credentials of " +
			"an administrator come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
		Example: "  assay ledger provision --ledger 's3://assay?endpoint=http://localhost:9000' --users /etc/assay/users",
		RunE: func(cmd *cobra.Command, _ []string) error {
			users, err := storeusers.Read(folder)
			if err != nil {
				return cli.UsageError(fmt.Errorf("--users: %w", err))
			}
			if create {
				if _, err := store.CreateBucket(cmd.Context(), url, store.Options{}); err != nil {
					return err
				}
			}
			done, err := storeusers.Apply(cmd.Context(), url, store.Options{}, users)
			if err != nil {
				return err
			}
			if err := store.KeepVersions(cmd.Context(), url, store.Options{}); err != nil {
				return err
			}
			return cli.PrintAnswer(cmd.OutOrStdout(), form, done, "%s has %d users, %d removed\n", url, len(done.Users), len(done.Removed))
		},
	}
	command.Flags().StringVar(&url, "ledger", "", "URL of the bucket")
	command.Flags().StringVar(&folder, "users", "", "folder with the users' secret keys, such as a mounted Secret")
	command.Flags().BoolVar(&create, "create-bucket", false, "create the bucket unless it exists")
	_ = command.MarkFlagRequired("ledger")
	_ = command.MarkFlagRequired("users")
	cli.AddOutput(command, &form, "text", "json", "yaml")
	return command
}

func newMetricsTokenCommand() *cobra.Command {
	var file, form string
	command := &cobra.Command{
		Use:   "metrics-token",
		Short: "Create a token for the metrics endpoint of a MinIO",
		Long: "Create a token with which Prometheus can read only the metrics of a MinIO, signed with the key of the user metrics from " +
			"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
		Example: "  assay ledger metrics-token --file /etc/prometheus/token",
		RunE: func(cmd *cobra.Command, _ []string) error {
			access, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
			if access == "" || secret == "" {
				return cli.UsageError(errors.New("signing key is missing; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"))
			}
			token, err := storeusers.MetricsToken(access, secret, time.Now())
			if err != nil {
				return err
			}
			if file != "" {
				_, err := cli.WriteFileAtomically(file, []byte(token), 0o600)
				return err
			}
			return cli.PrintAnswer(cmd.OutOrStdout(), form, map[string]string{"token": token}, "%s\n", token)
		},
	}
	command.Flags().StringVar(&file, "file", "", "file for the token (default: standard output)")
	cli.AddOutput(command, &form, "text", "json", "yaml")
	return command
}

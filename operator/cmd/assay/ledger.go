package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/ledger"
)

// bucket is what assay ledger create-bucket prints for programs.
type bucket struct {
	Ledger  string `json:"ledger"`
	Created bool   `json:"created"`
}

func newLedgerCommand() *cobra.Command {
	command := &cobra.Command{Use: "ledger", Short: "Look after the object store that holds the ledgers"}
	var url, form string
	create := &cobra.Command{
		Use:     "create-bucket --ledger s3://BUCKET?endpoint=URL",
		Short:   "Create the ledger's bucket unless it is there",
		Long:    "Create the ledger's bucket unless it is there. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
		Example: "  assay ledger create-bucket --ledger 's3://assay?endpoint=http://localhost:9000'",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkForm(form, "text", "json", "yaml"); err != nil {
				return err
			}
			created, err := ledger.CreateBucket(cmd.Context(), url, ledger.Options{})
			if err != nil {
				return err
			}
			if done, err := printStructured(cmd.OutOrStdout(), form, bucket{url, created}); done {
				return err
			}
			state := "was there already"
			if created {
				state = "created"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "bucket of %s %s\n", url, state)
			return err
		},
	}
	create.Flags().StringVar(&url, "ledger", "", "URL of the bucket")
	_ = create.MarkFlagRequired("ledger")
	addOutput(create, &form, "text", "json", "yaml")
	command.AddCommand(create)
	return command
}

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"assay.dev/assay/operator/internal/ledger"
)

func newLedgerCommand() *cobra.Command {
	command := &cobra.Command{Use: "ledger", Short: "Look after the object store that holds the ledgers"}
	var url string
	create := &cobra.Command{
		Use:   "create-bucket --ledger s3://BUCKET?endpoint=URL",
		Short: "Create the ledger's bucket unless it is there",
		Long:  "Create the ledger's bucket unless it is there. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			created, err := ledger.CreateBucket(cmd.Context(), url, ledger.Options{})
			if err != nil {
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
	command.AddCommand(create)
	return command
}

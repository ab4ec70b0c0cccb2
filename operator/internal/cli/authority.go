package cli

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// chartAuthority is the default name of the Secret that holds the CA certificates of the object store in charts/assay.
const chartAuthority = "assay-ledger-ca"

// storeAuthority reads the CA certificates of the object store from the Secret beside its credentials: NAME-ca for the credentials NAME or
// NAME-read, then the default name of the chart. It returns nil if neither exists; clients then use AWS_CA_BUNDLE and the certificates of
// this machine.
func storeAuthority(ctx context.Context, reader client.Reader, namespace, secret string) []byte {
	for _, name := range []string{strings.TrimSuffix(secret, "-read") + "-ca", chartAuthority} {
		var object corev1.Secret
		if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &object); err == nil && len(object.Data["ca.crt"]) > 0 {
			return object.Data["ca.crt"]
		}
	}
	return nil
}

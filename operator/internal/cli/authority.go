package cli

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// chartAuthority is the Secret in which charts/assay keeps the certificates of the store's authority, by default.
const chartAuthority = "assay-ledger-ca"

// storeAuthority finds the certificates of the authority that signed the object store's, where the chart puts them: beside the
// credentials, of which those that only read have a name of their own. Without any, AWS_CA_BUNDLE and this machine's own authorities
// are believed.
func storeAuthority(ctx context.Context, reader client.Reader, namespace, secret string) []byte {
	for _, name := range []string{strings.TrimSuffix(secret, "-read") + "-ca", chartAuthority} {
		var object corev1.Secret
		if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &object); err == nil && len(object.Data["ca.crt"]) > 0 {
			return object.Data["ca.crt"]
		}
	}
	return nil
}

package cli

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestAuthority_FoundInSecretOfChart(t *testing.T) {
	secret := func(name, key string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}, Data: map[string][]byte{key: []byte(name)}}
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		secret  string
		want    string
	}{
		"beside those that only read":           {[]client.Object{secret("bench-ledger-ca", "ca.crt"), secret("assay-ledger-ca", "ca.crt")}, "bench-ledger-read", "bench-ledger-ca"},
		"beside the chart's own credentials":    {[]client.Object{secret("assay-ledger-ca", "ca.crt")}, "assay-ledger", "assay-ledger-ca"},
		"beside credentials of another name":    {[]client.Object{secret("bench-ledger-ca", "ca.crt"), secret("assay-ledger-ca", "ca.crt")}, "bench-ledger", "bench-ledger-ca"},
		"with the credentials in one's own":     {[]client.Object{secret("assay-ledger-ca", "ca.crt")}, "s3", "assay-ledger-ca"},
		"nowhere":                               {nil, "assay-ledger", ""},
		"in a Secret that holds something else": {[]client.Object{secret("assay-ledger-ca", "tls.key")}, "assay-ledger", ""},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithObjects(tc.objects...).Build()
			if got := string(storeAuthority(t.Context(), reader, "team-a", tc.secret)); got != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

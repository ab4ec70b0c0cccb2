package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestCredentials_KeysOfSecret(t *testing.T) {
	secret := func(data ...string) client.Object {
		out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "s3"}, Data: map[string][]byte{}}
		for _, key := range data {
			out.Data[key] = []byte("value of " + key)
		}
		return out
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		keys    []string
		env     string
		want    string
		refused string
	}{
		"as the chart makes them":             {objects: []client.Object{secret("accessKey", "secretKey")}, want: "value of accessKey"},
		"under custom keys":                   {objects: []client.Object{secret("id", "key")}, keys: []string{"id", "key"}, want: "value of id"},
		"under keys that --secret-keys lacks": {objects: []client.Object{secret("id", "key")}, refused: `no key "accessKey", only id, key; set --secret-keys`},
		"under keys that --secret-keys lacks, with credentials in the environment": {objects: []client.Object{secret("id", "key")}, env: "mine"},
		"nowhere":                             {refused: "--secret"},
		"nowhere, keys at hand":               {env: "mine"},
		"with one key name only":              {objects: []client.Object{secret("id", "key")}, keys: []string{"id"}, refused: "give the keys of the access key and the secret key"},
		"with an empty key name":              {objects: []client.Object{secret("id", "key")}, keys: []string{"id", ""}, refused: "give the keys of the access key and the secret key"},
		"with the secret key's name mistyped": {objects: []client.Object{secret("id", "key")}, keys: []string{"id", "kye"}, refused: `no key "kye"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", tc.env)
			from := Source{secret: "s3", keys: tc.keys}
			if tc.keys == nil {
				from.keys = []string{"accessKey", "secretKey"}
			}
			got, err := from.credentials(t.Context(), fake.NewClientBuilder().WithObjects(tc.objects...).Build(), "team-a")
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("error %v, want one that says %q", err, tc.refused)
				}
				return
			}
			if err != nil || got.AccessKey != tc.want {
				t.Errorf("access key %q, %v; want %q", got.AccessKey, err, tc.want)
			}
		})
	}
}

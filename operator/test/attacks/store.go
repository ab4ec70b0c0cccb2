package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/lifecycle"

	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/storeusers"
)

// Bucket is a store with the users of a release.
type Bucket struct {
	// Address is the store's host and port, and Name the bucket.
	Address, Name string
	// Transport trusts the store's certificate; nil for a store without TLS.
	Transport http.RoundTripper
	// Authority is the same in PEM form.
	Authority []byte
	// Root has all rights. Run and Read are the keys of the world's namespace, Operator the operator's own.
	Root, Run, Read, Operator Key
	// Replace gives the namespace's Run another secret key, as an administrator does with a leaked key.
	Replace func(t *testing.T)
}

// Key is the key pair of a user.
type Key struct{ Access, Secret string }

const (
	another  = "runs/another-team/scan/5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11"
	measured = "/attempts/w000-b0000/pod_1/w000-b0000-s00000.json"
	judged   = "/analysis/000/analysis.json"
)

// own is a ledger of the world's namespace.
func (w *World) own() string {
	return "runs/" + w.Namespace + "/attacked/5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11"
}

// URL is the address of the store.
func (b *Bucket) URL() string {
	if b.Transport != nil {
		return "https://" + b.Address
	}
	return "http://" + b.Address
}

func (b *Bucket) client(t *testing.T, creds *credentials.Credentials) *minio.Client {
	t.Helper()
	out, err := minio.New(b.Address, &minio.Options{Creds: creds, Region: "us-east-1", MaxRetries: 1, BucketLookup: minio.BucketLookupPath,
		Secure: b.Transport != nil, Transport: b.Transport})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (b *Bucket) as(t *testing.T, key Key) *minio.Client {
	t.Helper()
	return b.client(t, credentials.NewStaticV4(key.Access, key.Secret, ""))
}

func (b *Bucket) put(ctx context.Context, client *minio.Client, key, content string) error {
	_, err := client.PutObject(ctx, b.Name, key, strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
	return err
}

func (b *Bucket) get(ctx context.Context, client *minio.Client, key string) (string, error) {
	object, err := client.GetObject(ctx, b.Name, key, minio.GetObjectOptions{})
	if err != nil {
		return "", err
	}
	defer object.Close()
	raw, err := io.ReadAll(object)
	return string(raw), err
}

// list returns the visible keys of a prefix.
func (b *Bucket) list(ctx context.Context, client *minio.Client, prefix string, versions bool) (keys []minio.ObjectInfo, err error) {
	for object := range client.ListObjects(ctx, b.Name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true, WithVersions: versions}) {
		if object.Err != nil {
			return keys, object.Err
		}
		keys = append(keys, object)
	}
	return keys, nil
}

// furnish writes another namespace's ledger and one of the world's to the store, as root.
func (w *World) furnish(t *testing.T) *minio.Client {
	t.Helper()
	root := w.Bucket.as(t, w.Bucket.Root)
	t.Cleanup(func() {
		for _, prefix := range []string{another, w.own()} {
			_ = root.RemoveObject(context.Background(), w.Bucket.Name, prefix+"/", minio.RemoveObjectOptions{ForceDelete: true})
		}
	})
	for _, key := range []string{
		another + "/experiment.json", another + measured, another + judged, w.own() + "/experiment.json", w.own() + "/waves/000/wave.json",
		w.own() + "/leases/node-1.json", w.own() + measured, w.own() + judged,
	} {
		if err := w.Bucket.put(t.Context(), root, key, "true"); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// stays checks that a key still has the content from furnish.
func (w *World) stays(t *testing.T, root *minio.Client, key string) {
	t.Helper()
	if got, err := w.Bucket.get(t.Context(), root, key); err != nil || got != "true" {
		t.Errorf("%s holds %q (%v)", key, got, err)
	}
}

// denied checks that the store rejects each operation.
func denied(t *testing.T, ways map[string]error) {
	t.Helper()
	for way, err := range ways {
		if response := minio.ToErrorResponse(err); response.Code != "AccessDenied" && response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: error %v, want that access is denied", way, err)
		}
	}
}

func readsAnother(t *testing.T, w *World) {
	w.furnish(t)
	b := w.Bucket
	for who, client := range map[string]*minio.Client{"the writer": b.as(t, b.Run), "the reader": b.as(t, b.Read),
		"nobody": b.client(t, credentials.NewStaticV4("", "", ""))} {
		_, got := b.get(t.Context(), client, another+"/experiment.json")
		_, stat := client.StatObject(t.Context(), b.Name, another+measured, minio.StatObjectOptions{})
		_, copied := client.CopyObject(t.Context(),
			minio.CopyDestOptions{Bucket: b.Name, Object: w.own() + "/attempts/w000-b0000/pod_2/stolen.json"},
			minio.CopySrcOptions{Bucket: b.Name, Object: another + measured})
		_, tags := client.GetObjectTagging(t.Context(), b.Name, another+measured, minio.GetObjectTaggingOptions{})
		denied(t, map[string]error{who + " reads": got, who + " asks for its size": stat, who + " copies": copied, who + " reads tags": tags})
	}
	// A signed link has the rights of the key that signs it.
	link, err := b.as(t, b.Run).PresignedGetObject(t.Context(), b.Name, another+"/experiment.json", time.Hour, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(link.String())
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("a signed link to another namespace's ledger: HTTP %d", response.StatusCode)
	}
}

func listsAnother(t *testing.T, w *World) {
	w.furnish(t)
	b := w.Bucket
	for who, key := range map[string]Key{"the writer": b.Run, "the reader": b.Read} {
		client := b.as(t, key)
		for _, prefix := range []string{"", "runs", "runs/", "runs/another-team", another + "/", "argo/"} {
			for versions, how := range map[bool]string{false: "lists", true: "lists versions of"} {
				_, err := b.list(t.Context(), client, prefix, versions)
				denied(t, map[string]error{fmt.Sprintf("%s %s %q", who, how, prefix): err})
			}
		}
	}
}

func writesAnother(t *testing.T, w *World) {
	root := w.furnish(t)
	b := w.Bucket
	for who, key := range map[string]Key{"the writer": b.Run, "the reader": b.Read} {
		client := b.as(t, key)
		_, copied := client.CopyObject(t.Context(), minio.CopyDestOptions{Bucket: b.Name, Object: another + judged},
			minio.CopySrcOptions{Bucket: b.Name, Object: w.own() + judged})
		_, parts := (&minio.Core{Client: client}).NewMultipartUpload(t.Context(), b.Name, another+judged, minio.PutObjectOptions{})
		denied(t, map[string]error{
			who + " adds an attempt":        b.put(t.Context(), client, another+"/attempts/w000-b0000/pod_2/w000-b0000-s00000.json", "forged"),
			who + " writes over an attempt": b.put(t.Context(), client, another+measured, "forged"),
			who + " writes a verdict":       b.put(t.Context(), client, another+judged, "forged"),
			who + " copies onto a verdict":  copied, who + " writes in parts": parts,
			who + " writes outside of all": b.put(t.Context(), client, "runs/"+w.Namespace+"-too/x/y/attempts/b/x/t.json", "forged"),
			who + " deletes":               client.RemoveObject(t.Context(), b.Name, another+measured, minio.RemoveObjectOptions{}),
			who + " deletes all":           client.RemoveObject(t.Context(), b.Name, another, minio.RemoveObjectOptions{ForceDelete: true}),
		})
	}
	w.stays(t, root, another+measured)
	w.stays(t, root, another+judged)
}

func writesThePlan(t *testing.T, w *World) {
	root := w.furnish(t)
	b := w.Bucket
	client := b.as(t, b.Run)
	for _, key := range []string{"/experiment.json", "/waves/000/wave.json", "/leases/node-1.json"} {
		denied(t, map[string]error{
			"writes over" + key: b.put(t.Context(), client, w.own()+key, "forged"),
			"deletes" + key:     client.RemoveObject(t.Context(), b.Name, w.own()+key, minio.RemoveObjectOptions{}),
		})
		w.stays(t, root, w.own()+key)
	}
	denied(t, map[string]error{"plans a wave": b.put(t.Context(), client, w.own()+"/waves/001/wave.json", "forged")})
}

// hidesItsOwn writes objects whose names are prefixes of those of results, because MinIO lists nothing below the name of an object.
func hidesItsOwn(t *testing.T, w *World) {
	root := w.furnish(t)
	b := w.Bucket
	client := b.as(t, b.Run)
	for name := path.Dir(measured); name != "/"; name = path.Dir(name) {
		denied(t, map[string]error{"writes" + name: b.put(t.Context(), client, w.own()+name, "forged")})
	}
	if keys, err := b.list(t.Context(), root, w.own()+"/attempts/", false); err != nil || len(keys) != 1 || keys[0].Key != w.own()+measured {
		t.Errorf("listed keys: %v (%v)", keys, err)
	}
}

// keepsOutTheOperator creates a folder at the key of a lease's end, which the operator must write before other runs get the node.
func keepsOutTheOperator(t *testing.T, w *World) {
	w.furnish(t)
	b := w.Bucket
	end := w.own() + "/leases/node-1-1.end.json"
	denied(t, map[string]error{"makes a folder": b.put(t.Context(), b.as(t, b.Run), end+"/xl.meta/attempts/x.json", "forged")})
	if err := b.put(t.Context(), b.as(t, b.Operator), end, "true"); err != nil {
		t.Errorf("the operator writes the end of a lease: %v", err)
	}
}

func deletesItsOwn(t *testing.T, w *World) {
	root := w.furnish(t)
	b := w.Bucket
	client := b.as(t, b.Run)
	if err := b.put(t.Context(), client, w.own()+measured, "forged"); err != nil {
		t.Fatal(err)
	}
	versions, err := b.list(t.Context(), root, w.own()+measured, true)
	if err != nil || len(versions) < 2 {
		t.Fatalf("versions %v (%v), want the overwritten version", versions, err)
	}
	for _, version := range versions {
		options := minio.RemoveObjectOptions{VersionID: version.VersionID, GovernanceBypass: true}
		denied(t, map[string]error{"deletes a version": client.RemoveObject(t.Context(), b.Name, version.Key, options)})
	}
	many := make(chan minio.ObjectInfo, 1)
	many <- minio.ObjectInfo{Key: w.own() + measured}
	close(many)
	for failed := range client.RemoveObjects(t.Context(), b.Name, many, minio.RemoveObjectsOptions{}) {
		denied(t, map[string]error{"deletes many at once": failed.Err})
	}
	denied(t, map[string]error{
		"deletes":     client.RemoveObject(t.Context(), b.Name, w.own()+measured, minio.RemoveObjectOptions{}),
		"deletes all": client.RemoveObject(t.Context(), b.Name, w.own(), minio.RemoveObjectOptions{ForceDelete: true}),
	})
	if after, err := b.list(t.Context(), root, w.own()+measured, true); err != nil || len(after) != len(versions) {
		t.Errorf("%d versions are left of %d (%v)", len(after), len(versions), err)
	}
}

// A lifecycle rule deletes objects for all users.
func makesTheStoreForget(t *testing.T, w *World) {
	w.furnish(t)
	b := w.Bucket
	for who, key := range map[string]Key{"the writer": b.Run, "the reader": b.Read, "the operator": b.Operator} {
		client := b.as(t, key)
		rule := lifecycle.Configuration{Rules: []lifecycle.Rule{{ID: "forget", Status: "Enabled", Expiration: lifecycle.Expiration{Days: 1}}}}
		denied(t, map[string]error{
			who + " suspends versions":   client.SuspendVersioning(t.Context(), b.Name),
			who + " lets objects expire": client.SetBucketLifecycle(t.Context(), b.Name, &rule),
			who + " opens the bucket": client.SetBucketPolicy(t.Context(), b.Name,
				`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":["s3:*"],"Resource":["arn:aws:s3:::`+b.Name+`/*"]}]}`),
			who + " removes the bucket":   client.RemoveBucket(t.Context(), b.Name),
			who + " makes another bucket": client.MakeBucket(t.Context(), "attackers-own", minio.MakeBucketOptions{}),
		})
	}
}

// admin asks the store's admin API as a user.
func (w *World) admin(t *testing.T, key Key, method, what string, query url.Values, body any) error {
	t.Helper()
	admin, err := storeusers.NewAdmin("s3://"+w.Bucket.Name+"?endpoint="+w.Bucket.URL(),
		store.Options{CA: w.Bucket.Authority, AccessKey: key.Access, SecretKey: key.Secret, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	raw, plain := body.([]byte)
	if !plain && body != nil {
		if raw, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
		if raw, err = storeusers.Seal(key.Secret, raw); err != nil {
			t.Fatal(err)
		}
	}
	_, err = admin.Call(t.Context(), method, what, query, raw)
	return err
}

func makesUsers(t *testing.T, w *World) {
	b := w.Bucket
	everything := []byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:*"],"Resource":["arn:aws:s3:::*"]}]}`)
	for who, key := range map[string]Key{"the writer": b.Run, "the reader": b.Read, "the operator": b.Operator} {
		for way, err := range map[string]error{
			"makes a user": w.admin(t, key, http.MethodPut, "add-user", url.Values{"accessKey": {"attackers-own"}},
				map[string]string{"secretKey": "attackers-own", "status": "enabled"}),
			"writes a policy": w.admin(t, key, http.MethodPut, "add-canned-policy", url.Values{"name": {key.Access}}, bytes.Clone(everything)),
			"takes another policy": w.admin(t, key, http.MethodPut, "set-user-or-group-policy",
				url.Values{"policyName": {"readwrite"}, "userOrGroup": {key.Access}, "isGroup": {"false"}}, nil),
			"lists users":    w.admin(t, key, http.MethodGet, "list-users", nil, nil),
			"removes a user": w.admin(t, key, http.MethodDelete, "remove-user", url.Values{"accessKey": {b.Operator.Access}}, nil),
			"changes its own key": w.admin(t, key, http.MethodPut, "add-user", url.Values{"accessKey": {key.Access}},
				map[string]string{"secretKey": key.Secret + "-own", "status": "enabled"}),
			"reads the settings": w.admin(t, key, http.MethodGet, "export-iam", nil, nil),
			"makes an account": w.admin(t, key, http.MethodPut, "add-service-account", nil,
				map[string]string{"accessKey": "attackers-account", "secretKey": "attackers-secret"}),
			"stops the store": w.admin(t, key, http.MethodPost, "service", url.Values{"action": {"freeze"}, "type": {"2"}}, nil),
		} {
			if store.CauseOf(err) != store.CauseDenied {
				t.Errorf("%s %s: error %v, want that access is denied", who, way, err)
			}
		}
	}
}

// A holder of a key creates further service accounts before the key is replaced.
func keepsAKeyThatIsReplaced(t *testing.T, w *World) {
	w.furnish(t)
	b := w.Bucket
	account := Key{"attackers-account", "attackers-secret"}
	made := w.admin(t, b.Run, http.MethodPut, "add-service-account", nil,
		map[string]string{"accessKey": account.Access, "secretKey": account.Secret})
	t.Logf("a service account: %v", made) // A rejected one is useless as well.
	assumed, err := credentials.NewSTSAssumeRole(b.URL(),
		credentials.STSAssumeRoleOptions{AccessKey: b.Run.Access, SecretKey: b.Run.Secret, DurationSeconds: 3600})
	if err != nil {
		t.Fatal(err)
	}
	_, err = assumed.GetWithContext(nil) // The credentials are held from here on.
	t.Logf("a session: %v", err)
	b.Replace(t)
	for how, creds := range map[string]*credentials.Credentials{
		"the key itself":          credentials.NewStaticV4(b.Run.Access, b.Run.Secret, ""),
		"an account made with it": credentials.NewStaticV4(account.Access, account.Secret, ""), "a session begun with it": assumed,
	} {
		if err := b.put(t.Context(), b.client(t, creds), w.own()+judged, "forged"); err == nil {
			t.Errorf("%s still writes", how)
		}
	}
}

func readerWrites(t *testing.T, w *World) {
	root := w.furnish(t)
	b := w.Bucket
	client := b.as(t, b.Read)
	link, err := client.PresignedPutObject(t.Context(), b.Name, w.own()+judged, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, link.String(), strings.NewReader("forged"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("a reader's signed link to write with: HTTP %d", response.StatusCode)
	}
	denied(t, map[string]error{
		"writes an attempt": b.put(t.Context(), client, w.own()+measured, "forged"),
		"writes a verdict":  b.put(t.Context(), client, w.own()+judged, "forged"),
		"deletes":           client.RemoveObject(t.Context(), b.Name, w.own()+judged, minio.RemoveObjectOptions{}),
	})
	w.stays(t, root, w.own()+judged)
}

func operatorMeasures(t *testing.T, w *World) {
	root := w.furnish(t)
	b := w.Bucket
	client := b.as(t, b.Operator)
	denied(t, map[string]error{
		"writes over an attempt": b.put(t.Context(), client, w.own()+measured, "forged"),
		"writes a verdict":       b.put(t.Context(), client, w.own()+judged, "forged"),
		"adds an attempt":        b.put(t.Context(), client, w.own()+"/attempts/w000-b0000/pod_2/w000-b0000-s00000.json", "forged"),
		"deletes":                client.RemoveObject(t.Context(), b.Name, w.own()+measured, minio.RemoveObjectOptions{}),
	})
	w.stays(t, root, w.own()+measured)
	w.stays(t, root, w.own()+judged)
}

func readsTheStoresMetrics(t *testing.T, w *World) {
	b := w.Bucket
	for who, key := range map[string]*Key{"nobody": nil, "the writer": &b.Run, "the reader": &b.Read, "the operator": &b.Operator} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL()+"/minio/v2/metrics/cluster", nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != nil {
			token, err := storeusers.MetricsToken(key.Access, key.Secret, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s reads the store's metrics: HTTP %d", who, response.StatusCode)
		}
	}
}

package storeusers_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/quota"
	"assay.dev/assay/operator/internal/record"
	"assay.dev/assay/operator/internal/store"
	"assay.dev/assay/operator/internal/storeusers"
	"assay.dev/assay/operator/test/attacks"
)

var root = store.Options{AccessKey: "root-of-test", SecretKey: "not-a-real-secret", Timeout: 10 * time.Second}

// startMinIO starts a MinIO on this machine and returns its host and port.
func startMinIO(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "minio")
	if _, err := os.Stat(binary); err != nil {
		t.Skip("KUBEBUILDER_ASSETS has no MinIO: run make test")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	folder := t.TempDir()
	var log bytes.Buffer
	command := exec.Command(binary, "server", filepath.Join(folder, "data"), "--address", address, "--console-address", "127.0.0.1:0")
	command.Env = []string{"MINIO_ROOT_USER=" + root.AccessKey, "MINIO_ROOT_PASSWORD=" + root.SecretKey, "MINIO_UPDATE=off",
		"MINIO_BROWSER=off", "HOME=" + folder}
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	admin, err := storeusers.NewAdmin("s3://assay?endpoint=http://"+address, root)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		// It reports ready before it has loaded its users.
		if _, err = admin.Call(t.Context(), http.MethodGet, "list-users", nil, nil); err == nil {
			return address
		}
		if time.Now().After(end) {
			t.Fatalf("MinIO did not start: %v\n%s", err, log.String())
		}
	}
}

// keys returns secret keys of users, by name.
func keys(names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		out[name] = "secret-key-of-" + name
	}
	return out
}

func as(name string) store.Options {
	return store.Options{AccessKey: storeusers.AccessKey(name), SecretKey: keys(name)[name], Timeout: 10 * time.Second}
}

func open(t *testing.T, address, under string, options store.Options) store.Store {
	t.Helper()
	store, err := store.Open(t.Context(), "s3://assay/"+under+"?endpoint=http://"+address, options)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func prepare(t *testing.T, users ...string) (address, ledgerURL string) {
	t.Helper()
	address = startMinIO(t)
	ledgerURL = "s3://assay?endpoint=http://" + address
	if _, err := store.CreateBucket(t.Context(), ledgerURL, root); err != nil {
		t.Fatal(err)
	}
	if err := store.KeepVersions(t.Context(), ledgerURL, root); err != nil {
		t.Fatal(err)
	}
	done, err := storeusers.Apply(t.Context(), ledgerURL, root, keys(users...))
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Users) != len(users) || len(done.Removed) > 0 {
		t.Fatalf("%+v, want %v", done, users)
	}
	return address, ledgerURL
}

const uid = "5f1c7a52-8f3e-4f0e-9a53-0f2c3a9d9c11"

// The store is asked for each action; it checks permissions before the existence of the object.
func TestApply_UsersHaveLeastPrivileges(t *testing.T) {
	address, _ := prepare(t, "operator", "metrics", "run.team-a", "read.team-a", "run.team", "run.team-b")
	whole := open(t, address, "", root)
	const run = "runs/team-a/pir/" + uid
	written := []string{run + "/experiment.json", run + "/attempts/w000-b0000/x_1/w000-b0000-s00000.json", run + "/analysis/000/analysis.json",
		"argo/team-a/w/p/main.log"}
	for _, key := range written {
		if err := whole.Create(t.Context(), key, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	may := func(user, verb, key string) bool {
		t.Helper()
		s := open(t, address, "", as(user))
		var err error
		switch verb {
		case "read":
			_, err = s.Get(t.Context(), key)
		case "list":
			_, err = s.List(t.Context(), key)
		case "write":
			err = s.Create(t.Context(), key, []byte("{}"))
		case "overwrite":
			err = s.Replace(t.Context(), key, []byte("{}"))
		case "delete":
			return deletes(t, address, user, key)
		}
		if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrExists) {
			return true
		}
		if store.CauseOf(err) != store.CauseDenied {
			t.Errorf("%s %ss %s: %v", user, verb, key, err)
		}
		return false
	}
	for _, tc := range []struct {
		who, verb, key string
		want           bool
	}{
		{"run.team-a", "list", run + "/", true},
		{"run.team-a", "read", run + "/experiment.json", true},
		{"run.team-a", "write", run + "/attempts/w000-b0000/x_2/w000-b0000-s00000.json", true},
		{"run.team-a", "write", run + "/started/w000-b0000/x_2/w000-b0000-s00000.json", true},
		{"run.team-a", "write", run + "/problems/attempts/w000-b0000/x_2/w000-b0000-s00000.json", true},
		{"run.team-a", "overwrite", run + "/analysis/000/analysis.json", true},
		{"run.team-a", "write", run + "/analysis/000/tables/mine.csv", true},
		{"run.team-a", "write", run + "/experiment.json", false},
		{"run.team-a", "overwrite", run + "/experiment.json", false},
		{"run.team-a", "write", run + "/waves/001/wave.json", false},
		{"run.team-a", "write", run + "/leases/node-a-1.json", false},
		{"run.team-a", "write", run + "/anything", false},
		{"run.team-a", "write", run + "/analysis/000/attempts.parquet", true},
		{"run.team-a", "write", run + "/analysis/000/evidence.sha256", true},
		{"run.team-a", "write", run + "/attempts/w000-b0000", false},
		{"run.team-a", "write", run + "/attempts/w000-b0000/x_1", false},
		{"run.team-a", "write", run + "/started/w000-b0000/x_1", false},
		{"run.team-a", "write", run + "/analysis/000", false},
		{"run.team-a", "write", run + "/leases/node-a-1.json/xl.meta/attempts/x.json", false},
		{"run.team-a", "write", run + "/waves/001/wave.json/xl.meta/analysis/x.md", false},
		{"run.team-a", "write", run + "/leases/attempts/x.json", false},
		{"run.team-a", "write", run + "/waves/attempts/x.json", false},
		{"run.team-a", "write", "runs/team-a/leases/" + uid + "/attempts/w000-b0000/x_2/w000-b0000-s00000.json", true},
		{"run.team-a", "write", "runs/team-a/waves/" + uid + "/attempts/w000-b0000/x_2/w000-b0000-s00000.json", true},
		{"run.team-a", "delete", run + "/experiment.json", false},
		{"run.team-a", "delete", run + "/attempts/w000-b0000/x_1/w000-b0000-s00000.json", false},
		{"run.team-a", "delete", run + "/analysis/000/analysis.json", false},
		{"run.team-a", "list", "", false},
		{"run.team-a", "list", "runs/", false},
		{"run.team-a", "list", "runs/team-b/", false},
		{"run.team-a", "read", "runs/team-b/pir/" + uid + "/experiment.json", false},
		{"run.team-a", "write", "runs/team-b/pir/" + uid + "/attempts/b/x/t.json", false},
		{"run.team-a", "write", "argo/team-a/w/p/out.tgz", true},
		{"run.team-a", "read", "argo/team-b/w/p/out.tgz", false},
		{"run.team-b", "read", run + "/experiment.json", false},
		{"run.team", "read", run + "/experiment.json", false}, // Its name is a prefix of the other's.
		{"run.team", "list", run + "/", false},
		{"read.team-a", "list", run + "/", true},
		{"read.team-a", "read", run + "/analysis/000/analysis.json", true},
		{"read.team-a", "write", run + "/attempts/w000-b0000/x_2/w000-b0000-s00000.json", false},
		{"read.team-a", "overwrite", run + "/analysis/000/analysis.json", false},
		{"read.team-a", "read", "runs/team-b/pir/" + uid + "/experiment.json", false},
		{"operator", "list", "", true},
		{"operator", "read", run + "/attempts/w000-b0000/x_1/w000-b0000-s00000.json", true},
		{"operator", "write", run + "/waves/001/wave.json", true},
		{"operator", "write", run + "/leases/node-a-1.json", true},
		{"operator", "write", "runs/team-b/new/" + uid + "/experiment.json", true},
		{"operator", "write", run + "/history.json", true},
		{"operator", "write", run + "/confirm.json", true},
		{"operator", "overwrite", "history/team-a/changes.json", true},
		{"operator", "delete", "history/team-a/changes.json", false},
		{"read.team-a", "read", "history/team-a/changes.json", true},
		{"read.team-a", "list", "history/team-a/", true},
		{"run.team-a", "overwrite", "history/team-a/changes.json", false},
		{"run.team-a", "write", run + "/history.json", false},
		{"run.team-b", "read", "history/team-a/changes.json", false},
		{"operator", "overwrite", run + "/attempts/w000-b0000/x_1/w000-b0000-s00000.json", false},
		{"operator", "write", run + "/analysis/001/analysis.json", false},
		{"operator", "delete", run + "/experiment.json", false},
		{"metrics", "list", "", false},
		{"metrics", "read", run + "/experiment.json", false},
	} {
		if got := may(tc.who, tc.verb, tc.key); got != tc.want {
			t.Errorf("%s may %s %s: %v, want %v", tc.who, tc.verb, tc.key, got, tc.want)
		}
	}
	if lacks, err := store.Probe(t.Context(), open(t, address, "", as("operator"))); err != nil || len(lacks) > 0 {
		t.Errorf("the operator's check of its write access: %v", err)
	}
	if err := open(t, address, "runs/team-a/pir/"+uid, as("run.team-a")).Check(t.Context()); err != nil {
		t.Errorf("the check of a run's own ledger: %v", err)
	}
}

// client returns an S3 client of a user, for requests outside of the Store interface.
func client(t *testing.T, address string, options store.Options) *minio.Client {
	t.Helper()
	out, err := minio.New(address,
		&minio.Options{Creds: credentials.NewStaticV4(options.AccessKey, options.SecretKey, ""), Region: "us-east-1", MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func deletes(t *testing.T, address, user, key string) bool {
	t.Helper()
	err := client(t, address, as(user)).RemoveObject(t.Context(), "assay", key, minio.RemoveObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code != "AccessDenied" {
		t.Errorf("%s deletes %s: %v", user, key, err)
	}
	return err == nil
}

// A policy cannot require conditional writes. The previous version stays, and the namespace's key cannot delete it.
func TestApply_OverwrittenObjectsAreRetained(t *testing.T) {
	address, _ := prepare(t, "operator", "run.team-a")
	const key = "runs/team-a/pir/" + uid + "/attempts/w000-b0000/x_1/w000-b0000-s00000.json"
	s := open(t, address, "", as("run.team-a"))
	if err := s.Create(t.Context(), key, []byte("measured")); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(t.Context(), key, []byte("forged")); err != nil {
		t.Fatal(err)
	}
	var versions []string
	for object := range client(t, address, root).ListObjects(t.Context(), "assay", minio.ListObjectsOptions{Prefix: key, WithVersions: true}) {
		if object.Err != nil {
			t.Fatal(object.Err)
		}
		versions = append(versions, object.VersionID)
		err := client(t, address, as("run.team-a")).RemoveObject(t.Context(), "assay", key,
			minio.RemoveObjectOptions{VersionID: object.VersionID})
		if minio.ToErrorResponse(err).Code != "AccessDenied" {
			t.Errorf("the namespace's key removes a version: %v", err)
		}
	}
	if len(versions) != 2 {
		t.Errorf("the store has versions %v of %s, want the first and the overwriting one", versions, key)
	}
	if got, err := quota.Sum(t.Context(), open(t, address, "", as("operator")), "runs/team-a/"); err != nil ||
		got != (store.Sizes{Objects: 2, Bytes: int64(len("measured") + len("forged"))}) {
		t.Errorf("the operator counts %+v for the storage quota of the namespace, %v; want both versions", got, err)
	}
	if err := client(t, address, as("run.team-a")).SuspendVersioning(t.Context(), "assay"); minio.ToErrorResponse(err).Code != "AccessDenied" {
		t.Errorf("the namespace's key disables versioning: %v", err)
	}
}

// A client with a namespace's key can overwrite an attempt. The first version counts, and the overwrite is reported.
func TestReadAttempts_OverwrittenAttemptCountsAsFirstWritten(t *testing.T) {
	address, _ := prepare(t, "run.team-a", "read.team-a")
	raw, err := os.ReadFile("../../../runner/schema/fixtures/valid/attempt-succeeded.json")
	if err != nil {
		t.Fatal(err)
	}
	measured, err := record.NewSharing().ParseAttempt(raw)
	if err != nil {
		t.Fatal(err)
	}
	key := "attempts/" + measured.Block + "/" + measured.ID + ".json"
	s := open(t, address, "runs/team-a/pir/"+uid, as("run.team-a"))
	if err := s.Create(t.Context(), key, raw); err != nil {
		t.Fatal(err)
	}
	if err := open(t, address, "runs/team-a/pir/"+uid, root).Create(t.Context(), ledger.ExperimentKey, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if skew, err := store.SkewOf(t.Context(), s, ledger.ExperimentKey, time.Now); err != nil || skew == nil ||
		math.Abs(skew.AheadSeconds) > skew.UncertaintySeconds {
		t.Errorf("the skew of the store on this machine is %+v: %v", skew, err)
	}
	for _, arm := range []string{"forged", "forged again"} {
		if err := s.Replace(t.Context(), key, bytes.ReplaceAll(raw, []byte(`"`+measured.Arm+`"`), []byte(`"`+arm+`"`))); err != nil {
			t.Fatal(err)
		}
	}
	for _, who := range []string{"run.team-a", "read.team-a"} {
		attempts, problems, err := ledger.ReadAttempts(t.Context(), open(t, address, "runs/team-a/pir/"+uid, as(who)), -1)
		if err != nil || len(attempts) != 1 || attempts[0].Arm != measured.Arm {
			t.Fatalf("%s reads %d attempts, %+v: %v", who, len(attempts), attempts, err)
		}
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Key, key) ||
			!strings.Contains(problems[0].Reason, "overwrote it: its first version") {
			t.Errorf("%s reads problems %+v", who, problems)
		}
	}
}

func TestApply_AddsRemovesAndRotatesUsers(t *testing.T) {
	address, ledgerURL := prepare(t, "operator", "run.team-a", "read.team-a")
	reach := func(options store.Options, namespace string) store.Cause {
		_, err := open(t, address, "", options).List(t.Context(), "runs/"+namespace+"/")
		return store.CauseOf(err)
	}
	users := keys("operator", "run.team-a", "run.team-b", "read.team-b")
	users["run.team-a"] = "another-secret-key"
	done, err := storeusers.Apply(t.Context(), ledgerURL, root, users)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(done.Removed, []string{"assay.read.team-a"}) {
		t.Errorf("removed %v", done.Removed)
	}
	if got := reach(as("run.team-b"), "team-b"); got != "" {
		t.Errorf("an added namespace: %s", got)
	}
	if got := reach(as("read.team-a"), "team-a"); got != store.CauseAccessKey {
		t.Errorf("a removed user: %q", got)
	}
	if got := reach(as("run.team-a"), "team-a"); got != store.CauseSecretKey {
		t.Errorf("a rotated key: %q", got)
	}
	again, err := storeusers.Apply(t.Context(), ledgerURL, root, users)
	if err != nil || len(again.Removed) > 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	if _, err := storeusers.Apply(t.Context(), ledgerURL, as("operator"), users); store.CauseOf(err) != store.CauseDenied {
		t.Errorf("the operator creates users: %v", err)
	}
}

// The metrics endpoint accepts the token of the metrics user, so that root's keys stay in the store's pod.
func TestMetricsToken_OnlyTheMetricsUserReadsMetrics(t *testing.T) {
	address, _ := prepare(t, "operator", "metrics", "run.team-a")
	token := func(options store.Options) string {
		t.Helper()
		out, err := storeusers.MetricsToken(options.AccessKey, options.SecretKey, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	wrong := as("metrics")
	wrong.SecretKey = "another-secret-key"
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"the metrics user's":          {token(as("metrics")), http.StatusOK},
		"none":                        {"", http.StatusForbidden},
		"one signed with another key": {token(wrong), http.StatusForbidden},
		"the operator's":              {token(as("operator")), http.StatusForbidden},
		"one of a namespace":          {token(as("run.team-a")), http.StatusForbidden},
		"one that has expired":        {expired(t), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/minio/v2/metrics/cluster", nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.token != "" {
				request.Header.Set("Authorization", "Bearer "+tc.token)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != tc.want {
				t.Errorf("HTTP %d, want %d", response.StatusCode, tc.want)
			}
		})
	}
}

func expired(t *testing.T) string {
	t.Helper()
	out, err := storeusers.MetricsToken(as("metrics").AccessKey, as("metrics").SecretKey, time.Now().AddDate(-20, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestApply_InvalidInputChangesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		url, user, want string
	}{
		"an unknown user":                     {"s3://assay?endpoint=http://127.0.0.1:1", "team-a", `invalid user "team-a"`},
		"an invalid namespace":                {"s3://assay?endpoint=http://127.0.0.1:1", "run.Team_A", "run.NAMESPACE"},
		"a namespace that matches all others": {"s3://assay?endpoint=http://127.0.0.1:1", "run.*", "run.NAMESPACE"},
		"a folder":                            {"file:///tmp/x", "operator", "users can be created in MinIO only"},
		"a store without an address":          {"s3://assay", "operator", "users can be created in MinIO only"},
		"an unreachable store":                {"s3://assay?endpoint=http://127.0.0.1:1", "operator", "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := storeusers.Apply(context.Background(), tc.url, root, keys(tc.user))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that contains %q", err, tc.want)
			}
		})
	}
}

func TestRead_MountedSecret(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := storeusers.Read(folder); err == nil || !strings.Contains(err.Error(), "has no files") {
		t.Errorf("an empty folder: %v", err)
	}
	write("operator", "long-enough\n")
	if err := os.Mkdir(filepath.Join(folder, "..2026"), 0o700); err != nil {
		t.Fatal(err)
	}
	users, err := storeusers.Read(folder)
	if err != nil || len(users) != 1 || users["operator"] != "long-enough" {
		t.Errorf("%v, %v", users, err)
	}
	write("run.team-a", "short")
	if _, err := storeusers.Read(folder); err == nil || !strings.Contains(err.Error(), "run.team-a: the secret key has 5 characters") {
		t.Errorf("a short key: %v", err)
	}
}

// The attacks on the store that make attack runs against a whole cluster.
func TestStore_AttacksFail(t *testing.T) {
	address, ledgerURL := prepare(t, "operator", "metrics", "run.team", "read.team", "run.another-team")
	key := func(name string) attacks.Key {
		return attacks.Key{Access: storeusers.AccessKey(name), Secret: keys(name)[name]}
	}
	world := &attacks.World{Namespace: "team", Bucket: &attacks.Bucket{
		Address: address, Name: "assay", Root: attacks.Key{Access: root.AccessKey, Secret: root.SecretKey},
		Run: key("run.team"), Read: key("read.team"), Operator: key("operator"),
		Replace: func(t *testing.T) {
			users := keys("operator", "metrics", "run.team", "read.team", "run.another-team")
			users["run.team"] = "another-secret-key"
			if _, err := storeusers.Apply(t.Context(), ledgerURL, root, users); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := storeusers.Apply(context.Background(), ledgerURL, root, keys(slices.Collect(maps.Keys(users))...)); err != nil {
					t.Error(err)
				}
			})
		},
	}}
	attacks.Run(t, world, attacks.Of(attacks.Store))
}

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const bucket = "assay"

// objects reads the ledgers behind the platform's back: it connects to the store's pod, inside the cluster's network, so that
// taking the store away from the platform leaves the suite its view.
type objects struct{ client *minio.Client }

func openObjects(ctx context.Context, w *world) (*objects, error) {
	var secret corev1.Secret
	// Each run namespace has separate keys. The root keys reach all of them.
	if err := w.kube.Get(ctx, client.ObjectKey{Namespace: system, Name: "assay-minio-root"}, &secret); err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		pod, err := w.pod(ctx, system, "minio", 0)
		if err != nil {
			return nil, err
		}
		return dialInside(ctx, w.node.name, net.JoinHostPort(pod.Status.PodIP, "9000"))
	}
	// Its certificate is for its name in the cluster. An installation without TLS has no authority.
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	var authority corev1.Secret
	err := w.kube.Get(ctx, client.ObjectKey{Namespace: system, Name: "assay-ledger-ca"}, &authority)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err == nil {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority.Data["ca.crt"])
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, ServerName: "assay-minio." + system + ".svc", MinVersion: tls.VersionTLS12}
	}
	opened, err := minio.New("store:9000", &minio.Options{
		Secure:       err == nil,
		Creds:        credentials.NewStaticV4(string(secret.Data["accessKey"]), string(secret.Data["secretKey"]), ""),
		Region:       "us-east-1",
		BucketLookup: minio.BucketLookupPath,
		Transport:    transport,
	})
	return &objects{opened}, err
}

// dialInside opens a connection from inside a network namespace. A socket stays in the namespace it was made in.
func dialInside(ctx context.Context, namespace, address string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread ends with the goroutine, as it is never unlocked, so no other goroutine runs in the namespace.
		runtime.LockOSThread()
		var file *os.File
		if file, err = os.Open(filepath.Join("/run/netns", namespace)); err != nil {
			return
		}
		defer file.Close()
		if err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("enter network namespace %s: %w", namespace, err)
			return
		}
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}()
	<-done
	return conn, err
}

// look remembers the version of every attempt that there is.
func (o *objects) look(ctx context.Context, prefix string, seen Seen) error {
	for info := range o.client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if info.Err != nil {
			return info.Err
		}
		seen.Add(info.Key, info.ETag)
	}
	return nil
}

// ledgers are all runs below a prefix, by their keys.
func (o *objects) ledgers(ctx context.Context, prefix string) (map[string]*Ledger, error) {
	out := map[string]*Ledger{}
	for info := range o.client.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if info.Err != nil {
			return nil, info.Err
		}
		// runs/<namespace>/<name>/<uid>/<key>
		parts := strings.SplitN(info.Key, "/", 5)
		if len(parts) < 5 {
			continue
		}
		run := strings.Join(parts[:4], "/")
		if out[run] == nil {
			out[run] = &Ledger{Run: run, Objects: map[string][]byte{}}
		}
		if !strings.HasSuffix(info.Key, ".json") {
			continue
		}
		object, err := o.client.GetObject(ctx, bucket, info.Key, minio.GetObjectOptions{})
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(object)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", info.Key, err)
		}
		out[run].Objects[parts[4]] = data
	}
	return out, nil
}

package store

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// Trait is an optional feature of an object store.
type Trait string

// Traits, in the order in which Probe tests them. Immutability depends on the first two; without them Probe returns a Fault.
const (
	// RefusesToOverwrite means that a write with If-None-Match: * fails where there is an object.
	RefusesToOverwrite Trait = "conditional create (If-None-Match: *)"
	// RefusesStaleUpdates means that a write with If-Match fails where the object has another content.
	RefusesStaleUpdates Trait = "conditional update (If-Match)"
	// ListsWhatIsWritten means that a listing includes an object immediately after its write.
	ListsWhatIsWritten Trait = "listing after write"
	// SignsLinks means that presigned URLs work.
	SignsLinks Trait = "signed links"
	// VerifiesChecksums means that a write fails if its content does not match the checksum header.
	VerifiesChecksums Trait = "checksum headers (x-amz-checksum-sha256)"
)

// AllTraits are the traits that Probe tests.
var AllTraits = []Trait{RefusesToOverwrite, RefusesStaleUpdates, ListsWhatIsWritten, SignsLinks, VerifiesChecksums}

// writeProbe is the key of the only object that probes write, always with the same content.
const writeProbe = "runs/assay-write-probe"

const probeContent = "With this object Assay checks whether the store refuses to overwrite existing objects.\n"

// Probe returns the traits that a store lacks. The error is a Fault if the store cannot be used: it is unreachable, denies writes, or
// ignores write conditions. A folder has all traits.
func Probe(ctx context.Context, store Store) ([]Trait, error) {
	switch store := store.(type) {
	case subStore:
		return Probe(ctx, store.Store)
	case *guarded:
		var lacks []Trait
		err := store.within(ctx, "probe", func(ctx context.Context) (err error) {
			lacks, err = Probe(ctx, store.Store)
			return err
		})
		return lacks, err
	case folder, archive:
		return nil, nil
	case *s3:
		return store.probe(ctx)
	default:
		return nil, fmt.Errorf("the store at %s cannot be used: nothing is known of the traits of a %T", store.URL(), store)
	}
}

func (s *s3) probe(ctx context.Context) ([]Trait, error) {
	if err := s.refusesOverwrites(ctx); err != nil {
		return nil, err
	}
	var lacks []Trait
	for _, look := range []struct {
		trait Trait
		at    func(context.Context) (bool, error)
	}{{ListsWhatIsWritten, s.listsProbe}, {SignsLinks, s.servesSignedLink}, {VerifiesChecksums, s.verifiesChecksum}} {
		ok, err := look.at(ctx)
		if err != nil {
			return nil, err
		}
		if !ok {
			lacks = append(lacks, look.trait)
		}
	}
	return lacks, nil
}

// refusesOverwrites returns nil if the store refuses a write whose condition does not hold, and a Fault otherwise.
func (s *s3) refusesOverwrites(ctx context.Context) error {
	create := minio.PutObjectOptions{}
	create.SetMatchETagExcept("*")
	stale := minio.PutObjectOptions{}
	stale.SetMatchETag("assay-holds-no-such-version")
	for _, write := range []struct {
		header  string
		options minio.PutObjectOptions
		first   bool
	}{{"If-None-Match: *", create, true}, {"If-None-Match: *", create, false}, {"If-Match", stale, false}} {
		err := s.put(ctx, writeProbe, []byte(probeContent), write.options)
		tried := fmt.Sprintf("write %s in bucket %s at %s with %s", s.prefix+writeProbe, s.bucket, s.endpoint, write.header)
		switch {
		case errors.Is(err, ErrExists):
		// Some stores answer a failed condition with ErrNotFound, because there is no object to compare.
		case errors.Is(err, ErrNotFound) && !write.first:
		case err == nil && write.first:
		case err == nil:
			return newFault(tried, CauseUnconditional, "the store overwrote the existing object: it ignores the header", errUnsuitable)
		case isNotImplemented(err):
			return newFault(tried, CauseUnconditional, "the store answers NotImplemented", err)
		default:
			return err
		}
	}
	return nil
}

func isNotImplemented(err error) bool {
	var response minio.ErrorResponse
	return errors.As(err, &response) && response.Code == "NotImplemented"
}

func (s *s3) listsProbe(ctx context.Context) (bool, error) {
	keys, _, err := s.Page(ctx, writeProbe, "")
	return slices.Contains(keys, writeProbe), err
}

// linkLife is the lifetime of the presigned URL of a probe.
const linkLife = time.Minute

func (s *s3) servesSignedLink(ctx context.Context) (bool, error) {
	ctx, cancel := begin(ctx, s.timeout)
	defer cancel()
	link, err := s.core.PresignedGetObject(ctx, s.bucket, s.prefix+writeProbe, linkLife, nil)
	if err != nil {
		// Anonymous clients cannot sign, and that is no fault of the store.
		return false, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link.String(), http.NoBody)
	if err != nil {
		return false, err
	}
	answer, err := s.transport.RoundTrip(request)
	if err != nil {
		return false, s.explain(ctx, "read by a presigned URL", writeProbe, err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, int64(len(probeContent))+1))
	if err != nil {
		return false, s.explain(ctx, "read by a presigned URL", writeProbe, err)
	}
	return answer.StatusCode == http.StatusOK && string(content) == probeContent, nil
}

// verifiesChecksum writes the existing content with a wrong checksum.
func (s *s3) verifiesChecksum(ctx context.Context) (bool, error) {
	ctx, cancel := begin(ctx, s.timeout)
	defer cancel()
	content, other := sha256.Sum256([]byte(probeContent)), sha256.Sum256(nil)
	options := minio.PutObjectOptions{
		ContentType: contentType(writeProbe), DisableContentSha256: true,
		UserMetadata: map[string]string{"X-Amz-Checksum-Sha256": base64.StdEncoding.EncodeToString(other[:])},
	}
	_, err := s.core.PutObject(ctx, s.bucket, s.prefix+writeProbe, strings.NewReader(probeContent), int64(len(probeContent)), "",
		hex.EncodeToString(content[:]), options)
	switch {
	case err == nil, isNotImplemented(err):
		return false, nil
	case minio.ToErrorResponse(err).StatusCode == http.StatusBadRequest:
		return true, nil
	default:
		return false, s.explain(ctx, "write with a wrong checksum", writeProbe, err)
	}
}

// prove verifies once that the store refuses overwrites, before the first immutable object is written.
func (s *s3) prove(ctx context.Context) error {
	if !s.unproven.Load() {
		return nil
	}
	if err := s.refusesOverwrites(ctx); err != nil {
		return err
	}
	s.unproven.Store(false)
	return nil
}

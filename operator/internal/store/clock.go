package store

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"

	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// Timekeeper is a store that reports the time.
type Timekeeper interface {
	// Time reads the store's clock in whole seconds from the answer to a read of an object.
	Time(ctx context.Context, key string) (time.Time, error)
}

// SkewOf compares this machine's clock with the store's; nil if the store reports no time. The store read its clock between request and
// response, and truncated it to seconds. The estimate is the middle of the interval that is consistent with both, so its error is at most
// half of that interval (Cristian 1989).
func SkewOf(ctx context.Context, store Store, key string, now func() time.Time) (*record.Clock, error) {
	if part, ok := store.(subStore); ok {
		store, key = part.Store, part.prefix+"/"+key
	}
	keeper, ok := store.(Timekeeper)
	if !ok {
		return nil, nil
	}
	asked := now()
	storeTime, err := keeper.Time(ctx, key)
	// Round drops the monotonic reading, so that a clock adjustment during the request is detected.
	answered := now().Round(0)
	if err != nil {
		return nil, err
	}
	least, most := asked.Round(0).Sub(storeTime.Add(time.Second)).Seconds(), answered.Sub(storeTime).Seconds()
	if most < least {
		return nil, fmt.Errorf("this machine's clock was set back by at least %s during the request for the store's time",
			quantity.Format(least-most, "s"))
	}
	return &record.Clock{AheadSeconds: (least + most) / 2, UncertaintySeconds: (most - least) / 2}, nil
}

// Time implements Timekeeper. It reads one byte of the object.
func (s *s3) Time(ctx context.Context, key string) (time.Time, error) {
	ctx, cancel := begin(ctx, s.timeout)
	defer cancel()
	options := minio.GetObjectOptions{}
	options.Set("Range", "bytes=0-0")
	body, _, header, err := s.core.GetObject(ctx, s.bucket, s.prefix+key, options)
	if err != nil {
		return time.Time{}, s.explain(ctx, "read", key, err)
	}
	defer body.Close()
	storeTime, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("the store at %s answers without the time: %w", s.endpoint, err)
	}
	return storeTime, nil
}

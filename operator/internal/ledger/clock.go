package ledger

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
	// Time is what the store's clock says in whole seconds, while it answers.
	Time(ctx context.Context) (time.Time, error)
}

// SkewOf reads this machine's clock beside that of the store; nil where the store reports no time. The store read its clock between
// asking and answer, and cut off what was beyond the second: the middle of all that this allows is off by at most half of it
// (Cristian 1989).
func SkewOf(ctx context.Context, store Store, now func() time.Time) (*record.Clock, error) {
	if part, ok := store.(subStore); ok {
		store = part.Store
	}
	keeper, ok := store.(Timekeeper)
	if !ok {
		return nil, nil
	}
	asked := now()
	storeTime, err := keeper.Time(ctx)
	// Round drops the monotonic reading: a clock that is set meanwhile is found out.
	answered := now().Round(0)
	if err != nil {
		return nil, err
	}
	least, most := asked.Round(0).Sub(storeTime.Add(time.Second)).Seconds(), answered.Sub(storeTime).Seconds()
	if most < least {
		return nil, fmt.Errorf("this machine's clock was set back by at least %s while the store was asked for the time",
			quantity.Format(least-most, "s"))
	}
	return &record.Clock{AheadSeconds: (least + most) / 2, UncertaintySeconds: (most - least) / 2}, nil
}

// Time asks for one byte of what every ledger has: the answer bears the store's time.
func (s *s3) Time(ctx context.Context) (time.Time, error) {
	ctx, cancel := begin(ctx, s.timeout)
	defer cancel()
	options := minio.GetObjectOptions{}
	options.Set("Range", "bytes=0-0")
	body, _, header, err := s.core.GetObject(ctx, s.bucket, s.prefix+ExperimentKey, options)
	if err != nil {
		return time.Time{}, s.explain(ctx, "read", ExperimentKey, err)
	}
	defer body.Close()
	storeTime, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("the store at %s answers without the time: %w", s.endpoint, err)
	}
	return storeTime, nil
}

package store

import "context"

// Patient wraps a store with retries. A create whose response was lost succeeds on the retry if the object has the same content.
func Patient(store Store, retrier *Retrier) Store {
	out := patient{around{store, func(ctx context.Context, what string, operation func(context.Context) error) error {
		return retrier.Do(ctx, what, func() error { return operation(ctx) })
	}}}
	if versioned, ok := store.(Versioned); ok {
		return patientVersions{out, versioned}
	}
	return out
}

type patient struct{ around }

func (p patient) Create(ctx context.Context, key string, data []byte) error {
	tries := 0
	return p.do(ctx, "create "+key, func(ctx context.Context) error {
		if tries++; tries > 1 {
			return EnsureCreated(ctx, p.Store, key, data)
		}
		return p.Store.Create(ctx, key, data)
	})
}

func (p patient) Check(ctx context.Context) error {
	return p.do(ctx, "look for the bucket", p.Store.Check)
}

type patientVersions struct {
	patient
	versioned Versioned
}

func (p patientVersions) Firsts(ctx context.Context, prefix string) (firsts map[string]string, err error) {
	err = p.do(ctx, "list versions of "+prefix, func(ctx context.Context) error {
		firsts, err = p.versioned.Firsts(ctx, prefix)
		return err
	})
	return firsts, err
}

func (p patientVersions) GetVersion(ctx context.Context, key, version string) (data []byte, err error) {
	err = p.do(ctx, "read "+key, func(ctx context.Context) error {
		data, err = p.versioned.GetVersion(ctx, key, version)
		return err
	})
	return data, err
}
